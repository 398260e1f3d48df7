/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_REQUEST_H
#define RINGBUS_LIBCLIENT_REQUEST_H
/*
 * libclient/request.h - requests that wait for their reply.
 * Part of internal.h: include that.
 */
#include "bus/pidf.h"

#include <ringbus/ringbus.h>

/** A request that waits. Slots are reused; the generation keeps late replies out. */
struct rbi_call {
    ringbus_reply_fn on_reply; /* NULL = free */
    void *context;
    uint64_t sent_ns;
    uint64_t deadline_ns;
    struct rbi_pidf peer;
    uint32_t generation;
    uint32_t heap_position;
    uint32_t next_free;
};

struct rbi_calls {
    struct rbi_call *slots;
    uint32_t slot_count;
    uint32_t free_head;
    uint32_t *heap; /* slot numbers, least deadline first */
    uint32_t heap_count;
};

#endif
