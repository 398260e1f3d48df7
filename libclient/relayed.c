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
    end->hold_bytes += RBI_LINE;
    if (end->phase == RBI_END_LINKED) {
        const struct rbi_link_input input = {.type = RBI_LINK_CUT, .hold = hold.on != 0};
        rbi_end_step(bus, end, &input);
    }
}
