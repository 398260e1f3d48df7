/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a host knows of the instances of others: lists by revision, gaps, room, conflicts (features
 * 2.13; D65, D66: each host lists its own; B16, B19, J40: hosts are equal and none is asked for
 * another's).
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

static struct bench bench;
static struct rbi_remote four[4];

static int setup(void **state)
{
    (void)state;
    bench_init(&bench, BENCH_ENTRIES);
    for (uint32_t i = 0; i < 4; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "%" PRIu32, i + 1);
        four[i] = bench_remote("lobby", name, 100 + i);
    }
    return 0;
}

static void reach(uint64_t host, bool reachable)
{
    assert_int_equal(rbi_import_reach(&bench.import, host, host == ALPHA ? "alpha" : "beta",
                                      reachable, bench.now_ns),
                     0);
    bench_run(&bench);
}

static void test_reach_asks_and_a_list_is_registered(void **state)
{
    (void)state;
    reach(ALPHA, true);
    assert_int_equal(bench.asks, 1);
    assert_int_equal(bench.last_ask.incarnation, 0);
    bench_list(&bench, ALPHA, LIFE, 5, four, 4);
    assert_int_equal(bench_count(&bench), 4);
    const uint32_t idx = bench_find(&bench, &four[2]);
    assert_int_equal(bench.entries[idx].state, RBI_IMPORT_LIVE);
    assert_false(bench.stale[idx]);
    const struct rbi_import_host *host = rbi_import_host_find(&bench.import, ALPHA);
    assert_string_equal(host->name, "alpha");
    assert_int_equal(host->revision, 5);
    bench_pass(&bench, 29 * BENCH_S);
    assert_int_equal(bench.asks, 1);
}

static void test_list_is_nothing_until_it_is_whole(void **state)
{
    (void)state;
    reach(ALPHA, true);
    assert_int_equal(bench_item(&bench, ALPHA, LIFE, 5, RBI_ITEM_FIRST, 1, &four[0]), 0);
    bench_run(&bench);
    const uint32_t idx = bench_find(&bench, &four[0]);
    assert_true(bench.stale[idx]); /* it is shown, and nobody vouches for the whole yet */
    assert_int_equal(bench_item(&bench, ALPHA, LIFE, 5, RBI_ITEM_LAST, 2, NULL), 0);
    bench_run(&bench);
    assert_false(bench.stale[idx]);
}

static void test_changes_follow_by_revision(void **state)
{
    (void)state;
    reach(ALPHA, true);
    bench_list(&bench, ALPHA, LIFE, 5, four, 2);
    bench_change(&bench, ALPHA, LIFE, 6, &four[2], UINT32_MAX);
    assert_int_equal(bench_count(&bench), 3);
    four[2].weight = 7;
    bench_change(&bench, ALPHA, LIFE, 7, &four[2], UINT32_MAX);
    assert_int_equal(bench.entries[bench_find(&bench, &four[2])].remote.weight, 7);
    bench_change(&bench, ALPHA, LIFE, 8, &four[0], RBI_REASON_LEFT);
    assert_int_equal(bench.last.reason, RBI_REASON_LEFT);
    assert_int_equal(bench_count(&bench), 2);
    bench_change(&bench, ALPHA, LIFE, 7, &four[0], UINT32_MAX); /* again, late: not the past */
    assert_int_equal(bench_count(&bench), 2);
    assert_int_equal(bench.asks, 1);
}

static void test_gap_asks_once_for_what_is_missing(void **state)
{
    (void)state;
    reach(ALPHA, true);
    bench_list(&bench, ALPHA, LIFE, 5, four, 2);
    bench_pass(&bench, 10 * BENCH_S);
    bench_change(&bench, ALPHA, LIFE, 7, &four[3], UINT32_MAX);
    bench_change(&bench, ALPHA, LIFE, 8, &four[3], UINT32_MAX);
    bench_change(&bench, ALPHA, LIFE, 9, &four[3], UINT32_MAX);
    assert_int_equal(bench.asks, 2);
    assert_int_equal(bench.last_ask.incarnation, LIFE);
    assert_int_equal(bench.last_ask.revision, 5);
    assert_int_equal(bench.import.counters.gaps, 1);
    assert_int_equal(bench_count(&bench), 2);
    assert_int_equal(bench_item(&bench, ALPHA, LIFE, 6, 0, 0, &four[2]), 0);
    bench_change(&bench, ALPHA, LIFE, 7, &four[3], UINT32_MAX);
    assert_int_equal(bench_count(&bench), 4);
    bench_pass(&bench, 20 * BENCH_S);
    assert_int_equal(bench.asks, 2);
}

static void test_gaps_without_end_are_asked_for_ever_later(void **state)
{
    (void)state;
    reach(ALPHA, true);
    bench_list(&bench, ALPHA, LIFE, 5, four, 2);
    bench_forget(&bench);
    for (uint32_t i = 0; i < 1000; i++) { /* an exporter that has lost its mind, for 10 s */
        bench_change(&bench, ALPHA, LIFE, 1000 + i, &four[3], UINT32_MAX);
        assert_int_equal(bench_item(&bench, ALPHA, LIFE, 5, RBI_ITEM_LAST, 0, NULL), 0);
        bench_pass(&bench, BENCH_S / 100);
    }
    assert_in_range(bench.asks, 4, 20);
}

static void test_list_that_lacks_items_is_asked_for_again(void **state)
{
    (void)state;
    reach(ALPHA, true);
    bench_list(&bench, ALPHA, LIFE, 5, four, 4);
    bench_pass(&bench, 10 * BENCH_S);
    /* A list that loses its middle on the way, then one that loses its beginning. */
    assert_int_equal(bench_item(&bench, ALPHA, LIFE, 6, RBI_ITEM_FIRST, 1, &four[0]), 0);
    assert_int_equal(bench_item(&bench, ALPHA, LIFE, 6, 0, 3, &four[2]), 0);
    assert_int_equal(bench_item(&bench, ALPHA, LIFE, 6, RBI_ITEM_LAST, 5, NULL), 0);
    bench_run(&bench);
    assert_int_equal(bench.asks, 2);
    assert_int_equal(bench.last_ask.incarnation, 0); /* all of it */
    assert_int_equal(bench_item(&bench, ALPHA, LIFE, 6, 0, 3, &four[2]), 0);
    assert_int_equal(bench_item(&bench, ALPHA, LIFE, 6, RBI_ITEM_LAST, 5, NULL), 0);
    bench_run(&bench);
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(bench.entries[bench_find(&bench, &four[i])].listed);
    }
    assert_int_equal(rbi_import_host_find(&bench.import, ALPHA)->revision, 5);
    bench_list(&bench, ALPHA, LIFE, 6, four, 3);
    assert_int_equal(rbi_import_host_find(&bench.import, ALPHA)->revision, 6);
    assert_int_equal(bench.entries[bench_find(&bench, &four[3])].state, RBI_IMPORT_UNCONFIRMED);
}

static void test_a_list_that_broke_off_is_not_gone_on_from(void **state)
{
    (void)state;
    const struct rbi_remote old = four[0];
    struct rbi_remote new = four[0];
    new.pidf.incarnation++;
    for (unsigned i = 0; i < 2; i++) {
        bench_init(&bench, BENCH_ENTRIES);
        reach(ALPHA, true);
        bench_list(&bench, ALPHA, LIFE, 5, NULL, 0);
        bench_pass(&bench, 10 * BENCH_S);
        assert_int_equal(bench_item(&bench, ALPHA, LIFE, 8, RBI_ITEM_FIRST, 1, &new), 0);
        if (i == 0) {
            rbi_import_way_changed(&bench.import, ALPHA, bench.now_ns);
        } else {
            reach(ALPHA, false);
            reach(ALPHA, true);
        }
        bench_pass(&bench, BENCH_S);
        assert_int_equal(bench.last_ask.incarnation, 0); /* else change 6 would come, about old */
        bench_change(&bench, ALPHA, LIFE, 6, &old, UINT32_MAX);
        assert_int_equal(bench.entries[bench_find(&bench, &new)].remote.pidf.incarnation,
                         new.pidf.incarnation);
        bench_list(&bench, ALPHA, LIFE, 8, &new, 1);
        assert_int_equal(bench.removed, 0);
        assert_false(bench.stale[bench_find(&bench, &new)]);
    }
}

static void test_ask_without_answer_is_made_again_and_ends_in_stale(void **state)
{
    (void)state;
    reach(ALPHA, true);
    bench_pass(&bench, 60 * BENCH_S);
    assert_in_range(bench.asks, 8, 20);
    bench_list(&bench, ALPHA, LIFE, 5, four, 4);
    bench_forget(&bench);
    bench_pass(&bench, 31 * BENCH_S); /* what was lost unnoticed is found: it is asked again */
    assert_int_equal(bench.asks, 1);
    assert_int_equal(bench.last_ask.revision, 5);
    assert_false(bench.stale[bench_find(&bench, &four[0])]);
    bench_pass(&bench, 20 * BENCH_S); /* and when nobody answers, nobody vouches for it */
    assert_true(bench.stale[bench_find(&bench, &four[0])]);
    bench_pass(&bench, 3600 * BENCH_S);
    assert_int_equal(bench_count(&bench), 4);
    assert_int_equal(bench_item(&bench, ALPHA, LIFE, 5, RBI_ITEM_LAST, 0, NULL), 0);
    bench_run(&bench);
    assert_false(bench.stale[bench_find(&bench, &four[0])]);
}

static void test_new_exporter_is_asked_for_everything(void **state)
{
    (void)state;
    reach(ALPHA, true);
    bench_list(&bench, ALPHA, LIFE, 5, four, 4);
    bench_pass(&bench, 10 * BENCH_S);
    bench_change(&bench, ALPHA, LIFE + 1, 6, &four[3], UINT32_MAX);
    assert_int_equal(bench.asks, 2);
    bench_list(&bench, ALPHA, LIFE + 1, 2, four, 4);
    assert_int_equal(rbi_import_host_find(&bench.import, ALPHA)->incarnation, LIFE + 1);
    assert_int_equal(bench.removed, 0);
    assert_int_equal(bench_count(&bench), 4);
}

static void test_new_life_of_an_instance_replaces_the_old(void **state)
{
    (void)state;
    reach(ALPHA, true);
    bench_list(&bench, ALPHA, LIFE, 5, four, 1);
    four[0].pidf.incarnation++;
    bench_change(&bench, ALPHA, LIFE, 6, &four[0], UINT32_MAX);
    assert_int_equal(bench.removed, 1);
    assert_int_equal(bench.last.reason, RBI_REASON_REPLACED);
    assert_int_equal(bench_count(&bench), 1);
    four[1] = four[0];
    four[1].pidf.incarnation--; /* the end of the old one, late */
    bench_change(&bench, ALPHA, LIFE, 7, &four[1], RBI_REASON_CRASHED);
    assert_int_equal(bench_count(&bench), 1);
}

static void test_malformed_items_are_left_out_alone(void **state)
{
    (void)state;
    reach(ALPHA, true);
    struct rbi_remote wrong = four[1];
    wrong.pidf.cluster++;
    assert_int_equal(bench_item(&bench, ALPHA, LIFE, 5, RBI_ITEM_FIRST, 1, &four[0]), 0);
    assert_int_equal(bench_item(&bench, ALPHA, LIFE, 5, 0, 2, &wrong), -EPROTO);
    wrong = four[1];
    wrong.weight = 1001;
    assert_int_equal(bench_item(&bench, ALPHA, LIFE, 5, 0, 3, &wrong), -EPROTO);
    wrong = four[1];
    memset(wrong.set, 'x', sizeof wrong.set);
    assert_int_equal(bench_item(&bench, ALPHA, LIFE, 5, 0, 4, &wrong), -EPROTO);
    wrong = four[1];
    wrong.path[wrong.path_length] = 'x';
    assert_int_equal(bench_item(&bench, ALPHA, LIFE, 5, RBI_ITEM_LAST, 5, &wrong), -EPROTO);
    bench_run(&bench);
    assert_int_equal(bench_count(&bench), 1);
    assert_false(bench.stale[bench_find(&bench, &four[0])]);
    wrong = four[1];
    wrong.state = RBI_REASON_LAST + 1;
    assert_int_equal(bench_item(&bench, ALPHA, LIFE, 6, RBI_ITEM_REMOVED, 0, &wrong), -EPROTO);
    assert_int_equal(bench_item(&bench, ALPHA, 0, 6, RBI_ITEM_LAST, 0, NULL), -EPROTO);
    assert_int_equal(bench.import.counters.malformed, 6);
    assert_int_equal(rbi_import_host_find(&bench.import, ALPHA)->malformed, 6);
    bench_change(&bench, ALPHA, LIFE, 7, &four[1], UINT32_MAX); /* its revision is not asked for */
    assert_int_equal(bench_count(&bench), 2);
}

static void test_ourselves_and_strangers_are_not_taken(void **state)
{
    (void)state;
    assert_int_equal(rbi_import_reach(&bench.import, BENCH_OWN, "us", true, bench.now_ns), -EINVAL);
    assert_int_equal(bench_item(&bench, ALPHA, LIFE, 1, RBI_ITEM_FIRST, 1, &four[0]), -ENOENT);
    reach(ALPHA, false);
    assert_int_equal(bench_item(&bench, ALPHA, LIFE, 1, RBI_ITEM_FIRST, 1, &four[0]), -ENOENT);
    assert_int_equal(bench.asks, 0);
}

static void test_globs_choose_clusters(void **state)
{
    (void)state;
    struct rbi_remote club = bench_remote("club", "1", 5);
    const struct rbi_remote both[2] = {four[0], club};
    (void)snprintf(bench.globs.items[0], sizeof bench.globs.items[0], "/app/**/club");
    reach(ALPHA, true);
    bench_list(&bench, ALPHA, LIFE, 5, both, 2);
    assert_int_equal(bench_count(&bench), 1);
    assert_int_not_equal(bench_find(&bench, &club), RBI_IMPORT_NONE);
    bench_pass(&bench, 10 * BENCH_S);
    (void)snprintf(bench.globs.items[0], sizeof bench.globs.items[0], "/app/**/lobby");
    const struct rbi_import_config config = bench.import.config;
    rbi_import_configure(&bench.import, &config, bench.now_ns);
    bench_run(&bench);
    assert_int_equal(bench_count(&bench), 0);
    assert_int_equal(bench.last.reason, RBI_REASON_LEFT);
    assert_int_equal(bench.asks, 2); /* for those that were left out before: all */
    assert_int_equal(bench.last_ask.incarnation, 0);
    bench_list(&bench, ALPHA, LIFE, 5, both, 2);
    assert_int_not_equal(bench_find(&bench, &four[0]), RBI_IMPORT_NONE);
    assert_int_equal(bench_count(&bench), 1);
}

static void test_a_path_has_one_holder_and_the_next_follows(void **state)
{
    (void)state;
    reach(ALPHA, true);
    reach(BETA, true);
    bench_list(&bench, ALPHA, LIFE, 5, four, 1);
    struct rbi_remote other = four[0];
    other.pidf.incarnation = 999;
    bench_list(&bench, BETA, LIFE, 5, &other, 1);
    assert_int_equal(bench.conflicts, 1);
    assert_int_equal(bench_count(&bench), 1);
    other.weight = 3;
    bench_change(&bench, BETA, LIFE, 6, &other, UINT32_MAX);
    assert_int_equal(bench.conflicts, 1); /* told once */
    assert_int_equal(bench.entries[bench_find(&bench, &other)].remote.pidf.incarnation, 100);
    bench_change(&bench, ALPHA, LIFE, 6, &four[0], RBI_REASON_CRASHED);
    const uint32_t idx = bench_find(&bench, &other);
    assert_int_equal(bench.entries[idx].remote.pidf.incarnation, 999);
    assert_int_equal(bench.entries[idx].remote.weight, 3);
}

static void test_a_path_that_is_ours_is_tried_again(void **state)
{
    (void)state;
    reach(ALPHA, true);
    bench_list(&bench, ALPHA, LIFE, 5, four, 1);
    for (unsigned i = 0; i < 3; i++) {
        const uint32_t idx = bench_find(&bench, &four[0]);
        bench.shown[idx] = false; /* the daemon said IN_USE */
        rbi_import_taken(&bench.import, idx, bench.now_ns);
        bench_run(&bench);
        assert_int_equal(bench_count(&bench), 0);
        bench_pass(&bench, (RBI_IMPORT_TAKEN_MIN_NS << i) - 1);
        assert_int_equal(bench_count(&bench), 0);
        bench_pass(&bench, 1);
        assert_int_equal(bench_count(&bench), 1);
    }
    const uint32_t idx = bench_find(&bench, &four[0]);
    bench.shown[idx] = false;
    rbi_import_taken(&bench.import, idx, bench.now_ns);
    bench_change(&bench, ALPHA, LIFE, 6, &four[0], RBI_REASON_LEFT);
    assert_int_equal(bench.removed, 0); /* it was not there to be removed */
    assert_int_equal(bench.import.entry_count, 0);
}

static void test_room_is_shared_by_hosts(void **state)
{
    (void)state;
    struct rbi_remote many[20];
    bench_init(&bench, 16);
    for (uint32_t i = 0; i < 20; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "%" PRIu32, i + 1);
        many[i] = bench_remote("greedy", name, 1);
    }
    reach(ALPHA, true);
    reach(BETA, true);
    bench_list(&bench, ALPHA, LIFE, 5, many, 20);
    assert_int_equal(bench_count(&bench), 8);
    assert_int_equal(bench.refused, 1);
    assert_int_equal(bench.last.count, 12);
    assert_int_equal(rbi_import_host_find(&bench.import, ALPHA)->refused, 12);
    bench_list(&bench, BETA, LIFE, 5, four, 4); /* there is room for the others */
    assert_int_equal(bench_count(&bench), 12);
    assert_int_equal(bench.refused, 1);
    bench_forget(&bench);
    bench_change(&bench, BETA, LIFE, 6, &four[0], RBI_REASON_LEFT);
    bench_pass(&bench, RBI_IMPORT_ASK_MAX_NS); /* and what was cut is asked for again */
    assert_int_equal(bench.asks, 1);
    assert_int_equal(bench.last_ask.host, 0);
    assert_int_equal(bench.last_ask.incarnation, 0);
}

static void test_the_table_grows_and_the_limit_falls(void **state)
{
    (void)state;
    static struct rbi_import_entry entries[BENCH_ENTRIES];
    static struct rbi_import_cluster clusters[BENCH_SLOTS];
    static uint32_t paths[BENCH_SLOTS];
    struct rbi_remote many[24];
    bench_init(&bench, 8);
    for (uint32_t i = 0; i < 24; i++) {
        char cluster[16];
        (void)snprintf(cluster, sizeof cluster, "c%" PRIu32, i % 5);
        char name[8];
        (void)snprintf(name, sizeof name, "%" PRIu32, i + 1);
        many[i] = bench_remote(cluster, name, 1);
    }
    reach(ALPHA, true);
    bench_list(&bench, ALPHA, LIFE, 5, many, 24);
    assert_int_equal(bench_count(&bench), 8);
    bench_change(&bench, ALPHA, LIFE, 6, &many[3], RBI_REASON_NONE); /* with something under way */
    rbi_import_move(&bench.import, entries, BENCH_ENTRIES, clusters, paths);
    memcpy(bench.entries, entries, sizeof entries); /* the bench looks at its own */
    memcpy(bench.clusters, clusters, sizeof clusters);
    memcpy(bench.paths, paths, sizeof paths);
    bench.import.entries = bench.entries;
    bench.import.clusters = bench.clusters;
    bench.import.paths = bench.paths;
    bench_run(&bench);
    assert_int_equal(bench_count(&bench), 8);
    assert_int_equal(bench.entries[bench_find(&bench, &many[3])].state, RBI_IMPORT_UNCONFIRMED);
    struct rbi_import_config config = bench.import.config;
    config.limit = 20;
    rbi_import_configure(&bench.import, &config, bench.now_ns);
    bench_run(&bench);
    bench_pass(&bench, RBI_IMPORT_ASK_MAX_NS);
    bench_list(&bench, ALPHA, LIFE, 7, many, 24);
    assert_int_equal(bench_count(&bench), 20);
    for (uint32_t i = 0; i < 20; i++) {
        assert_int_not_equal(bench_find(&bench, &many[i]), RBI_IMPORT_NONE);
    }
    config.limit = 4; /* those that are there stay */
    rbi_import_configure(&bench.import, &config, bench.now_ns);
    bench_run(&bench);
    bench_list(&bench, ALPHA, LIFE, 8, many, 24);
    assert_int_equal(bench_count(&bench), 20);
}

static void test_clusters_come_and_go(void **state)
{
    (void)state;
    struct rbi_remote all[48];
    bool there[48] = {false};
    uint32_t order = 1;
    uint64_t revision = 1;
    for (uint32_t i = 0; i < 48; i++) {
        char cluster[16];
        (void)snprintf(cluster, sizeof cluster, "c%" PRIu32, i / 2);
        all[i] = bench_remote(cluster, i % 2 ? "1" : "2", 1);
    }
    reach(ALPHA, true);
    bench_list(&bench, ALPHA, LIFE, revision, NULL, 0);
    for (uint32_t i = 0; i < 4000; i++) { /* bench_run() counts what is there */
        order = order * 1103515245U + 12345U;
        const uint32_t n = (order >> 16) % 48;
        bench_change(&bench, ALPHA, LIFE, ++revision, &all[n],
                     there[n] ? RBI_REASON_LEFT : UINT32_MAX);
        there[n] = !there[n];
        for (uint32_t j = 0; j < 48; j++) {
            assert_int_equal(bench_find(&bench, &all[j]) != RBI_IMPORT_NONE, there[j]);
        }
    }
}

static void test_hosts_have_an_end(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < RBI_IMPORT_HOSTS_MAX; i++) {
        assert_int_equal(rbi_import_reach(&bench.import, 100 + i, "h", true, bench.now_ns), 0);
    }
    assert_int_equal(rbi_import_reach(&bench.import, 99, "h", true, bench.now_ns), -ENOSPC);
    assert_int_equal(rbi_import_reach(&bench.import, 107, "h", false, bench.now_ns), 0);
    assert_int_equal(rbi_import_reach(&bench.import, 99, "h", true, bench.now_ns), 0);
    assert_null(rbi_import_host_find(&bench.import, 107)); /* nothing was known of it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_reach_asks_and_a_list_is_registered, setup),
        cmocka_unit_test_setup(test_list_is_nothing_until_it_is_whole, setup),
        cmocka_unit_test_setup(test_changes_follow_by_revision, setup),
        cmocka_unit_test_setup(test_gap_asks_once_for_what_is_missing, setup),
        cmocka_unit_test_setup(test_gaps_without_end_are_asked_for_ever_later, setup),
        cmocka_unit_test_setup(test_list_that_lacks_items_is_asked_for_again, setup),
        cmocka_unit_test_setup(test_a_list_that_broke_off_is_not_gone_on_from, setup),
        cmocka_unit_test_setup(test_ask_without_answer_is_made_again_and_ends_in_stale, setup),
        cmocka_unit_test_setup(test_new_exporter_is_asked_for_everything, setup),
        cmocka_unit_test_setup(test_new_life_of_an_instance_replaces_the_old, setup),
        cmocka_unit_test_setup(test_malformed_items_are_left_out_alone, setup),
        cmocka_unit_test_setup(test_ourselves_and_strangers_are_not_taken, setup),
        cmocka_unit_test_setup(test_globs_choose_clusters, setup),
        cmocka_unit_test_setup(test_a_path_has_one_holder_and_the_next_follows, setup),
        cmocka_unit_test_setup(test_a_path_that_is_ours_is_tried_again, setup),
        cmocka_unit_test_setup(test_room_is_shared_by_hosts, setup),
        cmocka_unit_test_setup(test_the_table_grows_and_the_limit_falls, setup),
        cmocka_unit_test_setup(test_clusters_come_and_go, setup),
        cmocka_unit_test_setup(test_hosts_have_an_end, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
