/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: every way in which one ends, exactly once; scenario 50: late replies. */
#include "support/bus.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SERVER   "/game/eu/pc/w1/core/server"
#define SERVER_1 SERVER "/1"

static struct cluster cluster;
static struct node server;
static struct node client;
static struct ringbus_addr to;

static void open_pair(void)
{
    node_open(&server, &cluster, SERVER_1);
    node_open(&client, &cluster, NULL);
    node_target(&client, SERVER, 1, &server);
    to = client.peer;
}

static void close_pair(void)
{
    node_close(&client);
    node_close(&server);
    server.on_message = NULL;
}

static int ask(uint32_t timeout_ms)
{
    return ringbus_request(client.bus, &to, 0, "question", 8, 0, timeout_ms, node_on_result,
                           &client);
}

/* ---- answers -------------------------------------------------------------------------------- */

static void answer(struct node *node, const struct ringbus_message *message)
{
    CHECK(ringbus_reply(node->bus, &message->reply_to, "yes", 3, 0) == 1);
}

static void refuse(struct node *node, const struct ringbus_message *message)
{
    CHECK(ringbus_reply_error(node->bus, &message->reply_to, "out of stock") == 1);
}

static struct ringbus_reply_to deferred;

static void defer(struct node *node, const struct ringbus_message *message)
{
    (void)node;
    deferred = message->reply_to;
}

static void test_reply(void **state)
{
    (void)state;
    server.on_message = answer;
    open_pair();
    assert_int_equal(ask(5000), 1);
    RUN_UNTIL(client.replies[RINGBUS_REPLIED] == 1, NODE_MS, &server, &client);
    assert_int_equal(client.reply_error, 0);
    assert_int_equal(node_stats(&client).requests, 1);
    assert_int_equal(node_stats(&client).replies, 1);
    close_pair();
}

static bool text_came;

static void on_failure(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    text_came = result->message != NULL && result->message->size == 12 &&
                memcmp(result->message->data, "out of stock", 12) == 0;
    node_on_result(bus, result, context);
}

static void test_reply_error(void **state)
{
    (void)state;
    server.on_message = refuse;
    open_pair();
    assert_int_equal(ringbus_request(client.bus, &to, 0, NULL, 0, 0, 5000, on_failure, &client), 1);
    RUN_UNTIL(client.replies[RINGBUS_FAILED] == 1, NODE_MS, &server, &client);
    assert_int_equal(client.reply_error, RINGBUS_E_HANDLER_FAILED);
    assert_true(text_came);
    close_pair();
}

static void test_no_handler(void **state)
{
    (void)state;
    struct ringbus_options options = node_options(&cluster, SERVER_1);
    struct ringbus *deaf = NULL;
    assert_int_equal(ringbus_open(&options, &deaf), 0);
    server.bus = deaf;
    node_open(&client, &cluster, NULL);
    node_target(&client, SERVER, 1, &server);
    to = client.peer;
    assert_int_equal(ask(5000), 1);
    RUN_UNTIL(client.replies[RINGBUS_FAILED] == 1, NODE_MS, &server, &client);
    close_pair();
}

static void test_deferred_reply(void **state)
{
    (void)state;
    server.on_message = defer;
    open_pair();
    deferred.id = 0;
    assert_int_equal(ask(5000), 1);
    RUN_UNTIL(deferred.id != 0, NODE_MS, &server, &client);
    assert_int_equal(client.replies[RINGBUS_REPLIED], 0);
    assert_int_equal(ringbus_reply(server.bus, &deferred, "later", 5, 0), 1);
    RUN_UNTIL(client.replies[RINGBUS_REPLIED] == 1, NODE_MS, &server, &client);
    /* A second answer ends nothing. */
    const int r = ringbus_reply(server.bus, &deferred, "again", 5, 0);
    assert_true(r == 1 || r == RINGBUS_E_NOT_REQUEST);
    assert_int_equal(ask(5000), 1);
    deferred.id = 0;
    RUN_UNTIL(deferred.id != 0, NODE_MS, &server, &client);
    assert_int_equal(client.replies[RINGBUS_REPLIED], 1);
    assert_int_equal(ringbus_reply(server.bus, &deferred, "b", 1, 0), 1);
    RUN_UNTIL(client.replies[RINGBUS_REPLIED] == 2, NODE_MS, &server, &client);
    deferred.id = 0;
    assert_int_equal(ringbus_reply(server.bus, &deferred, "", 0, 0), RINGBUS_E_NOT_REQUEST);
    close_pair();
}

static void test_timeout_then_late_reply(void **state)
{
    (void)state;
    server.on_message = defer;
    open_pair();
    const uint64_t start_ms = test_now_ms();
    assert_int_equal(ask(50), 1);
    RUN_UNTIL(client.replies[RINGBUS_UNKNOWN] == 1, NODE_MS, &server, &client);
    assert_true(test_now_ms() - start_ms >= 49);
    assert_int_equal(client.reply_error, RINGBUS_E_TIMEOUT);
    assert_int_equal(node_stats(&client).timeouts, 1);
    /* The slot is used again; the late reply must not end the newer request. */
    const struct ringbus_reply_to late = deferred;
    assert_int_equal(ask(5000), 1);
    assert_int_equal(ringbus_reply(server.bus, &late, "late", 4, 0), 1);
    RUN_UNTIL(node_stats(&client).late_replies == 1, NODE_MS, &server, &client);
    assert_int_equal(client.replies[RINGBUS_REPLIED], 0);
    RUN_UNTIL(deferred.id != late.id, NODE_MS, &server, &client);
    assert_int_equal(ringbus_reply(server.bus, &deferred, "in time", 7, 0), 1);
    RUN_UNTIL(client.replies[RINGBUS_REPLIED] == 1, NODE_MS, &server, &client);
    close_pair();
}

static void test_arguments(void **state)
{
    (void)state;
    open_pair();
    struct ringbus_addr all = to;
    all.instance = RINGBUS_ALL;
    const int wrong[] = {
        ringbus_request(client.bus, &all, 0, "", 0, 0, 10, node_on_result, &client),
        ringbus_request(client.bus, NULL, 0, "", 0, 0, 10, node_on_result, &client),
        ringbus_request(client.bus, &to, 0, "", 0, 0, 0, node_on_result, &client),
        ringbus_request(client.bus, &to, 0, "", 0, 0, 3600001, node_on_result, &client),
        ringbus_request(client.bus, &to, 0, "", 0, 0, 10, NULL, &client),
        ringbus_request(client.bus, &to, 0, NULL, 1, 0, 10, node_on_result, &client),
        ringbus_request(client.bus, &to, 0, "", 0, 0x80, 10, node_on_result, &client),
    };
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(wrong[i], RINGBUS_E_ARGUMENT);
    }
    close_pair();
    assert_int_equal(client.replies[RINGBUS_UNKNOWN] + client.replies[RINGBUS_NOT_SENT], 0);
}

/* ---- close, and requests in callbacks -------------------------------------------------------- */

static unsigned ended;

static void ask_again(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    ended++;
    assert_int_equal(result->outcome, RINGBUS_UNKNOWN);
    /* The handle is going: nothing new starts on it, to others or to itself. */
    struct ringbus_addr self;
    assert_int_equal(ringbus_self(bus, &self), 0);
    assert_true(ringbus_request(bus, &self, 0, "", 0, 0, 5000, ask_again, context) < 0);
    assert_int_equal(ringbus_close(bus, 0), RINGBUS_E_BUSY);
}

static void test_close_ends_requests(void **state)
{
    (void)state;
    open_pair();
    struct ringbus_addr self;
    ended = 0;
    assert_int_equal(ringbus_self(client.bus, &self), 0);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(
            ringbus_request(client.bus, i % 2 ? &to : &self, 0, "", 0, 0, 5000, ask_again, NULL),
            1);
    }
    close_pair();
    assert_int_equal(ended, 100);
}

/* ---- the server dies ------------------------------------------------------------------------- */

enum { WORD_READY, WORD_GO, WORD_SEEN };

static void note_seen(struct node *node, const struct ringbus_message *message)
{
    (void)node;
    (void)message;
    atomic_fetch_add(&bus_shared[WORD_SEEN], 1);
}

/* Registers, then reads nothing until told to; then never answers. */
static void serve_silently(const struct cluster *at, void *context)
{
    static struct node node = {.on_message = note_seen};
    (void)context;
    node_open(&node, at, SERVER_1);
    RUN_UNTIL(node.events[RINGBUS_EVENT_READY] > 0, NODE_MS, &node);
    atomic_store(&bus_shared[WORD_READY], 1);
    while (atomic_load(&bus_shared[WORD_GO]) == 0) {
        test_sleep_ms(1);
    }
    for (;;) {
        CHECK(ringbus_poll(node.bus, 1000) >= 0);
        CHECK(ringbus_wait(node.bus, 1000) >= 0);
    }
}

#define ASKED 400U

static void kill_server(bool reads)
{
    bus_shared_reset();
    const pid_t pid = child_start(serve_silently, &cluster, NULL);
    node_open(&client, &cluster, NULL);
    node_target(&client, SERVER, 1, NULL);
    to = client.peer;
    RUN_UNTIL(atomic_load(&bus_shared[WORD_READY]) == 1, NODE_MS, &client);
    for (unsigned i = 0; i < ASKED; i++) {
        assert_int_equal(ask(60000), 1);
    }
    if (reads) {
        atomic_store(&bus_shared[WORD_GO], 1);
        RUN_UNTIL(atomic_load(&bus_shared[WORD_SEEN]) == ASKED, NODE_MS, &client);
    }
    child_kill(pid);
    RUN_UNTIL(client.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &client);
    assert_int_equal(client.reason, RINGBUS_REASON_CRASHED);
    assert_int_equal(client.replies[RINGBUS_UNKNOWN] + client.replies[RINGBUS_NOT_SENT], ASKED);
    assert_int_equal(client.reply_error, RINGBUS_E_PEER_GONE);
}

static void test_server_killed_before_reading(void **state)
{
    (void)state;
    kill_server(false);
    assert_int_equal(client.replies[RINGBUS_NOT_SENT], ASKED);
    node_close(&client);
}

static void test_server_killed_after_reading(void **state)
{
    (void)state;
    kill_server(true);
    assert_int_equal(client.replies[RINGBUS_NOT_SENT], 0);
    node_close(&client);
}

/* ---- many, with nonces ----------------------------------------------------------------------- */

#define MANY         (100000U / TEST_SCALE)
#define UNDER_WAY    1024U
#define TIMEOUT_MS   10U
#define DELAY_MIN_MS 5U
#define DELAY_MS     11U /* 5 to 15 */

struct pending {
    struct ringbus_reply_to to;
    uint64_t nonce;
    uint64_t due_ms;
};

static struct {
    struct pending queue[65536];
    unsigned first;
    unsigned count;
    uint64_t random;
} delayed;

static void delay(struct node *node, const struct ringbus_message *message)
{
    (void)node;
    CHECK(delayed.count < 65536);
    struct pending *entry = &delayed.queue[(delayed.first + delayed.count++) % 65536];
    entry->to = message->reply_to;
    memcpy(&entry->nonce, message->data, sizeof entry->nonce);
    entry->due_ms = test_now_ms() + DELAY_MIN_MS + bus_random(&delayed.random) % DELAY_MS;
}

/* In the order in which they came: a later one waits for those before it. */
static void answer_due(struct node *node)
{
    const uint64_t now_ms = test_now_ms();
    while (delayed.count > 0) {
        const struct pending *entry = &delayed.queue[delayed.first];
        if (entry->due_ms > now_ms) {
            return;
        }
        const int r = ringbus_reply(node->bus, &entry->to, &entry->nonce, sizeof entry->nonce, 0);
        if (r == RINGBUS_E_FULL) {
            return;
        }
        CHECK(r == 1);
        delayed.first = (delayed.first + 1) % 65536;
        delayed.count--;
    }
}

static struct {
    uint64_t under_way;
    uint64_t replied;
    uint64_t timed_out;
    uint64_t wrong;
    unsigned char ended[MANY];
} many;

static void on_nonce(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    const uint64_t nonce = (uint64_t)(uintptr_t)context;
    uint64_t got = 0;
    (void)bus;
    many.under_way--;
    many.wrong += ++many.ended[nonce] != 1;
    if (result->outcome == RINGBUS_REPLIED) {
        many.replied++;
        many.wrong += result->message->size != sizeof got;
        memcpy(&got, result->message->data, sizeof got);
        many.wrong += got != nonce;
    } else {
        many.timed_out++;
        many.wrong += result->error != RINGBUS_E_TIMEOUT || result->outcome != RINGBUS_UNKNOWN;
        many.wrong += result->elapsed_ns < (TIMEOUT_MS - 1) * 1000000U;
    }
}

static void test_many_with_nonces(void **state)
{
    (void)state;
    server.on_message = delay;
    memset(&many, 0, sizeof many);
    open_pair();
    uint64_t nonce = 0;
    const uint64_t deadline_ms = test_now_ms() + 25000;
    while (nonce < MANY || many.under_way > 0 || delayed.count > 0) {
        while (nonce < MANY && many.under_way < UNDER_WAY) {
            const int r = ringbus_request(client.bus, &to, 0, &nonce, sizeof nonce, 0, TIMEOUT_MS,
                                          on_nonce, (void *)(uintptr_t)nonce);
            if (r == RINGBUS_E_FULL) {
                break;
            }
            assert_int_equal(r, 1);
            many.under_way++;
            nonce++;
        }
        assert_true(ringbus_poll(server.bus, 1000) >= 0);
        answer_due(&server);
        assert_true(ringbus_poll(client.bus, 1000) >= 0);
        assert_true(test_now_ms() < deadline_ms);
    }
    RUN_UNTIL(node_stats(&client).replies + node_stats(&client).late_replies == MANY, NODE_MS,
              &client, &server);
    assert_int_equal(many.wrong, 0);
    assert_int_equal(many.replied + many.timed_out, MANY);
    assert_true(many.replied > 0 && many.timed_out > 0);
    const struct ringbus_stats stats = node_stats(&client);
    assert_int_equal(stats.replies, many.replied);
    assert_int_equal(stats.timeouts, many.timed_out);
    assert_int_equal(stats.late_replies, many.timed_out);
    print_message("%u requests: %llu replied, %llu too late\n", MANY,
                  (unsigned long long)many.replied, (unsigned long long)many.timed_out);
    close_pair();
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
        cmocka_unit_test(test_reply),
        cmocka_unit_test(test_reply_error),
        cmocka_unit_test(test_no_handler),
        cmocka_unit_test(test_deferred_reply),
        cmocka_unit_test(test_timeout_then_late_reply),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_close_ends_requests),
        cmocka_unit_test(test_server_killed_before_reading),
        cmocka_unit_test(test_server_killed_after_reading),
        cmocka_unit_test(test_many_with_nonces),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
