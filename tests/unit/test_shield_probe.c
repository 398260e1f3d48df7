/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HALF_OPEN: however its probes end, and when nobody probes at all. Features 2.5, section 6
 * item 3; scenario 118 (breaker stuck half-open).
 */
#include "support/shield.h"
#include "support/test.h"

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

static uint64_t open_ms(void)
{
    return shield_of(&bench, ID)->open_ns / SHIELD_MS;
}

/* However its probes end: back or open again in bounded time, and places are free at once. */
static void test_probe_every_way_it_can_end(void **state)
{
    static const struct {
        enum rbi_shield_probe_result result;
        enum rbi_health to;
        enum rbi_shield_reason reason;
        unsigned probes;  /* until then */
        uint64_t open_ms; /* the next one */
    } cases[] = {
        {RBI_SHIELD_PROBE_OK, RBI_HEALTH_RAMP, RBI_SHIELD_BECAUSE_PROBES_OK, 3, 1000},
        {RBI_SHIELD_PROBE_FAIL, RBI_HEALTH_OPEN, RBI_SHIELD_BECAUSE_PROBE_FAILED, 1, 2000},
        {RBI_SHIELD_PROBE_EXPIRED, RBI_HEALTH_OPEN, RBI_SHIELD_BECAUSE_PROBE_EXPIRED, 1, 2000},
        {RBI_SHIELD_PROBE_CANCELLED, RBI_HEALTH_OPEN, RBI_SHIELD_BECAUSE_INCONCLUSIVE, 3, 1000},
        {RBI_SHIELD_PROBE_REFUSED_FULL, RBI_HEALTH_OPEN, RBI_SHIELD_BECAUSE_INCONCLUSIVE, 3, 1000},
        {RBI_SHIELD_PROBE_CALLER_DIED, RBI_HEALTH_OPEN, RBI_SHIELD_BECAUSE_INCONCLUSIVE, 3, 1000},
    };
    (void)state;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(cases); i++) {
        begin(RBI_SHIELD_DEFAULT);
        shield_fail(&bench, ID);
        assert_true(shield_half_open(&bench, ID));
        const uint64_t since_ns = bench.turn.now_ns;
        unsigned probes = 0;
        while (shield_of(&bench, ID)->health == RBI_HEALTH_HALF_OPEN) {
            assert_true(shield_grant(&bench));
            shield_end(&bench, cases[i].result);
            probes++;
            shield_pass(&bench, 250);
        }
        assert_int_equal(shield_of(&bench, ID)->health, cases[i].to);
        assert_int_equal(shield_of(&bench, ID)->reason, cases[i].reason);
        assert_int_equal(probes, cases[i].probes);
        assert_int_equal(open_ms(), cases[i].open_ms);
        assert_true(bench.turn.now_ns - since_ns <= 1000 * SHIELD_MS);
    }
}

/* Nobody reports: killed with it, stopped, or the reply is lost. The sweep ends it. */
static void test_probe_nobody_ends(void **state)
{
    (void)state;
    begin(RBI_SHIELD_DEFAULT);
    shield_fail(&bench, ID);
    assert_true(shield_half_open(&bench, ID));
    assert_true(shield_grant(&bench));
    assert_true(bench.grant.use_by_ns < bench.grant.deadline_ns);
    assert_true(bench.grant.deadline_ns == bench.turn.now_ns + 1000 * SHIELD_MS);
    for (unsigned i = 0; i < 3; i++) {
        shield_sweep(&bench);
        assert_int_equal(shield_of(&bench, ID)->health, RBI_HEALTH_HALF_OPEN);
    }
    shield_sweep(&bench);
    assert_int_equal(shield_of(&bench, ID)->health, RBI_HEALTH_OPEN);
    assert_int_equal(shield_of(&bench, ID)->reason, RBI_SHIELD_BECAUSE_PROBE_EXPIRED);
    shield_end(&bench, RBI_SHIELD_PROBE_OK); /* too late: it says nothing of the next round */
    assert_true(shield_half_open(&bench, ID));
    shield_end(&bench, RBI_SHIELD_PROBE_OK);
    assert_int_equal(shield_of(&bench, ID)->probes_ok, 0);
}

/* A restart in the middle of a probe: the old life's result does not count for the new one. */
static void test_probe_instance_restarts(void **state)
{
    (void)state;
    begin(RBI_SHIELD_DEFAULT);
    shield_fail(&bench, ID);
    assert_true(shield_half_open(&bench, ID));
    assert_true(shield_grant(&bench));
    assert_int_equal(rbi_shield_put(&bench.cluster, ID, SHIELD_LIFE + 1, 100, &bench.turn), 0);
    assert_int_equal(shield_last(&bench)->reason, RBI_SHIELD_BECAUSE_RESTART);
    shield_end(&bench, RBI_SHIELD_PROBE_FAIL);
    assert_int_equal(shield_of(&bench, ID)->health, RBI_HEALTH_OK);
    shield_fail(&bench, ID); /* counts of the old life */
    assert_int_equal(shield_of(&bench, ID)->health, RBI_HEALTH_OK);
}

/* A mixture: two that say nothing leave room for the three that are needed. */
static void test_probe_three_of_five(void **state)
{
    static const char *const rounds[] = {"oooR", "oxO", "cocooR", "ccoooR", "cccO", "ococcO", "xO"};
    (void)state;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(rounds); i++) {
        begin(RBI_SHIELD_DEFAULT);
        shield_fail(&bench, ID);
        assert_true(shield_half_open(&bench, ID));
        const size_t last = strlen(rounds[i]) - 1;
        for (size_t j = 0; j < last; j++) {
            assert_int_equal(shield_of(&bench, ID)->health, RBI_HEALTH_HALF_OPEN);
            shield_pass(&bench, 250);
            assert_true(shield_grant(&bench));
            shield_end(&bench, rounds[i][j] == 'o'   ? RBI_SHIELD_PROBE_OK
                               : rounds[i][j] == 'x' ? RBI_SHIELD_PROBE_FAIL
                                                     : RBI_SHIELD_PROBE_CANCELLED);
        }
        assert_int_equal(shield_of(&bench, ID)->health,
                         rounds[i][last] == 'R' ? RBI_HEALTH_RAMP : RBI_HEALTH_OPEN);
    }
}

/* The polaris preset forgives two of ten. */
static void test_probe_eight_of_ten(void **state)
{
    static const char *const rounds[] = {"ooooooooC", "xxooooooooC", "oooxoooxooC", "oooxoooxxO"};
    (void)state;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(rounds); i++) {
        begin(RBI_SHIELD_POLARIS);
        shield_fail(&bench, ID);
        assert_true(shield_half_open(&bench, ID));
        const size_t last = strlen(rounds[i]) - 1;
        for (size_t j = 0; j < last; j++) {
            assert_int_equal(shield_of(&bench, ID)->health, RBI_HEALTH_HALF_OPEN);
            shield_pass(&bench, 250);
            assert_true(shield_grant(&bench));
            shield_end(&bench, rounds[i][j] == 'o' ? RBI_SHIELD_PROBE_OK : RBI_SHIELD_PROBE_FAIL);
        }
        assert_int_equal(shield_of(&bench, ID)->health,
                         rounds[i][last] == 'C' ? RBI_HEALTH_OK : RBI_HEALTH_OPEN);
    }
}

/* Where one probe decides, one is under way at a time. */
static void test_probe_one_of_one(void **state)
{
    (void)state;
    begin(RBI_SHIELD_ENVOY);
    shield_calls(&bench, ID, 0, 50);
    shield_sweep(&bench);
    assert_true(shield_half_open(&bench, ID));
    assert_true(shield_grant(&bench));
    shield_pass(&bench, 500);
    struct rbi_shield_grant second;
    assert_int_equal(rbi_shield_probe_grant(&bench.cluster, &second, &bench.turn), 1);
    shield_end(&bench, RBI_SHIELD_PROBE_UNUSED);
    assert_true(shield_grant(&bench));
    shield_end(&bench, RBI_SHIELD_PROBE_OK);
    assert_int_equal(shield_of(&bench, ID)->health, RBI_HEALTH_OK);
}

/* Nobody calls: after 10 open times a PING alone brings it back, or keeps it out. */
static void test_half_open_without_traffic(void **state)
{
    (void)state;
    for (unsigned answers = 0; answers < 2; answers++) {
        begin(RBI_SHIELD_DEFAULT);
        shield_fail(&bench, ID);
        assert_true(shield_half_open(&bench, ID));
        const uint64_t since_ns = bench.turn.now_ns;
        bench.turn.now_ns += 10000 * SHIELD_MS;
        assert_false(shield_grant(&bench)); /* its time is over, whether it was swept or not */
        bench.turn.now_ns = since_ns;
        while (shield_of(&bench, ID)->ping == 0) {
            assert_int_equal(shield_of(&bench, ID)->health, RBI_HEALTH_HALF_OPEN);
            shield_sweep(&bench);
        }
        assert_in_range((bench.turn.now_ns - since_ns) / SHIELD_MS, 10000, 10250);
        assert_false(shield_grant(&bench)); /* the PING decides */
        shield_answer(&bench, ID, answers != 0);
        assert_int_equal(shield_of(&bench, ID)->health,
                         answers ? RBI_HEALTH_RAMP : RBI_HEALTH_OPEN);
        assert_int_equal(shield_of(&bench, ID)->reason,
                         answers ? RBI_SHIELD_BECAUSE_IDLE : RBI_SHIELD_BECAUSE_PING_LOST);
    }
}

/* Features, section 6 item 3: at most 4 probes a second and instance, however often it is asked. */
static void test_probe_rate(void **state)
{
    uint64_t last_ns[5] = {0};
    unsigned total = 0;
    (void)state;
    begin(RBI_SHIELD_DEFAULT);
    for (int32_t id = 1; id <= 4; id++) {
        shield_calls(&bench, id, id % 2 == 0 ? 20 : 0, id % 2 == 0 ? 0 : 20);
    }
    shield_sweep(&bench);
    for (unsigned ms = 0; ms < 30000; ms++) {
        shield_sweep_after(&bench, 1);
        for (unsigned i = 0; i < bench.count; i++) {
            const struct rbi_shield_event *event = &bench.events[i];
            if (event->kind == RBI_SHIELD_PING) {
                rbi_shield_ping(&bench.cluster, event->instance, event->token, true, &bench.turn);
            }
        }
        bench.count = 0;
        while (shield_grant(&bench)) {
            assert_true(bench.grant.instance == 1 || bench.grant.instance == 3);
            const uint64_t past_ns = bench.turn.now_ns - last_ns[bench.grant.instance];
            assert_true(past_ns >= 250 * SHIELD_MS);
            last_ns[bench.grant.instance] = bench.turn.now_ns;
            shield_end(&bench,
                       total++ % 3 == 2 ? RBI_SHIELD_PROBE_CANCELLED : RBI_SHIELD_PROBE_UNUSED);
        }
    }
    assert_in_range(total, 40, 240);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_probe_every_way_it_can_end, finish),
        cmocka_unit_test_teardown(test_probe_nobody_ends, finish),
        cmocka_unit_test_teardown(test_probe_instance_restarts, finish),
        cmocka_unit_test_teardown(test_probe_three_of_five, finish),
        cmocka_unit_test_teardown(test_probe_eight_of_ten, finish),
        cmocka_unit_test_teardown(test_probe_one_of_one, finish),
        cmocka_unit_test_teardown(test_half_open_without_traffic, finish),
        cmocka_unit_test_teardown(test_probe_rate, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
