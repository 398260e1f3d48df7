/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_HOSTS_H
#define RINGBUS_DAEMON_HOSTS_H
/*
 * daemon/hosts.h - the other hosts that the daemon knows of: those of its proxies, and those that
 * the bridge tells of. Each has a number, by which instances in the directory name their host.
 */
#include "bus/bridge_config.h"
#include "bus/wire.h"
#include "daemon/list.h"

struct rbi_daemon;

/** As many as ways can be found through (bus/graph.h). */
#define RBI_HOSTS_MAX 1024U

/** How it is reached, as bus/ways.h has found it. */
struct rbi_host_way {
    char next[RBI_HOST_NAME_MAX + 1]; /* the neighbour; "": there is no way */
    uint32_t cost;
    uint32_t hops;
};

struct rbi_host {
    struct rbi_list in_hosts;
    char name[RBI_HOST_NAME_MAX + 1];
    uint32_t number;          /* in the directory: not 0 */
    uint32_t proxies;         /* that live */
    uint64_t order;           /* grows along the list */
    bool told;                /* the bridge has told of it, and is connected */
    struct rbi_wire_host row; /* while told */
    struct rbi_host_way way;
};

struct rbi_hosts {
    struct rbi_list all;
    uint32_t count;
    uint64_t next_order;
};

void rbi_hosts_init(struct rbi_hosts *hosts);
void rbi_hosts_deinit(struct rbi_hosts *hosts);
/** How far it is, enum rbi_host_state: as the bridge says, else by whether a way leads there. */
uint32_t rbi_host_state(const struct rbi_host *host);
/** The host of that name, or NULL. */
struct rbi_host *rbi_hosts_find(const struct rbi_hosts *hosts, const char *name);
/** The same, made when it is not known. @return NULL: no memory, or RBI_HOSTS_MAX are known */
struct rbi_host *rbi_hosts_take(struct rbi_hosts *hosts, const char *name);
/** Forgets a host that nobody has a use for any more; does nothing with others. */
void rbi_hosts_drop(struct rbi_hosts *hosts, struct rbi_host *host);

#endif
