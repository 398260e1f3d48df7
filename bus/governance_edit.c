/* SPDX-License-Identifier: Apache-2.0 */
/* bus/governance_edit.c - the list of single changes, and its text. */
#include "bus/governance_edit.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rbi_edits_deinit(struct rbi_edits *edits)
{
    free(edits->items);
    *edits = RBI_EDITS_NULL;
}

/* ---- the list --------------------------------------------------------------------------- */

/** Instances stand before clusters, so that each section is written in one piece. */
static int compare(const struct rbi_edit *a, const struct rbi_edit *b)
{
    int order = (a->list[0] != '\0') - (b->list[0] != '\0');
    order = order ? order : strcmp(a->target, b->target);
    order = order ? order : strcmp(a->list, b->list);
    order = order ? order : strcmp(a->id, b->id);
    return order ? order : strcmp(a->key, b->key);
}

static uint32_t lower_bound(const struct rbi_edits *edits, const struct rbi_edit *edit)
{
    uint32_t low = 0;
    uint32_t high = edits->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (compare(&edits->items[middle], edit) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool reserve(struct rbi_edits *edits)
{
    if (edits->count < edits->capacity) {
        return true;
    }
    const uint32_t capacity = edits->capacity ? edits->capacity * 2 : 16;
    struct rbi_edit *items = realloc(edits->items, capacity * sizeof *items);
    if (!items) {
        return false;
    }
    edits->items = items;
    edits->capacity = capacity;
    return true;
}

int rbi_edits_set(struct rbi_edits *edits, const struct rbi_edit *edit)
{
    const uint32_t at = lower_bound(edits, edit);
    if (at == edits->count || compare(&edits->items[at], edit) != 0) {
        if (!reserve(edits)) {
            return -ENOMEM;
        }
        memmove(&edits->items[at + 1], &edits->items[at],
                (edits->count - at) * sizeof edits->items[0]);
        edits->count++;
    }
    edits->items[at] = *edit;
    return 0;
}

void rbi_edits_clear(struct rbi_edits *edits, const struct rbi_edit *edit)
{
    const uint32_t at = lower_bound(edits, edit);
    uint32_t end = at;
    struct rbi_edit same = *edit;
    while (end < edits->count) {
        memcpy(same.key, edit->key[0] ? edit->key : edits->items[end].key, sizeof same.key);
        if (compare(&edits->items[end], &same) != 0) {
            break;
        }
        end++;
    }
    if (end > at) {
        memmove(&edits->items[at], &edits->items[end],
                (edits->count - end) * sizeof edits->items[0]);
        edits->count -= end - at;
    }
}

/* ---- from a text ------------------------------------------------------------------------ */

static void copy(char *to, size_t size, const char *from)
{
    memset(to, 0, size); /* lists of the same are the same bytes */
    (void)snprintf(to, size, "%s", from);
}

/** The values of a map as changes of @p edit's item; but for its id. */
static int
load_map(struct rbi_edits *edits, const struct rbi_tree *tree, uint32_t map, struct rbi_edit *edit)
{
    int result = 0;
    for (uint32_t at = rbi_tree_first(tree, map); at && result == 0;
         at = rbi_tree_next(tree, map, at)) {
        const struct rbi_tree_node *node = &tree->nodes[at];
        const bool fits = node->field->kind == RBI_TREE_VALUE && node->length <= RBI_EDIT_VALUE_MAX;
        if (fits && strcmp(node->field->key.name, "id") != 0) {
            copy(edit->key, sizeof edit->key, node->field->key.name);
            copy(edit->value, sizeof edit->value, rbi_tree_text(tree, node));
            result = rbi_edits_set(edits, edit);
        }
    }
    return result;
}

/** The items of one list of an entry of "clusters". */
static int load_list(struct rbi_edits *edits,
                     const struct rbi_tree *tree,
                     uint32_t entry,
                     const char *list,
                     struct rbi_edit *edit)
{
    const uint32_t items = rbi_tree_find(tree, entry, list);
    int result = 0;
    copy(edit->list, sizeof edit->list, list);
    for (uint32_t at = items ? rbi_tree_first(tree, items) : 0; at && result == 0;
         at = rbi_tree_next(tree, items, at)) {
        const uint32_t id = rbi_tree_find(tree, at, "id");
        copy(edit->id, sizeof edit->id, rbi_tree_text(tree, &tree->nodes[id]));
        result = load_map(edits, tree, at, edit);
    }
    return result;
}

int rbi_edits_load(struct rbi_edits *edits, const struct rbi_governance *from)
{
    const struct rbi_tree *tree = &from->tree;
    *edits = RBI_EDITS_NULL;
    if (tree->count == 0) {
        return 0;
    }
    int result = 0;
    const uint32_t instances = rbi_tree_find(tree, 0, "instances");
    for (uint32_t at = instances ? rbi_tree_first(tree, instances) : 0; at && result == 0;
         at = rbi_tree_next(tree, instances, at)) {
        struct rbi_edit edit = {.list = ""};
        copy(edit.target, sizeof edit.target, rbi_tree_text(tree, &tree->nodes[at]));
        result = load_map(edits, tree, at, &edit);
    }
    const uint32_t clusters = rbi_tree_find(tree, 0, "clusters");
    for (uint32_t at = clusters ? rbi_tree_first(tree, clusters) : 0; at && result == 0;
         at = rbi_tree_next(tree, clusters, at)) {
        struct rbi_edit edit = {.list = ""};
        const uint32_t match = rbi_tree_find(tree, at, "match");
        copy(edit.target, sizeof edit.target, rbi_tree_text(tree, &tree->nodes[match]));
        result = load_list(edits, tree, at, "limits", &edit);
        result = result == 0 ? load_list(edits, tree, at, "degrade", &edit) : result;
    }
    if (result != 0) {
        rbi_edits_deinit(edits);
    }
    return result;
}

/* ---- to a text -------------------------------------------------------------------------- */

struct writer {
    char *text;
    size_t used;
    size_t room;
};

static RBI_PRINTF(2, 3) void put(struct writer *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it has just been started */
    const int n = vsnprintf(w->text + w->used, w->room - w->used, format, args);
    va_end(args);
    RBI_ASSERT(n >= 0 && (size_t)n < w->room - w->used);
    w->used += (size_t)n;
}

/** How many from @p at on have the same target, and the same list and id if @p item. */
static uint32_t group_end(const struct rbi_edits *edits, uint32_t at, bool list, bool item)
{
    const struct rbi_edit *first = &edits->items[at];
    uint32_t end = at;
    while (end < edits->count && strcmp(edits->items[end].target, first->target) == 0 &&
           (edits->items[end].list[0] != '\0') == (first->list[0] != '\0') &&
           (!list || strcmp(edits->items[end].list, first->list) == 0) &&
           (!item || strcmp(edits->items[end].id, first->id) == 0)) {
        end++;
    }
    return end;
}

static void put_values(struct writer *w, const struct rbi_edits *edits, uint32_t at, uint32_t end)
{
    for (uint32_t i = at; i < end; i++) {
        put(w, "%s%s: \"%s\"", i == at ? "" : ", ", edits->items[i].key, edits->items[i].value);
    }
}

/** Values are labels, numbers and words, so that quotes are all that they need. */
static void put_cluster(struct writer *w, const struct rbi_edits *edits, uint32_t at, uint32_t end)
{
    put(w, "  - {match: \"%s\"", edits->items[at].target);
    while (at < end) {
        const uint32_t list_end = group_end(edits, at, true, false);
        put(w, ", %s: [", edits->items[at].list);
        for (uint32_t i = at; i < list_end;) {
            const uint32_t item_end = group_end(edits, i, true, true);
            put(w, "%s{id: \"%s\", ", i == at ? "" : ", ", edits->items[i].id);
            put_values(w, edits, i, item_end);
            put(w, "}");
            i = item_end;
        }
        put(w, "]");
        at = list_end;
    }
    put(w, "}\n");
}

int rbi_edits_print(const struct rbi_edits *edits, char **text, size_t *size)
{
    /* Each value stands once, with what is around it at most as often. */
    struct writer w = {.room = 64 + edits->count * (sizeof(struct rbi_edit) + 96)};
    w.text = malloc(w.room);
    if (!w.text) {
        return -ENOMEM;
    }
    put(&w, "%s", edits->count == 0 ? "{}\n" : "");
    bool instances = false;
    bool clusters = false;
    for (uint32_t at = 0; at < edits->count;) {
        const uint32_t end = group_end(edits, at, false, false);
        if (edits->items[at].list[0] == '\0') {
            put(&w, "%s  \"%s\": {", instances ? "" : "instances:\n", edits->items[at].target);
            put_values(&w, edits, at, end);
            put(&w, "}\n");
            instances = true;
        } else {
            put(&w, "%s", clusters ? "" : "clusters:\n");
            put_cluster(&w, edits, at, end);
            clusters = true;
        }
        at = end;
    }
    *text = w.text;
    *size = w.used;
    return 0;
}
