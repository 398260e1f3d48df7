/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/wait.c - sleeping and waking (shm/bell.h has the protocol).
 *
 * ringbus_wait() spins for a share of spin_us that adapts to whether spinning pays (spin.c),
 * then sleeps in the epoll set (epoll.c). So does whoever has our descriptor in a loop of his.
 */
#include "libclient/internal.h"

#include <ck_pr.h>
#include <errno.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define SPIN_LOOKS 32U
/* While chunks are short, looks at least so often: loans of our own come back without a bell. */
#define STARVED_SLEEP_MS 10
/* Slept past this since the last tick, the next poll looks at deadlines and daemon. */
#define TICK_DUE_NS (RBI_NS_PER_MS / 2)
/* How often a busy endpoint that waits asks the kernel. */
#define BUSY_ASK_NS RBI_NS_PER_MS

/* ---- is there anything to do? ---------------------------------------------------------------- */

bool rbi_wait_end_ready(const struct rbi_end *end)
{
    struct rbi_lane_record raw;
    return end->phase == RBI_END_LEAVING ||
           (end->phase == RBI_END_LINKED && rbi_lane_peek(&end->rx, &raw) != RBI_LANE_EMPTY);
}

/*
 * All lanes: before sleeping none may be missed, however many there are. From where the
 * last poll stopped, so that one that is never empty hides none behind it.
 */
bool rbi_wait_lane_ready(struct ringbus *bus)
{
    unsigned at = bus->next_end;
    for (unsigned i = 0; i < bus->end_count; i++, at++) {
        if (at >= bus->end_count) {
            at = 0;
        }
        struct rbi_end *end = bus->ends[at];
        if (rbi_wait_end_due(end)) {
            rbi_turn_promote(bus, end);
            bus->next_end = end->position;
            return true;
        }
    }
    return false;
}

/* After the announcement of sleep: also sees bursts that ended before it (shm/bell.h). */
static bool second_look(struct ringbus *bus)
{
    for (unsigned i = 0; i < bus->end_count; i++) {
        rbi_bell_burst_seen(bus->ends[i]->peer_written_hint);
    }
    return rbi_wait_lane_ready(bus);
}

/* What polls have read and not yet said so: nobody may wait for room while we sleep. */
void rbi_wait_release(struct ringbus *bus, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct rbi_end *end = bus->ends[i];
        if (end->rx.pos != end->rx.published && end->phase == RBI_END_LINKED) {
            rbi_poll_release(bus, end);
        }
    }
}

/* The lanes that a poll would look at. */
bool rbi_wait_turn_ready(struct ringbus *bus)
{
    for (unsigned i = bus->active_count; i > 0; i--) {
        if (bus->next_end >= bus->active_count) {
            bus->next_end = 0;
        }
        if (rbi_wait_end_due(bus->ends[bus->next_end])) {
            return true;
        }
        bus->next_end++;
    }
    for (unsigned i = 0; i < rbi_sweep(bus) && bus->end_count > bus->active_count; i++) {
        if (bus->next_quiet >= bus->end_count || bus->next_quiet < bus->active_count) {
            bus->next_quiet = bus->active_count;
        }
        struct rbi_end *end = bus->ends[bus->next_quiet++];
        if (rbi_wait_end_due(end)) {
            rbi_turn_promote(bus, end);
            return true;
        }
    }
    return false;
}

static bool has_room(struct rbi_end *end)
{
    uint64_t read_pos = 0;
    if (!end->usable || rbi_lane_read_pos(&end->tx, &read_pos) != 0) {
        return true; /* the next send finds out what is wrong */
    }
    /*
     * Seen is seen: room that is there now is there for the next send, whatever the peer says
     * then.
     */
    end->tx.read_seen = read_pos;
    const uint64_t capacity = end->tx.mask + 1;
    const uint64_t room = capacity - (end->tx.pos - read_pos);
    /* The largest record needs the whole lane, and not a line more. */
    return room >=
           rbi_min_u64(end->want_bytes + RBI_LANE_CONTROL_ROOM + UINT64_C(2) * RBI_LINE, capacity);
}

/* Ends that a send found full and that have room again leave the list. */
static bool some_room(struct ringbus *bus)
{
    bool any = false;
    struct rbi_end **link = &bus->blocked;
    while (*link != NULL) {
        struct rbi_end *end = *link;
        if (has_room(end)) {
            *link = end->next_blocked;
            end->blocked = false;
            rbi_bell_want_none(end->own_want_pos);
            any = true;
        } else {
            link = &end->next_blocked;
        }
    }
    return any;
}

static void want_no_return(struct ringbus *bus)
{
    for (unsigned i = 0; i < bus->end_count; i++) {
        if (!bus->ends[i]->blocked) {
            rbi_bell_want_none(bus->ends[i]->own_want_pos);
        }
    }
}

static bool some_chunk(struct ringbus *bus)
{
    if (bus->chunk_starved) {
        for (unsigned i = 0; i < bus->end_count; i++) {
            /* The look of B8: after it, returns that were put before a release are seen. */
            (void)rbi_lane_unread_first(&bus->ends[i]->tx);
        }
        rbi_send_collect(bus);
        /* Whoever took the returns in: another send may have done so since. */
        if (bus->returned != bus->returned_until) {
            bus->chunk_starved = false;
            want_no_return(bus);
            return true;
        }
    }
    return false;
}

static bool work_waits(struct ringbus *bus)
{
    return bus->woken || bus->events.count > 0 || bus->events.lost || bus->reap_needed ||
           bus->daemon_lost_pending || bus->daemon_back_pending;
}

/* ---- sleeping -------------------------------------------------------------------------------- */

static void want_space(struct ringbus *bus)
{
    const uint64_t ticket = rbi_load_rlx(&bus->page->sleep_epoch) / 2;
    for (struct rbi_end *end = bus->blocked; end != NULL; end = end->next_blocked) {
        /* Half a lane at once, if it can be had: a wake-up for each record would cost more. */
        const uint64_t capacity = end->tx.mask + 1;
        const uint64_t need = rbi_max_u64(
            rbi_align_up(end->want_bytes + RBI_LANE_CONTROL_ROOM + UINT64_C(2) * RBI_LINE,
                         RBI_LINE),
            capacity / 2);
        /* All free at the latest when everything written has been read. */
        const uint64_t pos = need >= capacity ? end->tx.pos : end->tx.pos + need - capacity;
        rbi_bell_want_space(end->own_want_pos, pos, ticket);
    }
    for (unsigned i = 0; bus->chunk_starved && i < bus->end_count; i++) {
        struct rbi_end *end = bus->ends[i];
        if (!end->blocked && !end->loop && rbi_refs_used(&end->refs) > 0) {
            /* Returns have no position: whatever it says next may have brought one. */
            rbi_bell_want_space(end->own_want_pos, end->tx.read_seen, ticket);
        }
    }
}

static int sleep_ms(const struct ringbus *bus, uint64_t now_ns, uint64_t until_ns)
{
    uint64_t end_ns = until_ns < bus->next_deadline_ns ? until_ns : bus->next_deadline_ns;
    if (end_ns == RBI_NEVER) {
        return bus->chunk_starved ? STARVED_SLEEP_MS : -1;
    }
    const uint64_t ns = end_ns > now_ns ? end_ns - now_ns : 0;
    const uint64_t ms = (ns + RBI_NS_PER_MS - 1) / RBI_NS_PER_MS;
    const uint64_t most = bus->chunk_starved ? STARVED_SLEEP_MS : INT32_MAX;
    return (int)rbi_min_u64(ms, most);
}

/*
 * One sleep. @return events of the set, < 0 -errno; @p found: something is there, and to be
 * reported now: a look that finds room or a chunk also forgets that they were wanted.
 */
static int sleep_once(struct ringbus *bus, uint64_t *clock_ns, uint64_t until_ns, bool *found)
{
    rbi_wait_release(bus, bus->end_count);
    rbi_bell_announce(&bus->page->sleep_epoch);
    want_space(bus);
    /* The second look: what came before the announcement rang no bell. */
    if (second_look(bus) || some_room(bus) || some_chunk(bus)) {
        rbi_bell_retract(&bus->page->sleep_epoch);
        *found = true;
        return 0;
    }
    rbi_count(bus, RBI_COUNTER_sleeps, 1);
    rbi_counters_publish(bus); /* a quiet endpoint shows its true figures */
    const int n = rbi_epoll_events(bus, sleep_ms(bus, *clock_ns, until_ns));
    const uint64_t now_ns = rbi_now_ns();
    rbi_spin_learn(&bus->spin, now_ns - *clock_ns);
    *clock_ns = now_ns;
    rbi_bell_retract(&bus->page->sleep_epoch);
    if (now_ns - bus->now_ns > TICK_DUE_NS) {
        bus->tick_countdown = 1;
    }
    return n;
}

/*
 * Nobody rings a busy endpoint: it looks instead of sleeping, and asks the kernel for what
 * is not in a lane now and then.
 */
static int look_busily(struct ringbus *bus, uint64_t now_ns, uint64_t *asked_ns)
{
    for (unsigned i = 0; i < SPIN_LOOKS; i++) {
        if (rbi_wait_turn_ready(bus)) {
            return 1;
        }
        ck_pr_stall();
    }
    rbi_wait_release(bus, bus->active_count);
    rbi_core_idle_turn(bus);
    if (now_ns - *asked_ns < BUSY_ASK_NS) {
        return 0;
    }
    *asked_ns = now_ns;
    return rbi_epoll_events(bus, 0);
}

static int do_wait(struct ringbus *bus, int timeout_ms)
{
    if (bus->dirty != NULL) {
        rbi_send_flush(bus);
    }
    rbi_spin_back_off(bus);
    const uint64_t start_ns = rbi_now_ns();
    const uint64_t until_ns =
        timeout_ms < 0 ? RBI_NEVER : start_ns + (uint64_t)timeout_ms * RBI_NS_PER_MS;
    uint64_t now_ns = start_ns;
    uint64_t asked_ns = 0;
    for (;;) {
        if (work_waits(bus) || some_room(bus) || some_chunk(bus) || rbi_wait_lane_ready(bus)) {
            bus->woken = false;
            return 1;
        }
        if (now_ns >= bus->next_deadline_ns) {
            bus->tick_countdown = 1;
            return 1;
        }
        if (now_ns >= until_ns && timeout_ms != 0) {
            return 0;
        }
        if (timeout_ms != 0 && bus->busy_mode) {
            const int n = look_busily(bus, now_ns, &asked_ns);
            if (n < 0) {
                return rbi_fail_errno(bus, n, "waiting");
            }
            now_ns = rbi_now_ns();
            continue;
        }
        if (timeout_ms != 0 && bus->blocked == NULL && !bus->chunk_starved &&
            rbi_spin(bus, now_ns)) {
            return 1;
        }
        now_ns = rbi_now_ns();
        bool found = false;
        const int n = sleep_once(bus, &now_ns, rbi_max_u64(until_ns, now_ns), &found);
        if (found) {
            return 1;
        }
        if (n < 0) {
            return rbi_fail_errno(bus, n, "waiting");
        }
        if (n > 0) {
            continue; /* what it was shows in the next look; a stale ring shows nothing */
        }
        if (timeout_ms == 0) {
            return 0;
        }
    }
}

int ringbus_wait(struct ringbus *bus, int timeout_ms)
{
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    if (bus->in_callback) {
        r = rbi_fail(bus, RINGBUS_E_BUSY, "ringbus_wait() inside a callback");
    } else {
        r = do_wait(bus, timeout_ms);
    }
    rbi_leave(bus);
    return r;
}

int ringbus_wake(struct ringbus *bus)
{
    /* Any thread, any time: touches nothing but what never changes while the handle lives. */
    const uint64_t one = 1;
    if (bus == NULL) {
        return RINGBUS_E_ARGUMENT;
    }
    if (rbi_load_rlx(bus->guard) != RBI_GUARD_ALIVE) {
        return RINGBUS_E_WRONG_PROCESS;
    }
    const int saved = errno;
    while (write(bus->wake, &one, sizeof one) < 0 && errno == EINTR) {
    }
    errno = saved; /* signal handlers call us */
    return 0;
}

/* ---- external loops -------------------------------------------------------------------------- */

static void arm_timer(struct ringbus *bus)
{
    if (bus->next_deadline_ns == bus->timer_armed_ns || bus->timer < 0) {
        return;
    }
    const uint64_t at =
        bus->next_deadline_ns == RBI_NEVER ? 0 : rbi_max_u64(bus->next_deadline_ns, 1);
    const struct itimerspec when = {.it_value = {.tv_sec = (time_t)(at / UINT64_C(1000000000)),
                                                 .tv_nsec = (long)(at % UINT64_C(1000000000))}};
    if (timerfd_settime(bus->timer, TFD_TIMER_ABSTIME, &when, NULL) != 0) {
        (void)ringbus_wake(bus); /* the next poll tries again */
        return;
    }
    bus->timer_armed_ns = bus->next_deadline_ns;
}

void rbi_wait_rearm(struct ringbus *bus)
{
    arm_timer(bus);
}

void rbi_wait_nudge(struct ringbus *bus)
{
    if (bus->external_loop && !bus->polling) {
        (void)ringbus_wake(bus);
    }
}

void rbi_wait_prepare(struct ringbus *bus)
{
    if (bus->dirty != NULL) {
        rbi_send_flush(bus); /* what callbacks sent with RINGBUS_MORE */
    }
    /* Takes in what made the descriptor readable; what is left keeps it readable. */
    (void)rbi_epoll_events(bus, 0);
    bus->tick_countdown = 1;
    bus->woken = false;
    arm_timer(bus);
    rbi_wait_release(bus, bus->end_count);
    rbi_bell_retract(&bus->page->sleep_epoch);
    rbi_bell_announce(&bus->page->sleep_epoch);
    want_space(bus);
    if (second_look(bus) || some_room(bus) || some_chunk(bus) || work_waits(bus)) {
        (void)ringbus_wake(bus);
    } else if (bus->chunk_starved) {
        rbi_deadline_at_most(bus, rbi_now_ns() + STARVED_SLEEP_MS * RBI_NS_PER_MS);
        arm_timer(bus);
    }
}

int ringbus_fd(struct ringbus *bus)
{
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    if (bus->timer < 0) {
        bus->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
        r = bus->timer < 0 ? -errno : rbi_epoll_add(bus, bus->timer, RBI_EPOLL_TIMER, false);
        if (r < 0) {
            if (bus->timer >= 0) {
                (void)close(bus->timer);
                bus->timer = -1; /* so that the next call tries again */
            }
            r = rbi_fail_errno(bus, r, "timer of the descriptor");
            rbi_leave(bus);
            return r;
        }
    }
    bus->external_loop = true;
    (void)ringbus_wake(bus); /* so that the first poll comes, which prepares for sleep */
    rbi_leave(bus);
    return bus->epoll;
}
