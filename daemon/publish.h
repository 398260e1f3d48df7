/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_PUBLISH_H
#define RINGBUS_DAEMON_PUBLISH_H
/*
 * daemon/publish.h - the directory segment: writes snapshots of clusters, and moves to a
 * larger segment when one is full: every client is sent the new one (HELLO_OK that
 * answers nothing), then the old one is marked.
 */
#include "bus/directory.h"
#include "daemon/blobs.h"
#include "shm/segment.h"

struct rbi_cluster;
struct rbi_daemon;
struct rbi_endpoint;

struct rbi_publish {
    struct rbi_segment segment; /* writable; with its descriptor */
    struct rbi_directory_writer writer;
    uint32_t slots;
    uint32_t clusters;
    uint64_t heap_bytes;
    struct rbi_directory_instance *scratch;
    uint32_t scratch_capacity;
    uint64_t growths;
    struct rbi_blobs blobs;
};

RBI_MUST_CHECK int rbi_publish_init(struct rbi_daemon *daemon);
void rbi_publish_deinit(struct rbi_publish *publish);
/**
 * Writes a cluster's snapshot, with its policy as it is now, and the revision.
 * @retval 0; -errno no room, and none to be had
 */
RBI_MUST_CHECK int rbi_publish_cluster(struct rbi_daemon *daemon, struct rbi_cluster *cluster);
/** What the directory says of an endpoint. */
void rbi_publish_describe(struct rbi_directory_instance *out, const struct rbi_endpoint *endpoint);
void rbi_publish_withdraw(struct rbi_daemon *daemon, struct rbi_cluster *cluster);
/** The revision alone: a snapshot is out that several changes were about. */
void rbi_publish_revision(struct rbi_daemon *daemon);
/** Its slot table, where it has one, as its members are now. */
void rbi_publish_table(struct rbi_daemon *daemon, struct rbi_cluster *cluster);
/** Adds a blob (blobs.h). @param bytes  of an entry that is in the store. @retval 0; -errno */
RBI_MUST_CHECK int
rbi_publish_blob(struct rbi_daemon *daemon, uint64_t key, const void *bytes, uint64_t size);
/** Makes sure that there is an attention word for @p slot. @retval 0; -errno */
RBI_MUST_CHECK int rbi_publish_slot(struct rbi_daemon *daemon, uint32_t slot);
/** Tells an endpoint that polls without system calls that something waits in its socket. */
void rbi_publish_bump(struct rbi_daemon *daemon, uint32_t slot);

#endif
