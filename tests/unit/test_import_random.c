/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histories at random of three hosts that tell a fourth of their instances, over a network that
 * loses what is under way, with and without a word (features 2.13; J40: in the end all agree). Who
 * is removed must be missed for a reason that the oracle knows of, nobody stays for longer than the
 * rules allow, and when the world calms down, the table is what the hosts export.
 */
#include "bus/record.h"
#include "import_bench.h"
#include "support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOSTS     3U
#define NAMES     8U
#define LOG       8U
#define WIRE      128U
#define STEPS     3000U
#define HISTORIES 60U

/** What a host exports, and what it has said. */
struct exporter {
    uint64_t id;
    uint64_t incarnation;
    uint64_t revision;
    bool reachable;
    uint64_t cut_ns; /* since when it is not */
    bool lying;      /* its registry says that nobody is there */
    bool there[NAMES];
    struct rbi_remote remote[NAMES];
    bool told_end[NAMES];       /* of the life before: nobody need wonder where it went */
    uint64_t missing_ns[NAMES]; /* since when a list does not name it; 0: it does */
    uint64_t suspect_ns[NAMES];
    bool subscribed;
    struct rbi_remote_item log[LOG]; /* by revision */
    struct rbi_remote_item wire[WIRE];
    uint32_t on_wire;
};

static struct bench bench;
static struct exporter exporters[HOSTS];
static uint64_t seed;
static uint32_t lives;

static uint32_t below(uint32_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((seed >> 33) % n);
}

static struct exporter *exporter_of(uint64_t id)
{
    for (uint32_t i = 0; i < HOSTS; i++) {
        if (exporters[i].id == id) {
            return &exporters[i];
        }
    }
    abort();
}

static void wire_put(struct exporter *exporter, const struct rbi_remote_item *item)
{
    if (exporter->on_wire < WIRE) { /* else it is lost, as on a full connection that is cut */
        exporter->wire[exporter->on_wire++] = *item;
    }
}

static void tell_list(struct exporter *exporter)
{
    struct rbi_remote_item item = {.incarnation = exporter->incarnation,
                                   .revision = exporter->revision,
                                   .flags = RBI_ITEM_FIRST,
                                   .number = 1};
    for (uint32_t i = 0; i < NAMES && !exporter->lying; i++) {
        if (exporter->there[i]) {
            item.remote = exporter->remote[i];
            wire_put(exporter, &item);
            item.flags = 0;
            item.number++;
        }
    }
    memset(&item.remote, 0, sizeof item.remote);
    item.flags |= RBI_ITEM_LAST;
    wire_put(exporter, &item);
}

static void on_ask(struct bench *at, const struct rbi_import_action *action)
{
    struct exporter *exporter = exporter_of(at->import.hosts[action->host].id);
    assert_true(exporter->reachable); /* nobody is asked into the void */
    if (below(8) == 0) {
        return; /* lost */
    }
    exporter->subscribed = true;
    if (action->incarnation != exporter->incarnation || action->revision > exporter->revision ||
        exporter->revision - action->revision > LOG || exporter->lying) {
        tell_list(exporter);
        return;
    }
    for (uint64_t r = action->revision + 1; r <= exporter->revision; r++) {
        wire_put(exporter, &exporter->log[r % LOG]);
    }
    const struct rbi_remote_item mark = {.incarnation = exporter->incarnation,
                                         .revision = exporter->revision,
                                         .flags = RBI_ITEM_LAST};
    wire_put(exporter, &mark);
}

/** Whether a removal has both signals, as the oracle saw them. */
static void on_remove(struct bench *at, const struct rbi_import_action *action)
{
    const struct rbi_import_entry *entry = &at->entries[action->entry];
    struct exporter *exporter = exporter_of(at->import.hosts[entry->host].id);
    const uint32_t n = (uint32_t)strtoul(strrchr(entry->remote.path, '/') + 1, NULL, 10) % 100;
    if (!exporter->there[n] ||
        exporter->remote[n].pidf.incarnation != entry->remote.pidf.incarnation) {
        return; /* it is dead: whoever says so is right */
    }
    /* It lives. So it is out of sight: its host is, for a grace, or its registry lies. */
    if (!exporter->reachable && at->now_ns - exporter->cut_ns >= BENCH_GRACE) {
        return;
    }
    assert_int_not_equal(exporter->missing_ns[n], 0);
    const bool waited = at->now_ns - exporter->missing_ns[n] >= BENCH_GRACE;
    assert_true(waited || !exporter->reachable || exporter->suspect_ns[n] != 0);
}

static void change(struct exporter *exporter, uint32_t n, uint32_t reason)
{
    exporter->revision++;
    struct rbi_remote_item *item = &exporter->log[exporter->revision % LOG];
    *item = (struct rbi_remote_item){.incarnation = exporter->incarnation,
                                     .revision = exporter->revision,
                                     .flags = RBI_ITEM_LAST,
                                     .remote = exporter->remote[n]};
    if (reason != UINT32_MAX) {
        item->flags |= RBI_ITEM_REMOVED;
        item->remote.state = reason;
    }
    if (exporter->reachable && exporter->subscribed && !exporter->lying) {
        wire_put(exporter, item);
    }
}

static void step_instance(struct exporter *exporter)
{
    const uint32_t n = below(NAMES);
    if (!exporter->there[n]) {
        char name[12];
        (void)snprintf(name, sizeof name, "%u", 100 * (unsigned)(exporter->id) + n);
        exporter->remote[n] = bench_remote(n % 2 ? "lobby" : "club", name, ++lives);
        exporter->there[n] = true;
        exporter->missing_ns[n] = 0;
        exporter->suspect_ns[n] = 0;
        change(exporter, n, UINT32_MAX);
    } else if (below(2)) {
        exporter->remote[n].weight = below(1001);
        change(exporter, n, UINT32_MAX);
    } else {
        exporter->there[n] = false;
        change(exporter, n, below(4) ? RBI_REASON_CRASHED : RBI_REASON_NONE);
    }
}

/** What comes through tells the oracle who is listed. */
static void deliver(struct exporter *exporter, uint32_t count)
{
    count = count < exporter->on_wire ? count : exporter->on_wire;
    for (uint32_t i = 0; i < count; i++) {
        const struct rbi_remote_item *item = &exporter->wire[i];
        assert_int_equal(rbi_import_item(&bench.import, exporter->id, item, bench.now_ns), 0);
        for (uint32_t n = 0; n < NAMES && (item->flags & RBI_ITEM_LAST) && item->number > 0; n++) {
            const uint32_t idx =
                exporter->there[n] ? bench_find(&bench, &exporter->remote[n]) : RBI_IMPORT_NONE;
            const bool listed = idx == RBI_IMPORT_NONE || bench.entries[idx].listed;
            exporter->missing_ns[n] = listed                    ? 0
                                      : exporter->missing_ns[n] ? exporter->missing_ns[n]
                                                                : bench.now_ns;
        }
        bench_run(&bench);
    }
    exporter->on_wire -= count;
    memmove(exporter->wire, exporter->wire + count, exporter->on_wire * sizeof exporter->wire[0]);
}

static void set_reachable(struct exporter *exporter, bool reachable)
{
    if (exporter->reachable != reachable) {
        exporter->reachable = reachable;
        exporter->cut_ns = bench.now_ns;
        exporter->on_wire = 0;
        exporter->subscribed = false;
        assert_int_equal(
            rbi_import_reach(&bench.import, exporter->id, "host", reachable, bench.now_ns), 0);
    }
}

/** What it lists is another matter from now on, so the log says nothing of it. */
static void set_lying(struct exporter *exporter, bool lying)
{
    exporter->revision += exporter->lying != lying ? LOG + 1 : 0;
    exporter->lying = lying;
}

static void restart(struct exporter *exporter)
{
    exporter->incarnation++;
    exporter->revision = 1;
    exporter->on_wire = 0;
    exporter->subscribed = false;
    set_lying(exporter, below(4) == 0);
    set_reachable(exporter, false);
}

static void suspect(struct exporter *exporter)
{
    const uint32_t n = below(NAMES);
    const uint32_t idx =
        exporter->there[n] ? bench_find(&bench, &exporter->remote[n]) : RBI_IMPORT_NONE;
    if (idx != RBI_IMPORT_NONE) {
        exporter->suspect_ns[n] = bench.now_ns;
        rbi_import_suspect(&bench.import, idx, bench.now_ns);
    }
}

/** Nobody is kept for longer than all waits together. */
static void check_bounds(void)
{
    for (uint32_t i = 0; i < bench.import.entry_max; i++) {
        const struct rbi_import_entry *entry = &bench.entries[i];
        if (entry->state == RBI_IMPORT_UNCONFIRMED) {
            assert_true(bench.now_ns - entry->unlisted_ns <= BENCH_GRACE + BENCH_HOLD);
        }
        if (entry->state == RBI_IMPORT_STALE && !bench.import.hosts[entry->host].reachable) {
            assert_true(bench.now_ns - bench.import.hosts[entry->host].reach_ns <=
                        BENCH_GRACE + BENCH_HOLD);
        }
    }
    for (uint32_t i = 0; i < HOSTS; i++) { /* an ask is made once in 50 ms at most */
        assert_true(bench.asks <= HOSTS * 200);
    }
}

static void step(void)
{
    struct exporter *exporter = &exporters[below(HOSTS)];
    switch (below(16)) {
    case 0:
        set_reachable(exporter, !exporter->reachable);
        break;
    case 1:
        set_reachable(exporter, true);
        break;
    case 2:
        if (below(6) == 0) {
            restart(exporter);
        }
        break;
    case 3:
        if (below(3) == 0) { /* lost without a word: the way changed somewhere */
            exporter->on_wire = below(exporter->on_wire + 1);
        }
        break;
    case 4:
        suspect(exporter);
        break;
    case 5:
        set_lying(exporter, exporter->lying && below(2) != 0);
        break;
    case 6:
    case 7:
    case 8:
    case 9:
        step_instance(exporter);
        break;
    default:
        deliver(exporter, 1 + below(6));
        break;
    }
    bench_run(&bench);
    bench.asks = 0;
    const uint64_t pause = below(20) ? BENCH_S / 100 * (1 + below(30)) : BENCH_S * (1 + below(40));
    const uint64_t end_ns = bench.now_ns + pause;
    while (rbi_import_due_ns(&bench.import) <= end_ns) {
        bench.now_ns = rbi_max_u64(bench.now_ns, rbi_import_due_ns(&bench.import));
        bench_run(&bench);
    }
    bench.now_ns = end_ns;
    check_bounds();
}

/** The world calms down, and nobody lies: then all agree. */
static void calm_down(void)
{
    for (uint32_t i = 0; i < HOSTS; i++) {
        set_lying(&exporters[i], false);
        set_reachable(&exporters[i], true);
    }
    bench_run(&bench);
    for (uint32_t s = 0; s < 200; s++) {
        for (uint32_t i = 0; i < HOSTS; i++) {
            deliver(&exporters[i], WIRE);
        }
        bench_pass(&bench, BENCH_S);
    }
    uint32_t expected = 0;
    for (uint32_t i = 0; i < HOSTS; i++) {
        for (uint32_t n = 0; n < NAMES; n++) {
            if (!exporters[i].there[n]) {
                continue;
            }
            const uint32_t idx = bench_find(&bench, &exporters[i].remote[n]);
            expected++;
            assert_int_not_equal(idx, RBI_IMPORT_NONE);
            assert_true(rbi_remote_equal(&bench.entries[idx].remote, &exporters[i].remote[n]));
            assert_int_equal(bench.entries[idx].state, RBI_IMPORT_LIVE);
            assert_false(bench.stale[idx]);
        }
    }
    assert_int_equal(bench_count(&bench), expected);
}

static void history(uint64_t number)
{
    seed = number;
    memset(exporters, 0, sizeof exporters);
    bench_init(&bench, 48);
    bench.on_ask = on_ask;
    bench.on_remove = on_remove;
    for (uint32_t i = 0; i < HOSTS; i++) {
        exporters[i].id = 2 + i;
        exporters[i].incarnation = 1;
        exporters[i].revision = 1;
        exporters[i].cut_ns = bench.now_ns;
    }
    for (uint32_t i = 0; i < STEPS; i++) {
        step();
    }
    calm_down();
}

static void test_histories_agree_with_the_oracle(void **state)
{
    (void)state;
    const uint32_t count = getenv("RINGBUS_TEST_FULL") ? 100 * HISTORIES : HISTORIES;
    for (uint32_t i = 0; i < count; i++) {
        print_message("history %" PRIu32 "\n", i);
        history(i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_histories_agree_with_the_oracle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
