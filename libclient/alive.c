/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/alive.c - a sign of life from an application that works on one message for longer
 * than its peers wait. PONG comes from ringbus_poll() alone, so that a hung application does
 * not look alive; one that is only busy says so itself.
 */
#include "libclient/internal.h"

/* How often a peer must hear from us, in milliseconds; 0: it does not judge us by that. */
static uint32_t wanted_every_ms(const struct rbi_end *end)
{
    const struct rbi_link_fsm *link = &end->fsm;
    if (end->phase != RBI_END_LINKED || end->loop) {
        return 0;
    }
    if (link->theirs == RBI_USE_UP) { /* it PINGs, and wants an answer within its interval */
        return link->their_terms.ping_interval_ms;
    }
    return link->mine == RBI_USE_UP ? link->my_terms.ping_interval_ms : 0;
}

static uint64_t say_to_all(struct ringbus *bus, uint64_t now_ns)
{
    uint64_t next_ns = now_ns + 1000 * RBI_NS_PER_MS;
    for (unsigned i = 0; i < bus->end_count; i++) {
        struct rbi_end *end = bus->ends[i];
        const uint64_t half_ns = wanted_every_ms(end) * RBI_NS_PER_MS / 2;
        if (half_ns == 0) {
            continue;
        }
        if (now_ns - end->alive_said_ns >= half_ns) {
            end->alive_said_ns = now_ns;
            rbi_end_say_alive(bus, end);
        }
        next_ns = rbi_min_u64(next_ns, end->alive_said_ns + half_ns);
    }
    return next_ns;
}

int ringbus_alive(struct ringbus *bus)
{
    const int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    const uint64_t now_ns = rbi_now_coarse_ns();
    if (now_ns >= bus->alive_due_ns) {
        bus->alive_due_ns = say_to_all(bus, now_ns);
    }
    rbi_leave(bus);
    return 0;
}
