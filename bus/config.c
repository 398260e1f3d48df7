/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/config.c - walks libyaml's events over the table of keys.
 *
 * The shape is fixed: a map of sections, each a map of keys, each a scalar, or a map of
 * users, each a map of keys again. So no recursion and no tree: whatever does not fit is
 * reported and skipped by counting depth, up to a limit that is checked while the reader
 * goes on, because its own cost grows with the square of the depth. What is nested deeper
 * are sections of their own, whose events go to the builder of a tree.
 */
#include "bus/config_reader.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

/* As deep as trees are: deeper text is not an honest mistake. */
#define DEPTH_MAX 8U

static struct rbi_config_place place_of(const yaml_mark_t *mark)
{
    const struct rbi_config_place place = {(unsigned)mark->line + 1, (unsigned)mark->column + 1};
    return place;
}

/** True when the reader stopped at a tab. It counts characters, the text has bytes. */
static bool at_tab(const struct rbi_config_reader *r, const yaml_mark_t *mark)
{
    size_t chars = 0;
    for (size_t i = 0; i < r->size; i++) {
        chars += ((unsigned char)r->text[i] & 0xc0) != 0x80;
        if (chars > mark->index) {
            return r->text[i] == '\t';
        }
    }
    return false;
}

/* ---- nodes ------------------------------------------------------------------------------ */

/** After a whole node: keys and values alternate. */
static void node_done(struct rbi_config_reader *r)
{
    if (!r->skipping && r->depth >= 1) {
        r->value_next[r->depth] = !r->value_next[r->depth];
    }
}

/** A key that is not a scalar: it and its value mean nothing. */
static void odd_key(struct rbi_config_reader *r, struct rbi_config_place place, const char *found)
{
    rbi_config_error_add(r->errors, place, "expected a key, found %s", found);
    rbi_config_name_forget(r);
}

/** A value of the wrong shape. */
static void odd_value(struct rbi_config_reader *r, struct rbi_config_place place, const char *found)
{
    if (r->depth == 0) {
        rbi_config_error_add(r->errors, place, "expected a map of sections, found %s", found);
    } else if (r->depth == 1 && r->section < r->schema->count) {
        const struct rbi_config_key *first = &r->schema->keys[r->section];
        rbi_config_error_add(r->errors, place, "%.*s: expected keys below it, found %s%s",
                             (int)rbi_config_section_length(first), first->name, found,
                             strcmp(found, "nothing") == 0 ? "; leave the line out" : "");
    } else if (r->depth == 3 && r->user) {
        rbi_config_error_add(r->errors, place, "%s.%u: expected limits below it, found %s",
                             r->key->name, (unsigned)r->user->uid, found);
    } else if (rbi_config_key_at_hand(r)) {
        struct rbi_config_fault fault;
        rbi_config_value_describe(rbi_config_key_at_hand(r), &fault);
        rbi_config_error_add(r->errors, place, "%s: expected %s, found %s",
                             rbi_config_key_at_hand(r)->name, fault.expected, found);
    }
}

static void take_value(struct rbi_config_reader *r,
                       struct rbi_config_place place,
                       const char *value,
                       size_t length)
{
    struct rbi_config_fault fault;
    char found[RBI_CONFIG_QUOTE_MAX];
    const struct rbi_config_key *key = rbi_config_key_at_hand(r);
    if (!key || rbi_config_value_parse(key, value, length, r->config, &fault) == 0) {
        return;
    }
    rbi_config_error_add(r->errors, place, "%s: expected %s, found %s%s%s", key->name,
                         fault.expected, rbi_config_quote(value, length, found, sizeof found),
                         fault.hint[0] ? "; " : "", fault.hint);
}

/** An event went to the tree: its section may be complete. */
static void nested_done(struct rbi_config_reader *r)
{
    if (rbi_tree_done(r->nested)) {
        r->in_nested = false;
        node_done(r);
    }
    r->stop = r->stop || r->nested->no_memory;
}

static void on_scalar(struct rbi_config_reader *r, const yaml_event_t *event)
{
    const struct rbi_config_place place = place_of(&event->start_mark);
    const char *value = (const char *)event->data.scalar.value;
    const size_t length = event->data.scalar.length;
    const bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    const bool nothing = plain && (length == 0 || rbi_config_same(value, length, "~", 1));

    if (r->skipping) {
        return;
    }
    if (r->in_nested) {
        rbi_tree_scalar(r->nested, place, value, length, plain);
        nested_done(r);
        return;
    }
    if (r->depth == 0) {
        if (length == 0 && plain) {
            r->documents = 0; /* "---" and no more: as good as empty */
        } else {
            odd_value(r, place, "a scalar");
        }
    } else if (!r->value_next[r->depth]) {
        if (plain && rbi_config_same(value, length, "<<", 2)) {
            odd_key(r, place, "<<; merge keys are not taken");
        } else {
            rbi_config_name_take(r, place, value, length);
        }
    } else if (nothing) {
        odd_value(r, place, "nothing");
    } else if (r->depth == 1 || r->depth == 3) {
        odd_value(r, place, "a scalar");
    } else {
        take_value(r, place, value, length);
    }
    node_done(r);
}

/** Whether a map may stand as the value at hand. */
static bool map_fits(const struct rbi_config_reader *r)
{
    switch (r->depth) {
    case 1:
        return r->section < r->schema->count;
    case 2:
        return r->key && r->key->type == RBI_CONFIG_TYPE_USERS;
    case 3:
        return r->user != NULL;
    default:
        return false;
    }
}

static void on_start(struct rbi_config_reader *r, const yaml_event_t *event)
{
    const bool map = event->type == YAML_MAPPING_START_EVENT;
    const struct rbi_config_place place = place_of(&event->start_mark);
    if (r->depth == DEPTH_MAX) {
        rbi_config_error_add(r->errors, place, "nested more than %u deep", DEPTH_MAX);
        r->stop = true;
        return;
    }
    if (r->skipping || r->in_nested) {
        if (r->in_nested) {
            rbi_tree_start(r->nested, place, map);
        }
        r->depth++;
        return;
    }
    const bool is_key = r->depth >= 1 && !r->value_next[r->depth];
    if (map && r->depth == 0) {
        r->value_next[1] = false;
    } else if (map && !is_key && map_fits(r)) {
        r->value_next[r->depth + 1] = false;
    } else {
        if (is_key) {
            odd_key(r, place, map ? "a map" : "a list");
        } else {
            odd_value(r, place, map ? "a map" : "a list");
        }
        r->skipping = true;
        r->skip_depth = r->depth;
    }
    r->depth++;
}

static void on_end(struct rbi_config_reader *r)
{
    r->depth--;
    if (r->in_nested) {
        rbi_tree_end(r->nested);
        nested_done(r);
        return;
    }
    if (r->skipping && r->depth == r->skip_depth) {
        r->skipping = false;
    }
    node_done(r);
}

static void on_document(struct rbi_config_reader *r, const yaml_event_t *event)
{
    const struct rbi_config_place place = place_of(&event->start_mark);
    if (r->document_line != 0) {
        rbi_config_error_add(
            r->errors, place,
            "expected one document, found a second one; the first began in line %u",
            r->document_line);
        r->stop = true;
        return;
    }
    r->document_line = place.line;
    r->documents = 1;
}

/** Anchors and tags are refused wherever they stand, in skipped parts as well. */
static void check_decoration(struct rbi_config_reader *r,
                             const yaml_event_t *event,
                             const yaml_char_t *anchor,
                             const yaml_char_t *tag)
{
    const struct rbi_config_place place = place_of(&event->start_mark);
    char found[RBI_CONFIG_QUOTE_MAX];
    if (anchor) {
        const char *name = (const char *)anchor;
        rbi_config_error_add(r->errors, place, "anchors are not taken, found %s",
                             rbi_config_quote(name, strlen(name), found, sizeof found));
    }
    if (tag) {
        const char *name = (const char *)tag;
        rbi_config_error_add(r->errors, place, "tags are not taken, found %s",
                             rbi_config_quote(name, strlen(name), found, sizeof found));
    }
}

static void on_alias(struct rbi_config_reader *r, const yaml_event_t *event)
{
    const char *name = (const char *)event->data.alias.anchor;
    char found[RBI_CONFIG_QUOTE_MAX];
    rbi_config_error_add(r->errors, place_of(&event->start_mark), "aliases are not taken, found %s",
                         rbi_config_quote(name, strlen(name), found, sizeof found));
    if (r->in_nested) {
        rbi_tree_alias(r->nested);
        nested_done(r);
        return;
    }
    if (!r->skipping && r->depth >= 1 && !r->value_next[r->depth]) {
        rbi_config_name_forget(r);
    }
    node_done(r);
}

static void on_event(struct rbi_config_reader *r, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        on_document(r, event);
        break;
    case YAML_ALIAS_EVENT:
        on_alias(r, event);
        break;
    case YAML_SCALAR_EVENT:
        check_decoration(r, event, event->data.scalar.anchor, event->data.scalar.tag);
        on_scalar(r, event);
        break;
    case YAML_SEQUENCE_START_EVENT:
        check_decoration(r, event, event->data.sequence_start.anchor,
                         event->data.sequence_start.tag);
        on_start(r, event);
        break;
    case YAML_MAPPING_START_EVENT:
        check_decoration(r, event, event->data.mapping_start.anchor, event->data.mapping_start.tag);
        on_start(r, event);
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        on_end(r);
        break;
    case YAML_STREAM_END_EVENT:
        r->stop = true;
        break;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        break;
    }
}

/* ---- the whole -------------------------------------------------------------------------- */

/** Place of a byte; for errors of libyaml's decoder, which knows bytes only. */
static struct rbi_config_place place_of_byte(const struct rbi_config_reader *r, size_t offset)
{
    struct rbi_config_place place = {1, 1};
    for (size_t i = 0; i < offset && i < r->size; i++) {
        const unsigned char c = (unsigned char)r->text[i];
        if (c == '\n' || (c == '\r' && (i + 1 == r->size || r->text[i + 1] != '\n'))) {
            place.line++;
            place.column = 1;
        } else {
            place.column += (c & 0xc0) != 0x80;
        }
    }
    return place;
}

/** Reports why libyaml gave up. */
static int explain(struct rbi_config_reader *r)
{
    const yaml_parser_t *yaml = &r->yaml;
    if (yaml->error == YAML_MEMORY_ERROR) {
        return -ENOMEM;
    }
    const char *problem = yaml->problem ? yaml->problem : "unreadable";
    if (yaml->error == YAML_READER_ERROR) {
        rbi_config_error_add(r->errors, place_of_byte(r, yaml->problem_offset),
                             "expected UTF-8: %s", problem);
        return 1;
    }
    const bool tab = at_tab(r, &yaml->problem_mark);
    rbi_config_error_add(r->errors, place_of(&yaml->problem_mark), "not YAML: %s%s%s%s",
                         yaml->context ? yaml->context : "", yaml->context ? ": " : "", problem,
                         tab ? "; tabs do not indent, use spaces" : "");
    return 1;
}

/** @retval 0 walked to the end or as far as makes sense; 1 not YAML; -ENOMEM */
static int walk(struct rbi_config_reader *r)
{
    while (!r->stop) {
        yaml_event_t event;
        if (!yaml_parser_parse(&r->yaml, &event)) {
            return explain(r);
        }
        on_event(r, &event);
        yaml_event_delete(&event);
    }
    if (r->documents == 0) {
        const struct rbi_config_place whole = {0, 0};
        rbi_config_error_add(r->errors, whole,
                             "expected keys, found nothing; is the file still being written? "
                             "{} asks for the defaults");
    }
    return 0;
}

/** Reads the text, which was looked at. @retval 0; 1 @p r->errors has entries; -ENOMEM */
static int read_text(struct rbi_config_reader *r)
{
    if (!yaml_parser_initialize(&r->yaml)) {
        return -ENOMEM;
    }
    yaml_parser_set_encoding(&r->yaml, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r->yaml, (const unsigned char *)r->text, r->size);
    int result = walk(r);
    yaml_parser_delete(&r->yaml);
    if (result >= 0 && r->nested && r->nested->no_memory) {
        result = -ENOMEM;
    }
    return result < 0 ? result : r->errors->count != 0;
}

int rbi_config_parse_nested(const struct rbi_config_schema *schema,
                            const char *text,
                            size_t size,
                            void *out,
                            void *scratch,
                            struct rbi_tree_builder *nested,
                            struct rbi_config_errors *errors)
{
    struct rbi_config_reader r = {
        .schema = schema, .config = scratch, .errors = errors, .nested = nested};
    size_t skip = 0;

    if (size > RBI_CONFIG_TEXT_MAX) {
        const struct rbi_config_place whole = {0, 0};
        rbi_config_error_add(errors, whole, "expected at most %u bytes, found more",
                             RBI_CONFIG_TEXT_MAX);
        return 1;
    }
    if (rbi_config_text_check(text, size, &skip, errors) != 0) {
        return 1;
    }
    r.text = text + skip;
    r.size = size - skip;
    rbi_config_defaults_with(schema, scratch);
    const int result = read_text(&r);
    if (result == 0) {
        rbi_config_users_inherit(schema, scratch);
        memcpy(out, scratch, schema->size);
    }
    return result;
}

int rbi_config_parse_with(const struct rbi_config_schema *schema,
                          const char *text,
                          size_t size,
                          void *out,
                          void *scratch,
                          struct rbi_config_errors *errors)
{
    errors->count = 0;
    return rbi_config_parse_nested(schema, text, size, out, scratch, NULL, errors);
}
