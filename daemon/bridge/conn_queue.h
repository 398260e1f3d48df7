/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_CONN_QUEUE_H
#define RINGBUS_DAEMON_BRIDGE_CONN_QUEUE_H
/*
 * daemon/bridge/conn_queue.h - bytes that wait to be sent, in chunks: the first ones may be in the
 * kernel's hands while others are put behind them. Those that the kernel sends without a copy are
 * held until it gives them back, also when all of them has left. Chunks are kept for reuse up to
 * a few, so that a steady stream allocates nothing.
 */
#include "shm/base.h"

#include <sys/uio.h>

#define RBI_CONN_CHUNK_BYTES 65536U

struct rbi_conn_chunk {
    struct rbi_conn_chunk *next;
    uint32_t begin; /* taken before */
    uint32_t end;   /* put before */
    uint32_t holds; /* sends that the kernel has it of */
    bool left;      /* all of it has left: it is kept for these alone */
    unsigned char bytes[RBI_CONN_CHUNK_BYTES];
};

/** Zero-initialise. */
struct rbi_conn_queue {
    struct rbi_conn_chunk *first; /* where bytes are taken */
    struct rbi_conn_chunk *last;  /* where bytes are put: behind it only reserved chunks */
    struct rbi_conn_chunk *spare; /* for reuse */
    uint32_t spare_count;
    uint32_t held_count; /* chunks that have left, and are held */
    uint64_t size;       /* bytes */
    uint64_t reserved;   /* bytes that can be put without an allocation, at least */
};

/** Nothing is held. */
void rbi_conn_queue_deinit(struct rbi_conn_queue *queue);
/** Makes sure that @p size bytes can be put. @retval 0; -ENOMEM */
RBI_MUST_CHECK int rbi_conn_queue_reserve(struct rbi_conn_queue *queue, size_t size);
/** Copies bytes behind the others; as many were reserved. */
void rbi_conn_queue_put(struct rbi_conn_queue *queue, const void *bytes, size_t size);
/** The first bytes. @return pieces set, at most @p count */
unsigned
rbi_conn_queue_head(const struct rbi_conn_queue *queue, struct iovec *pieces, unsigned count);
/** The chunks of a send. */
struct rbi_conn_hold {
    unsigned count;
    struct rbi_conn_chunk *chunks[16];
};
/** Holds the first @p count chunks, those of rbi_conn_queue_head(). */
void rbi_conn_queue_hold(struct rbi_conn_queue *queue, unsigned count, struct rbi_conn_hold *hold);
void rbi_conn_queue_return(struct rbi_conn_queue *queue, const struct rbi_conn_hold *hold);
/** Takes the first @p size bytes away. */
void rbi_conn_queue_take(struct rbi_conn_queue *queue, size_t size);

#endif
