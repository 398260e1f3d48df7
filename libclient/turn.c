/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/turn.c - whose lane a poll looks at, so that its cost does not grow with the
 * number of idle links.
 *
 *   ends[0 .. active_count)          looked at by every poll, in turn
 *   ends[active_count .. end_count)  quiet: a few by each poll, and all before sleeping
 *
 * A lane in which something is found becomes active; one that was found empty for long
 * becomes quiet, as long as there are more than ACTIVE_MIN. Nothing is lost by
 * being quiet but the time until its turn: with 1,000 quiet links 500 polls, with 4,000 links
 * 4,000.
 */
#include "libclient/internal.h"

/* So few are looked at every time, however quiet. */
#define ACTIVE_MIN 2U
/* Polls in a row that found nothing. */
#define QUIET_AFTER 4096U

static void swap(struct ringbus *bus, unsigned a, unsigned b)
{
    struct rbi_end *end = bus->ends[a];
    const uint64_t due_ns = bus->due[a];
    bus->ends[a] = bus->ends[b];
    bus->ends[b] = end;
    bus->due[a] = bus->due[b];
    bus->due[b] = due_ns;
    bus->ends[a]->position = a;
    bus->ends[b]->position = b;
}

void rbi_turn_promote(struct ringbus *bus, struct rbi_end *end)
{
    end->quiet = 0;
    if (end->position >= bus->active_count) {
        swap(bus, end->position, bus->active_count);
        bus->active_count++;
    }
}

bool rbi_turn_found_empty(struct ringbus *bus, struct rbi_end *end)
{
    if (RBI_LIKELY(++end->quiet < QUIET_AFTER) || bus->active_count <= ACTIVE_MIN ||
        end->phase != RBI_END_LINKED) {
        return false;
    }
    end->quiet = 0;
    bus->active_count--;
    swap(bus, end->position, bus->active_count);
    return true;
}

void rbi_turn_add(struct ringbus *bus, struct rbi_end *end)
{
    end->position = bus->end_count;
    bus->due[bus->end_count] = RBI_NEVER;
    bus->ends[bus->end_count++] = end;
    if (bus->active_count < ACTIVE_MIN) {
        rbi_turn_promote(bus, end);
    }
}

void rbi_turn_remove(struct ringbus *bus, struct rbi_end *end)
{
    if (end->position >= bus->end_count || bus->ends[end->position] != end) {
        return; /* was never added */
    }
    if (end->position < bus->active_count) {
        bus->active_count--;
        swap(bus, end->position, bus->active_count);
    }
    bus->end_count--;
    swap(bus, end->position, bus->end_count);
}
