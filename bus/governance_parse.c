/* SPDX-License-Identifier: Apache-2.0 */
/* bus/governance_parse.c - texts to layers, and the table of their keys for the documentation. */
#include "bus/config_bridge.h"
#include "bus/governance.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/** Parses over any table of keys, and these sections. */
static int parse(const struct rbi_config_schema *schema,
                 const struct rbi_tree_field *sections,
                 const char *text,
                 size_t size,
                 void *config,
                 void *scratch,
                 struct rbi_governance *out,
                 struct rbi_config_errors *errors)
{
    struct rbi_governance parsed = RBI_GOVERNANCE_NULL;
    struct rbi_tree_builder builder;
    errors->count = 0;
    int result = rbi_tree_builder_init(&builder, &parsed.tree, sections, errors);
    if (result == 0) {
        result = rbi_config_parse_nested(schema, text, size, scratch, scratch, &builder, errors);
    }
    if (result == 0 && !rbi_governance_check(&parsed, errors)) {
        result = 1;
    }
    if (result == 0) {
        const uint32_t map = rbi_tree_find(&parsed.tree, 0, "instances");
        parsed.instances = map ? rbi_tree_names(&parsed.tree, map, &parsed.instance_count) : NULL;
        result = map && !parsed.instances ? -ENOMEM : 0;
    }
    if (result != 0) {
        rbi_governance_deinit(&parsed);
        return result;
    }
    memcpy(config, scratch, schema->size);
    *out = parsed;
    return 0;
}

int rbi_governance_parse(const char *text,
                         size_t size,
                         struct rbi_governance *out,
                         struct rbi_config_errors *errors)
{
    static const struct rbi_config_schema none = {.keys = NULL};
    char room[1];
    return parse(&none, &rbi_governance_schema, text, size, room, room, out, errors);
}

int rbi_config_parse_all(const char *text,
                         size_t size,
                         struct rbi_config *config,
                         struct rbi_governance *governance,
                         struct rbi_config_errors *errors)
{
    struct rbi_config scratch;
    struct rbi_config parsed;
    struct rbi_governance sections = RBI_GOVERNANCE_NULL;
    int result = parse(&rbi_config_schema, &rbi_governance_file_schema, text, size, &parsed,
                       &scratch, &sections, errors);
    if (result != 0) {
        return result;
    }
    if (!rbi_config_bridge_take(&sections.tree, &parsed.bridge, errors)) {
        rbi_governance_deinit(&sections);
        return 1;
    }
    *config = parsed;
    *governance = sections;
    return 0;
}

int rbi_config_parse(const char *text,
                     size_t size,
                     struct rbi_config *out,
                     struct rbi_config_errors *errors)
{
    struct rbi_governance governance = RBI_GOVERNANCE_NULL;
    const int result = rbi_config_parse_all(text, size, out, &governance, errors);
    rbi_governance_deinit(&governance);
    return result;
}

/* ---- documentation ---------------------------------------------------------------------- */

/** A walk over the table: which field of each level is at hand. */
struct walk {
    const struct rbi_tree_field *maps[RBI_TREE_DEPTH_MAX];
    unsigned next[RBI_TREE_DEPTH_MAX];
    size_t names[RBI_TREE_DEPTH_MAX]; /* length of the name of each level */
    unsigned depth;
    char name[RBI_TREE_NAME_MAX];
};

/** The map that a field leads to, its name with what stands for the items between; or NULL. */
static const struct rbi_tree_field *lead(const struct rbi_tree_field *field, struct walk *w)
{
    size_t used = strlen(w->name);
    const struct rbi_tree_field *at = field;
    while (at->kind == RBI_TREE_LIST || at->kind == RBI_TREE_NAMES) {
        (void)snprintf(w->name + used, sizeof w->name - used, "%s",
                       at->kind == RBI_TREE_LIST ? "[]" : ".NAME");
        used = strlen(w->name);
        at = at->fields;
    }
    return at->kind == RBI_TREE_MAP ? at : NULL;
}

static void doc_value(const struct walk *w,
                      const struct rbi_tree_field *field,
                      rbi_config_doc_fn report,
                      void *context)
{
    char range[RBI_CONFIG_VALUE_MAX];
    const struct rbi_config_key *key = &field->key;
    const struct rbi_config_key *value = key;
    if (field->kind == RBI_TREE_LIST) {
        /* Of simple items: what they are is said by the items. */
        const struct rbi_tree_field *item = field->fields;
        while (item->kind == RBI_TREE_LIST) {
            item = item->fields;
        }
        value = &item->key;
    }
    rbi_config_value_range(value, range, sizeof range);
    report(context, w->name, rbi_config_type_name(value->type), rbi_config_type_unit(value->type),
           field->flags & RBI_TREE_REQUIRED                     ? "required"
           : field->kind == RBI_TREE_LIST || !key->default_text ? "none"
                                                                : key->default_text,
           range, false, key->text);
}

/** The field at hand. */
static void doc_field(struct walk *w,
                      const struct rbi_tree_field *field,
                      rbi_config_doc_fn report,
                      void *context)
{
    const size_t around = w->names[w->depth];
    (void)snprintf(w->name + around, sizeof w->name - around, "%s%s", around ? "." : "",
                   field->key.name);
    const struct rbi_tree_field *map = lead(field, w);
    if (!map) {
        doc_value(w, field, report, context);
        return;
    }
    report(context, w->name, "map", "", "none", "", false, field->key.text);
    w->depth++;
    w->maps[w->depth] = map;
    w->next[w->depth] = 0;
    w->names[w->depth] = strlen(w->name);
}

static void doc(const struct rbi_tree_field *root, rbi_config_doc_fn report, void *context)
{
    struct walk w = {.maps = {root}, .name = ""};
    for (;;) {
        const unsigned depth = w.depth;
        if (w.next[depth] < w.maps[depth]->field_count) {
            doc_field(&w, &w.maps[depth]->fields[w.next[depth]++], report, context);
        } else if (depth == 0) {
            return;
        } else {
            w.depth--;
        }
    }
}

void rbi_governance_doc(rbi_config_doc_fn report, void *context)
{
    doc(&rbi_governance_schema, report, context);
}

void rbi_config_bridge_doc(rbi_config_doc_fn report, void *context)
{
    const unsigned shared = rbi_governance_schema.field_count;
    const struct rbi_tree_field root = {.kind = RBI_TREE_MAP,
                                        .fields = &rbi_governance_file_schema.fields[shared],
                                        .field_count = 1};
    doc(&root, report, context);
}
