/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other hosts that say anything, in any order, while time passes: bus/import. Whatever they say,
 * what is told to be done fits together, the table adds up, and it rests.
 */
#include "bus/import.h"
#include "bus/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ENTRIES 8U
#define SLOTS   16U
#define HOSTS   3U
#define NS_10MS UINT64_C(10000000)

struct input {
    const uint8_t *at;
    size_t left;
};

static struct rbi_import import;
static struct rbi_import_entry entries[ENTRIES];
static struct rbi_import_cluster clusters[SLOTS];
static uint32_t paths[SLOTS];
static bool shown[ENTRIES];
static uint64_t now_ns;
static struct rbi_bridge_globs globs = {.count = 1, .items = {"/a/**"}};

static void check(bool right, const char *what)
{
    if (!right) {
        (void)fprintf(stderr, "fuzz_import: %s\n", what);
        abort();
    }
}

static uint8_t byte(struct input *in)
{
    if (in->left == 0) {
        return 0;
    }
    in->left--;
    return *in->at++;
}

static bool standing(uint32_t idx)
{
    return entries[idx].state != RBI_IMPORT_FREE && entries[idx].state != RBI_IMPORT_GONE;
}

static void check_table(void)
{
    uint32_t used = 0;
    uint32_t of_hosts = 0;
    uint32_t there = 0;
    uint32_t of_clusters = 0;
    for (uint32_t i = 0; i < ENTRIES; i++) {
        used += entries[i].state != RBI_IMPORT_FREE ? 1U : 0U;
        there += standing(i) ? 1U : 0U;
        check(shown[i] == (entries[i].state != RBI_IMPORT_FREE && entries[i].shown), "shown");
        check(!standing(i) || !entries[i].shown ||
                  entries[i].shown_stale == (entries[i].state != RBI_IMPORT_LIVE),
              "stale");
    }
    for (uint32_t i = 0; i < import.host_count; i++) {
        of_hosts += import.hosts[i].entries;
    }
    for (uint32_t i = 0; i < SLOTS; i++) {
        of_clusters += clusters[i].id != 0 ? clusters[i].entries : 0;
        check(clusters[i].id == 0 || clusters[i].doubted <= clusters[i].entries, "doubted");
    }
    check(used == import.entry_count && used == of_hosts && there == of_clusters, "the table");
}

static void do_register(uint32_t idx)
{
    check(!shown[idx], "registered twice");
    for (uint32_t i = 0; i < ENTRIES; i++) {
        check(!shown[i] || strcmp(entries[i].remote.path, entries[idx].remote.path) != 0,
              "a path of two");
    }
    shown[idx] = true;
}

static void run(void)
{
    struct rbi_import_action action;
    unsigned steps = 0;
    do {
        rbi_import_next(&import, now_ns, &action);
        if (action.what == RBI_IMPORT_DO_REGISTER) {
            do_register(action.entry);
        } else if (action.what == RBI_IMPORT_DO_UPDATE) {
            check(shown[action.entry], "an update of nobody");
        } else if (action.what == RBI_IMPORT_DO_REMOVE) {
            check(shown[action.entry] && action.reason != RBI_REASON_NONE, "a removal of nobody");
            shown[action.entry] = false;
        } else if (action.what == RBI_IMPORT_DO_ASK) {
            check(import.hosts[action.host].reachable, "asked into the void");
        }
        check(++steps < 1000, "it does not rest");
    } while (action.what != RBI_IMPORT_DO_NOTHING);
    check(rbi_import_due_ns(&import) > now_ns, "due");
    check_table();
}

static struct rbi_remote remote_of(struct input *in)
{
    struct rbi_remote remote;
    char path[64];
    const uint8_t which = byte(in);
    memset(&remote, 0, sizeof remote);
    const int length = snprintf(path, sizeof path, "/%c/b/c/d/e/%c/%d", which & 0x80 ? 'z' : 'a',
                                'f' + (which >> 3 & 3), 1 + (which & 7));
    check(rbi_remote_set_path(&remote, path, (size_t)length) == 0, "a path");
    const uint8_t how = byte(in);
    remote.pidf.incarnation = how & 7; /* 0: wrong */
    remote.state = how >> 3 & 15;      /* some of it is wrong, as a state or as a reason */
    remote.weight = how >> 7 ? 1001 : 5;
    return remote;
}

static void item(struct input *in, uint64_t host)
{
    struct rbi_remote_item told = {.incarnation = byte(in) & 3, .revision = byte(in) & 15};
    const uint8_t flags = byte(in);
    told.flags = flags & 7;
    told.number = flags >> 3 & 15;
    if (flags & 0x80) {
        told.remote = remote_of(in);
    }
    (void)!rbi_import_item(&import, host, &told, now_ns);
}

static void step(struct input *in)
{
    const uint8_t what = byte(in);
    const uint64_t host = 1 + (what >> 4) % (HOSTS + 1); /* 1 is this one */
    const uint32_t idx = byte(in) % (ENTRIES + 1);
    struct rbi_remote remote;
    switch (what & 15) {
    case 0:
    case 1:
        (void)!rbi_import_reach(&import, host, "h", (what & 1) != 0, now_ns);
        break;
    case 2:
        rbi_import_source_lost(&import, host, now_ns);
        break;
    case 3:
        rbi_import_leave(&import, host, now_ns);
        break;
    case 4:
        remote = remote_of(in);
        (void)!rbi_import_load(&import, host, "h", &remote, now_ns);
        break;
    case 5:
        rbi_import_suspect(&import, idx, now_ns);
        break;
    case 6:
        rbi_import_dead(&import, idx, now_ns);
        break;
    case 7:
        if (idx < ENTRIES && standing(idx) && shown[idx]) {
            shown[idx] = false;
            rbi_import_taken(&import, idx, now_ns);
        }
        break;
    case 8:
        (void)rbi_import_confirm(&import, host == 1 ? 0 : host, "/a", 2, now_ns);
        break;
    case 9:
        rbi_import_way_changed(&import, host, now_ns);
        break;
    case 10:
        now_ns += idx * idx * idx * NS_10MS;
        break;
    default:
        item(in, host);
        break;
    }
    run();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {.at = data, .left = size};
    const struct rbi_import_config config = {
        .own_host = 1, .grace_ns = 100 * NS_10MS, .mass_hold_ns = 50 * NS_10MS, .globs = &globs};
    now_ns = UINT64_C(1000000000);
    memset(shown, 0, sizeof shown);
    rbi_import_init(&import, &config, entries, ENTRIES, clusters, paths);
    while (in.left > 0) {
        step(&in);
    }
    return 0;
}
