/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A new life of an instance comes while messages of the old one are still unread: the old
 * one's messages, its DOWN, the new one's READY and messages, in that order (scenario 2).
 */
#include "support/bus.h"
#include "support/test.h"

#include <signal.h>
#include <unistd.h>

#define SERVER   "/game/eu/pc/w1/core/server"
#define SERVER_1 SERVER "/1"
#define CLIENT_1 "/game/eu/pc/w1/core/client/1"
#define COUNT    100U

enum { WORD_SENT, WORD_LIVES };

static struct cluster cluster;
static struct node server;
static struct {
    uint32_t incarnation; /* of the life that speaks now; 0: none */
    unsigned lives;
    unsigned messages; /* of this life */
    unsigned before;   /* messages of the lives that ended */
} heard;

static void on_message(struct node *at, const struct ringbus_message *message)
{
    (void)at;
    CHECK(message->from.incarnation == heard.incarnation);
    CHECK(message->size == sizeof(unsigned));
    heard.messages++;
}

static void on_event(struct node *at, const struct ringbus_event *event)
{
    (void)at;
    if (event->type == RINGBUS_EVENT_READY) {
        CHECK(heard.incarnation == 0);
        heard.incarnation = event->addr.incarnation;
        heard.lives++;
    } else if (event->type == RINGBUS_EVENT_DOWN) {
        CHECK(event->addr.incarnation == heard.incarnation);
        heard.incarnation = 0;
        heard.before += heard.messages;
        heard.messages = 0;
    }
}

/* Sends its messages and waits for its end. */
static void client(const struct cluster *at, void *context)
{
    static struct node peer;
    (void)context;
    node_open(&peer, at, CLIENT_1);
    node_target(&peer, SERVER, 1, NULL);
    for (unsigned i = 0; i < COUNT; i++) {
        RUN_UNTIL(ringbus_send(peer.bus, &peer.peer, 0, &i, sizeof i, 0) == 1, NODE_MS, &peer);
    }
    atomic_fetch_add(&bus_shared[WORD_SENT], 1);
    RUN_UNTIL(false, 600000, &peer);
}

/* One message a poll: what the daemon says of the next life is heard long before the last. */
static void step(void)
{
    CHECK(ringbus_poll(server.bus, 1) >= 0);
    (void)ringbus_wait(server.bus, 0);
    test_sleep_ms(1);
}

static void test_old_life_is_heard_to_its_end_first(void **state)
{
    (void)state;
    bus_shared_reset();
    server.on_message = on_message;
    server.on_event = on_event;
    node_open(&server, &cluster, SERVER_1);
    for (unsigned life = 1; life <= 5; life++) {
        const pid_t pid = child_start(client, &cluster, NULL);
        const uint64_t deadline_ms = test_now_ms() + NODE_MS;
        while (heard.lives < life || atomic_load(&bus_shared[WORD_SENT]) < life) {
            step();
            CHECK(test_now_ms() < deadline_ms);
        }
        child_kill(pid);
    }
    RUN_UNTIL(server.events[RINGBUS_EVENT_DOWN] == 5, NODE_MS, &server);
    assert_int_equal(heard.before, 5 * COUNT);
    node_close(&server);
}

static int setup(void **state)
{
    (void)state;
    return cluster_up(&cluster, "{}\n");
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
        cmocka_unit_test(test_old_life_is_heard_to_its_end_first),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
