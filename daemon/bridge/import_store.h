/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_IMPORT_STORE_H
#define RINGBUS_DAEMON_BRIDGE_IMPORT_STORE_H
/*
 * daemon/bridge/import_store.h - the last known instances of other hosts, on disk, so that a host
 * which starts while others cannot be reached, or outside registries cannot, sees whom it saw last.
 * What is read back is STALE until its host says more (bus/import.h).
 *
 * One file for each cluster, FOLDER/<id>.0, the two before it as .1 and .2. A file is written
 * beside its place, brought to the disk, and renamed; so there is an old one or a new one, whenever
 * the power goes. Written at most every 10 s for a cluster, at once at an orderly end, and also
 * when nothing has changed but the file is missing. Writing waits for the disk, so it is done
 * beside the loop (daemon/worker.h).
 *
 * File, little-endian: 64 bytes of head {magic "RBTI", version u32, XXH3-64 of all behind this
 * field, cluster u64, epoch u64, revision u64, wall time s u64, count u32, size u32, zero u64},
 * then count records. A file that is damaged, of another version, or that others could have written
 * is left alone with a line in the log, and the one before it is tried.
 */
#include "bus/remote.h"
#include "daemon/loop.h"
#include "daemon/worker.h"

#define RBI_IMPORT_STORE_EVERY_NS UINT64_C(10000000000)
#define RBI_IMPORT_STORE_KEEP     3U

struct rbi_import_store;

/** An instance in a file. */
struct rbi_import_store_row {
    char host[64]; /* whose it is: a name, terminated */
    struct rbi_remote remote;
};

/** What a file says beside its rows. */
struct rbi_import_store_head {
    uint64_t cluster;
    uint64_t epoch;    /* grows by one with each file of this cluster */
    uint64_t revision; /* of the lists that it was made of: the largest */
    uint64_t wall_s;   /* when it was written, since 1970 */
};

/** A row that was read. */
typedef void (*rbi_import_store_row_fn)(void *context,
                                        const struct rbi_import_store_head *head,
                                        const struct rbi_import_store_row *row);
/**
 * The instances of a cluster as they are now: called when a file is due.
 * @param rows  room for @p max
 * @param revision  to be set
 * @return rows there are; more than @p max: called again with more room
 */
typedef uint32_t (*rbi_import_store_list_fn)(void *context,
                                             uint64_t cluster,
                                             struct rbi_import_store_row *rows,
                                             uint32_t max,
                                             uint64_t *revision);

/**
 * @param folder  made if it is missing, mode 0700; its parent must be there
 * @retval 0; -errno: nothing can be kept there
 */
RBI_MUST_CHECK int rbi_import_store_new(struct rbi_loop *loop,
                                        const char *folder,
                                        rbi_import_store_list_fn list,
                                        void *context,
                                        struct rbi_import_store **out);
/** Writes what is due to be written, without waiting for its time, and ends. Accepts NULL. */
void rbi_import_store_free(struct rbi_import_store *store);
/** Reads all files, the newest that is whole of each cluster. @return files that were ignored */
uint32_t
rbi_import_store_load(struct rbi_import_store *store, rbi_import_store_row_fn row, void *context);
/** A cluster has changed: its file is due. */
void rbi_import_store_dirty(struct rbi_import_store *store, uint64_t id);
/** Other times than RBI_IMPORT_STORE_EVERY_NS, from now on. For tests. */
void rbi_import_store_every(struct rbi_import_store *store, uint64_t every_ns);
/** Files that were written, and attempts that failed. */
uint64_t rbi_import_store_written(const struct rbi_import_store *store);
uint64_t rbi_import_store_failed(const struct rbi_import_store *store);

#endif
