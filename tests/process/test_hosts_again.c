/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RINGBUS_ON_DOWN_REDELIVER between two hosts whose bridges are killed under load: whatever was on
 * its way, each number comes once and in order, both ways (scenario 108).
 */
#include "support/hosts.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PER_MS  5U
#define BACK_MS 20000U /* by which all has to be as before */
#define LARGE   20000U

struct side {
    struct node node;
    struct ringbus_addr to;
    uint64_t sent;
    uint64_t came; /* of the other's */
    uint64_t again;
    unsigned lost; /* events that say so */
};

static struct hosts hosts;
static struct side sides[2];
static uint64_t seed = 11;
static uint64_t sent_ms;

static bool is_full(void)
{
    return getenv("RINGBUS_TEST_FULL") != NULL; /* NOLINT(concurrency-mt-unsafe) */
}

static void on_numbered(struct node *node, const struct ringbus_message *message)
{
    struct side *side = node->context;
    uint64_t number = 0;
    CHECK(message->size >= sizeof number);
    memcpy(&number, message->data, sizeof number);
    if (number != side->came + 1) {
        print_error("number %llu behind %llu\n", (unsigned long long)number,
                    (unsigned long long)side->came);
    }
    CHECK(number == side->came + 1);
    side->came = number;
    side->again += (message->flags & RINGBUS_MESSAGE_REDELIVERED) != 0;
}

static void on_event(struct node *node, const struct ringbus_event *event)
{
    struct side *side = node->context;
    side->lost += event->type == RINGBUS_EVENT_UNDELIVERED || event->type == RINGBUS_EVENT_GAP;
}

static void send_due(struct side *side)
{
    static unsigned char data[LARGE];
    for (uint64_t left = (test_now_ms() - sent_ms) * PER_MS; left > 0; left--) {
        const uint64_t number = side->sent + 1;
        const size_t size = number % 97 == 0 ? LARGE : 8 + number % 200;
        memcpy(data, &number, sizeof number);
        if (ringbus_send(side->node.bus, &side->to, 0, data, size, 0) != 1) {
            return; /* not accepted: FULL, or there is no link */
        }
        side->sent = number;
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

/* Something that is sent from now on comes, both ways. */
static void until_back(void)
{
    const uint64_t from[] = {sides[0].sent, sides[1].sent};
    const uint64_t until_ms = test_now_ms() + BACK_MS;
    while (sides[1].came <= from[0] || sides[0].came <= from[1]) {
        step();
        CHECK(test_now_ms() < until_ms);
    }
}

static int setup(void **state)
{
    const struct hosts_options options = {.count = 2};
    const struct ringbus_target_options again = {
        .struct_size = sizeof again, .on_down = RINGBUS_ON_DOWN_REDELIVER, .redeliver_ms = 60000};
    (void)state;
    hosts_up(&hosts, &options);
    for (unsigned i = 0; i < 2; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "/Game/eu/pc/w1/core/again%u/1", i);
        sides[i] = (struct side){
            .node = {.on_message = on_numbered, .on_event = on_event, .context = &sides[i]}};
        node_open(&sides[i].node, &hosts.host[i].cluster, path);
    }
    struct node *const a = &sides[0].node;
    struct node *const b = &sides[1].node;
    CHECK(ringbus_target(a->bus, "/Game/eu/pc/w1/core/again1/1", &again, &sides[0].to) == 0);
    CHECK(ringbus_target(b->bus, "/Game/eu/pc/w1/core/again0/1", &again, &sides[1].to) == 0);
    RUN_UNTIL(a->events[RINGBUS_EVENT_READY] > 0 && b->events[RINGBUS_EVENT_READY] > 0, NODE_MS, a,
              b);
    sent_ms = test_now_ms();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)ringbus_close(sides[0].node.bus, 0);
    (void)ringbus_close(sides[1].node.bus, 0);
    hosts_down(&hosts);
    return 0;
}

static void test_all_comes_once_though_bridges_are_killed(void **state)
{
    const unsigned deaths = is_full() ? 100 : 6;
    (void)state;
    for (unsigned i = 0; i < deaths; i++) {
        run_for(50 + (unsigned)(bus_random(&seed) % 200));
        hosts_bridge_kill(&hosts, i % 2);
        run_for((unsigned)(bus_random(&seed) % 200));
        hosts_bridge_start(&hosts, i % 2);
        until_back();
    }
    RUN_UNTIL(sides[0].came == sides[1].sent && sides[1].came == sides[0].sent, NODE_MS,
              &sides[0].node, &sides[1].node);
    uint64_t redelivered = 0;
    for (unsigned i = 0; i < 2; i++) {
        const struct ringbus_stats stats = node_stats(&sides[i].node);
        print_message("%u: %llu sent, %llu of them sent again; of the other's %llu were marked so, "
                      "%llu had been read\n",
                      i, (unsigned long long)sides[i].sent, (unsigned long long)stats.redelivered,
                      (unsigned long long)sides[i].again, (unsigned long long)stats.duplicates);
        assert_int_equal(sides[i].lost, 0);
        assert_int_equal(stats.undelivered, 0);
        redelivered += stats.redelivered;
    }
    assert_true(redelivered > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_comes_once_though_bridges_are_killed, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
