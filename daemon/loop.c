/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/loop.h"

#include "daemon/log.h"
#include "daemon/loop_backend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

/* Connections taken before the others have their turn. */
#define ACCEPT_BATCH 16U

struct rbi_loop {
    const struct rbi_loop_backend *backend;
    void *state;
    uint64_t now_ns;
    bool stopping;
    /* Sources by number: what the kernel reports may be about one that is gone. */
    struct rbi_loop_source **sources;
    uint32_t *generations;
    uint32_t *free_idx;
    uint32_t free_count;
    uint32_t source_capacity;
    struct rbi_loop_source *again;
    /* Timers: binary heap, the soonest first; entry 0 is unused. */
    struct rbi_loop_timer **heap;
    uint32_t timer_count;
    uint32_t heap_capacity;
    struct rbi_loop_task *task_head;
    struct rbi_loop_task **task_tail;
    unsigned char *scratch; /* for what streams receive, if they do so by readiness */
};

/* ---- time and timers ------------------------------------------------------------------- */

void rbi_loop_tick(struct rbi_loop *loop)
{
    struct timespec now;
    RBI_ASSERT(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    loop->now_ns = (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t rbi_loop_now_ns(const struct rbi_loop *loop)
{
    return loop->now_ns;
}

static void heap_place(struct rbi_loop *loop, struct rbi_loop_timer *timer, uint32_t idx)
{
    loop->heap[idx] = timer;
    timer->heap_idx = idx;
}

static void heap_up(struct rbi_loop *loop, struct rbi_loop_timer *timer, uint32_t idx)
{
    while (idx > 1 && loop->heap[idx / 2]->due_ns > timer->due_ns) {
        heap_place(loop, loop->heap[idx / 2], idx);
        idx /= 2;
    }
    heap_place(loop, timer, idx);
}

static void heap_down(struct rbi_loop *loop, struct rbi_loop_timer *timer, uint32_t idx)
{
    for (;;) {
        uint32_t child = idx * 2;
        if (child > loop->timer_count) {
            break;
        }
        if (child < loop->timer_count &&
            loop->heap[child + 1]->due_ns < loop->heap[child]->due_ns) {
            child++;
        }
        if (loop->heap[child]->due_ns >= timer->due_ns) {
            break;
        }
        heap_place(loop, loop->heap[child], idx);
        idx = child;
    }
    heap_place(loop, timer, idx);
}

static bool heap_reserve(struct rbi_loop *loop)
{
    if (loop->timer_count + 1 < loop->heap_capacity) {
        return true;
    }
    const uint32_t capacity = loop->heap_capacity ? loop->heap_capacity * 2 : 64;
    struct rbi_loop_timer **heap = realloc(loop->heap, capacity * sizeof(struct rbi_loop_timer *));
    if (!heap) {
        return false;
    }
    loop->heap = heap;
    loop->heap_capacity = capacity;
    return true;
}

void rbi_loop_timer_set(struct rbi_loop *loop,
                        struct rbi_loop_timer *timer,
                        uint64_t due_ns,
                        rbi_loop_timer_fn fn,
                        void *context)
{
    rbi_loop_timer_cancel(loop, timer);
    timer->due_ns = due_ns;
    timer->fn = fn;
    timer->context = context;
    if (!heap_reserve(loop)) {
        fn(context);
        return;
    }
    loop->timer_count++;
    heap_up(loop, timer, loop->timer_count);
}

void rbi_loop_timer_cancel(struct rbi_loop *loop, struct rbi_loop_timer *timer)
{
    const uint32_t idx = timer->heap_idx;
    if (!idx) {
        return;
    }
    timer->heap_idx = 0;
    struct rbi_loop_timer *last = loop->heap[loop->timer_count--];
    if (last == timer) {
        return;
    }
    if (idx > 1 && loop->heap[idx / 2]->due_ns > last->due_ns) {
        heap_up(loop, last, idx);
    } else {
        heap_down(loop, last, idx);
    }
}

static void loop_fire_timers(struct rbi_loop *loop)
{
    while (loop->timer_count && loop->heap[1]->due_ns <= loop->now_ns) {
        struct rbi_loop_timer *timer = loop->heap[1];
        rbi_loop_timer_cancel(loop, timer);
        timer->fn(timer->context);
    }
}

/* ---- sources --------------------------------------------------------------------------- */

static bool loop_grow_sources(struct rbi_loop *loop)
{
    const uint32_t old = loop->source_capacity;
    const uint32_t capacity = old ? old * 2 : 64;
    struct rbi_loop_source **sources =
        realloc(loop->sources, capacity * sizeof(struct rbi_loop_source *));
    if (!sources) {
        return false;
    }
    loop->sources = sources;
    uint32_t *generations = realloc(loop->generations, capacity * sizeof(uint32_t));
    if (!generations) {
        return false;
    }
    loop->generations = generations;
    uint32_t *free_idx = realloc(loop->free_idx, capacity * sizeof(uint32_t));
    if (!free_idx) {
        return false;
    }
    loop->free_idx = free_idx;
    for (uint32_t idx = capacity; idx-- > old;) {
        loop->sources[idx] = NULL;
        loop->generations[idx] = 0;
        loop->free_idx[loop->free_count++] = idx;
    }
    loop->source_capacity = capacity;
    return true;
}

int rbi_loop_place(struct rbi_loop *loop, struct rbi_loop_source *source)
{
    if (!loop->free_count && !loop_grow_sources(loop)) {
        return -ENOMEM;
    }
    const uint32_t idx = loop->free_idx[--loop->free_count];
    source->idx = idx;
    source->generation = ++loop->generations[idx];
    source->loop = loop;
    loop->sources[idx] = source;
    return 0;
}

void rbi_loop_displace(struct rbi_loop_source *source)
{
    struct rbi_loop *loop = source->loop;
    loop->sources[source->idx] = NULL;
    loop->generations[source->idx]++;
    loop->free_idx[loop->free_count++] = source->idx;
    source->loop = NULL;
}

static int loop_watch(struct rbi_loop *loop, struct rbi_loop_source *source)
{
    int result = rbi_loop_place(loop, source);
    if (result == 0) {
        result = loop->backend->add(loop->state, source);
        if (result < 0) {
            rbi_loop_displace(source);
        }
    }
    return result;
}

int rbi_loop_add(struct rbi_loop *loop,
                 struct rbi_loop_source *source,
                 int fd,
                 unsigned want,
                 rbi_loop_ready_fn ready,
                 void *context)
{
    *source = (struct rbi_loop_source){.fd = fd, .want = want, .ready = ready, .context = context};
    return loop_watch(loop, source);
}

static void loop_accept_some(void *context, unsigned events)
{
    struct rbi_loop_source *source = context;
    struct rbi_loop *loop = source->loop;
    const uint32_t idx = source->idx;
    const uint32_t generation = source->generation;
    (void)events;
    for (unsigned i = 0; i < ACCEPT_BATCH; i++) {
        const int fd = accept4(source->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && errno == EAGAIN) {
            return;
        }
        source->accepted(source->accept_context, fd < 0 ? -errno : fd);
        if (!rbi_loop_lookup(loop, idx, generation) || source->want == 0) {
            return;
        }
    }
    rbi_loop_again(source);
}

int rbi_loop_accept(struct rbi_loop *loop,
                    struct rbi_loop_source *source,
                    int fd,
                    rbi_loop_accept_fn accepted,
                    void *context)
{
    *source = (struct rbi_loop_source){.fd = fd,
                                       .want = RBI_LOOP_IN,
                                       .ready = loop_accept_some,
                                       .context = source,
                                       .accepted = accepted,
                                       .accept_context = context};
    return loop_watch(loop, source);
}

void rbi_loop_want(struct rbi_loop_source *source, unsigned want)
{
    if (!source->loop || source->want == want) {
        return;
    }
    source->want = want;
    source->loop->backend->change(source->loop->state, source);
}

void rbi_loop_again(struct rbi_loop_source *source)
{
    if (source->loop && !source->again) {
        source->again = true;
        source->next_again = source->loop->again;
        source->loop->again = source;
    }
}

static void loop_forget_again(struct rbi_loop *loop, struct rbi_loop_source *source)
{
    for (struct rbi_loop_source **at = &loop->again; *at; at = &(*at)->next_again) {
        if (*at == source) {
            *at = source->next_again;
            break;
        }
    }
    source->again = false;
}

void rbi_loop_remove(struct rbi_loop_source *source)
{
    struct rbi_loop *loop = source->loop;
    if (!loop) {
        return;
    }
    loop->backend->remove(loop->state, source);
    if (source->again) {
        loop_forget_again(loop, source);
    }
    rbi_loop_displace(source);
}

struct rbi_loop_source *
rbi_loop_lookup(const struct rbi_loop *loop, uint32_t idx, uint32_t generation)
{
    if (idx >= loop->source_capacity || loop->generations[idx] != generation) {
        return NULL;
    }
    return loop->sources[idx];
}

void rbi_loop_dispatch(struct rbi_loop_source *source, unsigned events)
{
    const unsigned wanted = events & (source->want | RBI_LOOP_HUP);
    if (wanted) {
        source->ready(source->context, wanted);
    }
}

/** One more call for every source that asked; what they ask for now waits for the next turn. */
static void loop_run_again(struct rbi_loop *loop)
{
    unsigned budget = 0;
    for (const struct rbi_loop_source *s = loop->again; s; s = s->next_again) {
        budget++;
    }
    while (budget-- && loop->again) {
        struct rbi_loop_source *source = loop->again;
        loop->again = source->next_again;
        source->again = false;
        if (source->want & RBI_LOOP_IN) {
            source->ready(source->context, RBI_LOOP_IN);
        }
    }
}

/* ---- deferred work and the run --------------------------------------------------------- */

void rbi_loop_undefer(struct rbi_loop *loop, struct rbi_loop_task *task)
{
    if (!task->queued) {
        return;
    }
    struct rbi_loop_task **at = &loop->task_head;
    while (*at != task) {
        at = &(*at)->next;
    }
    *at = task->next;
    if (!*at) {
        loop->task_tail = at;
    }
    task->queued = false;
}

void rbi_loop_defer(struct rbi_loop *loop,
                    struct rbi_loop_task *task,
                    rbi_loop_task_fn fn,
                    void *context)
{
    if (task->queued) {
        return;
    }
    *task = (struct rbi_loop_task){.queued = true, .fn = fn, .context = context};
    *loop->task_tail = task;
    loop->task_tail = &task->next;
}

/** Runs as many as were queued before this call; what these queue waits for the next turn. */
static void loop_run_tasks(struct rbi_loop *loop)
{
    unsigned budget = 0;
    for (const struct rbi_loop_task *task = loop->task_head; task; task = task->next) {
        budget++;
    }
    while (budget-- && loop->task_head) {
        struct rbi_loop_task *task = loop->task_head;
        rbi_loop_undefer(loop, task);
        task->fn(task->context);
    }
}

int rbi_loop_turn(struct rbi_loop *loop, uint64_t timeout_ns)
{
    rbi_loop_tick(loop);
    if (loop->timer_count) {
        const uint64_t due_ns = loop->heap[1]->due_ns;
        timeout_ns = rbi_min_u64(timeout_ns, due_ns > loop->now_ns ? due_ns - loop->now_ns : 0);
    }
    if (loop->again || loop->task_head) {
        timeout_ns = 0;
    }
    const int result = loop->backend->wait(loop->state, loop, timeout_ns);
    loop_run_again(loop);
    loop_fire_timers(loop);
    loop_run_tasks(loop);
    return result;
}

int rbi_loop_run(struct rbi_loop *loop)
{
    int result = 0;
    while (!loop->stopping && result == 0) {
        result = rbi_loop_turn(loop, UINT64_MAX);
    }
    return result;
}

void rbi_loop_stop(struct rbi_loop *loop)
{
    loop->stopping = true;
}

/* ---- life ------------------------------------------------------------------------------ */

const struct rbi_loop_backend *rbi_loop_way(const struct rbi_loop *loop, void **state)
{
    *state = loop->state;
    return loop->backend;
}

unsigned char *rbi_loop_scratch(struct rbi_loop *loop)
{
    if (!loop->scratch) {
        loop->scratch = malloc(RBI_LOOP_STREAM_PIECE);
    }
    return loop->scratch;
}

const char *rbi_loop_backend(const struct rbi_loop *loop)
{
    return loop->backend->name;
}

struct rbi_loop *rbi_loop_free(struct rbi_loop *loop)
{
    if (!loop) {
        return NULL;
    }
    if (loop->backend) {
        loop->backend->end(loop->state);
    }
    free(loop->scratch);
    free(loop->heap);
    free(loop->sources);
    free(loop->generations);
    free(loop->free_idx);
    free(loop);
    return NULL;
}

int rbi_loop_new(struct rbi_loop **out, enum rbi_config_loop kind)
{
    struct rbi_loop *loop = calloc(1, sizeof(*loop));
    if (!loop) {
        return -ENOMEM;
    }
    loop->task_tail = &loop->task_head;
    rbi_loop_tick(loop);
    int result = -ENOSYS;
    if (kind != RBI_LOOP_EPOLL) {
        result = rbi_loop_uring.start(loop, &loop->state);
        if (result == 0) {
            loop->backend = &rbi_loop_uring;
        } else {
            rbi_log(RBI_LOG_WARNING, "loop_fallback",
                    "refused=io_uring_queue_init error=\"%s\" using=epoll", rbi_log_errno(-result));
        }
    }
    if (!loop->backend) {
        result = rbi_loop_epoll.start(loop, &loop->state);
        loop->backend = result == 0 ? &rbi_loop_epoll : NULL;
    }
    if (result < 0) {
        rbi_loop_free(loop);
        return result;
    }
    *out = loop;
    return 0;
}
