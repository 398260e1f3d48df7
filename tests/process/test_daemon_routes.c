/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bridge's main connection and the ways to other hosts (features D64 to D67, scenario group I):
 * who may be the bridge, edges to next hops and back, what tools and the directory say of it, and
 * what is left when the bridge goes.
 */
#include "bus/hosts_table.h"
#include "bus/ways.h"
#include "daemon/code.h"
#include "support/loops.h"
#include "support/raw.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOBODY 65534
#define ALPHA  "bridge: {host: alpha, insecure: true, start: false}\n"

static struct raw bridge;
static struct raw reader; /* a tool */

static void up(void **state, const char *rest)
{
    assert_int_equal(loops_up(state, "", rest), 0);
    assert_int_equal(raw_connect(&reader, loops_cluster.socket), 0);
    assert_int_equal(raw_hello(&reader), 0);
}

/** @return 0, or the code of the refusal */
static int be_bridge(struct raw *raw, const char *host, uint64_t incarnation)
{
    struct raw_message message;
    struct rbi_wire_bridge body = {.incarnation = incarnation};
    rbi_text_set(&body.host, host);
    assert_int_equal(raw_send(raw, RBI_WIRE_BRIDGE, &body, NULL, 0), 0);
    for (;;) {
        assert_int_equal(raw_receive(raw, &message, RAW_TIMEOUT_MS), 0);
        if (message.header.type == RBI_WIRE_ERROR) {
            return message.body.error.code;
        }
        if (message.header.type == RBI_WIRE_OK) {
            return 0;
        }
        raw_message_deinit(&message);
    }
}

static void bridge_up(const char *host)
{
    assert_int_equal(raw_connect(&bridge, loops_cluster.socket), 0);
    assert_int_equal(raw_hello(&bridge), 0);
    assert_int_equal(be_bridge(&bridge, host, 7), 0);
}

static void down(void)
{
    raw_close(&bridge);
    raw_close(&reader);
}

/** Puts "b:10 c:5" into a frame. */
static void fill_edges(struct rbi_wire_edges *body, const char *text)
{
    for (int used = 0; *text != '\0'; text += used) {
        char name[RBI_HOST_NAME_MAX + 1];
        uint32_t cost = 0;
        assert_int_equal(sscanf(text, "%63[^:]:%u%n", name, &cost, &used), 2);
        used += text[used] == ' ';
        unsigned char *at = &body->to.bytes[body->to.length];
        at[0] = (unsigned char)strlen(name);
        memcpy(at + 1, name, at[0]);
        memcpy(at + 1 + at[0], &cost, sizeof(cost));
        body->to.length = (uint16_t)(body->to.length + 1U + at[0] + sizeof(cost));
    }
}

static void tell(const char *origin, const char *text)
{
    struct rbi_wire_edges body = {.begin = 1, .end = 1};
    rbi_text_set(&body.origin, origin);
    fill_edges(&body, text);
    assert_int_equal(raw_send(&bridge, RBI_WIRE_EDGES, &body, NULL, 0), 0);
}

/** Waits until the daemon has said that this is the way. @param next  "" none */
static void expect_way(const char *host, const char *next, uint32_t cost, uint32_t hops)
{
    struct raw_message message;
    do {
        assert_int_equal(raw_expect(&bridge, RBI_WIRE_WAY, &message, RAW_TIMEOUT_MS), 0);
    } while (strcmp(message.body.way.host.bytes, host) != 0);
    assert_string_equal(message.body.way.next.bytes, next);
    assert_int_equal(message.body.way.cost, cost);
    assert_int_equal(message.body.way.hops, hops);
}

static void tell_host(const char *name, uint32_t state)
{
    struct rbi_wire_host body = {.state = state, .rtt_ns = 5000, .sent_bytes = 99, .peer = 1};
    rbi_text_set(&body.name, name);
    rbi_text_set(&body.address, "127.0.0.1:7740");
    assert_int_equal(raw_send(&bridge, RBI_WIRE_HOST, &body, NULL, 0), 0);
}

/** Asks. @return number of rows; the last @p max of them are in @p rows */
static unsigned ask(uint32_t what, const char *prefix, union rbi_wire_body *rows, unsigned max)
{
    struct raw_message message;
    unsigned count = 0;
    struct rbi_wire_query query = {.what = what};
    rbi_text_set(&query.prefix, prefix);
    assert_int_equal(raw_send(&reader, RBI_WIRE_QUERY, &query, NULL, 0), 0);
    for (;;) {
        assert_int_equal(raw_receive(&reader, &message, RAW_TIMEOUT_MS), 0);
        if (message.header.type == RBI_WIRE_QUERY_END) {
            return count;
        }
        assert_true(count < max);
        rows[count++] = message.body;
        raw_message_deinit(&message);
    }
}

static int read_table(struct rbi_hosts_table *table, uint32_t max)
{
    struct rbi_directory_view view;
    assert_int_equal(rbi_directory_view_init(&view, reader.directory.base, reader.directory.size),
                     0);
    return rbi_hosts_table_read(&view, table, max);
}

/** Waits until the directory says so. @param next  NULL: the host is not in it */
static void await_line(const char *name, const char *next, uint32_t state)
{
    static _Alignas(
        16) unsigned char room[sizeof(struct rbi_hosts_table) + 8 * sizeof(struct rbi_hosts_line)];
    struct rbi_hosts_table *table = (void *)room;
    for (unsigned i = 0; i < 600; i++) {
        const struct rbi_hosts_line *line = NULL;
        const int result = read_table(table, 8);
        for (uint32_t k = 0; result == RBI_DIRECTORY_OK && k < table->count; k++) {
            if (strcmp(table->lines[k].name, name) == 0) {
                line = rbi_hosts_table_find(table, table->lines[k].number);
            }
        }
        if (next ? line && strcmp(line->next, next) == 0 && line->state == state : !line) {
            return;
        }
        test_sleep_ms(5);
    }
    fail_msg("the directory does not say so of %s", name);
}

static void test_edges_become_ways(void **state)
{
    static union rbi_wire_body rows[8];
    up(state, ALPHA);
    bridge_up("alpha");
    tell("alpha", "beta:10");
    tell("beta", "alpha:10 gamma:20");
    expect_way("beta", "beta", 10, 1);
    expect_way("gamma", "beta", 30, 2);
    tell_host("beta", RBI_HOST_UP);
    await_line("gamma", "beta", RBI_HOST_REACHABLE);
    await_line("beta", "beta", RBI_HOST_UP);
    assert_int_equal(ask(RBI_QUERY_WAYS, "", rows, 8), 2);
    assert_string_equal(rows[1].row_way.host.bytes, "gamma");
    assert_string_equal(rows[1].row_way.next.bytes, "beta");
    assert_int_equal(rows[1].row_way.path.length, strlen("beta\ngamma\n"));
    assert_memory_equal(rows[1].row_way.path.bytes, "beta\ngamma\n", 11);
    assert_int_equal(ask(RBI_QUERY_WAYS, "beta", rows, 8), 2);
    assert_int_equal(ask(RBI_QUERY_WAYS, "beta alpha", rows, 8), 1);
    assert_string_equal(rows[0].row_way.next.bytes, "alpha");
    assert_int_equal(ask(RBI_QUERY_WAYS, "gamma alpha", rows, 8), 0); /* it tells no edges */
    assert_int_equal(ask(RBI_QUERY_WAYS, "x y", rows, 8), 0);
    assert_int_equal(ask(RBI_QUERY_WAYS, "Not a host", rows, 8), 0);
    assert_int_equal(ask(RBI_QUERY_HOSTS, "", rows, 8), 2);
    assert_string_equal(rows[0].row_host.name.bytes, "beta");
    assert_int_equal(rows[0].row_host.state, RBI_HOST_UP);
    assert_int_equal(rows[0].row_host.rtt_ns, 5000);
    assert_int_equal(rows[0].row_host.sent_bytes, 99);
    assert_int_not_equal(rows[0].row_host.number, 0);
    assert_string_equal(rows[1].row_host.via.bytes, "beta");
    assert_int_equal(rows[1].row_host.cost, 30);
    tell("beta", "alpha:10");
    expect_way("gamma", "", 0, 0);
    await_line("gamma", NULL, 0);
    down();
}

/* Ways to many hosts are told at once: more than anybody else may have waiting. */
static void test_many_hosts(void **state)
{
    enum { HOSTS = 600 };
    struct raw_message message;
    unsigned told = 0;
    assert_int_equal(loops_up(state, "send_queue: 16", ALPHA), 0);
    assert_int_equal(raw_connect(&reader, loops_cluster.socket), 0);
    assert_int_equal(raw_hello(&reader), 0);
    bridge_up("alpha");
    tell("alpha", "h0:1");
    expect_way("h0", "h0", 1, 1);
    /* Ten hosts with 60 neighbours each, told of while nothing is read. */
    for (unsigned i = 0; i < HOSTS / 60; i++) {
        struct rbi_wire_edges body = {.begin = 1, .end = 1};
        char text[1024] = "";
        for (unsigned k = 0; k < 60; k++) {
            const size_t used = strlen(text);
            (void)snprintf(text + used, sizeof(text) - used, "%sh%u:1", k ? " " : "",
                           1 + i * 60 + k);
        }
        rbi_text_format(&body.origin, "h%u", i);
        fill_edges(&body, text);
        assert_int_equal(raw_send(&bridge, RBI_WIRE_EDGES, &body, NULL, 0), 0);
    }
    for (unsigned i = 0; i < 1000; i++) {
        if (raw_status(loops_cluster.socket, "bridge_ways") == HOSTS + 1) {
            break;
        }
        test_sleep_ms(5);
    }
    assert_int_equal(raw_status(loops_cluster.socket, "bridge_ways"), HOSTS + 1);
    while (told < HOSTS) {
        assert_int_equal(raw_expect(&bridge, RBI_WIRE_WAY, &message, RAW_TIMEOUT_MS), 0);
        assert_string_equal(message.body.way.next.bytes, "h0");
        told++;
    }
    down();
}

static void test_edges_in_pieces(void **state)
{
    struct rbi_wire_edges body = {.begin = 1};
    up(state, ALPHA);
    bridge_up("alpha");
    rbi_text_set(&body.origin, "alpha");
    fill_edges(&body, "beta:1 gamma:2");
    assert_int_equal(raw_send(&bridge, RBI_WIRE_EDGES, &body, NULL, 0), 0);
    body = (struct rbi_wire_edges){.end = 1};
    rbi_text_set(&body.origin, "alpha");
    fill_edges(&body, "delta:3");
    assert_int_equal(raw_send(&bridge, RBI_WIRE_EDGES, &body, NULL, 0), 0);
    expect_way("beta", "beta", 1, 1);
    expect_way("delta", "delta", 3, 1);
    down();
}

/* Nothing of it outlives the bridge; the next one tells it anew. */
static void test_end_of_the_bridge(void **state)
{
    static union rbi_wire_body rows[8];
    up(state, ALPHA);
    bridge_up("alpha");
    tell("alpha", "beta:10");
    tell_host("beta", RBI_HOST_UP);
    expect_way("beta", "beta", 10, 1);
    await_line("beta", "beta", RBI_HOST_UP);
    raw_close(&bridge);
    assert_true(cluster_log_wait(&loops_cluster, "event=bridge_gone host=alpha", 2000));
    await_line("beta", NULL, 0);
    assert_int_equal(ask(RBI_QUERY_HOSTS, "", rows, 8), 0);
    assert_int_equal(ask(RBI_QUERY_WAYS, "", rows, 8), 0);
    bridge_up("alpha");
    tell("alpha", "beta:10");
    expect_way("beta", "beta", 10, 1);
    /* Without edges there is no table either, though the bridge is there. */
    tell("alpha", "");
    expect_way("beta", "", 0, 0);
    await_line("beta", NULL, 0);
    down();
}

static void test_who_may_be_the_bridge(void **state)
{
    struct raw other;
    up(state, ALPHA);
    assert_int_equal(be_bridge(&reader, "beta", 7), RBI_CODE_ARGUMENT); /* of another host */
    assert_int_equal(be_bridge(&reader, "Alpha", 7), RBI_CODE_ARGUMENT);
    assert_int_equal(be_bridge(&reader, "alpha", 0), RBI_CODE_ARGUMENT);
    bridge_up("alpha");
    assert_int_equal(be_bridge(&reader, "alpha", 8), RBI_CODE_IN_USE);
    assert_int_equal(be_bridge(&bridge, "alpha", 8), 0);                 /* itself, again */
    assert_int_equal(raw_register(&bridge, "", RBI_ENDPOINT_READY), -1); /* registers nobody */
    assert_int_equal(chmod(loops_cluster.folder, 0711), 0);
    assert_int_equal(seteuid(NOBODY), 0);
    const int connected = raw_connect(&other, loops_cluster.socket);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(connected, 0);
    assert_int_equal(raw_hello(&other), 0);
    assert_int_equal(be_bridge(&other, "alpha", 9), RBI_CODE_DENIED);
    raw_close(&other);
    down();
}

/** Sends something that is not the sender's to say. */
static void breaks_the_protocol(struct raw *raw, enum rbi_wire_type type, const void *body)
{
    struct raw_message message;
    assert_int_equal(raw_send(raw, type, body, NULL, 0), 0);
    assert_int_equal(raw_expect(raw, RBI_WIRE_ERROR, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.error.code, RBI_CODE_BAD_PEER);
    assert_true(raw_closed(raw, RAW_TIMEOUT_MS));
    raw_close(raw);
}

static void test_nobody_else_is_heard(void **state)
{
    struct raw other;
    struct rbi_wire_host host = {.state = RBI_HOST_UP};
    struct rbi_wire_edges edges = {.begin = 1, .end = 1};
    struct rbi_wire_way way = {.cost = 1};
    rbi_text_set(&host.name, "beta");
    rbi_text_set(&edges.origin, "alpha");
    fill_edges(&edges, "beta:1");
    rbi_text_set(&way.host, "beta");
    up(state, ALPHA);
    bridge_up("alpha");
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(raw_up(&other, loops_cluster.socket, ""), 0);
        breaks_the_protocol(&other,
                            i == 0   ? RBI_WIRE_HOST
                            : i == 1 ? RBI_WIRE_EDGES
                                     : RBI_WIRE_WAY, /* the daemon's */
                            i == 0   ? (const void *)&host
                            : i == 1 ? (const void *)&edges
                                     : (const void *)&way);
    }
    await_line("beta", NULL, 0);
    down();
}

/* The bridge itself is believed no more than what can be. */
static void test_what_the_bridge_says_is_checked(void **state)
{
    struct rbi_wire_host host = {.state = 6};
    struct rbi_wire_edges edges = {.end = 1}; /* without a beginning */
    up(state, ALPHA);
    rbi_text_set(&host.name, "beta");
    bridge_up("alpha");
    breaks_the_protocol(&bridge, RBI_WIRE_HOST, &host);
    host.state = RBI_HOST_UP;
    rbi_text_set(&host.name, "alpha"); /* ourselves */
    bridge_up("alpha");
    breaks_the_protocol(&bridge, RBI_WIRE_HOST, &host);
    rbi_text_set(&host.name, "beta");
    rbi_text_set(&host.via, "Beta");
    bridge_up("alpha");
    breaks_the_protocol(&bridge, RBI_WIRE_HOST, &host);
    rbi_text_set(&edges.origin, "alpha");
    bridge_up("alpha");
    breaks_the_protocol(&bridge, RBI_WIRE_EDGES, &edges);
    edges.begin = 1;
    fill_edges(&edges, "beta:1");
    edges.to.length--; /* cut off */
    bridge_up("alpha");
    breaks_the_protocol(&bridge, RBI_WIRE_EDGES, &edges);
    edges.to.length++;
    edges.to.bytes[1] = 'B';
    bridge_up("alpha");
    breaks_the_protocol(&bridge, RBI_WIRE_EDGES, &edges);
    edges.to.length = 0;
    for (unsigned i = 0; i < RBI_WAYS_EDGES_MAX + 1; i++) {
        char text[16];
        (void)snprintf(text, sizeof(text), "b%u:1", i);
        fill_edges(&edges, text);
    }
    bridge_up("alpha");
    breaks_the_protocol(&bridge, RBI_WIRE_EDGES, &edges);
    raw_close(&reader);
}

static void test_tool_confirms(void **state)
{
    struct raw_message message;
    struct raw proxy;
    struct rbi_wire_confirm confirm = {.host = {.length = 0}};
    struct rbi_wire_registration body = {
        .weight = 1, .state = RBI_ENDPOINT_READY, .origin_incarnation = 3, .stale = 1};
    up(state, ALPHA);
    assert_int_equal(raw_send(&reader, RBI_WIRE_CONFIRM, &confirm, NULL, 0), 0);
    assert_int_equal(raw_expect_error(&reader), RBI_CODE_NOT_READY);
    bridge_up("alpha");
    rbi_text_set(&body.path, "/game/eu/pc/w1/core/hall/1");
    rbi_text_set(&body.host, "beta");
    assert_int_equal(raw_connect(&proxy, loops_cluster.socket), 0);
    assert_int_equal(raw_hello(&proxy), 0);
    assert_int_equal(raw_send_register(&proxy, &body), 0);
    assert_int_equal(raw_expect(&proxy, RBI_WIRE_REGISTERED, &message, RAW_TIMEOUT_MS), 0);
    rbi_text_set(&confirm.host, "beta");
    rbi_text_set(&confirm.prefix, "/game");
    assert_int_equal(raw_send(&reader, RBI_WIRE_CONFIRM, &confirm, NULL, 0), 0);
    assert_int_equal(raw_expect(&reader, RBI_WIRE_OK, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.ok.value, 1);
    assert_int_equal(raw_expect(&bridge, RBI_WIRE_CONFIRM, &message, RAW_TIMEOUT_MS), 0);
    assert_string_equal(message.body.confirm.host.bytes, "beta");
    assert_string_equal(message.body.confirm.prefix.bytes, "/game");
    rbi_text_set(&confirm.host, "gamma");
    assert_int_equal(raw_send(&reader, RBI_WIRE_CONFIRM, &confirm, NULL, 0), 0);
    assert_int_equal(raw_expect(&reader, RBI_WIRE_OK, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.body.ok.value, 0);
    rbi_text_set(&confirm.host, "no host");
    assert_int_equal(raw_send(&reader, RBI_WIRE_CONFIRM, &confirm, NULL, 0), 0);
    assert_int_equal(raw_expect_error(&reader), RBI_CODE_ARGUMENT);
    raw_close(&proxy);
    down();
}

/* The connections of the bridge's process are not counted for its user. */
static void test_connections_of_the_bridge(void **state)
{
    struct raw more[6];
    up(state, "quota: {connections: 2}\n" ALPHA);
    bridge_up("alpha"); /* the last that this user may have */
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(raw_connect(&more[i], loops_cluster.socket), 0);
        assert_int_equal(raw_hello(&more[i]), 0);
    }
    for (unsigned i = 0; i < 6; i++) {
        raw_close(&more[i]);
    }
    down();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOPS_BOTH(test_edges_become_ways),
        LOOPS_TEST(test_many_hosts, "epoll"),
        LOOPS_TEST(test_edges_in_pieces, "epoll"),
        LOOPS_BOTH(test_end_of_the_bridge),
        LOOPS_TEST(test_who_may_be_the_bridge, "epoll"),
        LOOPS_TEST(test_nobody_else_is_heard, "epoll"),
        LOOPS_TEST(test_what_the_bridge_says_is_checked, "epoll"),
        LOOPS_TEST(test_tool_confirms, "epoll"),
        LOOPS_TEST(test_connections_of_the_bridge, "epoll"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
