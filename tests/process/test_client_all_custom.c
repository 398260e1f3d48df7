/* SPDX-License-Identifier: Apache-2.0 */
/*
 * balance.mode all (features 2.3, B13, T10): what is sent to any instance goes to all that the
 * stages leave, a request as well; and the list of those whom a message may go to, of all
 * businesses.
 */
#include "support/bus.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define NEWS(realm) "/" realm "/eu/pc/w1/core/news"
#define MANY        4U
#define LARGE       20000U

static const char config[] = "realms:\n"
                             "  game_a: {imports: [game_b, game_c]}\n"
                             "rights: {otherwise: allow}\n"
                             "clusters:\n"
                             "  - match: \"/*/eu/pc/w1/core/news\"\n"
                             "    balance: {mode: all}\n"
                             "    set: {mode: strict}\n"
                             "    tags: {mode: strict}\n"
                             "    rules:\n"
                             "      - {id: few, methods: 9, mode: strict, instance: 'a'}\n";

static struct cluster cluster;
static struct node caller;
static struct node readers[MANY];
static uint64_t large;  /* of so many bytes as they were sent */
static uint64_t marked; /* as a broadcast */

#define ALL &caller, &readers[0], &readers[1], &readers[2], &readers[3]

static void take(struct node *node, const struct ringbus_message *message)
{
    large += message->size == LARGE && ((const unsigned char *)message->data)[LARGE - 1] == 7;
    marked += (message->flags & RINGBUS_MESSAGE_BROADCAST) != 0;
    if (message->reply_to.id != 0) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, "", 0, 0) == 1);
    }
}

static void open_reader(unsigned i, const char *path, const char *set, const char *tags)
{
    struct ringbus_options options = node_options(&cluster, path);
    options.set = set;
    options.tags = tags;
    memset(&readers[i], 0, sizeof readers[i]);
    readers[i].on_message = take;
    node_open_with(&readers[i], &options);
}

static struct ringbus_addr open_all(void)
{
    struct ringbus_addr any;
    struct ringbus_options options = node_options(&cluster, "/game_a/eu/pc/w1/core/desk/1");
    options.set = "app.a.1";
    open_reader(0, NEWS("game_a") "/a", "app.a.1", NULL);
    open_reader(1, NEWS("game_a") "/b", "app.a.1", NULL);
    open_reader(2, NEWS("game_a") "/c", "app.b.1", NULL);
    open_reader(3, NEWS("game_a") "/d", "app.a.1", "v2");
    memset(&caller, 0, sizeof caller);
    large = 0;
    marked = 0;
    node_open_with(&caller, &options);
    CHECK(ringbus_target(caller.bus, NEWS("game_a"), NULL, &any) == 0);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == MANY, NODE_MS, ALL);
    return any;
}

static void close_all(void)
{
    node_close(&caller);
    for (unsigned i = 0; i < MANY; i++) {
        node_close(&readers[i]);
    }
}

/* How many messages each is to have got by now. */
static void expect(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    const uint64_t sum = a + b + c + d;
    RUN_UNTIL(readers[0].messages + readers[1].messages + readers[2].messages +
                      readers[3].messages >=
                  sum,
              NODE_MS, ALL);
    assert_int_equal(readers[0].messages, a);
    assert_int_equal(readers[1].messages, b);
    assert_int_equal(readers[2].messages, c);
    assert_int_equal(readers[3].messages, d);
}

static void test_to_all_that_are_left(void **state)
{
    (void)state;
    static unsigned char payload[LARGE];
    struct ringbus_addr any = open_all();
    const struct ringbus_part parts[2] = {{"ab", 2}, {"c", 1}};
    struct ringbus_message_options options = {.struct_size = sizeof options};
    payload[LARGE - 1] = 7;
    assert_int_equal(ringbus_send(caller.bus, &any, 0, "x", 1, 0), 2);
    expect(1, 1, 0, 0);
    assert_int_equal(ringbus_send(caller.bus, &any, 3, "x", 1, RINGBUS_KEY), 2);
    expect(2, 2, 0, 0);
    assert_int_equal(ringbus_send(caller.bus, &any, 0, payload, sizeof payload, 0), 2);
    expect(3, 3, 0, 0);
    assert_int_equal(large, 2);
    assert_int_equal(ringbus_sendv(caller.bus, &any, 0, parts, 2, 0), 2);
    expect(4, 4, 0, 0);
    assert_int_equal(marked, 8);
    /* By what it says of itself. */
    options.tag = "v2";
    assert_int_equal(ringbus_send_with(caller.bus, &any, parts, 2, &options), 1);
    expect(4, 4, 0, 1);
    options.tag = NULL;
    options.method = 9;
    assert_int_equal(ringbus_send_with(caller.bus, &any, parts, 1, &options), 1);
    expect(5, 4, 0, 1);
    options.method = 1;
    options.tag = "v3";
    assert_int_equal(ringbus_send_with(caller.bus, &any, parts, 1, &options), RINGBUS_E_NO_MATCH);
    /* A claim is for one. */
    struct ringbus_claim claim;
    assert_int_equal(ringbus_claim(caller.bus, &any, 0, 8, 0, &claim), RINGBUS_E_ARGUMENT);
    assert_non_null(strstr(ringbus_errmsg(caller.bus), "\"all\""));
    /* One that is named is one. */
    struct ringbus_addr one = any;
    struct ringbus_addr self;
    CHECK(ringbus_self(readers[2].bus, &self) == 0);
    one.instance = self.instance;
    assert_int_equal(ringbus_send(caller.bus, &one, 0, "x", 1, 0), 1);
    expect(5, 4, 1, 1);
    close_all();
}

/* Asked of all of them; it ends once, when the last has answered. */
static void test_requests(void **state)
{
    (void)state;
    struct ringbus_addr any = open_all();
    struct ringbus_message_options options = {.struct_size = sizeof options, .timeout_ms = 5000};
    const struct ringbus_part part = {"x", 1};
    CHECK(ringbus_request(caller.bus, &any, 0, "x", 1, 0, 5000, node_on_result, &caller) == 1);
    expect(1, 1, 0, 0);
    RUN_UNTIL(caller.replies[RINGBUS_REPLIED] == 1, NODE_MS, ALL);
    CHECK(ringbus_request_with(caller.bus, &any, &part, 1, &options, node_on_result, &caller) == 1);
    expect(2, 2, 0, 0);
    RUN_UNTIL(caller.replies[RINGBUS_REPLIED] == 2, NODE_MS, ALL);
    options.tag = "v3";
    CHECK(ringbus_request_with(caller.bus, &any, &part, 1, &options, node_on_result, &caller) ==
          RINGBUS_E_NO_MATCH);
    close_all();
}

static unsigned listed(const struct ringbus_instance *list, int count, const char *path)
{
    unsigned found = 0;
    for (int i = 0; i < count; i++) {
        found += strcmp(list[i].path, path) == 0;
    }
    return found;
}

/* Of every business that may serve, without one before the other. */
static void test_candidates(void **state)
{
    (void)state;
    struct ringbus_addr any = open_all();
    struct ringbus_instance list[8];
    struct node other = {0};
    struct ringbus_options there = node_options(&cluster, NEWS("game_b") "/z");
    there.set = "app.a.1";
    node_open_with(&other, &there);
    RUN_UNTIL(ringbus_candidates(caller.bus, NEWS("game_a"), NULL, list, 8) == 3, NODE_MS, &caller,
              &other);
    assert_int_equal(listed(list, 3, NEWS("game_a") "/a"), 1);
    assert_int_equal(listed(list, 3, NEWS("game_a") "/b"), 1);
    assert_int_equal(listed(list, 3, NEWS("game_b") "/z"), 1);
    assert_int_equal(list[0].linked, 1);
    assert_int_equal(list[0].addr.cluster, any.cluster);
    struct ringbus_message_options options = {.struct_size = sizeof options, .tag = "v2"};
    assert_int_equal(ringbus_candidates(caller.bus, NEWS("game_a"), &options, list, 8), 1);
    assert_int_equal(listed(list, 1, NEWS("game_a") "/d"), 1);
    options.tag = "v4";
    assert_int_equal(ringbus_candidates(caller.bus, NEWS("game_a"), &options, list, 8), 0);
    assert_int_equal(ringbus_candidates(caller.bus, NEWS("game_a"), NULL, NULL, 0), 3);
    assert_int_equal(ringbus_candidates(caller.bus, NEWS("game_a"), NULL, NULL, 1),
                     RINGBUS_E_ARGUMENT);
    assert_int_equal(ringbus_candidates(caller.bus, NULL, NULL, NULL, 0), RINGBUS_E_ARGUMENT);
    assert_int_equal(ringbus_candidates(caller.bus, NEWS("game_a") "/a", NULL, list, 8),
                     RINGBUS_E_PATH);
    assert_int_equal(ringbus_candidates(caller.bus, "/game_x/eu/pc/w1/core/news", NULL, list, 8),
                     RINGBUS_E_NO_SERVICE);
    node_close(&other);
    close_all();
}

static int setup(void **state)
{
    (void)state;
    return cluster_up(&cluster, config);
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
        cmocka_unit_test_setup_teardown(test_to_all_that_are_left, setup, teardown),
        cmocka_unit_test_setup_teardown(test_requests, setup, teardown),
        cmocka_unit_test_setup_teardown(test_candidates, setup, teardown),
    };
    return cmocka_run_group_tests_name("all", tests, NULL, NULL);
}
