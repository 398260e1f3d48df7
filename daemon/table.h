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
#include "daemon/list.h"
#include "daemon/loop.h"
#include "daemon/share.h"

struct rbi_cluster;
struct rbi_daemon;

/**
 * Clusters with a table at most: a third of a MiB each. Beyond that callers build their own. Of
 * these a user causes its fair share (share.h): 64 while it is the only one.
 */
#define RBI_CLUSTER_TABLES_MAX 128U

/** All of them, and who caused them. */
struct rbi_tables {
    struct rbi_list all;
    struct rbi_shares users;
    uint32_t count;
};
void rbi_tables_init(struct rbi_tables *tables);

struct rbi_cluster_table {
    struct rbi_daemon *daemon;
    struct rbi_cluster *cluster;
    struct rbi_list in_tables;
    struct rbi_share *share; /* of the user who asked for it first */
    struct rbi_table table;  /* finished, in the blobs under key; its owners are the blob's */
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

/**
 * Somebody sends to it by key: from now on it has a table, if @p uid may cause one more. Where it
 * may not, tables of users who have no connection any more make room.
 */
void rbi_table_want(struct rbi_daemon *daemon, struct rbi_cluster *cluster, uint32_t uid);
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
