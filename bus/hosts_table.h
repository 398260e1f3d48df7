/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_HOSTS_TABLE_H
#define RINGBUS_BUS_HOSTS_TABLE_H
/*
 * bus/hosts_table.h - the hosts that a daemon knows of and the next hops to them, as a blob of its
 * directory: whoever has mapped that knows the names behind the numbers in instance.host. Pure.
 *
 * It is found by a key of its own. A blob never changes: this one is withdrawn and published anew,
 * so who finds none looks again a little later; without a bridge there is none.
 */
#include "bus/bridge_config.h"
#include "bus/directory.h"

#define RBI_HOSTS_TABLE_KEY UINT64_C(0x31747374736f4872) /* "rHostst1" in memory */
#define RBI_HOSTS_TABLE_MAX 1024U

/** One host. */
struct rbi_hosts_line {
    uint32_t number; /* as in instance.host; not 0 */
    uint32_t state;  /* enum rbi_host_state */
    uint32_t cost;   /* of the way */
    uint32_t hops;   /* 0: there is none */
    char name[RBI_HOST_NAME_MAX + 1];
    char next[RBI_HOST_NAME_MAX + 1]; /* the neighbour that leads there; "": none */
};
_Static_assert(sizeof(struct rbi_hosts_line) == 144, "without padding");

struct rbi_hosts_table {
    uint32_t version; /* 1 */
    uint32_t count;
    uint32_t line_bytes; /* later versions may append to a line */
    uint32_t reserved;
    char own[RBI_HOST_NAME_MAX + 1]; /* name of this host */
    struct rbi_hosts_line lines[];   /* by name */
};
_Static_assert(offsetof(struct rbi_hosts_table, lines) == 80, "without padding");

/** Bytes of a table. */
static inline uint64_t rbi_hosts_table_bytes(uint32_t count)
{
    return sizeof(struct rbi_hosts_table) + (uint64_t)count * sizeof(struct rbi_hosts_line);
}

/**
 * Copies the table out of a directory and checks it. Bounded; never waits.
 * @param table  room for @p max lines
 * @retval RBI_DIRECTORY_OK; _ABSENT; _BUSY; _ROOM more hosts than @p max: nothing was copied
 * @retval -EPROTO  it is none
 */
RBI_MUST_CHECK int rbi_hosts_table_read(const struct rbi_directory_view *view,
                                        struct rbi_hosts_table *table,
                                        uint32_t max);
/** The line of a host by its number, or NULL. */
const struct rbi_hosts_line *rbi_hosts_table_find(const struct rbi_hosts_table *table,
                                                  uint32_t number);

#endif
