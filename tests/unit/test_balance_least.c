/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has the least to do. Features 2.3 and 6.4 (a slow instance: against plain turns, p99 is a
 * fifth at most), as a simulation on virtual time; scenario 92 (odd weights, first picks).
 */
#include "bus/balance_least.h"
#include "bus/balance_turn.h"
#include "bus/hrw_score.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#define MEMBERS_MAX 64U

/** Loads, and a picker over them. */
struct bench {
    struct rbi_least least;
    struct rbi_least_member members[MEMBERS_MAX];
    struct rbi_alias_column columns[MEMBERS_MAX];
    rbi_au64 loads[MEMBERS_MAX][2];
};

static void build(struct bench *bench, const uint32_t *weights, unsigned count, uint64_t who)
{
    static uint64_t scratch[MEMBERS_MAX * 4];
    assert_true(rbi_least_scratch_bytes(count) <= sizeof scratch);
    rbi_random_init(&bench->least.random, who, 0);
    for (unsigned i = 0; i < count; i++) {
        rbi_store_rlx(&bench->loads[i][RBI_LEAST_DEPTH], 0);
        rbi_store_rlx(&bench->loads[i][RBI_LEAST_EWMA], 0);
        bench->members[i] = (struct rbi_least_member){.load = bench->loads[i],
                                                      .weight = weights != NULL ? weights[i] : 100};
    }
    rbi_least_build(&bench->least, bench->members, count, bench->columns, scratch);
}

static void set_load(struct bench *bench, unsigned member, uint64_t depth, uint64_t ewma_ns)
{
    rbi_store_rlx(&bench->loads[member][RBI_LEAST_DEPTH], depth);
    rbi_store_rlx(&bench->loads[member][RBI_LEAST_EWMA], ewma_ns);
}

static void count_picks(struct bench *bench, bool fresh, unsigned picks, unsigned *picked)
{
    memset(picked, 0, MEMBERS_MAX * sizeof *picked);
    for (unsigned i = 0; i < picks; i++) {
        const uint16_t pick = rbi_least_pick(&bench->least, fresh);
        assert_true(pick < MEMBERS_MAX);
        picked[pick]++;
    }
}

static void test_scan_finds_the_least(void **state)
{
    (void)state;
    static struct bench bench;
    build(&bench, NULL, 8, 1);
    for (unsigned i = 0; i < 8; i++) {
        set_load(&bench, i, 10 + i, 1000);
    }
    assert_int_equal(rbi_least_pick(&bench.least, true), 0);
    bench.members[0].unread = 2; /* what it has not read yet counts */
    assert_int_equal(rbi_least_pick(&bench.least, true), 1);
    set_load(&bench, 7, 3, 3700); /* 3 x 3.7 us are more than 11 x 1 us */
    assert_int_equal(rbi_least_pick(&bench.least, true), 1);
    set_load(&bench, 7, 3, 3600);
    assert_int_equal(rbi_least_pick(&bench.least, true), 7);
    set_load(&bench, 7, 3, UINT64_MAX);
    assert_int_equal(rbi_least_pick(&bench.least, true), 1);
    set_load(&bench, 7, 3, 0); /* not known: as the longest */
    assert_int_equal(rbi_least_pick(&bench.least, true), 1);
    set_load(&bench, 7, 0, 0); /* but who has nothing to do finds out */
    assert_int_equal(rbi_least_pick(&bench.least, true), 7);
    set_load(&bench, 7, UINT32_MAX, 1000);
    assert_int_equal(rbi_least_pick(&bench.least, true), 1);
    set_load(&bench, 7, UINT64_MAX, UINT64_MAX);
    assert_int_equal(rbi_least_pick(&bench.least, true), 1);
}

/* Nobody knows how long a message takes: by what waits alone. */
static void test_without_times_the_depth_decides(void **state)
{
    (void)state;
    static struct bench bench;
    for (unsigned count = 8; count <= 16; count += 8) {
        unsigned picked[MEMBERS_MAX];
        build(&bench, NULL, count, 1);
        for (unsigned i = 0; i < count; i++) {
            set_load(&bench, i, 10 + i, 0);
        }
        count_picks(&bench, true, 1000, picked);
        assert_true(picked[0] > 50 && picked[count - 1] == 0);
    }
}

static void test_weights_scale_the_load(void **state)
{
    (void)state;
    static struct bench bench;
    const uint32_t weights[] = {100, 300, 0};
    build(&bench, weights, 3, 1);
    set_load(&bench, 0, 10, 1000);
    set_load(&bench, 1, 29, 1000);
    assert_int_equal(rbi_least_pick(&bench.least, true), 1);
    set_load(&bench, 1, 31, 1000);
    assert_int_equal(rbi_least_pick(&bench.least, true), 0);
}

/* Of two: the most loaded one is picked only by a tie, and the worst of many never. */
static void test_two_avoid_the_worst(void **state)
{
    (void)state;
    static struct bench bench;
    unsigned picked[MEMBERS_MAX];
    build(&bench, NULL, 16, 3);
    for (unsigned i = 0; i < 16; i++) {
        set_load(&bench, i, i, 1000);
    }
    count_picks(&bench, true, 120000, picked); /* 16: of two all the same */
    assert_int_equal(picked[15], 0);
    for (unsigned i = 0; i < 16; i++) {
        /* Of 120 pairs, 15 - i have it as the better one. */
        const unsigned due = (15 - i) * 1000;
        assert_in_range(picked[i], due - due / 5, due + due / 5);
    }
}

/* Nothing to do anywhere: shares by weight, with few and with many. */
static void test_idle_members_share_by_weight(void **state)
{
    (void)state;
    static struct bench bench;
    static uint32_t weights[MEMBERS_MAX];
    unsigned picked[MEMBERS_MAX];
    for (unsigned count = 3; count <= 48; count *= 4) {
        unsigned sum = 0;
        for (unsigned i = 0; i < count; i++) {
            weights[i] = 50 * (i % 3);
            sum += weights[i];
        }
        build(&bench, weights, count, count);
        count_picks(&bench, count < 8, 90000, picked);
        for (unsigned i = 0; i < count; i++) {
            const int64_t due = (int64_t)90000 * weights[i] / sum;
            const int64_t off = (int64_t)picked[i] - due;
            assert_true(off * off <= 25 * due);
        }
    }
    build(&bench, NULL, 8, 8);
    count_picks(&bench, true, 80000, picked);
    for (unsigned i = 0; i < 8; i++) {
        assert_in_range(picked[i], 9500, 10500);
    }
}

/* Scenario 92. */
static void test_odd_weights(void **state)
{
    (void)state;
    static struct bench bench;
    unsigned picked[MEMBERS_MAX];
    const uint32_t zeros[16] = {0};
    const uint32_t zero_one[] = {0, 1};
    const uint32_t huge[] = {UINT32_MAX, UINT32_MAX};
    uint32_t one_of_many[16] = {0};
    one_of_many[11] = 1;
    for (unsigned fresh = 0; fresh < 2; fresh++) {
        build(&bench, zeros, 16, 1);
        assert_int_equal(rbi_least_pick(&bench.least, fresh), RBI_PICK_NONE);
        build(&bench, zeros, 2, 1);
        assert_int_equal(rbi_least_pick(&bench.least, fresh), RBI_PICK_NONE);
        build(&bench, zeros, 0, 1);
        assert_int_equal(rbi_least_pick(&bench.least, fresh), RBI_PICK_NONE);
        build(&bench, &zero_one[1], 1, 1);
        assert_int_equal(rbi_least_pick(&bench.least, fresh), 0);
        build(&bench, zero_one, 2, 1);
        set_load(&bench, 1, 1000, 1000);
        count_picks(&bench, fresh, 1000, picked);
        assert_int_equal(picked[1], 1000);
        build(&bench, one_of_many, 16, 1);
        count_picks(&bench, fresh, 1000, picked);
        assert_int_equal(picked[11], 1000);
        build(&bench, huge, 2, 1);
        set_load(&bench, 0, UINT32_MAX, UINT64_MAX);
        set_load(&bench, 1, UINT32_MAX - 1, UINT64_MAX);
        count_picks(&bench, fresh, 1000, picked);
        assert_int_equal(picked[1], 1000);
    }
}

/* 100 callers that start at once: nobody is the first of more than a quarter. */
static void test_callers_do_not_start_together(void **state)
{
    (void)state;
    static struct bench bench;
    for (unsigned count = 8; count <= 16; count *= 2) {
        unsigned first[16] = {0};
        for (uint64_t caller = 0; caller < 100; caller++) {
            build(&bench, NULL, count, caller);
            first[rbi_least_pick(&bench.least, true)]++;
        }
        for (unsigned i = 0; i < count; i++) {
            assert_true(first[i] <= 25);
        }
    }
}

/* ---- simulation ------------------------------------------------------------------------ */

#define INSTANCES 16U
#define CALLERS   32U
#define REQUESTS  (TEST_SANITIZED ? 60000U : 200000U)
#define QUEUE     65536U
#define SERVICE   100000U /* ns, mean */
#define SLOW      5U      /* takes four times as long */

/** An instance that works off its queue in order. All times in ns. */
struct server {
    uint64_t begun[QUEUE]; /* of each request, and when it is done; whose it is */
    uint64_t done[QUEUE];
    uint8_t caller[QUEUE];
    uint32_t head; /* first that is not done */
    uint32_t read; /* first that is not begun */
    uint32_t tail;
    uint64_t ewma_ns;
    uint32_t times; /* service is so many times the usual */
};

static struct server servers[INSTANCES];
static struct bench callers[CALLERS];
static struct rbi_random dice;

/** Exponential with that mean, by the integer logarithm: 0.693147 x 2^-32 a unit. */
static uint64_t exponential(uint64_t mean_ns)
{
    const uint64_t units = rbi_hrw_minus_log2(rbi_random_next(&dice));
    return (units >> 8) * mean_ns / 1000 * 693147 / 1000 >> 24;
}

static void work_off(struct server *server, uint64_t now)
{
    while (server->read != server->tail && server->begun[server->read % QUEUE] <= now) {
        const uint32_t at = server->read++ % QUEUE;
        const uint64_t took = server->done[at] - server->begun[at];
        server->ewma_ns = server->ewma_ns - server->ewma_ns / 16 + took / 16;
        callers[server->caller[at]].members[server - servers].unread--;
    }
    while (server->head != server->tail && server->done[server->head % QUEUE] <= now) {
        server->head++;
    }
}

/** @return when it is done */
static uint64_t enqueue(struct server *server, uint64_t now, unsigned caller)
{
    const uint32_t at = server->tail % QUEUE;
    uint64_t begin = now;
    if (server->head != server->tail) {
        begin = rbi_max_u64(now, server->done[(server->tail - 1) % QUEUE]);
    }
    server->begun[at] = begin;
    server->done[at] = begin + exponential(SERVICE) * server->times;
    server->caller[at] = (uint8_t)caller;
    callers[caller].members[server - servers].unread++;
    server->tail++;
    assert_true(server->tail - server->head < QUEUE);
    return server->done[at];
}

static void publish(void)
{
    for (unsigned i = 0; i < INSTANCES; i++) {
        for (unsigned caller = 0; caller < CALLERS; caller++) {
            set_load(&callers[caller], i, servers[i].tail - servers[i].head, servers[i].ewma_ns);
        }
    }
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/** Load in percent of as many usual instances, published each @p stale_ns. @return p99 in ns */
static uint64_t simulate(bool least, uint32_t slow_times, uint64_t stale_ns, uint32_t percent)
{
    static uint64_t took[REQUESTS];
    uint64_t now = 0;
    uint64_t published = 0;
    uint32_t turn = 0;
    rbi_random_init(&dice, 17, 4);
    memset(servers, 0, sizeof servers);
    for (unsigned i = 0; i < INSTANCES; i++) {
        servers[i].times = i == SLOW ? slow_times : 1;
    }
    for (unsigned i = 0; i < CALLERS; i++) {
        build(&callers[i], NULL, INSTANCES, i);
    }
    for (unsigned request = 0; request < REQUESTS; request++) {
        now += exponential(SERVICE * 100 / percent / INSTANCES);
        for (unsigned i = 0; i < INSTANCES; i++) {
            work_off(&servers[i], now);
        }
        if (now / stale_ns != published) {
            published = now / stale_ns;
            publish();
        }
        const unsigned caller = rbi_random_under(&dice, CALLERS);
        const unsigned pick = least ? rbi_least_pick(&callers[caller].least, true) /* 16: of two */
                                    : turn++ % INSTANCES;
        took[request] = enqueue(&servers[pick], now, caller) - now;
    }
    qsort(took, REQUESTS, sizeof took[0], by_value);
    return took[REQUESTS / 100 * 99];
}

static void test_slow_instance_against_turns(void **state)
{
    (void)state;
    const uint64_t least_ns = simulate(true, 4, 20000, 80);
    const uint64_t turns_ns = simulate(false, 4, 20000, 80);
    print_message("one of 16 is 4 x slower: p99 %u us, in turn %u us\n",
                  (unsigned)(least_ns / 1000), (unsigned)(turns_ns / 1000));
    assert_true(turns_ns >= 5 * least_ns);
    assert_true(least_ns < 1209000); /* what depth alone was measured to give */
}

/* So little to do that the slow one keeps up in turn, just so: no queue that grows for ever. */
static void test_slow_instance_that_keeps_up(void **state)
{
    (void)state;
    const uint64_t least_ns = simulate(true, 4, 20000, 24);
    const uint64_t turns_ns = simulate(false, 4, 20000, 24);
    print_message("the same at 24 %% load: p99 %u us, in turn %u us\n", (unsigned)(least_ns / 1000),
                  (unsigned)(turns_ns / 1000));
    assert_true(turns_ns >= 5 * least_ns && turns_ns < 100 * least_ns);
}

/* Nobody is slow: half of what turns give, also from loads that are 200 us old. */
static void test_even_instances_against_turns(void **state)
{
    (void)state;
    const uint64_t turns_ns = simulate(false, 1, 20000, 80);
    const uint64_t fresh_ns = simulate(true, 1, 20000, 80);
    const uint64_t old_ns = simulate(true, 1, 200000, 80);
    print_message("all alike: p99 %u us, with loads 200 us old %u us, in turn %u us\n",
                  (unsigned)(fresh_ns / 1000), (unsigned)(old_ns / 1000),
                  (unsigned)(turns_ns / 1000));
    assert_true(fresh_ns < turns_ns * 6 / 10);
    assert_true(old_ns < turns_ns * 7 / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scan_finds_the_least),
        cmocka_unit_test(test_without_times_the_depth_decides),
        cmocka_unit_test(test_weights_scale_the_load),
        cmocka_unit_test(test_two_avoid_the_worst),
        cmocka_unit_test(test_idle_members_share_by_weight),
        cmocka_unit_test(test_odd_weights),
        cmocka_unit_test(test_callers_do_not_start_together),
        cmocka_unit_test(test_slow_instance_against_turns),
        cmocka_unit_test(test_slow_instance_that_keeps_up),
        cmocka_unit_test(test_even_instances_against_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
