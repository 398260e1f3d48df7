/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_UNIT_EXPORT_BENCH_H
#define RINGBUS_TESTS_UNIT_EXPORT_BENCH_H
/*
 * An exporter that reads a directory, and a table of imported instances that it tells, over a
 * network that takes what it is given, or not, or loses it. State of its own in each test program.
 */
#include "bus/record.h"
#include "daemon/bridge/export.h"
#include "directory.h"
#include "import_bench.h"
#include "support/test.h"

#include <inttypes.h>

#define ALPHA    UINT64_C(11) /* the exporter, for bench */
#define BENCH    UINT64_C(21) /* the table, for the exporter */
#define OTHER    UINT64_C(22)
#define LIFE     UINT64_C(77)
#define HERE_MAX 32U

static struct world world;
static struct rbi_export *export;
static struct rbi_bridge_globs globs;
static struct bench bench;
static struct rbi_directory_instance here[2][HERE_MAX]; /* lobby, club */
static uint32_t here_count[2];
static uint64_t epoch;
static uint32_t room;  /* items that the sink takes */
static uint32_t items; /* that it took */
static uint32_t firsts;
static struct rbi_import_action asked; /* not answered yet */
static bool connected;
static bool lose; /* what the sink takes does not come through */

static const char *const names[2] = {"lobby", "club"};

static inline int sink(void *context, uint64_t host, const struct rbi_remote_item *item)
{
    (void)context;
    if (!connected) {
        return -ENOTCONN;
    }
    if (room == 0) {
        return -ENOBUFS;
    }
    room--;
    items++;
    firsts += item->flags & RBI_ITEM_FIRST ? 1U : 0U;
    if (host == BENCH && !lose) {
        const struct rbi_import_host *from = rbi_import_host_find(&bench.import, ALPHA);
        const int taken = from && from->reachable ? 0 : -ENOENT; /* the cut that this end sees */
        assert_int_equal(rbi_import_item(&bench.import, ALPHA, item, bench.now_ns), taken);
        bench_run(&bench);
    }
    return 0;
}

/** It comes over a network: not from inside the sink. */
static inline void on_ask(struct bench *at, const struct rbi_import_action *action)
{
    (void)at;
    asked = *action;
}

static inline void pump(void)
{
    do {
        if (asked.what == RBI_IMPORT_DO_ASK) {
            assert_int_equal(rbi_export_ask(export, BENCH, asked.incarnation, asked.revision), 0);
            asked.what = RBI_IMPORT_DO_NOTHING;
        }
        while (rbi_export_pump(export)) {
        }
    } while (asked.what == RBI_IMPORT_DO_ASK);
}

static inline int setup(void **state)
{
    (void)state;
    world_init(&world, 8, 8, 1 << 20);
    memset(here_count, 0, sizeof here_count);
    epoch = 0;
    room = UINT32_MAX;
    items = 0;
    firsts = 0;
    connected = true;
    lose = false;
    asked.what = RBI_IMPORT_DO_NOTHING;
    globs.count = 1;
    (void)snprintf(globs.items[0], sizeof globs.items[0], "/app/**");
    assert_int_equal(rbi_export_new(LIFE, &globs, sink, NULL, &export), 0);
    bench_init(&bench, BENCH_ENTRIES);
    bench.on_ask = on_ask;
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    rbi_export_free(export);
    world_deinit(&world);
    return 0;
}

static inline struct rbi_directory_instance *add(unsigned cluster, uint32_t number)
{
    struct rbi_directory_instance *one = &here[cluster][here_count[cluster]++];
    memset(one, 0, sizeof *one);
    one->name_length = (uint32_t)snprintf(one->name, sizeof one->name, "%" PRIu32, number);
    one->instance = (int32_t)number;
    one->incarnation = 1000 + number;
    one->state = RBI_ENDPOINT_READY;
    one->weight = 100;
    return one;
}

static inline void drop(unsigned cluster, uint32_t idx)
{
    here[cluster][idx] = here[cluster][--here_count[cluster]];
}

static inline void write_cluster(unsigned cluster)
{
    struct rbi_directory_cluster head = {.epoch = ++epoch, .instance_count = here_count[cluster]};
    head.path_length = (uint32_t)snprintf(head.path, sizeof head.path,
                                          "/app/area/platform/room/test/%s", names[cluster]);
    head.cluster = rbi_cluster_id(head.path, head.path_length);
    assert_int_equal(rbi_directory_publish(&world.writer, &head, here[cluster]), RBI_PUBLISH_OK);
}

static inline void look(void)
{
    write_cluster(0);
    write_cluster(1);
    assert_int_equal(rbi_export_look(export, &world.view, true), 0);
}

static inline void connect_bench(void)
{
    assert_int_equal(rbi_import_reach(&bench.import, ALPHA, "alpha", true, bench.now_ns), 0);
    bench_pass(&bench, RBI_IMPORT_ASK_MIN_NS); /* it is not asked faster than that */
    pump();
}

static inline uint32_t find(unsigned cluster, const char *name)
{
    const struct rbi_remote remote = bench_remote(names[cluster], name, 1);
    return bench_find(&bench, &remote);
}

/** The table says what the directory says. */
static inline void check_same(void)
{
    uint32_t expected = 0;
    for (unsigned c = 0; c < 2; c++) {
        for (uint32_t i = 0; i < here_count[c]; i++) {
            if (here[c][i].host != 0) {
                continue;
            }
            expected++;
            const uint32_t idx = find(c, here[c][i].name);
            assert_int_not_equal(idx, RBI_IMPORT_NONE);
            assert_int_equal(bench.entries[idx].remote.pidf.incarnation, here[c][i].incarnation);
            assert_int_equal(bench.entries[idx].remote.weight, here[c][i].weight);
            assert_int_equal(bench.entries[idx].remote.state, here[c][i].state);
            assert_int_equal(bench.entries[idx].state, RBI_IMPORT_LIVE);
        }
    }
    assert_int_equal(bench_count(&bench), expected);
    assert_int_equal(rbi_export_count(export), expected);
}

#endif
