/* SPDX-License-Identifier: Apache-2.0 */
#include "import_bench.h"

#include "bus/record.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

void bench_init(struct bench *bench, uint32_t entries)
{
    memset(bench, 0, sizeof *bench);
    bench->now_ns = 1000 * BENCH_S;
    bench->globs.count = 1;
    (void)snprintf(bench->globs.items[0], sizeof bench->globs.items[0], "/app/**");
    const struct rbi_import_config config = {.own_host = BENCH_OWN,
                                             .grace_ns = BENCH_GRACE,
                                             .mass_hold_ns = BENCH_HOLD,
                                             .globs = &bench->globs};
    assert_true(entries <= BENCH_ENTRIES && rbi_import_slots(entries) <= BENCH_SLOTS);
    rbi_import_init(&bench->import, &config, bench->entries, entries, bench->clusters,
                    bench->paths);
}

static bool bench_one(struct bench *bench)
{
    struct rbi_import_action action;
    rbi_import_next(&bench->import, bench->now_ns, &action);
    switch (action.what) {
    case RBI_IMPORT_DO_NOTHING:
        return false;
    case RBI_IMPORT_DO_REGISTER:
        assert_false(bench->shown[action.entry]);
        for (uint32_t i = 0; i < BENCH_ENTRIES; i++) { /* nothing takes a path that is taken */
            assert_false(bench->shown[i] && strcmp(bench->entries[i].remote.path,
                                                   bench->entries[action.entry].remote.path) == 0);
        }
        bench->shown[action.entry] = true;
        bench->stale[action.entry] = action.stale;
        break;
    case RBI_IMPORT_DO_UPDATE:
        assert_true(bench->shown[action.entry]);
        bench->stale[action.entry] = action.stale;
        break;
    case RBI_IMPORT_DO_REMOVE:
        assert_true(bench->shown[action.entry]);
        assert_int_not_equal(action.reason, RBI_REASON_NONE);
        bench->shown[action.entry] = false;
        bench->removed++;
        bench->last = action;
        if (bench->on_remove) {
            bench->on_remove(bench, &action);
        }
        break;
    case RBI_IMPORT_DO_ASK:
        bench->asks++;
        bench->last_ask = action;
        if (bench->on_ask) {
            bench->on_ask(bench, &action);
        }
        break;
    case RBI_IMPORT_DO_HELD:
        bench->held++;
        bench->last = action;
        break;
    case RBI_IMPORT_DO_CONFLICT:
        bench->conflicts++;
        bench->last = action;
        break;
    case RBI_IMPORT_DO_REFUSED:
        bench->refused++;
        bench->last = action;
        break;
    }
    return true;
}

void bench_run(struct bench *bench)
{
    unsigned steps = 0;
    while (bench_one(bench)) {
        assert_true(++steps < 10000);
    }
    assert_true(rbi_import_due_ns(&bench->import) > bench->now_ns);
    bench_check(bench);
}

void bench_pass(struct bench *bench, uint64_t ns)
{
    const uint64_t end_ns = bench->now_ns + ns;
    unsigned steps = 0;
    while (rbi_import_due_ns(&bench->import) <= end_ns) {
        bench->now_ns = rbi_max_u64(bench->now_ns, rbi_import_due_ns(&bench->import));
        bench_run(bench);
        assert_true(++steps < 100000);
    }
    bench->now_ns = end_ns;
    bench_run(bench);
}

void bench_forget(struct bench *bench)
{
    bench->asks = 0;
    bench->held = 0;
    bench->conflicts = 0;
    bench->refused = 0;
    bench->removed = 0;
}

struct rbi_remote bench_remote(const char *cluster, const char *name, uint32_t incarnation)
{
    char path[RBI_PATH_MAX + 1];
    struct rbi_remote remote = {.state = RBI_ENDPOINT_READY, .weight = 100};
    const int length =
        snprintf(path, sizeof path, "/app/area/platform/room/test/%s/%s", cluster, name);
    assert_int_equal(rbi_remote_set_path(&remote, path, (size_t)length), 0);
    remote.pidf.incarnation = incarnation;
    assert_true(rbi_remote_valid(&remote));
    return remote;
}

int bench_item(struct bench *bench,
               uint64_t host,
               uint64_t exporter,
               uint64_t revision,
               uint32_t flags,
               uint32_t number,
               const struct rbi_remote *remote)
{
    struct rbi_remote_item item = {
        .incarnation = exporter, .revision = revision, .flags = flags, .number = number};
    if (remote) {
        item.remote = *remote;
    }
    return rbi_import_item(&bench->import, host, &item, bench->now_ns);
}

void bench_list(struct bench *bench,
                uint64_t host,
                uint64_t exporter,
                uint64_t revision,
                const struct rbi_remote *remotes,
                uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(bench_item(bench, host, exporter, revision, i == 0 ? RBI_ITEM_FIRST : 0,
                                    i + 1, &remotes[i]),
                         0);
    }
    assert_int_equal(bench_item(bench, host, exporter, revision,
                                RBI_ITEM_LAST | (count == 0 ? RBI_ITEM_FIRST : 0), count + 1, NULL),
                     0);
    bench_run(bench);
}

void bench_change(struct bench *bench,
                  uint64_t host,
                  uint64_t exporter,
                  uint64_t revision,
                  const struct rbi_remote *remote,
                  uint32_t reason)
{
    struct rbi_remote copy = *remote;
    uint32_t flags = RBI_ITEM_LAST;
    if (reason != UINT32_MAX) {
        copy.state = reason;
        flags |= RBI_ITEM_REMOVED;
    }
    assert_int_equal(bench_item(bench, host, exporter, revision, flags, 0, &copy), 0);
    bench_run(bench);
}

uint32_t bench_find(const struct bench *bench, const struct rbi_remote *remote)
{
    return rbi_import_find(&bench->import, remote->path, remote->path_length);
}

uint32_t bench_count(const struct bench *bench)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < BENCH_ENTRIES; i++) {
        count += bench->shown[i] ? 1U : 0U;
    }
    return count;
}

static void check_cluster(const struct bench *bench, const struct rbi_import_cluster *cluster)
{
    uint32_t entries = 0;
    uint32_t doubted = 0;
    for (uint32_t i = 0; i < bench->import.entry_max; i++) {
        const struct rbi_import_entry *entry = &bench->entries[i];
        if (entry->state != RBI_IMPORT_FREE && entry->state != RBI_IMPORT_GONE &&
            entry->remote.pidf.cluster == cluster->id) {
            entries++;
            doubted += entry->doubted ? 1U : 0U;
        }
    }
    assert_int_equal(cluster->entries, entries);
    assert_int_equal(cluster->doubted, doubted);
    assert_true(entries > 0);
}

void bench_check(const struct bench *bench)
{
    uint32_t used = 0;
    uint32_t of_hosts = 0;
    uint32_t of_clusters = 0;
    uint32_t standing = 0;
    for (uint32_t i = 0; i < bench->import.entry_max; i++) {
        const struct rbi_import_entry *entry = &bench->entries[i];
        const bool there = entry->state != RBI_IMPORT_FREE && entry->state != RBI_IMPORT_GONE;
        used += entry->state != RBI_IMPORT_FREE ? 1U : 0U;
        standing += there ? 1U : 0U;
        assert_int_equal(entry->state != RBI_IMPORT_FREE && entry->shown, bench->shown[i]);
        if (bench->shown[i]) { /* what was told is what holds */
            assert_int_equal(bench->stale[i], entry->state != RBI_IMPORT_LIVE);
        }
    }
    for (uint32_t i = 0; i < bench->import.host_count; i++) {
        of_hosts += bench->import.hosts[i].entries;
    }
    for (uint32_t i = 0; i <= bench->import.slot_mask; i++) {
        if (bench->clusters[i].id != 0) {
            check_cluster(bench, &bench->clusters[i]);
            of_clusters += bench->clusters[i].entries;
        }
    }
    assert_int_equal(used, bench->import.entry_count);
    assert_int_equal(used, of_hosts);
    assert_int_equal(standing, of_clusters);
}
