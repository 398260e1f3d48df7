/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights by reported load (features 2.3, A58), through two instances, the daemon and a caller. The
 * rule itself is tests/unit/test_reported.c on virtual time; here the time is real: with
 * RINGBUS_TEST_FULL=1 the 10 s that are ignored are waited for.
 */
#include "libclient/internal.h"
#include "support/bus.h"
#include "support/machine.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define HALL "/game/eu/pc/w1/core/hall"
#define GATE "/game/eu/pc/w1/core/gate/1"

static const char config[] = "clusters:\n"
                             "  - match: " HALL "\n"
                             "    balance: {keyless: weighted, reported_weight: true}\n";

#define SERVERS 2U

struct server {
    struct node node;
    uint64_t got;
    uint64_t told; /* of them, when the load was reported last */
    uint32_t can;  /* messages a second */
};

static struct cluster cluster;
static struct server servers[SERVERS];
static struct node gate;
static struct ringbus_addr to;
static uint64_t reported_ms;

static void on_message(struct node *node, const struct ringbus_message *message)
{
    struct server *server = node->context;
    (void)message;
    server->got++;
}

static void step(void)
{
    struct node *const nodes[] = {&gate, &servers[0].node, &servers[1].node};
    nodes_step(nodes, 3);
}

/* Each says what part of its strength it has used since the last time. */
static void report(void)
{
    const uint64_t now_ms = test_now_ms();
    const uint64_t passed_ms = now_ms - reported_ms;
    if (passed_ms < 500) {
        return;
    }
    for (unsigned i = 0; i < SERVERS; i++) {
        struct server *server = &servers[i];
        uint64_t use = (server->got - server->told) * 1000 * 1000 / (passed_ms * server->can);
        /* A machine that was slow for a while makes good for it at once: no more than all. */
        use = use < 1000 ? use : 1000;
        CHECK(ringbus_report_load(server->node.bus, (uint32_t)use) == 0);
        server->told = server->got;
    }
    reported_ms = now_ms;
}

/* @return share of the first in so many messages, percent */
static unsigned send(unsigned count)
{
    const uint64_t first = servers[0].got;
    const uint64_t all = servers[0].got + servers[1].got;
    for (unsigned i = 0; i < count; i++) {
        int r = 0;
        while ((r = ringbus_send(gate.bus, &to, 0, "hi", 2, 0)) == RINGBUS_E_FULL) {
            step();
        }
        CHECK(r == 1);
        step();
        report();
    }
    while (servers[0].got + servers[1].got - all < count) {
        step();
    }
    return (unsigned)(((servers[0].got - first) * 100 + count / 2) / count);
}

struct shares {
    unsigned count;
    uint32_t weights[SERVERS];
};

static void note(void *user, const struct ringbus_explain_row *row)
{
    struct shares *shares = user;
    if (row->kind == RINGBUS_EXPLAIN_IN && shares->count < SERVERS) {
        shares->weights[shares->count++] = row->weight;
    }
}

/* The first one's share as callers see it, percent. */
static unsigned explained(void)
{
    struct shares shares = {.count = 0};
    CHECK(ringbus_explain(gate.bus, HALL, NULL, note, &shares) == SERVERS);
    return shares.weights[0] * 100 / (shares.weights[0] + shares.weights[1]);
}

static int set_up(void **state)
{
    (void)state;
    if (cluster_up(&cluster, config) != 0) {
        return -1;
    }
    for (unsigned i = 0; i < SERVERS; i++) {
        char path[RINGBUS_PATH_MAX + 1];
        (void)snprintf(path, sizeof path, HALL "/%u", i + 1);
        servers[i] = (struct server){.node = {.on_message = on_message, .context = &servers[i]},
                                     .can = i == 0 ? 20000 : 10000};
        node_open(&servers[i].node, &cluster, path);
    }
    node_open(&gate, &cluster, GATE);
    CHECK(ringbus_target(gate.bus, HALL, NULL, &to) == 0);
    RUN_UNTIL(gate.events[RINGBUS_EVENT_READY] == SERVERS, NODE_MS, &gate, &servers[0].node,
              &servers[1].node);
    reported_ms = test_now_ms();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    node_close(&gate);
    for (unsigned i = 0; i < SERVERS; i++) {
        node_close(&servers[i].node);
    }
    cluster_down(&cluster);
    return 0;
}

static void test_report_is_in_the_page(void **state)
{
    (void)state;
    struct ringbus *bus = gate.bus; /* nobody's instance of a weighed cluster: of no effect */
    assert_int_equal(ringbus_report_load(bus, RINGBUS_UTILISATION_MAX + 1), RINGBUS_E_ARGUMENT);
    assert_int_equal(rbi_load_rlx(&bus->page->load_report), 0);
    assert_int_equal(ringbus_report_load(bus, 250), 0);
    assert_int_equal(rbi_load_rlx(&bus->page->load_report), (UINT64_C(1) << 32) + 250);
    assert_int_equal(ringbus_report_load(bus, RINGBUS_UTILISATION_MAX), 0);
    assert_int_equal(rbi_load_rlx(&bus->page->load_report),
                     (UINT64_C(2) << 32) + RINGBUS_UTILISATION_MAX);
    bus->load_reports = UINT32_MAX; /* the number is never 0 again */
    assert_int_equal(ringbus_report_load(bus, 1), 0);
    assert_int_equal(rbi_load_rlx(&bus->page->load_report), (UINT64_C(1) << 32) + 1);
}

static void test_first_10_s_change_nothing(void **state)
{
    (void)state;
    const uint64_t begin_ms = test_now_ms();
    do {
        const unsigned share = send(100);
        if (test_now_ms() - begin_ms < 9000) {
            assert_int_equal(share, 50);
        }
    } while (test_now_ms() - begin_ms < 2500);
}

static void test_machine_of_twice_the_strength_gets_twice_as_much(void **state)
{
    (void)state;
    if (!machine_full()) {
        skip();
    }
    const uint64_t end_ms = test_now_ms() + 6 * NODE_MS;
    while (explained() < 60) {
        assert_true(test_now_ms() < end_ms);
        (void)send(100);
    }
    for (unsigned i = 0; i < 50; i++) {
        (void)send(100);
    }
    assert_in_range(send(3000), 63, 70);
    assert_in_range(explained(), 63, 70);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_report_is_in_the_page),
        cmocka_unit_test(test_first_10_s_change_nothing),
        cmocka_unit_test(test_machine_of_twice_the_strength_gets_twice_as_much),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
