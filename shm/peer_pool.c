/* SPDX-License-Identifier: Apache-2.0 */
#include "shm/peer_pool.h"

#include <errno.h>
#include <stdlib.h>

/* Of a peer's memory that is mapped page by page at once: what it offers costs us no more. */
#define PREFAULT_MAX (UINT64_C(4) << 20)

int rbi_peer_pool_new(struct rbi_peer_pool **out, int *fd, uint64_t bytes, bool sparse)
{
    struct rbi_peer_pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL) {
        return -ENOMEM;
    }
    const int r = sparse ? rbi_segment_verify_sparse(*fd, RBI_SEGMENT_POOL, bytes, bytes)
                         : rbi_segment_verify(*fd, RBI_SEGMENT_POOL, bytes, bytes);
    if (r < 0) {
        free(pool);
        return r;
    }
    pool->segment.fd = *fd;
    *fd = -1;
    pool->base = (const unsigned char *)pool;
    pool->announced_bytes = bytes;
    pool->refs = 1;
    pool->sparse = sparse;
    *out = pool;
    return 0;
}

int rbi_peer_pool_open(struct rbi_peer_pool *pool)
{
    struct rbi_segment mapped = RBI_SEGMENT_NULL;
    if (pool == NULL || pool->bytes != 0) {
        return 0;
    }
    const uint64_t bytes = pool->announced_bytes;
    const int fd = pool->segment.fd;
    const int r = pool->sparse
                      ? rbi_segment_adopt_sparse(&mapped, fd, RBI_SEGMENT_POOL, bytes, bytes)
                      : rbi_segment_adopt(&mapped, fd, RBI_SEGMENT_POOL, bytes, bytes);
    if (r < 0) {
        return r;
    }
    rbi_segment_deinit(&pool->segment);
    if (!pool->sparse) {
        rbi_segment_prefault(&mapped, PREFAULT_MAX, false); /* else it would fill the holes */
    }
    pool->segment = mapped;
    pool->base = mapped.base;
    pool->bytes = mapped.size;
    return 0;
}

void rbi_peer_pool_unref(struct rbi_peer_pool *pool)
{
    if (pool != NULL && --pool->refs == 0) {
        rbi_segment_deinit(&pool->segment);
        free(pool);
    }
}
