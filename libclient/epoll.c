/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/epoll.c - the epoll set, and what to do with each event: the daemon's socket, the
 * bell of each link, an eventfd of our own for ringbus_wake() and, for external loops, a timer.
 */
#include "libclient/internal.h"

#include <errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define EVENTS_PER_WAIT 64
/*
 * Honest rings follow a record, the release of one, or a payload that is given back. A peer
 * that rings more often in a row for nothing is not listened to for a while, or it would keep
 * us awake for ever; what it writes meanwhile is found when we look by ourselves, and its
 * death is still reported.
 */
#define IDLE_RINGS_MAX 32U
#define MUTE_NS        (100 * RBI_NS_PER_MS)
/* The epoch grows by two each time. */
#define BELL_EMPTY_EPOCHS 64U

/*
 * A bell is reported once a ring, so that it need not be emptied after each: one system call
 * less a wake-up. That its peer has closed it is reported too.
 */
#define BELL_EVENTS (EPOLLIN | EPOLLRDHUP | EPOLLET)

int rbi_epoll_add_bell(struct ringbus *bus, struct rbi_end *end, int bell)
{
    struct epoll_event event = {.events = BELL_EVENTS, .data.u64 = (uint64_t)(uintptr_t)end};
    return epoll_ctl(bus->epoll, EPOLL_CTL_ADD, bell, &event) == 0 ? 0 : -errno;
}

static int control_set(struct ringbus *bus, int operation, int fd, uint64_t tag, bool writable)
{
    struct epoll_event event = {.events = EPOLLIN | (writable ? EPOLLOUT : 0U), .data.u64 = tag};
    return epoll_ctl(bus->epoll, operation, fd, &event) == 0 ? 0 : -errno;
}

int rbi_epoll_add(struct ringbus *bus, int fd, uint64_t tag, bool writable)
{
    return control_set(bus, EPOLL_CTL_ADD, fd, tag, writable);
}

int rbi_epoll_modify(struct ringbus *bus, int fd, uint64_t tag, bool writable)
{
    return control_set(bus, EPOLL_CTL_MOD, fd, tag, writable);
}

void rbi_epoll_remove(struct ringbus *bus, int fd)
{
    (void)epoll_ctl(bus->epoll, EPOLL_CTL_DEL, fd, NULL);
}

int rbi_epoll_init(struct ringbus *bus)
{
    cpu_set_t cpus;
    bus->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (bus->epoll < 0) {
        return -errno;
    }
    bus->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (bus->wake < 0) {
        return -errno;
    }
    rbi_spin_init(&bus->spin, bus->spin_us);
    /* Bound to one core, perhaps with those that we wait for: spinning has to prove itself. */
    if (sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) == 1) {
        bus->spin.now_us = 0;
    }
    return rbi_epoll_add(bus, bus->wake, RBI_EPOLL_WAKE, false);
}

void rbi_epoll_deinit(struct ringbus *bus)
{
    int *fds[] = {&bus->epoll, &bus->wake, &bus->timer};
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(fds); i++) {
        if (*fds[i] >= 0) {
            (void)close(*fds[i]);
            *fds[i] = -1;
        }
    }
}

static void drain_counter(int fd)
{
    uint64_t value;
    while (read(fd, &value, sizeof value) < 0 && errno == EINTR) {
    }
}

static void listen_to(struct ringbus *bus, struct rbi_end *end, bool listen)
{
    /* That it is hung up is no ring: it comes once, and a residue waits for it. */
    struct epoll_event event = {.events = listen ? BELL_EVENTS : EPOLLRDHUP | EPOLLET,
                                .data.u64 = (uint64_t)(uintptr_t)end};
    if (epoll_ctl(bus->epoll, EPOLL_CTL_MOD, end->bell, &event) == 0) {
        end->muted = !listen;
    }
}

void rbi_epoll_unmute(struct ringbus *bus, struct rbi_end *end, uint64_t now_ns)
{
    if (now_ns >= end->unmute_ns) {
        end->idle_rings = 0;
        listen_to(bus, end, true);
    }
    if (end->muted) { /* not yet, or the kernel refused: its death would be all that we hear */
        end->unmute_ns = now_ns >= end->unmute_ns ? now_ns + MUTE_NS : end->unmute_ns;
    }
}

/* Judges a ring that was just taken in. */
static void note_ring(struct ringbus *bus, struct rbi_end *end)
{
    struct rbi_lane_record raw;
    /* All only grow by what was really written: a liar cannot count anything twice. */
    const uint64_t moved = end->rx.pos + rbi_lane_unread_first(&end->tx) + end->refs.collected;
    if (end->phase != RBI_END_LINKED || rbi_lane_peek(&end->rx, &raw) != RBI_LANE_EMPTY) {
        return;
    }
    if ((int64_t)(moved - end->ring_seen) > 0) {
        end->ring_seen = moved;
        end->idle_rings = 0;
    } else if (++end->idle_rings > IDLE_RINGS_MAX) {
        end->unmute_ns = rbi_now_ns() + MUTE_NS;
        rbi_due_at_most(bus, end, end->unmute_ns);
        listen_to(bus, end, false);
    }
}

/*
 * A peer rings at most twice for each time that we announce sleep (once for a record, once
 * for room), and its socket takes more than 250 bytes: emptied every so often, it never
 * fills, and no ring goes unreported.
 */
static int empty_bell(const struct ringbus *bus, struct rbi_end *end, uint32_t events)
{
    const uint64_t epoch = rbi_load_rlx(&bus->page->sleep_epoch);
    if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
        return -EPIPE;
    }
    if (epoch - end->emptied_epoch < BELL_EMPTY_EPOCHS) {
        return 0;
    }
    end->emptied_epoch = epoch;
    return rbi_bell_drain(end->bell);
}

static void handle_event(struct ringbus *bus, uint64_t tag, uint32_t events)
{
    switch (tag) {
    case RBI_EPOLL_CONTROL:
        rbi_control_flush(bus);
        rbi_control_input(bus);
        break;
    case RBI_EPOLL_WAKE:
        drain_counter(bus->wake);
        bus->woken = true;
        break;
    case RBI_EPOLL_TIMER:
        drain_counter(bus->timer);
        bus->timer_armed_ns = RBI_NEVER;
        break;
    default: {
        /* NOLINTNEXTLINE(performance-no-int-to-ptr): epoll hands back what it was given */
        struct rbi_end *end = (struct rbi_end *)(uintptr_t)tag;
        end->hung_up |= (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
        if (end->residue) {
            rbi_residue_hung_up(bus, end);
        } else if (end->phase == RBI_END_CLOSED) {
            break; /* kept for an open claim alone */
        } else if (empty_bell(bus, end, events) == -EPIPE) {
            /* Its end of the pair is closed: out of the set, or it would wake us for ever. */
            rbi_epoll_remove(bus, end->bell);
            rbi_end_peer_gone(bus, end, rbi_relayed_lost(end));
        } else {
            note_ring(bus, end);
        }
        break;
    }
    }
}

int rbi_epoll_events(struct ringbus *bus, int timeout_ms)
{
    struct epoll_event events[EVENTS_PER_WAIT];
    bus->last_epoll_ns = bus->now_ns;
    const int n = epoll_wait(bus->epoll, events, EVENTS_PER_WAIT, timeout_ms);
    if (n < 0) {
        return errno == EINTR ? 0 : -errno;
    }
    for (int i = 0; i < n; i++) {
        handle_event(bus, events[i].data.u64, events[i].events);
    }
    return n;
}
