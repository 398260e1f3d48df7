/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_VIEW_INLINE_H
#define RINGBUS_LIBCLIENT_VIEW_INLINE_H
/* libclient/view_inline.h - a record as the application sees it, for the hot path. */
#include "bus/record.h"
#include "libclient/address.h"
#include "libclient/end.h"
#include "libclient/undelivered.h"

#include <errno.h>

/* Flags of a record that are those of its message, bit by bit. */
#define RBI_SAME_FLAGS (RBI_RECORD_KEY | RBI_RECORD_ANY | RBI_RECORD_IDEMPOTENT | RBI_RECORD_AGAIN)
_Static_assert(RBI_RECORD_KEY == RINGBUS_MESSAGE_KEY && RBI_RECORD_ANY == RINGBUS_MESSAGE_ANY &&
                   RBI_RECORD_IDEMPOTENT == RINGBUS_MESSAGE_IDEMPOTENT &&
                   RBI_RECORD_AGAIN == RINGBUS_MESSAGE_REDELIVERED,
               "same flags");

static inline void rbi_view_fill_parts(const struct rbi_record *record, struct rbi_view *view)
{
    const unsigned char *data = view->message.data;
    for (unsigned i = 0; i < record->part_count; i++) {
        view->parts[i].data = data;
        view->parts[i].size = record->part_sizes[i];
        data += record->part_sizes[i];
    }
}

/** @param rare  a constant: whether it may be a reference. 0; -EPROTO */
static inline int rbi_view_fill_inline(struct rbi_end *end,
                                       const struct rbi_record *record,
                                       const unsigned char *pool_base,
                                       uint64_t pool_bytes,
                                       bool rare,
                                       struct rbi_view *view)
{
    struct ringbus_message *message = &view->message;
    view->end = end;
    view->kept = false;
    view->own = false;
    view->referenced = rare && (record->flags & RBI_RECORD_REF) != 0;
    if (view->referenced) {
        /* Untrusted: the payload must lie within the pool that we mapped, as aligned as a chunk. */
        /* NOLINTNEXTLINE(clang-analyzer-core.*): RBI_RECORD_REF is set with ref only */
        if (record->ref.size > pool_bytes || record->ref.offset > pool_bytes - record->ref.size ||
            record->ref.offset % RBI_LINE != 0) {
            return -EPROTO;
        }
        view->slot = record->ref.slot;
        message->data = pool_base + record->ref.offset;
    } else {
        message->data = record->payload;
    }
    message->from = rbi_addr(&end->peer);
    message->from_path = end->path;
    message->kind = record->kind == RBI_RECORD_ONEWAY ? RINGBUS_KIND_ONEWAY
                    : record->kind == RBI_RECORD_REQ  ? RINGBUS_KIND_REQUEST
                                                      : RINGBUS_KIND_REPLY;
    message->flags =
        (record->flags & RBI_SAME_FLAGS) |
        ((record->flags & RBI_RECORD_BROADCAST) != 0 ? RINGBUS_MESSAGE_BROADCAST : 0U) |
        (view->referenced ? RINGBUS_MESSAGE_REFERENCED : 0U);
    message->key = record->key;
    message->size = record->payload_size;
    message->part_count = record->part_count;
    message->parts = view->parts;
    message->reply_to.peer = message->from;
    message->reply_to.id = record->kind == RBI_RECORD_REQ ? record->tag : 0;
    message->attributes = NULL;
    rbi_view_fill_parts(record, view);
    return 0;
}

#endif
