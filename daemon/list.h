/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_LIST_H
#define RINGBUS_DAEMON_LIST_H
/*
 * daemon/list.h - circular doubly linked list whose nodes lie inside what they link.
 * A node that is in no list points to itself, so removing twice is harmless.
 */
#include "shm/base.h"

struct rbi_list {
    struct rbi_list *next;
    struct rbi_list *prev;
};

static inline void rbi_list_init(struct rbi_list *list)
{
    list->next = list;
    list->prev = list;
}

static inline bool rbi_list_empty(const struct rbi_list *list)
{
    return list->next == list;
}

static inline void rbi_list_push_back(struct rbi_list *list, struct rbi_list *node)
{
    node->prev = list->prev;
    node->next = list;
    list->prev->next = node;
    list->prev = node;
}

static inline void rbi_list_remove(struct rbi_list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    rbi_list_init(node);
}

#define RBI_LIST_FIRST(list, type, member) RBI_CONTAINER_OF((list)->next, type, member)

/* NOLINTBEGIN(bugprone-macro-parentheses): these are declared here */
/** Walks a list; the body may remove the node at hand, and no other. */
#define RBI_LIST_EACH(node, spare, list)                                                           \
    for (struct rbi_list *node = (list)->next, *spare = node->next; node != (list);                \
         node = spare, spare = node->next)
/* NOLINTEND(bugprone-macro-parentheses) */

#endif
