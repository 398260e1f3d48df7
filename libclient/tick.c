/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/tick.c - what a handle does now and then: reads the clock, judges its links,
 * looks at the daemon, runs the deadlines that are due.
 *
 * The clock is read once in so many polls, and before and after a sleep. While messages flow
 * nothing here asks the kernel: the daemon bumps our attention word in the directory when a
 * control message waits.
 */
#include "libclient/internal.h"

#define TICK_POLLS_MAX 1024U
#define TICK_GOAL_NS   (UINT64_C(500) * 1000)
/* Silence after which a busy poller asks the kernel whether a socket has news. */
#define QUIET_EPOLL_NS (100 * RBI_NS_PER_MS)
/* The same while messages flow without a pause: a dead daemon bumps no attention word. */
#define BUSY_EPOLL_NS (5000 * RBI_NS_PER_MS)

/* Whoever reads lives, slow as it may be. */
static bool has_read(struct rbi_end *end)
{
    uint64_t read_pos = 0;
    const bool moved = rbi_lane_read_pos(&end->tx, &read_pos) == 0 && read_pos != end->read_at_tick;
    end->read_at_tick = read_pos;
    return moved;
}

static void tick_ends(struct ringbus *bus)
{
    for (unsigned i = 0; i < bus->end_count; i++) {
        struct rbi_end *end = bus->ends[i];
        if (end->phase != RBI_END_LINKED || end->loop) {
            continue;
        }
        if (end->broken) {
            rbi_end_bad_peer(bus, end, "impossible read position");
            continue;
        }
        const bool due = rbi_link_deadline_ns(&end->fsm) <= bus->now_ns;
        if (end->heard || (due && has_read(end))) {
            const struct rbi_link_input data = {.type = RBI_LINK_DATA};
            end->heard = false;
            rbi_end_step(bus, end, &data);
        }
        if (due) {
            const struct rbi_link_input tick = {.type = RBI_LINK_TICK};
            rbi_end_step(bus, end, &tick);
        }
        if (RBI_UNLIKELY(end->muted)) {
            rbi_epoll_unmute(bus, end, bus->now_ns);
        }
        if (end->pending != 0) {
            rbi_end_flush_pending(bus, end);
        }
        if (end->pending != 0) {
            rbi_deadline_at_most(bus, bus->now_ns + RBI_NS_PER_MS);
        }
        rbi_deadline_at_most(bus, rbi_link_deadline_ns(&end->fsm));
    }
}

static void run_deadlines(struct ringbus *bus)
{
    bus->next_deadline_ns = RBI_NEVER;
    rbi_control_tick(bus, bus->now_ns);
    tick_ends(bus);
    rbi_calls_expire(bus, bus->now_ns);
    rbi_deadline_at_most(bus, rbi_target_tick(bus, bus->now_ns));
    rbi_deadline_at_most(bus, rbi_control_deadline_ns(bus));
    rbi_deadline_at_most(bus, rbi_calls_deadline_ns(&bus->calls));
}

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

void rbi_tick(struct ringbus *bus, uint64_t now_ns)
{
    const uint64_t passed_ns = now_ns - bus->now_ns;
    /* As many polls to the next tick as make about half a millisecond at this pace. */
    if (passed_ns > TICK_GOAL_NS) {
        bus->tick_polls = bus->tick_polls > 1 ? bus->tick_polls / 2 : 1;
    } else if (bus->tick_polls < TICK_POLLS_MAX) {
        bus->tick_polls *= 2;
    }
    bus->tick_countdown = bus->tick_polls;
    bus->now_ns = now_ns;
    rbi_core_publish(bus);
    rbi_wait_release(bus, bus->active_count);
    look_at_daemon(bus);
    if (now_ns >= bus->next_deadline_ns) {
        run_deadlines(bus);
    }
    if (now_ns - bus->published_ns >= 100 * RBI_NS_PER_MS) {
        bus->published_ns = now_ns;
        rbi_counters_publish(bus);
    }
    report_daemon(bus);
}
