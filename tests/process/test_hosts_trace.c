/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request that is followed over three hosts in a row, by ringbusctl and by an application: every
 * step of it and of its reply, in order; nothing of what is not followed, nothing on one host.
 */
#include "bus/record_follow.h"
#include "support/hosts.h"
#include "support/raw.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SERVER "/Game/eu/pc/w1/core/battle/1"

static struct hosts hosts;
static struct node server;

struct step {
    const char *host;
    enum rbi_hop what;
    bool reply;
    const char *next;
};
static const struct step steps[] = {
    {"alpha", RBI_HOP_TAKEN, false, "beta"},  {"beta", RBI_HOP_FORWARD, false, "gamma"},
    {"gamma", RBI_HOP_PUT, false, ""},        {"gamma", RBI_HOP_TAKEN, true, "beta"},
    {"beta", RBI_HOP_FORWARD, true, "alpha"}, {"alpha", RBI_HOP_PUT, true, ""},
};
#define STEPS (sizeof steps / sizeof steps[0])

/* ---- the server ------------------------------------------------------------------------------ */

static void on_request(struct node *node, const struct ringbus_message *message)
{
    if (message->kind != RINGBUS_KIND_REQUEST) {
        return;
    }
    CHECK(ringbus_reply(node->bus, &message->reply_to, message->data, message->size, 0) == 1);
}

static int setup(void **state)
{
    const struct hosts_options options = {.count = 3, .chain = true};
    (void)state;
    hosts_up(&hosts, &options);
    server = (struct node){.on_message = on_request};
    node_open(&server, &hosts.host[2].cluster, SERVER);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    node_close(&server);
    hosts_down(&hosts);
    return 0;
}

/* ---- ringbusctl ------------------------------------------------------------------------------ */

/** What "ringbusctl call" says on a host, both outputs. Asserts that it works. */
static void call(unsigned host, const char *options, const char *payload, char *out, size_t size)
{
    char command[512];
    (void)snprintf(command, sizeof command, "%s | %s call --socket %s --timeout 20s %s %s 2>&1",
                   payload, RINGBUSCTL_PATH, hosts.host[host].cluster.socket, options, SERVER);
    FILE *pipe = popen(command, "r"); /* NOLINT(cert-env33-c) */
    assert_non_null(pipe);
    struct node *const nodes[] = {&server};
    const uint64_t until_ms = test_now_ms() + 3 * NODE_MS;
    const int fd = fileno(pipe);
    size_t length = 0;
    ssize_t n = -1;
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    while (n != 0 && length < size - 1) {
        nodes_step(nodes, 1);
        n = read(fd, out + length, size - 1 - length);
        assert_true(n >= 0 || errno == EAGAIN);
        length += n > 0 ? (size_t)n : 0;
        assert_true(test_now_ms() < until_ms);
    }
    out[length] = '\0';
    const int status = pclose(pipe);
    if (status != 0) {
        print_message("%s", out);
    }
    assert_int_equal(status, 0);
}

static void check_all_steps(const char *out)
{
    static const char *const names[] = {"", "taken", "forwarded", "put"};
    const char *at = out;
    for (unsigned i = 0; i < STEPS; i++) {
        char wanted[160];
        (void)snprintf(
            wanted, sizeof wanted,
            "{\"message\":\"%s\",\"host\":\"%s\",\"what\":\"%s\",\"next\":\"%s\",\"age_us\":",
            steps[i].reply ? "reply" : "request", steps[i].host, names[steps[i].what],
            steps[i].next);
        const char *found = strstr(at, wanted);
        if (found == NULL) {
            print_message("%s lacks in\n%s", wanted, out);
        }
        assert_non_null(found);
        at = found + strlen(wanted);
    }
    assert_null(strstr(at, "\"message\":"));
}

static void test_ringbusctl_shows_every_step(void **state)
{
    static char out[65536];
    (void)state;
    call(0, "--trace --json", "echo hello", out, sizeof out);
    assert_non_null(strstr(out, "\"outcome\":\"replied\""));
    check_all_steps(out);
    call(0, "--trace", "echo hello", out, sizeof out);
    assert_non_null(strstr(out, "hello\n"));
    assert_non_null(strstr(out, "taken from its sender's lane, goes to beta"));
    assert_non_null(strstr(out, "handed on to alpha"));
    assert_non_null(strstr(out, "put into its receiver's lane"));
}

static void test_on_one_host_it_says_that_nothing_left(void **state)
{
    static char out[65536];
    (void)state;
    call(2, "--trace", "echo hello", out, sizeof out);
    assert_non_null(strstr(out, "the message left no host\n"));
    call(2, "--trace --json", "echo hello", out, sizeof out);
    assert_non_null(strstr(out, "{\"left_host\":false}"));
}

/* ---- an application, and a follower of its own --------------------------------------------- */

static struct raw follower;
static struct node node;
static struct ringbus_addr addr;

static struct ringbus_message_options options_of(unsigned trace, unsigned follow)
{
    struct ringbus_message_options options = {
        .struct_size = sizeof options, .timeout_ms = 20000, .follow = follow};
    options.trace_id[0] = (unsigned char)trace;
    return options;
}

static void follow(unsigned trace)
{
    struct rbi_wire_follow body = {.trace = {.length = 16}};
    struct raw_message message;
    body.trace.bytes[0] = (unsigned char)trace;
    assert_int_equal(raw_send(&follower, RBI_WIRE_FOLLOW, &body, NULL, 0), 0);
    assert_int_equal(raw_expect(&follower, RBI_WIRE_OK, &message, RAW_TIMEOUT_MS), 0);
}

static void request(const void *data, size_t size, const struct ringbus_message_options *options)
{
    const struct ringbus_part part = {.data = data, .size = size};
    const unsigned replies = node.replies[RINGBUS_REPLIED];
    assert_int_equal(
        ringbus_request_with(node.bus, &addr, &part, 1, options, node_on_result, &node), 1);
    RUN_UNTIL(node.replies[RINGBUS_REPLIED] == replies + 1, NODE_MS, &node, &server);
}

static void expect_steps(unsigned trace, unsigned count)
{
    struct raw_message message;
    uint64_t heard_ns = 0;
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(raw_receive(&follower, &message, NODE_MS), 0);
        const struct rbi_wire_hop *hop = &message.body.hop;
        assert_int_equal(message.header.type, RBI_WIRE_HOP);
        assert_int_equal(hop->trace.bytes[0], trace);
        assert_string_equal(hop->host.bytes, steps[i].host);
        assert_int_equal(hop->what, steps[i].what);
        assert_int_equal(hop->reply, steps[i].reply);
        assert_string_equal(hop->next.bytes, steps[i].next);
        assert_true(hop->heard_ns >= heard_ns);
        assert_true(hop->age_ns < NODE_MS * UINT64_C(1000000));
        heard_ns = hop->heard_ns;
    }
}

static void open_node(void)
{
    struct ringbus_options options = node_options(&hosts.host[0].cluster, NULL);
    options.pool[0] = (struct ringbus_pool_class){.chunk_bytes = 256 * 1024, .count = 4};
    node = (struct node){.on_message = NULL};
    node_open_with(&node, &options);
    addr = node_target(&node, SERVER, 1, &server);
    assert_int_equal(raw_connect(&follower, hosts.host[0].cluster.socket), 0);
    assert_int_equal(raw_hello(&follower), 0);
}

static void close_node(void)
{
    raw_close(&follower);
    node_close(&node);
}

static void test_requests_of_all_sizes_are_followed(void **state)
{
    static const size_t sizes[] = {0, 100, 5000, 65536, 200000}; /* the last by reference */
    static unsigned char data[200000];
    (void)state;
    open_node();
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const struct ringbus_message_options options = options_of(i + 1, 1);
        follow(i + 1);
        request(data, sizes[i], &options);
        expect_steps(i + 1, STEPS);
    }
    close_node();
}

static void test_what_is_not_followed_is_not_told_of(void **state)
{
    const struct ringbus_part part = {.data = "x", .size = 1};
    const struct ringbus_message_options unmarked = options_of(77, 0);
    const struct ringbus_message_options other = options_of(78, 1);
    const struct ringbus_message_options marked = options_of(77, 1);
    (void)state;
    open_node();
    follow(77);
    for (unsigned i = 0; i < 3; i++) {
        request("x", 1, &unmarked);
        request("x", 1, &other); /* nobody has asked for it */
    }
    request("x", 1, &marked);
    expect_steps(77, STEPS);
    request("x", 1, &unmarked);
    /* A one-way message has no way back. */
    assert_int_equal(ringbus_send_with(node.bus, &addr, &part, 1, &marked), 1);
    expect_steps(77, 3);
    request("x", 1, &marked);
    expect_steps(77, STEPS);
    close_node();
}

static void test_options_are_checked(void **state)
{
    const struct ringbus_part part = {.data = "x", .size = 1};
    struct ringbus_message_options options = options_of(0, 1);
    (void)state;
    open_node();
    assert_int_equal(ringbus_send_with(node.bus, &addr, &part, 1, &options), RINGBUS_E_ARGUMENT);
    options = options_of(1, 2);
    assert_int_equal(ringbus_send_with(node.bus, &addr, &part, 1, &options), RINGBUS_E_ARGUMENT);
    close_node();
}

/*
 * Each bridge tells of 100 a second, and the origin's of 64 steps of one trace; messages go on all
 * the same. What is told of is no more than is followed.
 */
static void test_what_is_told_is_bounded(void **state)
{
    const struct ringbus_part part = {.data = "x", .size = 1};
    const struct ringbus_message_options marked = options_of(99, 1);
    const struct ringbus_message_options plain = options_of(100, 0);
    struct raw_message message;
    struct node *const nodes[] = {&node, &server};
    const uint64_t until_ms = test_now_ms() + NODE_MS;
    unsigned told = 0;
    (void)state;
    open_node();
    follow(99);
    while (hosts_log_count(&hosts, 0, "event=hops_dropped") == 0) {
        for (unsigned i = 0; i < 500; i++) {
            const int result = ringbus_send_with(node.bus, &addr, &part, 1, &marked);
            assert_true(result == 1 || result == RINGBUS_E_FULL);
        }
        nodes_step(nodes, 2);
        assert_true(test_now_ms() < until_ms);
    }
    request("x", 1, &plain); /* behind all of them */
    while (raw_receive(&follower, &message, 200) == 0) {
        told += message.header.type == RBI_WIRE_HOP ? 1U : 0U;
    }
    assert_true(told > 0 && told <= 64);
    close_node();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ringbusctl_shows_every_step),
        cmocka_unit_test(test_on_one_host_it_says_that_nothing_left),
        cmocka_unit_test(test_requests_of_all_sizes_are_followed),
        cmocka_unit_test(test_what_is_not_followed_is_not_told_of),
        cmocka_unit_test(test_options_are_checked),
        cmocka_unit_test(
            test_what_is_told_is_bounded), /* behind it, nothing is told for a second */
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
