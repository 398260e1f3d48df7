/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/worker.h"

#include "daemon/log.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ---- beside the loop ------------------------------------------------------------------- */

static void *worker_thread(void *context)
{
    const uint64_t one = 1;
    struct rbi_job *job = context;
    struct rbi_worker *worker = job->worker;
    job->work(job);
    (void)pthread_mutex_lock(&worker->lock);
    job->ended = true; /* the job is the loop's again once the lock is */
    (void)pthread_mutex_unlock(&worker->lock);
    while (write(worker->bell, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
    return NULL;
}

/* ---- in the loop ----------------------------------------------------------------------- */

static void worker_end(struct rbi_job *job)
{
    if (job->threaded) {
        (void)pthread_join(job->thread, NULL);
    }
    rbi_list_remove(&job->in_running);
    job->done(job);
}

/** @return a job that has ended, or NULL */
static struct rbi_job *worker_find_ended(struct rbi_worker *worker)
{
    struct rbi_job *found = NULL;
    (void)pthread_mutex_lock(&worker->lock);
    RBI_LIST_EACH(node, spare, &worker->running)
    {
        struct rbi_job *job = RBI_CONTAINER_OF(node, struct rbi_job, in_running);
        found = found == NULL && job->ended ? job : found;
    }
    (void)pthread_mutex_unlock(&worker->lock);
    return found;
}

static void worker_collect(void *context)
{
    struct rbi_worker *worker = context;
    struct rbi_job *job = NULL;
    while ((job = worker_find_ended(worker)) != NULL) {
        worker_end(job);
    }
}

static void worker_rung(void *context, unsigned events)
{
    uint64_t count = 0;
    struct rbi_worker *worker = context;
    (void)events;
    while (read(worker->bell, &count, sizeof(count)) < 0 && errno == EINTR) {
    }
    worker_collect(worker);
}

void rbi_worker_init(struct rbi_worker *worker, struct rbi_loop *loop)
{
    *worker = (struct rbi_worker){.loop = loop, .ready = true};
    rbi_list_init(&worker->running);
    (void)pthread_mutex_init(&worker->lock, NULL);
    worker->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (worker->bell >= 0 &&
        rbi_loop_add(loop, &worker->source, worker->bell, RBI_LOOP_IN, worker_rung, worker) < 0) {
        (void)close(worker->bell);
        worker->bell = -1;
    }
}

void rbi_worker_deinit(struct rbi_worker *worker)
{
    if (worker->ready) {
        RBI_ASSERT(rbi_list_empty(&worker->running));
        rbi_loop_undefer(worker->loop, &worker->task);
        rbi_loop_remove(&worker->source);
        (void)pthread_mutex_destroy(&worker->lock);
        worker->ready = false;
    }
    if (worker->bell >= 0) {
        (void)close(worker->bell);
        worker->bell = -1;
    }
}

void rbi_worker_start(struct rbi_worker *worker,
                      struct rbi_job *job,
                      rbi_job_fn work,
                      rbi_job_fn done)
{
    *job = (struct rbi_job){.worker = worker, .work = work, .done = done};
    rbi_list_push_back(&worker->running, &job->in_running);
    /* It inherits that all our signals are blocked. */
    job->threaded =
        worker->bell >= 0 && pthread_create(&job->thread, NULL, worker_thread, job) == 0;
    if (!job->threaded) {
        rbi_log(RBI_LOG_DEBUG, "no_worker", "effect=\"files are written in the loop\"");
        work(job);
        job->ended = true;
        rbi_loop_defer(worker->loop, &worker->task, worker_collect, worker);
    }
}

void rbi_worker_finish(struct rbi_worker *worker)
{
    worker->ending = true;
    while (worker->ready && !rbi_list_empty(&worker->running)) {
        worker_end(RBI_CONTAINER_OF(worker->running.next, struct rbi_job, in_running));
    }
}
