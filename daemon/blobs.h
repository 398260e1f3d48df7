/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BLOBS_H
#define RINGBUS_DAEMON_BLOBS_H
/*
 * daemon/blobs.h - what lies in the directory beside the clusters: policies and slot tables, found
 * by the hash of their content, so that clusters share what is equal. Counted by those who
 * name them; a copy is kept here for the next, larger segment.
 */
#include "bus/directory.h"
#include "daemon/map.h"

struct rbi_daemon;

struct rbi_blobs {
    struct rbi_map by_key;
};

RBI_MUST_CHECK int rbi_blobs_init(struct rbi_blobs *blobs);
void rbi_blobs_deinit(struct rbi_blobs *blobs);
/**
 * Publishes a blob, or counts one user more. To be done before the snapshot that names it.
 * @param key    not 0
 * @param bytes  copied
 * @retval 0; -ENOMEM; -errno the directory cannot grow
 */
RBI_MUST_CHECK int
rbi_blob_hold(struct rbi_daemon *daemon, uint64_t key, const void *bytes, uint64_t size);
/** The bytes of one that is held, lent as long as that; NULL: there is none. */
const void *rbi_blob_bytes(struct rbi_daemon *daemon, uint64_t key);
/** One user less; the last one takes it from the directory. After the snapshot. 0: nothing. */
void rbi_blob_release(struct rbi_daemon *daemon, uint64_t key);
/** Writes all into a segment. @retval RBI_PUBLISH_OK; RBI_PUBLISH_FULL */
RBI_MUST_CHECK int rbi_blobs_write(struct rbi_blobs *blobs, struct rbi_directory_writer *writer);

#endif
