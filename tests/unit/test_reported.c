/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights by reported load (features 2.3, A58): capacity = qps / (utilisation + eps / qps), the
 * first 10 s ignored, expired after 3 minutes, looked at each second. Simulated machines, with the
 * router chain and the balancer between them. Virtual time.
 */
#include "bus/balance.h"
#include "bus/reported.h"
#include "bus/route.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)

/* ---- one instance ------------------------------------------------------------------------- */

static struct rbi_reported one;
static struct rbi_reported_look look;
static uint64_t now_ns;

static int setup(void **state)
{
    (void)state;
    memset(&one, 0, sizeof one);
    memset(&look, 0, sizeof look);
    now_ns = 100 * SECOND;
    return 0;
}

/* Seconds of so many messages, at such a utilisation, of which some failed. */
static void seconds(unsigned count, uint32_t messages, uint32_t use, uint32_t failed)
{
    for (unsigned i = 0; i < count; i++) {
        now_ns += SECOND;
        look.number++;
        look.use = use;
        look.handled += messages;
        look.failed += failed;
        rbi_reported_turn(&one, &look, now_ns);
    }
}

static void test_capacity_is_rate_by_utilisation(void **state)
{
    (void)state;
    seconds(30, 500, 250, 0);
    assert_in_range(one.capacity, 1999000, 2001000); /* 2000 a second */
    seconds(60, 500, 1000, 0);
    assert_in_range(one.capacity, 499000, 501000);
    seconds(60, 3000, 2000, 0); /* more than it can do waits */
    assert_in_range(one.capacity, 1499000, 1501000);
}

static void test_failures_are_held_against_it(void **state)
{
    (void)state;
    seconds(30, 500, 250, 125); /* 0.25 + 0.25 */
    assert_in_range(one.capacity, 998000, 1002000);
    seconds(60, 500, 250, 100000); /* not more than all of them can fail */
    assert_in_range(one.capacity, 399000, 401000);
}

static void test_first_10_s_are_ignored(void **state)
{
    (void)state;
    seconds(10, 500, 250, 0); /* the first one begins it */
    assert_int_equal(one.capacity, 0);
    seconds(1, 500, 250, 0);
    assert_true(one.capacity > 0);
}

static void test_capacity_expires_after_3_minutes(void **state)
{
    (void)state;
    seconds(30, 500, 250, 0);
    const uint64_t capacity = one.capacity;
    for (unsigned i = 0; i < 179; i++) { /* messages come, reports do not */
        now_ns += SECOND;
        look.handled += 500;
        rbi_reported_turn(&one, &look, now_ns);
        assert_int_equal(one.capacity, capacity);
    }
    now_ns += SECOND;
    rbi_reported_turn(&one, &look, now_ns);
    assert_int_equal(one.capacity, 0);
    seconds(10, 500, 250, 0); /* it begins anew, blind for 10 s */
    assert_int_equal(one.capacity, 0);
    seconds(1, 500, 250, 0);
    assert_true(one.capacity > 0);
}

/* Whoever gets nothing for a while is as strong as before. */
static void test_seconds_without_messages_say_nothing(void **state)
{
    (void)state;
    seconds(30, 500, 250, 0);
    const uint64_t capacity = one.capacity;
    seconds(100, 0, 0, 0);
    seconds(10, 0, 3, 0);
    assert_int_equal(one.capacity, capacity);
}

static void test_who_never_reports_has_none(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 1000; i++) {
        now_ns += SECOND;
        look.handled += 100;
        rbi_reported_turn(&one, &look, now_ns);
    }
    assert_int_equal(one.capacity, 0);
}

/* They lie in the instance's own memory. */
static void test_any_figures_are_borne(void **state)
{
    uint64_t seed = 1;
    (void)state;
    for (unsigned i = 0; i < 100000; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1;
        const uint64_t shift = seed >> 58;
        now_ns += (seed >> 20) % (2 * SECOND);
        look = (struct rbi_reported_look){.number = (uint32_t)(seed >> 33),
                                          .use = (uint32_t)(seed >> 7),
                                          .handled = seed >> shift,
                                          .failed = ~seed >> shift};
        rbi_reported_turn(&one, &look, now_ns);
        const uint64_t both[] = {one.capacity, 1000};
        const uint64_t mean = rbi_reported_mean(both, 2);
        assert_in_range(rbi_reported_weight(one.capacity, mean), 0, RBI_REPORTED_MOST);
    }
}

/* ---- among others ------------------------------------------------------------------------- */

static void test_weights_compare_with_the_mean(void **state)
{
    (void)state;
    const uint64_t some[] = {2000, 1000, 0, 1000, 4000};
    const uint64_t mean = rbi_reported_mean(some, 5);
    assert_int_equal(mean, 2000);
    assert_int_equal(rbi_reported_weight(2000, mean), 100);
    assert_int_equal(rbi_reported_weight(1000, mean), 50);
    assert_int_equal(rbi_reported_weight(4000, mean), 200);
    assert_int_equal(rbi_reported_weight(0, mean), 100); /* who says nothing is the mean */
    assert_int_equal(rbi_reported_weight(1, mean), 10);
    assert_int_equal(rbi_reported_weight(2000000, mean), 1000);
    const uint64_t alone[] = {0, 5000, 0};
    assert_int_equal(rbi_reported_mean(alone, 3), 0);
    assert_int_equal(rbi_reported_weight(5000, 0), 0);
    assert_int_equal(rbi_reported_mean(NULL, 0), 0);
}

static void test_small_moves_are_not_told(void **state)
{
    (void)state;
    assert_false(rbi_reported_differs(100, 105));
    assert_true(rbi_reported_differs(100, 106));
    assert_false(rbi_reported_differs(100, 95));
    assert_true(rbi_reported_differs(100, 94));
    assert_true(rbi_reported_differs(0, 100));
    assert_true(rbi_reported_differs(100, 0));
    assert_false(rbi_reported_differs(0, 0));
    assert_true(rbi_reported_differs(10, 11));
}

/* ---- machines ----------------------------------------------------------------------------- */

#define MACHINES 4U

struct farm {
    struct rbi_policy policy;
    struct rbi_directory_instance instances[MACHINES];
    struct rbi_reported reported[MACHINES];
    struct rbi_reported_look looks[MACHINES];
    uint32_t strength[MACHINES]; /* messages a second */
    uint64_t got[MACHINES];      /* since the test asked last */
    struct rbi_balance balance;
    void *memory;
    unsigned told; /* times that weights were others */
};

static void farm_init(struct farm *farm, const uint32_t *strength)
{
    memset(farm, 0, sizeof *farm);
    rbi_policy_defaults(&farm->policy);
    farm->policy.balance.mode = RBI_BALANCE_WEIGHTED;
    farm->policy.balance.reported_weight = 1;
    rbi_balance_init(&farm->balance, 1, 1);
    for (unsigned i = 0; i < MACHINES; i++) {
        farm->strength[i] = strength[i];
        farm->instances[i] = (struct rbi_directory_instance){
            .instance = (int32_t)i + 1, .state = RBI_ENDPOINT_READY, .weight = 100};
    }
}

/* As a caller does: the chain, then the balancer over those that are in. */
static void choose_anew(struct farm *farm)
{
    const struct rbi_route_caller caller = {.set = "", .idc = ""};
    const struct rbi_route_message message = {.tag = ""};
    const struct rbi_route_cluster cluster = {.instances = farm->instances, .count = MACHINES};
    const struct rbi_route_input input = {.caller = &caller,
                                          .message = &message,
                                          .policy = &farm->policy,
                                          .clusters = &cluster,
                                          .cluster_count = 1,
                                          .now_ns = now_ns};
    struct rbi_route_entry entries[MACHINES];
    struct rbi_route_result result;
    struct rbi_least_member members[MACHINES] = {{.weight = 0}};
    uint32_t weights[MACHINES];
    struct rbi_balance_plan plan;
    rbi_route_run(&input, NULL, entries, &result);
    for (unsigned i = 0; i < MACHINES; i++) {
        assert_int_equal(entries[i].hash_weight, 100); /* by key nothing moves */
        members[i].weight = entries[i].weight;
    }
    rbi_balance_plan(&plan, &farm->policy.balance, members, MACHINES, weights);
    free(farm->memory);
    farm->memory = calloc(1, plan.bytes + plan.scratch_bytes + 32);
    assert_non_null(farm->memory);
    rbi_balance_build(&farm->balance, &plan, farm->memory,
                      (char *)farm->memory + rbi_align_up(plan.bytes, 16));
}

/* As the daemon does, each second. */
static void weigh(struct farm *farm)
{
    uint64_t capacities[MACHINES];
    bool differs = false;
    for (unsigned i = 0; i < MACHINES; i++) {
        rbi_reported_turn(&farm->reported[i], &farm->looks[i], now_ns);
        capacities[i] = farm->reported[i].capacity;
    }
    const uint64_t mean = rbi_reported_mean(capacities, MACHINES);
    for (unsigned i = 0; i < MACHINES; i++) {
        differs = differs || rbi_reported_differs(farm->instances[i].reported,
                                                  rbi_reported_weight(capacities[i], mean));
    }
    for (unsigned i = 0; differs && i < MACHINES; i++) {
        farm->instances[i].reported = (uint16_t)rbi_reported_weight(capacities[i], mean);
    }
    farm->told += differs ? 1U : 0U;
}

/* A second of so many messages. */
static void run(struct farm *farm, unsigned messages)
{
    uint64_t now[MACHINES] = {0};
    choose_anew(farm);
    for (unsigned i = 0; i < messages; i++) {
        now[rbi_balance_pick(&farm->balance, false, 0, true, now_ns)]++;
    }
    now_ns += SECOND;
    for (unsigned i = 0; i < MACHINES; i++) {
        farm->got[i] += now[i];
        farm->looks[i].number++;
        farm->looks[i].handled += now[i];
        farm->looks[i].use = (uint32_t)(now[i] * 1000 / farm->strength[i]);
    }
    weigh(farm);
}

static unsigned share(struct farm *farm, unsigned of, unsigned messages)
{
    uint64_t all = 0;
    memset(farm->got, 0, sizeof farm->got);
    for (unsigned i = 0; i < 30; i++) {
        run(farm, messages);
    }
    for (unsigned i = 0; i < MACHINES; i++) {
        all += farm->got[i];
    }
    return (unsigned)((farm->got[of] * 1000 + all / 2) / all);
}

/* A machine of twice the strength gets twice as much, at little load as at much. */
static void test_stronger_machine_gets_its_share(void **state)
{
    static const uint32_t strength[MACHINES] = {2000, 1000, 1000, 1000};
    static struct farm farm;
    (void)state;
    farm_init(&farm, strength);
    for (unsigned i = 0; i < 10; i++) {
        run(&farm, 3000);
    }
    assert_in_range(farm.got[0], 7400, 7600); /* blind: a quarter */
    (void)share(&farm, 0, 3000);
    assert_in_range(share(&farm, 0, 3000), 390, 410);
    const unsigned told = farm.told;
    assert_in_range(told, 1, 12);
    assert_in_range(share(&farm, 0, 500), 385, 415);
    assert_in_range(share(&farm, 0, 6000), 390, 410); /* overloaded: all alike */
    assert_in_range(share(&farm, 1, 3000), 190, 210);
    assert_true(farm.told <= told + 4); /* it has settled, and callers are left alone */
    farm.strength[1] = 4000;            /* it got another machine */
    (void)share(&farm, 1, 3000);
    assert_in_range(share(&farm, 1, 3000), 485, 515);
    assert_in_range(share(&farm, 0, 3000), 240, 260);
    free(farm.memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_capacity_is_rate_by_utilisation, setup),
        cmocka_unit_test_setup(test_failures_are_held_against_it, setup),
        cmocka_unit_test_setup(test_first_10_s_are_ignored, setup),
        cmocka_unit_test_setup(test_capacity_expires_after_3_minutes, setup),
        cmocka_unit_test_setup(test_seconds_without_messages_say_nothing, setup),
        cmocka_unit_test_setup(test_who_never_reports_has_none, setup),
        cmocka_unit_test_setup(test_any_figures_are_borne, setup),
        cmocka_unit_test_setup(test_weights_compare_with_the_mean, setup),
        cmocka_unit_test_setup(test_small_moves_are_not_told, setup),
        cmocka_unit_test_setup(test_stronger_machine_gets_its_share, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
