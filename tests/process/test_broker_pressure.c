/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Back-pressure through a broker (features D54; guarantee 6): who reads slowly is felt by who sends
 * to it, as a full lane, and by nobody else; what was accepted arrives, all of it and in order; and
 * what waits in between is bounded.
 */
#include "broker_process.h"

#define AREA    "/game/eu/pc/w1/"
#define SLOW    AREA "inner/slow"
#define QUICK   AREA "inner/quick"
#define TIMEOUT 10000U
#define MOST    100000U
#define LARGE   40000U

static struct cluster cluster;
static struct broker broker;
static struct node sender, other, slow, quick;
static uint64_t next_number; /* that the slow one is to have */
static size_t expected_size;

static void take(struct node *node, const struct ringbus_message *message)
{
    uint64_t number = 0;
    (void)node;
    CHECK(message->size == expected_size);
    memcpy(&number, message->data, sizeof number);
    CHECK(number == next_number);
    next_number++;
    if (message->kind == RINGBUS_KIND_REQUEST) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, message->data, message->size, 0) == 1);
    }
}

static void answer(struct node *node, const struct ringbus_message *message)
{
    if (message->kind == RINGBUS_KIND_REQUEST) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, "quick", 5, 0) == 1);
    }
}

static void open_all(const char *more, struct ringbus_addr *to_slow, struct ringbus_addr *to_quick)
{
    char config[1024];
    next_number = 0;
    memset(&sender, 0, sizeof sender);
    memset(&other, 0, sizeof other);
    memset(&slow, 0, sizeof slow);
    memset(&quick, 0, sizeof quick);
    slow.on_message = take;
    quick.on_message = answer;
    struct ringbus_options options = node_options(&cluster, SLOW "/1");
    options.lane_bytes = 1U << 20; /* all its answers find room, towards the broker */
    node_open_with(&slow, &options);
    node_open(&quick, &cluster, QUICK "/1");
    (void)snprintf(config, sizeof config,
                   "broker: {%s}\n"
                   "sides:\n"
                   "  - {name: bus, socket: %s, path: " AREA "edge/broker/b1}\n"
                   "exports:\n"
                   "  - {id: all, from: bus, to: bus, match: " AREA "inner/*, as: " AREA
                   "shown/*}\n",
                   more, cluster.socket);
    broker_start(&broker, &cluster, "broker", config);
    node_open(&sender, &cluster, AREA "gate/gate/1");
    node_open(&other, &cluster, AREA "gate/gate/2");
    CHECK(ringbus_target(sender.bus, AREA "shown/slow", NULL, to_slow) == 0);
    CHECK(ringbus_target(other.bus, AREA "shown/quick", NULL, to_quick) == 0);
    RUN_UNTIL(sender.events[RINGBUS_EVENT_READY] == 1 && other.events[RINGBUS_EVENT_READY] == 1 &&
                  slow.events[RINGBUS_EVENT_READY] == 1 && quick.events[RINGBUS_EVENT_READY] == 1,
              NODE_MS, &sender, &other, &slow, &quick);
}

static void close_all(void)
{
    node_close(&sender);
    node_close(&other);
    node_close(&slow);
    node_close(&quick);
    broker_kill(&broker);
}

static void ask_quick(const struct ringbus_addr *to, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        const unsigned before = other.replies[RINGBUS_REPLIED];
        CHECK(ringbus_request(other.bus, to, 0, "?", 1, 0, TIMEOUT, node_on_result, &other) == 1);
        RUN_UNTIL(other.replies[RINGBUS_REPLIED] == before + 1, NODE_MS, &other, &quick);
    }
}

/* Sends until the lane has been full for a while. @return how many were accepted */
static uint64_t fill(const struct ringbus_addr *to, size_t size)
{
    static unsigned char data[LARGE];
    uint64_t sent = 0;
    uint64_t since_ms = 0;
    while (since_ms == 0 || test_now_ms() - since_ms < 300) {
        memcpy(data, &sent, sizeof sent);
        const int r = ringbus_send(sender.bus, to, 0, data, size, 0);
        CHECK(r == 1 || r == RINGBUS_E_FULL || r == RINGBUS_E_NO_CHUNK);
        CHECK(sent < MOST);
        since_ms = r == 1 ? 0 : since_ms == 0 ? test_now_ms() : since_ms;
        sent += r == 1;
        nodes_step((struct node *const[]){&sender}, 1);
    }
    return sent;
}

static void slow_reader(size_t size, uint64_t most)
{
    struct ringbus_addr to_slow;
    struct ringbus_addr to_quick;
    expected_size = size;
    open_all("hold: 100ms", &to_slow, &to_quick); /* not for room */
    uint64_t sent = fill(&to_slow, size);
    assert_in_range(sent, 10, most);
    /* Nobody else notices. */
    ask_quick(&to_quick, 50);
    assert_int_equal(next_number, 0);
    RUN_UNTIL(next_number == sent, NODE_MS, &slow, &sender);
    /* And so it goes on. */
    for (unsigned i = 0; i < 300; i++) {
        static unsigned char data[LARGE];
        int r = 0;
        memcpy(data, &sent, sizeof sent);
        RUN_UNTIL((r = ringbus_send(sender.bus, &to_slow, 0, data, size, 0)) == 1, NODE_MS, &sender,
                  &slow);
        sent++;
    }
    RUN_UNTIL(next_number == sent, NODE_MS, &slow, &sender);
    assert_int_equal(sender.events[RINGBUS_EVENT_REFUSED], 0);
    assert_int_equal(sender.events[RINGBUS_EVENT_UNDELIVERED], 0);
    close_all();
}

/* In the lanes: two of 64 KiB, in lines of 64 bytes, are all that is between the two. */
static void test_small_messages(void **state)
{
    (void)state;
    slow_reader(48, 2 * 65536 / 64);
}

/* By reference: what the pools of the sender and the broker have. */
static void test_large_messages(void **state)
{
    (void)state;
    slow_reader(LARGE, 64);
}

/*
 * A caller that does not read its answers: they wait, bounded by what it has under way, of which
 * more is refused; others get theirs; and once it reads, each request has its own end.
 */
static void test_caller_that_does_not_read(void **state)
{
    (void)state;
    struct ringbus_addr to_slow;
    struct ringbus_addr to_quick;
    static unsigned char data[4000];
    uint64_t sent = 0;
    expected_size = sizeof data;
    open_all("requests: 100", &to_slow, &to_quick);
    while (sent < 300) {
        memcpy(data, &sent, sizeof sent);
        const int r = ringbus_request(sender.bus, &to_slow, 0, data, sizeof data, 0, TIMEOUT,
                                      node_on_result, &sender);
        CHECK(r == 1 || r == RINGBUS_E_FULL);
        sent += r == 1;
        /* Not the sender: it only sends. */
        nodes_step((struct node *const[]){&slow}, 1);
        if (next_number >= 100) {
            break;
        }
    }
    ask_quick(&to_quick, 50);
    RUN_UNTIL(sender.replies[0] + sender.replies[1] + sender.replies[2] + sender.replies[3] == sent,
              NODE_MS, &sender, &slow);
    assert_int_equal(sender.replies[RINGBUS_REPLIED], next_number);
    assert_int_equal(sender.replies[RINGBUS_REPLIED] + sender.replies[RINGBUS_NOT_SENT], sent);
    assert_true(sender.replies[RINGBUS_REPLIED] >= 100);
    close_all();
}

/* One that has as many under way as it may is told so, and others are not concerned. */
static void test_requests_under_way_are_limited(void **state)
{
    (void)state;
    struct ringbus_addr to_slow;
    struct ringbus_addr to_quick;
    open_all("requests: 100", &to_slow, &to_quick);
    slow.on_message = NULL; /* it never answers */
    for (unsigned i = 0; i < 150; i++) {
        CHECK(ringbus_request(sender.bus, &to_slow, 0, "x", 1, 0, 1000, node_on_result, &sender) ==
              1);
    }
    RUN_UNTIL(sender.replies[RINGBUS_NOT_SENT] == 50, NODE_MS, &sender, &slow);
    assert_int_equal(sender.reply_error, RINGBUS_E_LIMITED);
    assert_int_equal(sender.replies[RINGBUS_UNKNOWN], 0);
    ask_quick(&to_quick, 20);
    RUN_UNTIL(sender.replies[RINGBUS_UNKNOWN] == 100, NODE_MS, &sender, &slow);
    assert_int_equal(sender.reply_error, RINGBUS_E_TIMEOUT);
    /* Whose time is over has room again, also there. */
    CHECK(kill(broker.pid, SIGUSR1) == 0);
    broker_log_wait(&broker, "event=broker_counters", 1);
    slow.on_message = answer;
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    while (sender.replies[RINGBUS_REPLIED] == 0) {
        const unsigned before = sender.replies[RINGBUS_REPLIED] + sender.replies[RINGBUS_NOT_SENT];
        CHECK(test_now_ms() < deadline_ms);
        CHECK(ringbus_request(sender.bus, &to_slow, 0, "x", 1, 0, TIMEOUT, node_on_result,
                              &sender) == 1);
        RUN_UNTIL(sender.replies[RINGBUS_REPLIED] + sender.replies[RINGBUS_NOT_SENT] == before + 1,
                  NODE_MS, &sender, &slow);
    }
    close_all();
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
        cmocka_unit_test(test_small_messages),
        cmocka_unit_test(test_large_messages),
        cmocka_unit_test(test_caller_that_does_not_read),
        cmocka_unit_test(test_requests_under_way_are_limited),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
