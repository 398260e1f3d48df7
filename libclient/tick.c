/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/tick.c - what a handle does now and then: reads the clock, judges its links,
 * looks at the daemon, runs the deadlines that are due.
 *
 * The clock is read once in so many polls, and before and after a sleep. While messages flow
 * nothing here asks the kernel: the daemon bumps our attention word in the directory when a
 * control message waits.
 *
 * A tick has two halves, and the poll reads the lanes between them: a PONG or a reply that
 * came while this process did not run is read before anybody is judged for its absence.
 */
#include "libclient/internal.h"

#define TICK_POLLS_MAX 1024U
#define TICK_GOAL_NS   (UINT64_C(500) * 1000)
#define TICK_LOST_NS   (16 * TICK_GOAL_NS)
/* Silence after which a busy poller asks the kernel whether a socket has news. */
#define QUIET_EPOLL_NS (100 * RBI_NS_PER_MS)
/*
 * The same while messages flow without a pause: a dead daemon bumps no attention word, and
 * whoever notices its end late comes late to the next one, which waits no more than 2 s.
 */
#define BUSY_EPOLL_NS (500 * RBI_NS_PER_MS)
/* Control records that find no room are tried again after 1 ms at first, 64 ms at last. */
#define PENDING_SHIFT_MAX 6U
/* For so long the longest time is kept in which we did not poll. */
#define LATE_KEPT_NS (10000 * RBI_NS_PER_MS)

/* ---- links --------------------------------------------------------------------------------- */

/*
 * Whoever reads lives, slow as it may be. When it did so is only known to be after the last
 * look: that is what counts, or one that has stopped since would be found too late.
 * @return when it was, 0: it has not read
 */
static uint64_t has_read_ns(const struct ringbus *bus, struct rbi_end *end)
{
    uint64_t read_pos = 0;
    const bool moved =
        rbi_lane_read_pos(&end->tx, &read_pos) == 0 && read_pos != end->read_seen_pos;
    const uint64_t given_ns = moved ? end->read_seen_ns : 0;
    end->read_seen_pos = read_pos;
    end->read_seen_ns = bus->now_ns;
    return given_ns;
}

/* What the peer has given as signs of life and is not told to the state machine yet. */
static void take_signs(struct ringbus *bus, struct rbi_end *end)
{
    struct rbi_link_input sign = {.type = RBI_LINK_DATA};
    const uint64_t read_ns = has_read_ns(bus, end);
    sign.given_ns = rbi_max_u64(end->heard_ns, read_ns);
    end->heard_ns = 0;
    if (rbi_wait_end_ready(end)) {
        rbi_turn_promote(bus, end); /* not read yet: it came while we did not look */
        sign.given_ns = bus->now_ns;
    }
    if (sign.given_ns != 0) {
        rbi_end_step(bus, end, &sign);
    }
}

/* A peer that lives and never reads must not have us wake up a thousand times a second for ever. */
static uint64_t pending_ns(const struct rbi_end *end)
{
    return RBI_NS_PER_MS << rbi_min_u64(end->pending_tries / 16, PENDING_SHIFT_MAX);
}

void rbi_tick_follow(struct ringbus *bus, struct rbi_end *end)
{
    uint64_t due_ns = end->phase == RBI_END_LINKED ? rbi_link_deadline_ns(&end->fsm) : RBI_NEVER;
    if (end->pending != 0 && end->phase == RBI_END_LINKED) {
        due_ns = rbi_min_u64(due_ns, bus->now_ns + pending_ns(end));
    }
    if (end->muted && end->phase == RBI_END_LINKED) {
        due_ns = rbi_min_u64(due_ns, end->unmute_ns);
    }
    if (end->phase == RBI_END_LINKED) {
        due_ns = rbi_min_u64(due_ns, rbi_refused_due_ns(end));
    }
    if (end->broken && end->phase == RBI_END_LINKED) {
        due_ns = bus->now_ns;
    }
    bus->due[end->position] = due_ns;
    rbi_deadline_at_most(bus, due_ns);
}

static void judge(struct ringbus *bus, struct rbi_end *end)
{
    if (end->phase == RBI_END_LINKED && end->broken) {
        rbi_end_bad_peer(bus, end, "impossible read position");
    }
    if (end->phase == RBI_END_LINKED) {
        rbi_refused_tick(bus, end);
    }
    if (end->phase == RBI_END_LINKED && end->pending != 0) {
        rbi_end_flush_pending(bus, end);
        if (end->pending == 0) {
            end->pending_tries = 0;
        } else if (end->pending_tries < UINT8_MAX) {
            end->pending_tries++;
        }
    }
    if (end->phase == RBI_END_LINKED && end->muted) {
        rbi_epoll_unmute(bus, end, bus->now_ns);
    }
    if (end->phase == RBI_END_LINKED && rbi_link_deadline_ns(&end->fsm) <= bus->now_ns) {
        const struct rbi_link_input tick = {.type = RBI_LINK_TICK};
        take_signs(bus, end);
        rbi_end_step(bus, end, &tick);
    }
    rbi_tick_follow(bus, end);
}

/*
 * Most links have nothing due: one word of each is read, all in a row. Ends change places when
 * one is promoted, but only with some that lie before it. @return when the next is due
 */
static uint64_t judge_due(struct ringbus *bus)
{
    uint64_t next_ns = RBI_NEVER;
    for (unsigned i = 0; i < bus->end_count; i++) {
        uint64_t due_ns = bus->due[i];
        if (RBI_UNLIKELY(due_ns <= bus->now_ns)) {
            struct rbi_end *end = bus->ends[i];
            judge(bus, end);
            due_ns = bus->due[end->position];
        }
        next_ns = rbi_min_u64(next_ns, due_ns);
    }
    return next_ns;
}

/* ---- everything that is due ------------------------------------------------------------------ */

static void run_deadlines(struct ringbus *bus)
{
    bus->next_deadline_ns = RBI_NEVER;
    rbi_control_tick(bus, bus->now_ns);
    rbi_deadline_at_most(bus, judge_due(bus));
    rbi_calls_expire(bus, bus->now_ns);
    rbi_deadline_at_most(bus, rbi_asks_tick(bus, bus->now_ns));
    rbi_deadline_at_most(bus, rbi_failback_tick(bus, bus->now_ns));
    rbi_deadline_at_most(bus, rbi_delay_tick(bus, bus->now_ns));
    if (bus->target_due_ns <= bus->now_ns) {
        bus->target_due_ns = RBI_NEVER;
        rbi_target_at_most(bus, rbi_target_tick(bus, bus->now_ns));
    }
    rbi_deadline_at_most(bus, bus->target_due_ns);
    rbi_deadline_at_most(bus, rbi_control_deadline_ns(bus));
    rbi_deadline_at_most(bus, rbi_calls_deadline_ns(&bus->calls));
    rbi_deadline_at_most(bus, rbi_redeliver_tick(bus));
    rbi_deadline_at_most(bus, rbi_drain_tick(bus, bus->now_ns));
    rbi_deadline_at_most(bus, rbi_probe_tick(bus, bus->now_ns));
    rbi_deadline_at_most(bus, rbi_outcomes_tick(bus, bus->now_ns));
    rbi_deadline_at_most(bus, rbi_limit_tick(bus, bus->now_ns));
    rbi_deadline_at_most(bus, rbi_dry_tick(bus, bus->now_ns));
    rbi_deadline_at_most(bus, rbi_nodes_tick(bus, bus->now_ns));
    rbi_deadline_at_most(bus, rbi_gate_tick(bus, bus->now_ns));
}

/* ---- the daemon ------------------------------------------------------------------------------ */

static void report_daemon(struct ringbus *bus)
{
    if (bus->daemon_lost_pending) {
        bus->daemon_lost_pending = false;
        rbi_emit_simple(bus, RINGBUS_EVENT_DAEMON_LOST, NULL, NULL, RBI_REASON_NONE,
                        RINGBUS_E_NO_DAEMON);
    }
    if (bus->daemon_back_pending) {
        bus->daemon_back_pending = false;
        rbi_emit_simple(bus, RINGBUS_EVENT_DAEMON_BACK, &bus->self, bus->self_path, RBI_REASON_NONE,
                        0);
    }
}

static void look_at_daemon(struct ringbus *bus)
{
    if (bus->control.phase == RBI_CONTROL_ON && bus->directory_mapped) {
        const uint64_t attention = rbi_directory_attention(&bus->directory, bus->control.slot);
        if (attention != bus->control.attention_seen) {
            bus->control.attention_seen = attention;
            rbi_control_input(bus);
        }
        rbi_directory_look(bus);
    }
    if (bus->control.phase == RBI_CONTROL_HELLO || bus->control.phase == RBI_CONTROL_REGISTER) {
        rbi_control_input(bus); /* no attention word before we are registered */
    }
    if (bus->control.out_first != NULL) {
        rbi_control_flush(bus);
    }
    const uint64_t traffic = bus->counters[RBI_COUNTER_received] +
                             bus->counters[RBI_COUNTER_replies] + bus->counters[RBI_COUNTER_sent];
    if (traffic != bus->traffic_at_tick) {
        bus->traffic_at_tick = traffic;
        bus->idle_since_ns = bus->now_ns;
    }
    const bool quiet = bus->now_ns - bus->idle_since_ns >= QUIET_EPOLL_NS;
    if (bus->now_ns - bus->last_epoll_ns >= (quiet ? QUIET_EPOLL_NS : BUSY_EPOLL_NS)) {
        (void)rbi_epoll_events(bus, 0);
    }
}

uint32_t rbi_tick_silence_ms(const struct ringbus *bus)
{
    const uint64_t handler_ns = rbi_now_ns() - bus->now_ns;
    return rbi_ms_of(handler_ns > RBI_LATE_NS ? handler_ns : bus->late_ns);
}

/* A peer that gave us up says so a little later: what came between must not hide it. */
static RBI_COLD void note_late(struct ringbus *bus, uint64_t late_ns)
{
    if (late_ns > bus->late_ns || bus->now_ns - bus->late_at_ns > LATE_KEPT_NS) {
        bus->late_ns = late_ns;
        bus->late_at_ns = bus->now_ns;
    }
}

/* ---- a tick ---------------------------------------------------------------------------------- */

void rbi_tick(struct ringbus *bus, uint64_t now_ns)
{
    const uint64_t passed_ns = now_ns - bus->now_ns;
    /* As many polls to the next tick as make about half a millisecond at this pace. */
    if (passed_ns > TICK_LOST_NS) {
        bus->tick_polls = 1; /* another pace: halving would take as long again and again */
    } else if (passed_ns > TICK_GOAL_NS) {
        bus->tick_polls = bus->tick_polls > 1 ? bus->tick_polls / 2 : 1;
    } else if (bus->tick_polls < TICK_POLLS_MAX) {
        bus->tick_polls *= 2;
    }
    bus->tick_countdown = bus->tick_polls;
    bus->now_ns = now_ns;
    if (now_ns > bus->next_deadline_ns && now_ns - bus->next_deadline_ns > RBI_LATE_NS) {
        note_late(bus, now_ns - bus->next_deadline_ns);
    }
    rbi_core_publish(bus);
    rbi_wait_release(bus, bus->active_count);
    look_at_daemon(bus);
    rbi_turns_look(bus);
    rbi_load_before(bus);
    if (now_ns - bus->published_ns >= 100 * RBI_NS_PER_MS) {
        bus->published_ns = now_ns;
        rbi_counters_publish(bus);
        rbi_place_look(bus);
    }
}

void rbi_tick_judge(struct ringbus *bus)
{
    if (bus->now_ns >= bus->next_deadline_ns) {
        run_deadlines(bus);
    }
    report_daemon(bus);
}
