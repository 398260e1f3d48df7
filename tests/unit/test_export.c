/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a host tells others of its instances (features 2.13; B19: none of what it was told itself),
 * and what they make of it: an exporter that reads a directory, and a table of imported instances
 * that it tells.
 */
#include "export_bench.h"

static void test_what_is_there_is_told_to_who_asks(void **state)
{
    (void)state;
    (void)add(0, 1);
    struct rbi_directory_instance *two = add(0, 2);
    two->state = RBI_ENDPOINT_BUSY;
    two->weight = 7;
    set_label(two->tags, 't', 5);
    (void)snprintf(two->set, sizeof two->set, "a.b.c");
    (void)snprintf(two->idc, sizeof two->idc, "rack/zone");
    (void)add(1, 3);
    look();
    pump();
    assert_int_equal(items, 0); /* nobody has asked */
    connect_bench();
    check_same();
    const struct rbi_remote *told = &bench.entries[find(0, "2")].remote;
    assert_string_equal(told->tags, "ttttt");
    assert_string_equal(told->set, "a.b.c");
    assert_string_equal(told->idc, "rack/zone");
    assert_int_equal(rbi_export_hosts(export), 1);
}

static void test_nothing_is_told_before_all_have_come_back(void **state)
{
    (void)state;
    (void)add(0, 1);
    write_cluster(0);
    assert_int_equal(rbi_export_look(export, &world.view, false), 0);
    connect_bench();
    assert_int_equal(items, 0); /* half of it would take the rest away */
    look();
    pump();
    check_same();
}

static void test_imported_ones_are_not_told(void **state)
{
    (void)state; /* and the globs cannot change that */
    (void)add(0, 1);
    add(0, 2)->host = 3;
    look();
    connect_bench();
    check_same();
    assert_int_equal(bench_count(&bench), 1);
}

static void test_changes_are_told_unasked(void **state)
{
    (void)state;
    (void)add(0, 1);
    (void)add(0, 2);
    look();
    connect_bench();
    const uint64_t revision = rbi_export_revision(export);
    look();
    assert_int_equal(rbi_export_revision(export), revision); /* the epoch alone is no change */
    (void)add(1, 9);
    here[0][0].weight = 5;
    look();
    assert_int_equal(rbi_export_revision(export), revision + 2);
    pump();
    check_same();
    assert_int_equal(firsts, 1);
    assert_int_equal(bench.asks, 1);
}

static void test_removals_have_their_reasons(void **state)
{
    (void)state;
    for (uint32_t i = 1; i <= 3; i++) {
        (void)add(0, i);
    }
    look();
    connect_bench();
    const struct rbi_remote first = bench.entries[find(0, "1")].remote;
    rbi_export_removed(export, &first.pidf, RBI_REASON_LEFT);
    drop(0, 0);
    look();
    assert_false(rbi_export_again(export));
    pump();
    check_same();
    assert_int_equal(bench.last.reason, RBI_REASON_LEFT);
    drop(0, 0); /* its event is late: it is waited for, and not for long */
    look();
    assert_true(rbi_export_again(export));
    pump();
    assert_int_equal(bench_count(&bench), 2);
    assert_int_equal(rbi_export_look(export, &world.view, true), 0);
    assert_false(rbi_export_again(export));
    pump();
    check_same();
    assert_int_equal(bench.last.reason, RBI_REASON_CRASHED);
}

static void test_a_new_life_is_an_end_and_a_beginning(void **state)
{
    (void)state;
    (void)add(0, 1);
    look();
    connect_bench();
    const struct rbi_remote first = bench.entries[find(0, "1")].remote;
    rbi_export_removed(export, &first.pidf, RBI_REASON_LEFT);
    here[0][0].incarnation++;
    look();
    pump();
    check_same();
    assert_int_equal(bench.last.reason, RBI_REASON_LEFT);
}

static void test_a_new_daemon_takes_nobody_away_until_it_has_settled(void **state)
{
    (void)state;
    (void)add(0, 1);
    (void)add(0, 2);
    (void)add(1, 3);
    look();
    connect_bench();
    world_deinit(&world);
    world_init(&world, 8, 8, 1 << 20);
    world.writer = (struct rbi_directory_writer){0};
    memset(world.base, 0, world.size);
    rbi_directory_writer_init(&world.writer, world.base, world.size, 8, 8, 78);
    assert_int_equal(rbi_directory_view_init(&world.view, world.base, world.size), 0);
    epoch = 0; /* which count anew */
    drop(0, 1);
    write_cluster(0);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(rbi_export_look(export, &world.view, false), 0);
        assert_true(rbi_export_again(export));
        pump();
    }
    assert_int_equal(bench_count(&bench), 3);
    assert_int_equal(rbi_export_look(export, &world.view, true), 0);
    assert_int_equal(rbi_export_look(export, &world.view, true), 0);
    pump();
    assert_int_equal(bench_count(&bench), 1);
    assert_int_equal(bench.last.reason, RBI_REASON_CRASHED);
}

static void test_globs_that_change_add_and_take_away(void **state)
{
    (void)state;
    (void)add(0, 1);
    (void)add(1, 2);
    (void)snprintf(globs.items[0], sizeof globs.items[0], "/app/**/lobby");
    look();
    connect_bench();
    assert_int_equal(bench_count(&bench), 1);
    (void)snprintf(globs.items[0], sizeof globs.items[0], "/app/**/club");
    rbi_export_configure(export, &globs);
    assert_int_equal(rbi_export_look(export, &world.view, true), 0);
    pump();
    assert_int_equal(find(0, "1"), RBI_IMPORT_NONE);
    assert_int_not_equal(find(1, "2"), RBI_IMPORT_NONE);
    assert_int_equal(bench.last.reason, RBI_REASON_LEFT);
}

static void test_what_operators_hold_back_has_no_weight(void **state)
{
    (void)state;
    add(0, 1)->override = RBI_OVERRIDE_ISOLATED;
    add(0, 2)->override = RBI_OVERRIDE_STAGED;
    struct rbi_directory_instance *ramp = add(0, 3);
    ramp->health = RBI_HEALTH_RAMP;
    ramp->ramp = 25;
    add(0, 4)->health = RBI_HEALTH_OPEN;
    look();
    connect_bench();
    assert_int_equal(bench.entries[find(0, "1")].remote.weight, 0);
    assert_int_equal(bench.entries[find(0, "2")].remote.weight, 0);
    assert_int_equal(bench.entries[find(0, "3")].remote.weight, 25);
    assert_int_equal(bench.entries[find(0, "3")].remote.health, RBI_HEALTH_OK);
    assert_int_equal(bench.entries[find(0, "4")].remote.weight, 100);
    assert_int_equal(bench.entries[find(0, "4")].remote.health, RBI_HEALTH_OPEN);
}

static void test_a_slow_host_is_told_in_pieces(void **state)
{
    (void)state;
    for (uint32_t i = 1; i <= 20; i++) {
        (void)add(0, i);
    }
    look();
    room = 0;
    connect_bench();
    while (bench.entries[0].state != RBI_IMPORT_LIVE) {
        here[0][7].weight =
            (here[0][7].weight + 1) % 1000; /* and all the while something changes */
        look();
        room = 3;
        pump();
        assert_true(items < 200);
    }
    room = UINT32_MAX;
    pump();
    check_same();
    assert_int_equal(firsts, 1);
}

static void test_who_knows_an_old_revision_is_told_what_it_lacks(void **state)
{
    (void)state;
    (void)add(0, 1);
    (void)add(0, 2);
    look();
    connect_bench();
    assert_int_equal(rbi_import_reach(&bench.import, ALPHA, "alpha", false, bench.now_ns), 0);
    bench_run(&bench);
    rbi_export_forget(export, BENCH);
    here[0][0].weight = 50;
    look();
    items = 0;
    connect_bench();
    assert_int_equal(items, 1);
    check_same();
    assert_int_equal(firsts, 1);
    assert_int_equal(rbi_import_reach(&bench.import, ALPHA, "alpha", false, bench.now_ns), 0);
    connect_bench(); /* with nothing new */
    check_same();
    assert_int_equal(items, 2);
}

static void test_who_is_too_far_behind_is_told_everything(void **state)
{
    (void)state;
    (void)add(0, 1);
    (void)add(0, 2);
    look();
    connect_bench();
    room = 0;
    for (uint32_t i = 0; i <= RBI_EXPORT_LOG_MAX; i++) {
        here[0][0].weight = i % 1000;
        look();
    }
    room = UINT32_MAX;
    pump();
    check_same();
    assert_int_equal(firsts, 2);
}

static void test_a_pause_is_made_up_for_unasked(void **state)
{
    (void)state;
    (void)add(0, 1);
    (void)add(0, 2);
    look();
    connect_bench();
    rbi_export_pause(export, BENCH); /* a cut that the other end has not seen */
    items = 0;
    (void)add(0, 3);
    look();
    pump();
    assert_int_equal(items, 0);
    rbi_export_resume(export, BENCH);
    pump();
    check_same();
    assert_int_equal(items, 1);
    rbi_export_pause(export, BENCH);
    rbi_export_resume(export, BENCH);
    pump();
    assert_int_equal(items, 2); /* that nothing has changed: it may have lost something */
    assert_int_equal(bench.asks, 1);
    connected = true;
    rbi_export_pause(export, OTHER); /* of nobody */
    rbi_export_resume(export, OTHER);
}

static void test_a_pause_that_lost_something_is_asked_about(void **state)
{
    (void)state;
    (void)add(0, 1);
    look();
    connect_bench();
    bench_pass(&bench, 10 * BENCH_S);
    lose = true; /* taken, and lost on its way */
    (void)add(0, 2);
    look();
    pump();
    lose = false;
    rbi_export_pause(export, BENCH);
    rbi_export_resume(export, BENCH);
    pump();
    bench_pass(&bench, RBI_IMPORT_ASK_MIN_NS);
    pump();
    assert_int_equal(bench.asks, 2);
    check_same();
}

static void test_a_pause_within_a_list_begins_it_anew(void **state)
{
    (void)state;
    for (uint32_t i = 1; i <= 10; i++) {
        (void)add(0, i);
    }
    look();
    room = 4;
    connect_bench();
    rbi_export_pause(export, BENCH);
    room = UINT32_MAX;
    pump();
    assert_int_equal(items, 4);
    rbi_export_resume(export, BENCH);
    pump();
    check_same();
    assert_int_equal(firsts, 2);
}

static void test_a_host_that_is_gone_is_forgotten(void **state)
{
    (void)state;
    (void)add(0, 1);
    look();
    connect_bench();
    assert_int_equal(rbi_export_ask(export, OTHER, 0, 0), 0);
    assert_int_equal(rbi_export_hosts(export), 2);
    connected = false;
    (void)add(0, 2);
    look();
    pump();
    assert_int_equal(rbi_export_hosts(export), 0);
    for (uint64_t i = 0; i < RBI_EXPORT_HOSTS_MAX; i++) {
        assert_int_equal(rbi_export_ask(export, 100 + i, 0, 0), 0);
    }
    assert_int_equal(rbi_export_ask(export, 99, 0, 0), -ENOSPC);
    rbi_export_forget(export, 120);
    assert_int_equal(rbi_export_ask(export, 99, 0, 0), 0);
    assert_int_equal(rbi_export_ask(export, 98, 0, 0), -ENOSPC);
    rbi_export_pause(export, 130);
    assert_int_equal(rbi_export_ask(export, 98, 0, 0), 0);
    assert_int_equal(rbi_export_hosts(export), RBI_EXPORT_HOSTS_MAX);
}

static void test_nothing_is_exported_without_globs(void **state)
{
    (void)state;
    globs.count = 0;
    (void)add(0, 1);
    look();
    connect_bench();
    assert_int_equal(items, 1); /* FIRST and LAST: it is known that there is nothing */
    assert_int_equal(bench_count(&bench), 0);
    assert_true(rbi_import_host_find(&bench.import, ALPHA)->source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        CASE(test_what_is_there_is_told_to_who_asks),
        CASE(test_nothing_is_told_before_all_have_come_back),
        CASE(test_imported_ones_are_not_told),
        CASE(test_changes_are_told_unasked),
        CASE(test_removals_have_their_reasons),
        CASE(test_a_new_life_is_an_end_and_a_beginning),
        CASE(test_a_new_daemon_takes_nobody_away_until_it_has_settled),
        CASE(test_globs_that_change_add_and_take_away),
        CASE(test_what_operators_hold_back_has_no_weight),
        CASE(test_a_slow_host_is_told_in_pieces),
        CASE(test_who_knows_an_old_revision_is_told_what_it_lacks),
        CASE(test_who_is_too_far_behind_is_told_everything),
        CASE(test_a_pause_is_made_up_for_unasked),
        CASE(test_a_pause_that_lost_something_is_asked_about),
        CASE(test_a_pause_within_a_list_begins_it_anew),
        CASE(test_a_host_that_is_gone_is_forgotten),
        CASE(test_nothing_is_exported_without_globs),
#undef CASE
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
