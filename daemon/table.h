/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_TABLE_H
#define RINGBUS_DAEMON_TABLE_H
/*
 * daemon/table.h - slot tables (bus/table.h) of clusters that are sent to by key, in the directory:
 * built once a host, and copied by callers in microseconds. Only the table that callers without
 * a set or a place of their own use, and only of clusters that somebody sends to by key; whoever
 * does not find theirs builds it, to the same bytes.
 *
 * A change of few members is worked in before the snapshot that tells of it; more, such as
 * a table from nothing, is built in slices between other work.
 */
#include "bus/directory.h"
#include "bus/table.h"
#include "daemon/loop.h"

struct rbi_cluster;
struct rbi_daemon;

/** Clusters with a table at most: a third of a MiB each. Beyond that callers build their own. */
#define RBI_CLUSTER_TABLES_MAX 64U

struct rbi_cluster_table {
    struct rbi_daemon *daemon;
    struct rbi_cluster *cluster;
    struct rbi_table table; /* finished, in the blobs under key; its owners are the blob's */
    struct rbi_table_member *members;
    uint64_t key;     /* 0: none yet */
    uint64_t old_key; /* to be released when the snapshot is out; 0: none */
    /* Under way: */
    bool building;
    struct rbi_table_build build;
    struct rbi_table_member *next_members;
    uint16_t *next_owners;
    void *scratch;
    uint64_t next_key;
    struct rbi_loop_timer timer;
};

/** Somebody sends to it by key: from now on it has a table, if there is room for one. */
void rbi_table_want(struct rbi_daemon *daemon, struct rbi_cluster *cluster);
/**
 * The snapshot that is about to be published. Small changes are in the directory afterwards.
 * @param instances  head->instance_count of them, then those who are absent
 */
void rbi_table_follow(struct rbi_cluster *cluster,
                      const struct rbi_directory_cluster *head,
                      const struct rbi_directory_instance *instances);
/** The snapshot is out: what it does not name any more can go. */
void rbi_table_settle(struct rbi_cluster *cluster);
/** With its cluster. Accepts one without a table. */
void rbi_table_free(struct rbi_cluster *cluster);

#endif
