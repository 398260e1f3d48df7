/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_DIRECTORY_H
#define RINGBUS_BUS_DIRECTORY_H
/*
 * bus/directory.h - the service table in shared memory: written by ringbusd alone,
 * mapped read-only by every client. Pure: works on memory that it is given.
 *
 * A cluster's snapshot is replaced as a whole: the writer fills a free block, then
 * swings the cluster's reference, which is another one each time; a reader that finds it
 * changed starts again, so nobody locks and nobody sees a torn one. Readers copy out (a
 * snapshot is small, and read again only when its epoch has changed).
 *
 * Beside the clusters lie blobs, found by the hash of what they hold: policies and slot tables.
 * A blob never changes; a snapshot is published after those that it names, and they are
 * withdrawn after it.
 *
 * When the segment is full the writer makes a larger one, and marks this one as
 * superseded: clients are sent the new one and switch when they see the mark.
 */
#include "bus/directory_heap.h"
#include "bus/pidf.h"
#include "shm/layout.h"

/** A larger segment cannot be referred into. */
#define RBI_DIRECTORY_BYTES_MAX (UINT64_C(8) << 32)

#define RBI_DIRECTORY_LABEL_MAX 63U
#define RBI_DIRECTORY_BLOB_MAX  (UINT64_C(4) << 20)

/** What the daemon has found out about an instance. Truth: what overrides it is beside it. */
enum rbi_health {
    RBI_HEALTH_OK = 0,
    RBI_HEALTH_OPEN = 1,      /* shielded */
    RBI_HEALTH_HALF_OPEN = 2, /* shielded, probes are under way */
    RBI_HEALTH_RAMP = 3,      /* back, with a share of its weight */
};

/** What the operator says of an instance, whatever it says of itself. */
#define RBI_OVERRIDE_ISOLATED 1U /* gets nothing from whoever picks */
#define RBI_OVERRIDE_STAGED   2U /* reachable by its own path, and by messages tagged "test" */

/** Its host cannot be reached just now: it is as it was when it could. */
#define RBI_INSTANCE_STALE 1U

/** One instance in a snapshot: copied out, fixed size. */
struct rbi_directory_instance {
    int32_t instance;
    uint32_t incarnation;
    uint32_t state;  /* enum rbi_endpoint_state */
    uint32_t health; /* enum rbi_health */
    uint32_t weight; /* 0..1000; what the operator said, else what it said itself */
    uint32_t host;   /* 0: this host; else its number (bus/hosts_table.h) */
    uint32_t name_length;
    uint32_t override; /* RBI_OVERRIDE_* */
    uint32_t ramp;     /* percent of the weight that it gets, with RBI_HEALTH_RAMP */
    uint16_t node;     /* 1 + NUMA node; 0: unknown, or its host has only one */
    uint16_t reported; /* weight by what it reports of its load (bus/reported.h); 0: none */
    /* Of the calls to the cluster, those from its group, and from its node in it; of 10,000. */
    uint16_t demand; /* 0: unknown (bus/demand.h) */
    uint16_t node_demand;
    uint32_t flags;    /* RBI_INSTANCE_* */
    uint64_t ready_ns; /* CLOCK_MONOTONIC of the daemon when it became READY; 0: unknown */
    char name[RBI_PATH_ELEMENT_MAX + 1]; /* 7th path element */
    char set[RBI_DIRECTORY_LABEL_MAX + 1];
    char idc[RBI_DIRECTORY_LABEL_MAX + 1];
    char tags[RBI_DIRECTORY_LABEL_MAX + 1];
};

/** Head of a snapshot. */
struct rbi_directory_cluster {
    uint64_t cluster;
    uint64_t epoch; /* grows at each change of this cluster */
    uint32_t flags; /* RBI_CLUSTER_* */
    uint32_t instance_count;
    uint32_t path_length;
    uint32_t absent_count; /* at most RBI_DIRECTORY_ABSENT_MAX */
    uint64_t policy;       /* fingerprint: its blob holds a struct rbi_policy; 0: the defaults */
    char path[RBI_PATH_MAX + 1];
};

/**
 * Absent: instances that died, and whose slots of the hash table wait for them to come back
 * (balance.rehash_delay). They are as they were when they died, so that it can be said whose keys
 * they had. Not among the instances: nobody is introduced to them.
 */
#define RBI_DIRECTORY_ABSENT_MAX 64U

/** So few are healthy that shields are ignored. The instances' health stays the truth. */
#define RBI_CLUSTER_PANIC 1U

/* ---- reader ---------------------------------------------------------------------------- */

/** A mapping, as a reader sees it. */
struct rbi_directory_view {
    const unsigned char *base;
    uint64_t size;
    uint64_t slot_count; /* checked copies from the head */
    uint64_t table_mask;
};

enum rbi_directory_result {
    RBI_DIRECTORY_OK = 0,
    RBI_DIRECTORY_ABSENT = 1, /* no such cluster */
    RBI_DIRECTORY_BUSY = 2,   /* kept changing under us; try again later */
    RBI_DIRECTORY_ROOM = 3,   /* more than @p max: the counts are set, entries filled up to max */
};

/**
 * Checks the head of an adopted directory segment (kind RBI_SEGMENT_DIRECTORY).
 * @retval 0; -EPROTO
 */
RBI_MUST_CHECK int
rbi_directory_view_init(struct rbi_directory_view *view, const void *base, uint64_t size);
/** Revision of the whole directory: grows by one at each change. One load. */
uint64_t rbi_directory_revision(const struct rbi_directory_view *view);
/** True when a larger segment has taken over. One load. */
bool rbi_directory_superseded(const struct rbi_directory_view *view);
/** Incarnation of the daemon that made it. */
uint64_t rbi_directory_daemon(const struct rbi_directory_view *view);
/**
 * The attention word of an endpoint: bumped by the daemon when a control message waits. One load.
 */
uint64_t rbi_directory_attention(const struct rbi_directory_view *view, uint32_t slot);
/**
 * Copies the snapshot of a cluster. Bounded number of retries; never waits.
 * @param head       written on RBI_DIRECTORY_OK and RBI_DIRECTORY_ROOM only
 * @param instances  scratch until then: may hold pieces after RBI_DIRECTORY_BUSY
 * @param max        room in @p instances; may be 0
 */
RBI_MUST_CHECK int rbi_directory_read(const struct rbi_directory_view *view,
                                      uint64_t cluster,
                                      struct rbi_directory_cluster *head,
                                      struct rbi_directory_instance *instances,
                                      unsigned max);
/**
 * The same, with those who died just now: head->absent_count of them follow the instances.
 * @param max  room for both
 */
RBI_MUST_CHECK int rbi_directory_read_all(const struct rbi_directory_view *view,
                                          uint64_t cluster,
                                          struct rbi_directory_cluster *head,
                                          struct rbi_directory_instance *instances,
                                          unsigned max);
/** Epoch of a cluster, 0 when absent; cheap look whether anything changed. */
uint64_t rbi_directory_epoch(const struct rbi_directory_view *view, uint64_t cluster);
/**
 * Walks all clusters: ids only.
 * @param cursor  0 at the start; advanced
 * @retval RBI_DIRECTORY_OK @p cluster is set;  RBI_DIRECTORY_ABSENT no more
 */
RBI_MUST_CHECK int
rbi_directory_next(const struct rbi_directory_view *view, uint64_t *cursor, uint64_t *cluster);

/**
 * Copies a blob. Bounded number of retries; never waits. The caller checks what it holds.
 * @param size  set on RBI_DIRECTORY_OK and RBI_DIRECTORY_ROOM: bytes of the blob
 * @param max   bytes at @p out
 * @retval RBI_DIRECTORY_OK; _ABSENT and _ROOM: nothing was copied; _BUSY: pieces, perhaps
 */
RBI_MUST_CHECK int rbi_directory_read_blob(
    const struct rbi_directory_view *view, uint64_t key, void *out, uint64_t max, uint64_t *size);

/* ---- writer (the daemon) --------------------------------------------------------------- */

struct rbi_directory_writer {
    unsigned char *base;
    uint64_t size;
    struct rbi_directory_heap heap;
    uint32_t uses; /* number of the last reference that was given out */
    uint64_t cluster_count;
};

enum rbi_directory_publish {
    RBI_PUBLISH_OK = 0,
    RBI_PUBLISH_FULL =
        1, /* the segment has no room: make a larger one and publish everything there */
};

/** Bytes needed for a directory of so many attention slots, clusters and bytes of snapshots. */
uint64_t rbi_directory_size(uint32_t slots, uint32_t clusters, uint64_t heap_bytes);
/**
 * Formats zeroed memory (after the segment header). @p clusters is rounded up to a power of two,
 * twice as many table entries.
 */
void rbi_directory_writer_init(struct rbi_directory_writer *writer,
                               void *base,
                               uint64_t size,
                               uint32_t slots,
                               uint32_t clusters,
                               uint64_t daemon_incarnation);
/**
 * Replaces (or adds) a cluster's snapshot; head->epoch is the caller's. Empty clusters stay known.
 * @param instances  head->instance_count of them, then head->absent_count that are absent
 */
RBI_MUST_CHECK int rbi_directory_publish(struct rbi_directory_writer *writer,
                                         const struct rbi_directory_cluster *head,
                                         const struct rbi_directory_instance *instances);
/**
 * Adds a blob, or does nothing when it is there.
 * @param key   of what it holds: never a cluster's id, both being hashes of 64 bits
 * @param size  bytes, at most RBI_DIRECTORY_BLOB_MAX
 */
RBI_MUST_CHECK int rbi_directory_publish_blob(struct rbi_directory_writer *writer,
                                              uint64_t key,
                                              const void *bytes,
                                              uint64_t size);
/** Forgets a cluster, or a blob. */
void rbi_directory_withdraw(struct rbi_directory_writer *writer, uint64_t cluster);
void rbi_directory_set_revision(struct rbi_directory_writer *writer, uint64_t revision);
void rbi_directory_supersede(struct rbi_directory_writer *writer);
/** Tells a busy endpoint that a control message waits. */
void rbi_directory_bump(struct rbi_directory_writer *writer, uint32_t slot);

#endif
