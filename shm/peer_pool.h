/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_SHM_PEER_POOL_H
#define RINGBUS_SHM_PEER_POOL_H
/*
 * shm/peer_pool.h - the pool of a peer, as a receiver sees it. It outlives the link while a
 * payload in it is kept. Mapped when the first payload comes by reference; until then it has no
 * byte that a reference could name.
 *
 * Threads: one. Cold.
 */
#include "shm/segment.h"

struct rbi_peer_pool {
    const unsigned char *base; /* never NULL */
    uint64_t bytes;            /* 0 until it is mapped */
    struct rbi_segment segment;
    uint64_t announced_bytes; /* its size, checked */
    uint32_t refs;
    bool sparse; /* it may have holes: the peer is trusted to fill them before it names them */
};

/**
 * Checks a pool now, to be mapped later.
 *
 * @param out     written on success only, with one reference: the caller's
 * @param fd      taken over on success, and -1 then
 * @param bytes   as announced
 * @param sparse  whether it may have holes
 * @retval 0; -ENOMEM; those of rbi_segment_verify()
 */
RBI_MUST_CHECK int
rbi_peer_pool_new(struct rbi_peer_pool **out, int *fd, uint64_t bytes, bool sparse);
/** Maps it. 0, also if it is; -errno: try again. Accepts NULL. */
RBI_COLD int rbi_peer_pool_open(struct rbi_peer_pool *pool);
/** Drops a reference; the last one unmaps it. Accepts NULL. */
void rbi_peer_pool_unref(struct rbi_peer_pool *pool);

#endif
