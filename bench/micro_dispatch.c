/* SPDX-License-Identifier: Apache-2.0 */
/*
 * micro_dispatch [--json] [--check NS]
 *
 * What the choice of an instance takes, without anything around it: nanoseconds a pick for each
 * way to choose, over 8, 64 and 512 instances, and milliseconds for the tables behind. Figures
 * are the best of several rounds, since whoever else runs here can only add to them.
 *
 * --check fails when a pick takes longer than that; the bar is 10 ns.
 */
#include "bus/balance_bound.h"
#include "bus/balance_turn.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define INSTANCES_MAX 512U
#define PICKS         200000U
#define ROUNDS        15U
#define TABLE_SLOTS   65536U

/** Everything that a caller holds for one cluster. */
struct caller {
    unsigned count;
    struct rbi_table_member members[INSTANCES_MAX];
    uint32_t weights[INSTANCES_MAX];
    struct rbi_table_shape shape;
    uint16_t owners[RBI_TABLE_RANKS_MAX * TABLE_SLOTS];
    uint16_t maglev[RBI_TABLE_SLOTS_MAGLEV];
    struct rbi_turn turn;
    struct rbi_turn weighted;
    uint16_t turn_order[RBI_TURN_MAX];
    uint16_t weighted_order[RBI_TURN_MAX];
    struct rbi_random random;
    struct rbi_alias alias;
    struct rbi_alias_column columns[INSTANCES_MAX];
    struct rbi_least least;
    struct rbi_alias_column least_columns[INSTANCES_MAX];
    struct rbi_least_member loads[INSTANCES_MAX];
    uint64_t limits[INSTANCES_MAX];
};

/** A receiver's page: its load has a line of its own, as in shared memory. */
struct page {
    RBI_ALIGNED(RBI_LINE) rbi_au64 load[2];
    unsigned char rest[RBI_PAGE - 2 * sizeof(rbi_au64)];
};

static struct caller caller;
/* Read anew for each pick, as it is by a send: nothing stays in registers from pick to pick. */
static struct caller *volatile current = &caller;
static struct page pages[INSTANCES_MAX];
static volatile uint64_t sink;
static bool json;
static double worst_ns;

static double now_ns(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void *memory(size_t bytes)
{
    void *out = NULL;
    if (posix_memalign(&out, RBI_LINE, bytes + RBI_LINE) != 0) {
        (void)fprintf(stderr, "micro_dispatch: no memory\n");
        exit(1);
    }
    return out;
}

/** Builds a table from nothing, or from @p old. @return milliseconds */
static double table(const struct rbi_table_shape *shape,
                    const struct rbi_table *old,
                    const struct rbi_table_member *members,
                    unsigned count,
                    uint16_t *owners)
{
    struct rbi_table_build build;
    void *scratch =
        memory(rbi_table_scratch_bytes(shape, count, old != NULL ? old->member_count : 0));
    const double start = now_ns();
    rbi_table_build_begin(&build, shape, old, members, count, owners, scratch);
    while (!rbi_table_build_step(&build, UINT32_MAX)) {
    }
    const double ms = (now_ns() - start) / 1e6;
    free(scratch);
    return ms;
}

static void turn(struct rbi_turn *turn, uint16_t *order, const uint32_t *weights, unsigned count)
{
    const uint32_t length = rbi_turn_length(weights, count);
    void *scratch = memory(rbi_turn_scratch_bytes(count, length));
    rbi_turn_init(turn, &caller.random);
    rbi_turn_build(turn, order, length, weights, count, scratch);
    free(scratch);
}

static void prepare(unsigned count)
{
    static const struct rbi_table_shape maglev = {RBI_TABLE_MAGLEV, RBI_TABLE_SLOTS_MAGLEV, 1, 0};
    void *scratch = memory(rbi_least_scratch_bytes(count));
    caller.count = count;
    rbi_random_init(&caller.random, count, 1);
    caller.shape = (struct rbi_table_shape){RBI_TABLE_HRW, TABLE_SLOTS, 3, 0};
    for (unsigned i = 0; i < count; i++) {
        caller.members[i] = (struct rbi_table_member){(int32_t)(i * 7919 + 1), 100};
        caller.weights[i] = 50 + i % 8 * 50;
        rbi_store_rlx(&pages[i].load[RBI_LEAST_DEPTH], i % 3);
        rbi_store_rlx(&pages[i].load[RBI_LEAST_EWMA], 2000);
        caller.loads[i] = (struct rbi_least_member){.load = pages[i].load, .weight = 100};
    }
    (void)table(&caller.shape, NULL, caller.members, count, caller.owners);
    (void)table(&maglev, NULL, caller.members, count, caller.maglev);
    turn(&caller.turn, caller.turn_order, NULL, count);
    turn(&caller.weighted, caller.weighted_order, caller.weights, count);
    rbi_alias_build(&caller.alias, caller.columns, caller.weights, count, scratch);
    rbi_random_init(&caller.least.random, count, 2);
    rbi_least_build(&caller.least, caller.loads, count, caller.least_columns, scratch);
    rbi_bound_refresh(caller.limits, caller.loads, count, 125);
    free(scratch);
}

/* Each takes a key and gives an index, as a send does. */

static inline uint16_t by_hash(struct caller *c, uint64_t key)
{
    return c->owners[rbi_table_slot(key, c->shape.slots)];
}

static inline uint16_t by_bound(struct caller *c, uint64_t key)
{
    const uint32_t slot = rbi_table_slot(key, c->shape.slots);
    return rbi_bound_pick(c->owners, &c->shape, slot, c->loads, c->limits);
}

static inline uint16_t by_maglev(struct caller *c, uint64_t key)
{
    return c->maglev[rbi_table_slot(key, RBI_TABLE_SLOTS_MAGLEV)];
}

static inline uint16_t by_least(struct caller *c, uint64_t key)
{
    (void)key;
    return rbi_least_pick(&c->least, true);
}

static inline uint16_t by_turn(struct caller *c, uint64_t key)
{
    (void)key;
    return rbi_turn_pick(&c->turn);
}

static inline uint16_t by_weight(struct caller *c, uint64_t key)
{
    (void)key;
    return rbi_turn_pick(&c->weighted);
}

static inline uint16_t by_chance(struct caller *c, uint64_t key)
{
    (void)key;
    return rbi_alias_pick(&c->alias, &c->random);
}

/** A loop of its own for each, so that the pick is compiled into it as it is into a send. */
#define DEFINE_MEASURE(pick)                                                                       \
    static double measure_##pick(void)                                                             \
    {                                                                                              \
        double best_ns = 1e9;                                                                      \
        for (unsigned round = 0; round < ROUNDS; round++) {                                        \
            uint64_t sum = 0;                                                                      \
            uint64_t key = round;                                                                  \
            const double start = now_ns();                                                         \
            for (unsigned i = 0; i < PICKS; i++) {                                                 \
                /* The index feeds the key: picks do not overlap, as two sends would not. */       \
                const uint16_t index = pick(current, key);                                         \
                key += UINT64_C(0x9e3779b97f4a7c15) + index;                                       \
                sum += index;                                                                      \
            }                                                                                      \
            const double ns = (now_ns() - start) / PICKS;                                          \
            best_ns = ns < best_ns ? ns : best_ns;                                                 \
            sink = sum;                                                                            \
        }                                                                                          \
        return best_ns;                                                                            \
    }
DEFINE_MEASURE(by_hash)
DEFINE_MEASURE(by_bound)
DEFINE_MEASURE(by_maglev)
DEFINE_MEASURE(by_least)
DEFINE_MEASURE(by_turn)
DEFINE_MEASURE(by_weight)
DEFINE_MEASURE(by_chance)

static const struct {
    const char *name;
    double (*measure)(void);
} ways[] = {{"hash", measure_by_hash},     {"bound", measure_by_bound},
            {"maglev", measure_by_maglev}, {"least", measure_by_least},
            {"rr", measure_by_turn},       {"weighted", measure_by_weight},
            {"random", measure_by_chance}};

static void picks(void)
{
    static const unsigned counts[] = {8, 64, 512};
    for (unsigned c = 0; c < RBI_ARRAY_SIZE(counts); c++) {
        prepare(counts[c]);
        for (unsigned i = 0; i < RBI_ARRAY_SIZE(ways); i++) {
            const double ns = ways[i].measure();
            worst_ns = ns > worst_ns ? ns : worst_ns;
            (void)printf(json ? "{\"bench\":\"micro_dispatch\",\"pick\":\"%s\",\"instances\":%u,"
                                "\"ns\":%.2f}\n"
                              : "pick %-8s %3u instances %6.2f ns\n",
                         ways[i].name, counts[c], ns);
        }
    }
}

static void say(const char *what, unsigned count, double ms)
{
    (void)printf(json ? "{\"bench\":\"micro_dispatch\",\"table\":\"%s\",\"instances\":%u,"
                        "\"ms\":%.3f}\n"
                      : "table %-12s %3u instances %8.3f ms\n",
                 what, count, ms);
}

/** Best of five. */
static double best_table(const struct rbi_table_shape *shape,
                         const struct rbi_table *old,
                         const struct rbi_table_member *members,
                         unsigned count,
                         uint16_t *owners)
{
    double best_ms = 1e9;
    for (unsigned i = 0; i < 5; i++) {
        const double ms = table(shape, old, members, count, owners);
        best_ms = ms < best_ms ? ms : best_ms;
    }
    return best_ms;
}

/* Scenario 85: a change of one weight among 300 does not cost what the table did. */
static void tables(void)
{
    static uint16_t owners[RBI_TABLE_RANKS_MAX * (size_t)RBI_TABLE_SLOTS_MAGLEV];
    static struct rbi_table_member changed[INSTANCES_MAX];
    static const struct rbi_table_shape hrw = {RBI_TABLE_HRW, TABLE_SLOTS, 3, 0};
    static const struct rbi_table_shape strict = {RBI_TABLE_HRW, TABLE_SLOTS, 3, 5};
    static const struct rbi_table_shape maglev = {RBI_TABLE_MAGLEV, RBI_TABLE_SLOTS_MAGLEV, 3, 0};
    const unsigned count = 300;
    prepare(count);
    say("hrw", count, best_table(&hrw, NULL, caller.members, count, caller.owners));
    const struct rbi_table old = {hrw, caller.members, count, caller.owners};
    static const struct {
        const char *name;
        uint32_t weight;
    } changes[] = {{"weight up", 150}, {"weight down", 50}, {"drained", 0}};
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(changes); i++) {
        memcpy(changed, caller.members, sizeof changed);
        changed[count / 2].weight = changes[i].weight;
        say(changes[i].name, count, best_table(&hrw, &old, changed, count, owners));
    }
    memcpy(changed, caller.members, sizeof changed);
    changed[count] = (struct rbi_table_member){INT32_MAX, 100};
    say("joined", count, best_table(&hrw, &old, changed, count + 1, owners));
    memmove(&changed[7], &changed[8], (count - 8) * sizeof changed[0]);
    say("left", count, best_table(&hrw, &old, changed, count - 1, owners));
    say("strict 5 %", count, best_table(&strict, NULL, caller.members, count, owners));
    say("maglev", count, best_table(&maglev, NULL, caller.members, count, owners));
}

int main(int argc, char **argv)
{
    double limit_ns = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json = true;
        } else if (i + 1 < argc && strcmp(argv[i], "--check") == 0) {
            limit_ns = strtod(argv[++i], NULL);
        } else {
            (void)fprintf(stderr, "usage: micro_dispatch [--json] [--check NS]\n");
            return 2;
        }
    }
    picks();
    tables();
    if (limit_ns > 0 && worst_ns > limit_ns) {
        (void)fprintf(stderr, "micro_dispatch: a pick takes %.2f ns\n", worst_ns);
        return 1;
    }
    return 0;
}
