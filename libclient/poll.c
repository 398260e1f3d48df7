/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/poll.c - receiving: looks at the lanes in turn and hands what came to the
 * callbacks. Now and then it makes a tick (tick.c), so that nothing here asks the kernel
 * while messages flow.
 */
#include "bus/record_inline.h"
#include "libclient/internal.h"
#include "libclient/view_inline.h"

#include <errno.h>
#include <string.h>

/* Longest time without a tick while polls are slow. */
#define LATE_NS ((int64_t)(5 * RBI_NS_PER_MS))
/* So many polls without work between two looks at the coarse clock: power of two. */
#define IDLE_LOOK 16U
#define POLL_MAX  1000000

/* ---- one message ---------------------------------------------------------------------------- */

static void hand_over(struct ringbus *bus, struct rbi_view *view)
{
    if (RBI_UNLIKELY(bus->on_message == NULL)) {
        if (view->message.reply_to.id != 0) {
            (void)ringbus_reply_error(bus, &view->message.reply_to,
                                      "this endpoint takes no messages");
        }
        return;
    }
    bus->in_callback = true;
    bus->view = view;
    bus->on_message(bus, &view->message, bus->user);
    bus->view = NULL;
    bus->in_callback = false;
}

static inline void dispatch(struct ringbus *bus,
                            struct rbi_end *end,
                            const struct rbi_record *record,
                            struct rbi_view *view)
{
    if (record->kind == RBI_RECORD_REP || record->kind == RBI_RECORD_ERROR) {
        bus->view = view;
        rbi_calls_reply(bus, end, record, &view->message);
        bus->view = NULL;
    } else {
        rbi_count(bus, RBI_COUNTER_received, 1);
        rbi_count(bus, RBI_COUNTER_received_bytes, view->message.size);
        hand_over(bus, view);
    }
}

/* One with attributes: while its handler runs, what that sends inherits. 0; -EPROTO */
static __attribute__((noinline)) int dispatch_attributed(struct ringbus *bus,
                                                         struct rbi_end *end,
                                                         const struct rbi_record *record,
                                                         struct rbi_view *view)
{
    const int r = rbi_attributes_view(record, view);
    if (r != 0) {
        return r;
    }
    const bool answer = record->kind == RBI_RECORD_REP || record->kind == RBI_RECORD_ERROR;
    if ((view->attributes.present & RBI_ATTRIBUTE_FIRST) != 0 &&
        rbi_seen_before(bus, end, &view->attributes) && record->kind == RBI_RECORD_ONEWAY) {
        rbi_count(bus, RBI_COUNTER_duplicates, 1);
        return 0;
    }
    if (!answer && (view->attributes.present & RBI_ATTRIBUTE_SENT) != 0) {
        rbi_gate_waited(bus, view->attributes.sent_ns);
    }
    if (!answer && rbi_attributes_expired(bus, view)) {
        rbi_count(bus, RBI_COUNTER_expired, 1);
        if (view->message.reply_to.id != 0) {
            /* Without room its own clock tells the sender. */
            (void)rbi_reply_refused(bus, &view->message.reply_to, RINGBUS_E_TIMEOUT, 0);
        }
        return 0;
    }
    bus->inherited = answer ? NULL : &view->attributes;
    dispatch(bus, end, record, view);
    bus->inherited = NULL;
    return 0;
}

/* As deliver(), of an endpoint that stands for others: its handler may leave what came. */
static __attribute__((noinline)) int
deliver_deferrable(struct ringbus *bus, struct rbi_end *end, const struct rbi_record *record)
{
    struct rbi_view view;
    const struct rbi_peer_pool *pool = end->peer_pool;
    int r = rbi_view_fill_inline(end, record, pool != NULL ? pool->base : NULL,
                                 pool != NULL ? pool->bytes : 0, true, &view);
    r = r != 0 ? rbi_receive_anew(bus, end, record, &view) : 0;
    if (r != 0) {
        return r;
    }
    rbi_events_flush(bus);
    end->held = false;
    view.deferrable = true;
    view.deferred = false;
    if ((record->flags & RBI_RECORD_ATTRIBUTES) != 0) {
        r = dispatch_attributed(bus, end, record, &view);
    } else {
        dispatch(bus, end, record, &view);
    }
    if (r == 0 && view.deferred) {
        bus->counters[RBI_COUNTER_received]--; /* it comes once more */
        bus->counters[RBI_COUNTER_received_bytes] -= view.message.size;
        return RBI_LANE_EMPTY;
    }
    if (r == 0 && view.referenced && !view.kept) {
        rbi_returns_put(&end->returns, (uint32_t)view.slot);
    }
    return r;
}

/*
 * Untrusted record. @p rare  a constant: whether it may be a reference, or have attributes.
 * 0; RBI_LANE_EMPTY: not now; -EPROTO
 */
static inline int
deliver(struct ringbus *bus, struct rbi_end *end, const struct rbi_record *record, bool rare)
{
    struct rbi_view view;
    const unsigned char *pool = bus->pool.segment.base;
    uint64_t pool_bytes = bus->pool.segment.size;
    if (RBI_LIKELY(end->peer_pool != NULL)) {
        pool = end->peer_pool->base;
        pool_bytes = end->peer_pool->bytes;
    }
    if (RBI_UNLIKELY(!end->flowing)) {
        const int first = rbi_receive_first(bus, end);
        if (first != 0) {
            return first;
        }
        const int checked = rbi_receive_check(bus, end, record);
        if (checked != RBI_RECEIVE_PASSES) {
            return checked;
        }
        if (bus->broker) {
            return deliver_deferrable(bus, end, record);
        }
    }
    int r = rbi_view_fill_inline(end, record, pool, pool_bytes, rare, &view);
    if (RBI_UNLIKELY(r != 0)) {
        r = rbi_receive_anew(bus, end, record, &view);
        if (r != 0) {
            return r;
        }
    }
    if (RBI_UNLIKELY(bus->events.count > 0)) {
        rbi_events_flush(bus); /* its READY comes before its first message */
    }
    if (rare && (record->flags & RBI_RECORD_ATTRIBUTES) != 0) {
        r = dispatch_attributed(bus, end, record, &view);
        if (r != 0) {
            return r;
        }
    } else {
        dispatch(bus, end, record, &view);
    }
    if (view.referenced && !view.kept) {
        rbi_returns_put(&end->returns, (uint32_t)view.slot);
    }
    return 0;
}

static bool is_message(unsigned kind)
{
    return kind == RBI_RECORD_ONEWAY || kind == RBI_RECORD_REQ || kind == RBI_RECORD_REP ||
           kind == RBI_RECORD_ERROR;
}

/* Whether an earlier life of the peer, whose end comes before this one's beginning, is read yet. */
static RBI_COLD bool is_behind(const struct ringbus *bus, struct rbi_end *end)
{
    for (unsigned i = 0; i < bus->end_count; i++) {
        const struct rbi_end *other = bus->ends[i];
        if (other->link_life < end->link_life && other->phase == RBI_END_LEAVING &&
            other->peer.cluster == end->peer.cluster &&
            other->peer.instance == end->peer.instance) {
            return true;
        }
    }
    end->behind = false;
    return false;
}

static inline int
take_parsed(struct ringbus *bus, struct rbi_end *end, const struct rbi_record *record, bool rare)
{
    if (RBI_LIKELY(is_message(record->kind))) {
        return deliver(bus, end, record, rare);
    }
    if (RBI_UNLIKELY(end->behind) && is_behind(bus, end)) {
        return RBI_LANE_EMPTY; /* READY, which comes first: nothing is read past it */
    }
    rbi_end_control_record(bus, end, record);
    return 0;
}

/* A reference, an extension, parts. */
static __attribute__((noinline)) int
take_rare(struct ringbus *bus, struct rbi_end *end, const struct rbi_lane_record *raw)
{
    struct rbi_record record;
    const int r = rbi_record_parse(raw->meta, raw->body, raw->size, &record);
    return r == 0 ? take_parsed(bus, end, &record, true) : r;
}

static int take_record(struct ringbus *bus, struct rbi_end *end, const struct rbi_lane_record *raw)
{
    struct rbi_record record;
    if ((raw->meta & RBI_RECORD_META_RARE) != 0) {
        return take_rare(bus, end, raw);
    }
    const int r = rbi_record_parse_inline(raw->meta, raw->body, raw->size, &record);
    return RBI_LIKELY(r == 0) ? take_parsed(bus, end, &record, false) : r;
}

/* ---- one lane -------------------------------------------------------------------------------- */

void rbi_poll_release(struct ringbus *bus, struct rbi_end *end)
{
    if (!end->peer_sleeps) {
        rbi_lane_release(&end->rx);
        return;
    }
    rbi_lane_release_seq(&end->rx);
    if (RBI_UNLIKELY(rbi_bell_space_wanted(end->peer_want_pos, end->rx.pos, &end->want_rung)) &&
        end->bell >= 0) {
        rbi_count(bus, RBI_COUNTER_bells_rung, 1);
        (void)rbi_bell_ring(end->bell);
    }
}

/*
 * A record that a shut lane does not believe: READY, which lies in the first mapping; a
 * message that needs the second; or an impossible one, which the open lane tells.
 */
static RBI_COLD int peek_anew(struct ringbus *bus, struct rbi_end *end, struct rbi_lane_record *raw)
{
    int r = rbi_lane_peek_once(&end->rx, raw);
    if (r == -EMSGSIZE) {
        r = rbi_end_open_rx(end);
        if (r < 0) {
            return rbi_receive_starve(bus, end, r);
        }
        end->starved_ns = 0;
        r = rbi_lane_peek(&end->rx, raw);
    }
    return r;
}

/* So much was read that the sender is to know. */
static bool is_due(const struct rbi_end *end)
{
    return end->rx.pos - end->rx.published > rbi_min_u64(end->rx.mask >> 3, RBI_UNSAID_BYTES - 1);
}

/* The record that was looked at stays where it is: its handler has not run. */
static RBI_COLD void take_nothing(struct rbi_end *end)
{
    rbi_store_rlx(end->own_begun_pos, end->rx.pos | RBI_SIDE_BETWEEN);
}

/* @return messages and control records taken */
static unsigned poll_lane(struct ringbus *bus, struct rbi_end *end, unsigned max)
{
    const uint8_t phase = end->phase;
    unsigned taken = 0;
    while (taken < max) {
        struct rbi_lane_record raw;
        int r = rbi_lane_peek(&end->rx, &raw);
        if (r == RBI_LANE_EMPTY) {
            break;
        }
        if (RBI_UNLIKELY(r < 0)) {
            struct rbi_lane_record late = {0}; /* one of its own: raw stays in registers */
            r = peek_anew(bus, end, &late);
            raw = late;
        }
        if (RBI_LIKELY(r == RBI_LANE_OK)) {
            /* Should we die in it: nobody else looks at this line while we live. */
            rbi_store_asym(end->own_begun_pos, end->rx.pos);
            if (RBI_UNLIKELY(rbi_lane_is_withdrawn(&raw))) {
                take_nothing(end);
                rbi_end_withdrawn(bus, end);
                break;
            }
            r = take_record(bus, end, &raw);
        }
        if (RBI_UNLIKELY(r != 0)) {
            take_nothing(end);
            if (r < 0) {
                rbi_end_bad_peer(bus, end, "impossible record");
            }
            break;
        }
        rbi_lane_advance(&end->rx, &raw);
        taken++;
        /* Room for the sender before the batch is over, when its records are large. */
        if (RBI_UNLIKELY(end->rx.pos - end->rx.published > (end->rx.mask >> 2))) {
            rbi_poll_release(bus, end);
        }
        if (RBI_UNLIKELY(end->phase != phase)) {
            break; /* DISCONNECT: nothing behind it counts */
        }
    }
    if (taken != 0) {
        rbi_store_rlx(end->own_begun_pos, end->rx.pos | RBI_SIDE_BETWEEN);
    }
    /*
     * Said when the lane was found empty, when enough is due, by the next tick, or for the last
     * time: after each batch, the sender would lose the line to us, and we to it, while more is
     * coming.
     */
    if (end->rx.pos != end->rx.published &&
        (taken == 0 || is_due(end) || end->phase != RBI_END_LINKED)) {
        rbi_poll_release(bus, end);
    }
    return taken;
}

/* A leaving end is read to its end, but a peer that goes on writing cannot keep it. */
static unsigned poll_leaving(struct ringbus *bus, struct rbi_end *end, unsigned max)
{
    unsigned taken = 0;
    struct rbi_lane_record raw;
    if (end->leave_reason != RBI_REASON_BAD_PEER && !end->read_out) {
        taken = poll_lane(bus, end, max);
        if (end->rx.pos - end->leave_pos > end->rx.mask ||
            rbi_lane_peek(&end->rx, &raw) == RBI_LANE_EMPTY) {
            end->read_out = true;
        }
    } else {
        end->read_out = true;
    }
    if (end->read_out) {
        rbi_end_finish_leaving(bus, end);
        bus->reap_needed = true;
    }
    return taken;
}

static unsigned poll_end(struct ringbus *bus, struct rbi_end *end, unsigned max)
{
    if (RBI_LIKELY(end->phase == RBI_END_LINKED)) {
        return poll_lane(bus, end, max);
    }
    return end->phase == RBI_END_LEAVING ? poll_leaving(bus, end, max) : 0;
}

static void reap(struct ringbus *bus)
{
    bus->reap_needed = false;
    for (unsigned i = bus->end_count; i-- > 0;) {
        struct rbi_end *end = bus->ends[i];
        if (end->phase == RBI_END_CLOSED && (end->hindered & RBI_HINDERED_CLAIM) != 0) {
            rbi_end_unindex(bus, end); /* the application may be writing into its lane */
        } else if (end->phase == RBI_END_CLOSED && end->again == NULL) {
            rbi_end_free(bus, end);
        } else if (end->phase == RBI_END_LEAVING) {
            bus->reap_needed = true;
        }
    }
    rbi_clusters_reap(bus);
}

/* ---- the public call ------------------------------------------------------------------------- */

/*
 * Polls are counted instead of reading the clock, but how long one takes is up to the
 * handlers, and a flood can make each a long one; and how far they are apart is up to the
 * caller, who may poll in a loop of his and then once a picture. A look at the coarse clock,
 * a few nanoseconds for each poll that had work and for one of IDLE_LOOK that had none,
 * keeps daemon and deadlines from waiting.
 */
static bool is_late(const struct ringbus *bus)
{
    return bus->tick_countdown > 1 && (int64_t)(rbi_now_coarse_ns() - bus->now_ns) > LATE_NS;
}

static RBI_COLD void look_at_clock(struct ringbus *bus)
{
    if (is_late(bus)) {
        bus->tick_countdown = 1;
    }
}

static unsigned poll_active(struct ringbus *bus, unsigned max)
{
    unsigned left = max;
    for (unsigned i = bus->active_count; i > 0 && left > 0; i--) {
        if (bus->next_end >= bus->active_count) {
            bus->next_end = 0;
        }
        struct rbi_end *end = bus->ends[bus->next_end];
        const unsigned taken = poll_end(bus, end, left < RBI_BATCH_MAX ? left : RBI_BATCH_MAX);
        left -= taken;
        if (taken != 0) {
            end->quiet = 0;
            end->heard_ns = bus->now_ns;
        } else if (rbi_turn_found_empty(bus, end)) {
            continue;
        }
        bus->next_end++;
    }
    return max - left;
}

static unsigned sweep_quiet(struct ringbus *bus, unsigned max)
{
    unsigned left = max;
    for (unsigned i = 0; i < rbi_sweep(bus) && left > 0 && bus->end_count > bus->active_count;
         i++) {
        if (bus->next_quiet >= bus->end_count || bus->next_quiet < bus->active_count) {
            bus->next_quiet = bus->active_count;
        }
        struct rbi_end *end = bus->ends[bus->next_quiet++];
        if (RBI_UNLIKELY(rbi_wait_end_due(end))) {
            rbi_turn_promote(bus, end);
            end->heard_ns = bus->now_ns;
            left -= poll_end(bus, end, left < RBI_BATCH_MAX ? left : RBI_BATCH_MAX);
        }
    }
    return max - left;
}

static int do_poll(struct ringbus *bus, int max)
{
    unsigned left = (unsigned)max;
    if (bus->dirty != NULL) {
        rbi_send_flush(bus);
    }
    const bool tick = --bus->tick_countdown == 0;
    if (RBI_UNLIKELY(tick)) {
        rbi_tick(bus, rbi_now_ns());
    }
    if (RBI_UNLIKELY(bus->measured != 0)) {
        rbi_gate_enter(bus);
    }
    left -= poll_active(bus, left);
    if (bus->end_count > bus->active_count && left > 0) {
        left -= sweep_quiet(bus, left);
    }
    bus->counters[RBI_COUNTER_polls]++;
    if (RBI_UNLIKELY(bus->measured != 0) &&
        (left != (unsigned)max || (bus->measured & RBI_MEASURED_SAID) != 0)) {
        rbi_gate_leave(bus, left > 0);
    }
    if (left == (unsigned)max) {
        rbi_core_idle_turn(bus);
        if (RBI_UNLIKELY(bus->tick_countdown % IDLE_LOOK == 0)) {
            look_at_clock(bus);
        }
    } else if (is_late(bus)) {
        bus->tick_countdown = 1;
    }
    if (RBI_UNLIKELY(tick)) {
        rbi_load_after(bus, (unsigned)max - left);
        rbi_tick_judge(bus);
    }
    if (bus->events.count > 0 || bus->events.lost) {
        rbi_events_flush(bus);
    }
    if (RBI_UNLIKELY(bus->reap_needed)) {
        rbi_redeliver_step(bus);
        reap(bus);
    }
    if (RBI_UNLIKELY(bus->external_loop)) {
        rbi_wait_prepare(bus);
    }
    return max - (int)left;
}

int ringbus_poll(struct ringbus *bus, int max)
{
    int r = rbi_enter(bus);
    if (RBI_UNLIKELY(r != 0)) {
        return r;
    }
    if (RBI_UNLIKELY(bus->in_callback)) {
        r = rbi_fail(bus, RINGBUS_E_BUSY, "ringbus_poll() inside a callback");
    } else if (RBI_UNLIKELY(max < 1 || max > POLL_MAX)) {
        r = rbi_fail(bus, RINGBUS_E_ARGUMENT, "max is %d, expected 1 to %d", max, POLL_MAX);
    } else {
        bus->polling = true;
        r = do_poll(bus, max);
        bus->polling = false;
    }
    rbi_leave(bus);
    return r;
}
