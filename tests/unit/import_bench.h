/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_UNIT_IMPORT_BENCH_H
#define RINGBUS_TESTS_UNIT_IMPORT_BENCH_H
/*
 * A table of imported instances with a clock of its own, that carries out its actions as the bridge
 * does, and keeps what it was told.
 */
#include "bus/import.h"

#define BENCH_ENTRIES 64U
#define BENCH_SLOTS   128U
#define BENCH_S       UINT64_C(1000000000)
#define BENCH_GRACE   (60 * BENCH_S)
#define BENCH_HOLD    (30 * BENCH_S)
#define BENCH_OWN     UINT64_C(1)

struct bench {
    struct rbi_import import;
    struct rbi_import_entry entries[BENCH_ENTRIES];
    struct rbi_import_cluster clusters[BENCH_SLOTS];
    uint32_t paths[BENCH_SLOTS];
    struct rbi_bridge_globs globs;
    uint64_t now_ns;
    bool shown[BENCH_ENTRIES]; /* proxies, as the actions made them */
    bool stale[BENCH_ENTRIES];
    uint32_t asks; /* since the last bench_forget() */
    uint32_t held;
    uint32_t conflicts;
    uint32_t refused;
    uint32_t removed;
    struct rbi_import_action last; /* of each kind that is no registration */
    struct rbi_import_action last_ask;
    void (*on_ask)(struct bench *bench, const struct rbi_import_action *action);    /* or NULL */
    void (*on_remove)(struct bench *bench, const struct rbi_import_action *action); /* or NULL */
};

/** With @p entries of room. */
void bench_init(struct bench *bench, uint32_t entries);
/** Carries out what is to be done. */
void bench_run(struct bench *bench);
/** Lets time pass, in steps of what is due. */
void bench_pass(struct bench *bench, uint64_t ns);
void bench_forget(struct bench *bench);
/** "/app/area/platform/room/test/CLUSTER/NAME" */
struct rbi_remote bench_remote(const char *cluster, const char *name, uint32_t incarnation);
/** Hands one item over. */
int bench_item(struct bench *bench,
               uint64_t host,
               uint64_t exporter,
               uint64_t revision,
               uint32_t flags,
               uint32_t number,
               const struct rbi_remote *remote);
/** A whole list, and the actions that follow. */
void bench_list(struct bench *bench,
                uint64_t host,
                uint64_t exporter,
                uint64_t revision,
                const struct rbi_remote *remotes,
                uint32_t count);
/** A change, and the actions that follow. @param reason  of a removal, or UINT32_MAX: none is */
void bench_change(struct bench *bench,
                  uint64_t host,
                  uint64_t exporter,
                  uint64_t revision,
                  const struct rbi_remote *remote,
                  uint32_t reason);
/** Index of what is registered under the path, or RBI_IMPORT_NONE. */
uint32_t bench_find(const struct bench *bench, const struct rbi_remote *remote);
/** Proxies there are. */
uint32_t bench_count(const struct bench *bench);
/** Whether what the table says of itself adds up. */
void bench_check(const struct bench *bench);

#endif
