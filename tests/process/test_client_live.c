/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator's changes while 10,000 requests a second run: weight, isolate, stage, move, apply,
 * rollback. Each takes effect within a second for every caller, no request fails for it, keys go
 * from and to the instance in question only, and come back where they were when it is undone
 * (features 2.2, 2.7; scenario 132).
 */
#include "libclient/internal.h"
#include "support/machine.h"
#include "support/service.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define INSTANCES 3U
#define CALLERS   2U
#define RATE      5000U /* of each caller; half of them with keys */
#define MOST      256U  /* under way, of each: they fit into a lane */
#define CHANGED   2U
#define INSTANCE  SERVICE_PATH "/2"
#define EFFECT_MS 1000U

static struct cluster cluster;
static pid_t pids[INSTANCES + 1];
static struct load *loads[CALLERS];
static uint8_t base[SERVICE_KEYS]; /* who has which key when nothing is changed */

/* It is about choosing: nothing is refused because a machine was slow. */
static const char config[] =
    "clusters: [{match: " SERVICE_PATH ", overload: {max_inflight: 0, sojourn_target: 0us}}]\n";

/** Time that we and the daemon were ready to run and had no core. */
static uint64_t run_delay_ms(void)
{
    return (machine_run_delay_ns(getpid()) + machine_run_delay_ns(cluster.pid)) / RBI_NS_PER_MS;
}

static unsigned keys_of(const struct load *load, unsigned instance)
{
    unsigned count = 0;
    for (unsigned i = 0; i < SERVICE_KEYS; i++) {
        count += load->owner[i] == instance;
    }
    return count;
}

/** So many keys of all callers. */
static unsigned keys_of_all(unsigned instance)
{
    unsigned count = 0;
    for (unsigned i = 0; i < CALLERS; i++) {
        count += keys_of(loads[i], instance);
    }
    return count;
}

/* ---- changes and their effects -------------------------------------------------------------- */

static struct {
    const char *what;
    uint64_t begun_ns;
    uint64_t waited_ms;
    unsigned keys; /* that its instance had, of all callers */
} change;

/** Runs ringbusctl while the callers go on. Keys may leave or reach @p moving only. */
static void ctl(unsigned moving, const char *a, const char *b, const char *c, const char *d)
{
    const char *const arguments[] = {RINGBUSCTL_PATH, a, b, "--socket", cluster.socket, c, d, NULL};
    for (unsigned i = 0; i < CALLERS; i++) {
        loads[i]->moving = moving;
    }
    change.what = a;
    change.begun_ns = machine_now_ns();
    change.waited_ms = run_delay_ms();
    change.keys = keys_of_all(CHANGED);
    assert_int_equal(load_ctl(loads, CALLERS, arguments), 0);
}

/** @param at_ns  when it was in effect, for all */
static void check_effect(uint64_t at_ns)
{
    const uint64_t took_ms =
        at_ns > change.begun_ns ? (at_ns - change.begun_ns) / RBI_NS_PER_MS : 0;
    print_message("%s: in effect after %llu ms\n", change.what, (unsigned long long)took_ms);
    assert_true(took_ms < EFFECT_MS + run_delay_ms() - change.waited_ms);
    for (unsigned i = 0; i < CALLERS; i++) {
        assert_int_equal(loads[i]->astray, 0);
        assert_int_equal(loads[i]->refused[0] + loads[i]->refused[1], 0);
        assert_int_equal(loads[i]->unanswered[0] + loads[i]->unanswered[1], 0);
    }
}

/** The last request that anybody began and that it answered. */
static uint64_t last_ns(unsigned instance)
{
    uint64_t last = 0;
    for (unsigned i = 0; i < CALLERS; i++) {
        last = rbi_max_u64(last, loads[i]->last_ns[instance]);
    }
    return last;
}

/** Nobody gets to it any more, with a key or without. */
static void expect_left(void)
{
    LOAD_UNTIL(keys_of_all(CHANGED) == 0 &&
                   machine_now_ns() - last_ns(CHANGED) > 100 * RBI_NS_PER_MS,
               NODE_MS, loads, CALLERS);
    check_effect(last_ns(CHANGED));
}

static bool as_before(void)
{
    for (unsigned i = 0; i < CALLERS; i++) {
        if (memcmp(loads[i]->owner, base, sizeof base) != 0) {
            return false;
        }
    }
    return true;
}

/** Each has what it had before, and no key has a third owner. */
static void expect_back(void)
{
    LOAD_UNTIL(as_before(), NODE_MS, loads, CALLERS);
    check_effect(machine_now_ns());
}

/** The keys of one are @p less than those that it had, or more; all callers say the same. */
static void expect_weight(bool less)
{
    LOAD_UNTIL((less ? keys_of_all(CHANGED) < change.keys : keys_of_all(CHANGED) > change.keys) &&
                   memcmp(loads[0]->owner, loads[1]->owner, sizeof base) == 0,
               NODE_MS, loads, CALLERS);
    check_effect(machine_now_ns());
}

/** The last answers of a caller came from one instance after the other. */
static bool in_turn(const struct load *load)
{
    const uint64_t size = sizeof load->recent;
    for (uint64_t back = INSTANCES + 1; back <= 30; back++) {
        const uint64_t at = load->keyless - back;
        if (load->recent[at % size] != load->recent[(at + INSTANCES) % size] ||
            load->recent[at % size] == load->recent[(at + 1) % size]) {
            return false;
        }
    }
    return true;
}

static void expect_turns(bool wanted)
{
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    bool all = false;
    while (!all) {
        assert_true(test_now_ms() < deadline_ms);
        const uint64_t end_ms = test_now_ms() + 20;
        while (test_now_ms() < end_ms) {
            load_step(loads, CALLERS);
        }
        load_settle(loads, CALLERS); /* the last ones too have their answers */
        all = in_turn(loads[0]) == wanted && in_turn(loads[1]) == wanted;
    }
    check_effect(machine_now_ns());
}

/* ---- the test ------------------------------------------------------------------------------- */

static void open_all(void)
{
    bus_shared_reset();
    assert_int_equal(cluster_up(&cluster, config), 0);
    for (unsigned i = 1; i <= INSTANCES; i++) {
        pids[i] = service_start(&cluster, i);
    }
    for (unsigned i = 0; i < CALLERS; i++) {
        loads[i] = load_open(&cluster, NULL, INSTANCES, LOAD_BOTH, RATE);
        loads[i]->most = MOST;
    }
    LOAD_UNTIL(keys_of_all(0) == 0, NODE_MS, loads, CALLERS);
    memcpy(base, loads[0]->owner, sizeof base);
    assert_true(as_before()); /* all callers agree */
    assert_true(keys_of(loads[0], CHANGED) > SERVICE_KEYS / 5);
}

static void close_all(uint64_t begun_ms)
{
    uint64_t requests = 0;
    for (unsigned i = 0; i < CALLERS; i++) {
        load_settle(&loads[i], 1);
        requests += loads[i]->begun;
        assert_int_equal(loads[i]->outcomes[RINGBUS_REPLIED], loads[i]->begun);
        assert_int_equal(loads[i]->node.events[RINGBUS_EVENT_DOWN], 0); /* over the same links */
        assert_int_equal(loads[i]->node.events[RINGBUS_EVENT_READY], INSTANCES);
        load_close(loads[i]);
    }
    print_message("%llu requests a second, none of which failed\n",
                  (unsigned long long)(requests * 1000 / (test_now_ms() - begun_ms)));
    for (unsigned i = 1; i <= INSTANCES; i++) {
        service_stop(i, pids[i]);
    }
    cluster_down(&cluster);
}

static void write_text(char *path, size_t size, const char *name, const char *text)
{
    (void)snprintf(path, size, "%s/%s", cluster.folder, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void test_changes_under_load(void **state)
{
    (void)state;
    char turns[128];
    char heavy[128];
    open_all();
    const uint64_t begun_ms = test_now_ms();
    write_text(turns, sizeof turns, "turns.yaml",
               "clusters: [{match: " SERVICE_PATH ", balance: {keyless: rr}}]\n");
    write_text(heavy, sizeof heavy, "heavy.yaml", "instances: {" INSTANCE ": {weight: 300}}\n");
    ctl(CHANGED, "isolate", INSTANCE, NULL, NULL);
    expect_left();
    ctl(CHANGED, "isolate", INSTANCE, "--off", NULL);
    expect_back();
    ctl(CHANGED, "stage", INSTANCE, NULL, NULL);
    expect_left();
    ctl(CHANGED, "stage", INSTANCE, "--off", NULL);
    expect_back();
    ctl(CHANGED, "move", INSTANCE, "--tags", "pre");
    expect_left(); /* what is untagged does not reach what is tagged */
    ctl(CHANGED, "move", INSTANCE, "--off", NULL);
    expect_back();
    ctl(CHANGED, "weight", INSTANCE, "50", NULL);
    expect_weight(true);
    ctl(CHANGED, "weight", INSTANCE, "own", NULL);
    expect_back();
    /* Nobody's keys move for what is about the others. */
    ctl(INSTANCES + 1, "apply", turns, NULL, NULL);
    expect_turns(true);
    ctl(CHANGED, "apply", heavy, NULL, NULL);
    expect_weight(false);
    ctl(CHANGED, "rollback", "9", NULL, NULL);
    expect_back();
    expect_turns(true);
    close_all(begun_ms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes_under_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
