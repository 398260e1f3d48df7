/* SPDX-License-Identifier: Apache-2.0 */
/* The plain life of clients at a daemon, on both loops. */
#include "bus/directory.h"
#include "bus/record.h"
#include "daemon/code.h"
#include "support/cluster.h"
#include "support/raw.h"
#include "support/test.h"

#include <string.h>
#include <unistd.h>

#define ECHO    "/game/eu/pc/w1/core/echo"
#define ECHO_1  ECHO "/1"
#define ECHO_2  ECHO "/2"
#define FRONT_1 "/game/eu/pc/w1/core/front/1"

static struct cluster cluster;

static int setup_loop(const char *config)
{
    return cluster_up(&cluster, config);
}

static int setup_uring(void **state)
{
    (void)state;
    return setup_loop("daemon: {loop: uring, request_timeout: 300ms, log_level: debug}\n");
}

static int setup_epoll(void **state)
{
    (void)state;
    return setup_loop("daemon: {loop: epoll, request_timeout: 300ms, log_level: debug}\n");
}

static int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

static unsigned directory_count(const struct raw *raw, uint64_t id)
{
    struct rbi_directory_view view;
    struct rbi_directory_cluster head;
    struct rbi_directory_instance instances[8];
    assert_int_equal(rbi_directory_view_init(&view, raw->directory.base, raw->directory.size), 0);
    if (rbi_directory_read(&view, id, &head, instances, 8) != RBI_DIRECTORY_OK) {
        return 0;
    }
    return head.instance_count;
}

static void
expect_event(struct raw *raw, enum rbi_change change, int32_t instance, unsigned initial)
{
    struct raw_message message;
    assert_int_equal(raw_expect(raw, RBI_WIRE_EVENT, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.event.change, change);
    assert_int_equal(message.body.event.instance, instance);
    assert_int_equal(message.body.event.initial, initial);
}

static void test_register_is_seen_in_directory_and_by_watchers(void **state)
{
    (void)state;
    struct raw watcher;
    struct raw a;
    struct raw b;
    struct raw_message message;
    assert_int_equal(raw_up(&a, cluster.socket, ECHO_1), 0);
    assert_int_equal(raw_up(&watcher, cluster.socket, ""), 0);
    assert_int_equal(directory_count(&watcher, a.registered.cluster), 1);
    assert_int_equal(raw_watch(&watcher, RBI_WIRE_TARGET, ECHO), 0);
    expect_event(&watcher, RBI_CHANGE_ADDED, 1, 1);
    assert_int_equal(raw_watch(&watcher, RBI_WIRE_WATCH, "/game"), 0);
    expect_event(&watcher, RBI_CHANGE_ADDED, 1, 1);

    assert_int_equal(raw_up(&b, cluster.socket, ECHO_2), 0);
    expect_event(&watcher, RBI_CHANGE_ADDED, 2, 0);
    assert_true(raw_silent(&watcher, 50)); /* once, though two prefixes match */
    assert_int_equal(directory_count(&watcher, a.registered.cluster), 2);
    assert_int_equal(raw_set_state(&b, RBI_ENDPOINT_DRAINING), 0);
    expect_event(&watcher, RBI_CHANGE_UPDATED, 2, 0);
    assert_int_equal(raw_set_state(&b, RBI_ENDPOINT_CLOSED), 0);
    assert_int_equal(raw_expect(&watcher, RBI_WIRE_EVENT, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.event.change, RBI_CHANGE_REMOVED);
    assert_int_equal(message.body.event.reason, RBI_REASON_LEFT);
    assert_int_equal(directory_count(&watcher, a.registered.cluster), 1);
    raw_close(&b);
    assert_true(raw_silent(&watcher, 50));

    raw_close(&a);
    assert_int_equal(raw_expect(&watcher, RBI_WIRE_EVENT, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.event.change, RBI_CHANGE_REMOVED);
    assert_int_equal(message.body.event.reason, RBI_REASON_CRASHED);
    assert_int_equal(directory_count(&watcher, a.registered.cluster), 0);
    raw_close(&watcher);
}

static void test_starting_is_hidden_and_takes_no_introduction(void **state)
{
    (void)state;
    struct raw server;
    struct raw client;
    assert_int_equal(raw_connect(&server, cluster.socket), 0);
    assert_int_equal(raw_hello(&server), 0);
    assert_int_equal(raw_register(&server, ECHO_1, RBI_ENDPOINT_STARTING), 0);
    assert_int_equal(raw_up(&client, cluster.socket, ""), 0);
    assert_int_equal(directory_count(&client, server.registered.cluster), 0);
    assert_int_equal(raw_introduce(&client, server.registered.cluster, 1, 0), 0);
    assert_int_equal(raw_expect_error(&client), RBI_CODE_NOT_READY);
    assert_int_equal(raw_set_state(&server, RBI_ENDPOINT_READY), 0);
    assert_int_equal(directory_count(&client, server.registered.cluster), 1);
    assert_int_equal(raw_link(&client, &server, NULL), 0);
    raw_close(&client);
    raw_close(&server);
}

/* Scenario 47: the partner of a dead one is told at once, with the reason. */
static void test_death_is_told_at_once(void **state)
{
    (void)state;
    struct raw server;
    struct raw client;
    struct raw_message message;
    uint64_t link_id = 0;
    assert_int_equal(raw_up(&server, cluster.socket, ECHO_1), 0);
    assert_int_equal(raw_up(&client, cluster.socket, FRONT_1), 0);
    assert_int_equal(raw_link(&client, &server, &link_id), 0);
    const uint64_t before_ms = test_now_ms();
    raw_close(&client);
    assert_int_equal(raw_expect(&server, RBI_WIRE_LINK_DOWN, &message, RAW_TIMEOUT_MS), 0);
    assert_true(test_now_ms() - before_ms < 50);
    assert_int_equal(message.body.link_down.link_id, link_id);
    assert_int_equal(message.body.link_down.reason, RBI_REASON_CRASHED);
    raw_close(&server);
}

static void test_second_introduction_meets_the_link(void **state)
{
    (void)state;
    struct raw server;
    struct raw client;
    struct raw_message message;
    uint64_t link_id = 0;
    assert_int_equal(raw_up(&server, cluster.socket, ECHO_1), 0);
    assert_int_equal(raw_up(&client, cluster.socket, FRONT_1), 0);
    assert_int_equal(raw_link(&client, &server, &link_id), 0);
    assert_int_equal(
        raw_introduce(&server, client.registered.cluster, client.registered.instance, 0), 0);
    assert_int_equal(raw_expect(&server, RBI_WIRE_ERROR, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.error.code, RBI_CODE_IN_USE);
    assert_int_equal(message.body.error.link_id, link_id);

    const struct rbi_wire_link_down down = {.link_id = link_id, .reason = RBI_REASON_UNTARGETED};
    assert_int_equal(raw_send(&client, RBI_WIRE_LINK_DOWN, &down, NULL, 0), 0);
    assert_int_equal(raw_expect(&server, RBI_WIRE_LINK_DOWN, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.link_down.reason, RBI_REASON_UNTARGETED);
    uint64_t next_id = 0;
    assert_int_equal(raw_link(&server, &client, &next_id), 0);
    assert_true(next_id != link_id);
    raw_close(&client);
    raw_close(&server);
}

static void test_introduction_ends_without_answer(void **state)
{
    (void)state;
    struct raw server;
    struct raw client;
    struct raw_message message;
    assert_int_equal(raw_up(&server, cluster.socket, ECHO_1), 0);
    assert_int_equal(raw_up(&client, cluster.socket, ""), 0);
    const uint64_t id = server.registered.cluster;
    /* Silence. */
    assert_int_equal(raw_introduce(&client, id, 1, server.registered.incarnation), 0);
    const uint32_t serial = client.serial;
    assert_int_equal(raw_expect(&client, RBI_WIRE_ERROR, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.error.code, RBI_CODE_TIMEOUT);
    assert_int_equal(message.header.reply_to, serial);
    assert_int_equal(raw_expect(&server, RBI_WIRE_LINK_DOWN, &message, RAW_TIMEOUT_MS), 0);
    /* No. */
    assert_int_equal(raw_introduce(&client, id, 1, 0), 0);
    assert_int_equal(raw_expect(&server, RBI_WIRE_INTRODUCED, &message, RAW_TIMEOUT_MS), 0);
    struct rbi_wire_refuse refuse = {.link_id = message.body.introduced.link_id,
                                     .code = RBI_CODE_NO_FDS};
    raw_message_deinit(&message);
    rbi_text_set(&refuse.text, "no room");
    assert_int_equal(raw_send(&server, RBI_WIRE_REFUSE, &refuse, NULL, 0), 0);
    assert_int_equal(raw_expect_error(&client), RBI_CODE_NO_FDS);
    /* Another life. */
    assert_int_equal(raw_introduce(&client, id, 1, server.registered.incarnation + 1), 0);
    assert_int_equal(raw_expect_error(&client), RBI_CODE_NO_INSTANCE);
    /* Death. */
    assert_int_equal(raw_introduce(&client, id, 1, 0), 0);
    assert_int_equal(raw_expect(&server, RBI_WIRE_INTRODUCED, &message, RAW_TIMEOUT_MS), 0);
    raw_message_deinit(&message);
    raw_close(&server);
    assert_int_equal(raw_expect_error(&client), RBI_CODE_PEER_GONE);
    raw_close(&client);
}

/* Scenario 100: the same address twice. */
static void test_address_in_use(void **state)
{
    (void)state;
    struct raw a;
    struct raw b;
    struct rbi_wire_registration body = {.weight = 1, .state = RBI_ENDPOINT_READY};
    assert_int_equal(raw_up(&a, cluster.socket, ECHO_1), 0);
    assert_int_equal(raw_connect(&b, cluster.socket), 0);
    assert_int_equal(raw_hello(&b), 0);
    rbi_text_set(&body.path, ECHO_1);
    assert_int_equal(raw_send_register(&b, &body), 0);
    assert_int_equal(raw_expect_error(&b), RBI_CODE_IN_USE);
    const uint32_t first = a.registered.incarnation;
    raw_close(&a);
    assert_int_equal(raw_register(&b, ECHO_1, RBI_ENDPOINT_READY), 0);
    assert_true(b.registered.incarnation > first);
    raw_close(&b);
}

static void test_stop_tells_clients_and_removes_the_socket(void **state)
{
    (void)state;
    struct raw a;
    struct raw_message message;
    assert_int_equal(raw_up(&a, cluster.socket, ECHO_1), 0);
    assert_int_equal(cluster_stop(&cluster), 0);
    assert_int_equal(raw_expect(&a, RBI_WIRE_STOPPING, &message, RAW_TIMEOUT_MS), 0);
    assert_true(raw_closed(&a, 500));
    assert_int_equal(access(cluster.socket, F_OK), -1);
    raw_close(&a);
}

#define BOTH(test)                                                                                 \
    cmocka_unit_test_setup_teardown(test, setup_uring, teardown),                                  \
        cmocka_unit_test_setup_teardown(test, setup_epoll, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_register_is_seen_in_directory_and_by_watchers),
        BOTH(test_starting_is_hidden_and_takes_no_introduction),
        BOTH(test_death_is_told_at_once),
        BOTH(test_second_introduction_meets_the_link),
        BOTH(test_introduction_ends_without_answer),
        BOTH(test_address_in_use),
        BOTH(test_stop_tells_clients_and_removes_the_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
