/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/config_tree_read.c - the events of a YAML reader to a tree. A node is made for every key
 * that is known and for every item of a list; what is wrong with its value is listed, and the
 * tree is no good then, but goes on so that all errors of a text are found.
 */
#include "bus/config_tree.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rbi_tree_frame *top(struct rbi_tree_builder *b)
{
    return &b->frames[b->depth - 1];
}

static const struct rbi_tree_field *field_of(const struct rbi_tree_builder *b, uint32_t node)
{
    return b->tree->nodes[node].field;
}

/** An error about a node; formatted only while there is room, since names are searched for. */
static RBI_PRINTF(4, 5) void complain(struct rbi_tree_builder *b,
                                      uint32_t node,
                                      struct rbi_config_place place,
                                      const char *format,
                                      ...)
{
    char where[RBI_TREE_NAME_MAX];
    char text[RBI_TREE_NAME_MAX];
    if (!rbi_config_error_wanted(b->errors)) {
        b->errors->count++;
        return;
    }
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)rbi_tree_name(b->tree, node, where, sizeof where);
    rbi_config_error_add(b->errors, place, "%s%s%s", where, where[0] ? ": " : "", text);
}

/* ---- nodes ------------------------------------------------------------------------------ */

static bool grow(void **array, uint32_t *capacity, uint64_t needed, size_t size)
{
    if (needed <= *capacity) {
        return true;
    }
    const uint32_t larger = (uint32_t)rbi_pow2_ceil(rbi_max_u64(needed, 64));
    void *moved = realloc(*array, larger * size);
    if (moved) {
        *array = moved;
        *capacity = larger;
    }
    return moved != NULL;
}

/** Puts a text behind the others. @return its offset */
static uint32_t keep_text(struct rbi_tree_builder *b, const char *text, size_t length)
{
    struct rbi_tree *tree = b->tree;
    void *texts = tree->texts;
    if (!grow(&texts, &tree->text_capacity, (uint64_t)tree->text_size + length + 1, 1)) {
        b->no_memory = true;
        return 0;
    }
    tree->texts = texts;
    const uint32_t at = tree->text_size;
    memcpy(tree->texts + at, text, length);
    tree->texts[at + length] = '\0';
    tree->text_size += (uint32_t)length + 1;
    return at;
}

/** Adds a node to the map or list at hand. @return its index, 0 without memory */
static uint32_t add_node(struct rbi_tree_builder *b,
                         const struct rbi_tree_field *field,
                         struct rbi_config_place place)
{
    struct rbi_tree *tree = b->tree;
    void *nodes = tree->nodes;
    if (!grow(&nodes, &tree->capacity, (uint64_t)tree->count + 1, sizeof *tree->nodes)) {
        b->no_memory = true;
        return 0;
    }
    tree->nodes = nodes;
    const uint32_t idx = tree->count++;
    tree->nodes[idx] = (struct rbi_tree_node){
        .field = field, .place = place, .depth = b->depth, .end = tree->count};
    for (unsigned i = 0; i < b->depth; i++) {
        tree->nodes[b->frames[i].node].end = tree->count;
    }
    return idx;
}

static void push(struct rbi_tree_builder *b, uint32_t node)
{
    RBI_ASSERT(b->depth < RBI_ARRAY_SIZE(b->frames));
    b->frames[b->depth++] = (struct rbi_tree_frame){.node = node};
}

int rbi_tree_builder_init(struct rbi_tree_builder *builder,
                          struct rbi_tree *tree,
                          const struct rbi_tree_field *root,
                          struct rbi_config_errors *errors)
{
    const struct rbi_config_place whole = {0, 0};
    *builder = (struct rbi_tree_builder){.tree = tree, .errors = errors};
    *tree = RBI_TREE_NULL;
    (void)add_node(builder, root, whole);
    if (builder->no_memory) {
        return -ENOMEM;
    }
    push(builder, 0);
    return 0;
}

/* ---- keys ------------------------------------------------------------------------------- */

static const struct rbi_tree_field *
find_field(const struct rbi_tree_field *map, const char *name, size_t length)
{
    for (unsigned i = 0; i < map->field_count; i++) {
        const char *known = map->fields[i].key.name;
        if (strlen(known) == length && memcmp(known, name, length) == 0) {
            return &map->fields[i];
        }
    }
    return NULL;
}

static const char *nearest(const struct rbi_tree_field *map, const char *name, size_t length)
{
    const char *near = NULL;
    unsigned least = UINT32_MAX;
    for (unsigned i = 0; i < map->field_count; i++) {
        const char *known = map->fields[i].key.name;
        const unsigned d = rbi_config_distance(known, strlen(known), name, length);
        if (d < least) {
            least = d;
            near = known;
        }
    }
    return near;
}

static void unknown_key(struct rbi_tree_builder *b,
                        struct rbi_config_place place,
                        const char *name,
                        size_t length)
{
    char found[RBI_CONFIG_QUOTE_MAX];
    const char *near = rbi_config_error_wanted(b->errors)
                           ? nearest(field_of(b, top(b)->node), name, length)
                           : NULL;
    complain(b, top(b)->node, place, "unknown key %s%s%s%s",
             rbi_config_quote(name, length, found, sizeof found), near ? "; did you mean " : "",
             near ? near : "", near ? "?" : "");
}

/** Node of a key that stands in the map at hand already, or 0. Names are looked at in the end. */
static uint32_t
find_given(const struct rbi_tree_builder *b, uint32_t map, const struct rbi_tree_field *field)
{
    const struct rbi_tree *tree = b->tree;
    uint32_t at = field_of(b, map)->kind == RBI_TREE_NAMES ? 0 : rbi_tree_first(tree, map);
    while (at && tree->nodes[at].field != field) {
        at = rbi_tree_next(tree, map, at);
    }
    return at;
}

static void
complain_twice(struct rbi_tree_builder *b, uint32_t given, struct rbi_config_place place)
{
    complain(b, given, place, "duplicate key, given in line %u and again in line %u",
             b->tree->nodes[given].place.line, place.line);
}

/** The value or name @p text is checked, and not kept. @return whether it may stand */
static bool check_text(struct rbi_tree_builder *b,
                       uint32_t node,
                       const struct rbi_config_key *taken,
                       struct rbi_config_place place,
                       const char *text,
                       size_t length)
{
    struct rbi_config_fault fault;
    char room[RBI_CONFIG_MEMBER_MAX];
    char found[RBI_CONFIG_QUOTE_MAX];
    struct rbi_config_key key = *taken;
    key.offset = 0;
    if (rbi_config_value_parse(&key, text, length, room, &fault) == 0) {
        return true;
    }
    complain(b, node, place, "expected %s, found %s%s%s", fault.expected,
             rbi_config_quote(text, length, found, sizeof found), fault.hint[0] ? "; " : "",
             fault.hint);
    return false;
}

/** Whether a free name may stand in the map of names at hand. */
static bool may_enter(struct rbi_tree_builder *b,
                      const struct rbi_tree_field *names,
                      struct rbi_config_place place,
                      const char *name,
                      size_t length)
{
    if (top(b)->items++ >= names->key.max) {
        if (top(b)->items == names->key.max + 1) {
            complain(b, top(b)->node, place, "expected at most %llu names, found more",
                     (unsigned long long)names->key.max);
        }
        return false;
    }
    return check_text(b, top(b)->node, &names->fields[0].key, place, name, length);
}

static void
take_key(struct rbi_tree_builder *b, struct rbi_config_place place, const char *name, size_t length)
{
    struct rbi_tree_frame *frame = top(b);
    const struct rbi_tree_field *map = field_of(b, frame->node);
    const bool names = map->kind == RBI_TREE_NAMES;
    const struct rbi_tree_field *field = names ? map->fields : find_field(map, name, length);
    frame->value_next = true;
    frame->known = 0;
    if (!field) {
        unknown_key(b, place, name, length);
        return;
    }
    if (names && !may_enter(b, map, place, name, length)) {
        return;
    }
    const uint32_t given = find_given(b, frame->node, field);
    if (given != 0) {
        complain_twice(b, given, place);
        return;
    }
    frame->known = add_node(b, field, place);
    if (names && frame->known != 0) {
        const uint32_t text = keep_text(b, name, length);
        b->tree->nodes[frame->known].text = text;
        b->tree->nodes[frame->known].length = (uint32_t)length;
    }
}

bool rbi_tree_begin(struct rbi_tree_builder *builder,
                    struct rbi_config_place place,
                    const char *name,
                    size_t length)
{
    if (!find_field(field_of(builder, 0), name, length)) {
        return false;
    }
    take_key(builder, place, name, length);
    return true;
}

const char *
rbi_tree_nearest(const struct rbi_tree_builder *builder, const char *name, size_t length)
{
    return nearest(field_of(builder, 0), name, length);
}

bool rbi_tree_done(const struct rbi_tree_builder *builder)
{
    return builder->depth == 1 && builder->skip == 0 && !builder->frames[0].value_next;
}

/* ---- values ----------------------------------------------------------------------------- */

/** Node that the value which comes now belongs to; 0: it is passed over. */
static uint32_t value_node(struct rbi_tree_builder *b, struct rbi_config_place place)
{
    struct rbi_tree_frame *frame = top(b);
    const struct rbi_tree_field *around = field_of(b, frame->node);
    if (around->kind != RBI_TREE_LIST) {
        frame->value_next = false;
        return frame->known;
    }
    if (frame->items == around->key.max) {
        complain(b, frame->node, place, "expected at most %llu items, found more",
                 (unsigned long long)around->key.max);
    }
    frame->items++;
    return frame->items > around->key.max ? 0 : add_node(b, around->fields, place);
}

/** Says what a node takes. */
static void describe(const struct rbi_tree_field *field, struct rbi_config_fault *fault)
{
    fault->hint[0] = '\0';
    switch (field->kind) {
    case RBI_TREE_VALUE:
        rbi_config_value_describe(&field->key, fault);
        break;
    case RBI_TREE_LIST:
        (void)snprintf(fault->expected, sizeof fault->expected, "a list of at most %llu items",
                       (unsigned long long)field->key.max);
        break;
    case RBI_TREE_MAP:
    case RBI_TREE_NAMES:
        (void)snprintf(
            fault->expected, sizeof fault->expected, "a map of %s%s%s",
            field->kind == RBI_TREE_NAMES ? "names" : field->fields[0].key.name,
            field->kind == RBI_TREE_MAP && field->field_count > 1 ? ", " : "",
            field->kind == RBI_TREE_MAP && field->field_count > 1 ? field->fields[1].key.name : "");
        break;
    }
}

static void odd_value(struct rbi_tree_builder *b,
                      uint32_t node,
                      struct rbi_config_place place,
                      const char *found)
{
    struct rbi_config_fault fault;
    describe(field_of(b, node), &fault);
    complain(b, node, place, "expected %s, found %s", fault.expected, found);
}

static void take_value(struct rbi_tree_builder *b,
                       uint32_t node,
                       struct rbi_config_place place,
                       const char *text,
                       size_t length)
{
    if (check_text(b, node, &field_of(b, node)->key, place, text, length)) {
        const uint32_t at = keep_text(b, text, length);
        b->tree->nodes[node].text = at;
        b->tree->nodes[node].length = (uint32_t)length;
        b->tree->nodes[node].place = place;
    }
}

static bool at_key(struct rbi_tree_builder *b)
{
    const enum rbi_tree_kind kind = field_of(b, top(b)->node)->kind;
    return kind != RBI_TREE_LIST && !top(b)->value_next;
}

/** A key that is none: its value is passed over. */
static void odd_key(struct rbi_tree_builder *b, struct rbi_config_place place, const char *found)
{
    rbi_config_error_add(b->errors, place, "expected a key, found %s", found);
    top(b)->known = 0;
    top(b)->value_next = true;
}

void rbi_tree_scalar(struct rbi_tree_builder *builder,
                     struct rbi_config_place place,
                     const char *text,
                     size_t length,
                     bool plain)
{
    struct rbi_tree_builder *b = builder;
    if (b->skip > 0 || b->no_memory) {
        return;
    }
    if (at_key(b)) {
        if (plain && length == 2 && memcmp(text, "<<", 2) == 0) {
            odd_key(b, place, "<<; merge keys are not taken");
        } else {
            take_key(b, place, text, length);
        }
        return;
    }
    const uint32_t node = value_node(b, place);
    if (node == 0) {
        return;
    }
    if (plain && (length == 0 || (length == 1 && text[0] == '~'))) {
        odd_value(b, node, place, "nothing");
    } else if (field_of(b, node)->kind != RBI_TREE_VALUE) {
        odd_value(b, node, place, "a scalar");
    } else {
        take_value(b, node, place, text, length);
    }
}

void rbi_tree_start(struct rbi_tree_builder *builder, struct rbi_config_place place, bool map)
{
    struct rbi_tree_builder *b = builder;
    if (b->skip > 0 || b->no_memory) {
        b->skip++;
        return;
    }
    if (at_key(b)) {
        odd_key(b, place, map ? "a map" : "a list");
        b->skip++;
        return;
    }
    const uint32_t node = value_node(b, place);
    const enum rbi_tree_kind kind = node ? field_of(b, node)->kind : RBI_TREE_VALUE;
    if (node != 0 && kind != RBI_TREE_VALUE && (kind == RBI_TREE_LIST) != map) {
        push(b, node);
        return;
    }
    if (node != 0) {
        odd_value(b, node, place, map ? "a map" : "a list");
    }
    b->skip++;
}

/* ---- ends of maps and lists ------------------------------------------------------------- */

static void check_required(struct rbi_tree_builder *b, uint32_t map)
{
    const struct rbi_tree_field *field = field_of(b, map);
    for (unsigned i = 0; field->kind == RBI_TREE_MAP && i < field->field_count; i++) {
        const char *name = field->fields[i].key.name;
        if ((field->fields[i].flags & RBI_TREE_REQUIRED) && !rbi_tree_find(b->tree, map, name)) {
            complain(b, map, b->tree->nodes[map].place, "%s is missing", name);
        }
    }
}

/** Text of the id of an item; "" when that is missing, which has been reported. */
static const char *id_of(const struct rbi_tree_builder *b, uint32_t item)
{
    const uint32_t id = rbi_tree_find(b->tree, item, field_of(b, item)->fields[0].key.name);
    return id ? rbi_tree_text(b->tree, &b->tree->nodes[id]) : "";
}

/** The same id twice in one list is as a key given twice. */
static void check_ids(struct rbi_tree_builder *b, uint32_t list)
{
    const struct rbi_tree *tree = b->tree;
    char found[RBI_CONFIG_QUOTE_MAX];
    for (uint32_t at = rbi_tree_first(tree, list); at; at = rbi_tree_next(tree, list, at)) {
        const char *id = id_of(b, at);
        for (uint32_t earlier = list + 1; earlier != at; earlier = tree->nodes[earlier].end) {
            if (id[0] != '\0' && strcmp(id, id_of(b, earlier)) == 0) {
                complain(b, at, tree->nodes[at].place, "id %s is taken, in line %u",
                         rbi_config_quote(id, strlen(id), found, sizeof found),
                         tree->nodes[earlier].place.line);
                break;
            }
        }
    }
}

/** The same name twice. There may be thousands, so they are sorted for that. */
static void check_names(struct rbi_tree_builder *b, uint32_t map)
{
    uint32_t count = 0;
    struct rbi_tree_name *names = rbi_tree_names(b->tree, map, &count);
    b->no_memory = b->no_memory || !names;
    for (uint32_t i = 1; names && i < count; i++) {
        if (strcmp(names[i - 1].text, names[i].text) == 0) {
            complain_twice(b, names[i - 1].node, b->tree->nodes[names[i].node].place);
        }
    }
    free(names);
}

void rbi_tree_end(struct rbi_tree_builder *builder)
{
    struct rbi_tree_builder *b = builder;
    if (b->skip > 0) {
        b->skip--;
        return;
    }
    const uint32_t node = top(b)->node;
    b->depth--;
    if (field_of(b, node)->kind == RBI_TREE_NAMES) {
        check_names(b, node);
    } else if (field_of(b, node)->flags & RBI_TREE_KEYED) {
        check_ids(b, node);
    } else {
        check_required(b, node);
    }
}

void rbi_tree_alias(struct rbi_tree_builder *builder)
{
    struct rbi_tree_builder *b = builder;
    if (b->skip > 0 || b->no_memory) {
        return;
    }
    struct rbi_tree_frame *frame = top(b);
    if (field_of(b, frame->node)->kind != RBI_TREE_LIST) {
        frame->value_next = !frame->value_next;
        frame->known = 0;
    }
}
