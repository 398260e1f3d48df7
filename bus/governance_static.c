/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/governance_static.h"

#include "bus/glob.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/** An item of a list with ids. */
struct item {
    const struct rbi_tree_field *list;
    const char *id;    /* terminated */
    const char *match; /* pattern of the clusters that it is for; NULL: of rights */
    size_t match_length;
    uint32_t node;
};

struct items {
    struct item *all;
    uint32_t count;
};

static bool is_keyed(const struct rbi_tree_field *field)
{
    return field->kind == RBI_TREE_LIST && (field->flags & RBI_TREE_KEYED) != 0;
}

/** Items of one list. */
static void collect(const struct rbi_tree *tree,
                    uint32_t list,
                    const struct rbi_tree_node *match,
                    struct items *out)
{
    for (uint32_t at = rbi_tree_first(tree, list); at; at = rbi_tree_next(tree, list, at)) {
        const uint32_t id = rbi_tree_find(tree, at, "id");
        out->all[out->count++] = (struct item){.list = tree->nodes[list].field,
                                               .id = rbi_tree_text(tree, &tree->nodes[id]),
                                               .match = match ? rbi_tree_text(tree, match) : NULL,
                                               .match_length = match ? match->length : 0,
                                               .node = at};
    }
}

/** All of a text, in its order. @retval 0; -ENOMEM */
static int items_of(const struct rbi_tree *tree, struct items *out)
{
    const struct rbi_tree_node *match = NULL;
    const uint32_t clusters = tree->count > 0 ? rbi_tree_find(tree, 0, "clusters") : 0;
    *out = (struct items){.all = calloc((size_t)tree->count + 1, sizeof(*out->all))};
    if (!out->all) {
        return -ENOMEM;
    }
    for (uint32_t at = 1; at < tree->count; at++) {
        const bool of_cluster = clusters && at > clusters && at < tree->nodes[clusters].end;
        if (of_cluster && tree->nodes[at].depth == tree->nodes[clusters].depth + 1) {
            match = &tree->nodes[rbi_tree_find(tree, at, "match")];
        }
        if (is_keyed(tree->nodes[at].field)) {
            collect(tree, at, of_cluster ? match : NULL, out);
        }
    }
    return 0;
}

static int item_order(const void *a, const void *b)
{
    const struct item *left = a;
    const struct item *right = b;
    const int by_id = strcmp(left->id, right->id);
    return by_id != 0 ? by_id : (left->node > right->node) - (left->node < right->node);
}

/** The first of the sorted items with that id, or their count. */
static uint32_t items_find(const struct items *items, const char *id)
{
    uint32_t low = 0;
    uint32_t high = items->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (strcmp(items->all[middle].id, id) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/** Whether two items are word for word the same. */
static bool
says_the_same(const struct rbi_tree *a, uint32_t a_at, const struct rbi_tree *b, uint32_t b_at)
{
    const uint32_t count = a->nodes[a_at].end - a_at;
    bool same = count == b->nodes[b_at].end - b_at;
    for (uint32_t i = 0; same && i < count; i++) {
        const struct rbi_tree_node *left = &a->nodes[a_at + i];
        const struct rbi_tree_node *right = &b->nodes[b_at + i];
        same = left->field == right->field && left->length == right->length &&
               memcmp(rbi_tree_text(a, left), rbi_tree_text(b, right), left->length) == 0;
    }
    return same;
}

/** Whether one push changes one item of the file. */
static bool clashes(const struct rbi_tree *fixed_tree,
                    const struct item *fixed,
                    const struct rbi_tree *pushed_tree,
                    const struct item *pushed)
{
    return fixed->list == pushed->list &&
           (!fixed->match || rbi_glob_meet(fixed->match, fixed->match_length, pushed->match,
                                           pushed->match_length)) &&
           !says_the_same(fixed_tree, fixed->node, pushed_tree, pushed->node);
}

static bool find_clash(const struct rbi_tree *fixed_tree,
                       const struct items *fixed,
                       const struct rbi_tree *pushed_tree,
                       const struct item *pushed,
                       struct rbi_governance_clash *out)
{
    for (uint32_t i = items_find(fixed, pushed->id);
         i < fixed->count && strcmp(fixed->all[i].id, pushed->id) == 0; i++) {
        if (clashes(fixed_tree, &fixed->all[i], pushed_tree, pushed)) {
            *out =
                (struct rbi_governance_clash){.pushed = pushed_tree->nodes[pushed->node].place,
                                              .fixed = fixed_tree->nodes[fixed->all[i].node].place,
                                              .list = pushed->list->key.name};
            memcpy(out->id, pushed->id, strnlen(pushed->id, RBI_LABEL_MAX));
            return true;
        }
    }
    return false;
}

int rbi_governance_clash(const struct rbi_governance *fixed,
                         const struct rbi_governance *pushed,
                         struct rbi_governance_clash *out)
{
    struct items below = {.all = NULL};
    struct items above = {.all = NULL};
    int result = items_of(&fixed->tree, &below);
    result = result == 0 ? items_of(&pushed->tree, &above) : result;
    if (result == 0) {
        qsort(below.all, below.count, sizeof(*below.all), item_order);
    }
    for (uint32_t i = 0; result == 0 && i < above.count; i++) {
        result = find_clash(&fixed->tree, &below, &pushed->tree, &above.all[i], out) ? 1 : 0;
    }
    free(below.all);
    free(above.all);
    return result;
}
