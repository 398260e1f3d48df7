/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_REQUEST_H
#define RINGBUS_LIBCLIENT_REQUEST_H
/*
 * libclient/request.h - requests that wait for their reply.
 * Part of internal.h: include that.
 */
#include "bus/pidf.h"

#include <ringbus/ringbus.h>

struct rbi_inflight;

/** A request that waits. Slots are reused; the generation keeps late replies out. */
struct rbi_call {
    ringbus_reply_fn on_reply; /* NULL = free */
    void *context;
    uint64_t sent_ns;
    uint64_t deadline_ns;
    struct rbi_pidf peer;
    uint64_t link_life;            /* of the link that it went over */
    struct rbi_inflight *inflight; /* where it counts; NULL: nowhere */
    uint64_t generation;           /* 1 to RBI_CALL_GENERATION_MAX */
    uint32_t heap_position;
    uint32_t next_free;
    uint32_t outcome; /* slot of the instance in which its end is counted */
    uint8_t held;     /* enum rbi_call_held */
    uint8_t probe;    /* number of the probe of a shielded instance that it is, or 0 (probe.h) */
};

#define RBI_CALL_GENERATION_MAX ((UINT64_C(1) << 44) - 1)

/** Its receiver is gone, and it waits for another (redeliver.c). */
enum rbi_call_held {
    RBI_CALL_SENT = 0,
    RBI_CALL_HELD_UNSEEN = 1,
    RBI_CALL_HELD_SEEN = 2, /* maybe */
};

struct rbi_calls {
    struct rbi_call *slots;
    uint32_t slot_count;
    uint32_t free_head;
    uint32_t *heap; /* slot numbers, least deadline first */
    uint32_t heap_count;
};

#endif
