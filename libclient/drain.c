/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/drain.c - leaving in order (docs/design/009-leaving.md).
 *
 *   1. state DRAINING in page and directory: no new introductions, and whoever dispatches
 *      learns of it sooner or later;
 *   2. DRAIN BEGIN on each link that the peer asked for: only those can dispatch to us. The
 *      peer stops and answers ACK behind the last message that it has dispatched: when all
 *      ACKs were read, nothing more will come but what names us;
 *   3. the lanes of the others are read until they were empty once;
 *   4. our own requests are answered, for answers that we owe may hang on theirs;
 *   5. the peers have read what we had written by then.
 *
 * Nothing here waits: rbi_drain_tick() looks a thousand times a second at most.
 */
#include "libclient/internal.h"

/* A peer that does not know DRAIN hears of our state from the daemon: time for that. */
#define UNAWARE_NS (500 * RBI_NS_PER_MS)
#define LOOK_NS    RBI_NS_PER_MS
/* When it takes longer than this, looks become rarer. */
#define LONG_NS      (100 * RBI_NS_PER_MS)
#define LOOK_LONG_NS (10 * RBI_NS_PER_MS)
/* The daemon is told of progress that often at most; of the end at once. */
#define REPORT_NS (50 * RBI_NS_PER_MS)

/* ---- saying so --------------------------------------------------------------------------- */

static bool uses_us(const struct rbi_end *end)
{
    return end->phase == RBI_END_LINKED && !end->loop && end->usable &&
           end->fsm.theirs == RBI_USE_UP;
}

static void tell_begin(struct rbi_end *end)
{
    if (uses_us(end) && end->drain.understood) {
        end->drain.told = true;
        end->pending |= RBI_PENDING_DRAIN;
    }
}

static void tell_end(struct rbi_end *end)
{
    if (end->drain.told) {
        end->drain.told = false;
        end->pending |= RBI_PENDING_DRAIN;
    }
}

static void tell_all(struct ringbus *bus)
{
    const bool draining = rbi_draining(bus);
    for (unsigned i = 0; i < bus->end_count; i++) {
        struct rbi_end *end = bus->ends[i];
        end->drain.acknowledged = false;
        end->drain.emptied = false;
        if (end->loop) {
            end->drain.peer = draining; /* we pick ourselves no more */
            rbi_cluster_end_changed(bus, end);
        } else if (draining) {
            tell_begin(end);
        } else {
            tell_end(end);
        }
    }
    /* Whose end shows meanwhile changes its place; the tick flushes whoever is skipped by that. */
    for (unsigned i = 0; i < bus->end_count; i++) {
        if (bus->ends[i]->pending != 0 && bus->ends[i]->phase == RBI_END_LINKED) {
            rbi_end_flush_pending(bus, bus->ends[i]);
        }
    }
}

void rbi_drain_greet(struct ringbus *bus, struct rbi_end *end)
{
    if (rbi_draining(bus) && !end->drain.told) {
        tell_begin(end);
        if (end->pending != 0) {
            rbi_end_flush_pending(bus, end);
        }
    }
}

static void look_now(struct ringbus *bus)
{
    bus->drain.marked = false;
    bus->drain.step = RBI_DRAIN_SENDERS;
    bus->drain.next_look_ns = bus->now_ns;
    rbi_deadline_at_most(bus, bus->drain.next_look_ns);
    rbi_wait_nudge(bus);
}

static void begin(struct ringbus *bus)
{
    bus->drain.number++;
    bus->drain.since_ns = rbi_now_ns();
    rbi_control_state(bus, RBI_ENDPOINT_DRAINING);
    tell_all(bus);
    look_now(bus);
}

static void end_drain(struct ringbus *bus)
{
    bus->drain.step = RBI_DRAIN_NONE;
    rbi_control_state(bus, RBI_ENDPOINT_READY);
    tell_all(bus);
}

/* ---- how far we are ---------------------------------------------------------------------- */

/* Whether a peer may still dispatch to us. Those that never asked for us cannot. */
static bool may_send(const struct ringbus *bus, const struct rbi_end *end, uint64_t now_ns)
{
    if (!uses_us(end)) {
        return false;
    }
    return end->drain.understood ? !end->drain.acknowledged
                                 : now_ns - bus->drain.since_ns < UNAWARE_NS;
}

static uint32_t count_senders(const struct ringbus *bus, uint64_t now_ns)
{
    uint32_t count = 0;
    for (unsigned i = 0; i < bus->end_count; i++) {
        const struct rbi_end *end = bus->ends[i];
        count += may_send(bus, end, now_ns) ? 1U : 0U;
    }
    return count;
}

/*
 * What came before an ACK was dispatched when that was read. The lanes of the others have no
 * such mark; empty once is enough: what comes later names us, and may come for ever.
 */
static uint32_t count_unread(struct ringbus *bus)
{
    uint32_t count = 0;
    for (unsigned i = 0; i < bus->end_count; i++) {
        struct rbi_end *end = bus->ends[i];
        if (end->phase == RBI_END_LEAVING) {
            count++; /* is read to its end first, whatever it has acknowledged */
            continue;
        }
        if (!end->drain.acknowledged && !end->drain.emptied) {
            end->drain.emptied = !rbi_wait_end_ready(end);
        }
        count += end->drain.acknowledged || end->drain.emptied ? 0U : 1U;
    }
    return count;
}

static void mark(struct ringbus *bus)
{
    for (unsigned i = 0; i < bus->end_count; i++) {
        bus->ends[i]->drain.mark = bus->ends[i]->tx.pos;
    }
    bus->drain.marked = true;
}

static bool is_message(unsigned kind)
{
    return kind == RBI_RECORD_REQ || kind == RBI_RECORD_REP || kind == RBI_RECORD_ONEWAY ||
           kind == RBI_RECORD_ERROR;
}

/* Whether a message before the mark lies in our lane unread. PINGs and the like do not count. */
static bool is_untaken(struct rbi_end *end)
{
    struct rbi_lane_record raw;
    if (rbi_lane_tx_is_shut(&end->tx)) {
        return false; /* no message was ever written */
    }
    uint64_t position = rbi_lane_unread_first(&end->tx);
    /* Neither side of the mark is far off: positions never wrap. */
    while (position < end->drain.mark &&
           rbi_lane_unread_at(&end->tx, position, &raw) == RBI_LANE_OK) {
        if (is_message(rbi_record_meta_kind(raw.meta))) {
            return true;
        }
        position = raw.next;
    }
    return false;
}

static uint32_t count_untaken(struct ringbus *bus)
{
    uint32_t count = 0;
    for (unsigned i = 0; i < bus->end_count; i++) {
        struct rbi_end *end = bus->ends[i];
        count += end->phase == RBI_END_LINKED && end->usable && is_untaken(end) ? 1U : 0U;
    }
    return count;
}

static enum rbi_drain_step look(struct ringbus *bus, uint64_t now_ns, uint32_t *left)
{
    enum rbi_drain_step step = RBI_DRAIN_SENDERS;
    *left = count_senders(bus, now_ns);
    if (*left == 0) {
        step = RBI_DRAIN_UNREAD;
        *left = count_unread(bus);
    }
    if (*left == 0) {
        step = RBI_DRAIN_CALLS;
        *left = bus->calls.heap_count > bus->asks.count ? bus->calls.heap_count : bus->asks.count;
    }
    if (*left != 0) {
        bus->drain.marked = false;
        return step;
    }
    if (bus->redelivering > 0) {
        bus->drain.marked = false; /* what one did not consume is on its way to another */
        *left = bus->redelivering;
        return RBI_DRAIN_UNTAKEN;
    }
    if (bus->delays.count > 0) {
        bus->drain.marked = false; /* a limit lets it pass in a while */
        *left = bus->delays.count;
        return RBI_DRAIN_UNTAKEN;
    }
    if (!bus->drain.marked) {
        mark(bus);
    }
    *left = count_untaken(bus);
    return *left != 0 ? RBI_DRAIN_UNTAKEN : RBI_DRAIN_DONE;
}

/* Only an operator waits for it at the daemon. */
static void report(struct ringbus *bus, uint64_t now_ns)
{
    struct rbi_drain *drain = &bus->drain;
    const bool news =
        !drain->told || drain->step != drain->reported_step || drain->left != drain->reported_left;
    const bool due = !drain->told || drain->step == RBI_DRAIN_DONE ||
                     drain->step == RBI_DRAIN_NONE || now_ns - drain->reported_ns >= REPORT_NS;
    if (!news || !due || bus->control.phase != RBI_CONTROL_ON) {
        return;
    }
    const struct rbi_wire_drain_report body = {.step = drain->step, .left = drain->left};
    drain->told = rbi_control_send(bus, RBI_WIRE_DRAIN_REPORT, &body, NULL, 0) != 0;
    drain->reported_step = drain->step;
    drain->reported_left = drain->left;
    drain->reported_ns = now_ns;
}

uint64_t rbi_drain_tick(struct ringbus *bus, uint64_t now_ns)
{
    struct rbi_drain *drain = &bus->drain;
    if (!rbi_draining(bus) || drain->step == RBI_DRAIN_DONE) {
        return RBI_NEVER;
    }
    if (now_ns >= drain->next_look_ns) {
        drain->step = look(bus, now_ns, &drain->left);
        drain->next_look_ns =
            now_ns + (now_ns - drain->since_ns < LONG_NS ? LOOK_NS : LOOK_LONG_NS);
        if (drain->ordered) {
            report(bus, now_ns);
        }
    }
    return drain->step == RBI_DRAIN_DONE ? RBI_NEVER : drain->next_look_ns;
}

void rbi_drain_resend(struct ringbus *bus)
{
    if (bus->drain.ordered) {
        bus->drain.told = false;
        report(bus, bus->now_ns);
    }
}

/* ---- the peer's side, and its answers ------------------------------------------------------ */

void rbi_drain_record(struct ringbus *bus, struct rbi_end *end, const struct rbi_record *record)
{
    struct rbi_drain_body body;
    if (rbi_drain_decode(record->payload, record->payload_size, &body) != 0) {
        rbi_end_bad_peer(bus, end, "DRAIN cannot be read");
        return;
    }
    switch (body.word) {
    case RBI_DRAIN_BEGIN:
        /* First the choice, then the answer: behind the ACK comes nothing that we dispatched. */
        end->drain.peer = true;
        end->drain.peer_number = record->tag;
        rbi_cluster_end_changed(bus, end);
        end->pending |= RBI_PENDING_DRAIN_ACK;
        rbi_end_flush_pending(bus, end);
        break;
    case RBI_DRAIN_END:
        end->drain.peer = false;
        end->pending &= (uint8_t)~RBI_PENDING_DRAIN_ACK;
        rbi_cluster_end_changed(bus, end);
        break;
    case RBI_DRAIN_ACK:
        if (rbi_draining(bus) && record->tag == bus->drain.number) {
            end->drain.acknowledged = true;
            bus->drain.next_look_ns = bus->now_ns;
            rbi_deadline_at_most(bus, bus->now_ns);
        }
        break;
    default:
        break; /* a word of a later version */
    }
}

/* ---- who asks for it ----------------------------------------------------------------------- */

void rbi_drain_order(struct ringbus *bus, const struct rbi_wire_drain_order *body)
{
    const bool start = body->what == RBI_DRAIN_START;
    const bool was = rbi_draining(bus);
    if (!start && body->what != RBI_DRAIN_STOP) {
        return; /* of a later version */
    }
    if (start != bus->drain.ordered) {
        bus->drain.ordered = start;
        rbi_emit_simple(bus, start ? RINGBUS_EVENT_DRAIN : RINGBUS_EVENT_UNDRAIN, &bus->self,
                        bus->self_path, RBI_REASON_NONE, 0);
    }
    if (!was && rbi_draining(bus)) {
        begin(bus);
    } else if (was && !rbi_draining(bus)) {
        end_drain(bus);
    }
    bus->drain.told = false; /* an order is always answered */
    report(bus, bus->now_ns);
}

void rbi_drain_close(struct ringbus *bus)
{
    const bool was = rbi_draining(bus);
    bus->drain.asked = bus->drain.closing = true;
    if (!was) {
        begin(bus);
        return;
    }
    /* Acknowledged is acknowledged; but what names us may have come since. */
    for (unsigned i = 0; i < bus->end_count; i++) {
        bus->ends[i]->drain.emptied = false;
    }
    look_now(bus);
}

int ringbus_drain(struct ringbus *bus)
{
    const int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    const bool was = rbi_draining(bus);
    bus->drain.asked = true;
    if (!was) {
        begin(bus);
    }
    rbi_leave(bus);
    return 0;
}

int ringbus_undrain(struct ringbus *bus)
{
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    if (bus->drain.closing) {
        r = rbi_fail(bus, RINGBUS_E_CLOSED, "the handle is being closed");
    } else if (bus->drain.ordered) {
        bus->drain.asked = false;
        r = rbi_fail(bus, RINGBUS_E_DENIED, "an operator has drained %s: ringbusctl undrain",
                     bus->self_path);
    } else if (bus->drain.asked) {
        bus->drain.asked = false;
        end_drain(bus);
    }
    rbi_leave(bus);
    return r;
}

int ringbus_drained(const struct ringbus *bus)
{
    int r = rbi_enter(bus);
    if (r == 0) {
        r = rbi_draining(bus) && bus->drain.step == RBI_DRAIN_DONE ? 1 : 0;
        rbi_leave(bus);
    }
    return r;
}
