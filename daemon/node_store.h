/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_NODE_STORE_H
#define RINGBUS_DAEMON_NODE_STORE_H
/*
 * daemon/node_store.h - the nodes of users as a file, so that they outlive the daemon: a journal,
 * a record for each change, each with a checksum. What was answered is in the file: it is there
 * after the daemon was killed. It is made durable within a second, so what a loss of power takes
 * with it is at most that. A journal whose larger part is outdated is written anew beside its
 * place, made durable and renamed there.
 *
 * A record that is torn or damaged ends the journal: what is behind it is left out, with a line in
 * the log, for without the ones before it is not known what they were.
 */
#include "bus/pidf.h"
#include "daemon/log.h"
#include "daemon/worker.h"

struct rbi_daemon;
struct rbi_node;

#define RBI_NODE_STORE_PATH_MAX 255U

struct rbi_node_store {
    int fd; /* -1: none was needed yet, or it cannot be had */
    char path[RBI_NODE_STORE_PATH_MAX + 1];
    uint64_t bytes;        /* of the file */
    uint64_t rewrite_at;   /* how large it may become until it is written anew */
    uint64_t revision_end; /* no change has had this revision, or a higher one */
    bool dirty;            /* not made durable yet */
    bool syncing;          /* that is under way (worker.h): */
    struct rbi_job job;
    int job_fd; /* of the same file, whatever becomes of fd */
    int job_result;
    bool whole; /* the daemon before had a journal, and all of it was read */
    struct rbi_log_limit limit;
};

#define RBI_NODE_STORE_NULL                                                                        \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

enum rbi_node_record_what {
    RBI_NODE_RECORD_PUT = 1,
    RBI_NODE_RECORD_REMOVE = 2,
    RBI_NODE_RECORD_REVISION = 3, /* revisions below its own may have been given */
};

/** A record, read. Lent. */
struct rbi_node_record {
    enum rbi_node_record_what what;
    const char *path;
    const char *creator;
    const unsigned char *value;
    uint16_t path_length;
    uint16_t creator_length;
    uint16_t value_length;
    uint32_t flags;
    uint32_t uid;
    struct rbi_pidf owner;
    uint64_t revision;
};

/** Reads what there is into daemon->nodes. */
void rbi_node_store_open(struct rbi_daemon *daemon);
/** Makes durable what is not, and waits for that. */
void rbi_node_store_close(struct rbi_node_store *store);

/**
 * Notes a node as it is, or its removal. An ephemeral one that cannot be noted is no failure.
 * @retval 0; -errno
 */
RBI_MUST_CHECK int rbi_node_store_put(struct rbi_daemon *daemon, const struct rbi_node *node);
RBI_MUST_CHECK int
rbi_node_store_drop(struct rbi_daemon *daemon, const struct rbi_node *node, uint64_t revision);
/** Has made durable what is not, beside the loop. Now and then. */
void rbi_node_store_sync(struct rbi_daemon *daemon);

#endif
