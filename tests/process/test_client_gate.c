/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a receiver refuses. Features 2.8 (b): a limit by link, kept where messages are read:
 * requests are answered, everything else waits in the lane of who sent too much, nobody else's.
 * Features 2.9: one that cannot keep up sheds requests, the least important first, and says so.
 */
#include "libclient/internal.h"
#include "support/bus.h"
#include "support/test.h"

#include <signal.h>
#include <string.h>

#define LIMITED "/game/eu/pc/w1/core/limited"
#define BUSY    "/game/eu/pc/w1/core/busy"
#define SLOW    "/game/eu/pc/w1/core/slow"

#define CONFIG(bytes_a_second)                                                                     \
    "clusters:\n"                                                                                  \
    "  - match: " SLOW "\n"                                                                        \
    "    limits: [{id: bytes, scope: receiver, unit: bytes, rate: " bytes_a_second "}]\n"          \
    "  - match: " LIMITED "\n"                                                                     \
    "    limits:\n"                                                                                \
    "      - {id: reading, scope: receiver, rate: 20, burst: 5, caller: " BUSY "/*, methods: 0}\n" \
    "      - {id: patient, scope: receiver, rate: 20, burst: 1, max_wait: 30s, methods: 7}\n"      \
    "  - match: " BUSY "\n"                                                                        \
    "    overload: {sojourn_target: 5ms}\n"

static const char config[] = CONFIG("1");
static const char faster[] = CONFIG("1000000");

static struct cluster cluster;
static struct node server;
static struct node loud;  /* whom the limit concerns */
static struct node quiet; /* whom it does not */
static struct ringbus_addr to;

static int group_setup(void **state)
{
    (void)state;
    bus_shared_reset();
    return cluster_up(&cluster, config);
}

static int group_teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

static void open_all(const char *path, node_message_fn handler)
{
    server = (struct node){.on_message = handler};
    loud = (struct node){.bus = NULL};
    quiet = (struct node){.bus = NULL};
    node_open(&server, &cluster, path);
    node_open(&loud, &cluster, BUSY "/9");
    node_open(&quiet, &cluster, NULL);
    to = node_target(&loud, path, 1, &server);
    (void)node_target(&quiet, path, 1, &server);
}

static int teardown(void **state)
{
    (void)state;
    node_close(&quiet);
    node_close(&loud);
    node_close(&server);
    return 0;
}

/* ---- by link -------------------------------------------------------- */

static void answer(struct node *node, const struct ringbus_message *message)
{
    if (message->kind == RINGBUS_KIND_REQUEST) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, NULL, 0, 0) == 1);
    }
}

static int setup_limited(void **state)
{
    (void)state;
    open_all(LIMITED "/1", answer);
    return 0;
}

static unsigned refused;      /* results with an error */
static uint32_t retry_ms_min; /* the least that they said */

static void on_result(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    node_on_result(bus, result, context);
    if (result->outcome == RINGBUS_NOT_SENT) {
        refused++;
        retry_ms_min =
            retry_ms_min < result->retry_after_ms ? retry_ms_min : result->retry_after_ms;
    }
}

static void ask(struct node *node, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        CHECK(ringbus_request(node->bus, &to, 0, "q", 1, 0, 30000, on_result, node) == 1);
    }
}

static void test_requests_over_the_limit_are_answered(void **state)
{
    (void)state;
    refused = 0;
    retry_ms_min = UINT32_MAX;
    ask(&loud, 50);
    ask(&quiet, 50);
    RUN_UNTIL(loud.replies[RINGBUS_REPLIED] + refused == 50, NODE_MS, &server, &loud, &quiet);
    RUN_UNTIL(quiet.replies[RINGBUS_REPLIED] == 50, NODE_MS, &server, &loud, &quiet);
    CHECK(loud.replies[RINGBUS_REPLIED] >= 5 && refused > 0);
    CHECK(loud.reply_error == RINGBUS_E_LIMITED || loud.reply_error == 0);
    CHECK(retry_ms_min > 0 && retry_ms_min <= 51);
    CHECK(node_stats(&server).limited_in == refused);
}

static uint64_t from_loud;
static uint64_t from_quiet;

static void count_from(struct node *node, const struct ringbus_message *message)
{
    (void)node;
    *(strstr(message->from_path, BUSY) != NULL ? &from_loud : &from_quiet) += 1;
}

static void test_messages_over_the_limit_wait_in_their_own_lane(void **state)
{
    (void)state;
    from_loud = 0;
    from_quiet = 0;
    server.on_message = count_from;
    const uint64_t from_ns = rbi_now_ns();
    for (unsigned i = 0; i < 15; i++) {
        CHECK(ringbus_send(loud.bus, &to, 0, "x", 1, 0) == 1);
    }
    for (unsigned i = 0; i < 100; i++) {
        CHECK(ringbus_send(quiet.bus, &to, 0, "x", 1, 0) == 1);
    }
    RUN_UNTIL(from_quiet == 100, NODE_MS, &server, &loud, &quiet);
    const uint64_t sleeps = node_stats(&server).sleeps;
    /* None is lost and each comes when it is due: ten more at 20 a second. */
    RUN_UNTIL(from_loud == 15, NODE_MS, &server, &loud, &quiet);
    CHECK(rbi_now_ns() - from_ns >= 480 * RBI_NS_PER_MS);
    /* Meanwhile it slept: what may not be read yet wakes nobody. */
    CHECK(node_stats(&server).sleeps > sleeps);
    CHECK(loud.events[RINGBUS_EVENT_DOWN] == 0 && server.events[RINGBUS_EVENT_DOWN] == 0);
}

static int setup_slow(void **state)
{
    (void)state;
    open_all(SLOW "/1", answer);
    return 0;
}

static bool holds(const struct ringbus *bus)
{
    bool any = false;
    for (unsigned i = 0; i < bus->end_count; i++) {
        any = any || bus->ends[i]->held;
    }
    return any;
}

/* What waits by the old rate waits no longer than the new one has it. */
static void test_raised_limit_lets_go_of_what_waits(void **state)
{
    (void)state;
    static const char payload[1000];
    CHECK(ringbus_send(loud.bus, &to, 0, payload, sizeof payload, 0) == 1);
    RUN_UNTIL(server.messages == 1, NODE_MS, &server, &loud, &quiet);
    CHECK(ringbus_send(loud.bus, &to, 0, payload, sizeof payload, 0) == 1); /* for 1,000 s */
    RUN_UNTIL(holds(server.bus), NODE_MS, &server, &loud, &quiet);
    CHECK(server.messages == 1);
    CHECK(cluster_configure(&cluster, faster) == 0);
    CHECK(kill(cluster.pid, SIGHUP) == 0);
    while (server.messages == 1) {
        CHECK(ringbus_wait(server.bus, 3 * NODE_MS) == 1);
        CHECK(ringbus_poll(server.bus, 10) >= 0);
    }
}

static void test_requests_that_may_wait_are_delayed(void **state)
{
    (void)state;
    const struct ringbus_part part = {"q", 1};
    const struct ringbus_message_options options = {
        .struct_size = sizeof options, .timeout_ms = 20000, .method = 7};
    const uint64_t from_ns = rbi_now_ns();
    refused = 0;
    for (unsigned i = 0; i < 6; i++) {
        CHECK(ringbus_request_with(loud.bus, &to, &part, 1, &options, on_result, &loud) == 1);
    }
    RUN_UNTIL(loud.replies[RINGBUS_REPLIED] == 6, NODE_MS, &server, &loud, &quiet);
    CHECK(refused == 0);
    CHECK(rbi_now_ns() - from_ns >= 240 * RBI_NS_PER_MS); /* five of them 50 ms after another */
}

/* ---- more than can be done -------------------------------------------------------- */

static uint64_t work_until_ns;
static uint64_t work_ns;
static unsigned handled[RINGBUS_PRIORITY_MAX + 1];

static void work(struct node *node, const struct ringbus_message *message)
{
    if (message->kind != RINGBUS_KIND_REQUEST) {
        return;
    }
    const uint64_t from_ns = rbi_now_ns();
    handled[message->attributes != NULL ? message->attributes->priority : 0]++;
    while (rbi_now_ns() - from_ns < work_ns && from_ns < work_until_ns) {
        /* busy */
    }
    CHECK(ringbus_reply(node->bus, &message->reply_to, NULL, 0, 0) == 1);
}

static int setup_busy(void **state)
{
    (void)state;
    memset(handled, 0, sizeof handled);
    work_ns = RBI_NS_PER_MS;
    open_all(BUSY "/1", work);
    return 0;
}

static int ask_with(struct node *node, unsigned priority)
{
    const struct ringbus_part part = {"q", 1};
    const struct ringbus_message_options options = {
        .struct_size = sizeof options, .timeout_ms = 20000, .priority = priority};
    return ringbus_request_with(node->bus, &to, &part, 1, &options, on_result, node);
}

static void test_overload_sheds_the_least_important_first(void **state)
{
    (void)state;
    unsigned asked[2] = {0, 0};
    uint32_t most = 0; /* pressure: how far the machine itself was behind */
    refused = 0;
    work_until_ns = RBI_NEVER;
    /* Always some tens of milliseconds behind. */
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    while (node_stats(&server).shed < 50) {
        CHECK(test_now_ms() < deadline_ms);
        for (unsigned i = 0; i < 2; i++) {
            struct node *node = i == 0 ? &loud : &quiet;
            const unsigned ended = node->replies[RINGBUS_REPLIED] + node->replies[RINGBUS_NOT_SENT];
            for (unsigned n = ended; asked[i] < n + 40; asked[i]++) {
                CHECK(ask_with(node, i == 0 ? 0 : 3) == 1);
            }
        }
        (void)ringbus_poll(server.bus, 8); /* of 80: what it finds has waited */
        const uint32_t pressure = server.bus->gate.sojourn.pressure;
        most = pressure > most ? pressure : most;
        nodes_step((struct node *const[]){&loud, &quiet}, 2);
    }
    RUN_UNTIL(refused > 0, NODE_MS, &loud);
    /* Of the highest priority none, before all of the others: it is the last to be reached. */
    CHECK(quiet.replies[RINGBUS_NOT_SENT] == 0 ||
          most + 1 >= RINGBUS_PRIORITY_MAX * RBI_SOJOURN_STEPS);
    CHECK(quiet.replies[RINGBUS_NOT_SENT] < loud.replies[RINGBUS_NOT_SENT]);
    CHECK(loud.replies[RINGBUS_NOT_SENT] + quiet.replies[RINGBUS_NOT_SENT] == refused);
    CHECK(loud.reply_error == RINGBUS_E_SHED || loud.reply_error == 0);
    /* It is over with the load. */
    work_until_ns = 0;
    RUN_UNTIL(loud.replies[RINGBUS_REPLIED] + loud.replies[RINGBUS_NOT_SENT] == asked[0] &&
                  quiet.replies[RINGBUS_REPLIED] + quiet.replies[RINGBUS_NOT_SENT] == asked[1],
              NODE_MS, &server, &loud, &quiet);
    RUN_UNTIL(!server.bus->gate.sheds &&
                  rbi_load_rlx(&server.bus->page->state) == RBI_ENDPOINT_READY,
              NODE_MS, &server, &loud, &quiet);
    const unsigned before = refused;
    for (unsigned i = 0; i < 20; i++) {
        const unsigned replied = loud.replies[RINGBUS_REPLIED];
        CHECK(ask_with(&loud, 0) == 1);
        RUN_UNTIL(loud.replies[RINGBUS_REPLIED] == replied + 1, NODE_MS, &server, &loud, &quiet);
    }
    CHECK(refused == before);
}

/* Of each link a poll takes a batch: that it had its turn is not yet that nothing is left of it. */
static void test_what_a_poll_leaves_in_a_long_lane_has_waited(void **state)
{
    (void)state;
    unsigned asked = 0;
    work_until_ns = RBI_NEVER;
    work_ns = RBI_NS_PER_MS / 20; /* some polls to an interval */
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    while (node_stats(&server).shed == 0) {
        CHECK(test_now_ms() < deadline_ms);
        const unsigned ended = loud.replies[RINGBUS_REPLIED] + loud.replies[RINGBUS_NOT_SENT];
        for (; asked < ended + RBI_BATCH_MAX + 100; asked++) {
            CHECK(ask_with(&loud, 0) == 1);
        }
        (void)ringbus_poll(server.bus, 10000);
        nodes_step((struct node *const[]){&loud, &quiet}, 2);
    }
    work_until_ns = 0;
    RUN_UNTIL(loud.replies[RINGBUS_REPLIED] + loud.replies[RINGBUS_NOT_SENT] == asked, NODE_MS,
              &server, &loud, &quiet);
}

/* What came while it did something else waited for that, and not because too much came. */
static void test_a_poll_that_comes_late_is_not_overload(void **state)
{
    (void)state;
    unsigned asked = 0;
    for (unsigned round = 0; round < 2; round++) {
        work_until_ns = 0;
        for (unsigned i = 0; i < 20; i++, asked++) { /* so that it is known when it polls */
            CHECK(ask_with(&loud, 0) == 1);
            RUN_UNTIL(loud.replies[RINGBUS_REPLIED] == asked + 1, NODE_MS, &server, &loud);
        }
        for (unsigned i = 0; i < 150; i++, asked++) {
            CHECK(ask_with(&loud, 0) == 1);
        }
        test_sleep_ms(1000);
        work_until_ns = RBI_NEVER; /* 150 ms of work, all of it long due */
        RUN_UNTIL(loud.replies[RINGBUS_REPLIED] + loud.replies[RINGBUS_NOT_SENT] == asked, NODE_MS,
                  &server, &loud);
        CHECK(loud.replies[RINGBUS_NOT_SENT] == 0);
        CHECK(!server.bus->gate.sheds);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_requests_over_the_limit_are_answered, setup_limited,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_messages_over_the_limit_wait_in_their_own_lane,
                                        setup_limited, teardown),
        cmocka_unit_test_setup_teardown(test_raised_limit_lets_go_of_what_waits, setup_slow,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_requests_that_may_wait_are_delayed, setup_limited,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_overload_sheds_the_least_important_first, setup_busy,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_what_a_poll_leaves_in_a_long_lane_has_waited,
                                        setup_busy, teardown),
        cmocka_unit_test_setup_teardown(test_a_poll_that_comes_late_is_not_overload, setup_busy,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
