/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histories at random of a directory, an exporter, a network that loses, and a table that imports
 * (features 2.13; J40): whoever sees which cut, whatever is lost with or without a word, when it is
 * calm the table is the directory. Nobody who lives is removed before a grace.
 */
#include "export_bench.h"

#include <stdlib.h>

#define STEPS     1500U
#define HISTORIES 60U
#define HERE      12U

static uint64_t seed;
static uint32_t lives;

static uint32_t below(uint32_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((seed >> 33) % n);
}

/** Who is removed is dead, or has been out of sight for a grace. */
static void on_remove(struct bench *at, const struct rbi_import_action *action)
{
    const struct rbi_import_entry *entry = &at->entries[action->entry];
    const struct rbi_import_host *host = &at->import.hosts[entry->host];
    for (unsigned c = 0; c < 2; c++) {
        for (uint32_t i = 0; i < here_count[c]; i++) {
            const bool same = here[c][i].incarnation == entry->remote.pidf.incarnation &&
                              here[c][i].instance == entry->remote.pidf.instance;
            const bool cut = !host->reachable && at->now_ns - host->reach_ns >= BENCH_GRACE;
            assert_true(!same || cut || action->reason == RBI_REASON_LEFT);
        }
    }
}

static void step_directory(void)
{
    const unsigned c = below(2);
    const uint32_t n = here_count[c];
    switch (n < HERE ? below(5) : 1 + below(4)) {
    case 0: {
        bool taken = false;
        const uint32_t number = 1 + below(20);
        for (uint32_t i = 0; i < n; i++) {
            taken = taken || here[c][i].instance == (int32_t)number;
        }
        if (!taken) {
            add(c, number)->incarnation = ++lives;
        }
        break;
    }
    case 1:
        if (n > 0) {
            drop(c, below(n));
        }
        break;
    case 2:
        if (n > 0) {
            here[c][below(n)].incarnation = ++lives;
        }
        break;
    default:
        if (n > 0) {
            here[c][below(n)].weight = below(1001);
        }
        break;
    }
}

/** Looks, as the station does: again when something was not to be decided. */
static void look_well(void)
{
    look();
    while (rbi_export_again(export)) {
        assert_int_equal(rbi_export_look(export, &world.view, true), 0);
    }
}

/** A cut as one end sees it, or the other, or both. */
static void cut(bool there)
{
    const uint32_t who = below(3);
    if (who != 0) {
        assert_int_equal(rbi_import_reach(&bench.import, ALPHA, "alpha", there, bench.now_ns), 0);
        bench_run(&bench);
    }
    if (who != 1 && there) {
        rbi_export_resume(export, BENCH);
    } else if (who != 1) {
        rbi_export_pause(export, BENCH);
    }
    if (!there) {
        asked.what = RBI_IMPORT_DO_NOTHING;
    }
}

static void step(void)
{
    switch (below(12)) {
    case 0:
        cut(false);
        break;
    case 1:
    case 2:
        cut(true);
        break;
    case 3:
        lose = below(4) == 0;
        break;
    case 4:
        room = below(6);
        break;
    case 5:
        room = UINT32_MAX;
        break;
    case 6: /* everything, a piece at a time, of which some is lost */
        assert_int_equal(rbi_export_ask(export, BENCH, 0, 0), 0);
        for (uint32_t i = below(12); i > 0; i--) {
            room = 1;
            lose = below(4) == 0;
            pump();
        }
        room = below(2) ? UINT32_MAX : 0;
        lose = false;
        break;
    case 7:
        rbi_import_way_changed(&bench.import, ALPHA, bench.now_ns);
        bench_run(&bench);
        break;
    default:
        step_directory();
        look_well();
        break;
    }
    if (below(3) == 0) {
        pump();
    }
    bench_pass(&bench, BENCH_S / 100 * below(below(10) ? 30 : 3000));
}

static void calm_down(void)
{
    lose = false;
    room = UINT32_MAX;
    assert_int_equal(rbi_import_reach(&bench.import, ALPHA, "alpha", true, bench.now_ns), 0);
    rbi_export_resume(export, BENCH);
    bench_run(&bench);
    for (unsigned i = 0; i < 200; i++) {
        pump();
        bench_pass(&bench, BENCH_S);
    }
    pump();
    bench_run(&bench);
    check_same();
}

static void test_what_is_imported_is_what_is_exported(void **state)
{
    (void)state;
    const uint32_t count = getenv("RINGBUS_TEST_FULL") ? 50 * HISTORIES : HISTORIES;
    for (uint32_t i = 0; i < count; i++) {
        print_message("history %" PRIu32 "\n", i);
        seed = i;
        assert_int_equal(setup(NULL), 0);
        bench.on_remove = on_remove;
        for (uint32_t j = 0; j < STEPS; j++) {
            step();
        }
        calm_down();
        assert_int_equal(teardown(NULL), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_is_imported_is_what_is_exported)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
