/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_SHM_LOAD_H
#define RINGBUS_SHM_LOAD_H
/*
 * shm/load.h - how much an endpoint has to do, in its page: messages that wait in its lanes, and
 * how long one takes it. Written by its owner about every half millisecond while it polls, and
 * at each poll when those are longer; read by its peers without asking it. Words by themselves:
 * nothing depends on their order, and whoever reads them is prepared for any value.
 */
#include "shm/atomic.h"
#include "shm/base.h"
#include "shm/layout.h"

/* More is not told apart: so many messages that wait, so long for each. */
#define RBI_LOAD_DEPTH_MAX UINT64_C(0xffffffff)
#define RBI_LOAD_EWMA_MAX  (UINT64_C(3600) * 1000 * 1000 * 1000)

/** A load, as it was @c age_ns ago. */
struct rbi_load {
    uint64_t depth;   /* messages, at most RBI_LOAD_DEPTH_MAX; at least so many */
    uint64_t ewma_ns; /* of a message, at most RBI_LOAD_EWMA_MAX; 0: it has handled none yet */
    uint64_t age_ns;  /* UINT64_MAX: never written */
    uint64_t state;   /* enum rbi_endpoint_state, or anything */
};

static inline void
rbi_load_write(struct rbi_page *page, uint64_t depth, uint64_t ewma_ns, uint64_t now_ns)
{
    rbi_store_rlx(&page->load_depth, depth);
    rbi_store_rlx(&page->load_ewma_ns, ewma_ns);
    rbi_store_rlx(&page->load_at_ns, now_ns);
}

/** @param page  untrusted  @param now_ns  CLOCK_MONOTONIC. Cost: two lines of the page */
static inline void rbi_load_read(const struct rbi_page *page, uint64_t now_ns, struct rbi_load *out)
{
    const uint64_t at_ns = rbi_load_rlx(&page->load_at_ns);
    out->depth = rbi_min_u64(rbi_load_rlx(&page->load_depth), RBI_LOAD_DEPTH_MAX);
    out->ewma_ns = rbi_min_u64(rbi_load_rlx(&page->load_ewma_ns), RBI_LOAD_EWMA_MAX);
    out->state = rbi_load_rlx(&page->state);
    /* Of the future: it wrote since we read the clock, or lies. */
    out->age_ns = at_ns == 0 ? UINT64_MAX : now_ns - rbi_min_u64(at_ns, now_ns);
}

#endif
