/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/end_control.c - READY, PING, DISCONNECT: carries out what the state machine
 * of bus/link.h says, and feeds it with what comes in.
 */
#include "libclient/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- sending control records ----------------------------------------------------------- */

/* Control finds room that data leaves free; when not even that is left, it is kept pending. */
bool rbi_end_send_control(struct ringbus *bus,
                          struct rbi_end *end,
                          enum rbi_record_kind kind,
                          uint64_t tag,
                          const unsigned char *payload,
                          uint64_t size)
{
    unsigned char *body = NULL;
    if ((end->hindered & RBI_HINDERED_CLAIM) != 0) {
        return false; /* a record is being built at the lane's head */
    }
    int r = rbi_lane_reserve_once(&end->tx, RBI_RECORD_TAG + size, 0, &body);
    if (r == -EMSGSIZE) {
        /* A late READY that passes the lane's end; the others take a line each. */
        if (rbi_end_open_tx(bus, end) != 0) {
            return false;
        }
        r = rbi_lane_reserve(&end->tx, RBI_RECORD_TAG + size, 0, &body);
    }
    if (r == RBI_LANE_FULL) {
        return false;
    }
    if (r < 0) {
        /* Judged by the next tick: the verdict sends control records itself. */
        end->broken = true;
        bus->tick_countdown = 1;
        rbi_due_at_most(bus, end, bus->now_ns);
        return true; /* nothing more to be sent */
    }
    memcpy(body, &tag, sizeof tag);
    if (size > 0) {
        memcpy(body + RBI_RECORD_TAG, payload, size);
    }
    rbi_lane_commit_seq(&end->tx, RBI_RECORD_TAG + size, rbi_record_meta(kind, 0, 0, 0));
    rbi_send_ring(bus, end);
    return true;
}

static uint64_t features(const struct ringbus *bus)
{
    return RBI_FEATURE_DRAIN | (bus->hold ? RBI_FEATURE_DEBUG_HOLD : 0) |
           (bus->broker ? RBI_FEATURE_BROKER : 0);
}

/* What the peer's READY, or its answer to ours, says that it can do. */
static void take_features(struct ringbus *bus, struct rbi_end *end, uint64_t said)
{
    end->drain.understood = (said & RBI_FEATURE_DRAIN) != 0;
    end->broker = (said & RBI_FEATURE_BROKER) != 0;
    bus->brokers = bus->brokers || end->broker;
}

static bool send_ready(struct ringbus *bus, struct rbi_end *end)
{
    unsigned char payload[RBI_CONTROL_BODY_MAX];
    struct rbi_ready ready = {
        .version_min = RBI_READY_VERSION_MIN,
        .version_max = RBI_READY_VERSION_MAX,
        .ping_interval_ms = end->fsm.my_terms.ping_interval_ms,
        .dead_after_ms = end->fsm.my_terms.dead_after_ms,
        .incarnation = bus->self.incarnation,
        .features = features(bus),
        .self = bus->self,
        .link_life = end->link_life,
    };
    (void)snprintf(ready.path, sizeof ready.path, "%s", bus->self_path);
    const uint64_t size = rbi_ready_encode(&ready, payload);
    return rbi_end_send_control(bus, end, RBI_RECORD_READY, 0, payload, size);
}

static bool send_ack(struct ringbus *bus, struct rbi_end *end, enum rbi_reason reason)
{
    unsigned char payload[RBI_CONTROL_BODY_MAX];
    const struct rbi_ready_ack ack = {
        .version = end->ready_version,
        .reason = (uint32_t)reason,
        .features = features(bus),
        .link_life = end->link_life,
    };
    const uint64_t size = rbi_ready_ack_encode(&ack, payload);
    return rbi_end_send_control(bus, end, RBI_RECORD_READY_ACK, 0, payload, size);
}

static bool send_disconnect(struct ringbus *bus, struct rbi_end *end, enum rbi_reason reason)
{
    unsigned char payload[RBI_CONTROL_BODY_MAX];
    const struct rbi_disconnect bye = {.reason = (uint32_t)reason};
    const uint64_t size = rbi_disconnect_encode(&bye, payload);
    return rbi_end_send_control(bus, end, RBI_RECORD_DISCONNECT, 0, payload, size);
}

static bool
send_drain(struct ringbus *bus, struct rbi_end *end, enum rbi_drain_word word, uint64_t number)
{
    unsigned char payload[RBI_CONTROL_BODY_MAX];
    const struct rbi_drain_body drain = {.word = (uint32_t)word};
    const uint64_t size = rbi_drain_encode(&drain, payload);
    return rbi_end_send_control(bus, end, RBI_RECORD_DRAIN, number, payload, size);
}

static bool send_refused(struct ringbus *bus, struct rbi_end *end)
{
    unsigned char payload[RBI_CONTROL_BODY_MAX];
    const struct rbi_refused_body refused = {
        .error = end->refused.error, .method = end->refused.method, .count = end->refused.count};
    const uint64_t size = rbi_refused_encode(&refused, payload);
    return rbi_end_send_control(bus, end, RBI_RECORD_REFUSED, 0, payload, size);
}

void rbi_end_flush_pending(struct ringbus *bus, struct rbi_end *end)
{
    /* In this order: a peer must see READY before anything else that we say. */
    if ((end->pending & RBI_PENDING_READY) != 0 && send_ready(bus, end)) {
        end->pending &= (uint8_t)~RBI_PENDING_READY;
    }
    if ((end->pending & RBI_PENDING_ACK) != 0 && send_ack(bus, end, end->pending_ack)) {
        end->pending &= (uint8_t)~RBI_PENDING_ACK;
    }
    if ((end->pending & RBI_PENDING_PING) != 0 &&
        rbi_end_send_control(bus, end, RBI_RECORD_PING, end->pending_ping_id, NULL, 0)) {
        end->pending &= (uint8_t)~RBI_PENDING_PING;
    }
    if ((end->pending & RBI_PENDING_PONG) != 0 &&
        rbi_end_send_control(bus, end, RBI_RECORD_PONG, end->pending_pong_id, NULL, 0)) {
        end->pending &= (uint8_t)~RBI_PENDING_PONG;
    }
    if ((end->pending & RBI_PENDING_DRAIN) != 0 &&
        send_drain(bus, end, rbi_draining(bus) ? RBI_DRAIN_BEGIN : RBI_DRAIN_END,
                   bus->drain.number)) {
        end->pending &= (uint8_t)~RBI_PENDING_DRAIN;
    }
    if ((end->pending & RBI_PENDING_DRAIN_ACK) != 0 &&
        send_drain(bus, end, RBI_DRAIN_ACK, end->drain.peer_number)) {
        end->pending &= (uint8_t)~RBI_PENDING_DRAIN_ACK;
    }
    if ((end->pending & RBI_PENDING_REFUSED) != 0 && send_refused(bus, end)) {
        end->pending &= (uint8_t)~RBI_PENDING_REFUSED;
        rbi_refused_said(bus, end);
    }
    if ((end->pending & RBI_PENDING_DISCONNECT) != 0 &&
        send_disconnect(bus, end, end->pending_reason)) {
        end->pending &= (uint8_t)~RBI_PENDING_DISCONNECT;
    }
}

void rbi_end_say_alive(struct ringbus *bus, struct rbi_end *end)
{
    if ((end->pending & RBI_PENDING_PONG) == 0) { /* else an answer waits for room */
        end->pending |= RBI_PENDING_PONG;
        end->pending_pong_id = 0;
    }
    rbi_end_flush_pending(bus, end);
    rbi_tick_follow(bus, end);
}

/* ---- the state machine ------------------------------------------------------------------ */

/* For how long there was no sign of life. */
static uint32_t silence_ms(const struct ringbus *bus, const struct rbi_end *end)
{
    return rbi_ms_of(bus->now_ns - rbi_min_u64(end->fsm.last_heard_ns, bus->now_ns));
}

static void report_suspicion(struct ringbus *bus, struct rbi_end *end)
{
    struct rbi_queued_event *event = rbi_emit_simple(
        bus, end->fsm.suspect ? RINGBUS_EVENT_SUSPECT : RINGBUS_EVENT_ALIVE, &end->peer, end->path,
        !end->fsm.suspect ? RBI_REASON_NONE
        : end->fsm.cut    ? RBI_REASON_UNREACHABLE
                          : RBI_REASON_SILENT,
        0);
    if (event != NULL && end->fsm.suspect) {
        event->silent_ms = silence_ms(bus, end);
        event->paused = end->fsm.held || end->fsm.cut;
    }
    rbi_cluster_suspicion(bus, end);
}

/* The link has ended for us: what the peer had not read is given back by the reaper. */
static void begin_leaving(struct ringbus *bus, struct rbi_end *end, enum rbi_reason reason)
{
    if (end->phase == RBI_END_LINKED) {
        end->phase = RBI_END_LEAVING;
        end->leave_reason = reason;
        end->leave_pos = end->rx.pos;
        rbi_redeliver_hold(bus, end);
        rbi_turn_promote(bus, end); /* its end is not to wait for its turn */
    }
    end->usable = false;
    end->flowing = false;
    bus->reap_needed = true;
    rbi_cluster_end_changed(bus, end);
    rbi_wait_nudge(bus);
}

void rbi_end_report_failed(struct ringbus *bus, struct rbi_end *end)
{
    int error = RINGBUS_E_PEER_GONE;
    const char *text = "the peer ended before the link was READY";
    if (end->fsm.reason == RBI_REASON_REFUSED) {
        error = RINGBUS_E_DENIED;
        text = "the peer refused the link";
    } else if (end->fsm.reason == RBI_REASON_DENIED) {
        error = RINGBUS_E_DENIED;
        text = "the right to it was taken away";
    } else if (end->fsm.reason == RBI_REASON_SILENT) {
        error = RINGBUS_E_TIMEOUT;
        text = "the peer did not answer READY in time";
    } else if (end->fsm.reason == RBI_REASON_BAD_PEER) {
        error = RINGBUS_E_BAD_PEER;
        text = "the peer broke the protocol before the link was READY";
    } else if (end->fsm.reason == RBI_REASON_UNREACHABLE) {
        error = RINGBUS_E_UNREACHABLE;
        text = "the way to its host was lost before the link was READY";
    }
    const enum rbi_reason reason =
        end->fsm.reason == RBI_REASON_REFUSED ? RBI_REASON_REFUSED : RBI_REASON_NONE;
    rbi_target_introduce_failed(bus, &end->peer, reason, error, text, false);
}

static void report_up(struct ringbus *bus, struct rbi_end *end)
{
    rbi_count(bus, RBI_COUNTER_links_opened, 1);
    end->reported_up = true;
    rbi_emit_simple(bus, RINGBUS_EVENT_READY, &end->peer, end->path, RBI_REASON_NONE, 0);
    rbi_relayed_up(bus, end);
}

static void
carry_out(struct ringbus *bus, struct rbi_end *end, const struct rbi_link_actions *actions)
{
    const unsigned todo = actions->todo;
    if (todo & RBI_LINK_DO_SEND_READY) {
        end->pending |= RBI_PENDING_READY;
    }
    if (todo & RBI_LINK_DO_SEND_ACK) {
        end->pending |= RBI_PENDING_ACK;
        end->pending_ack = actions->reason;
    }
    if (todo & RBI_LINK_DO_SEND_PING) {
        end->pending |= RBI_PENDING_PING;
        end->pending_ping_id = actions->id;
    }
    if (todo & RBI_LINK_DO_SEND_PONG) {
        end->pending |= RBI_PENDING_PONG;
        end->pending_pong_id = actions->id;
    }
    if (todo & RBI_LINK_DO_SEND_DISCONNECT) {
        end->said_bye = true;
        rbi_refused_last(end);
        end->pending |= RBI_PENDING_DISCONNECT;
        end->pending_reason = actions->reason;
        /* Whoever reads it takes what we have not released for unread. */
        rbi_poll_release(bus, end);
    }
    if (end->pending != 0) {
        rbi_end_flush_pending(bus, end);
    }
    if (todo & RBI_LINK_DO_COUNT_MISS) {
        rbi_count(bus, RBI_COUNTER_pings_missed, 1);
    }
    const bool usable = rbi_link_usable(&end->fsm) && end->phase == RBI_END_LINKED;
    if (usable != end->usable) {
        end->usable = usable;
        end->flowing = false;
        rbi_cluster_end_changed(bus, end);
    }
    if (todo & RBI_LINK_DO_REPORT_UP) {
        report_up(bus, end);
    }
    if ((todo & RBI_LINK_DO_REPORT_FAILED) && end->wanted) {
        end->failed = true; /* unless its lane says otherwise, when that is read to its end */
    }
    if (todo & (RBI_LINK_DO_REPORT_SUSPECT | RBI_LINK_DO_REPORT_ALIVE)) {
        report_suspicion(bus, end);
    }
    if ((todo & RBI_LINK_DO_CLOSE) && end->fsm.reason == RBI_REASON_SILENT) {
        end->silent_ms = silence_ms(bus, end);
    }
    /* REPORT_DOWN waits for the reaper: messages that came before it are delivered first. */
    if (todo & (RBI_LINK_DO_CLOSE | RBI_LINK_DO_REPORT_DOWN)) {
        begin_leaving(bus, end, end->fsm.reason);
    }
}

void rbi_end_step(struct ringbus *bus, struct rbi_end *end, const struct rbi_link_input *input)
{
    struct rbi_link_actions actions = {0};
    rbi_link_step(&end->fsm, input, bus->now_ns, &actions);
    if (actions.todo != 0) {
        carry_out(bus, end, &actions);
    }
    rbi_tick_follow(bus, end);
}

void rbi_end_peer_gone(struct ringbus *bus, struct rbi_end *end, enum rbi_reason reason)
{
    if (end->phase == RBI_END_LINKED) {
        const struct rbi_link_input input = {.type = RBI_LINK_PEER_DEAD, .reason = reason};
        rbi_end_step(bus, end, &input);
        /* Not ours: when we have just ended it, the peer hung up because of that. */
        begin_leaving(bus, end, end->fsm.reason);
    }
}

void rbi_end_withdrawn(struct ringbus *bus, struct rbi_end *end)
{
    /* The daemon may have said why, before it told the peer. */
    rbi_control_input(bus);
    end->read_out = true; /* the same goes for all that follows, but for its DISCONNECT */
    if (end->phase == RBI_END_LEAVING && end->leave_reason != RBI_REASON_DENIED) {
        end->leave_reason = RBI_REASON_GIVEN_UP; /* before it ended itself */
    }
    rbi_end_peer_gone(bus, end, RBI_REASON_GIVEN_UP);
}

void rbi_end_bad_peer(struct ringbus *bus, struct rbi_end *end, const char *what)
{
    if (end->phase == RBI_END_CLOSED || end->leave_reason == RBI_REASON_BAD_PEER) {
        return; /* once a link: saying goodbye may find more that is wrong */
    }
    end->leave_reason = RBI_REASON_BAD_PEER;
    rbi_count(bus, RBI_COUNTER_bad_peer, 1);
    (void)rbi_fail(bus, RINGBUS_E_BAD_PEER, "%s broke the protocol: %s", end->path, what);
    if (end->phase == RBI_END_LINKED) {
        const struct rbi_link_input input = {.type = RBI_LINK_CLOSE, .reason = RBI_REASON_BAD_PEER};
        rbi_end_step(bus, end, &input);
        begin_leaving(bus, end, RBI_REASON_BAD_PEER);
    }
}

void rbi_end_starved(struct ringbus *bus, struct rbi_end *end)
{
    end->read_out = true; /* what came last cannot be read */
    (void)rbi_fail_errno(bus, -ENOMEM, "mapping what a peer has sent");
    if (end->phase == RBI_END_LINKED) {
        const struct rbi_link_input input = {.type = RBI_LINK_CLOSE,
                                             .reason = RBI_REASON_NO_RESOURCES};
        rbi_end_step(bus, end, &input);
        begin_leaving(bus, end, RBI_REASON_NO_RESOURCES);
    }
}

/* ---- control records that came in -------------------------------------------------------- */

static void on_ready(struct ringbus *bus, struct rbi_end *end, const struct rbi_record *record)
{
    struct rbi_ready ready;
    struct rbi_link_input input = {.type = RBI_LINK_READY, .reason = RBI_REASON_NONE};
    if (rbi_ready_decode(record->payload, record->payload_size, &ready) != 0) {
        rbi_end_bad_peer(bus, end, "READY cannot be read");
        return;
    }
    /* The daemon said who it is; a READY that says otherwise is a lie. */
    if (ready.self.cluster != end->peer.cluster || ready.self.instance != end->peer.instance ||
        strcmp(ready.path, end->path) != 0) {
        rbi_end_bad_peer(bus, end, "READY names another address than the daemon did");
        return;
    }
    input.terms.ping_interval_ms = ready.ping_interval_ms;
    input.terms.ping_misses = 1;
    input.hold = (ready.features & RBI_FEATURE_DEBUG_HOLD) != 0;
    input.terms.dead_after_ms = ready.dead_after_ms;
    end->ready_version = (uint16_t)rbi_min_u64(ready.version_max, RBI_READY_VERSION_MAX);
    if (ready.version_min > RBI_READY_VERSION_MAX || ready.version_max < RBI_READY_VERSION_MIN ||
        rbi_link_terms_check(&input.terms) != 0 || bus->closing) {
        input.reason = RBI_REASON_REFUSED;
    }
    take_features(bus, end, ready.features);
    end->peer_life = ready.link_life;
    rbi_end_step(bus, end, &input);
    rbi_drain_greet(bus, end);
}

static void on_ready_ack(struct ringbus *bus, struct rbi_end *end, const struct rbi_record *record)
{
    struct rbi_ready_ack ack;
    if (rbi_ready_ack_decode(record->payload, record->payload_size, &ack) != 0) {
        rbi_end_bad_peer(bus, end, "READY_ACK cannot be read");
        return;
    }
    end->peer_life = ack.link_life;
    /* What it has chosen must be among what our READY offered. */
    const bool agreed = ack.reason == 0 && ack.version >= RBI_READY_VERSION_MIN &&
                        ack.version <= RBI_READY_VERSION_MAX;
    const struct rbi_link_input input = {.type = RBI_LINK_READY_ACK,
                                         .hold = (ack.features & RBI_FEATURE_DEBUG_HOLD) != 0,
                                         .reason = agreed ? RBI_REASON_NONE : RBI_REASON_REFUSED};
    if (end->phase == RBI_END_LEAVING && end->failed && agreed &&
        end->leave_reason != RBI_REASON_SILENT) {
        /* The news of its end has overtaken it: for the peer the link was READY, and what it
         * sent since lies behind this. */
        end->failed = false;
        report_up(bus, end);
        return;
    }
    take_features(bus, end, ack.features);
    rbi_end_step(bus, end, &input);
}

static void on_disconnect(struct ringbus *bus, struct rbi_end *end, const struct rbi_record *record)
{
    struct rbi_disconnect bye;
    if (rbi_disconnect_decode(record->payload, record->payload_size, &bye) != 0) {
        rbi_end_bad_peer(bus, end, "DISCONNECT cannot be read");
        return;
    }
    const enum rbi_reason reason = bye.reason == RBI_REASON_NONE || bye.reason > RBI_REASON_LAST
                                       ? RBI_REASON_LEFT
                                       : (enum rbi_reason)bye.reason;
    end->bye_unknown = bye.reason > RBI_REASON_LAST;
    end->read_out = true;            /* nothing behind it counts */
    end->inserted_bytes += RBI_LINE; /* the bridge's own, perhaps; no message lies behind it */
    if (end->phase == RBI_END_LEAVING) {
        end->leave_reason = reason; /* it said so itself before the kernel reported its end */
        rbi_cluster_end_explained(bus, end);
        return;
    }
    const struct rbi_link_input input = {.type = RBI_LINK_DISCONNECT, .reason = reason};
    rbi_end_step(bus, end, &input);
}

void rbi_end_control_record(struct ringbus *bus,
                            struct rbi_end *end,
                            const struct rbi_record *record)
{
    struct rbi_link_input input = {.id = record->tag};
    if ((record->flags & RBI_RECORD_REF) != 0) {
        rbi_end_bad_peer(bus, end, "control record by reference");
        return;
    }
    switch (record->kind) {
    case RBI_RECORD_READY:
        on_ready(bus, end, record);
        break;
    case RBI_RECORD_READY_ACK:
        on_ready_ack(bus, end, record);
        break;
    case RBI_RECORD_PING:
        input.type = RBI_LINK_PING;
        rbi_end_step(bus, end, &input);
        rbi_drain_greet(bus, end); /* it may have brought the peer's use back */
        break;
    case RBI_RECORD_PONG:
        input.type = RBI_LINK_PONG;
        rbi_end_step(bus, end, &input);
        break;
    case RBI_RECORD_DISCONNECT:
        on_disconnect(bus, end, record);
        break;
    case RBI_RECORD_DRAIN:
        input.type = RBI_LINK_DATA;
        rbi_end_step(bus, end, &input);
        rbi_drain_record(bus, end, record);
        break;
    case RBI_RECORD_REFUSED:
        input.type = RBI_LINK_DATA;
        rbi_end_step(bus, end, &input);
        rbi_refused_record(bus, end, record);
        break;
    case RBI_RECORD_HOLD:
        rbi_relayed_hold(bus, end, record); /* no sign of life: it is the bridge's */
        break;
    case RBI_RECORD_GAP:
        input.type = RBI_LINK_DATA;
        rbi_end_step(bus, end, &input);
        rbi_gap_record(bus, end, record);
        break;
    default:
        /* A kind of a later version: skipped by its length, but a sign of life. */
        input.type = RBI_LINK_DATA;
        rbi_end_step(bus, end, &input);
        break;
    }
}
