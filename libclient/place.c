/* SPDX-License-Identifier: Apache-2.0 */
#include "libclient/internal.h"

#include <sched.h>

/* No system call: the kernel keeps it where it can be read. @return whether it is another one */
static bool look(struct ringbus *bus)
{
    struct rbi_place *place = &bus->place;
    unsigned cpu = 0;
    unsigned node = 0;
    if (getcpu(&cpu, &node) != 0 || !rbi_numa_seen(&place->seat, node, bus->now_ns)) {
        return false;
    }
    place->node = place->seat.node;
    return true;
}

static void choose_anew(struct ringbus *bus)
{
    for (unsigned i = 0; i < bus->cluster_count; i++) {
        rbi_cluster_changed(bus, bus->clusters[i]);
    }
}

void rbi_place_begin(struct ringbus *bus, uint32_t nodes)
{
    struct rbi_place *place = &bus->place;
    const uint32_t before = place->node;
    place->many = nodes > 1;
    if (place->many) {
        (void)look(bus);
    } else {
        *place = (struct rbi_place){.node = 0};
    }
    if (place->node != before) {
        choose_anew(bus);
    }
}

void rbi_place_look(struct ringbus *bus)
{
    if (bus->place.many && look(bus)) {
        const struct rbi_wire_place body = {.node = (uint16_t)bus->place.node};
        choose_anew(bus);
        if (bus->control.phase == RBI_CONTROL_ON) {
            (void)rbi_control_send(bus, RBI_WIRE_PLACE, &body, NULL, 0);
        }
    }
}
