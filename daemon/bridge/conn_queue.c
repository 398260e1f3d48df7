/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/conn_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Chunks that are kept though nothing is in them. */
#define SPARE_MAX 4U

static void chunks_free(struct rbi_conn_chunk *chunk)
{
    while (chunk) {
        struct rbi_conn_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
}

void rbi_conn_queue_deinit(struct rbi_conn_queue *queue)
{
    chunks_free(queue->first);
    chunks_free(queue->spare);
    *queue = (struct rbi_conn_queue){0};
}

int rbi_conn_queue_reserve(struct rbi_conn_queue *queue, size_t size)
{
    while (queue->reserved < size) {
        struct rbi_conn_chunk *chunk = queue->spare;
        if (chunk) {
            queue->spare = chunk->next;
            queue->spare_count--;
        } else {
            chunk = malloc(sizeof(*chunk));
            if (!chunk) {
                return -ENOMEM;
            }
        }
        chunk->next = NULL;
        chunk->begin = 0;
        chunk->end = 0;
        chunk->holds = 0;
        chunk->left = false;
        /* Behind the last one that has bytes, and those that were reserved before. */
        struct rbi_conn_chunk **at = queue->last ? &queue->last->next : &queue->first;
        while (*at) {
            at = &(*at)->next;
        }
        *at = chunk;
        if (!queue->last) {
            queue->last = queue->first;
        }
        queue->reserved += RBI_CONN_CHUNK_BYTES;
    }
    return 0;
}

void rbi_conn_queue_put(struct rbi_conn_queue *queue, const void *bytes, size_t size)
{
    const unsigned char *from = bytes;
    RBI_ASSERT(size <= queue->reserved);
    queue->reserved -= size;
    queue->size += size;
    while (size) {
        struct rbi_conn_chunk *chunk = queue->last;
        if (chunk->end == RBI_CONN_CHUNK_BYTES) {
            chunk = chunk->next;
            queue->last = chunk;
        }
        const uint32_t part = (uint32_t)rbi_min_u64(size, RBI_CONN_CHUNK_BYTES - chunk->end);
        memcpy(chunk->bytes + chunk->end, from, part);
        chunk->end += part;
        from += part;
        size -= part;
    }
}

unsigned
rbi_conn_queue_head(const struct rbi_conn_queue *queue, struct iovec *pieces, unsigned count)
{
    unsigned set = 0;
    for (struct rbi_conn_chunk *chunk = queue->first; chunk && set < count; chunk = chunk->next) {
        if (chunk->begin == chunk->end) {
            break; /* reserved */
        }
        pieces[set++] = (struct iovec){.iov_base = chunk->bytes + chunk->begin,
                                       .iov_len = chunk->end - chunk->begin};
    }
    return set;
}

static void chunk_keep(struct rbi_conn_queue *queue, struct rbi_conn_chunk *chunk)
{
    if (queue->spare_count == SPARE_MAX) {
        free(chunk);
        return;
    }
    chunk->next = queue->spare;
    queue->spare = chunk;
    queue->spare_count++;
}

/** All of it has left. */
static void chunk_retire(struct rbi_conn_queue *queue, struct rbi_conn_chunk *chunk)
{
    if (chunk->holds) {
        chunk->left = true;
        queue->held_count++;
    } else {
        chunk_keep(queue, chunk);
    }
}

void rbi_conn_queue_hold(struct rbi_conn_queue *queue, unsigned count, struct rbi_conn_hold *hold)
{
    struct rbi_conn_chunk *chunk = queue->first;
    hold->count = count;
    for (unsigned i = 0; i < count; i++) {
        chunk->holds++;
        hold->chunks[i] = chunk;
        chunk = chunk->next;
    }
}

void rbi_conn_queue_return(struct rbi_conn_queue *queue, const struct rbi_conn_hold *hold)
{
    for (unsigned i = 0; i < hold->count; i++) {
        struct rbi_conn_chunk *chunk = hold->chunks[i];
        chunk->holds--;
        if (chunk->left && !chunk->holds) {
            queue->held_count--;
            chunk_keep(queue, chunk);
        }
    }
}

void rbi_conn_queue_take(struct rbi_conn_queue *queue, size_t size)
{
    RBI_ASSERT(size <= queue->size);
    queue->size -= size;
    while (size) {
        struct rbi_conn_chunk *chunk = queue->first;
        const uint32_t part = (uint32_t)rbi_min_u64(size, chunk->end - chunk->begin);
        chunk->begin += part;
        size -= part;
        if (chunk->begin < chunk->end) {
            return;
        }
        if (chunk == queue->last && chunk->end < RBI_CONN_CHUNK_BYTES) {
            if (chunk->holds) {
                return; /* what was in it is not to be written over; the rest of it is free */
            }
            /* Empty, not full: used again from its beginning. */
            queue->reserved += chunk->end;
            chunk->begin = 0;
            chunk->end = 0;
            return;
        }
        queue->first = chunk->next;
        if (chunk == queue->last) {
            queue->last = chunk->next;
        }
        chunk_retire(queue, chunk);
    }
}
