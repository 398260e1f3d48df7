/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/node_own.c - ephemeral nodes of this endpoint. Their daemon ends them with it; a new
 * daemon knows them from the one before, and waits for us to say that we are there.
 */
#include "libclient/internal.h"

#include <stdlib.h>
#include <string.h>

static struct rbi_node_own **find(struct rbi_nodes *nodes, const struct rbi_text *path)
{
    struct rbi_node_own **link = &nodes->own;
    while (*link != NULL && ((*link)->path.length != path->length ||
                             memcmp((*link)->path.bytes, path->bytes, path->length) != 0)) {
        link = &(*link)->next;
    }
    return link;
}

struct rbi_node_own *rbi_node_own_find(struct ringbus *bus, const struct rbi_text *path)
{
    return *find(&bus->nodes, path);
}

bool rbi_node_own_drop(struct ringbus *bus, const struct rbi_text *path)
{
    struct rbi_node_own **link = find(&bus->nodes, path);
    struct rbi_node_own *own = *link;
    if (own == NULL) {
        return false;
    }
    *link = own->next;
    free(own);
    return true;
}

void rbi_nodes_returned(struct ringbus *bus, bool same_life)
{
    struct rbi_node_own *next = NULL;
    for (struct rbi_node_own *own = bus->nodes.own; own != NULL; own = next) {
        next = own->next;
        if (same_life) {
            rbi_nodes_ask_again(bus, own);
        } else {
            /* They were of the life that it took us for dead in. */
            rbi_nodes_emit_removed(bus, own->path.bytes, 0, RBI_REASON_CRASHED, 0);
            (void)rbi_node_own_drop(bus, &own->path);
        }
    }
    rbi_nodes_scan(bus);
}
