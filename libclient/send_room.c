/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/send_room.c - room for a message: what peers give back, a lane that is full or not
 * mapped yet, a pool without a chunk.
 */
#include "libclient/internal.h"

#include <errno.h>

void rbi_send_blocked(struct ringbus *bus, struct rbi_end *end, uint64_t body_bytes)
{
    end->want_bytes = rbi_max_u64(end->blocked ? end->want_bytes : 0, body_bytes);
    if (!end->blocked) {
        end->blocked = true;
        end->next_blocked = bus->blocked;
        bus->blocked = end;
    }
    rbi_wait_nudge(bus);
    rbi_core_idle_turn(bus);
}

void rbi_send_starved(struct ringbus *bus)
{
    bus->chunk_starved = true;
    bus->returned_until = bus->returned;
    rbi_wait_nudge(bus);
}

unsigned char *
rbi_send_no_room(struct ringbus *bus, struct rbi_end *end, uint64_t body_bytes, int r)
{
    unsigned char *body = NULL;
    if (r == -EMSGSIZE && rbi_lane_tx_is_shut(&end->tx)) {
        if (rbi_end_open_tx(bus, end) != 0) {
            return NULL;
        }
        r = rbi_lane_reserve(&end->tx, body_bytes, RBI_LANE_CONTROL_ROOM, &body);
    }
    if (r == RBI_LANE_OK) {
        return body;
    }
    if (r == RBI_LANE_FULL) {
        rbi_count(bus, RBI_COUNTER_full, 1);
        rbi_send_blocked(bus, end, body_bytes);
        (void)rbi_fail_fast(bus, RINGBUS_E_FULL, &end->peer, body_bytes);
    } else if (r == -EPROTO) {
        rbi_end_bad_peer(bus, end, "impossible read position");
        bus->error.code = RINGBUS_E_BAD_PEER; /* it says so only once a link */
    } else {
        rbi_count(bus, RBI_COUNTER_too_big, 1);
        (void)rbi_fail_fast(bus, RINGBUS_E_TOO_BIG, &end->peer, body_bytes);
    }
    return NULL;
}

int rbi_send_collect_from(struct ringbus *bus, struct rbi_end *end)
{
    const int r = rbi_refs_collect(&end->refs, &bus->pool);
    if (RBI_UNLIKELY(r < 0)) {
        rbi_end_bad_peer(bus, end, "impossible return of a chunk");
        return RINGBUS_E_BAD_PEER;
    }
    bus->returned += (uint64_t)r;
    if (r > 0) {
        end->gave_ns = bus->now_ns;
    }
    return 0;
}

void rbi_send_collect(struct ringbus *bus)
{
    for (unsigned i = 0; i < bus->end_count; i++) {
        if (rbi_refs_used(&bus->ends[i]->refs) > 0) {
            (void)rbi_send_collect_from(bus, bus->ends[i]);
        }
    }
}

int rbi_send_chunk(struct ringbus *bus, struct rbi_end *end, uint64_t size, struct rbi_chunk *out)
{
    /* What this peer has given back is the warmest. */
    if (end != NULL && rbi_send_collect_from(bus, end) != 0) {
        return RINGBUS_E_BAD_PEER;
    }
    int r = rbi_pool_take(&bus->pool, size, out);
    if (r == RBI_POOL_EMPTY) {
        rbi_send_collect(bus);
        r = rbi_pool_take(&bus->pool, size, out);
    }
    if (RBI_LIKELY(r == RBI_POOL_OK)) {
        return 0;
    }
    if (r == RBI_POOL_EMPTY) {
        rbi_send_starved(bus);
        rbi_count(bus, RBI_COUNTER_no_chunk, 1);
        return rbi_fail_fast(bus, RINGBUS_E_NO_CHUNK, end != NULL ? &end->peer : NULL, size);
    }
    rbi_count(bus, RBI_COUNTER_too_big, 1);
    return rbi_fail_fast(bus, RINGBUS_E_TOO_BIG, end != NULL ? &end->peer : NULL, size);
}
