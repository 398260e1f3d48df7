/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shield's state machine: every (state, event) pair, then its times. Features 2.5, section 6
 * item 3. How probes end: test_shield_probe.c.
 */
#include "support/shield.h"
#include "support/test.h"

#include <stdio.h>

#define ID 2

static struct shield_bench bench;

static int finish(void **state)
{
    (void)state;
    rbi_shield_deinit(&bench.cluster);
    return 0;
}

static void begin(enum rbi_shield_preset preset)
{
    rbi_shield_deinit(&bench.cluster);
    assert_true(shield_begin(&bench, preset, 4));
    bench.grant = (struct rbi_shield_grant){.instance = ID, .token = 12345};
}

/* ---- table ------------------------------------------------------------------------------- */

/* OK; OPEN; HALF_OPEN: Pinged, probing (H), Granted, Idle and pinged again; RAMP 25 %, 50 %. */
static const char states[] = "COPHGI12";

static void make_state(char name)
{
    begin(RBI_SHIELD_DEFAULT);
    if (name == 'C') {
        return;
    }
    shield_fail(&bench, ID);
    if (name == 'O') {
        return;
    }
    shield_sweep_after(&bench, 1000);
    if (name == 'P') {
        return;
    }
    shield_answer(&bench, ID, true);
    if (name == 'G') {
        assert_true(shield_grant(&bench));
    }
    if (name == 'I') {
        shield_sweep_after(&bench, 10000);
    }
    if (name == '1' || name == '2') {
        assert_true(shield_close(&bench, ID));
    }
    if (name == '2') {
        shield_sweep_after(&bench, 1500);
    }
}

static char state_name(void)
{
    const struct rbi_shield_member *member = shield_of(&bench, ID);
    if (member == NULL) {
        return '-';
    }
    bool probed = false;
    for (unsigned i = 0; i < RBI_SHIELD_PROBES_MAX; i++) {
        probed = probed || member->probes[i].token != 0;
    }
    switch ((enum rbi_health)member->health) {
    case RBI_HEALTH_OK:
        assert_int_equal(member->ramp, 100);
        return 'C';
    case RBI_HEALTH_OPEN:
        assert_true(member->ping == 0 && !probed && member->ramp == 100);
        return 'O';
    case RBI_HEALTH_HALF_OPEN:
        if (member->ping != 0) {
            const uint64_t idle_ns = RBI_SHIELD_IDLE_FACTOR * member->open_ns;
            return bench.turn.now_ns >= member->since_ns + idle_ns ? 'I' : 'P';
        }
        return probed ? 'G' : 'H';
    case RBI_HEALTH_RAMP:
        assert_true(member->ping == 0 && !probed);
        assert_true(member->ramp == 25 || member->ramp == 50);
        return member->ramp == 25 ? '1' : '2';
    }
    return '?';
}

enum event {
    EV_TICK,
    EV_LATE, /* a sweep after 20 s: longer than any of its times */
    EV_BAD,  /* calls that trip a window, and a sweep */
    EV_GOOD,
    EV_PONG,
    EV_LOST,
    EV_STALE_PONG,
    EV_GRANT,
    EV_PROBE_OK,
    EV_PROBE_FAIL,
    EV_PROBE_EXPIRED,
    EV_PROBE_CANCELLED,
    EV_PROBE_FULL,
    EV_PROBE_DIED,
    EV_PROBE_UNUSED,
    EV_STALE_PROBE,
    EV_SAME,
    EV_WEIGHT,
    EV_RESTART,
    EV_REMOVE,
    EV_UNSHIELD,
    EV_SAME_POLICY,
    EV_PANIC_POLICY,
    EV_POLICY,
    EV_COUNT
};

/* New state, then what is emitted: changed (c), ping (p). */
/* clang-format off */
static const char *const table[EV_COUNT][sizeof states - 1] = {
    /* from:                 C     O     P     H     G     I     1     2 */
    [EV_TICK] =            {"C",  "O",  "P",  "H",  "G",  "I",  "1",  "2"},
    [EV_LATE] =            {"C",  "Pcp", "Oc", "Ip", "Oc", "Oc", "Cc", "Cc"},
    [EV_BAD] =             {"Oc", "O",  "P",  "H",  "G",  "I",  "Oc", "Oc"},
    [EV_GOOD] =            {"C",  "O",  "P",  "H",  "G",  "I",  "1",  "2"},
    [EV_PONG] =            {"C",  "O",  "H",  "H",  "G",  "1c", "1",  "2"},
    [EV_LOST] =            {"C",  "O",  "Oc", "H",  "G",  "Oc", "1",  "2"},
    [EV_STALE_PONG] =      {"C",  "O",  "P",  "H",  "G",  "I",  "1",  "2"},
    [EV_GRANT] =           {"C",  "O",  "P",  "G",  "G",  "I",  "1",  "2"},
    [EV_PROBE_OK] =        {"C",  "O",  "P",  "H",  "H",  "I",  "1",  "2"},
    [EV_PROBE_FAIL] =      {"C",  "O",  "P",  "H",  "Oc", "I",  "1",  "2"},
    [EV_PROBE_EXPIRED] =   {"C",  "O",  "P",  "H",  "Oc", "I",  "1",  "2"},
    [EV_PROBE_CANCELLED] = {"C",  "O",  "P",  "H",  "H",  "I",  "1",  "2"},
    [EV_PROBE_FULL] =      {"C",  "O",  "P",  "H",  "H",  "I",  "1",  "2"},
    [EV_PROBE_DIED] =      {"C",  "O",  "P",  "H",  "H",  "I",  "1",  "2"},
    [EV_PROBE_UNUSED] =    {"C",  "O",  "P",  "H",  "H",  "I",  "1",  "2"},
    [EV_STALE_PROBE] =     {"C",  "O",  "P",  "H",  "G",  "I",  "1",  "2"},
    [EV_SAME] =            {"C",  "O",  "P",  "H",  "G",  "I",  "1",  "2"},
    [EV_WEIGHT] =          {"C",  "O",  "P",  "H",  "G",  "I",  "1",  "2"},
    [EV_RESTART] =         {"C",  "Cc", "Cc", "Cc", "Cc", "Cc", "Cc", "Cc"},
    [EV_REMOVE] =          {"-",  "-c", "-c", "-c", "-c", "-c", "-c", "-c"},
    [EV_UNSHIELD] =        {"C",  "Cc", "Cc", "Cc", "Cc", "Cc", "Cc", "Cc"},
    [EV_SAME_POLICY] =     {"C",  "O",  "P",  "H",  "G",  "I",  "1",  "2"},
    [EV_PANIC_POLICY] =    {"C",  "O",  "P",  "H",  "G",  "I",  "1",  "2"},
    [EV_POLICY] =          {"C",  "Cc", "Cc", "Cc", "Cc", "Cc", "Cc", "Cc"},
};
/* clang-format on */

static void feed_control(enum event event)
{
    switch ((unsigned)event) {
    case EV_SAME:
        assert_int_equal(rbi_shield_put(&bench.cluster, ID, SHIELD_LIFE, 100, &bench.turn), 0);
        break;
    case EV_WEIGHT:
        assert_int_equal(rbi_shield_put(&bench.cluster, ID, SHIELD_LIFE, 50, &bench.turn), 0);
        break;
    case EV_RESTART:
        assert_int_equal(rbi_shield_put(&bench.cluster, ID, SHIELD_LIFE + 1, 100, &bench.turn), 0);
        break;
    case EV_REMOVE:
        rbi_shield_remove(&bench.cluster, ID, &bench.turn);
        break;
    case EV_UNSHIELD:
        assert_int_equal(rbi_shield_unshield(&bench.cluster, ID, &bench.turn), 0);
        break;
    case EV_PANIC_POLICY:
        bench.panic.enter = 20;
        shield_apply(&bench);
        break;
    case EV_POLICY:
        bench.policy.windows[3].calls++;
        shield_apply(&bench);
        break;
    default:
        shield_apply(&bench);
        break;
    }
}

static void feed_grant(void)
{
    const bool may = state_name() == 'H';
    assert_int_equal(shield_grant(&bench), may);
}

static void feed(enum event event)
{
    switch ((unsigned)event) {
    case EV_TICK:
        shield_sweep(&bench);
        break;
    case EV_LATE:
        shield_sweep_after(&bench, 20000);
        break;
    case EV_BAD:
        shield_fail(&bench, ID);
        break;
    case EV_GOOD:
        shield_calls(&bench, ID, 10, 0);
        shield_sweep(&bench);
        break;
    case EV_PONG:
        shield_answer(&bench, ID, true);
        break;
    case EV_LOST:
        shield_answer(&bench, ID, false);
        break;
    case EV_STALE_PONG:
        rbi_shield_ping(&bench.cluster, ID, bench.ping + 1000, false, &bench.turn);
        rbi_shield_ping(&bench.cluster, ID, 0, false, &bench.turn);
        break;
    case EV_GRANT:
        feed_grant();
        break;
    case EV_STALE_PROBE:
        rbi_shield_probe_end(&bench.cluster, ID, bench.grant.token + 1000, RBI_SHIELD_PROBE_FAIL,
                             &bench.turn);
        rbi_shield_probe_end(&bench.cluster, ID, 0, RBI_SHIELD_PROBE_FAIL, &bench.turn);
        break;
    default:
        if (event >= EV_PROBE_OK && event <= EV_PROBE_UNUSED) {
            shield_end(&bench, (enum rbi_shield_probe_result)(event - EV_PROBE_OK));
        } else {
            feed_control(event);
        }
        break;
    }
}

static void test_every_pair(void **state)
{
    (void)state;
    for (unsigned e = 0; e < EV_COUNT; e++) {
        for (unsigned s = 0; s < sizeof states - 1; s++) {
            char got[SHIELD_EVENTS] = {0};
            make_state(states[s]);
            assert_int_equal(state_name(), states[s]);
            const unsigned before = bench.count;
            feed((enum event)e);
            got[0] = state_name();
            for (unsigned i = before; i < bench.count; i++) {
                got[i - before + 1] = " cspPL"[bench.events[i % SHIELD_EVENTS].kind];
            }
            if (strcmp(got, table[e][s]) != 0) {
                fail_msg("event %u in state %c: %s, not %s", e, states[s], got, table[e][s]);
            }
        }
    }
}

/* ---- open time --------------------------------------------------------------------------- */

static uint64_t open_ms(void)
{
    return shield_of(&bench, ID)->open_ns / SHIELD_MS;
}

/* Failing again renews the open time, doubled up to its bound; k is told. */
static void test_open_time_doubles(void **state)
{
    static const uint64_t expected_ms[] = {1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000};
    (void)state;
    begin(RBI_SHIELD_DEFAULT);
    shield_fail(&bench, ID);
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(expected_ms); i++) {
        assert_int_equal(open_ms(), expected_ms[i]);
        assert_int_equal(shield_last(&bench)->shields, i);
        assert_true(shield_last(&bench)->until_ns ==
                    bench.turn.now_ns + expected_ms[i] * SHIELD_MS);
        assert_true(shield_half_open(&bench, ID));
        shield_pass(&bench, 250);
        assert_true(shield_grant(&bench));
        shield_end(&bench, RBI_SHIELD_PROBE_FAIL);
        assert_int_equal(shield_last(&bench)->reason, RBI_SHIELD_BECAUSE_PROBE_FAILED);
    }
    for (unsigned i = 0; i < 100; i++) { /* nothing grows beyond */
        assert_true(shield_half_open(&bench, ID));
        shield_pass(&bench, 250);
        assert_true(shield_grant(&bench));
        shield_end(&bench, RBI_SHIELD_PROBE_FAIL);
    }
    assert_int_equal(open_ms(), 60000);
}

/* The envoy preset: 30 s x count, up to 300 s. */
static void test_open_time_grows_linearly(void **state)
{
    (void)state;
    begin(RBI_SHIELD_ENVOY);
    shield_calls(&bench, ID, 0, 50);
    shield_sweep(&bench);
    for (uint64_t i = 1; i <= 12; i++) {
        assert_int_equal(open_ms(), 30000 * (i < 10 ? i : 10));
        assert_true(shield_half_open(&bench, ID));
        shield_pass(&bench, 250);
        assert_true(shield_grant(&bench));
        shield_end(&bench, RBI_SHIELD_PROBE_FAIL);
    }
}

/* k falls by one per minute of health, whether it is swept or not; it is not saved up. */
static void test_open_time_decays(void **state)
{
    static const struct {
        uint64_t well_ms;
        uint64_t expected_ms;
    } cases[] = {{0, 8000},      {59000, 8000},  {61000, 4000},
                 {121000, 2000}, {181000, 1000}, {3600000, 1000}};
    (void)state;
    for (unsigned swept = 0; swept < 2; swept++) {
        for (unsigned i = 0; i < RBI_ARRAY_SIZE(cases); i++) {
            begin(RBI_SHIELD_DEFAULT);
            shield_fail(&bench, ID);
            for (unsigned k = 0; k < 2; k++) { /* 1 s, 2 s, 4 s */
                assert_true(shield_half_open(&bench, ID));
                shield_pass(&bench, 250);
                assert_true(shield_grant(&bench));
                shield_end(&bench, RBI_SHIELD_PROBE_FAIL);
            }
            assert_true(shield_half_open(&bench, ID));
            assert_true(shield_close(&bench, ID));
            for (uint64_t t = 0; swept && t < cases[i].well_ms; t += 250) {
                shield_sweep_after(&bench, 250);
            }
            shield_pass(&bench, swept ? 0 : cases[i].well_ms);
            shield_fail(&bench, ID);
            assert_int_equal(open_ms(), cases[i].expected_ms);
        }
    }
}

static void test_open_time_jitters(void **state)
{
    uint64_t low = UINT64_MAX;
    uint64_t high = 0;
    (void)state;
    for (unsigned i = 0; i < 300; i++) {
        begin(RBI_SHIELD_DEFAULT);
        bench.policy.jitter = 20;
        shield_apply(&bench);
        bench.turn.random = i;
        shield_fail(&bench, ID);
        low = rbi_min_u64(low, open_ms());
        high = rbi_max_u64(high, open_ms());
    }
    assert_in_range(low, 800, 820);
    assert_in_range(high, 1180, 1200);
}

/* ---- ramp, and what clears --------------------------------------------------------------- */

static void test_ramp_shares(void **state)
{
    (void)state;
    begin(RBI_SHIELD_DEFAULT);
    shield_fail(&bench, ID);
    assert_true(shield_half_open(&bench, ID));
    assert_true(shield_close(&bench, ID));
    assert_int_equal(shield_last(&bench)->ramp, 25);
    shield_sweep_after(&bench, 1499);
    assert_int_equal(shield_of(&bench, ID)->ramp, 25);
    shield_sweep_after(&bench, 1);
    assert_int_equal(shield_of(&bench, ID)->ramp, 50);
    assert_int_equal(shield_last(&bench)->kind, RBI_SHIELD_CHANGED);
    assert_int_equal(shield_last(&bench)->ramp, 50);
    shield_sweep_after(&bench, 1499);
    assert_int_equal(shield_of(&bench, ID)->health, RBI_HEALTH_RAMP);
    shield_sweep_after(&bench, 1);
    assert_int_equal(shield_of(&bench, ID)->health, RBI_HEALTH_OK);
    assert_int_equal(shield_of(&bench, ID)->ramp, 100);
}

/* What failed before it was shielded does not count against it when it is back. */
static void test_close_begins_counts_anew(void **state)
{
    (void)state;
    begin(RBI_SHIELD_DEFAULT);
    shield_calls(&bench, ID, 0, 1000);
    shield_sweep(&bench);
    assert_true(shield_half_open(&bench, ID));
    shield_calls(&bench, ID, 0, 5); /* swept only after it is back */
    assert_true(shield_close(&bench, ID));
    for (unsigned i = 0; i < 20; i++) {
        shield_calls(&bench, ID, 1, 0);
        shield_sweep(&bench);
        assert_int_not_equal(shield_of(&bench, ID)->health, RBI_HEALTH_OPEN);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_every_pair, finish),
        cmocka_unit_test_teardown(test_open_time_doubles, finish),
        cmocka_unit_test_teardown(test_open_time_grows_linearly, finish),
        cmocka_unit_test_teardown(test_open_time_decays, finish),
        cmocka_unit_test_teardown(test_open_time_jitters, finish),
        cmocka_unit_test_teardown(test_ramp_shares, finish),
        cmocka_unit_test_teardown(test_close_begins_counts_anew, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
