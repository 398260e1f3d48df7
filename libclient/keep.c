/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/keep.c - messages that outlive their callback. */
#include "libclient/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * opaque[0] = the peer's pool mapping (referenced payloads) or 0
 * opaque[1] = slot to give back
 * opaque[2], opaque[3] = life of the peer and of this handle
 */

static int keep_reference(struct ringbus *bus, struct rbi_view *view, struct ringbus_kept *kept)
{
    struct rbi_peer_pool *pool = view->end->peer_pool;
    kept->data = view->message.data;
    if (pool != NULL) {
        pool->refs++; /* the mapping stays, even when the sender and its link are gone */
    }
    memcpy(&kept->opaque[0], &pool, sizeof pool);
    kept->opaque[1] = view->slot + 1;
    kept->opaque[2] = view->end->link_life;
    (void)bus;
    view->kept = true;
    view->end->kept++;
    return 0;
}

int ringbus_keep(struct ringbus *bus,
                 const struct ringbus_message *message,
                 struct ringbus_kept **out)
{
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    struct rbi_view *view = bus->view; /* the one whose callback runs */
    if (out == NULL || view == NULL || message != &view->message) {
        r = rbi_fail(bus, RINGBUS_E_ARGUMENT,
                     "only the message of the running callback can be kept");
        rbi_leave(bus);
        return r;
    }
    const bool reference = view->referenced && !view->kept && !view->own;
    struct ringbus_kept *kept = calloc(1, sizeof *kept + (reference ? 0 : message->size + 16));
    if (kept == NULL) {
        r = rbi_fail_errno(bus, -ENOMEM, "keeping a message");
        rbi_leave(bus);
        return r;
    }
    kept->size = message->size;
    kept->from = message->from;
    kept->key = message->key;
    kept->opaque[3] = bus->life;
    if (reference) {
        r = keep_reference(bus, view, kept);
    } else {
        unsigned char *copy = (unsigned char *)(kept + 1);
        if (message->size > 0) {
            memcpy(copy, message->data, message->size);
        }
        kept->data = copy;
    }
    *out = kept;
    rbi_leave(bus);
    return r;
}

int ringbus_release(struct ringbus *bus, struct ringbus_kept *kept)
{
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    if (kept == NULL) {
        rbi_leave(bus);
        return 0;
    }
    if (kept->opaque[3] != bus->life) {
        r = rbi_fail(bus, RINGBUS_E_ARGUMENT, "the message was kept by another handle");
        rbi_leave(bus);
        return r;
    }
    if (kept->opaque[1] != 0) {
        struct rbi_end *end = rbi_end_find(bus, kept->from.cluster, kept->from.instance);
        /* A later life of the peer knows nothing of this slot. */
        if (end != NULL && end->link_life == kept->opaque[2]) {
            end->kept--;
            rbi_returns_put(&end->returns, (uint32_t)(kept->opaque[1] - 1));
            rbi_poll_release(bus, end); /* its sender may wait for it */
        } else {
            rbi_residue_released(bus, kept->opaque[2]);
        }
        struct rbi_peer_pool *pool = NULL;
        memcpy(&pool, &kept->opaque[0], sizeof pool);
        rbi_peer_pool_unref(pool);
    }
    free(kept);
    rbi_leave(bus);
    return 0;
}
