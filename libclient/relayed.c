/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/relayed.c - see libclient/relayed.h. */
#include "libclient/internal.h"

void rbi_relayed_hold(struct ringbus *bus, struct rbi_end *end, const struct rbi_record *record)
{
    struct rbi_hold_body hold;
    if (!end->relayed) {
        rbi_end_bad_peer(bus, end, "HOLD on a link within the host");
        return;
    }
    if (rbi_hold_decode(record->payload, record->payload_size, &hold) != 0) {
        rbi_end_bad_peer(bus, end, "HOLD cannot be read");
        return;
    }
    end->inserted_bytes += RBI_LINE;
    if (end->phase == RBI_END_LINKED) {
        const struct rbi_link_input input = {.type = RBI_LINK_CUT, .hold = hold.on != 0};
        rbi_end_step(bus, end, &input);
    }
}

/* ---- what earlier links left ---------------------------------------------------------------- */

static void stop_waiting(struct ringbus *bus, struct rbi_end *end)
{
    if ((end->hindered & RBI_HINDERED_BEHIND) != 0) {
        end->hindered &= (uint8_t)~RBI_HINDERED_BEHIND;
        bus->behind--;
    }
}

void rbi_relayed_up(struct ringbus *bus, struct rbi_end *end)
{
    if (!end->relayed || end->phase != RBI_END_LINKED) {
        return;
    }
    rbi_gap_forget_others(bus, &end->peer);
    const bool told = rbi_gap_tell(bus, end);
    if ((!told || rbi_redeliver_waits(bus, end)) && (end->hindered & RBI_HINDERED_BEHIND) == 0) {
        end->hindered |= RBI_HINDERED_BEHIND;
        bus->behind++;
        bus->reap_needed = true; /* with this poll: rbi_relayed_step() */
        rbi_deadline_at_most(bus, bus->now_ns + RBI_NS_PER_MS);
    }
}

void rbi_relayed_step(struct ringbus *bus)
{
    for (unsigned i = 0; bus->behind > 0 && i < bus->end_count; i++) {
        struct rbi_end *end = bus->ends[i];
        if ((end->hindered & RBI_HINDERED_BEHIND) != 0 && end->phase == RBI_END_LINKED &&
            rbi_gap_tell(bus, end) && !rbi_redeliver_waits(bus, end)) {
            stop_waiting(bus, end);
        }
    }
}

void rbi_relayed_end(struct ringbus *bus, struct rbi_end *end)
{
    stop_waiting(bus, end);
    if (end->relayed) {
        rbi_gap_take_back(bus, end);
        rbi_seen_note(bus, end);
    }
}

int rbi_relayed_refuse(struct ringbus *bus, const struct rbi_end *end)
{
    rbi_count(bus, RBI_COUNTER_full, 1);
    return rbi_fail(bus, RINGBUS_E_FULL,
                    "what an earlier link to %s left goes first: wait, dispatch, retry", end->path);
}
