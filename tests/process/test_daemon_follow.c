/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FOLLOW and HOP at the daemon: whose hops a tool is told of, how many may follow, who pays, and
 * that nobody but the bridge says where a message has been.
 */
#include "bus/record_follow.h"
#include "daemon/code.h"
#include "daemon/follow.h"
#include "support/loops.h"
#include "support/raw.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOBODY 65534
#define ALPHA  "bridge: {host: alpha, insecure: true, start: false}\n"

static struct raw bridge;
static struct raw reader; /* a tool of root */

static void greet(struct raw *raw)
{
    assert_int_equal(raw_connect(raw, loops_cluster.socket), 0);
    assert_int_equal(raw_hello(raw), 0);
}

static void greet_as_nobody(struct raw *raw)
{
    assert_int_equal(chmod(loops_cluster.folder, 0711), 0);
    assert_int_equal(seteuid(NOBODY), 0);
    const int connected = raw_connect(raw, loops_cluster.socket);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(connected, 0);
    assert_int_equal(raw_hello(raw), 0);
}

static void up(void **state, const char *rest)
{
    struct rbi_wire_bridge body = {.incarnation = 7};
    struct raw_message message;
    assert_int_equal(loops_up(state, "", rest), 0);
    greet(&bridge);
    rbi_text_set(&body.host, "alpha");
    assert_int_equal(raw_send(&bridge, RBI_WIRE_BRIDGE, &body, NULL, 0), 0);
    assert_int_equal(raw_expect(&bridge, RBI_WIRE_OK, &message, RAW_TIMEOUT_MS), 0);
    greet(&reader);
}

static void down(void)
{
    raw_close(&bridge);
    raw_close(&reader);
}

/** @return 0, or the code of the refusal */
static int follow(struct raw *raw, unsigned char trace, unsigned length)
{
    struct rbi_wire_follow body = {.trace = {.length = (uint16_t)length}};
    struct raw_message message;
    memset(body.trace.bytes, trace, length);
    assert_int_equal(raw_send(raw, RBI_WIRE_FOLLOW, &body, NULL, 0), 0);
    assert_int_equal(raw_receive(raw, &message, RAW_TIMEOUT_MS), 0);
    if (message.header.type == RBI_WIRE_ERROR) {
        return message.body.error.code;
    }
    assert_int_equal(message.header.type, RBI_WIRE_OK);
    return 0;
}

static void hop(struct raw *raw, unsigned char trace, uint32_t uid)
{
    struct rbi_wire_hop body = {
        .trace = {.length = 16}, .what = RBI_HOP_TAKEN, .age_ns = 5, .heard_ns = 6, .uid = uid};
    memset(body.trace.bytes, trace, 16);
    rbi_text_set(&body.host, "alpha");
    rbi_text_set(&body.next, "beta");
    assert_int_equal(raw_send(raw, RBI_WIRE_HOP, &body, NULL, 0), 0);
}

static void expect_hop(struct raw *raw, unsigned char trace)
{
    struct raw_message message;
    assert_int_equal(raw_receive(raw, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.header.type, RBI_WIRE_HOP);
    const struct rbi_wire_hop *body = &message.body.hop;
    assert_int_equal(body->trace.length, 16);
    assert_int_equal(body->trace.bytes[15], trace);
    assert_string_equal(body->host.bytes, "alpha");
    assert_string_equal(body->next.bytes, "beta");
    assert_int_equal(body->what, RBI_HOP_TAKEN);
    assert_true(body->age_ns == 5 && body->heard_ns == 6);
}

static void test_who_follows_is_told(void **state)
{
    struct raw second;
    up(state, ALPHA);
    greet(&second);
    assert_int_equal(follow(&reader, 1, 16), 0);
    assert_int_equal(follow(&second, 1, 16), 0);
    assert_int_equal(follow(&second, 2, 16), 0);
    hop(&bridge, 3, 0); /* nobody's */
    hop(&bridge, 1, 0);
    hop(&bridge, 2, 0);
    expect_hop(&reader, 1);
    expect_hop(&second, 1);
    expect_hop(&second, 2);
    hop(&bridge, 1, 0);
    expect_hop(&reader, 1); /* and nothing of trace 2 before it */
    raw_close(&second);
    hop(&bridge, 2, 0);
    hop(&bridge, 1, 0);
    expect_hop(&reader, 1);
    down();
}

static void test_others_messages_are_not_told_of(void **state)
{
    struct raw nobody;
    up(state, ALPHA);
    greet_as_nobody(&nobody);
    assert_int_equal(follow(&nobody, 1, 16), 0);
    assert_int_equal(follow(&nobody, 2, 16), 0);
    assert_int_equal(follow(&reader, 1, 16), 0);
    hop(&bridge, 1, 1000);
    hop(&bridge, 1, 0);
    hop(&bridge, 2, NOBODY); /* its own */
    expect_hop(&nobody, 2);
    expect_hop(&reader, 1); /* root may administer everything */
    expect_hop(&reader, 1);
    raw_close(&nobody);
    down();
}

static void test_only_the_bridge_is_heard(void **state)
{
    up(state, ALPHA);
    assert_int_equal(follow(&reader, 1, 16), 0);
    hop(&reader, 1, 0);
    assert_true(raw_closed(&reader, RAW_TIMEOUT_MS));
    down();
}

static void test_how_many_may_follow(void **state)
{
    struct raw second;
    up(state, ALPHA);
    greet(&second);
    assert_int_equal(follow(&reader, 1, 15), RBI_CODE_ARGUMENT);
    assert_int_equal(follow(&reader, 1, 17), RBI_CODE_ARGUMENT);
    for (unsigned i = 0; i < RBI_FOLLOWERS_MAX; i++) {
        assert_int_equal(follow(i % 2 == 0 ? &reader : &second, (unsigned char)(i + 1), 16), 0);
    }
    assert_int_equal(follow(&reader, 99, 16), RBI_CODE_QUOTA);
    assert_int_equal(follow(&reader, 1, 16), 0); /* the same again, for longer */
    raw_close(&second);                          /* its places are free as soon as that is seen */
    const uint64_t until_ms = test_now_ms() + RAW_TIMEOUT_MS;
    while (follow(&reader, 99, 16) != 0) {
        assert_true(test_now_ms() < until_ms);
    }
    hop(&bridge, 99, 0);
    expect_hop(&reader, 99);
    down();
}

static void test_users_leave_room(void **state)
{
    struct raw nobody;
    up(state, ALPHA);
    greet_as_nobody(&nobody);
    for (unsigned i = 0; i < RBI_FOLLOWERS_OF_USER; i++) {
        assert_int_equal(follow(&nobody, (unsigned char)(i + 1), 16), 0);
    }
    assert_int_equal(follow(&nobody, 99, 16), RBI_CODE_QUOTA);
    assert_int_equal(follow(&nobody, 1, 16), 0);
    assert_int_equal(follow(&reader, 99, 16), 0);
    raw_close(&nobody);
    down();
}

/* A trace that is followed counts as a watch. */
static void test_who_pays(void **state)
{
    struct raw nobody;
    up(state, "quota: {user_watches: 2}\n" ALPHA);
    greet_as_nobody(&nobody);
    assert_int_equal(follow(&nobody, 1, 16), 0);
    assert_int_equal(follow(&nobody, 2, 16), 0);
    assert_int_equal(follow(&nobody, 3, 16), RBI_CODE_QUOTA);
    raw_close(&nobody);
    const uint64_t until_ms = test_now_ms() + RAW_TIMEOUT_MS;
    for (int result = RBI_CODE_QUOTA; result != 0;) {
        greet_as_nobody(&nobody);
        result = follow(&nobody, 3, 16);
        raw_close(&nobody);
        assert_true(test_now_ms() < until_ms);
    }
    down();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOPS_BOTH(test_who_follows_is_told),
        LOOPS_TEST(test_others_messages_are_not_told_of, "epoll"),
        LOOPS_TEST(test_only_the_bridge_is_heard, "epoll"),
        LOOPS_TEST(test_how_many_may_follow, "epoll"),
        LOOPS_TEST(test_users_leave_room, "epoll"),
        LOOPS_TEST(test_who_pays, "epoll"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
