/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 131: order per pair over all kinds and sizes, in both directions, and the end
 * of the link after the last message.
 */
#include "support/bus.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define SERVER   "/game/eu/pc/w1/core/server"
#define SERVER_1 SERVER "/1"
#define CLIENT_1 "/game/eu/pc/w1/core/client/1"

#define COUNT           (1000000U / TEST_SCALE)
#define INLINE_MAX      128U
#define SIZE_MAX_SENT   512U
#define OUTSTANDING_MAX 64U

enum { WORD_RECEIVED, WORD_BACK };

static struct cluster cluster;

static void options_of(struct ringbus_options *options)
{
    const struct ringbus_pool_class pool[] = {{SIZE_MAX_SENT, 64}};
    options->inline_max = INLINE_MAX;
    options->ping_interval_ms = 60000;
    memcpy(options->pool, pool, sizeof pool);
}

/* ---- the server ------------------------------------------------------------------------- */

static struct {
    uint64_t expected; /* next number of the client */
    uint64_t number;   /* next number of ours */
    struct ringbus_reply_to waiting[OUTSTANDING_MAX];
    unsigned first;
    unsigned count;
} server;

static uint64_t number_of(const struct ringbus_message *message)
{
    uint64_t number = UINT64_MAX;
    CHECK(message->size >= sizeof number);
    memcpy(&number, message->data, sizeof number);
    return number;
}

/* Answers in turn, as far as there is room. */
static void answer_waiting(struct node *node)
{
    unsigned char payload[SIZE_MAX_SENT] = {0};
    while (server.count > 0) {
        const struct ringbus_reply_to *to = &server.waiting[server.first];
        const size_t size = 8 + server.number * 37 % (SIZE_MAX_SENT - 8);
        memcpy(payload, &server.number, sizeof server.number);
        const int r = ringbus_reply(node->bus, to, payload, size, 0);
        if (r == RINGBUS_E_FULL || r == RINGBUS_E_NO_CHUNK) {
            return;
        }
        CHECK(r == 1);
        server.number++;
        server.first = (server.first + 1) % OUTSTANDING_MAX;
        server.count--;
    }
}

static void on_server_message(struct node *node, const struct ringbus_message *message)
{
    unsigned char payload[SIZE_MAX_SENT] = {0};
    CHECK(node->events[RINGBUS_EVENT_DOWN] == 0);
    CHECK(number_of(message) == server.expected);
    server.expected++;
    if (message->kind == RINGBUS_KIND_REQUEST) {
        CHECK(server.count < OUTSTANDING_MAX);
        server.waiting[(server.first + server.count++) % OUTSTANDING_MAX] = message->reply_to;
    }
    answer_waiting(node);
    if (server.expected % 5 == 0) {
        memcpy(payload, &server.number, sizeof server.number);
        const size_t size = 8 + server.expected % (SIZE_MAX_SENT - 8);
        server.number += ringbus_send(node->bus, &message->from, 0, payload, size, 0) == 1;
    }
}

static void serve(const struct cluster *at, void *context)
{
    static struct node node = {.on_message = on_server_message};
    struct ringbus_options options = node_options(at, SERVER_1);
    (void)context;
    options_of(&options);
    node_open_with(&node, &options);
    while (node.events[RINGBUS_EVENT_DOWN] == 0) {
        CHECK(ringbus_poll(node.bus, 1000) >= 0);
        answer_waiting(&node);
        CHECK(ringbus_wait(node.bus, server.count > 0 ? 1 : 100) >= 0);
    }
    CHECK(node.reason == RINGBUS_REASON_LEFT);
    atomic_store(&bus_shared[WORD_RECEIVED], server.expected);
    atomic_store(&bus_shared[WORD_BACK], server.number);
    CHECK(node_pool_used(&node) == 0);
    node_close(&node);
}

/* ---- the client -------------------------------------------------------------------------- */

static struct {
    uint64_t back; /* next number of the server */
    unsigned outstanding;
    struct ringbus_loan loan;
} client;

static void on_client_message(struct node *node, const struct ringbus_message *message)
{
    (void)node;
    CHECK(number_of(message) == client.back);
    client.back++;
}

static void on_reply(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    (void)bus;
    (void)context;
    CHECK(result->outcome == RINGBUS_REPLIED);
    CHECK(number_of(result->message) == client.back);
    client.back++;
    client.outstanding--;
}

static int
send_in_parts(struct node *node, const struct ringbus_addr *to, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    const struct ringbus_part parts[] = {{bytes, 8}, {NULL, 0}, {bytes + 8, size - 8}};
    return ringbus_sendv(node->bus, to, 0, parts, 3, 0);
}

static int
send_claim(struct node *node, const struct ringbus_addr *to, const void *data, size_t size)
{
    struct ringbus_claim claim;
    int r = ringbus_claim(node->bus, to, 0, SIZE_MAX_SENT / 2 + size / 2, 0, &claim);
    if (r != 0) {
        return r;
    }
    CHECK(claim.size >= 8);
    memcpy(claim.data, data, size < claim.size ? size : claim.size);
    r = ringbus_commit(node->bus, &claim, size < claim.size ? size : claim.size);
    if (r != 1) {
        CHECK(ringbus_abort(node->bus, &claim) == 0);
    }
    return r;
}

static int
send_loan(struct node *node, const struct ringbus_addr *to, const void *data, size_t size)
{
    struct ringbus_loan loan;
    int r = ringbus_loan(node->bus, size, &loan);
    if (r == 0) {
        memcpy(loan.data, data, size);
        r = ringbus_send_loan(node->bus, to, 0, &loan, size, 0);
        CHECK(ringbus_loan_return(node->bus, &loan) == 0);
    }
    return r;
}

static int send_some_way(struct node *node, uint64_t number, uint64_t random)
{
    unsigned char data[SIZE_MAX_SENT] = {0};
    const struct ringbus_addr one = node->peer;
    struct ringbus_addr any = one;
    struct ringbus_addr all = one;
    /* Half of them within a few bytes of the inline limit. */
    const size_t size = random & 0x100 ? INLINE_MAX - 8 + (random >> 16) % 17
                                       : 8 + (random >> 16) % (SIZE_MAX_SENT - 8);
    any.instance = RINGBUS_ANY;
    all.instance = RINGBUS_ALL;
    any.incarnation = all.incarnation = 0;
    memcpy(data, &number, sizeof number);
    switch (random & 7) {
    case 0:
        return send_in_parts(node, &one, data, size);
    case 1:
        return send_claim(node, &one, data, size);
    case 2:
        return send_loan(node, &one, data, size);
    case 3:
        return ringbus_send(node->bus, &all, 0, data, size, 0);
    case 4:
        return ringbus_send(node->bus, &any, random, data, size, random & 0x200 ? RINGBUS_KEY : 0);
    case 5:
        if (client.outstanding < OUTSTANDING_MAX) {
            const int r = ringbus_request(node->bus, &any, 1, data, size,
                                          random & 0x200 ? RINGBUS_KEY : 0, 60000, on_reply, NULL);
            client.outstanding += r == 1;
            return r;
        }
        return ringbus_send(node->bus, &one, 0, data, size, 0);
    case 6:
        return ringbus_send(node->bus, &one, 0, data, size, RINGBUS_MORE);
    default:
        return ringbus_send(node->bus, &one, 0, data, size, 0);
    }
}

static void test_order_over_all_kinds(void **state)
{
    (void)state;
    static struct node node = {.on_message = on_client_message};
    struct ringbus_options options = node_options(&cluster, CLIENT_1);
    uint64_t random = 42;
    uint64_t number = 0;
    uint64_t refused = 0;
    bus_shared_reset();
    const pid_t pid = child_start(serve, &cluster, NULL);
    options_of(&options);
    node_open_with(&node, &options);
    node_target(&node, SERVER, 1, NULL);
    const uint64_t start_ms = test_now_ms();
    while (number < COUNT) {
        const int r = send_some_way(&node, number, bus_random(&random));
        if (r == 1) {
            number++;
        } else {
            /* 0: a broadcast that found the only lane full. */
            assert_true(r == RINGBUS_E_FULL || r == RINGBUS_E_NO_CHUNK || r == 0);
            refused++;
            assert_true(ringbus_wait(node.bus, 1000) >= 0);
        }
        if (r != 1 || number % 64 == 0) {
            assert_true(ringbus_poll(node.bus, 1000) >= 0);
        }
    }
    RUN_UNTIL(client.outstanding == 0, 20000, &node);
    RUN_UNTIL(node_pool_used(&node) == 0, NODE_MS, &node);
    print_message("%u messages, %llu refused, %llu back, %llu ms\n", COUNT,
                  (unsigned long long)refused, (unsigned long long)client.back,
                  (unsigned long long)(test_now_ms() - start_ms));
    /* What the server still sends while we drain counts as well. */
    assert_int_equal(ringbus_close(node.bus, 5000), 0);
    assert_int_equal(child_wait(pid, 10000), 0);
    assert_int_equal(atomic_load(&bus_shared[WORD_RECEIVED]), COUNT);
    assert_int_equal(atomic_load(&bus_shared[WORD_BACK]), client.back);
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
        cmocka_unit_test(test_order_over_all_kinds),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
