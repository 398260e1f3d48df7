/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two hosts under load, and kill -9 of either bridge and of either ringbusd: nothing that was
 * accepted is lost in silence. Each message comes once, or is given back to its sender; its
 * receiver is told how many those are (RINGBUS_EVENT_GAP); what comes keeps its order; and all is
 * as before within seconds, by itself.
 */
#include "support/hosts.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBERS_MAX 4000000U
#define PER_MS      5U
#define LARGE       12000U /* by reference */
#define BACK_MS     20000U /* by which all has to be as before */

enum fate { CAME = 1, BACK_UNSEEN = 2, BACK_MAYBE = 4 };

/** One direction: what became of its numbers. */
struct flow {
    struct ringbus_addr addr;
    uint64_t sent;
    uint64_t last; /* that came; 0: none */
    uint64_t count_came;
    uint64_t count_back;
    uint64_t count_gaps;
    uint64_t gaps_maybe;
    uint64_t back_maybe;
    unsigned wrong;
    unsigned char *fates; /* by number, from 1 */
};

struct side {
    struct node node;
    struct flow out;
    unsigned others; /* ends for another reason than UNREACHABLE */
};

static struct hosts hosts;
static struct side sides[2];
static uint64_t seed = 4;
static uint64_t sent_ms;

static bool is_full(void)
{
    return getenv("RINGBUS_TEST_FULL") != NULL; /* NOLINT(concurrency-mt-unsafe) */
}

static struct side *other_of(const struct side *side)
{
    return side == &sides[0] ? &sides[1] : &sides[0];
}

static uint64_t number_of(const struct ringbus_message *message)
{
    uint64_t number = 0;
    CHECK(message->size >= sizeof number);
    memcpy(&number, message->data, sizeof number);
    CHECK(number > 0 && number < NUMBERS_MAX);
    return number;
}

static void on_numbered(struct node *node, const struct ringbus_message *message)
{
    struct flow *flow = &other_of(node->context)->out;
    const uint64_t number = number_of(message);
    flow->wrong += number <= flow->last || (flow->fates[number] & (CAME | BACK_UNSEEN)) != 0;
    flow->fates[number] |= CAME;
    flow->last = number;
    flow->count_came++;
}

static void on_event(struct node *node, const struct ringbus_event *event)
{
    struct side *side = node->context;
    if (event->type == RINGBUS_EVENT_UNDELIVERED) {
        struct flow *flow = &side->out;
        const uint64_t number = number_of(event->message);
        const unsigned char fate = event->maybe_seen ? BACK_MAYBE : BACK_UNSEEN;
        const unsigned char before = flow->fates[number];
        flow->wrong += (before & (BACK_UNSEEN | BACK_MAYBE)) != 0 ||
                       ((before & CAME) != 0 && !event->maybe_seen);
        flow->fates[number] |= fate;
        flow->count_back++;
        flow->back_maybe += event->maybe_seen ? 1 : 0;
    } else if (event->type == RINGBUS_EVENT_DOWN) {
        /* Its peer lives: it is the bridge that does not. */
        side->others += event->reason != RINGBUS_REASON_UNREACHABLE;
    } else if (event->type == RINGBUS_EVENT_GAP) {
        struct flow *flow = &other_of(side)->out;
        flow->count_gaps += event->count;
        flow->gaps_maybe += event->gap->maybe_seen;
    }
}

static void send_due(struct side *side)
{
    static unsigned char data[LARGE];
    for (uint64_t due = test_now_ms() - sent_ms; due > 0; due--) {
        for (unsigned i = 0; i < PER_MS; i++) {
            const uint64_t number = side->out.sent + 1;
            CHECK(number < NUMBERS_MAX);
            const size_t size = number % 16 == 0 ? LARGE : 8 + number % 200;
            memcpy(data, &number, sizeof number);
            if (ringbus_send(side->node.bus, &side->out.addr, 0, data, size, 0) != 1) {
                return; /* not accepted: FULL, or there is no link */
            }
            side->out.sent = number;
        }
    }
}

static void step(void)
{
    struct node *const nodes[] = {&sides[0].node, &sides[1].node};
    send_due(&sides[0]);
    send_due(&sides[1]);
    sent_ms = test_now_ms();
    nodes_step(nodes, 2);
}

static void run_for(unsigned ms)
{
    const uint64_t until_ms = test_now_ms() + ms;
    while (test_now_ms() < until_ms) {
        step();
    }
}

static int setup(void **state)
{
    const struct hosts_options options = {.count = 2};
    (void)state;
    hosts_up(&hosts, &options);
    for (unsigned i = 0; i < 2; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "/Game/eu/pc/w1/core/side%u/1", i);
        sides[i] = (struct side){
            .node = {.on_message = on_numbered, .on_event = on_event, .context = &sides[i]}};
        sides[i].out.fates = calloc(NUMBERS_MAX, 1);
        CHECK(sides[i].out.fates != NULL);
        node_open(&sides[i].node, &hosts.host[i].cluster, path);
    }
    struct node *const a = &sides[0].node;
    struct node *const b = &sides[1].node;
    CHECK(ringbus_target(a->bus, "/Game/eu/pc/w1/core/side1/1", NULL, &sides[0].out.addr) == 0);
    CHECK(ringbus_target(b->bus, "/Game/eu/pc/w1/core/side0/1", NULL, &sides[1].out.addr) == 0);
    RUN_UNTIL(a->events[RINGBUS_EVENT_READY] > 0 && b->events[RINGBUS_EVENT_READY] > 0, NODE_MS, a,
              b);
    sent_ms = test_now_ms();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        (void)ringbus_close(sides[i].node.bus, 0);
        free(sides[i].out.fates);
    }
    hosts_down(&hosts);
    return 0;
}

/* Something that is sent from now on comes, both ways. */
static void until_back(void)
{
    const uint64_t from[] = {sides[0].out.sent, sides[1].out.sent};
    const uint64_t until_ms = test_now_ms() + BACK_MS;
    while (sides[0].out.last <= from[0] || sides[1].out.last <= from[1]) {
        step();
        CHECK(test_now_ms() < until_ms);
    }
}

static uint64_t count_fates(const struct flow *flow, unsigned char without)
{
    uint64_t count = 0;
    for (uint64_t number = 1; number <= flow->sent; number++) {
        count += (flow->fates[number] & without) == 0;
    }
    return count;
}

static bool accounted(const struct flow *flow)
{
    return count_fates(flow, CAME | BACK_UNSEEN | BACK_MAYBE) == 0;
}

/* Nothing is sent any more: every number has its fate. */
static void check_fates(void)
{
    RUN_UNTIL(accounted(&sides[0].out) && accounted(&sides[1].out), NODE_MS, &sides[0].node,
              &sides[1].node);
    for (unsigned i = 0; i < 2; i++) {
        const struct flow *flow = &sides[i].out;
        const uint64_t both = flow->count_came + flow->count_back - flow->sent;
        const uint64_t missing = count_fates(flow, CAME);
        /* The receiver is told of each that it misses; it may have had some of what it is told. */
        RUN_UNTIL(flow->count_gaps >= missing, NODE_MS, &sides[0].node, &sides[1].node);
        print_message("%u: %llu sent, %llu came, %llu given back (%llu maybe seen, %llu were); the "
                      "receiver misses %llu, was told of %llu (%llu maybe seen)\n",
                      i, (unsigned long long)flow->sent, (unsigned long long)flow->count_came,
                      (unsigned long long)flow->count_back, (unsigned long long)flow->back_maybe,
                      (unsigned long long)both, (unsigned long long)missing,
                      (unsigned long long)flow->count_gaps, (unsigned long long)flow->gaps_maybe);
        assert_int_equal(flow->wrong, 0);
        assert_int_equal(sides[i].others, 0);
        assert_true(both <= flow->back_maybe);
        RUN_UNTIL(node_pool_used(&sides[i].node) == 0, NODE_MS, &sides[0].node, &sides[1].node);
        assert_true(flow->count_gaps <= flow->count_back);
        assert_true(flow->count_gaps - flow->gaps_maybe <= missing);
    }
}

static void test_nothing_is_lost_when_a_bridge_is_killed(void **state)
{
    const unsigned deaths = is_full() ? 100 : 4;
    (void)state;
    for (unsigned i = 0; i < deaths; i++) {
        const unsigned who = i % 2;
        run_for(50 + (unsigned)(bus_random(&seed) % 200));
        hosts_bridge_kill(&hosts, who);
        run_for((unsigned)(bus_random(&seed) % 200));
        hosts_bridge_start(&hosts, who);
        until_back();
    }
    check_fates();
}

static void test_nothing_is_lost_when_a_daemon_is_killed(void **state)
{
    const unsigned deaths = is_full() ? 100 : 4;
    (void)state;
    for (unsigned i = 0; i < deaths; i++) {
        struct cluster *cluster = &hosts.host[i % 2].cluster;
        run_for(50 + (unsigned)(bus_random(&seed) % 200));
        cluster_kill(cluster);
        run_for((unsigned)(bus_random(&seed) % 200));
        assert_int_equal(cluster_start(cluster), 0);
        until_back();
    }
    check_fates();
    /* The links are between endpoints and bridges: they do not need it. */
    assert_int_equal(sides[0].out.count_back + sides[1].out.count_back, 0);
}

static void test_nothing_is_lost_when_all_of_them_are_killed(void **state)
{
    const unsigned deaths = is_full() ? 100 : 3;
    (void)state;
    for (unsigned i = 0; i < deaths; i++) {
        const unsigned who = (unsigned)(bus_random(&seed) % 2);
        run_for(50 + (unsigned)(bus_random(&seed) % 200));
        cluster_kill(&hosts.host[who].cluster);
        hosts_bridge_kill(&hosts, i % 2);
        run_for((unsigned)(bus_random(&seed) % 100));
        hosts_bridge_start(&hosts, i % 2);
        run_for((unsigned)(bus_random(&seed) % 100));
        assert_int_equal(cluster_start(&hosts.host[who].cluster), 0);
        until_back();
    }
    check_fates();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing_is_lost_when_a_bridge_is_killed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_nothing_is_lost_when_a_daemon_is_killed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_nothing_is_lost_when_all_of_them_are_killed, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
