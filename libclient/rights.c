/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/rights.c - orders of ringbusd that are about rights. */
#include "libclient/internal.h"

#include <inttypes.h>

void rbi_rights_revoked(struct ringbus *bus, struct rbi_end *end, const char *text)
{
    struct rbi_cluster *cluster = rbi_cluster_find(bus, end->peer.cluster);
    struct rbi_member *member =
        cluster != NULL ? rbi_member_find(cluster, end->peer.instance) : NULL;
    if (member != NULL && member->wanted) {
        member->denied = true;
    }
    /* What lies in its lane, and what it still writes there, was not allowed to come. */
    end->read_out = true;
    if (end->phase == RBI_END_LEAVING) {
        end->leave_reason = RBI_REASON_DENIED; /* it was still being read */
    }
    (void)rbi_fail(bus, RINGBUS_E_DENIED, "the link to %s has ended: %s", end->path, text);
    rbi_end_peer_gone(bus, end, RBI_REASON_DENIED);
}

void rbi_rights_changed(struct ringbus *bus)
{
    for (unsigned c = 0; c < bus->cluster_count; c++) {
        struct rbi_cluster *cluster = bus->clusters[c];
        for (unsigned m = 0; m < cluster->member_count; m++) {
            struct rbi_member *member = &cluster->members[m];
            if (!member->denied) {
                continue;
            }
            member->denied = false;
            member->retry_count = 0;
            if (member->wanted && member->end == NULL && member->incarnation != 0) {
                member->retry_ns = bus->now_ns;
                rbi_target_at_most(bus, member->retry_ns);
            }
        }
    }
}

void rbi_rights_replaced(struct ringbus *bus, const struct rbi_wire_replaced *body)
{
    if (bus->closing) {
        return;
    }
    (void)rbi_fail(bus, RINGBUS_E_CLOSED, "%s was taken over by a process of uid %" PRIu32,
                   bus->self_path, body->uid);
    rbi_emit_simple(bus, RINGBUS_EVENT_DOWN, &bus->self, bus->self_path, RBI_REASON_REPLACED,
                    RINGBUS_E_CLOSED);
    bus->closing = bus->replaced = true;
    bus->state = RBI_ENDPOINT_CLOSED;
    rbi_store_rlx(&bus->page->state, bus->state);
    rbi_target_introductions_lost(bus);
    for (unsigned i = 0; i < bus->end_count; i++) {
        struct rbi_end *end = bus->ends[i];
        if (!end->loop) {
            end->link_id = 0;     /* the daemon has told the peers */
            end->read_out = true; /* what is in it is for the one who has the name now */
            rbi_end_peer_gone(bus, end, RBI_REASON_REPLACED);
        }
    }
    rbi_control_close(bus);
}
