/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library, with its N-th system call refused, for every N and every plausible error, and
 * with its N-th allocation failed: each operation works all the same, or returns an error that
 * says what failed and works when it is repeated. Nothing hangs, nothing is left after the
 * close, and neither the partner nor the daemon takes any notice.
 */
#include "faults/errors.h"
#include "faults/memory.h"
#include "faults/nth.h"
#include "faults/victim.h"
#include "support/bus.h"
#include "support/machine.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define SAMPLE       6U
#define PROGRESS_MS  30000U /* a round has four deadlines */
#define SENTENCE_MIN 12U

static struct cluster cluster;
static struct nth *nth;
static struct memory memory; /* of the victim, who is forked */
static bool by_memory;
static uint64_t seed;

/* ---- what fails: system calls or allocations ------------------------------------------------- */

static void arm(unsigned n, unsigned pick)
{
    if (!by_memory) {
        nth_arm(nth, n, pick);
        return;
    }
    memory.n = n;
    memory.calls = 0;
    memory.armed = true;
}

/** @return whether something failed */
static bool disarm(void)
{
    memory.armed = false;
    return by_memory ? memory.n > 0 && memory.calls >= memory.n : nth_disarm(nth);
}

static unsigned counted(void)
{
    return by_memory ? memory.calls : nth->calls;
}

/** Whether the n-th came, though it may not have had such an error. */
static bool came(void)
{
    return by_memory ? memory.calls >= memory.n : nth->call >= 0;
}

/** Whether the n-th has further errors than that one. */
static bool has_more(void)
{
    return !by_memory && nth->error != 0;
}

static bool is_invisible(void)
{
    return !by_memory && errors_is_invisible(nth->call, nth->error);
}

static const char *fault_text(void)
{
    static char text[64];
    (void)snprintf(text, sizeof text, "allocation %u", memory.n);
    return by_memory ? text : nth_text(nth);
}

/* ---- one round, in the victim's process ------------------------------------------------------ */

static const char *name_of(int error)
{
    return error == VICTIM_NEVER ? "never" : ringbus_error_name(error);
}

static void violation(const char *operation, const char *what, const struct victim *victim, int r)
{
    atomic_fetch_add(&bus_shared[SHARED_VIOLATIONS], 1);
    (void)fprintf(stderr, "%s: %s: %s (%s: %s)\n", operation, fault_text(), what, name_of(r),
                  r == VICTIM_NEVER ? victim->never : victim->error);
}

/** What may be wrong with the result of the operation that was disturbed. @return NULL nothing */
static const char *wrong_result(const struct victim *victim, int r, bool refused)
{
    if (r == 0) {
        return NULL;
    }
    if (r == VICTIM_NEVER) {
        return "hangs";
    }
    if (!refused || is_invisible()) {
        return "fails, and nobody may see why";
    }
    const enum ringbus_error_kind kind = ringbus_error_kind(r);
    if (kind == RINGBUS_ERROR_NONE || kind == RINGBUS_ERROR_USAGE ||
        kind == RINGBUS_ERROR_INTERNAL) {
        return "fails with a code of the wrong kind";
    }
    return strlen(victim->error) < SENTENCE_MIN ? "fails without a sentence" : NULL;
}

static const char *run_disturbed(const struct operation *operation,
                                 struct victim *victim,
                                 unsigned n,
                                 unsigned pick,
                                 int *result)
{
    int r = operation->setup != NULL ? operation->setup(victim) : 0;
    *result = r;
    if (r != 0) {
        return "cannot be set up";
    }
    arm(n, pick);
    r = operation->run(victim);
    const bool refused = disarm();
    atomic_fetch_add(&bus_shared[SHARED_POINTS], refused);
    atomic_fetch_add(&bus_shared[SHARED_ERRORS], refused && r != 0);
    *result = r;
    const char *wrong = wrong_result(victim, r, refused);
    if (wrong == NULL && r != 0) {
        *result = operation->run(victim);
        wrong = *result != 0 ? "does not work when it is repeated" : NULL;
    }
    return wrong;
}

static void round_run(const struct operation *operation, unsigned n, unsigned pick)
{
    struct victim victim = {.cluster = &cluster};
    const unsigned fds = bus_fd_count();
    const unsigned maps = bus_map_count();
    int r = 0;
    const char *wrong = run_disturbed(operation, &victim, n, pick, &r);
    if (wrong == NULL) {
        r = victim_talk(&victim);
        wrong = r != 0 ? "leaves a handle that does not work" : NULL;
    }
    if (wrong == NULL && victim.damaged) {
        wrong = "damages a payload";
    }
    const int closed = victim_close(&victim);
    if (wrong == NULL && closed != 0) {
        r = closed;
        wrong = "leaves a handle that cannot be closed";
    }
    if (wrong != NULL) {
        violation(operation->name, wrong, &victim, r);
    } else if (bus_fd_count() != fds || bus_map_count() != maps) {
        violation(operation->name, "leaves descriptors or mappings", &victim, 0);
        (void)fprintf(stderr, "    %d descriptors and %d mappings more\n",
                      (int)(bus_fd_count() - fds), (int)(bus_map_count() - maps));
    }
    atomic_fetch_add(&bus_shared[SHARED_ROUNDS], 1);
}

static void run_sample(const struct operation *operation, unsigned calls)
{
    for (unsigned i = 0; i < SAMPLE && calls > 0; i++) {
        const unsigned n = 1 + (unsigned)(bus_random(&seed) % calls);
        const unsigned pick = (unsigned)(bus_random(&seed) % 4);
        round_run(operation, n, pick);
        if (!by_memory && came() && !has_more()) {
            round_run(operation, n, 0);
        }
    }
}

static void run_all(const struct operation *operation)
{
    for (unsigned n = 1;; n++) {
        for (unsigned pick = 0;; pick++) {
            round_run(operation, n, pick);
            if (!came()) {
                return;
            }
            if (!has_more()) {
                break;
            }
        }
    }
}

static void victim_run(const struct cluster *of, void *context)
{
    const struct operation *operation = context;
    (void)of;
    memory_of_process = &memory;
    CHECK(by_memory || nth_trace_me(nth) == 0);
    round_run(operation, 0, 0);
    round_run(operation, 0, 0); /* what is taken once is there */
    const unsigned calls = counted();
    if (machine_full()) {
        run_all(operation);
    } else {
        run_sample(operation, calls);
    }
}

/* ---- around it ------------------------------------------------------------------------------- */

static void restart_daemon(void)
{
    cluster_kill(&cluster);
    assert_int_equal(cluster_start(&cluster), 0);
    atomic_store(&bus_shared[SHARED_RESTART], 0);
}

/** Serves the victim until it has ended. @return exit code; 128 + signal; -1 it hangs */
static int attend(pid_t pid)
{
    uint64_t rounds = 0;
    uint64_t deadline_ms = test_now_ms() + PROGRESS_MS;
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) != pid) {
        const uint64_t now_ms = test_now_ms();
        if (atomic_load(&bus_shared[SHARED_ROUNDS]) != rounds) {
            rounds = atomic_load(&bus_shared[SHARED_ROUNDS]);
            deadline_ms = now_ms + PROGRESS_MS;
        }
        if (atomic_load(&bus_shared[SHARED_RESTART]) != 0) {
            restart_daemon();
        }
        if (now_ms > deadline_ms) {
            child_kill(pid);
            return -1;
        }
        test_sleep_ms(2);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static const struct operation *chosen; /* NULL: all */

static void run_operations(void)
{
    uint64_t violations = 0;
    bus_shared_reset();
    const pid_t partner = child_start(partner_run, &cluster, NULL);
    for (size_t i = 0; i < operation_count; i++) {
        const struct operation *operation = &operations[i];
        const uint64_t start_ms = test_now_ms();
        if (chosen != NULL && chosen != operation) {
            continue;
        }
        (void)bus_random(&seed);
        for (unsigned word = SHARED_ROUNDS; word <= SHARED_ERRORS; word++) {
            atomic_store(&bus_shared[word], 0);
        }
        const int code = attend(child_start(victim_run, &cluster, (void *)(uintptr_t)operation));
        violations += atomic_load(&bus_shared[SHARED_VIOLATIONS]);
        print_message("%-12s %u failed, %u errors, %u wrong, %u ms\n", operation->name,
                      (unsigned)atomic_load(&bus_shared[SHARED_POINTS]),
                      (unsigned)atomic_load(&bus_shared[SHARED_ERRORS]),
                      (unsigned)atomic_load(&bus_shared[SHARED_VIOLATIONS]),
                      (unsigned)(test_now_ms() - start_ms));
        if (code != 0) {
            print_error("%s: the victim ended with %d at %s\n", operation->name, code,
                        by_memory ? "some allocation" : nth_text(nth));
            violations++;
        }
        assert_int_equal(waitpid(partner, NULL, WNOHANG), 0);
        assert_int_equal(kill(cluster.pid, 0), 0);
    }
    child_kill(partner);
    assert_int_equal(violations, 0);
    assert_int_equal(cluster_stop(&cluster), 0);
}

static void test_nth_call_of_the_library(void **state)
{
    (void)state;
    by_memory = false;
    run_operations();
}

static void test_nth_allocation_of_the_library(void **state)
{
    (void)state;
    by_memory = true;
    run_operations();
}

static int setup(void **state)
{
    (void)state;
    if (cluster_up(&cluster, "quota: {connects: 100000}\n") != 0) {
        return -1;
    }
    /* That a daemon has settled makes everybody look at all of it, and hides what was lost. */
    return cluster_log_wait(&cluster, "event=settled", 20000) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

static const struct operation *find(const char *name)
{
    for (size_t i = 0; i < operation_count; i++) {
        if (strcmp(operations[i].name, name) == 0) {
            return &operations[i];
        }
    }
    return NULL;
}

/* test_nth_library [OPERATION [SEED]] */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nth_call_of_the_library, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nth_allocation_of_the_library, setup, teardown),
    };
    seed = argc > 2 ? strtoull(argv[2], NULL, 0) : machine_now_ns();
    chosen = argc > 1 ? find(argv[1]) : NULL;
    nth = nth_new();
    if (nth == NULL || !nth_possible()) {
        (void)fputs("skipped: this machine does not let a process be traced\n", stderr);
        return 77;
    }
    (void)fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests_name("nth_library", tests, NULL, NULL);
}
