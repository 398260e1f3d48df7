/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_NUMA_H
#define RINGBUS_DAEMON_NUMA_H
/* daemon/numa.h - NUMA nodes of this host. */
#include "bus/numa.h"

/** How many nodes with processors the host has, at least 1. Reads a file: once is enough. */
uint32_t rbi_numa_nodes(void);

/** 1 + a node, as a client says it. @return 0: unknown, or none that can be */
static inline uint16_t rbi_numa_checked(uint32_t node)
{
    return node <= RBI_NUMA_NODES_MAX ? (uint16_t)node : 0;
}

#endif
