/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/workloads/control.c - what happens seldom: opening, introducing, and learning that a
 * partner was killed.
 */
#include "bench/crowd.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SAMPLES_MAX 200U
#define PATIENCE_NS UINT64_C(60000000000) /* ends a hang; what is promised is in bench/bars.c */

static unsigned samples(const struct bench_run *run, unsigned full)
{
    return run->options.smoke ? 5 : run->options.quick ? full / 4 : full;
}

static unsigned time_opens(const struct bench_run *run, double *us, unsigned count)
{
    unsigned n = 0;
    const struct ringbus_options options = bench_endpoint_options(run, RINGBUS_MODE_SLEEP);
    for (unsigned i = 0; i < count; i++) {
        const uint64_t start = bench_now_ns();
        struct ringbus *bus = bench_endpoint_open(&options, "Opened");
        if (bus != NULL) {
            us[n++] = (double)(bench_now_ns() - start) / 1e3;
            (void)ringbus_close(bus, 0);
        }
    }
    return n;
}

static void note_ready(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    (void)bus;
    if (event->type == RINGBUS_EVENT_READY) {
        *(uint64_t *)user = bench_now_ns();
    }
}

/* Both endpoints in this thread: the wire, the daemon and the mappings, nobody oversleeps. */
static double introduce_once(const struct bench_run *run)
{
    double us = 0;
    uint64_t ready = 0;
    struct ringbus_options options = bench_endpoint_options(run, RINGBUS_MODE_SLEEP);
    struct ringbus *server = bench_endpoint_open(&options, "Introduced");
    options.on_event = note_ready;
    options.user = &ready;
    struct ringbus *client = bench_endpoint_open(&options, NULL);
    const uint64_t start = bench_now_ns();
    if (server != NULL && client != NULL &&
        ringbus_target(client, "/Bench/local/host/w0/g0/Introduced", NULL, NULL) == 0) {
        while (ready == 0 && bench_now_ns() - start < PATIENCE_NS) {
            (void)ringbus_wait(server, 0);
            (void)ringbus_poll(server, 16);
            (void)ringbus_wait(client, 0);
            (void)ringbus_poll(client, 16);
        }
        us = ready != 0 ? (double)(ready - start) / 1e3 : 0;
    }
    (void)ringbus_close(client, 0);
    (void)ringbus_close(server, 0);
    return us;
}

static int open_and_introduce(struct bench_run *run, const struct bench_workload *workload)
{
    double us[SAMPLES_MAX];
    const unsigned wanted = samples(run, SAMPLES_MAX);
    unsigned n = time_opens(run, us, wanted);
    if (n < wanted) {
        return -1;
    }
    bench_run_value(run, workload->name, "ringbus", "open", 0, "sleep", "us", us, n);
    for (n = 0; n < wanted / 2; n++) {
        us[n] = introduce_once(run);
        if (us[n] <= 0) {
            (void)fprintf(stderr, "bench: not introduced\n");
            return -1;
        }
    }
    bench_run_value(run, workload->name, "ringbus", "introduce", 0, "sleep", "us", us, n);
    return 0;
}

/* ---- death ----------------------------------------------------------------------------------- */

struct witness {
    uint64_t down_ns;
    bool ready;
    enum ringbus_reason reason;
};

static void note_life(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    struct witness *witness = user;
    (void)bus;
    if (event->type == RINGBUS_EVENT_READY) {
        witness->ready = true;
    } else if (event->type == RINGBUS_EVENT_DOWN) {
        witness->down_ns = bench_now_ns();
        witness->reason = event->reason;
    }
}

static _Noreturn void victim(const struct bench_run *run)
{
    const struct ringbus_options options = bench_endpoint_options(run, RINGBUS_MODE_SLEEP);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct ringbus *bus = bench_endpoint_open(&options, "Victim");
    for (;;) {
        (void)ringbus_wait(bus, 1000);
        (void)ringbus_poll(bus, 16);
    }
}

static void await_event(struct ringbus *bus, const struct witness *witness, bool down)
{
    const uint64_t end_ns = bench_now_ns() + PATIENCE_NS;
    while ((down ? witness->down_ns == 0 : !witness->ready) && bench_now_ns() < end_ns) {
        (void)ringbus_wait(bus, 100);
        (void)ringbus_poll(bus, 16);
    }
}

/* Microseconds from the kill to the event; 0: it did not come. */
static double kill_once(const struct bench_run *run)
{
    struct witness witness = {0};
    struct ringbus_options options = bench_endpoint_options(run, RINGBUS_MODE_SLEEP);
    options.on_event = note_life;
    options.user = &witness;
    (void)fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        victim(run);
    }
    struct ringbus *bus = bench_endpoint_open(&options, NULL);
    if (bus != NULL && ringbus_target(bus, "/Bench/local/host/w0/g0/Victim", NULL, NULL) == 0) {
        await_event(bus, &witness, false);
    }
    const uint64_t start = bench_now_ns();
    (void)kill(pid, SIGKILL);
    if (witness.ready) {
        await_event(bus, &witness, true);
    }
    (void)waitpid(pid, NULL, 0);
    (void)ringbus_close(bus, 0);
    return witness.down_ns > start && witness.reason == RINGBUS_REASON_CRASHED
               ? (double)(witness.down_ns - start) / 1e3
               : 0;
}

static int death(struct bench_run *run, const struct bench_workload *workload)
{
    double us[SAMPLES_MAX];
    const unsigned n = samples(run, 100);
    for (unsigned i = 0; i < n; i++) {
        us[i] = kill_once(run);
        if (us[i] <= 0) {
            (void)fprintf(stderr, "bench: a death was not reported\n");
            return -1;
        }
    }
    bench_run_value(run, workload->name, "ringbus", "p50", 0, "sleep", "us", us, n);
    double worst = us[n - 1]; /* sorted by now */
    bench_run_value(run, workload->name, "ringbus", "worst", 0, "sleep", "us", &worst, 1);
    return 0;
}

const struct bench_workload bench_open_introduce = {
    "open", "opening an endpoint; from target() to READY", 1, true, open_and_introduce};
const struct bench_workload bench_death = {
    "death", "from kill -9 of a partner to the event that tells of it", 1, true, death};
