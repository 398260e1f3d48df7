/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_WORKER_H
#define RINGBUS_DAEMON_WORKER_H
/*
 * daemon/worker.h - what may wait for a disk, done beside the loop: a slow fsync() must not hold
 * back introductions and deaths. Such jobs are few and rare, so each has a thread of its own while
 * it lasts; it touches nothing but its job. Without a thread it is done in the loop.
 *
 *   rbi_worker_start() --> work(), beside the loop --> done(), in the loop
 */
#include "daemon/list.h"
#include "daemon/loop.h"

#include <pthread.h>

struct rbi_worker;
struct rbi_job;
typedef void (*rbi_job_fn)(struct rbi_job *job);

/** Embed it; zero-initialise. Private, and not to be moved while it is under way. */
struct rbi_job {
    struct rbi_list in_running;
    struct rbi_worker *worker;
    rbi_job_fn work;
    rbi_job_fn done;
    pthread_t thread;
    bool threaded;
    bool ended; /* under the lock of the worker */
};

struct rbi_worker {
    struct rbi_loop *loop;
    struct rbi_list running;
    int bell; /* eventfd that a job rings when it has ended; -1: all is done in the loop */
    struct rbi_loop_source source;
    struct rbi_loop_task task; /* for jobs that were done in the loop */
    pthread_mutex_t lock;
    bool ready;
    bool ending; /* nothing more is to be begun */
};

#define RBI_WORKER_NULL                                                                            \
    {                                                                                              \
        .bell = -1                                                                                 \
    }

void rbi_worker_init(struct rbi_worker *worker, struct rbi_loop *loop);
/** No job is under way. Accepts RBI_WORKER_NULL. */
void rbi_worker_deinit(struct rbi_worker *worker);
/**
 * Starts a job that is not under way.
 * @param work  must not touch what the loop does
 * @param done  called in a later turn; may start the job again, or free it
 */
void rbi_worker_start(struct rbi_worker *worker,
                      struct rbi_job *job,
                      rbi_job_fn work,
                      rbi_job_fn done);
/** Waits for all that is under way, for good. Accepts RBI_WORKER_NULL. */
void rbi_worker_finish(struct rbi_worker *worker);

#endif
