/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon, with its N-th system call refused or its N-th allocation failed, for every N: at
 * its start, while clients do all that they do with it, and at its stop. It lives on, or does
 * not start and says why; the clients get what they want in time; others keep their link;
 * nothing is left in the daemon.
 */
#include "faults/memory.h"
#include "faults/nth.h"
#include "faults/script.h"
#include "support/bus.h"
#include "support/loops.h"
#include "support/machine.h"
#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SAMPLE 10U /* of each test */

static struct nth *nth;
static struct memory *memory;
static char memory_path[128];
static uint64_t seed;
static unsigned only; /* number of the one point to try, 0: as ever */

/* ---- what fails: system calls or allocations ------------------------------------------------- */

static bool by_memory;

static void arm(unsigned n, unsigned pick)
{
    if (!by_memory) {
        nth_arm(nth, n, pick);
        return;
    }
    memory->n = n;
    memory->calls = 0;
    memory->armed = true;
}

/** @return whether the n-th came; *failed: it had such an error */
static bool disarm(bool *failed)
{
    if (!by_memory) {
        *failed = nth_disarm(nth);
        return nth->call >= 0;
    }
    memory->armed = false;
    *failed = memory->n > 0 && memory->calls >= memory->n;
    return *failed;
}

static unsigned counted(void)
{
    return by_memory ? memory->calls : nth->calls;
}

static const char *fault_text(void)
{
    static char text[64];
    (void)snprintf(text, sizeof text, "allocation %u", by_memory ? memory->n : 0);
    return by_memory ? text : nth_text(nth);
}

/** In the daemon's process, before exec. */
static void hold(void *context)
{
    (void)context;
    if (!by_memory) {
        if (nth_trace_me(nth) != 0) {
            _exit(125);
        }
    } else if (setenv(MEMORY_VARIABLE, memory_path, 1) != 0 ||
               setenv("LD_PRELOAD", MEMORY_LIBRARY, 1) != 0) {
        _exit(125);
    }
}

static void make_memory(void)
{
    (void)snprintf(memory_path, sizeof memory_path, "%s/memory", loops_cluster.folder);
    const int fd = open(memory_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)sizeof *memory), 0);
    memory = mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(memory != MAP_FAILED);
    (void)close(fd);
}

/* ---- points ---------------------------------------------------------------------------------- */

struct tally {
    unsigned failed;
    unsigned refused; /* of those, starts */
    unsigned wrong;
};

/** Tries one point. @return whether the n-th came and had the error */
typedef bool (*point_fn)(struct tally *tally, unsigned n, unsigned pick, bool *came);

static void try_all(struct tally *tally, point_fn point)
{
    bool came = true;
    for (unsigned n = 1; came; n++) {
        bool more = true;
        for (unsigned pick = 0; more && (pick == 0 || !by_memory); pick++) {
            more = point(tally, n, pick, &came);
        }
    }
}

static void try_sample(struct tally *tally, point_fn point, unsigned calls)
{
    for (unsigned i = 0; i < SAMPLE; i++) {
        bool came = false;
        const unsigned n = 1 + (unsigned)(bus_random(&seed) % calls);
        const unsigned pick = by_memory ? 0 : (unsigned)(bus_random(&seed) % 4);
        if (!point(tally, n, pick, &came) && came) {
            (void)point(tally, n, 0, &came);
        }
    }
}

static void try_points(struct tally *tally, point_fn point, unsigned calls)
{
    bool came = false;
    assert_true(calls > 0);
    for (unsigned pick = 0; only > 0 && point(tally, only, pick, &came); pick++) {
    }
    if (only == 0 && machine_full()) {
        try_all(tally, point);
    } else if (only == 0) {
        try_sample(tally, point, calls);
    }
}

static void wrong_at(struct tally *tally, const char *what, const char *detail)
{
    tally->wrong++;
    print_error("%s: %s %s\n", fault_text(), what, detail);
}

/* ---- while it serves ------------------------------------------------------------------------- */

static struct bystanders bystanders;
static int idle_fds;

static void begin_life(void)
{
    assert_int_equal(cluster_start(&loops_cluster), 0);
    assert_int_equal(bystanders_open(&bystanders, &loops_cluster), 0);
    assert_true(bystanders_are_well(&bystanders));
    /* What is taken once and kept is there. */
    assert_null(script_play(&loops_cluster, &bystanders));
    idle_fds = cluster_fd_count(&loops_cluster);
    idle_fds = cluster_fd_wait(&loops_cluster, idle_fds);
}

static bool has_ended(void)
{
    const bool ended = waitpid(loops_cluster.pid, &loops_cluster.status, WNOHANG) != 0;
    loops_cluster.pid = ended ? 0 : loops_cluster.pid;
    return ended;
}

static bool serve_disturbed(struct tally *tally, unsigned n, unsigned pick, bool *came)
{
    bool failed = false;
    assert_int_equal(truncate(loops_cluster.log, 0), 0);
    arm(n, pick);
    const char *missing = script_play(&loops_cluster, &bystanders);
    *came = disarm(&failed);
    if (has_ended()) {
        wrong_at(tally, "the daemon has ended", "");
        fail();
    }
    if (missing != NULL) {
        wrong_at(tally, "did not happen:", missing);
    }
    missing = script_play(&loops_cluster, &bystanders);
    if (missing != NULL) {
        wrong_at(tally, "did not happen afterwards:", missing);
    }
    if (!bystanders_are_well(&bystanders)) {
        wrong_at(tally, "others are disturbed", "");
    }
    const int fds = cluster_fd_wait(&loops_cluster, idle_fds);
    if (fds > idle_fds) {
        wrong_at(tally, "descriptors are left", "");
    }
    idle_fds = fds; /* fewer: something of the start was still open */
    tally->failed += failed;
    return failed;
}

static void test_nth_while_it_serves(void **state)
{
    struct tally tally = {0};
    bool failed = false;
    assert_int_equal(loops_make(state, "", "quota: {connects: 1000000}\n"), 0);
    make_memory();
    loops_cluster.before_exec = hold;
    begin_life();
    arm(0, 0);
    assert_null(script_play(&loops_cluster, &bystanders));
    const unsigned calls = counted();
    (void)disarm(&failed);
    try_points(&tally, serve_disturbed, calls);
    print_message("%u counted, %u failed, %u wrong\n", calls, tally.failed, tally.wrong);
    bystanders_close(&bystanders);
    assert_int_equal(tally.wrong, 0);
}

static void test_nth_allocation_while_it_serves(void **state)
{
    by_memory = true;
    test_nth_while_it_serves(state);
}

/* ---- start and stop -------------------------------------------------------------------------- */

/** Starts the daemon with the fault in its start. @return 0; its exit code; -1 it says nothing */
static int start_disturbed(unsigned n, unsigned pick)
{
    assert_int_equal(truncate(loops_cluster.log, 0), 0);
    nth_set(nth, n, pick);
    if (cluster_start(&loops_cluster) == 0) {
        return 0;
    }
    if (loops_cluster.pid > 0) {
        /* It runs; that its manager is told nothing must be said at least. */
        return cluster_log_count(&loops_cluster, "notify_failed") == 1 ? 0 : -1;
    }
    return WIFEXITED(loops_cluster.status) ? WEXITSTATUS(loops_cluster.status) : 128;
}

static bool start_point(struct tally *tally, unsigned n, unsigned pick, bool *came)
{
    struct bystanders some;
    bool failed = false;
    const int code = start_disturbed(n, pick);
    *came = disarm(&failed);
    tally->failed += failed;
    if (code != 0) {
        tally->refused++;
        if (code != 1) {
            wrong_at(tally, code < 0 ? "neither starts nor ends" : "ends with a wrong code", "");
            cluster_kill(&loops_cluster);
        } else if (cluster_log_count(&loops_cluster, " ") == 0) {
            wrong_at(tally, "ends without a word", "");
        }
        return failed;
    }
    if (bystanders_open(&some, &loops_cluster) != 0 || !bystanders_are_well(&some)) {
        wrong_at(tally, "starts, and serves nobody", "");
    }
    bystanders_close(&some);
    if (cluster_stop(&loops_cluster) != 0) {
        wrong_at(tally, "does not stop in order", "");
    }
    return failed;
}

static bool stop_point(struct tally *tally, unsigned n, unsigned pick, bool *came)
{
    struct bystanders some;
    bool failed = false;
    nth_set(nth, 0, 0);
    assert_int_equal(cluster_start(&loops_cluster), 0);
    assert_int_equal(bystanders_open(&some, &loops_cluster), 0);
    assert_true(bystanders_are_well(&some));
    arm(n, pick);
    if (cluster_stop(&loops_cluster) != 0) {
        wrong_at(tally, "does not stop in order", "");
    }
    *came = disarm(&failed);
    bystanders_close(&some);
    tally->failed += failed;
    return failed;
}

static void test_nth_at_start_and_stop(void **state)
{
    struct tally tally = {0};
    bool came = false;
    assert_int_equal(loops_make(state, "", ""), 0);
    const int log = open(loops_cluster.log, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(log >= 0 && close(log) == 0);
    loops_cluster.before_exec = hold;
    (void)snprintf(nth->from, sizeof nth->from, "/dev/null"); /* the first call of main() */
    (void)start_point(&tally, 0, 0, &came);
    assert_int_equal(tally.wrong, 0);
    const unsigned calls = counted();
    try_points(&tally, start_point, calls);
    nth->from[0] = '\0';
    print_message("start: %u counted, %u failed, %u did not start, %u wrong\n", calls, tally.failed,
                  tally.refused, tally.wrong);
    tally.failed = 0;
    (void)stop_point(&tally, 0, 0, &came);
    try_points(&tally, stop_point, counted());
    print_message("stop: %u failed, %u wrong\n", tally.failed, tally.wrong);
    assert_int_equal(tally.wrong, 0);
}

/* ---------------------------------------------------------------------------------------------- */

static int setup(void **state)
{
    by_memory = false;
    nth->from[0] = '\0';
    nth_set(nth, 0, 0);
    return loops_setup(state);
}

#define EACH(test)                                                                                 \
    {#test " on uring", test, setup, loops_teardown, (void *)(uintptr_t) "uring"},                 \
    {                                                                                              \
#test " on epoll", test, setup, loops_teardown, (void *)(uintptr_t) "epoll"                \
    }

/* test_nth_daemon [PATTERN [SEED [N]]] */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        EACH(test_nth_while_it_serves),
        EACH(test_nth_allocation_while_it_serves),
        EACH(test_nth_at_start_and_stop),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : "*");
    seed = argc > 2 ? strtoull(argv[2], NULL, 0) : machine_now_ns();
    only = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 0) : 0;
    nth = nth_new();
    if (nth == NULL || !nth_possible()) {
        (void)fputs("skipped: this machine does not let a process be traced\n", stderr);
        return 77;
    }
    (void)fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests_name("nth_daemon", tests, NULL, NULL);
}
