/* SPDX-License-Identifier: Apache-2.0 */
#include "crash/outage.h"

#include "crash/holding.h"
#include "crash/partner.h"
#include "crash/trace.h"
#include "crash/victim.h"
#include "support/machine.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Coming back takes a second or two: retries with jitter. */
#define BACK_MS    20000U
#define BEHIND_MAX 2000U /* instructions behind a boundary */
/* About so many points there are until a client is linked: what a sample is spread over. */
#define OUTAGE_POINTS 240U

static struct {
    unsigned at;
    uint64_t seed;
    uint32_t round;
    uint64_t back_ms_max;
} now;

void outage_say_where(void)
{
    if (now.round > 0) {
        (void)fprintf(stderr,
                      "crash: failed; again: crash --mode outage --at %u --seed %" PRIu64 "\n",
                      now.at, now.seed);
    }
}

static bool ended(int pidfd)
{
    struct pollfd fd = {.fd = pidfd, .events = POLLIN};
    return poll(&fd, 1, 0) == 1;
}

/** One step of the daemon while all others run. @return whether the client is still at work */
static bool step(struct trace *daemon, enum trace_how how, int client)
{
    CHECK(trace_resume(daemon, how) == 0);
    enum trace_stop stop = TRACE_GOES_ON;
    while ((stop = trace_wait(daemon, false)) == TRACE_GOES_ON) {
        (void)partners_step();
        if (ended(client)) {
            CHECK(trace_interrupt(daemon) == 0);
            return false;
        }
    }
    CHECK(stop == TRACE_STEPPED);
    return true;
}

/** @return whether the point was reached before the client had done all */
static bool step_to(struct trace *daemon, struct round_point at, int client)
{
    bool busy = true;
    for (unsigned i = 0; i < at.calls && busy; i++) {
        busy = step(daemon, TRACE_CALL, client);
    }
    for (unsigned i = 0; i < at.instructions && busy; i++) {
        busy = step(daemon, TRACE_INSTRUCTION, client);
    }
    return busy;
}

/* Established links do without: not a message of the witness is late or lost. */
static void check_links_without_daemon(void)
{
    const uint64_t before = partners_witnessed();
    for (unsigned i = 0; i < 100; i++) {
        (void)partners_step();
    }
    partners_settle();
    CHECK(partners_witnessed() >= before + 100);
}

static void wait_client(int client)
{
    const uint64_t deadline_ms = test_now_ms() + BACK_MS;
    while (!ended(client)) {
        CHECK(test_now_ms() < deadline_ms);
        partners_run();
    }
    CHECK(word_get(WORD_DONE) == 1);
}

/* Everybody is registered again, nothing is left of the client. */
static void wait_back(const struct cluster *cluster, const struct holding *baseline)
{
    struct holding after;
    const uint64_t start_ms = test_now_ms();
    for (;;) {
        partners_run();
        holding_take(cluster, &after);
        after.daemon.process.pid = baseline->daemon.process.pid;
        if (!partners_linked() && holding_counts_equal(baseline, &after)) {
            break;
        }
        if (test_now_ms() - start_ms > BACK_MS) {
            (void)holding_equal(baseline, &after, true);
            bus_die(__FILE__, __LINE__, "all that was before the daemon was killed is there again");
        }
    }
}

/* The one message of the client came, once, over whichever link it was. */
static void judge(void)
{
    const struct partner *partner = &partners[PARTNER_AWAKE];
    CHECK(partner->lives >= 1 && partner->lives == partner->downs);
    CHECK(partner->got + (partner->back > 0 ? 1U : 0U) == 1);
    CHECK(node_pool_used(&partner->node) == 0);
}

/** @return 1 the point was reached; 0 the client had done all before; -1 not permitted */
static int run(struct cluster *cluster, struct round_point at, const struct holding *baseline)
{
    struct trace daemon;
    const struct operation *operation = operation_find("send");
    const struct victim_order order = {.operation = operation, .round = ++now.round, .again = true};
    bus_shared_reset();
    partners_round(operation, order.round);
    if (trace_attach(&daemon, cluster->pid) != 0) {
        CHECK(errno == EPERM);
        return -1;
    }
    CHECK(trace_interrupt(&daemon) == 0);
    const int client = (int)syscall(SYS_pidfd_open, victim_start(&order), 0);
    CHECK(client >= 0);
    victim_go();
    const bool reached = step_to(&daemon, at, client);
    const uint64_t killed_ms = test_now_ms();
    if (reached) {
        trace_kill(&daemon);
        cluster->pid = 0;
        check_links_without_daemon();
        CHECK(cluster_start(cluster) == 0);
    } else {
        CHECK(trace_detach(&daemon) == 0);
    }
    wait_client(client);
    (void)close(client);
    wait_back(cluster, baseline);
    const uint64_t back_ms = test_now_ms() - killed_ms;
    now.back_ms_max = back_ms > now.back_ms_max ? back_ms : now.back_ms_max;
    judge();
    return reached ? 1 : 0;
}

/* Even: at a boundary of a system call. Odd: somewhere behind it. */
static struct round_point point(unsigned i)
{
    uint64_t random = now.seed + i;
    const unsigned behind = (unsigned)(bus_random(&random) % BEHIND_MAX);
    return (struct round_point){.calls = i / 2, .instructions = i % 2 != 0 ? behind : 0};
}

int outage_sweep(struct cluster *cluster, const struct sweep_options *options)
{
    struct holding baseline;
    unsigned count = 0;
    const uint64_t start_ms = test_now_ms();
    now.seed = options->seed;
    sweep_take_quiet(&baseline);
    unsigned stride = 0;
    unsigned at = sweep_first(options, OUTAGE_POINTS, &stride);
    at = options->at >= 0 ? (unsigned)options->at : at;
    int r = 1;
    while (r == 1) {
        now.at = at;
        r = run(cluster, point(at), &baseline);
        count++;
        at += stride;
        r = options->at >= 0 && r == 1 ? 0 : r;
    }
    if (r == 0) {
        (void)printf("crash: daemon       %5u points below %5u, %6" PRIu64
                     " ms, all back within %" PRIu64 " ms\n",
                     count, at, test_now_ms() - start_ms, now.back_ms_max);
    }
    return r;
}
