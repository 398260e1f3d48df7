/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/divert.c - see libclient/divert.h. */
#include "libclient/internal.h"

void rbi_divert_forget(struct ringbus *bus)
{
    if (bus->divert.end != NULL) {
        bus->divert.end->hindered &= (uint8_t)~RBI_HINDERED_DIVERTED;
        bus->divert.end = NULL;
    }
}

void rbi_divert_note(struct ringbus *bus, struct rbi_end *end, uint64_t key)
{
    rbi_divert_forget(bus);
    bus->divert.end = end;
    bus->divert.key = key;
    end->hindered |= RBI_HINDERED_DIVERTED;
}

bool rbi_divert_take(struct ringbus *bus, struct rbi_end *end, uint64_t key)
{
    if (RBI_LIKELY((end->hindered & RBI_HINDERED_DIVERTED) == 0)) {
        return false;
    }
    rbi_divert_forget(bus);
    return bus->divert.key == key;
}

void rbi_divert_say(struct ringbus *bus, const struct rbi_end *end, struct rbi_attributes *out)
{
    const struct rbi_cluster *cluster = rbi_cluster_find(bus, end->peer.cluster);
    *out = (struct rbi_attributes){.present = RBI_ATTRIBUTE_EPOCH,
                                   .diverted = true,
                                   .epoch = cluster != NULL ? (uint16_t)cluster->epoch : 0};
}

int rbi_divert_send(struct ringbus *bus, struct rbi_end *end, const struct rbi_outgoing *out)
{
    struct rbi_attributes attributes;
    struct rbi_outgoing marked = *out;
    if (out->attributes != NULL) {
        attributes = *out->attributes;
        attributes.diverted = true;
    } else {
        rbi_divert_say(bus, end, &attributes);
    }
    marked.attributes = &attributes;
    const int r = rbi_send_new(bus, end, &marked);
    rbi_count(bus, RBI_COUNTER_diverted, r >= 0 ? 1 : 0);
    return r;
}
