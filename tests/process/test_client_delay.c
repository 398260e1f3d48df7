/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Features 2.8: a limit with max_wait is a leaky bucket. What it lets pass later is kept by its
 * sender and goes when it is due, in order, and only so much of it; nothing of it is lost without a
 * word.
 */
#include "libclient/internal.h"
#include "support/bus.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define SERVICE "/game/eu/pc/w1/core/paced"
#define RATE    200U /* a second */
#define STEP_NS (UINT64_C(1000000000) / RATE)
#define BURST   4U
#define KEPT    200U /* what passes within max_wait: a second at that rate */
#define LARGE   40000U

static const char config[] =
    "clusters:\n"
    "  - match: " SERVICE "\n"
    "    limits:\n"
    "      - {id: pace, rate: 200, burst: 4, max_wait: 1s, methods: 0..9}\n"
    "      - {id: hard, rate: 1, burst: 2, methods: 50}\n";

static struct cluster cluster;
static struct node server;
static struct node client;
static struct ringbus_addr one;
static uint64_t numbers[4096]; /* as they came */
static uint64_t times_ns[4096];
static unsigned came;
static unsigned undelivered;
static uint64_t next_undelivered; /* its number */
static int undelivered_error;

static void take(struct node *node, const struct ringbus_message *message)
{
    CHECK(came < RBI_ARRAY_SIZE(numbers));
    memcpy(&numbers[came], message->data, sizeof numbers[came]);
    times_ns[came++] = rbi_now_ns();
    if (message->reply_to.id != 0) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, "", 0, 0) == 1);
    }
}

static void on_event(struct node *node, const struct ringbus_event *event)
{
    (void)node;
    if (event->type == RINGBUS_EVENT_UNDELIVERED) {
        uint64_t number;
        memcpy(&number, event->message->data, sizeof number);
        CHECK(undelivered == 0 || number == next_undelivered);
        CHECK(event->maybe_seen == 0 && event->message->from.cluster != one.cluster);
        CHECK(event->to.instance == one.instance && event->to.cluster == one.cluster);
        next_undelivered = number + 1;
        undelivered_error = event->error;
        undelivered++;
    }
}

static int set_up(void **state)
{
    (void)state;
    assert_int_equal(cluster_up(&cluster, config), 0);
    server = (struct node){.on_message = take};
    client = (struct node){.on_event = on_event};
    came = undelivered = 0;
    node_open(&server, &cluster, SERVICE "/1");
    struct ringbus_options options = node_options(&cluster, NULL);
    options.lane_bytes = 16384;
    node_open_with(&client, &options);
    assert_int_equal(ringbus_target(client.bus, SERVICE, NULL, &one), 0);
    RUN_UNTIL(client.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &client, &server);
    one.instance = 1;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (client.bus != NULL) {
        node_close(&client);
    }
    node_close(&server);
    cluster_down(&cluster);
    return 0;
}

static int send_number(uint64_t number)
{
    return ringbus_send(client.bus, &one, 0, &number, sizeof number, 0);
}

/* Sends until it is refused. @return how many were taken; the first were sent at once */
static unsigned send_all(unsigned *kept)
{
    unsigned count = 0;
    int r = 0;
    *kept = 0;
    while ((r = send_number(count)) >= 0) {
        *kept += r == 0;
        count++;
    }
    assert_int_equal(r, RINGBUS_E_LIMITED);
    assert_non_null(strstr(ringbus_errmsg(client.bus), "'pace'"));
    assert_true(ringbus_retry_after_us(client.bus) > 0);
    return count;
}

/* In order, and none before its time. */
static void check_pace(uint64_t begun_ns, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(numbers[i], i);
        assert_true(i < (times_ns[i] - begun_ns) / STEP_NS + BURST + 1);
    }
}

static void test_goes_when_it_is_due(void **state)
{
    (void)state;
    unsigned kept = 0;
    const uint64_t begun_ns = rbi_now_ns();
    const unsigned count = send_all(&kept);
    const uint64_t meanwhile = (rbi_now_ns() - begun_ns) / STEP_NS + 1;
    assert_in_range(count, BURST + KEPT, BURST + KEPT + meanwhile);
    assert_in_range(kept, KEPT, count - BURST);
    struct ringbus_stats stats = node_stats(&client);
    assert_int_equal(stats.delayed, kept);
    assert_int_equal(stats.sent, count - kept);
    assert_int_equal(stats.limited, 1); /* the one that was refused */
    RUN_UNTIL(came == count, NODE_MS, &client, &server);
    check_pace(begun_ns, count);
    stats = node_stats(&client);
    assert_int_equal(stats.sent, count);
    assert_int_equal(stats.full, 0);
    /* And from then on as if nothing had been. */
    test_sleep_ms(100);
    (void)ringbus_poll(client.bus, 1);
    assert_int_equal(send_number(count), 1);
    assert_int_equal(client.bus->delays.count, 0);
    assert_int_equal(client.bus->delays.bytes, 0);
}

/* Whatever is sent to the same receiver meanwhile goes behind, also what no limit is about. */
static void test_everything_goes_behind(void **state)
{
    (void)state;
    static unsigned char payload[LARGE];
    const struct ringbus_addr any = {.cluster = one.cluster};
    const struct ringbus_addr all = {.cluster = one.cluster, .instance = RINGBUS_ALL};
    uint64_t n = 0;
    struct ringbus_loan loan;
    struct ringbus_claim claim;
    while (send_number(n) == 1) {
        n++;
    }
    n++;
    struct ringbus_part parts[2] = {{&n, sizeof n}, {payload, LARGE}};
    const struct ringbus_message_options free_of_limits = {.struct_size = sizeof free_of_limits,
                                                           .method = 20};
    assert_int_equal(ringbus_send_with(client.bus, &one, parts, 1, &free_of_limits), 0);
    n++;
    assert_int_equal(ringbus_sendv(client.bus, &any, 0, parts, 2, 0), 0);
    n++;
    assert_int_equal(ringbus_send(client.bus, &all, 0, &n, sizeof n, 0), 0);
    n++;
    assert_int_equal(ringbus_loan(client.bus, LARGE, &loan), 0);
    memcpy(loan.data, &n, sizeof n);
    assert_int_equal(ringbus_send_loan(client.bus, &one, 0, &loan, LARGE, 0), 0);
    assert_int_equal(ringbus_loan_return(client.bus, &loan), 0);
    n++;
    struct ringbus_delivery each;
    struct ringbus_broadcast result = {.struct_size = sizeof result, .each = &each, .each_max = 1};
    assert_int_equal(ringbus_broadcast(client.bus, &all, parts, 1, NULL, &result), 0);
    assert_int_equal(result.delayed, 1);
    assert_int_equal(result.count, 1);
    assert_int_equal(each.error, 0);
    n++;
    /* A claim would be built in the lane, past them. */
    assert_int_equal(ringbus_claim(client.bus, &one, 0, 8, 0, &claim), RINGBUS_E_LIMITED);
    assert_true(ringbus_retry_after_us(client.bus) > 0);
    /* Requests wait as long. */
    const struct ringbus_message_options asks = {
        .struct_size = sizeof asks, .method = 20, .timeout_ms = 60000};
    assert_int_equal(
        ringbus_request_with(client.bus, &one, parts, 1, &asks, node_on_result, &client), 1);
    n++;
    assert_int_equal(came, 0);
    RUN_UNTIL(came == n, NODE_MS, &client, &server);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(numbers[i], i);
    }
    RUN_UNTIL(client.replies[RINGBUS_REPLIED] == 1, NODE_MS, &client, &server);
}

/* Limits that do not wait refuse, as before; the others are not charged for it. */
static void test_refusal_comes_first(void **state)
{
    (void)state;
    const struct ringbus_message_options hard = {.struct_size = sizeof hard, .method = 50};
    const uint64_t number = 0;
    const struct ringbus_part part = {&number, sizeof number};
    assert_int_equal(ringbus_send_with(client.bus, &one, &part, 1, &hard), 1);
    assert_int_equal(ringbus_send_with(client.bus, &one, &part, 1, &hard), 1);
    assert_int_equal(ringbus_send_with(client.bus, &one, &part, 1, &hard), RINGBUS_E_LIMITED);
    assert_non_null(strstr(ringbus_errmsg(client.bus), "'hard'"));
    assert_int_equal(client.bus->delays.count, 0);
}

/* A full lane keeps them, and their order, until there is room. */
static void test_waits_for_room(void **state)
{
    (void)state;
    static unsigned char payload[1000];
    uint64_t n = 0;
    struct node *const alone[] = {&client};
    while (ringbus_send(client.bus, &one, 0, &n, sizeof n, 0) == 1) {
        n++;
    }
    n++;
    for (unsigned i = 0; i < 60; i++) { /* more than the lane has room for */
        memcpy(payload, &n, sizeof n);
        assert_int_equal(ringbus_send(client.bus, &one, 0, payload, sizeof payload, 0), 0);
        n++;
    }
    const uint64_t end_ms = test_now_ms() + 400;
    while (test_now_ms() < end_ms) { /* all of them are due */
        nodes_step(alone, 1);
    }
    assert_true(client.bus->delays.count > 0);
    RUN_UNTIL(came == n, NODE_MS, &client, &server);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(numbers[i], i);
    }
    assert_int_equal(node_stats(&client).full, 0);
}

/* ---- what is not sent in the end ------------------------------------------------------------ */

static void test_comes_back_with_the_link(void **state)
{
    (void)state;
    unsigned kept = 0;
    const unsigned count = send_all(&kept);
    node_close(&server);
    RUN_UNTIL(client.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &client);
    /* Also those that lay in the lane unread: all of them, in order. */
    assert_int_equal(undelivered, count);
    assert_int_equal(next_undelivered, count);
    assert_int_equal(client.bus->delays.count, 0);
    node_open(&server, &cluster, SERVICE "/1");
    RUN_UNTIL(client.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &client, &server);
}

static void test_comes_back_with_its_deadline(void **state)
{
    (void)state;
    uint64_t n = 0;
    while (send_number(n) == 1) {
        n++;
    }
    const uint64_t sent = n + 1;
    const struct ringbus_message_options soon = {.struct_size = sizeof soon, .timeout_ms = 1};
    for (n = 100; n < 120; n++) {
        const struct ringbus_part part = {&n, sizeof n};
        assert_int_equal(ringbus_send_with(client.bus, &one, &part, 1, &soon), 0);
    }
    RUN_UNTIL(client.bus->delays.count == 0, NODE_MS, &client, &server);
    assert_in_range(undelivered, 1, 20);
    assert_int_equal(undelivered_error, RINGBUS_E_TIMEOUT);
    RUN_UNTIL(came + undelivered + server.bus->counters[RBI_COUNTER_expired] == sent + 20, NODE_MS,
              &client, &server);
}

static void test_comes_back_when_closed(void **state)
{
    (void)state;
    unsigned kept = 0;
    (void)send_all(&kept);
    node_close(&client);
    assert_int_equal(undelivered, kept);
    assert_int_equal(undelivered_error, RINGBUS_E_CLOSED);
    client.bus = NULL;
}

/* Who drains has them sent first. */
static void drain_peer(const struct cluster *at, void *context)
{
    struct node node = {0};
    (void)context;
    node_open(&node, at, SERVICE "/2");
    RUN_UNTIL(node.messages == 20, NODE_MS, &node);
    bus_shared[0] = node.messages;
    node_close(&node);
}

static void test_goes_before_a_drained_end(void **state)
{
    (void)state;
    bus_shared_reset();
    const pid_t pid = child_start(drain_peer, &cluster, NULL);
    RUN_UNTIL(client.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &client, &server);
    one.instance = 2;
    for (uint64_t n = 0; n < 20; n++) {
        assert_true(send_number(n) >= 0);
    }
    assert_true(client.bus->delays.count > 0);
    assert_int_equal(ringbus_close(client.bus, NODE_MS), 0);
    client.bus = NULL;
    assert_int_equal(undelivered, 0);
    assert_int_equal(child_wait(pid, NODE_MS), 0);
    assert_int_equal(bus_shared[0], 20);
}

/* Bounded: in number, and in bytes. */
static void test_no_more_than_a_handle_keeps(void **state)
{
    (void)state;
    static unsigned char payload[LARGE];
    uint64_t n = 0;
    while (send_number(n) == 1) {
        n++;
    }
    const struct ringbus_part part = {payload, LARGE};
    const struct ringbus_message_options options = {.struct_size = sizeof options, .method = 20};
    unsigned kept = 0;
    while (ringbus_send_with(client.bus, &one, &part, 1, &options) == 0) {
        kept++;
    }
    assert_int_equal(kept, (RBI_DELAYED_BYTES_MAX - sizeof n) / LARGE);
    assert_int_equal(ringbus_send_with(client.bus, &one, &part, 1, &options), RINGBUS_E_LIMITED);
    const struct ringbus_part small = {&n, sizeof n};
    while (ringbus_send_with(client.bus, &one, &small, 1, &options) == 0) {
        kept++;
    }
    assert_int_equal(kept + 1, RBI_DELAYED_MAX);
    assert_true(ringbus_retry_after_us(client.bus) > 0);
    RUN_UNTIL(client.bus->delays.count == 0, NODE_MS, &client, &server);
}

#define DELAY_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DELAY_TEST(test_goes_when_it_is_due),         DELAY_TEST(test_everything_goes_behind),
        DELAY_TEST(test_refusal_comes_first),         DELAY_TEST(test_waits_for_room),
        DELAY_TEST(test_comes_back_with_the_link),    DELAY_TEST(test_comes_back_with_its_deadline),
        DELAY_TEST(test_comes_back_when_closed),      DELAY_TEST(test_goes_before_a_drained_end),
        DELAY_TEST(test_no_more_than_a_handle_keeps),
    };
    return cmocka_run_group_tests_name("delay", tests, NULL, NULL);
}
