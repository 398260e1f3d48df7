/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instances that are neither well nor dead, under real load and all at once (features 2.2 to 2.5,
 * acceptance 2 and 4): one is four times slower than the others, one fails 70 of 100 calls, one is
 * killed and comes back. Callers in this process, instances in their own.
 *
 * Instances take a time for each request that they sleep, and what is measured is compared
 * within a run: the machine may be as slow as it likes.
 */
#include "libclient/internal.h"
#include "support/machine.h"
#include "support/raw.h"
#include "support/service.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define INSTANCES 3U
#define SLOW      1U
#define FAILING   2U
#define MORTAL    3U
#define FAST_NS   500000U /* 2000 requests a second */
#define SLOW_NS   (4U * FAST_NS)
#define RATE      2400U /* of 4500 that they could do, but more than 3 x 500 */
/* What comes of choosing is to be seen: nothing is refused because there is too much of it. */
#define UNBOUNDED "overload: {max_inflight: 0, sojourn_target: 0us}"
#define WINDOW_MS FULL_OR(5000U, 1200U)

static struct cluster cluster;
static pid_t pids[INSTANCES + 1];
static struct load *load;

static void start_all(void)
{
    bus_shared_reset();
    for (unsigned i = 1; i <= INSTANCES; i++) {
        service_take_ns(i, i == SLOW ? SLOW_NS : FAST_NS);
        pids[i] = service_start(&cluster, i);
    }
}

static void stop_all(void)
{
    for (unsigned i = 1; i <= INSTANCES; i++) {
        service_stop(i, pids[i]);
    }
}

static void run_ms(uint64_t ms)
{
    const uint64_t end_ms = test_now_ms() + ms;
    while (test_now_ms() < end_ms) {
        load_step(&load, 1);
    }
}

/* ---- one that is slow ----------------------------------------------------------------------- */

struct measured {
    uint32_t p50_us;
    uint32_t p99_us;
    double share;
};

static struct measured measure(const char *mode)
{
    char config[256];
    (void)snprintf(config, sizeof config,
                   "clusters: [{match: " SERVICE_PATH ", balance: {mode: %s}, " UNBOUNDED "}]\n",
                   mode);
    assert_int_equal(cluster_up(&cluster, config), 0);
    start_all();
    load = load_open(&cluster, NULL, INSTANCES, LOAD_KEYLESS, RATE);
    run_ms(200);
    load_settle(&load, 1);
    load_measure(load);
    run_ms(WINDOW_MS);
    load_settle(&load, 1);
    const struct measured got = {.p50_us = load_percentile_us(load, 500),
                                 .p99_us = load_percentile_us(load, 990),
                                 .share = load_share(load, SLOW)};
    print_message("%s: %llu requests, p50 %u us, p99 %u us, the slow one took %.1f %%\n", mode,
                  (unsigned long long)load->begun, got.p50_us, got.p99_us, 100 * got.share);
    assert_int_equal(load->refused[0], 0);
    assert_int_equal(load->outcomes[RINGBUS_REPLIED], load->begun);
    load_close(load);
    stop_all();
    cluster_down(&cluster);
    return got;
}

/* Acceptance 4: in turn it gets more than it can do, and a third of all wait ever longer. */
static void test_slow_one_gets_what_it_can_do(void **state)
{
    (void)state;
    const struct measured turn = measure("rr");
    const struct measured least = measure("least");
    print_message("p99 of rr is %.1f times that of least\n",
                  (double)turn.p99_us / (double)least.p99_us);
    assert_true(turn.share > 0.32 && turn.share < 0.35);
    assert_true(least.share > 0.01 && least.share < 0.25);
    assert_true(turn.p99_us >= 5 * least.p99_us);
}

/* ---- all three at once ---------------------------------------------------------------------- */

#define KEYED_RATE  2000U /* half of them with keys */
#define FAIL_OF_100 70U

/** Time that we and the daemon were ready to run and had no core. */
static uint64_t run_delay_ms(void)
{
    return (machine_run_delay_ns(getpid()) + machine_run_delay_ns(cluster.pid)) / RBI_NS_PER_MS;
}

/* Killed without a word, and back after a while that is shorter than rehash_delay. */
static void kill_and_bring_back(void)
{
    const uint64_t others = load->answered[SLOW] + load->answered[FAILING];
    child_kill(pids[MORTAL]);
    LOAD_UNTIL(load->node.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &load, 1);
    const uint64_t refused = load->refused[1];
    run_ms(300);
    /* Its keys wait for it; what has no key goes on. */
    assert_true(load->refused[1] > refused);
    assert_int_equal(load->refusal, RINGBUS_E_RESTARTING);
    assert_true(load->answered[SLOW] + load->answered[FAILING] > others);
    pids[MORTAL] = service_start(&cluster, MORTAL);
    LOAD_UNTIL(load->node.events[RINGBUS_EVENT_READY] == INSTANCES + 1, NODE_MS, &load, 1);
    const uint64_t back = service_asked(MORTAL);
    const uint64_t at_back = load->refused[1];
    LOAD_UNTIL(service_asked(MORTAL) > back + 100, NODE_MS, &load, 1);
    assert_int_equal(load->refused[1], at_back);
    print_message("killed: %llu with its keys refused while it was away, %llu ended unanswered\n",
                  (unsigned long long)load->refused[1], (unsigned long long)load->unanswered[1]);
}

/* Features 2.4: 3 s of virtual time, and what a second of avoiding it, a sweep, a turn take. */
static void wait_shielded(uint64_t begin_ms, uint64_t waited_ms)
{
    LOAD_UNTIL(load->node.events[RINGBUS_EVENT_SHIELDED] == 1, NODE_MS, &load, 1);
    const uint64_t took_ms = test_now_ms() - begin_ms;
    const uint64_t delay_ms = run_delay_ms() - waited_ms;
    print_message("shielded after %llu ms, %llu of them without a core\n",
                  (unsigned long long)took_ms, (unsigned long long)delay_ms);
    assert_true(took_ms < 3000 + 1000 + 250 + 500 + delay_ms);
}

/* Nothing but probes, one in 250 ms; well again it has its share, at first a part of it. */
static void wait_healed(void)
{
    load_settle(&load, 1);
    const uint64_t before = load->answered[FAILING];
    const uint64_t since_ms = test_now_ms();
    while (raw_status(cluster.socket, "probes") == 0) {
        assert_true(test_now_ms() - since_ms < NODE_MS);
        run_ms(100);
    }
    service_fail(FAILING, 0);
    LOAD_UNTIL(load->node.events[RINGBUS_EVENT_UNSHIELDED] == 1, 2 * NODE_MS, &load, 1);
    const uint64_t probes = raw_status(cluster.socket, "probes");
    const uint64_t took_ms = test_now_ms() - since_ms;
    print_message(
        "well after %llu ms: %llu requests went to it, %llu probes\n", (unsigned long long)took_ms,
        (unsigned long long)(load->answered[FAILING] - before), (unsigned long long)probes);
    assert_true(probes >= 3 && probes <= 4 * took_ms / 1000 + 1);
    /* What was begun between the end of the shield and the event is on top of the probes. */
    assert_true(load->answered[FAILING] - before <= probes + KEYED_RATE / 20);
    load_settle(&load, 1);
    load_measure(load);
    run_ms(500);
    assert_true(load_share(load, FAILING) > 0.03);
}

/*
 * Acceptance 2 with processes. Nobody but its owner gets a key, all the time; no request without
 * a key is refused or lost; every request ends.
 */
static void test_slow_failing_and_killed_at_once(void **state)
{
    (void)state;
    const struct ringbus_target_options options = {.struct_size = sizeof options,
                                                   .errors_count = 1};
    assert_int_equal(cluster_up(&cluster, "clusters: [{match: " SERVICE_PATH ", " UNBOUNDED "}]\n"),
                     0);
    start_all();
    load = load_open(&cluster, &options, INSTANCES, LOAD_BOTH, KEYED_RATE);
    run_ms(FULL_OR(10000, 300));
    const uint64_t waited_ms = run_delay_ms();
    const uint64_t begin_ms = test_now_ms();
    service_fail(FAILING, FAIL_OF_100);
    run_ms(300);
    kill_and_bring_back();
    wait_shielded(begin_ms, waited_ms);
    wait_healed();
    load_settle(&load, 1);
    assert_int_equal(load->moves, 0);
    assert_int_equal(load->refused[0], 0);
    /* But for the one in whose handler it died, and what the budget of retries did not allow. */
    assert_true(load->outcomes[RINGBUS_UNKNOWN] <= 1);
    assert_true(load->unanswered[0] <=
                load->outcomes[RINGBUS_UNKNOWN] + node_stats(&load->node).retry_denied);
    assert_int_equal(load->node.events[RINGBUS_EVENT_SHIELDED], 1); /* slow is not sick */
    assert_int_equal(load->node.events[RINGBUS_EVENT_PANIC], 0);
    load_close(load);
    stop_all();
    cluster_down(&cluster);
}

/* Two programs: each takes some seconds. */
int main(int argc, char **argv)
{
    const struct CMUnitTest slow[] = {
        cmocka_unit_test(test_slow_one_gets_what_it_can_do),
    };
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_slow_failing_and_killed_at_once),
    };
    return argc > 1 && strcmp(argv[1], "slow") == 0 ? cmocka_run_group_tests(slow, NULL, NULL)
                                                    : cmocka_run_group_tests(all, NULL, NULL);
}
