/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/core.c - giving way to a peer that shares our core.
 *
 * Whoever spins for the answer of somebody on the same core keeps that answer from being
 * written: two ticks of the scheduler, 8 ms, a round trip. So each endpoint says in its
 * page which core it runs on and when, and one that finds nothing for a while gives the core away
 * when a peer that is awake was last seen on it. What a liar writes there costs us a
 * system call in a few microseconds of finding nothing.
 */
#include "libclient/internal.h"

#include <sched.h>
#include <time.h>

/* Looks and refused sends between two questions whose core this is: a few microseconds. */
#define IDLE_TURNS 256U
/* The word in the page: milliseconds of the clock, and 1 + the core in the low bits. */
#define CORE_BITS 16U
#define CORES_MAX 0xffff
/* Longer than a real-time spinner is allowed to keep the others off a core. */
#define FRESH_MS UINT64_C(2000)
/* Partners that are asked at once, in turn. */
#define PARTNERS_MAX 8U
/* So often is the core given away in a row before sleeping. */
#define YIELDS_MAX 8U
/* In a row, before napping. */
#define IN_VAIN_MAX 16U
#define NAP_NS      20000
/* So long away means that somebody else used it. Sleeping is better then: a wake-up preempts. */
#define LONG_AWAY_NS  200000U
#define HOLIDAY_WAITS 64U

static uint64_t time_of(uint64_t now_ns)
{
    return now_ns / RBI_NS_PER_MS;
}

void rbi_core_publish(struct ringbus *bus)
{
    const int cpu = sched_getcpu();
    const uint64_t core = cpu >= 0 && cpu < CORES_MAX ? (uint64_t)cpu + 1 : 0;
    const uint64_t word = time_of(bus->now_ns) << CORE_BITS | core;
    if (word != bus->core) {
        bus->core = word;
        rbi_store_rlx(&bus->page->core, word);
    }
}

/* Untrusted. Old news do not count: whoever only sends, or has moved since, tells nothing. */
static bool is_same(uint64_t own, uint64_t peer)
{
    const uint64_t age_ms = (own >> CORE_BITS) - (peer >> CORE_BITS);
    return ((own ^ peer) & CORES_MAX) == 0 && (own & CORES_MAX) != 0 &&
           age_ms + FRESH_MS <= 2U * FRESH_MS;
}

/* Whether a peer that is awake was last seen on our core. */
static bool is_shared(struct ringbus *bus)
{
    rbi_core_publish(bus);
    const unsigned count = bus->active_count < PARTNERS_MAX ? bus->active_count : PARTNERS_MAX;
    for (unsigned i = 0; i < count; i++) {
        bus->core_partner = bus->core_partner + 1 < bus->active_count ? bus->core_partner + 1 : 0;
        const struct rbi_page *page = bus->ends[bus->core_partner]->peer_page.base;
        if (page != NULL && is_same(bus->core, rbi_load_rlx(&page->core)) &&
            (rbi_load_rlx(&page->sleep_epoch) & 1) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_real_time(void)
{
    const int policy = sched_getscheduler(0);
    return policy == SCHED_FIFO || policy == SCHED_RR;
}

/* To whoever has a lower real-time priority one cannot yield: after trying in vain, nap. */
static void give_away(struct ringbus *bus)
{
    if (++bus->core_in_vain > IN_VAIN_MAX && is_real_time()) {
        const struct timespec nap = {.tv_nsec = NAP_NS};
        (void)nanosleep(&nap, NULL);
    } else {
        (void)sched_yield();
    }
}

void rbi_core_idle_turn(struct ringbus *bus)
{
    if (++bus->idle_turns % IDLE_TURNS != 0) {
        return;
    }
    const uint64_t traffic = bus->counters[RBI_COUNTER_received] +
                             bus->counters[RBI_COUNTER_replies] + bus->counters[RBI_COUNTER_sent];
    if (traffic != bus->core_traffic) {
        bus->core_traffic = traffic; /* nothing now, but not idle either */
        bus->core_in_vain = 0;
    } else if (is_shared(bus)) {
        give_away(bus);
    }
}

bool rbi_core_give_way(struct ringbus *bus, uint64_t now_ns)
{
    if (bus->core_holiday > 0) {
        bus->core_holiday--;
        return false;
    }
    for (unsigned i = 0; i < YIELDS_MAX && is_shared(bus); i++) {
        (void)sched_yield();
        if (rbi_wait_turn_ready(bus)) {
            return true;
        }
    }
    if (rbi_now_ns() - now_ns > LONG_AWAY_NS) {
        bus->core_holiday = HOLIDAY_WAITS;
    }
    return false;
}
