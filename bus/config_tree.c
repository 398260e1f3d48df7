/* SPDX-License-Identifier: Apache-2.0 */
/* bus/config_tree.c - the tree: walking it, and storing what it says in structures. */
#include "bus/config_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rbi_tree_deinit(struct rbi_tree *tree)
{
    free(tree->nodes);
    free(tree->texts);
    *tree = RBI_TREE_NULL;
}

const char *rbi_tree_text(const struct rbi_tree *tree, const struct rbi_tree_node *node)
{
    return tree->texts ? tree->texts + node->text : "";
}

uint32_t rbi_tree_first(const struct rbi_tree *tree, uint32_t parent)
{
    return parent < tree->count && parent + 1 < tree->nodes[parent].end ? parent + 1 : 0;
}

uint32_t rbi_tree_next(const struct rbi_tree *tree, uint32_t parent, uint32_t node)
{
    const uint32_t next = tree->nodes[node].end;
    return next < tree->nodes[parent].end ? next : 0;
}

uint32_t rbi_tree_find(const struct rbi_tree *tree, uint32_t parent, const char *name)
{
    uint32_t node = rbi_tree_first(tree, parent);
    while (node != 0 && strcmp(tree->nodes[node].field->key.name, name) != 0) {
        node = rbi_tree_next(tree, parent, node);
    }
    return node;
}

int rbi_tree_name_compare(const void *a, const void *b)
{
    const struct rbi_tree_name *left = a;
    const struct rbi_tree_name *right = b;
    const int order = strcmp(left->text, right->text);
    return order ? order : (left->node > right->node) - (left->node < right->node);
}

struct rbi_tree_name *rbi_tree_names(const struct rbi_tree *tree, uint32_t map, uint32_t *count)
{
    *count = 0;
    for (uint32_t at = rbi_tree_first(tree, map); at; at = rbi_tree_next(tree, map, at)) {
        ++*count;
    }
    struct rbi_tree_name *names = calloc((size_t)*count + 1, sizeof *names);
    uint32_t i = 0;
    for (uint32_t at = rbi_tree_first(tree, map); names && at; at = rbi_tree_next(tree, map, at)) {
        names[i++] = (struct rbi_tree_name){rbi_tree_text(tree, &tree->nodes[at]), at};
    }
    if (names) {
        qsort(names, *count, sizeof *names, rbi_tree_name_compare);
    }
    return names;
}

/* ---- names ------------------------------------------------------------------------------ */

/** Index of the node around @p node. */
static uint32_t parent_of(const struct rbi_tree *tree, uint32_t node)
{
    uint32_t parent = node;
    while (tree->nodes[parent].depth >= tree->nodes[node].depth) {
        parent--;
    }
    return parent;
}

/** Place of a node in its list. */
static unsigned place_in(const struct rbi_tree *tree, uint32_t parent, uint32_t node)
{
    unsigned place = 0;
    for (uint32_t at = parent + 1; at != node; at = tree->nodes[at].end) {
        place++;
    }
    return place;
}

const char *rbi_tree_name(const struct rbi_tree *tree, uint32_t node, char *buffer, size_t size)
{
    uint32_t path[RBI_TREE_DEPTH_MAX + 1];
    unsigned depth = 0;
    size_t used = 0;
    for (uint32_t at = node; tree->nodes[at].depth > 0; at = parent_of(tree, at)) {
        path[depth++] = at;
    }
    buffer[0] = '\0';
    while (depth-- > 0 && used < size) {
        const struct rbi_tree_node *item = &tree->nodes[path[depth]];
        const uint32_t parent = parent_of(tree, path[depth]);
        const enum rbi_tree_kind kind = tree->nodes[parent].field->kind;
        int n = 0;
        if (kind == RBI_TREE_LIST) {
            n = snprintf(buffer + used, size - used, "[%u]", place_in(tree, parent, path[depth]));
        } else {
            n = snprintf(buffer + used, size - used, "%s%s", used ? "." : "",
                         kind == RBI_TREE_NAMES ? rbi_tree_text(tree, item)
                                                : item->field->key.name);
        }
        used += n > 0 ? (size_t)n : 0;
    }
    return buffer;
}

/* ---- storing ---------------------------------------------------------------------------- */

static void store_default(const struct rbi_tree_field *field, void *structure)
{
    struct rbi_config_fault fault;
    const char *text = field->key.default_text;
    if (field->kind == RBI_TREE_VALUE && text && !(field->flags & RBI_TREE_BIT)) {
        RBI_ASSERT(rbi_config_value_parse(&field->key, text, strlen(text), structure, &fault) == 0);
    }
}

void rbi_tree_defaults(const struct rbi_tree_field *map, void *structure)
{
    /* Two levels are as deep as values stand without a list between. */
    for (unsigned i = 0; i < map->field_count; i++) {
        const struct rbi_tree_field *field = &map->fields[i];
        store_default(field, structure);
        for (unsigned j = 0; field->kind == RBI_TREE_MAP && j < field->field_count; j++) {
            RBI_ASSERT(field->fields[j].kind != RBI_TREE_MAP);
            store_default(&field->fields[j], (char *)structure + field->key.offset);
        }
    }
}

/** A walk over a subtree: for each depth what its children are stored in. */
struct store {
    const struct rbi_tree *tree;
    uint32_t root_depth;
    char *bases[RBI_TREE_DEPTH_MAX + 1];
    uint32_t items[RBI_TREE_DEPTH_MAX + 1]; /* of a list, read so far */
    const struct rbi_tree_node *lists[RBI_TREE_DEPTH_MAX + 1];
    rbi_tree_full_fn full;
    void *context;
};

static uint32_t count_of(const struct rbi_tree_field *list, const char *base)
{
    uint32_t count;
    memcpy(&count, base + list->count_offset, sizeof count);
    return count;
}

static void set_count(const struct rbi_tree_field *list, char *base, uint32_t count)
{
    if (list->count_offset != RBI_TREE_NO_COUNT) {
        memcpy(base + list->count_offset, &count, sizeof count);
    }
}

/** Where the item with the id of @p item is, or is to be; NULL: no room. */
static char *
find_keyed(const struct store *s, const struct rbi_tree_field *list, char *base, uint32_t item)
{
    const struct rbi_tree_field *id = &list->fields[0].fields[0];
    const uint32_t node = rbi_tree_find(s->tree, item, id->key.name);
    const char *wanted = rbi_tree_text(s->tree, &s->tree->nodes[node]);
    const uint32_t count = count_of(list, base);
    char *array = base + list->key.offset;
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(array + i * list->item_size + id->key.offset, wanted) == 0) {
            return array + i * list->item_size;
        }
    }
    if (count == list->key.max) {
        return NULL;
    }
    char *place = array + count * list->item_size;
    memset(place, 0, list->item_size);
    rbi_tree_defaults(&list->fields[0], place);
    set_count(list, base, count + 1);
    return place;
}

/** Where an item of the list around it goes; NULL: no room. */
static char *item_place(struct store *s, uint32_t idx, uint32_t depth)
{
    const struct rbi_tree_field *list = s->lists[depth - 1]->field;
    char *base = s->bases[depth - 1];
    if (list->flags & RBI_TREE_KEYED) {
        return find_keyed(s, list, base, idx);
    }
    const uint32_t place = s->items[depth - 1];
    if (place == list->key.max) {
        return NULL;
    }
    s->items[depth - 1]++;
    set_count(list, base, place + 1);
    return base + list->key.offset + place * list->item_size;
}

static void
begin_list(struct store *s, const struct rbi_tree_node *node, uint32_t depth, char *base)
{
    const struct rbi_tree_field *list = node->field;
    s->bases[depth] = base;
    s->lists[depth] = node;
    s->items[depth] = 0;
    if (list->flags & RBI_TREE_BITS) {
        memset(base + list->key.offset, 0, sizeof(uint32_t));
    } else if (!(list->flags & RBI_TREE_KEYED)) {
        memset(base + list->key.offset, 0, list->item_size * list->key.max);
        set_count(list, base, 0);
    }
}

static void begin_map(struct store *s, uint32_t idx, uint32_t depth, char *base)
{
    const struct rbi_tree_field *map = s->tree->nodes[idx].field;
    s->bases[depth] = base;
    s->lists[depth] = NULL;
    if (map->prepare) {
        const uint32_t first = rbi_tree_find(s->tree, idx, map->fields[0].key.name);
        const struct rbi_tree_node *node = &s->tree->nodes[first];
        map->prepare(base, first ? rbi_tree_text(s->tree, node) : NULL, first ? node->length : 0);
    }
}

/** Sets bits of a member, or clears them. */
static void store_given(char *member, uint32_t bits, bool set)
{
    uint32_t given = 0;
    memcpy(&given, member, sizeof given);
    given = set ? given | bits : given & ~bits;
    memcpy(member, &given, sizeof given);
}

static void store_value(const struct store *s, const struct rbi_tree_node *node, char *base)
{
    struct rbi_config_fault fault;
    char *given = base + node->field->given_offset;
    if (node->field->flags & RBI_TREE_BIT) {
        store_given(given, node->field->given_bit,
                    strcmp(rbi_tree_text(s->tree, node), node->field->key.choices[1]) == 0);
        return;
    }
    /* It was checked when it was read. */
    RBI_ASSERT(rbi_config_value_parse(&node->field->key, rbi_tree_text(s->tree, node), node->length,
                                      base, &fault) == 0);
    if (node->field->given_bit != 0) {
        store_given(given, node->field->given_bit, true);
    }
}

/** A word of a list that is a mask. */
static void store_bit(const struct store *s, const struct rbi_tree_node *node, uint32_t depth)
{
    uint32_t bit = 0;
    uint32_t mask = 0;
    char *member = s->bases[depth - 1] + s->lists[depth - 1]->field->key.offset;
    store_value(s, node, (char *)&bit);
    memcpy(&mask, member, sizeof mask);
    mask |= UINT32_C(1) << bit;
    memcpy(member, &mask, sizeof mask);
}

/** @return index of the node to go on with */
static uint32_t store_node(struct store *s, uint32_t idx)
{
    const struct rbi_tree_node *node = &s->tree->nodes[idx];
    const uint32_t depth = node->depth - s->root_depth;
    const bool item = s->lists[depth - 1] != NULL;
    if (item && (s->lists[depth - 1]->field->flags & RBI_TREE_BITS)) {
        store_bit(s, node, depth);
        return node->end;
    }
    char *base = item ? item_place(s, idx, depth) : s->bases[depth - 1];
    if (!base) {
        if (s->full) {
            s->full(s->context, s->lists[depth - 1]);
        }
        return node->end;
    }
    if (node->field->kind == RBI_TREE_VALUE) {
        store_value(s, node, base);
    } else if (node->field->kind == RBI_TREE_LIST) {
        begin_list(s, node, depth, base);
    } else {
        begin_map(s, idx, depth, item ? base : base + node->field->key.offset);
    }
    return idx + 1;
}

void rbi_tree_apply(const struct rbi_tree *tree,
                    uint32_t map,
                    void *structure,
                    rbi_tree_full_fn full,
                    void *context)
{
    struct store s = {
        .tree = tree, .root_depth = tree->nodes[map].depth, .full = full, .context = context};
    begin_map(&s, map, 0, structure);
    for (uint32_t idx = map + 1; idx < tree->nodes[map].end;) {
        idx = store_node(&s, idx);
    }
}
