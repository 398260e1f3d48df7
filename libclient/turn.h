/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_TURN_H
#define RINGBUS_LIBCLIENT_TURN_H
/* libclient/turn.h - whose lane a poll looks at. */
#include "libclient/handle.h"

struct rbi_end;

/* Quiet links that one poll looks at beside the active ones (turn.c). */
#define RBI_SWEEP 2U
/* Of so many links each look misses the caches and the page tables: one a poll. */
#define RBI_SWEEP_MANY 2048U

void rbi_turn_add(struct ringbus *bus, struct rbi_end *end);
void rbi_turn_remove(struct ringbus *bus, struct rbi_end *end);
/** Something was found in its lane, or is to be done with it. */
void rbi_turn_promote(struct ringbus *bus, struct rbi_end *end);
/** Nothing was found. @return true when it became quiet: another end is in its place now */
bool rbi_turn_found_empty(struct ringbus *bus, struct rbi_end *end);

static inline unsigned rbi_sweep(const struct ringbus *bus)
{
    return bus->end_count < RBI_SWEEP_MANY ? RBI_SWEEP : 1U;
}

#endif
