/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 85: the dispatch table of a cluster of 300 instances is built once, however many
 * messages are dispatched by key, and brought up to date, by far less, when one weight has
 * changed; then too most dispatches take what they always do, and no memory is left behind.
 *
 * Many threads, each with a handle and so a table of its own. A build is a dispatch that takes
 * the CPU for at least half as long as building such a table does; nothing else is near that.
 */
#include "bus/table.h"
#include "libclient/internal.h"
#include "support/bus.h"
#include "support/machine.h"
#include "support/test.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define MANY "/game/eu/pc/w1/core/many"

#define COLD_NS     1000U
#define INSTANCES   300U
#define POINTS      160U /* weight of each */
#define THREADS_MAX 16U
#define CHANGES     8U
#define WINDOW      10000U /* dispatches that are looked at beside a change */
#define FILES       16384U
#define LINK_MS     60000U

static struct cluster cluster;
static unsigned thread_count;
static uint64_t dispatches; /* of each thread before the first change */

/* Shared words. */
#define WORD_OPEN   0U
#define WORD_CHANGE 8U /* how many weight changes are wanted */
#define WORD_END    16U

/* ---- builds --------------------------------------------------------------------------------- */

static uint64_t build_ns; /* CPU time that one takes */

static uint64_t cpu_ns(void)
{
    struct timespec used;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000U + (uint64_t)used.tv_nsec;
}

static void measure_build(void)
{
    static uint16_t owners[RBI_TABLE_SLOTS_LARGE];
    static struct rbi_table_member table[INSTANCES];
    const struct rbi_table_shape shape = {
        .kind = RBI_TABLE_HRW, .slots = RBI_TABLE_SLOTS_LARGE, .ranks = 1};
    struct rbi_table_build build;
    void *scratch = malloc(rbi_table_scratch_bytes(&shape, INSTANCES, 0));
    CHECK(scratch != NULL);
    for (unsigned i = 0; i < INSTANCES; i++) {
        table[i] = (struct rbi_table_member){.instance = (int32_t)i + 1, .weight = POINTS};
    }
    build_ns = UINT64_MAX;
    for (unsigned i = 0; i < 3; i++) {
        const uint64_t start_ns = cpu_ns();
        rbi_table_build_begin(&build, &shape, NULL, table, INSTANCES, owners, scratch);
        CHECK(rbi_table_build_step(&build, UINT32_MAX));
        build_ns = rbi_min_u64(build_ns, cpu_ns() - start_ns);
    }
    free(scratch);
}

/* ---- the cluster: one process --------------------------------------------------------------- */

static struct node members[INSTANCES];

/* The library has no call for it yet: the message that such a call would send. */
static void change_weight(struct node *member, uint32_t weight)
{
    const struct rbi_wire_set_state body = {
        .state = RBI_ENDPOINT_READY, .weight = weight, .weight_set = 1};
    CHECK(rbi_control_send(member->bus, RBI_WIRE_SET_STATE, &body, NULL, 0) != 0);
    rbi_control_flush(member->bus);
}

static void be_cluster(const struct cluster *at, void *context)
{
    uint64_t changes = 0;
    (void)context;
    for (unsigned i = 0; i < INSTANCES; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, MANY "/%u", i + 1);
        struct ringbus_options options = node_options(at, path);
        options.mode = RINGBUS_MODE_BUSY; /* nobody rings: a dispatch makes no system call */
        options.weight = POINTS;
        options.lane_bytes = 4096;
        options.refs_per_link = 16;
        options.ping_interval_ms = 60000;
        options.pool[0] = (struct ringbus_pool_class){64, 1};
        node_open_with(&members[i], &options);
    }
    atomic_store(&bus_shared[WORD_OPEN], 1);
    while (atomic_load(&bus_shared[WORD_END]) == 0) {
        int handled = 0;
        for (unsigned i = 0; i < INSTANCES; i++) {
            handled += ringbus_poll(members[i].bus, 64);
        }
        if (handled == 0) {
            (void)sched_yield();
        }
        if (atomic_load(&bus_shared[WORD_CHANGE]) > changes) {
            changes++;
            change_weight(&members[changes % INSTANCES], POINTS + (uint32_t)changes);
        }
    }
}

/* ---- dispatching threads -------------------------------------------------------------------- */

struct dispatcher {
    pthread_t thread;
    struct node node;
    struct ringbus_addr any;
    uint64_t rng;
    uint64_t done;
    unsigned builds;
    unsigned builds_before; /* after all dispatches but before any change */
    unsigned builds_at_end;
    uint32_t p99_before_ns;
    uint32_t p99_change_ns; /* median of all changes */
    uint32_t most_ns;       /* longest dispatch beside a change */
    uint32_t ns[WINDOW];
};

static struct dispatcher dispatchers[THREADS_MAX];
static pthread_barrier_t barrier;

static void dispatch(struct dispatcher *self, uint32_t *ns)
{
    const uint64_t key = bus_random(&self->rng);
    const uint64_t start_cpu_ns = cpu_ns();
    const uint64_t start_ns = machine_now_ns();
    const int r = ringbus_send(self->node.bus, &self->any, key, &key, sizeof key, RINGBUS_KEY);
    const uint64_t took_ns = machine_now_ns() - start_ns;
    self->builds += cpu_ns() - start_cpu_ns > build_ns / 2;
    CHECK(r == 1 || r == RINGBUS_E_FULL);
    *ns = took_ns < UINT32_MAX ? (uint32_t)took_ns : UINT32_MAX;
    if (++self->done % 64 == 0) {
        CHECK(ringbus_poll(self->node.bus, 64) >= 0);
    }
}

static int by_size(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left;
    const uint32_t b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

/* Dispatches a window. @return its 99th percentile in ns */
static uint32_t window(struct dispatcher *self)
{
    for (unsigned i = 0; i < WINDOW; i++) {
        dispatch(self, &self->ns[i]);
    }
    qsort(self->ns, WINDOW, sizeof self->ns[0], by_size);
    return self->ns[WINDOW * 99 / 100];
}

static void *run_dispatcher(void *argument)
{
    struct dispatcher *self = argument;
    uint32_t ns = 0;
    for (uint64_t i = 0; i < dispatches; i++) {
        dispatch(self, &ns);
    }
    self->p99_before_ns = window(self);
    self->builds_before = self->builds;
    uint32_t p99s_ns[CHANGES];
    for (unsigned change = 1; change <= CHANGES; change++) {
        const unsigned updates = self->node.events[RINGBUS_EVENT_UPDATED];
        /* Nobody dispatches while a change is still on its way to somebody. */
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
            atomic_store(&bus_shared[WORD_CHANGE], change);
        }
        RUN_UNTIL(self->node.events[RINGBUS_EVENT_UPDATED] > updates, NODE_MS, &self->node);
        (void)pthread_barrier_wait(&barrier); /* all at once */
        p99s_ns[change - 1] = window(self);
        self->most_ns = self->ns[WINDOW - 1] > self->most_ns ? self->ns[WINDOW - 1] : self->most_ns;
        CHECK(self->builds == self->builds_before); /* one weight is no build */
        (void)pthread_barrier_wait(&barrier);
        if (self == &dispatchers[0] && change == 1) {
            atomic_store(&bus_shared[WORD_END + 1], (uint64_t)mallinfo2().uordblks);
        } else if (self == &dispatchers[0] && change == CHANGES) {
            atomic_store(&bus_shared[WORD_END + 2], (uint64_t)mallinfo2().uordblks);
        }
        (void)pthread_barrier_wait(&barrier);
    }
    qsort(p99s_ns, CHANGES, sizeof p99s_ns[0], by_size);
    self->p99_change_ns = p99s_ns[CHANGES / 2];
    self->builds_at_end = self->builds;
    return NULL;
}

static void open_dispatchers(void)
{
    for (unsigned i = 0; i < thread_count; i++) {
        struct dispatcher *self = &dispatchers[i];
        struct ringbus_options options = node_options(&cluster, NULL);
        options.lane_bytes = 4096;
        options.refs_per_link = 16;
        options.ping_interval_ms = 60000;
        options.pool[0] = (struct ringbus_pool_class){64, 1};
        memset(self, 0, sizeof *self);
        self->rng = i + 1;
        node_open_with(&self->node, &options);
        CHECK(ringbus_target(self->node.bus, MANY, NULL, &self->any) == 0);
        RUN_UNTIL(self->node.events[RINGBUS_EVENT_READY] == INSTANCES, LINK_MS, &self->node);
    }
}

static void test_table_is_built_once_for_each_change(void **state)
{
    (void)state;
    uint32_t before_ns = 0;
    uint32_t change_ns = 0;
    uint32_t most_ns = 0;
    thread_count = FULL_OR(THREADS_MAX, 4);
    dispatches = FULL_OR(1000000U, 100000U) / thread_count / TEST_SCALE;
    measure_build();
    bus_shared_reset();
    const pid_t pid = child_start(be_cluster, &cluster, NULL);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_OPEN]) == 1, LINK_MS, NULL);
    open_dispatchers();
    const unsigned fds = bus_fd_count();
    const unsigned maps = bus_map_count();
    assert_int_equal(pthread_barrier_init(&barrier, NULL, thread_count), 0);
    for (unsigned i = 0; i < thread_count; i++) {
        struct dispatcher *self = &dispatchers[i];
        assert_int_equal(pthread_create(&self->thread, NULL, run_dispatcher, self), 0);
    }
    for (unsigned i = 0; i < thread_count; i++) {
        struct dispatcher *self = &dispatchers[i];
        assert_int_equal(pthread_join(self->thread, NULL), 0);
        assert_int_equal(self->builds_before, 1);
        assert_int_equal(self->builds_at_end, 1);
        before_ns += self->p99_before_ns / thread_count;
        change_ns += self->p99_change_ns / thread_count;
        most_ns = self->most_ns > most_ns ? self->most_ns : most_ns;
    }
    print_message(
        "%u threads, %u instances: 1 build each in %llu dispatches, none for "
        "%u changes; p99 %u ns, beside a change %u ns, longest %.1f ms, a build %.1f ms\n",
        thread_count, INSTANCES, (unsigned long long)dispatches * thread_count, CHANGES, before_ns,
        change_ns, most_ns / 1e6, (double)build_ns / 1e6);
    /* Within a microsecond they differ by caches that the build has emptied, not by waiting. */
    assert_true(change_ns < 2 * before_ns || change_ns < COLD_NS);
    assert_int_equal(atomic_load(&bus_shared[WORD_END + 2]),
                     atomic_load(&bus_shared[WORD_END + 1]));
    assert_int_equal(bus_fd_count(), fds);
    /* The first message maps a lane whole: one mapping more a link. */
    assert_int_equal(bus_map_count(), maps + thread_count * INSTANCES);
    for (unsigned i = 0; i < thread_count; i++) {
        node_close(&dispatchers[i].node);
    }
    atomic_store(&bus_shared[WORD_END], 1);
    assert_int_equal(child_wait(pid, LINK_MS), 0);
    (void)pthread_barrier_destroy(&barrier);
}

static int setup(void **state)
{
    (void)state;
    struct rlimit limit;
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < FILES) {
        print_message("skipped: needs %u descriptors\n", FILES);
        exit(77);
    }
    (void)mallopt(M_ARENA_MAX, 1); /* so that mallinfo2() sees the memory of all threads */
    return cluster_up(&cluster, "quota: {instances: 4096, control: 1000000, connects: 1000000}\n");
}

static int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_table_is_built_once_for_each_change, setup, teardown),
    };
    return cmocka_run_group_tests_name("dispatch", tests, NULL, NULL);
}
