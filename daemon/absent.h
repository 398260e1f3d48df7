/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_ABSENT_H
#define RINGBUS_DAEMON_ABSENT_H
/*
 * daemon/absent.h - instances that died, for as long as their slots of the hash table wait for
 * them (balance.rehash_delay): a process that is restarted in place keeps its keys. They stand at
 * the end of the cluster's snapshot as they were: their set and tags say whose keys they had. Who
 * leaves in order is not waited for.
 */
#include "bus/directory.h"
#include "daemon/list.h"
#include "daemon/loop.h"

struct rbi_cluster;
struct rbi_daemon;
struct rbi_endpoint;

struct rbi_absent {
    struct rbi_list in_absences; /* while there are any */
    uint32_t count;
    uint32_t room;
    struct rbi_directory_instance *who;
    uint64_t *due_ns; /* when each is given up */
};

/**
 * So many clusters wait at most: with one more the first of them gives up, and its slots move. They
 * cost those memory who let instances with ever new names die.
 */
#define RBI_ABSENCES_MAX 256U

/** Clusters that wait for somebody. */
struct rbi_absences {
    struct rbi_list clusters; /* in the order in which they began to wait */
    uint32_t count;
    struct rbi_loop_timer timer;
};

void rbi_absences_init(struct rbi_absences *absences);
/** It died: its slots wait, if its cluster's policy says so. Before the snapshot is written. */
void rbi_absent_add(struct rbi_daemon *daemon, const struct rbi_endpoint *endpoint);
/** Somebody has taken the address. */
void rbi_absent_drop(struct rbi_daemon *daemon, struct rbi_cluster *cluster, int32_t instance);
/** Frees those of a cluster that ends with the daemon; else one that waits does not end. */
void rbi_absent_free(struct rbi_cluster *cluster);

#endif
