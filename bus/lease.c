/* SPDX-License-Identifier: Apache-2.0 */
/* bus/lease.c - see bus/lease.h. */
#include "bus/lease.h"

#include <string.h>

#define NS_PER_S UINT64_C(1000000000)
#define MILLI    UINT64_C(1000)

__extension__ typedef unsigned __int128 rbi_u128;

uint64_t rbi_lease_static(uint64_t rate_milli, uint64_t callers)
{
    return rbi_max_u64(1, rate_milli / rbi_max_u64(callers, 1));
}

/* Heap sort: no allocation, no recursion, and no order of input that makes it slow. */
static void sift(const struct rbi_lease *leases, uint32_t *order, unsigned at, unsigned count)
{
    const uint32_t moved = order[at];
    for (unsigned child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && leases[order[child]].demand < leases[order[child + 1]].demand) {
            child++;
        }
        if (leases[order[child]].demand <= leases[moved].demand) {
            break;
        }
        order[at] = order[child];
        at = child;
    }
    order[at] = moved;
}

static void sort_by_demand(const struct rbi_lease *leases, uint32_t *order, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        order[i] = i;
    }
    for (unsigned i = count / 2; i-- > 0;) {
        sift(leases, order, i, count);
    }
    for (unsigned last = count; last-- > 1;) {
        const uint32_t greatest = order[0];
        order[0] = order[last];
        order[last] = greatest;
        sift(leases, order, 0, last);
    }
}

void rbi_lease_divide(uint64_t rate_milli,
                      struct rbi_lease *leases,
                      unsigned count,
                      uint32_t *order)
{
    uint64_t left = rate_milli;
    sort_by_demand(leases, order, count);
    for (unsigned i = 0; i < count; i++) {
        struct rbi_lease *lease = &leases[order[i]];
        lease->share = rbi_min_u64(lease->demand, left / (count - i));
        left -= lease->share;
    }
    /* Whoever wanted more than there was has got the same as all others who did: none is left. */
    for (unsigned i = 0; i < count; i++) {
        const uint64_t part = left / (count - i);
        leases[order[i]].share += part;
        left -= part;
    }
}

void rbi_lease_settle(uint64_t rate_milli, struct rbi_lease *leases, unsigned count)
{
    uint64_t free = rate_milli;
    for (unsigned i = 0; i < count; i++) {
        free -= rbi_min_u64(free, leases[i].told);
    }
    for (unsigned i = 0; i < count; i++) {
        struct rbi_lease *lease = &leases[i];
        if (lease->share > lease->told) {
            const uint64_t more = rbi_min_u64(lease->share - lease->told, free);
            lease->share = lease->told + more;
            free -= more;
        }
    }
}

void rbi_lease_holder_init(struct rbi_lease_holder *holder, uint64_t rate_milli)
{
    memset(holder, 0, sizeof *holder);
    holder->fallback = rbi_lease_static(rate_milli, RBI_LEASE_ALONE);
}

void rbi_lease_granted(struct rbi_lease_holder *holder,
                       uint64_t share,
                       uint64_t fallback,
                       uint64_t now_ns)
{
    holder->share = rbi_max_u64(share, 1);
    holder->fallback = rbi_max_u64(fallback, 1);
    holder->until_ns = now_ns + RBI_LEASE_FRESH_NS;
}

uint64_t rbi_lease_rate(const struct rbi_lease_holder *holder, uint64_t now_ns)
{
    return now_ns < holder->until_ns ? holder->share : holder->fallback;
}

bool rbi_lease_ask(struct rbi_lease_holder *holder, uint64_t now_ns, uint64_t *demand)
{
    const uint64_t passed_ns = now_ns - holder->asked_ns;
    if (holder->units == 0 || (holder->asked_ns != 0 && passed_ns < RBI_LEASE_PERIOD_NS)) {
        return false;
    }
    /* After a pause what has come is what comes in one period: over all of it, it would be less. */
    const uint64_t span_ns = holder->asked_ns == 0 || passed_ns > 2 * RBI_LEASE_PERIOD_NS
                                 ? RBI_LEASE_PERIOD_NS
                                 : passed_ns;
    const rbi_u128 milli = (rbi_u128)holder->units * MILLI * NS_PER_S / span_ns;
    *demand = milli > UINT64_MAX ? UINT64_MAX : (uint64_t)milli;
    holder->units = 0;
    holder->asked_ns = now_ns;
    return true;
}
