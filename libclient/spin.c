/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/spin.c - how long ringbus_wait() looks before it sleeps.
 *
 * Spinning pays when the next message comes sooner than a wake-up takes, on another core,
 * and when nobody else needs ours. None of this can be known beforehand, so it is
 * learned from each wait:
 *
 *   found while spinning           it pays: twice as long next time, up to spin_us
 *   slept less than a wake-up      whoever we waited for needed our core: do not spin at all
 *   takes across cores
 *   slept no longer than spin_us   a longer spin would have found it: twice as long
 *   slept longer                   half as long, down to nothing
 *   preempted while spinning, or   others need the core, perhaps those that we wait for:
 *   never found anything lately    do not spin for a while, and for longer each time
 */
#include "libclient/internal.h"

#include <ck_pr.h>

#define LOOKS_PER_CLOCK 32U
/* So many messages between two waits are a flow; the next few are worth waiting for together. */
#define FLOW_MESSAGES   8U
#define BACK_OFF_STALLS 96U
/* Nobody on another core wakes us within this; somebody who runs when we sleep does. */
#define SAME_CORE_NS 10000U
/* What a sleep and a wake-up cost beside the waiting. */
#define WAKE_NS 20000U
/* So long between two readings of the clock means that somebody else had the core. */
#define PREEMPTED_NS   200000U
#define HOLIDAY_WAITS  64U
#define HOLIDAY_MAX    4096U
#define FAILURES_MAX   8U
#define SPIN_FIRST_US  4U
#define FOREVER_US_MAX 1000000U

static void rest(struct rbi_spin *spin)
{
    spin->rest = spin->rest == 0 ? HOLIDAY_WAITS
                                 : (uint32_t)rbi_min_u64(spin->rest * UINT64_C(2), HOLIDAY_MAX);
    spin->holiday = spin->rest;
    spin->failures = 0;
    spin->now_us = 0;
}

static void longer(struct rbi_spin *spin)
{
    const uint32_t twice = spin->now_us < SPIN_FIRST_US ? SPIN_FIRST_US : spin->now_us * 2;
    spin->now_us = twice < spin->most_us ? twice : spin->most_us;
}

void rbi_spin_init(struct rbi_spin *spin, uint32_t most_us)
{
    spin->most_us = most_us < FOREVER_US_MAX ? most_us : FOREVER_US_MAX;
    spin->now_us = spin->most_us;
    spin->holiday = 0;
    spin->rest = 0;
    spin->failures = 0;
}

void rbi_spin_back_off(struct ringbus *bus)
{
    struct rbi_spin *spin = &bus->spin;
    const uint64_t received = bus->counters[RBI_COUNTER_received];
    const bool flows = received - spin->received >= FLOW_MESSAGES;
    spin->received = received;
    for (unsigned i = 0; flows && i < BACK_OFF_STALLS; i++) {
        ck_pr_stall();
    }
}

bool rbi_spin(struct ringbus *bus, uint64_t now_ns)
{
    struct rbi_spin *spin = &bus->spin;
    if (spin->now_us == 0) {
        rbi_wait_release(bus, bus->active_count);
        return rbi_core_give_way(bus, now_ns);
    }
    bool asked = false;
    const uint64_t end_ns = now_ns + spin->now_us * UINT64_C(1000);
    uint64_t last_ns = now_ns;
    do {
        for (unsigned i = 0; i < LOOKS_PER_CLOCK; i++) {
            if (rbi_wait_turn_ready(bus)) {
                longer(spin);
                spin->failures = 0;
                spin->rest = 0;
                return true;
            }
            ck_pr_stall();
        }
        /* What comes within the first looks comes from another core. */
        if (!asked) {
            rbi_wait_release(bus, bus->active_count);
            if (rbi_core_give_way(bus, now_ns)) {
                return true;
            }
            asked = true;
        }
        now_ns = rbi_now_ns();
        if (now_ns - last_ns > PREEMPTED_NS) {
            rest(spin);
            return false;
        }
        last_ns = now_ns;
    } while (now_ns < end_ns);
    if (++spin->failures >= FAILURES_MAX) {
        rest(spin);
    }
    return false;
}

void rbi_spin_learn(struct rbi_spin *spin, uint64_t slept_ns)
{
    if (spin->holiday > 0) {
        spin->holiday--;
        return;
    }
    if (slept_ns < SAME_CORE_NS) {
        spin->now_us = 0;
    } else if (slept_ns < spin->most_us * UINT64_C(1000) + WAKE_NS) {
        longer(spin);
    } else {
        spin->now_us /= 2;
    }
}
