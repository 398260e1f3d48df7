/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/lookup.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct rbi_lookup {
    struct rbi_address address;
    rbi_lookup_fn done;
    void *context;
    struct rbi_loop_source source;
    int bell;
    pthread_mutex_t lock;
    bool found;     /* under the lock: the thread no longer touches it */
    bool forgotten; /* under the lock: nobody waits */
    int count;
    struct rbi_socket_address result[RBI_LOOKUP_MAX];
};

static void lookup_free(struct rbi_lookup *lookup)
{
    (void)pthread_mutex_destroy(&lookup->lock);
    (void)close(lookup->bell);
    free(lookup);
}

static void *lookup_run(void *context)
{
    struct rbi_lookup *lookup = context;
    const int count = rbi_address_find(&lookup->address, lookup->result, RBI_LOOKUP_MAX);
    (void)pthread_mutex_lock(&lookup->lock);
    lookup->count = count;
    lookup->found = true;
    const bool forgotten = lookup->forgotten;
    if (!forgotten) {
        (void)eventfd_write(lookup->bell, 1); /* under the lock: it is there until then */
    }
    (void)pthread_mutex_unlock(&lookup->lock);
    if (forgotten) {
        lookup_free(lookup);
    }
    return NULL;
}

static void lookup_ready(void *context, unsigned events)
{
    struct rbi_lookup *lookup = context;
    (void)events;
    (void)pthread_mutex_lock(&lookup->lock);
    const bool found = lookup->found;
    (void)pthread_mutex_unlock(&lookup->lock);
    if (found) {
        rbi_loop_remove(&lookup->source);
        lookup->done(lookup->context, lookup->result, lookup->count);
        lookup_free(lookup);
    }
}

struct rbi_lookup *rbi_lookup_forget(struct rbi_lookup *lookup)
{
    if (!lookup) {
        return NULL;
    }
    rbi_loop_remove(&lookup->source);
    (void)pthread_mutex_lock(&lookup->lock);
    lookup->forgotten = true;
    const bool found = lookup->found;
    (void)pthread_mutex_unlock(&lookup->lock);
    if (found) {
        lookup_free(lookup);
    }
    return NULL;
}

/** Signals are the loop's. */
static int thread_start(struct rbi_lookup *lookup)
{
    sigset_t all;
    sigset_t old;
    pthread_t thread;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    const int error = pthread_create(&thread, NULL, lookup_run, lookup);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (error == 0) {
        (void)pthread_detach(thread);
    }
    return -error;
}

int rbi_lookup_start(struct rbi_loop *loop,
                     const struct rbi_address *address,
                     rbi_lookup_fn done,
                     void *context,
                     struct rbi_lookup **out)
{
    struct rbi_lookup *lookup = calloc(1, sizeof(*lookup));
    if (!lookup) {
        return -ENOMEM;
    }
    lookup->address = *address;
    lookup->done = done;
    lookup->context = context;
    (void)pthread_mutex_init(&lookup->lock, NULL);
    lookup->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int result = lookup->bell < 0 ? -errno : 0;
    if (result == 0) {
        result =
            rbi_loop_add(loop, &lookup->source, lookup->bell, RBI_LOOP_IN, lookup_ready, lookup);
    }
    if (result == 0) {
        result = thread_start(lookup);
    }
    if (result < 0) {
        rbi_loop_remove(&lookup->source);
        lookup_free(lookup);
        return result;
    }
    *out = lookup;
    return 0;
}
