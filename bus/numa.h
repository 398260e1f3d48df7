/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_NUMA_H
#define RINGBUS_BUS_NUMA_H
/* bus/numa.h - NUMA nodes, as the kernel lists them. Pure. */
#include "shm/base.h"

/** Nodes are told apart up to this one. */
#define RBI_NUMA_NODES_MAX 1024U

/**
 * How many nodes a list of the kernel names: "0", "0-1", "0,2-3", with or without a line break.
 * @param text  need not be terminated
 * @return 0: it is no such list, or names a node beyond RBI_NUMA_NODES_MAX
 */
unsigned rbi_numa_count(const char *text, size_t length);

/** Where a process runs now, and whether it has moved. */
struct rbi_numa_seat {
    uint32_t node;     /* 1 + the one that it is known to be on; 0: unknown, or there is only one */
    uint32_t other;    /* 1 + another one, where it was last seen; 0: it was not */
    uint64_t since_ns; /* since when on end */
};

/** So long on end a process must be seen on another node to have moved. */
#define RBI_NUMA_MOVED_NS (UINT64_C(5) * 1000 * 1000 * 1000)

/**
 * It is seen on @p node now. Whoever is sent from node to node by the scheduler stays where it was:
 * instances next to it are no nearer than others.
 * @return whether it is known to be on another one than before
 */
bool rbi_numa_seen(struct rbi_numa_seat *seat, uint32_t node, uint64_t now_ns);

#endif
