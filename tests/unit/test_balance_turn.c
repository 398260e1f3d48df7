/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns by weight, and draws by weight. Scenario 92 (odd weights: shares, runs, all callers
 * starting with the same); features 2.3.
 */
#include "bus/balance_turn.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#define MEMBERS_MAX 512U
#define PICKS       100000U

/** A turn with memory of its own: two orders, used in turn. */
struct round {
    struct rbi_turn turn;
    struct rbi_random random;
    uint16_t orders[2][RBI_TURN_MAX];
    unsigned used;
};

static void *scratch_of(size_t bytes)
{
    static union {
        uint64_t aligned;
        unsigned char bytes[1 << 20];
    } scratch;
    assert_true(bytes <= sizeof scratch);
    return scratch.bytes;
}

static void begin(struct round *round, uint64_t who)
{
    rbi_random_init(&round->random, who, 1);
    rbi_turn_init(&round->turn, &round->random);
    round->used = 0;
}

static void lay(struct round *round, const uint32_t *weights, unsigned count)
{
    const uint32_t length = rbi_turn_length(weights, count);
    assert_true(length <= RBI_TURN_MAX);
    round->used ^= 1;
    rbi_turn_build(&round->turn, round->orders[round->used], length, weights, count,
                   scratch_of(rbi_turn_scratch_bytes(count, length)));
}

static unsigned longest_run(struct round *round, unsigned *picked)
{
    unsigned longest = 0;
    unsigned run = 0;
    uint16_t last = RBI_PICK_NONE;
    for (unsigned i = 0; i < PICKS; i++) {
        const uint16_t pick = rbi_turn_pick(&round->turn);
        picked[pick]++;
        run = pick == last ? run + 1 : 1;
        longest = run > longest ? run : longest;
        last = pick;
    }
    return longest;
}

static void expect_shares(const unsigned *picked, const uint32_t *weights, unsigned count)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < count; i++) {
        sum += weights[i];
    }
    for (unsigned i = 0; i < count; i++) {
        const double due = (double)PICKS * weights[i] / (double)sum;
        const double off = picked[i] > due ? picked[i] - due : due - picked[i];
        assert_true(weights[i] != 0 || picked[i] == 0);
        assert_true(off <= due * 0.02 + 3); /* the round that is under way */
    }
}

static void test_shares_without_runs(void **state)
{
    (void)state;
    static struct round round;
    static const struct {
        uint32_t weights[6];
        unsigned count;
        unsigned run;
    } cases[] = {
        {{21, 11}, 2, 3},
        {{1, 0, 1}, 3, 1},
        {{5, 1, 1}, 3, 4},
        {{100, 50, 25, 25}, 4, 2},
        {{1000, 999, 998, 997, 996, 3}, 6, 2},
        {{UINT32_MAX, UINT32_MAX - 1, 7, 0, UINT32_MAX / 3, 1}, 6, 4},
        {{300}, 1, PICKS},
    };
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(cases); i++) {
        unsigned picked[6] = {0};
        begin(&round, i);
        lay(&round, cases[i].weights, cases[i].count);
        const unsigned run = longest_run(&round, picked);
        assert_true(run <= cases[i].run);
        expect_shares(picked, cases[i].weights, cases[i].count);
    }
}

/* One heavy member among many light ones: no gap in which it has all the turns. */
static void test_light_members_do_not_stand_together(void **state)
{
    (void)state;
    static struct round round;
    uint32_t weights[101];
    unsigned picked[101] = {0};
    for (unsigned i = 0; i < 101; i++) {
        weights[i] = 1;
    }
    weights[40] = 100;
    begin(&round, 5);
    lay(&round, weights, 101);
    assert_true(longest_run(&round, picked) <= 3);
    expect_shares(picked, weights, 101);
}

/* Weights of which no round is exact: within 2 % from 0.16 % of all. */
static void test_rounded_weights(void **state)
{
    (void)state;
    static struct round round;
    static uint32_t weights[MEMBERS_MAX];
    static unsigned turns[MEMBERS_MAX];
    uint64_t sum = 0;
    begin(&round, 6);
    for (unsigned i = 0; i < MEMBERS_MAX; i++) {
        weights[i] = 1 + rbi_random_under(&round.random, 1000);
        sum += weights[i];
    }
    lay(&round, weights, MEMBERS_MAX);
    assert_int_equal(round.turn.length, RBI_TURN_MAX);
    for (uint32_t i = 0; i < RBI_TURN_MAX; i++) {
        turns[rbi_turn_pick(&round.turn)]++;
    }
    for (unsigned i = 0; i < MEMBERS_MAX; i++) {
        const double due = (double)RBI_TURN_MAX * weights[i] / (double)sum;
        assert_true(turns[i] >= 1);
        assert_true(turns[i] > due - 1.01 && turns[i] < due + 1.01);
    }
}

/* {1, 10^6}, and 500 so light that each gets its one turn for nothing. */
static void test_the_lightest_get_a_turn(void **state)
{
    (void)state;
    static struct round round;
    static uint32_t weights[501];
    static unsigned turns[501];
    const uint32_t pair[] = {1, 1000000};
    begin(&round, 7);
    lay(&round, pair, 2);
    for (uint32_t i = 0; i < round.turn.length; i++) {
        turns[rbi_turn_pick(&round.turn)]++;
    }
    assert_int_equal(turns[0], 1);
    memset(turns, 0, sizeof turns);
    for (unsigned i = 0; i < 501; i++) {
        weights[i] = 1;
    }
    weights[500] = UINT32_MAX;
    lay(&round, weights, 501);
    for (uint32_t i = 0; i < round.turn.length; i++) {
        turns[rbi_turn_pick(&round.turn)]++;
    }
    for (unsigned i = 0; i < 500; i++) {
        assert_int_equal(turns[i], 1);
    }
    assert_int_equal(turns[500], round.turn.length - 500);
}

static void test_nobody(void **state)
{
    (void)state;
    static struct round round;
    const uint32_t zeros[] = {0, 0};
    const uint32_t one[] = {0, 3};
    begin(&round, 8);
    assert_int_equal(rbi_turn_pick(&round.turn), RBI_PICK_NONE); /* before the first build */
    lay(&round, zeros, 2);
    assert_int_equal(rbi_turn_pick(&round.turn), RBI_PICK_NONE);
    lay(&round, NULL, 0);
    assert_int_equal(rbi_turn_pick(&round.turn), RBI_PICK_NONE);
    lay(&round, one, 2);
    assert_int_equal(rbi_turn_pick(&round.turn), 1);
}

/* Equal weights are plain turns: one after the other. */
static void test_equal_weights_go_round(void **state)
{
    (void)state;
    static struct round round;
    const uint32_t weights[] = {100, 100, 100};
    for (unsigned form = 0; form < 2; form++) {
        begin(&round, 9);
        lay(&round, form == 0 ? NULL : weights, 3);
        assert_int_equal(round.turn.length, 3);
        uint16_t last = rbi_turn_pick(&round.turn);
        for (unsigned i = 0; i < 30; i++) {
            const uint16_t pick = rbi_turn_pick(&round.turn);
            assert_int_equal(pick, (last + 1) % 3);
            last = pick;
        }
    }
}

/* 100 callers that start at once spread over all, whatever tells them apart. */
static void test_callers_do_not_start_together(void **state)
{
    (void)state;
    static struct round round;
    unsigned first[10] = {0};
    for (uint64_t caller = 0; caller < 100; caller++) {
        begin(&round, caller);
        lay(&round, NULL, 10);
        first[rbi_turn_pick(&round.turn)]++;
    }
    for (unsigned i = 0; i < 10; i++) {
        assert_in_range(first[i], 1, 25);
    }
}

/*
 * Members come and go after each few picks: those that stay get the same, none is skipped for
 * ever, and laying out the same round anew moves nobody's place.
 */
static void test_changes_favour_nobody(void **state)
{
    (void)state;
    static struct round round;
    unsigned picked[8] = {0};
    for (unsigned every = 1; every <= 7; every++) {
        memset(picked, 0, sizeof picked);
        begin(&round, every);
        for (unsigned i = 0; i < 8000; i++) {
            if (i % every == 0) {
                lay(&round, NULL, 7 + rbi_random_under(&round.random, 2));
            }
            picked[rbi_turn_pick(&round.turn)]++;
        }
        for (unsigned i = 0; i < 7; i++) {
            assert_in_range(picked[i], 800, 1300);
        }
    }
    begin(&round, 99);
    lay(&round, NULL, 7);
    for (unsigned i = 0; i < 50; i++) {
        const uint32_t before = round.turn.cursor;
        lay(&round, NULL, 7);
        assert_int_equal(round.turn.cursor, before);
        (void)rbi_turn_pick(&round.turn);
    }
}

static void draw(const uint32_t *weights, unsigned count, unsigned draws, unsigned *drawn)
{
    static struct rbi_alias_column columns[MEMBERS_MAX];
    struct rbi_alias alias;
    struct rbi_random random;
    rbi_random_init(&random, 3, 4);
    rbi_alias_build(&alias, columns, weights, count, scratch_of(rbi_alias_scratch_bytes(count)));
    memset(drawn, 0, count * sizeof *drawn);
    for (unsigned i = 0; i < draws; i++) {
        const uint16_t pick = rbi_alias_pick(&alias, &random);
        assert_true(pick < count);
        drawn[pick]++;
    }
}

/* Chi-square, at 5 sigma of it: wrong by chance once in millions, but the seed is fixed. */
static void test_draws_follow_weights(void **state)
{
    (void)state;
    static uint32_t weights[MEMBERS_MAX];
    static unsigned drawn[MEMBERS_MAX];
    struct rbi_random random;
    rbi_random_init(&random, 1, 2);
    for (unsigned count = 2; count <= MEMBERS_MAX; count *= 4) {
        uint64_t sum = 0;
        double chi = 0;
        for (unsigned i = 0; i < count; i++) {
            weights[i] = 100 + rbi_random_under(&random, 900);
            sum += weights[i];
        }
        draw(weights, count, 1000000, drawn);
        for (unsigned i = 0; i < count; i++) {
            const double due = 1e6 * weights[i] / (double)sum;
            chi += (drawn[i] - due) * (drawn[i] - due) / due;
        }
        /* Mean count - 1, variance twice that. */
        assert_true((chi - (count - 1)) * (chi - (count - 1)) <= 25.0 * 2 * (count - 1));
    }
}

static void test_draws_with_odd_weights(void **state)
{
    (void)state;
    static uint32_t many[MEMBERS_MAX];
    static unsigned drawn[MEMBERS_MAX];
    const uint32_t zero_one[] = {0, 1};
    const uint32_t extreme[] = {1, 1000000};
    const uint32_t huge[] = {UINT32_MAX, UINT32_MAX, 0, 1};
    draw(zero_one, 2, PICKS, drawn);
    assert_int_equal(drawn[0], 0);
    draw(extreme, 2, PICKS, drawn);
    assert_true(drawn[0] <= 4);
    draw(huge, 4, PICKS, drawn);
    assert_in_range(drawn[0], PICKS / 2 - 800, PICKS / 2 + 800);
    assert_true(drawn[2] == 0 && drawn[3] == 0);
    many[77] = 1;
    many[78] = 2;
    draw(many, MEMBERS_MAX, PICKS, drawn);
    assert_int_equal(drawn[77] + drawn[78], PICKS);
    assert_in_range(drawn[77], PICKS / 3 - 750, PICKS / 3 + 750);

    struct rbi_alias alias;
    struct rbi_random random = {1};
    static struct rbi_alias_column columns[2];
    rbi_alias_build(&alias, columns, many, 2, scratch_of(rbi_alias_scratch_bytes(2)));
    assert_int_equal(rbi_alias_pick(&alias, &random), RBI_PICK_NONE);
    rbi_alias_build(&alias, columns, many, 0, scratch_of(0));
    assert_int_equal(rbi_alias_pick(&alias, &random), RBI_PICK_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares_without_runs),
        cmocka_unit_test(test_light_members_do_not_stand_together),
        cmocka_unit_test(test_rounded_weights),
        cmocka_unit_test(test_the_lightest_get_a_turn),
        cmocka_unit_test(test_nobody),
        cmocka_unit_test(test_equal_weights_go_round),
        cmocka_unit_test(test_callers_do_not_start_together),
        cmocka_unit_test(test_changes_favour_nobody),
        cmocka_unit_test(test_draws_follow_weights),
        cmocka_unit_test(test_draws_with_odd_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
