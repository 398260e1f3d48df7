/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_STATS_H
#define RINGBUS_LIBCLIENT_STATS_H
/* libclient/stats.h - the counters of an endpoint. */
#include "libclient/handle.h"

static inline void rbi_count(struct ringbus *bus, enum rbi_counter counter, uint64_t n)
{
    bus->counters[counter] += n;
}
/** Copies the counters into the page, for tools. Now and then, never per message. */
void rbi_counters_publish(struct ringbus *bus);

#endif
