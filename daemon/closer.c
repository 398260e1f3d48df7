/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/closer.h"

#include "daemon/log.h"

#include <unistd.h>

/* Freed in less time than a thread needs to begin. */
#define SMALL_BYTES   (UINT64_C(1) << 20)
#define PENDING_BYTES (UINT64_C(1) << 30)

void rbi_closer_init(struct rbi_closer *closer)
{
    *closer = (struct rbi_closer){.running = false};
    (void)pthread_mutex_init(&closer->lock, NULL);
    (void)pthread_cond_init(&closer->changed, NULL);
}

static void *closer_run(void *context)
{
    struct rbi_closer *closer = context;
    (void)pthread_mutex_lock(&closer->lock);
    while (closer->count || !closer->stopping) {
        if (closer->count == 0) {
            (void)pthread_cond_wait(&closer->changed, &closer->lock);
            continue;
        }
        const int fd = closer->fds[closer->first];
        const uint64_t bytes = closer->bytes[closer->first];
        closer->first = (closer->first + 1) % RBI_CLOSER_QUEUE;
        closer->count--;
        (void)pthread_mutex_unlock(&closer->lock);
        (void)close(fd);
        (void)pthread_mutex_lock(&closer->lock);
        closer->pending_bytes -= bytes;
    }
    (void)pthread_mutex_unlock(&closer->lock);
    return NULL;
}

static bool closer_start(struct rbi_closer *closer)
{
    if (!closer->running) {
        /* It inherits that all our signals are blocked. */
        closer->running = pthread_create(&closer->thread, NULL, closer_run, closer) == 0;
        if (!closer->running) {
            rbi_log(RBI_LOG_DEBUG, "no_closer", "effect=\"memory is freed in the loop\"");
        }
    }
    return closer->running;
}

/** @return false: the queue has no room for it */
static bool closer_queue(struct rbi_closer *closer, int fd, uint64_t bytes)
{
    (void)pthread_mutex_lock(&closer->lock);
    const bool room =
        closer->count < RBI_CLOSER_QUEUE && closer->pending_bytes + bytes <= PENDING_BYTES;
    if (room) {
        const unsigned at = (closer->first + closer->count) % RBI_CLOSER_QUEUE;
        closer->fds[at] = fd;
        closer->bytes[at] = bytes;
        closer->count++;
        closer->pending_bytes += bytes;
        (void)pthread_cond_signal(&closer->changed);
    }
    (void)pthread_mutex_unlock(&closer->lock);
    return room;
}

void rbi_closer_close(struct rbi_closer *closer, int fd, uint64_t bytes)
{
    if (bytes <= SMALL_BYTES || !closer_start(closer) || !closer_queue(closer, fd, bytes)) {
        (void)close(fd);
    }
}

void rbi_closer_deinit(struct rbi_closer *closer)
{
    if (closer->running) {
        (void)pthread_mutex_lock(&closer->lock);
        closer->stopping = true;
        (void)pthread_cond_signal(&closer->changed);
        (void)pthread_mutex_unlock(&closer->lock);
        (void)pthread_join(closer->thread, NULL);
        closer->running = false;
    }
}
