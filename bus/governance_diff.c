/* SPDX-License-Identifier: Apache-2.0 */
/* bus/governance_diff.c - trees to sorted lists of names with values. */
#include "bus/governance_diff.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct line {
    char *name;
    const char *value; /* lent by the tree */
    uint32_t order;    /* of lines with the same name */
};

struct lines {
    struct line *items;
    uint32_t count;
};

static void lines_free(struct lines *lines)
{
    for (uint32_t i = 0; i < lines->count; i++) {
        free(lines->items[i].name);
    }
    free(lines->items);
    *lines = (struct lines){.items = NULL};
}

static int compare(const void *a, const void *b)
{
    const struct line *left = a;
    const struct line *right = b;
    const int order = strcmp(left->name, right->name);
    return order ? order : (left->order > right->order) - (left->order < right->order);
}

/** What tells an item from the others of its list: its pattern, its id; NULL: its place. */
static const char *item_name(const struct rbi_tree *tree, uint32_t list, uint32_t item)
{
    const struct rbi_tree_field *field = tree->nodes[item].field;
    if (field->kind != RBI_TREE_MAP ||
        (tree->nodes[list].depth != 1 && !(tree->nodes[list].field->flags & RBI_TREE_KEYED))) {
        return NULL;
    }
    const uint32_t first = rbi_tree_find(tree, item, field->fields[0].key.name);
    return first ? rbi_tree_text(tree, &tree->nodes[first]) : NULL;
}

/** A walk: for each depth the name up to there, and how many items of a list came. */
struct walk {
    const struct rbi_tree *tree;
    uint32_t around[RBI_TREE_DEPTH_MAX + 1];
    size_t length[RBI_TREE_DEPTH_MAX + 1];
    unsigned items[RBI_TREE_DEPTH_MAX + 1];
    char name[RBI_TREE_NAME_MAX];
};

/** Puts the name of a node together. */
static void name_node(struct walk *w, uint32_t idx)
{
    const struct rbi_tree_node *node = &w->tree->nodes[idx];
    const uint32_t list = w->around[node->depth - 1];
    const enum rbi_tree_kind kind = w->tree->nodes[list].field->kind;
    const size_t used = w->length[node->depth - 1];
    const size_t room = sizeof w->name - used;
    const char *item = kind == RBI_TREE_LIST ? item_name(w->tree, list, idx) : NULL;
    if (item) {
        (void)snprintf(w->name + used, room, "[%s]", item);
    } else if (kind == RBI_TREE_LIST) {
        (void)snprintf(w->name + used, room, "[%u]", w->items[node->depth - 1]);
    } else {
        (void)snprintf(w->name + used, room, "%s%s", used ? "." : "",
                       kind == RBI_TREE_NAMES ? rbi_tree_text(w->tree, node)
                                              : node->field->key.name);
    }
    w->items[node->depth - 1]++;
    w->around[node->depth] = idx;
    w->length[node->depth] = strlen(w->name);
    w->items[node->depth] = 0;
}

/** One line for each value, and for what is empty. */
static int lines_make(const struct rbi_governance *from, struct lines *lines)
{
    struct walk w = {.tree = &from->tree};
    *lines = (struct lines){.items = calloc(from->tree.count + 1, sizeof *lines->items)};
    if (!lines->items) {
        return -ENOMEM;
    }
    for (uint32_t idx = 1; idx < from->tree.count; idx++) {
        const struct rbi_tree_node *node = &from->tree.nodes[idx];
        name_node(&w, idx);
        if (node->field->kind != RBI_TREE_VALUE && node->end != idx + 1) {
            continue;
        }
        struct line *line = &lines->items[lines->count];
        line->name = malloc(w.length[node->depth] + 1);
        if (!line->name) {
            lines_free(lines);
            return -ENOMEM;
        }
        memcpy(line->name, w.name, w.length[node->depth] + 1);
        line->value =
            node->field->kind == RBI_TREE_VALUE ? rbi_tree_text(&from->tree, node) : "empty";
        line->order = lines->count++;
    }
    qsort(lines->items, lines->count, sizeof *lines->items, compare);
    return 0;
}

static int lines_report(const struct lines *old,
                        const struct lines *next,
                        rbi_governance_diff_fn report,
                        void *context)
{
    uint32_t i = 0;
    uint32_t j = 0;
    int count = 0;
    while (i < old->count || j < next->count) {
        const int order = i == old->count    ? 1
                          : j == next->count ? -1
                                             : strcmp(old->items[i].name, next->items[j].name);
        const struct line *before = order <= 0 ? &old->items[i++] : NULL;
        const struct line *after = order >= 0 ? &next->items[j++] : NULL;
        if (order != 0 || strcmp(before->value, after->value) != 0) {
            report(context, order <= 0 ? before->name : after->name,
                   order <= 0 ? before->value : NULL, order >= 0 ? after->value : NULL);
            count++;
        }
    }
    return count;
}

int rbi_governance_diff(const struct rbi_governance *old,
                        const struct rbi_governance *next,
                        rbi_governance_diff_fn report,
                        void *context)
{
    struct lines before;
    struct lines after;
    int result = lines_make(old, &before);
    if (result != 0) {
        return result;
    }
    result = lines_make(next, &after);
    if (result == 0) {
        result = lines_report(&before, &after, report, context);
        lines_free(&after);
    }
    lines_free(&before);
    return result;
}
