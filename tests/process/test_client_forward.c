/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libringbus has for endpoints that stand for others (ringbus/forward.h; features D54, B21):
 * forwarding, leaving a message with its sender, telling that it was dropped, and ending a request
 * as another one has ended; and what all of them refuse.
 */
#include "support/bus.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define AREA    "/game/eu/pc/w1/"
#define FRONT   AREA "edge/front"
#define CORE    AREA "core/core"
#define TIMEOUT 5000U
#define LARGE   50000U

static struct cluster cluster;
static struct node sender, front, core;
static struct ringbus_forwarding how;
static int (*handler)(struct node *node, const struct ringbus_message *message);
static unsigned calls;

static void on_front(struct node *node, const struct ringbus_message *message)
{
    calls++;
    CHECK(handler(node, message) >= 0);
}

static void open_all(void)
{
    memset(&sender, 0, sizeof sender);
    memset(&front, 0, sizeof front);
    memset(&core, 0, sizeof core);
    calls = 0;
    front.on_message = on_front;
    struct ringbus_options options = node_options(&cluster, FRONT "/1");
    options.broker = 1;
    node_open(&core, &cluster, CORE "/1");
    node_open_with(&front, &options);
    node_open(&sender, &cluster, AREA "gate/gate/1");
    const struct ringbus_addr to = node_target(&front, CORE, 1, &core);
    (void)node_target(&sender, FRONT, 1, &front);
    how = (struct ringbus_forwarding){
        .struct_size = sizeof how, .to = to, .via = 99, .timeout_ms = TIMEOUT};
}

static void close_all(void)
{
    node_close(&sender);
    node_close(&front);
    node_close(&core);
}

static struct ringbus_addr front_addr(void)
{
    struct ringbus_addr to;
    CHECK(ringbus_resolve(FRONT, &to) == 0);
    return to;
}

static int send_number(uint64_t number)
{
    const struct ringbus_addr to = front_addr();
    return ringbus_send(sender.bus, &to, 0, &number, sizeof number, 0);
}

/* ---- forwarding ----------------------------------------------------------------------------- */

static int forward(struct node *node, const struct ringbus_message *message)
{
    return ringbus_forward(node->bus, message, node->bus, &how);
}

static unsigned char large[LARGE];
static uint64_t good;

static void check_copy(struct node *node, const struct ringbus_message *message)
{
    struct ringbus_origin origin;
    CHECK(ringbus_origin(node->bus, message, &origin) == 1);
    CHECK(strcmp(origin.path, AREA "gate/gate/1") == 0 && origin.hops == 1 && origin.via[0] == 99);
    CHECK(strcmp(message->from_path, FRONT "/1") == 0);
    CHECK(message->size == LARGE && memcmp(message->data, large, LARGE) == 0);
    CHECK(message->part_count == 3 && message->parts[0].size == 10 && message->parts[1].size == 0);
    CHECK(message->attributes->method == 5 && message->attributes->dest.cluster == 0);
    CHECK(strcmp(message->attributes->tag, "red") == 0);
    good++;
}

/* Payloads by reference too, in their parts; the pools are as they were when all have read. */
static void test_forward(void **state)
{
    (void)state;
    open_all();
    const struct ringbus_addr to = front_addr();
    handler = forward;
    core.on_message = check_copy;
    good = 0;
    for (size_t i = 0; i < LARGE; i++) {
        large[i] = (unsigned char)(i * 7);
    }
    const struct ringbus_part parts[] = {{large, 10}, {NULL, 0}, {large + 10, LARGE - 10}};
    const struct ringbus_message_options options = {.struct_size = sizeof options,
                                                    .flags = RINGBUS_KEY,
                                                    .key = 3,
                                                    .tag = "red",
                                                    .method = 5,
                                                    .dest = {.cluster = 12345}};
    for (unsigned i = 0; i < 50; i++) {
        int r = 0;
        RUN_UNTIL((r = ringbus_send_with(sender.bus, &to, parts, 3, &options)) !=
                      RINGBUS_E_NO_CHUNK,
                  NODE_MS, &sender, &front, &core);
        CHECK(r == 1);
        RUN_UNTIL(good == i + 1, NODE_MS, &sender, &front, &core);
    }
    /* The last chunks are taken back when they are needed. */
    const struct ringbus_stats stats = node_stats(&front);
    assert_int_equal(stats.received, 50);
    assert_int_equal(stats.sent, 50);
    assert_true(stats.pool_used <= 4);
    close_all();
}

/* What a limit lets pass later (max_wait) is kept with where it began. */
static void check_origin(struct node *node, const struct ringbus_message *message)
{
    struct ringbus_origin origin;
    CHECK(ringbus_origin(node->bus, message, &origin) == 1);
    CHECK(strcmp(origin.path, AREA "gate/gate/1") == 0 && origin.hops == 1 && origin.via[0] == 99);
    CHECK(message->size == 8 && memcmp(message->data, &good, 8) == 0);
    good++;
}

static unsigned kept;

static int forward_paced(struct node *node, const struct ringbus_message *message)
{
    const int r = ringbus_forward(node->bus, message, node->bus, &how);
    kept += r == 0;
    return r;
}

static void test_forward_later(void **state)
{
    (void)state;
    struct node paced = {.on_message = check_origin};
    open_all();
    node_open(&paced, &cluster, AREA "core/paced/1");
    how.to = node_target(&front, AREA "core/paced", 1, &paced);
    handler = forward_paced;
    good = kept = 0;
    for (uint64_t i = 0; i < 6; i++) {
        CHECK(send_number(i) == 1);
    }
    RUN_UNTIL(good == 6, NODE_MS, &sender, &front, &paced);
    assert_true(kept >= 1);
    node_close(&paced);
    close_all();
}

static int refusals(struct node *node, const struct ringbus_message *message)
{
    struct ringbus *bus = node->bus;
    struct ringbus_origin origin;
    struct ringbus_forwarding wrong = how;
    struct ringbus_message copy = *message;
    CHECK(ringbus_origin(bus, message, &origin) == 0); /* it comes from its sender */
    CHECK(ringbus_origin(bus, message, NULL) == RINGBUS_E_ARGUMENT);
    CHECK(ringbus_origin(bus, &copy, &origin) == RINGBUS_E_ARGUMENT);
    CHECK(ringbus_forward(bus, &copy, bus, &how) == RINGBUS_E_ARGUMENT);
    CHECK(ringbus_forward(bus, message, NULL, &how) == RINGBUS_E_ARGUMENT);
    CHECK(ringbus_forward(bus, message, bus, NULL) == RINGBUS_E_ARGUMENT);
    wrong.struct_size = 4;
    CHECK(ringbus_forward(bus, message, bus, &wrong) == RINGBUS_E_ARGUMENT);
    wrong = how;
    wrong.via = 0;
    CHECK(ringbus_forward(bus, message, bus, &wrong) == RINGBUS_E_ARGUMENT);
    wrong = how;
    wrong.to.cluster++;
    wrong.on_reply = node_on_result;
    CHECK(ringbus_forward(bus, message, bus, &wrong) == RINGBUS_E_NOT_TARGET);
    if (message->kind == RINGBUS_KIND_REQUEST) {
        CHECK(ringbus_forward(bus, message, bus, &how) == RINGBUS_E_ARGUMENT); /* no callback */
        wrong = how;
        wrong.on_reply = node_on_result;
        wrong.timeout_ms = 0;
        CHECK(ringbus_forward(bus, message, bus, &wrong) == RINGBUS_E_ARGUMENT);
        wrong.timeout_ms = TIMEOUT;
        wrong.to.instance = RINGBUS_ALL;
        CHECK(ringbus_forward(bus, message, bus, &wrong) == RINGBUS_E_ARGUMENT);
    }
    CHECK(ringbus_defer(bus, &copy, 1000) == RINGBUS_E_ARGUMENT);
    CHECK(ringbus_defer(bus, message, 99) == RINGBUS_E_ARGUMENT);
    CHECK(ringbus_defer(bus, message, 1000001) == RINGBUS_E_ARGUMENT);
    CHECK(ringbus_refuse(bus, NULL, RINGBUS_E_FULL, 0) == RINGBUS_E_ARGUMENT);
    CHECK(ringbus_refuse(bus, &message->from, 0, 0) == RINGBUS_E_ARGUMENT);
    CHECK(ringbus_refuse(bus, &message->from, -12345, 0) == RINGBUS_E_ARGUMENT);
    struct ringbus_addr gone = message->from;
    gone.incarnation++;
    CHECK(ringbus_refuse(bus, &gone, RINGBUS_E_FULL, 0) == RINGBUS_E_PEER_GONE);
    struct ringbus_ending ending = {.outcome = RINGBUS_NOT_SENT, .error = RINGBUS_E_FULL};
    CHECK(ringbus_reply_as(bus, &message->reply_to, NULL) == RINGBUS_E_ARGUMENT);
    CHECK(ringbus_reply_as(bus, &message->reply_to, &ending) == RINGBUS_E_ARGUMENT);
    ending.struct_size = sizeof ending;
    ending.error = 0;
    CHECK(ringbus_reply_as(bus, &message->reply_to, &ending) == RINGBUS_E_ARGUMENT);
    ending.error = RINGBUS_E_FULL;
    if (message->kind != RINGBUS_KIND_REQUEST) {
        CHECK(ringbus_reply_as(bus, &message->reply_to, &ending) == RINGBUS_E_NOT_REQUEST);
    } else {
        CHECK(ringbus_reply_as(bus, &message->reply_to, &ending) == 1);
    }
    return 0;
}

static void test_what_is_refused(void **state)
{
    (void)state;
    open_all();
    const struct ringbus_addr to = front_addr();
    handler = refusals;
    CHECK(send_number(1) == 1);
    CHECK(ringbus_request(sender.bus, &to, 0, "x", 1, 0, TIMEOUT, node_on_result, &sender) == 1);
    RUN_UNTIL(sender.replies[RINGBUS_NOT_SENT] == 1, NODE_MS, &sender, &front, &core);
    assert_int_equal(sender.reply_error, RINGBUS_E_FULL);
    assert_int_equal(calls, 2);
    /* Outside of a callback there is no message. */
    const struct ringbus_message none = {.kind = RINGBUS_KIND_ONEWAY};
    struct ringbus_origin origin;
    CHECK(ringbus_origin(front.bus, &none, &origin) == RINGBUS_E_ARGUMENT);
    CHECK(ringbus_forward(front.bus, &none, front.bus, &how) == RINGBUS_E_ARGUMENT);
    CHECK(ringbus_defer(front.bus, &none, 1000) == RINGBUS_E_ARGUMENT);
    close_all();
}

/* Only an endpoint that says that it stands for others leaves messages where they are. */
static int defer_in_vain(struct node *node, const struct ringbus_message *message)
{
    CHECK(ringbus_defer(node->bus, message, 1000) == RINGBUS_E_ARGUMENT);
    return 0;
}

static void test_others_do_not_defer(void **state)
{
    (void)state;
    struct node plain = {.on_message = on_front};
    open_all();
    handler = defer_in_vain;
    node_open(&plain, &cluster, AREA "edge/plain/1");
    const struct ringbus_addr to = node_target(&sender, AREA "edge/plain", 1, &plain);
    CHECK(ringbus_send(sender.bus, &to, 0, "x", 1, 0) == 1);
    RUN_UNTIL(calls == 1, NODE_MS, &sender, &plain);
    node_close(&plain);
    close_all();
}

/* ---- leaving it ----------------------------------------------------------------------------- */

static bool taking;
static uint64_t taken, deferrals;

static int take_or_defer(struct node *node, const struct ringbus_message *message)
{
    uint64_t number = 0;
    memcpy(&number, message->data, sizeof number);
    CHECK(number == taken); /* the same until it is taken, and nothing before it */
    if (!taking) {
        deferrals++;
        return ringbus_defer(node->bus, message, 2000);
    }
    taken++;
    return 0;
}

static void start_deferring(void)
{
    open_all();
    handler = take_or_defer;
    taking = false;
    taken = deferrals = 0;
}

/* The sender finds its lane full in the end; nothing is lost, doubled or counted twice. */
static void test_defer(void **state)
{
    (void)state;
    start_deferring();
    uint64_t sent = 0;
    int r = 0;
    while ((r = send_number(sent)) == 1) {
        sent++;
        CHECK(sent < 100000);
    }
    assert_int_equal(r, RINGBUS_E_FULL);
    RUN_UNTIL(deferrals > 20, NODE_MS, &front, &sender);
    assert_int_equal(node_stats(&front).received, 0);
    CHECK(send_number(sent) == RINGBUS_E_FULL);
    taking = true;
    RUN_UNTIL(taken == sent, NODE_MS, &front, &sender);
    assert_int_equal(node_stats(&front).received, sent);
    assert_int_equal(node_stats(&front).received_bytes, sent * sizeof sent);
    CHECK(send_number(sent) == 1);
    RUN_UNTIL(taken == sent + 1, NODE_MS, &front, &sender);
    close_all();
}

/* One that waits with ringbus_wait() sleeps meanwhile: it looks again when it has said. */
static void test_waiting_for_what_was_left(void **state)
{
    (void)state;
    start_deferring();
    CHECK(send_number(0) == 1);
    RUN_UNTIL(deferrals > 0, NODE_MS, &front, &sender);
    const uint64_t before = deferrals;
    const uint64_t begin_ms = test_now_ms();
    unsigned turns = 0;
    while (deferrals < before + 20) {
        CHECK(ringbus_wait(front.bus, 1000) >= 0);
        CHECK(ringbus_poll(front.bus, 10) >= 0);
        turns++;
    }
    /* 20 times 2 ms, less what a turn is late; it did not turn without end in between. */
    assert_true(test_now_ms() - begin_ms >= 20);
    assert_true(turns < 2000);
    taking = true;
    RUN_UNTIL(taken == 1, NODE_MS, &front, &sender);
    close_all();
}

/* What was left and not handled goes back when the endpoint ends: nobody has had it. */
static unsigned returned;

static void count_returned(struct node *node, const struct ringbus_event *event)
{
    (void)node;
    if (event->type == RINGBUS_EVENT_UNDELIVERED) {
        CHECK(event->maybe_seen == 0);
        returned++;
    }
}

static void test_end_of_who_left_it(void **state)
{
    (void)state;
    start_deferring();
    returned = 0;
    sender.on_event = count_returned;
    for (uint64_t i = 0; i < 10; i++) {
        CHECK(send_number(i) == 1);
    }
    RUN_UNTIL(deferrals > 2, NODE_MS, &front, &sender);
    node_close(&front);
    RUN_UNTIL(returned == 10, NODE_MS, &sender, &core);
    node_close(&sender);
    node_close(&core);
}

/* And the end of its sender leaves it to be read. */
static void test_end_of_the_sender(void **state)
{
    (void)state;
    start_deferring();
    for (uint64_t i = 0; i < 10; i++) {
        CHECK(send_number(i) == 1);
    }
    RUN_UNTIL(deferrals > 2, NODE_MS, &front, &sender);
    node_close(&sender);
    const uint64_t before = deferrals;
    RUN_UNTIL(deferrals > before + 2, NODE_MS, &front, &core);
    taking = true;
    RUN_UNTIL(taken == 10 && front.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &front, &core);
    node_close(&front);
    node_close(&core);
}

/* ---- telling -------------------------------------------------------------------------------- */

static struct ringbus_event last_event;

static void note_refused(struct node *node, const struct ringbus_event *event)
{
    (void)node;
    if (event->type == RINGBUS_EVENT_REFUSED) {
        last_event = *event;
    }
}

static int refuse(struct node *node, const struct ringbus_message *message)
{
    return ringbus_refuse(node->bus, &message->from, RINGBUS_E_NO_INSTANCE, 77);
}

static void test_refuse(void **state)
{
    (void)state;
    open_all();
    handler = refuse;
    sender.on_event = note_refused;
    CHECK(send_number(1) == 1);
    RUN_UNTIL(sender.events[RINGBUS_EVENT_REFUSED] == 1, NODE_MS, &sender, &front);
    assert_int_equal(last_event.error, RINGBUS_E_NO_INSTANCE);
    assert_int_equal(last_event.method, 77);
    assert_int_equal(last_event.count, 1);
    /* Those that come at once are one event. */
    for (uint64_t i = 0; i < 25; i++) {
        CHECK(send_number(i) == 1);
    }
    RUN_UNTIL(sender.events[RINGBUS_EVENT_REFUSED] == 2, NODE_MS, &sender, &front);
    assert_int_equal(last_event.count, 25);
    close_all();
}

static enum ringbus_outcome outcome;
static int error;

static int end_as(struct node *node, const struct ringbus_message *message)
{
    static const struct ringbus_part parts[] = {{"as", 2}, {"told", 4}};
    const struct ringbus_ending ending = {.struct_size = sizeof ending,
                                          .outcome = outcome,
                                          .error = error,
                                          .retry_after_ms = 12,
                                          .parts = parts,
                                          .part_count = 2};
    return ringbus_reply_as(node->bus, &message->reply_to, &ending);
}

static struct {
    struct ringbus_result result;
    char text[32];
    unsigned part_count;
    unsigned count;
} ended;

static void on_ended(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    (void)bus;
    (void)context;
    ended.result = *result;
    ended.count++;
    ended.part_count = result->message != NULL ? result->message->part_count : 0;
    (void)snprintf(ended.text, sizeof ended.text, "%.*s",
                   result->message != NULL ? (int)result->message->size : 0,
                   result->message != NULL ? (const char *)result->message->data : "");
}

static void test_reply_as(void **state)
{
    (void)state;
    static const struct {
        enum ringbus_outcome outcome;
        int error;
        int seen; /* by who asked */
        uint32_t retry;
    } rows[] = {
        {RINGBUS_REPLIED, 0, 0, 0},
        {RINGBUS_FAILED, RINGBUS_E_HANDLER_FAILED, RINGBUS_E_HANDLER_FAILED, 0},
        {RINGBUS_NOT_SENT, RINGBUS_E_NO_ROUTE, RINGBUS_E_NO_ROUTE, 12},
        {RINGBUS_NOT_SENT, RINGBUS_E_FULL, RINGBUS_E_FULL, 12},
        {RINGBUS_UNKNOWN, RINGBUS_E_PEER_GONE, RINGBUS_E_PEER_GONE, 0},
        {RINGBUS_UNKNOWN, RINGBUS_E_TIMEOUT, RINGBUS_E_TIMEOUT, 0},
    };
    open_all();
    const struct ringbus_addr to = front_addr();
    handler = end_as;
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        memset(&ended, 0, sizeof ended);
        outcome = rows[i].outcome;
        error = rows[i].error;
        CHECK(ringbus_request(sender.bus, &to, 0, "x", 1, 0, TIMEOUT, on_ended, NULL) == 1);
        RUN_UNTIL(ended.count == 1, NODE_MS, &sender, &front);
        assert_int_equal(ended.result.outcome, rows[i].outcome);
        assert_int_equal(ended.result.error, rows[i].seen);
        assert_int_equal(ended.result.retry_after_ms, rows[i].retry);
        assert_string_equal(ended.text, "astold");
        assert_int_equal(ended.part_count, 2);
    }
    close_all();
}

/* Of several that stand for others under one name one gets what is for all; others each do. */
static int count_it(struct node *node, const struct ringbus_message *message)
{
    (void)node;
    return message->kind == RINGBUS_KIND_ONEWAY ? 0 : -1;
}

static void test_broadcast_to_brokers(void **state)
{
    (void)state;
    struct node second = {.on_message = on_front};
    struct node plain = {.on_message = on_front};
    open_all();
    handler = count_it;
    struct ringbus_options options = node_options(&cluster, FRONT "/2");
    options.broker = 1;
    node_open_with(&second, &options);
    node_open(&plain, &cluster, FRONT "/3");
    RUN_UNTIL(sender.events[RINGBUS_EVENT_READY] == 3, NODE_MS, &sender, &second, &plain, &front);
    struct ringbus_addr all = front_addr();
    all.instance = RINGBUS_ALL;
    CHECK(ringbus_send(sender.bus, &all, 0, "x", 1, 0) == 2);
    CHECK(ringbus_send(sender.bus, &all, 0, large, LARGE, 0) == 2);
    struct ringbus_delivery each[4];
    struct ringbus_broadcast report = {.struct_size = sizeof report, .each = each, .each_max = 4};
    const struct ringbus_part part = {"x", 1};
    CHECK(ringbus_broadcast(sender.bus, &all, &part, 1, NULL, &report) == 2);
    assert_int_equal(report.count, 3);
    assert_int_equal(report.skipped, 1);
    unsigned skipped = 0;
    for (unsigned i = 0; i < 3; i++) {
        skipped += each[i].error == RINGBUS_E_NO_MATCH;
    }
    assert_int_equal(skipped, 1);
    RUN_UNTIL(front.messages + second.messages == 3 && plain.messages == 3, NODE_MS, &sender,
              &second, &plain, &front);
    /* The first that has room: with the lane of one full, the other. */
    struct ringbus_addr one = all;
    const struct node *full = front.messages > 0 ? &front : &second;
    one.instance = full == &front ? 1 : 2;
    int r = 0;
    while ((r = ringbus_send(sender.bus, &one, 0, large, 4000, 0)) == 1) {
    }
    assert_int_equal(r, RINGBUS_E_FULL);
    const uint64_t before = full == &front ? second.messages : front.messages;
    CHECK(ringbus_send(sender.bus, &all, 0, large, 4000, 0) == 2);
    RUN_UNTIL((full == &front ? second.messages : front.messages) == before + 1, NODE_MS, &sender,
              &second, &plain, &front);
    node_close(&second);
    node_close(&plain);
    close_all();
}

static int setup(void **state)
{
    (void)state;
    return cluster_up(&cluster, "clusters:\n"
                                "  - match: " AREA "core/paced\n"
                                "    limits: [{id: pace, rate: 20, burst: 1, max_wait: 10s}]\n");
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
        cmocka_unit_test(test_forward),
        cmocka_unit_test(test_forward_later),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_others_do_not_defer),
        cmocka_unit_test(test_defer),
        cmocka_unit_test(test_waiting_for_what_was_left),
        cmocka_unit_test(test_end_of_who_left_it),
        cmocka_unit_test(test_end_of_the_sender),
        cmocka_unit_test(test_refuse),
        cmocka_unit_test(test_reply_as),
        cmocka_unit_test(test_broadcast_to_brokers),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
