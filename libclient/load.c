/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/load.c - tells peers how much we have to do (shm/load.h). At ticks only: what waits is
 * counted before the lanes are read, and one batch of many is timed. And tells the daemon what the
 * application says of it.
 */
#include "shm/load.h"

#include "libclient/internal.h"

/* Looked at in one tick: at most so many messages of a lane, and lanes. */
#define LOAD_LANE_MAX  64U
#define LOAD_LANES_MAX 16U
/* A sample moves the mean by an eighth. */
#define EWMA_SHIFT 3U

/* Messages that wait in a lane, counted as far as that is cheap: they are read next. */
static unsigned waiting(const struct rbi_end *end)
{
    struct rbi_lane_rx look = end->rx; /* a position of our own */
    struct rbi_lane_record record;
    unsigned count = 0;
    while (count < LOAD_LANE_MAX && rbi_lane_peek(&look, &record) == RBI_LANE_OK) {
        rbi_lane_advance(&look, &record);
        count++;
    }
    return count;
}

void rbi_load_before(struct ringbus *bus)
{
    const unsigned lanes = bus->active_count;
    const unsigned looks = lanes < LOAD_LANES_MAX ? lanes : LOAD_LANES_MAX;
    uint64_t depth = 0;
    for (unsigned i = 0; i < looks; i++) {
        /* From where this poll begins: with many lanes others are seen each time. */
        const unsigned at =
            bus->next_end + i < lanes ? bus->next_end + i : bus->next_end + i - lanes;
        const struct rbi_end *end = bus->ends[at < lanes ? at : 0];
        depth += end->phase == RBI_END_LINKED ? waiting(end) : 0;
    }
    if (looks < lanes) {
        depth = depth * lanes / looks; /* the others are taken for like these */
    }
    bus->load_depth = depth;
    /* Another look at the clock: what the daemon has sent may have taken long. */
    bus->load_begin_ns = rbi_now_ns();
    rbi_load_write(bus->page, depth, bus->load_ewma_ns, bus->load_begin_ns);
}

void rbi_load_after(struct ringbus *bus, unsigned taken)
{
    if (taken == 0) {
        return;
    }
    const uint64_t now_ns = rbi_now_ns();
    const uint64_t each_ns = (now_ns - bus->load_begin_ns) / taken;
    const int64_t away = (int64_t)each_ns - (int64_t)bus->load_ewma_ns;
    bus->load_ewma_ns = bus->load_ewma_ns == 0
                            ? rbi_max_u64(each_ns, 1)
                            : (uint64_t)((int64_t)bus->load_ewma_ns + away / (1 << EWMA_SHIFT));
    bus->load_ewma_ns = rbi_max_u64(bus->load_ewma_ns, 1); /* 0 is unknown */
    bus->load_depth -= rbi_min_u64(taken, bus->load_depth);
    rbi_load_write(bus->page, bus->load_depth, bus->load_ewma_ns, now_ns);
}

int ringbus_report_load(struct ringbus *bus, uint32_t utilisation)
{
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    if (utilisation > RINGBUS_UTILISATION_MAX) {
        r = rbi_fail(bus, RINGBUS_E_ARGUMENT, "utilisation %u is above %u: it is in thousandths",
                     utilisation, RINGBUS_UTILISATION_MAX);
    } else {
        bus->load_reports += bus->load_reports == UINT32_MAX ? 2U : 1U; /* 0 is never */
        rbi_store_rlx(&bus->page->load_report, (uint64_t)bus->load_reports << 32 | utilisation);
    }
    rbi_leave(bus);
    return r;
}
