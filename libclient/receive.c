/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/receive.c - messages that take more than a look: the first of a link, one that cannot
 * be mapped yet, one of a link whose messages are checked. The others are poll.c's alone.
 */
#include "libclient/internal.h"
#include "libclient/view_inline.h"

#include <errno.h>

/* Longest time that a message waits for the memory to map it. */
#define STARVE_NS (1000 * RBI_NS_PER_MS)

int rbi_view_fill(struct ringbus *bus,
                  struct rbi_end *end,
                  const struct rbi_record *record,
                  const unsigned char *pool_base,
                  uint64_t pool_bytes,
                  struct rbi_view *view)
{
    (void)bus;
    return rbi_view_fill_inline(end, record, pool_base, pool_bytes, true, view);
}

int rbi_receive_starve(struct ringbus *bus, struct rbi_end *end, int r)
{
    if (r == -EPROTO) {
        return r; /* the peer has changed what was checked before */
    }
    const uint64_t now_ns = rbi_now_coarse_ns();
    if (end->starved_ns == 0) {
        end->starved_ns = now_ns;
    } else if (now_ns - end->starved_ns > STARVE_NS) {
        rbi_end_starved(bus, end);
    }
    return RBI_LANE_EMPTY;
}

int rbi_receive_first(const struct ringbus *bus, struct rbi_end *end)
{
    if (end->phase == RBI_END_LEAVING && !end->reported_up) {
        /* We ended the link while the peer took it for READY: what it sent goes back to it. */
        end->read_out = true;
        return RBI_LANE_EMPTY;
    }
    if (!end->usable && end->phase == RBI_END_LINKED) {
        return -EPROTO; /* a message before READY, or behind one that was refused */
    }
    /* One that was parsed lies in the first mapping; without the second the next tries again. */
    end->flowing = rbi_end_open_rx(end) == 0 && end->usable && end->may_get == NULL &&
                   !end->gated && !bus->broker;
    return 0;
}

int rbi_receive_anew(struct ringbus *bus,
                     struct rbi_end *end,
                     const struct rbi_record *record,
                     struct rbi_view *view)
{
    if (end->peer_pool == NULL) {
        return -EPROTO;
    }
    const int r = rbi_end_open_pool(end);
    if (r < 0) {
        return rbi_receive_starve(bus, end, r);
    }
    end->starved_ns = 0;
    return rbi_view_fill(bus, end, record, end->peer_pool->base, end->peer_pool->bytes, view);
}

/* Untrusted record: 0 where it does not say, or cannot be read. */
static uint32_t method_of(const struct rbi_record *record)
{
    struct rbi_attributes attributes = {.method = 0};
    return (record->flags & RBI_RECORD_ATTRIBUTES) != 0 &&
                   rbi_attributes_decode(record, &attributes) == 0
               ? attributes.method
               : 0;
}

/* One that is not handled: a request is told why. 0; RBI_LANE_EMPTY; -EPROTO */
static RBI_COLD int refuse(struct ringbus *bus,
                           struct rbi_end *end,
                           const struct rbi_record *record,
                           const struct rbi_gate_verdict *why)
{
    struct rbi_view view;
    const struct rbi_peer_pool *pool = end->peer_pool;
    const int r =
        pool == NULL || rbi_view_fill_inline(end, record, pool->base, pool->bytes, true, &view) != 0
            ? rbi_receive_anew(bus, end, record, &view)
            : 0;
    if (r != 0) {
        return r;
    }
    rbi_count(bus,
              why->error == RINGBUS_E_DENIED    ? RBI_COUNTER_denied
              : why->error == RINGBUS_E_LIMITED ? RBI_COUNTER_limited_in
                                                : RBI_COUNTER_shed,
              1);
    if (view.message.reply_to.id != 0) {
        /* Without room its own clock tells the sender. */
        (void)rbi_reply_refused(bus, &view.message.reply_to, why->error, why->retry_ms);
    } else if (why->error == RINGBUS_E_DENIED) {
        rbi_refused_note(bus, end, RINGBUS_E_DENIED, method_of(record));
    }
    if (view.referenced) {
        rbi_returns_put(&end->returns, (uint32_t)view.slot);
    }
    return 0;
}

int rbi_receive_check(struct ringbus *bus, struct rbi_end *end, const struct rbi_record *record)
{
    struct rbi_gate_verdict why = {.error = RINGBUS_E_DENIED};
    if (end->may_get != NULL && !rbi_rights_may_come(bus, end, record)) {
        return end->read_out ? RBI_LANE_EMPTY : refuse(bus, end, record, &why);
    }
    if (end->gated) {
        why = rbi_gate_ask(bus, end, record);
        if (why.hold || why.error != 0) {
            return why.hold ? RBI_LANE_EMPTY : refuse(bus, end, record, &why);
        }
    }
    return RBI_RECEIVE_PASSES;
}
