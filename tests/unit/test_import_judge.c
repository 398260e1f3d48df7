/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When an instance of another host is gone (features 2.13; J7: a registry that forgets everybody
 * takes nobody away; B16: whether a host can be reached is asked of the ways to it, and not taken
 * for granted). Two signals, the guard against many removals at once, and its end.
 */
#include "bus/record.h"
#include "import_bench.h"
#include "support/test.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ALPHA UINT64_C(11)
#define BETA  UINT64_C(12)
#define LIFE  UINT64_C(77)
#define SIX   6U

static struct bench bench;
static struct rbi_remote six[SIX];

static void reach(uint64_t host, bool reachable)
{
    assert_int_equal(rbi_import_reach(&bench.import, host, host == ALPHA ? "alpha" : "beta",
                                      reachable, bench.now_ns),
                     0);
    bench_run(&bench);
}

/** Six instances of a cluster on alpha, all of them heard of. */
static int setup(void **state)
{
    (void)state;
    bench_init(&bench, BENCH_ENTRIES);
    for (uint32_t i = 0; i < SIX; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "%" PRIu32, i + 1);
        six[i] = bench_remote("lobby", name, 100 + i);
    }
    reach(ALPHA, true);
    bench_list(&bench, ALPHA, LIFE, 5, six, SIX);
    return 0;
}

/** Time passes, and alpha says that nothing has changed whenever it is asked. */
static void pass_answered(uint64_t ns)
{
    for (uint64_t step = 0; step < ns; step += BENCH_S) {
        const uint32_t asks = bench.asks;
        bench_pass(&bench, BENCH_S);
        if (bench.asks != asks) {
            const struct rbi_import_host *host = rbi_import_host_find(&bench.import, ALPHA);
            assert_int_equal(
                bench_item(&bench, ALPHA, LIFE, host->revision, RBI_ITEM_LAST, 0, NULL), 0);
            bench_run(&bench);
        }
    }
}

static uint32_t state_of(uint32_t number)
{
    const uint32_t idx = bench_find(&bench, &six[number]);
    return idx == RBI_IMPORT_NONE ? RBI_IMPORT_GONE : bench.entries[idx].state;
}

static void test_an_end_that_its_host_knows_is_both_signals(void **state)
{
    (void)state;
    const uint32_t reasons[] = {RBI_REASON_LEFT, RBI_REASON_CRASHED, RBI_REASON_REPLACED};
    for (uint32_t i = 0; i < RBI_ARRAY_SIZE(reasons); i++) {
        bench_change(&bench, ALPHA, LIFE, 6 + i, &six[i], reasons[i]);
        assert_int_equal(state_of(i), RBI_IMPORT_GONE);
        assert_int_equal(bench.last.reason, reasons[i]);
    }
    for (uint32_t i = 3; i < SIX; i++) { /* and that all died there is believed as well */
        bench_change(&bench, ALPHA, LIFE, 6 + i, &six[i], RBI_REASON_CRASHED);
    }
    assert_int_equal(bench_count(&bench), 0);
    assert_int_equal(bench.held, 0);
}

static void test_unlisted_one_is_kept_for_a_grace(void **state)
{
    (void)state; /* features, tests, 7: a lease expires while its bridge is up: kept 60 s */
    bench_change(&bench, ALPHA, LIFE, 6, &six[0], RBI_REASON_NONE);
    assert_int_equal(state_of(0), RBI_IMPORT_UNCONFIRMED);
    assert_true(bench.stale[bench_find(&bench, &six[0])]);
    assert_int_equal(bench.entries[bench_find(&bench, &six[0])].remote.weight, 100);
    pass_answered(BENCH_GRACE - BENCH_S);
    assert_int_equal(state_of(0), RBI_IMPORT_UNCONFIRMED);
    pass_answered(2 * BENCH_S);
    assert_int_equal(state_of(0), RBI_IMPORT_GONE);
    assert_int_equal(bench.last.reason, RBI_REASON_SILENT);
    assert_int_equal(bench_count(&bench), SIX - 1);
}

static void test_unlisted_and_silent_is_gone(void **state)
{
    (void)state;
    bench_change(&bench, ALPHA, LIFE, 6, &six[0], RBI_REASON_NONE);
    pass_answered(5 * BENCH_S);
    rbi_import_suspect(&bench.import, bench_find(&bench, &six[0]), bench.now_ns);
    bench_run(&bench);
    assert_int_equal(state_of(0), RBI_IMPORT_GONE);
}

static void test_silent_then_unlisted_is_gone(void **state)
{
    (void)state;
    rbi_import_suspect(&bench.import, bench_find(&bench, &six[0]), bench.now_ns);
    bench_run(&bench);
    assert_int_equal(state_of(0), RBI_IMPORT_LIVE); /* one signal is none */
    pass_answered(10 * BENCH_S);
    bench_change(&bench, ALPHA, LIFE, 6, &six[0], RBI_REASON_NONE);
    assert_int_equal(state_of(0), RBI_IMPORT_GONE);
}

static void test_a_suspicion_ends(void **state)
{
    (void)state;
    rbi_import_suspect(&bench.import, bench_find(&bench, &six[0]), bench.now_ns);
    rbi_import_suspect(&bench.import, bench_find(&bench, &six[1]), bench.now_ns);
    bench_run(&bench);
    rbi_import_alive(&bench.import, bench_find(&bench, &six[0]), bench.now_ns);
    bench_change(&bench, ALPHA, LIFE, 6, &six[0], RBI_REASON_NONE);
    assert_int_equal(state_of(0), RBI_IMPORT_UNCONFIRMED); /* it was heard of since */
    pass_answered(BENCH_GRACE + BENCH_S);
    bench_change(&bench, ALPHA, LIFE, 7, &six[1], RBI_REASON_NONE);
    assert_int_equal(state_of(1), RBI_IMPORT_UNCONFIRMED); /* it was long ago */
}

static void test_its_host_says_that_it_is_not_there(void **state)
{
    (void)state;
    rbi_import_dead(&bench.import, bench_find(&bench, &six[0]), bench.now_ns);
    bench_run(&bench);
    assert_int_equal(state_of(0), RBI_IMPORT_GONE);
    assert_int_equal(bench.last.reason, RBI_REASON_CRASHED);
}

static void test_a_source_that_is_lost_takes_nobody_away(void **state)
{
    (void)state; /* features, tests, 7: killed for 60 s (and for a day): stale, and all there */
    rbi_import_source_lost(&bench.import, ALPHA, bench.now_ns);
    bench_run(&bench);
    for (uint32_t i = 0; i < SIX; i++) {
        assert_int_equal(state_of(i), RBI_IMPORT_STALE);
        assert_true(bench.stale[bench_find(&bench, &six[i])]);
    }
    bench_pass(&bench, 24 * 3600 * BENCH_S);
    assert_int_equal(bench_count(&bench), SIX);
    bench_list(&bench, ALPHA, LIFE, 5, six, SIX);
    assert_int_equal(state_of(3), RBI_IMPORT_LIVE);
    assert_false(bench.stale[bench_find(&bench, &six[3])]);
    assert_int_equal(bench.removed, 0);
}

static void test_an_unreachable_host_is_gone_after_a_grace(void **state)
{
    (void)state;
    reach(ALPHA, false);
    assert_int_equal(state_of(0), RBI_IMPORT_STALE);
    bench_pass(&bench, BENCH_GRACE - 1);
    assert_int_equal(bench_count(&bench), SIX);
    bench_pass(&bench, 1);
    assert_int_equal(bench_count(&bench), 0);
    assert_int_equal(bench.last.reason, RBI_REASON_UNREACHABLE);
    reach(ALPHA, true); /* what it has not changed meanwhile has to be told again, too */
    assert_int_equal(bench.last_ask.incarnation, 0);
}

static void test_a_cut_that_ends_in_time_takes_nobody_away(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        reach(ALPHA, false);
        bench_pass(&bench, BENCH_GRACE - 1);
        reach(ALPHA, true);
        assert_int_equal(bench.last_ask.incarnation, LIFE);
        assert_int_equal(bench.last_ask.revision, 5);
        assert_int_equal(state_of(0), RBI_IMPORT_STALE);
        assert_int_equal(bench_item(&bench, ALPHA, LIFE, 5, RBI_ITEM_LAST, 0, NULL), 0);
        bench_run(&bench);
        assert_int_equal(state_of(0), RBI_IMPORT_LIVE);
    }
    assert_int_equal(bench.removed, 0);
}

static void test_a_host_that_leaves_takes_all_along(void **state)
{
    (void)state;
    rbi_import_leave(&bench.import, ALPHA, bench.now_ns);
    bench_run(&bench);
    assert_int_equal(bench_count(&bench), 0);
    assert_int_equal(bench.last.reason, RBI_REASON_LEFT);
    assert_int_equal(bench.held, 0);
    reach(ALPHA, true);
    assert_int_equal(bench.last_ask.incarnation, 0);
}

static void test_an_empty_list_is_held(void **state)
{
    (void)state; /* features, tests, 7: nothing is removed for 30 s, whatever else is heard */
    bench_list(&bench, ALPHA, LIFE, 6, NULL, 0);
    assert_int_equal(bench.held, 1);
    assert_int_equal(bench.last.count, SIX);
    assert_int_equal(bench.last.total, SIX);
    assert_int_equal(bench.import.counters.mass_held, 1);
    for (uint32_t i = 0; i < SIX; i++) {
        rbi_import_suspect(&bench.import, bench_find(&bench, &six[i]), bench.now_ns);
    }
    pass_answered(BENCH_HOLD - BENCH_S);
    assert_int_equal(bench_count(&bench), SIX);
    pass_answered(2 * BENCH_S); /* and not for ever */
    assert_int_equal(bench_count(&bench), 0);
    assert_int_equal(bench.held, 1); /* told once */
}

static void test_an_empty_list_while_pings_succeed_is_kept_for_the_grace(void **state)
{
    (void)state;
    bench_list(&bench, ALPHA, LIFE, 6, NULL, 0);
    pass_answered(BENCH_GRACE - BENCH_S);
    assert_int_equal(bench_count(&bench), SIX);
    pass_answered(2 * BENCH_S);
    assert_int_equal(bench_count(&bench), 0);
}

static void test_a_list_that_comes_back_ends_the_hold(void **state)
{
    (void)state;
    bench_list(&bench, ALPHA, LIFE, 6, NULL, 0);
    pass_answered(BENCH_HOLD / 2);
    bench_list(&bench, ALPHA, LIFE, 7, six, SIX);
    assert_int_equal(state_of(0), RBI_IMPORT_LIVE);
    pass_answered(2 * BENCH_GRACE);
    assert_int_equal(bench_count(&bench), SIX);
    bench_list(&bench, ALPHA, LIFE, 8, NULL, 0); /* the next time is a time of its own */
    assert_int_equal(bench.held, 2);
    assert_int_equal(bench.removed, 0);
}

static void test_the_guard_counts_a_majority_of_four_or_all(void **state)
{
    (void)state;
    bench_list(&bench, ALPHA, LIFE, 6, six, 3); /* 3 of 6 are no majority */
    assert_int_equal(bench.held, 0);
    for (uint32_t i = 3; i < SIX; i++) {
        rbi_import_suspect(&bench.import, bench_find(&bench, &six[i]), bench.now_ns);
    }
    bench_run(&bench);
    assert_int_equal(bench_count(&bench), 3);
    bench_list(&bench, ALPHA, LIFE, 7, six, 1); /* 2 of 3 are, and 3 are few */
    assert_int_equal(bench.held, 0);
    for (uint32_t i = 1; i < 3; i++) {
        rbi_import_suspect(&bench.import, bench_find(&bench, &six[i]), bench.now_ns);
    }
    bench_run(&bench);
    assert_int_equal(bench_count(&bench), 1);
    bench_list(&bench, ALPHA, LIFE, 8, NULL, 0); /* the last one is all */
    assert_int_equal(bench.held, 1);
}

static void test_the_guard_counts_what_many_changes_take_away(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 4; i++) { /* one by one: the fourth of six makes them many */
        assert_int_equal(bench.held, 0);
        bench_change(&bench, ALPHA, LIFE, 6 + i, &six[i], RBI_REASON_NONE);
    }
    assert_int_equal(bench.held, 1);
    rbi_import_suspect(&bench.import, bench_find(&bench, &six[0]), bench.now_ns);
    bench_run(&bench);
    assert_int_equal(bench_count(&bench), SIX);
}

static void test_instances_of_other_hosts_count(void **state)
{
    (void)state;
    struct rbi_remote more[8];
    for (uint32_t i = 0; i < 8; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "%" PRIu32, 100 + i);
        more[i] = bench_remote("lobby", name, 1);
    }
    reach(BETA, true);
    bench_list(&bench, BETA, LIFE, 1, more, 8);
    bench_list(&bench, ALPHA, LIFE, 6, NULL, 0); /* 6 of 14 */
    assert_int_equal(bench.held, 0);
}

static void check_figures(uint32_t instances, uint32_t stale, uint32_t unconfirmed, uint32_t held)
{
    struct rbi_import_figures figures;
    rbi_import_figures(&bench.import, ALPHA, &figures);
    assert_int_equal(figures.instances, instances);
    assert_int_equal(figures.stale, stale);
    assert_int_equal(figures.unconfirmed, unconfirmed);
    assert_int_equal(figures.held, held);
}

static void test_figures_say_how_they_are(void **state)
{
    (void)state;
    struct rbi_import_figures figures;
    check_figures(SIX, 0, 0, 0);
    bench_list(&bench, ALPHA, LIFE, 6, six, 4);
    check_figures(SIX, 2, 2, 0);
    bench_list(&bench, ALPHA, LIFE, 7, six, 2);
    check_figures(SIX, 4, 4, 4);
    reach(ALPHA, false);
    check_figures(SIX, SIX, 4, SIX); /* and the two that are listed are out of sight as well */
    bench_pass(&bench, BENCH_GRACE);
    check_figures(0, 0, 0, 0);
    rbi_import_figures(&bench.import, BETA, &figures);
    assert_int_equal(figures.instances, 0);
}

static void test_one_that_is_found_dead_does_not_wait(void **state)
{
    (void)state;
    bench_list(&bench, ALPHA, LIFE, 6, NULL, 0);
    rbi_import_dead(&bench.import, bench_find(&bench, &six[2]), bench.now_ns);
    bench_run(&bench);
    assert_int_equal(bench_count(&bench), SIX - 1);
}

static void test_an_operator_confirms(void **state)
{
    (void)state;
    const struct rbi_remote club = bench_remote("club", "1", 5);
    bench_change(&bench, ALPHA, LIFE, 6, &club, UINT32_MAX);
    bench_list(&bench, ALPHA, LIFE, 7, NULL, 0);
    assert_int_equal(bench.held, 2);
    const char lobby[] = "/app/area/platform/room/test/lobby";
    assert_int_equal(rbi_import_confirm(&bench.import, BETA, lobby, sizeof lobby - 1, bench.now_ns),
                     0);
    assert_int_equal(
        rbi_import_confirm(&bench.import, ALPHA, lobby, sizeof lobby - 1, bench.now_ns), SIX);
    bench_run(&bench);
    assert_int_equal(bench_count(&bench), 1);
    assert_int_equal(rbi_import_confirm(&bench.import, 0, "/", 1, bench.now_ns), 1);
    bench_run(&bench);
    assert_int_equal(bench_count(&bench), 0);
    assert_int_equal(bench.import.counters.confirmed, SIX + 1);
}

static void test_confirming_takes_nobody_who_is_in_sight(void **state)
{
    (void)state;
    assert_int_equal(rbi_import_confirm(&bench.import, 0, "/", 1, bench.now_ns), 0);
    rbi_import_source_lost(&bench.import, ALPHA, bench.now_ns);
    bench_run(&bench);
    assert_int_equal(rbi_import_confirm(&bench.import, 0, "/", 1, bench.now_ns), 0);
    assert_int_equal(bench_count(&bench), SIX);
}

/* ---- from a file ------------------------------------------------------------------------- */

static void load(uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        assert_int_equal(rbi_import_load(&bench.import, ALPHA, "alpha", &six[i], bench.now_ns), 0);
    }
    bench_run(&bench);
}

static void test_what_a_file_says_is_stale_until_its_host_tells(void **state)
{
    (void)state;
    bench_init(&bench, BENCH_ENTRIES);
    load(0, SIX);
    assert_int_equal(bench_count(&bench), SIX);
    assert_true(bench.stale[bench_find(&bench, &six[0])]);
    assert_int_equal(bench.asks, 0);
    bench_pass(&bench, BENCH_S);
    reach(ALPHA, true);
    assert_true(bench.stale[bench_find(&bench, &six[0])]);
    bench_list(&bench, ALPHA, LIFE, 9, six, 2); /* a file knows nothing better than the host */
    assert_int_equal(bench_count(&bench), 2);
    assert_false(bench.stale[bench_find(&bench, &six[0])]);
    assert_int_equal(bench.held, 0);
    assert_int_equal(rbi_import_load(&bench.import, ALPHA, "alpha", &six[5], bench.now_ns),
                     -EEXIST);
}

static void test_what_a_file_says_of_a_host_that_never_comes_ends(void **state)
{
    (void)state;
    bench_init(&bench, BENCH_ENTRIES);
    load(0, SIX);
    bench_pass(&bench, BENCH_GRACE - 1);
    assert_int_equal(bench_count(&bench), SIX);
    bench_pass(&bench, 1);
    assert_int_equal(bench_count(&bench), 0);
}

static void test_files_cannot_say_everything(void **state)
{
    (void)state;
    struct rbi_remote wrong = six[0];
    bench_init(&bench, 4);
    load(0, 4);
    assert_int_equal(rbi_import_load(&bench.import, ALPHA, "alpha", &six[4], bench.now_ns),
                     -ENOSPC);
    assert_int_equal(rbi_import_load(&bench.import, ALPHA, "alpha", &six[0], bench.now_ns),
                     -EEXIST);
    assert_int_equal(rbi_import_load(&bench.import, BENCH_OWN, "us", &six[5], bench.now_ns),
                     -EINVAL);
    wrong.pidf.incarnation = 0;
    assert_int_equal(rbi_import_load(&bench.import, ALPHA, "alpha", &wrong, bench.now_ns), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_an_end_that_its_host_knows_is_both_signals, setup),
        cmocka_unit_test_setup(test_unlisted_one_is_kept_for_a_grace, setup),
        cmocka_unit_test_setup(test_unlisted_and_silent_is_gone, setup),
        cmocka_unit_test_setup(test_silent_then_unlisted_is_gone, setup),
        cmocka_unit_test_setup(test_a_suspicion_ends, setup),
        cmocka_unit_test_setup(test_its_host_says_that_it_is_not_there, setup),
        cmocka_unit_test_setup(test_a_source_that_is_lost_takes_nobody_away, setup),
        cmocka_unit_test_setup(test_an_unreachable_host_is_gone_after_a_grace, setup),
        cmocka_unit_test_setup(test_a_cut_that_ends_in_time_takes_nobody_away, setup),
        cmocka_unit_test_setup(test_a_host_that_leaves_takes_all_along, setup),
        cmocka_unit_test_setup(test_an_empty_list_is_held, setup),
        cmocka_unit_test_setup(test_an_empty_list_while_pings_succeed_is_kept_for_the_grace, setup),
        cmocka_unit_test_setup(test_a_list_that_comes_back_ends_the_hold, setup),
        cmocka_unit_test_setup(test_the_guard_counts_a_majority_of_four_or_all, setup),
        cmocka_unit_test_setup(test_the_guard_counts_what_many_changes_take_away, setup),
        cmocka_unit_test_setup(test_instances_of_other_hosts_count, setup),
        cmocka_unit_test_setup(test_figures_say_how_they_are, setup),
        cmocka_unit_test_setup(test_one_that_is_found_dead_does_not_wait, setup),
        cmocka_unit_test_setup(test_an_operator_confirms, setup),
        cmocka_unit_test_setup(test_confirming_takes_nobody_who_is_in_sight, setup),
        cmocka_unit_test_setup(test_what_a_file_says_is_stale_until_its_host_tells, setup),
        cmocka_unit_test_setup(test_what_a_file_says_of_a_host_that_never_comes_ends, setup),
        cmocka_unit_test_setup(test_files_cannot_say_everything, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
