/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shedding by how long messages have waited, against a receiver that is simulated: one queue, a
 * fixed time for each message. Features 2.9: busy when the least wait of 100 ms is above 5 ms, the
 * lowest priority goes first, and it is over 100 ms after the load is.
 */
#include "bus/sojourn.h"
#include "support/test.h"

#include <string.h>

#define US       UINT64_C(1000)
#define MS       UINT64_C(1000000)
#define START_NS UINT64_C(1000000000000)
#define QUEUE    65536U

static uint64_t seed;

static uint64_t random_below(uint64_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 11) % n;
}

struct server {
    struct rbi_sojourn sojourn;
    struct {
        uint64_t sent_ns;
        unsigned priority;
    } queue[QUEUE];
    unsigned first;
    unsigned next;
    uint64_t free_ns; /* when it has done what it does */
    uint64_t work_ns; /* for one message */
    uint64_t next_ns; /* when the next message comes */
    uint64_t served[RBI_PRIORITIES];
    uint64_t shed[RBI_PRIORITIES];
    uint64_t worst_ns; /* longest wait of one that was served, since it was set to 0 */
    uint64_t busy_since_ns;
    uint64_t calm_since_ns;
};

static struct server server;

static void start(uint64_t work_ns)
{
    memset(&server, 0, sizeof server);
    rbi_sojourn_init(&server.sojourn, 5 * MS, 100 * MS);
    server.work_ns = work_ns;
    server.free_ns = START_NS;
    server.next_ns = START_NS;
}

static void note(bool changed)
{
    if (changed && rbi_sojourn_busy(&server.sojourn) && server.busy_since_ns == 0) {
        server.busy_since_ns = server.free_ns;
    } else if (changed && !rbi_sojourn_busy(&server.sojourn)) {
        server.calm_since_ns = server.free_ns;
    }
}

static void serve_one(void)
{
    const uint64_t waited_ns = server.free_ns - server.queue[server.first % QUEUE].sent_ns;
    const unsigned priority = server.queue[server.first % QUEUE].priority;
    server.first++;
    note(rbi_sojourn_took(&server.sojourn, waited_ns, server.free_ns));
    if (rbi_sojourn_sheds(&server.sojourn, priority, waited_ns, server.free_ns)) {
        server.shed[priority]++;
        server.free_ns += server.work_ns / 50; /* a refusal is cheap, not free */
        return;
    }
    server.worst_ns = waited_ns > server.worst_ns ? waited_ns : server.worst_ns;
    server.served[priority]++;
    server.free_ns += server.work_ns;
}

/** Messages every @p gap_ns, of priorities drawn with these weights, for a while. */
static void run(uint64_t gap_ns, const unsigned weights[RBI_PRIORITIES], uint64_t for_ns)
{
    const uint64_t until_ns = rbi_max_u64(server.next_ns, server.free_ns) + for_ns;
    while (server.free_ns < until_ns) {
        while (server.next_ns <= server.free_ns && server.next_ns < until_ns) {
            unsigned draw = (unsigned)random_below(100);
            unsigned priority = 0;
            while (draw >= weights[priority]) {
                draw -= weights[priority++];
            }
            server.queue[server.next % QUEUE].sent_ns = server.next_ns;
            server.queue[server.next++ % QUEUE].priority = priority;
            server.next_ns += gap_ns;
            assert_true(server.next - server.first < QUEUE);
        }
        if (server.first == server.next) {
            note(rbi_sojourn_idle(&server.sojourn, server.free_ns));
            server.free_ns = rbi_min_u64(server.next_ns, server.free_ns + MS);
        } else {
            serve_one();
        }
    }
    server.next_ns = rbi_max_u64(server.next_ns, until_ns);
}

static void test_full_load_and_bursts_are_not_overload(void **state)
{
    (void)state;
    static const unsigned alike[RBI_PRIORITIES] = {0, 100, 0, 0};
    seed = 1;
    start(1 * MS);
    run(1 * MS, alike, 5000 * MS); /* just what it can do */
    for (unsigned burst = 0; burst < 50; burst++) {
        run(10 * US, alike, 600 * US); /* 60 at once: the last waits 60 ms */
        run(20 * MS, alike, 200 * MS);
    }
    assert_int_equal(server.busy_since_ns, 0);
    assert_int_equal(server.shed[1], 0);
}

static void test_busy_comes_after_an_interval_above_target_and_leaves_after_one_below(void **state)
{
    (void)state;
    static const unsigned alike[RBI_PRIORITIES] = {0, 100, 0, 0};
    seed = 2;
    start(1 * MS);
    run(500 * US, alike, 3000 * MS);
    /* In 10 ms the wait is above 5 ms; the first interval holds what came before that. */
    assert_in_range(server.busy_since_ns - START_NS, 100 * MS, 310 * MS);
    const uint64_t over_ns = server.next_ns;
    run(20 * MS, alike, 2000 * MS);
    assert_false(rbi_sojourn_busy(&server.sojourn));
    /* What waited is done within as long as it had waited; 100 ms below target; one begun. */
    assert_true(server.calm_since_ns < over_ns + server.worst_ns + 210 * MS);
    const uint64_t shed = server.shed[1];
    run(20 * MS, alike, 1000 * MS);
    assert_int_equal(server.shed[1], shed);
}

static void test_twice_the_load_of_one_priority_keeps_waits_short_and_work_whole(void **state)
{
    (void)state;
    static const unsigned alike[RBI_PRIORITIES] = {0, 100, 0, 0};
    seed = 3;
    start(1 * MS);
    run(500 * US, alike, 5000 * MS);
    memset(server.served, 0, sizeof server.served);
    server.worst_ns = 0;
    run(500 * US, alike, 20000 * MS);
    assert_true(server.served[1] > 19400); /* of 20,000; 20,000 refusals take it the time of 400 */
    assert_true(server.worst_ns < 50 * MS);
}

/* The receiver does not run for a while; messages come all the same. */
static void be_away(uint64_t for_ns)
{
    rbi_sojourn_away(&server.sojourn, server.free_ns, server.free_ns + for_ns);
    server.free_ns += for_ns;
}

static void test_a_receiver_that_was_not_run_is_not_overloaded(void **state)
{
    (void)state;
    static const unsigned alike[RBI_PRIORITIES] = {100, 0, 0, 0};
    static const uint64_t away_ms[] = {2, 20, 60, 90, 110, 150, 300, 1000, 3000};
    for (unsigned i = 0; i < sizeof away_ms / sizeof away_ms[0]; i++) {
        seed = 5 + i;
        start(1 * MS);
        /* Half of what it can do: as long as it was away it works off what came meanwhile. */
        for (unsigned round = 0; round < 40; round++) {
            run(2 * MS, alike, 2 * away_ms[i] * MS + random_below(150) * MS);
            be_away(away_ms[i] * MS);
        }
        assert_int_equal(server.busy_since_ns, 0);
        assert_int_equal(server.shed[0], 0);
    }
}

static void test_time_in_which_nobody_looked_is_no_wait(void **state)
{
    (void)state;
    for (unsigned told = 0; told < 2; told++) {
        struct rbi_sojourn sojourn;
        rbi_sojourn_init(&sojourn, 5 * MS, 100 * MS);
        assert_false(rbi_sojourn_took(&sojourn, 0, START_NS));
        if (told != 0) {
            rbi_sojourn_away(&sojourn, START_NS + 10 * MS, START_NS + 100 * MS);
        }
        /* The first was sent when it had just gone, the last when it was on its way back. */
        for (unsigned i = 0; i < 50; i++) {
            assert_false(rbi_sojourn_took(&sojourn, (90 - i) * MS, START_NS + (100 + i) * MS));
        }
        assert_true(rbi_sojourn_took(&sojourn, 1 * MS, START_NS + 200 * MS) == (told == 0));
        sojourn.pressure = RBI_SOJOURN_STEPS - 1;
        sojourn.credit[0] = RBI_SOJOURN_STEPS - 1;
        assert_true(rbi_sojourn_sheds(&sojourn, 0, 94 * MS, START_NS + 100 * MS) == (told == 0));
    }
}

static void
test_a_receiver_that_is_away_half_of_its_time_is_found_when_more_comes_than_it_does(void **state)
{
    (void)state;
    static const unsigned alike[RBI_PRIORITIES] = {100, 0, 0, 0};
    seed = 20;
    start(1 * MS);
    /* 10 ms of messages, 10 ms of its own: at twice of what that allows. */
    for (unsigned round = 0; round < 100; round++) {
        run(1 * MS, alike, 10 * MS);
        be_away(10 * MS);
    }
    assert_in_range(server.busy_since_ns - START_NS, 100 * MS, 500 * MS);
    assert_true(server.shed[0] > 100);
}

static void test_lowest_priority_is_refused_first(void **state)
{
    (void)state;
    static const unsigned mixed[RBI_PRIORITIES] = {30, 40, 20, 10};
    seed = 4;
    start(1 * MS);
    run(700 * US, mixed, 5000 * MS); /* 1.43 times what it can do: 30 % of it is too much */
    memset(server.served, 0, sizeof server.served);
    memset(server.shed, 0, sizeof server.shed);
    run(700 * US, mixed, 20000 * MS);
    assert_true(server.shed[0] > 100 * server.shed[2]);
    assert_true(server.shed[0] > 8 * server.shed[1]);
    assert_int_equal(server.shed[3], 0);
    /* Ten times: nothing but the highest can be had, and of that not all. */
    static const unsigned high[RBI_PRIORITIES] = {25, 25, 25, 25};
    start(1 * MS);
    run(100 * US, high, 5000 * MS);
    memset(server.served, 0, sizeof server.served);
    run(100 * US, high, 5000 * MS);
    assert_true(server.served[3] > 5 * server.served[2]);
    assert_true(server.served[3] > 0);
    assert_true(server.served[3] > 20 * server.served[0]);
}

static void test_highest_priority_is_never_refused_whole(void **state)
{
    (void)state;
    struct rbi_sojourn sojourn;
    rbi_sojourn_init(&sojourn, 5 * MS, 100 * MS);
    sojourn.pressure = RBI_SOJOURN_MAX;
    unsigned passed = 0;
    for (unsigned i = 0; i < 800; i++) {
        assert_true(rbi_sojourn_sheds(&sojourn, 0, 1000 * MS, START_NS));
        assert_true(rbi_sojourn_sheds(&sojourn, 2, 6 * MS, START_NS));
        passed += !rbi_sojourn_sheds(&sojourn, i % 2 == 0 ? 3 : 77, 6 * MS, START_NS);
    }
    assert_int_equal(passed, 100);
    assert_false(rbi_sojourn_sheds(&sojourn, 3, 5 * MS, START_NS)); /* within the target */
    assert_false(rbi_sojourn_sheds(&sojourn, 0, 5 * MS / 4, START_NS));
    assert_true(rbi_sojourn_sheds(&sojourn, 0, 5 * MS / 4 + 1, START_NS));
}

static void test_target_of_zero_never_sheds(void **state)
{
    (void)state;
    struct rbi_sojourn sojourn;
    rbi_sojourn_init(&sojourn, 0, 100 * MS);
    for (unsigned i = 0; i < 100; i++) {
        assert_false(rbi_sojourn_took(&sojourn, 1000 * MS, START_NS + i * 50 * MS));
        assert_false(rbi_sojourn_sheds(&sojourn, 0, 1000 * MS, START_NS));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_load_and_bursts_are_not_overload),
        cmocka_unit_test(test_busy_comes_after_an_interval_above_target_and_leaves_after_one_below),
        cmocka_unit_test(test_twice_the_load_of_one_priority_keeps_waits_short_and_work_whole),
        cmocka_unit_test(test_a_receiver_that_was_not_run_is_not_overloaded),
        cmocka_unit_test(test_time_in_which_nobody_looked_is_no_wait),
        cmocka_unit_test(
            test_a_receiver_that_is_away_half_of_its_time_is_found_when_more_comes_than_it_does),
        cmocka_unit_test(test_lowest_priority_is_refused_first),
        cmocka_unit_test(test_highest_priority_is_never_refused_whole),
        cmocka_unit_test(test_target_of_zero_never_sheds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
