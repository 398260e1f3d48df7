/* SPDX-License-Identifier: Apache-2.0 */
/*
 * balance.subset (features 2.3): a caller links to so many instances only, callers spread over all
 * of them, and an instance that comes or goes changes at most one link of a caller.
 */
#include "support/bus.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define HALL    "/game/eu/pc/w1/core/hall"
#define MANY    8U
#define CALLERS 24U
#define SIZE    3U
#define STEPS   200U

static const char config[] = "clusters:\n"
                             "  - {match: \"" HALL "\", balance: {mode: rr, subset: 3}}\n";
static const char config_of_all[] = "clusters:\n"
                                    "  - {match: \"" HALL "\", balance: {mode: rr}}\n";

static struct cluster cluster;
static struct node callers[CALLERS];
static struct node halls[MANY + 1];
static struct ringbus_addr any;

static void step(void)
{
    struct node *all[CALLERS + MANY + 1];
    unsigned count = 0;
    for (unsigned i = 0; i < CALLERS; i++) {
        all[count++] = &callers[i];
    }
    for (unsigned i = 0; i < MANY + 1; i++) {
        if (halls[i].bus != NULL) {
            all[count++] = &halls[i];
        }
    }
    nodes_step(all, count);
}

#define STEP_UNTIL(condition)                                                                      \
    do {                                                                                           \
        const uint64_t deadline_ms_ = test_now_ms() + NODE_MS;                                     \
        while (!(condition)) {                                                                     \
            CHECK(test_now_ms() < deadline_ms_);                                                   \
            step();                                                                                \
        }                                                                                          \
    } while (0)

static void open_hall(unsigned i)
{
    char path[64];
    (void)snprintf(path, sizeof path, HALL "/%u", i + 1);
    memset(&halls[i], 0, sizeof halls[i]);
    struct ringbus_options options = node_options(&cluster, path);
    options.lane_bytes = 4096;
    options.refs_per_link = 16;
    node_open_with(&halls[i], &options);
}

/* Bit by instance. @param count  how many the directory is to have */
static unsigned links_of(const struct node *caller, unsigned count)
{
    struct ringbus_instance list[MANY + 1];
    unsigned links = 0;
    if (ringbus_instances(caller->bus, HALL, list, MANY + 1) != (int)count) {
        return 0;
    }
    for (unsigned i = 0; i < count; i++) {
        links |= list[i].linked ? 1U << list[i].addr.instance : 0U;
    }
    return links;
}

static bool settled(unsigned count, unsigned size)
{
    for (unsigned i = 0; i < CALLERS; i++) {
        if ((unsigned)__builtin_popcount(links_of(&callers[i], count)) != size) {
            return false;
        }
    }
    return true;
}

/* Links follow a change some ticks after it is told: as they are then, they stay. */
static void settle(unsigned count, unsigned size)
{
    for (unsigned steps = 0; steps < STEPS; steps++) {
        step();
        if (!settled(count, size)) {
            STEP_UNTIL(settled(count, size));
            steps = 0;
        }
    }
}

static bool all_saw(enum ringbus_event_type type)
{
    for (unsigned i = 0; i < CALLERS; i++) {
        if (callers[i].events[type] == 0) {
            return false;
        }
    }
    return true;
}

/* Each message goes to one of those, in turn. */
static void check_sends(const unsigned *links)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < MANY + 1; i++) {
        sum += halls[i].messages;
    }
    for (unsigned i = 0; i < CALLERS; i++) {
        const struct ringbus_stats before = node_stats(&callers[i]);
        for (unsigned n = 0; n < 2 * SIZE; n++) {
            STEP_UNTIL(ringbus_send(callers[i].bus, &any, 0, "x", 1, 0) == 1);
        }
        assert_int_equal(node_stats(&callers[i]).sent, before.sent + 2 * SIZE);
        assert_int_equal(__builtin_popcount(links[i]), SIZE);
    }
    uint64_t got = 0;
    while (got < sum + CALLERS * 2 * SIZE) {
        step();
        got = 0;
        for (unsigned i = 0; i < MANY + 1; i++) {
            got += halls[i].messages;
        }
    }
}

static void note(unsigned *links, unsigned count)
{
    for (unsigned i = 0; i < CALLERS; i++) {
        links[i] = links_of(&callers[i], count);
    }
}

static void test_links_to_some(void **state)
{
    (void)state;
    unsigned first[CALLERS];
    unsigned then[CALLERS];
    unsigned used[MANY + 2] = {0};
    memset(halls, 0, sizeof halls);
    memset(callers, 0, sizeof callers);
    for (unsigned i = 0; i < MANY; i++) {
        open_hall(i);
    }
    for (unsigned i = 0; i < CALLERS; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "/game/eu/pc/w1/gate/gate/%u", i + 1);
        struct ringbus_options options = node_options(&cluster, path);
        options.lane_bytes = 4096;
        options.refs_per_link = 16;
        node_open_with(&callers[i], &options);
        CHECK(ringbus_target(callers[i].bus, HALL, NULL, &any) == 0);
    }
    settle(MANY, SIZE);
    note(first, MANY);
    check_sends(first);
    for (unsigned i = 0; i < CALLERS; i++) {
        for (unsigned h = 1; h <= MANY; h++) {
            used[h] += first[i] >> h & 1U;
        }
    }
    for (unsigned h = 1; h <= MANY; h++) {
        assert_in_range(used[h], 2, CALLERS * 3 / 4); /* of 9 on the average */
    }

    /* One comes: who takes it lets go of one other. */
    for (unsigned i = 0; i < CALLERS; i++) {
        callers[i].events[RINGBUS_EVENT_ADDED] = 0;
    }
    open_hall(MANY);
    STEP_UNTIL(all_saw(RINGBUS_EVENT_ADDED));
    settle(MANY + 1, SIZE);
    note(then, MANY + 1);
    unsigned changed = 0;
    for (unsigned i = 0; i < CALLERS; i++) {
        const unsigned lost = (unsigned)__builtin_popcount(first[i] & ~then[i]);
        assert_true(lost <= 1);
        assert_true(lost == 0 || (then[i] >> (MANY + 1) & 1U) != 0);
        changed += lost;
    }
    assert_in_range(changed, 1, CALLERS / 2 + 6);
    check_sends(then);

    /* It goes: who had it has again the one of before. */
    node_close(&halls[MANY]);
    memset(&halls[MANY], 0, sizeof halls[MANY]);
    STEP_UNTIL(all_saw(RINGBUS_EVENT_REMOVED));
    settle(MANY, SIZE);
    note(then, MANY);
    assert_memory_equal(first, then, sizeof first);

    /* The policy lets it be. */
    CHECK(cluster_configure(&cluster, config_of_all) == 0);
    CHECK(kill(cluster.pid, SIGHUP) == 0);
    STEP_UNTIL(settled(MANY, MANY));
    for (unsigned i = 0; i < CALLERS; i++) {
        node_close(&callers[i]);
    }
    for (unsigned i = 0; i < MANY; i++) {
        node_close(&halls[i]);
    }
}

static int setup(void **state)
{
    (void)state;
    return cluster_up(&cluster, config);
}

static int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_links_to_some, setup, teardown),
    };
    return cmocka_run_group_tests_name("subset", tests, NULL, NULL);
}
