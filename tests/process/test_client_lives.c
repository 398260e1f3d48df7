/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lives so short that they are over before the peer has looked: a client that comes back under
 * its address, where the end of the old life comes first, however much of it is still to be
 * read (scenario 2); a server that dies in the moment in which it was found.
 */
#include "support/bus.h"
#include "support/test.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define SERVER   "/game/eu/pc/w1/core/server"
#define SERVER_1 SERVER "/1"
#define CLIENT_1 "/game/eu/pc/w1/core/client/1"
#define COUNT    500U /* messages of a life that are still unread when the next begins */
#define LIVES    16U
#define READY_MS 20U

static struct cluster cluster;
static struct node server;

enum { WORD_SENT, WORD_LIFE };

/* Sends what identifies its life, and dies. The address may be taken for a moment longer. */
static void send_and_die(const struct cluster *at, void *context)
{
    static struct node client;
    struct ringbus_options options = node_options(at, CLIENT_1);
    const uint64_t life = atomic_load(&bus_shared[WORD_LIFE]);
    int r = 0;
    (void)context;
    while ((r = node_try_open(&client, &options)) == RINGBUS_E_IN_USE) {
        test_sleep_ms(1);
    }
    CHECK(r == 0);
    node_target(&client, SERVER, 1, NULL);
    for (unsigned i = 0; i < COUNT; i++) {
        CHECK(ringbus_send(client.bus, &client.peer, 0, &life, sizeof life, 0) == 1);
    }
    atomic_store(&bus_shared[WORD_SENT], life);
    (void)kill(getpid(), SIGKILL);
}

static struct {
    uint64_t lives;    /* READY so far */
    uint64_t ends;     /* DOWN so far */
    uint64_t messages; /* of the life that is up */
    uint32_t incarnation;
} seen;

static void on_event(struct node *node, const struct ringbus_event *event)
{
    (void)node;
    if (event->type == RINGBUS_EVENT_READY) {
        CHECK(seen.lives == seen.ends);
        CHECK(event->addr.incarnation != seen.incarnation);
        seen.lives++;
        seen.messages = 0;
        seen.incarnation = event->addr.incarnation;
    } else if (event->type == RINGBUS_EVENT_DOWN) {
        CHECK(event->addr.incarnation == seen.incarnation);
        CHECK(event->reason == RINGBUS_REASON_CRASHED || event->reason == RINGBUS_REASON_REPLACED);
        CHECK(seen.messages == COUNT);
        seen.ends++;
    }
}

static void on_message(struct node *node, const struct ringbus_message *message)
{
    uint64_t life = 0;
    (void)node;
    CHECK(seen.lives == seen.ends + 1);
    CHECK(message->from.incarnation == seen.incarnation);
    memcpy(&life, message->data, sizeof life);
    CHECK(life == seen.lives);
    seen.messages++;
}

/*
 * One message a poll: the lanes of two lives are looked at in turn. When a link was taken in,
 * its READY has time to come while most of the old lane is unread: too late, and the test says
 * less, but nothing wrong.
 */
static void poll_until(uint64_t lives, uint64_t ends)
{
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    unsigned fds = bus_fd_count();
    while (seen.lives < lives || seen.ends < ends) {
        assert_true(test_now_ms() < deadline_ms);
        assert_true(ringbus_poll(server.bus, 1) >= 0);
        const unsigned now = bus_fd_count();
        if (now > fds) {
            test_sleep_ms(READY_MS);
        }
        fds = now;
    }
}

static void test_next_life_begins_behind_the_end_of_the_last(void **state)
{
    (void)state;
    bus_shared_reset();
    memset(&seen, 0, sizeof seen);
    const unsigned fds = bus_fd_count();
    server.on_event = on_event;
    server.on_message = on_message;
    node_open(&server, &cluster, SERVER_1);
    for (uint64_t life = 1; life <= LIVES; life++) {
        atomic_store(&bus_shared[WORD_LIFE], life);
        const pid_t pid = child_start(send_and_die, &cluster, NULL);
        poll_until(life, life - 1);
        /* It dies, and nothing of it is read before the next one asks for its link. */
        assert_int_equal(child_wait(pid, NODE_MS), 128 + SIGKILL);
        assert_int_equal(atomic_load(&bus_shared[WORD_SENT]), life);
        assert_true(seen.messages < COUNT);
    }
    poll_until(LIVES, LIVES);
    assert_int_equal(node_stats(&server).received, LIVES * COUNT);
    node_close(&server);
    assert_int_equal(bus_fd_count(), fds);
}

/* ---- a server that dies young -------------------------------- */

#define YOUNG_ROUNDS 10U

static void greet_and_die(struct node *node, const struct ringbus_event *event)
{
    const uint64_t life = atomic_load(&bus_shared[WORD_LIFE]);
    if (event->type == RINGBUS_EVENT_READY) {
        CHECK(ringbus_send(node->bus, &event->addr, 0, &life, sizeof life, 0) == 1);
        atomic_store(&bus_shared[WORD_SENT], life);
        (void)kill(getpid(), SIGKILL);
    }
}

static void serve_shortly(const struct cluster *at, void *context)
{
    static struct node young = {.on_event = greet_and_die};
    (void)context;
    node_open(&young, at, SERVER_1);
    RUN_UNTIL(false, NODE_MS, &young);
}

/*
 * It took up the link that we asked for, sent, and died before we had read a word of it: that
 * is a link that was READY, and what it had committed is delivered.
 */
static void test_server_that_dies_before_its_answer_is_read(void **state)
{
    (void)state;
    static struct node client;
    bus_shared_reset();
    for (uint64_t life = 1; life <= YOUNG_ROUNDS; life++) {
        client.on_event = NULL;
        client.on_message = NULL;
        node_open(&client, &cluster, NULL);
        assert_int_equal(ringbus_target(client.bus, SERVER_1, NULL, NULL), 0);
        atomic_store(&bus_shared[WORD_LIFE], life);
        const pid_t pid = child_start(serve_shortly, &cluster, NULL);
        /* Seldom: what it does upon our READY, and its end, lie between two polls. */
        const uint64_t deadline_ms = test_now_ms() + NODE_MS;
        while (client.events[RINGBUS_EVENT_DOWN] + client.events[RINGBUS_EVENT_LINK_FAILED] == 0) {
            assert_true(test_now_ms() < deadline_ms);
            assert_true(ringbus_poll(client.bus, 10) >= 0);
            test_sleep_ms(READY_MS);
        }
        assert_int_equal(child_wait(pid, NODE_MS), 128 + SIGKILL);
        assert_int_equal(atomic_load(&bus_shared[WORD_SENT]), life);
        assert_int_equal(client.events[RINGBUS_EVENT_READY], 1);
        assert_int_equal(client.messages, 1);
        assert_int_equal(client.events[RINGBUS_EVENT_DOWN], 1);
        assert_int_equal(client.events[RINGBUS_EVENT_LINK_FAILED], 0);
        assert_int_equal(client.reason, RINGBUS_REASON_CRASHED);
        assert_int_equal(node_stats(&client).bad_peer, 0);
        node_close(&client);
    }
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
        cmocka_unit_test(test_next_life_begins_behind_the_end_of_the_last),
        cmocka_unit_test(test_server_that_dies_before_its_answer_is_read),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
