/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ringbusctl hosts, routes, route, bridge: what they print of a bridge that is played by the test
 * (issue 6, tools), as text and as JSON, and their exit codes.
 */
#include "daemon/code.h"
#include "support/loops.h"
#include "support/raw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define HALL_1 "/game/eu/pc/w1/core/hall/1"

static char out[262144]; /* what the last run has printed, complaints included */

/** @return exit code */
static int run(const char *arguments)
{
    char command[512];
    (void)snprintf(command, sizeof(command), "%s %s 2>&1", RINGBUSCTL_PATH, arguments);
    assert_int_equal(setenv("RINGBUS_SOCKET", loops_cluster.socket, 1), 0);
    FILE *pipe = popen(command, "r"); // NOLINT(cert-env33-c): arguments are the test's own
    assert_non_null(pipe);
    const size_t used = fread(out, 1, sizeof(out) - 1, pipe);
    out[used] = '\0';
    const int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void says(const char *text)
{
    if (!strstr(out, text)) {
        fail_msg("no \"%s\" in: %s", text, out);
    }
}

static void says_not(const char *text)
{
    if (strstr(out, text)) {
        fail_msg("\"%s\" in: %s", text, out);
    }
}

static void bridge_up(struct raw *bridge)
{
    struct raw_message message;
    struct rbi_wire_bridge body = {.incarnation = 7};
    rbi_text_set(&body.host, "alpha");
    assert_int_equal(raw_connect(bridge, loops_cluster.socket), 0);
    assert_int_equal(raw_hello(bridge), 0);
    assert_int_equal(raw_send(bridge, RBI_WIRE_BRIDGE, &body, NULL, 0), 0);
    assert_int_equal(raw_expect(bridge, RBI_WIRE_OK, &message, RAW_TIMEOUT_MS), 0);
}

static void tell_edge(struct raw *bridge, const char *from, const char *to, uint32_t cost)
{
    struct rbi_wire_edges body = {.begin = 1, .end = 1};
    rbi_text_set(&body.origin, from);
    body.to.bytes[0] = (unsigned char)strlen(to);
    memcpy(&body.to.bytes[1], to, strlen(to));
    memcpy(&body.to.bytes[1 + strlen(to)], &cost, sizeof(cost));
    body.to.length = (uint16_t)(1 + strlen(to) + sizeof(cost));
    assert_int_equal(raw_send(bridge, RBI_WIRE_EDGES, &body, NULL, 0), 0);
}

static void await_way(struct raw *bridge, const char *host)
{
    struct raw_message message;
    do {
        assert_int_equal(raw_expect(bridge, RBI_WIRE_WAY, &message, RAW_TIMEOUT_MS), 0);
    } while (strcmp(message.body.way.host.bytes, host) != 0);
}

static void tell_peer(struct raw *bridge, const char *name, uint32_t state, const char *why)
{
    struct rbi_wire_host body = {.state = state,
                                 .peer = 1,
                                 .secure = 1,
                                 .rtt_ns = 1250000,
                                 .connected_ms = 61000,
                                 .instances = 4,
                                 .streams = 3,
                                 .sent_frames = 11,
                                 .sent_bytes = 1111,
                                 .received_frames = 22,
                                 .received_bytes = 2222,
                                 .resends = 5,
                                 .duplicates = 6,
                                 .forwarded = 7,
                                 .queue_bytes = 8};
    rbi_text_set(&body.name, name);
    rbi_text_set(&body.address, "127.0.0.1:7740");
    rbi_text_set(&body.why, why);
    assert_int_equal(raw_send(bridge, RBI_WIRE_HOST, &body, NULL, 0), 0);
}

static void stale_proxy_up(struct raw *proxy)
{
    struct raw_message message;
    struct rbi_wire_registration body = {
        .weight = 1, .state = RBI_ENDPOINT_READY, .origin_incarnation = 3, .cost = 10, .stale = 1};
    rbi_text_set(&body.path, HALL_1);
    rbi_text_set(&body.host, "beta");
    rbi_text_set(&body.via, "beta");
    assert_int_equal(raw_connect(proxy, loops_cluster.socket), 0);
    assert_int_equal(raw_hello(proxy), 0);
    assert_int_equal(raw_send_register(proxy, &body), 0);
    assert_int_equal(raw_expect(proxy, RBI_WIRE_REGISTERED, &message, RAW_TIMEOUT_MS), 0);
}

static void test_without_a_bridge(void **state)
{
    assert_int_equal(loops_up(state, "", ""), 0);
    assert_int_equal(run("hosts"), 0);
    assert_string_equal(out, "");
    assert_int_equal(run("routes"), 0);
    assert_string_equal(out, "");
    assert_int_equal(run("route alpha beta"), 4);
    says("no way leads from alpha to beta");
    assert_int_equal(run("bridge status"), 0);
    says("host           none");
    assert_int_equal(run("bridge confirm"), 1);
    says("no bridge is connected");
}

static void test_wrong_command_lines(void **state)
{
    assert_int_equal(loops_up(state, "", ""), 0);
    assert_int_equal(run("route alpha"), 2);
    assert_int_equal(run("route alpha Beta"), 2);
    assert_int_equal(run("routes /game"), 2);
    assert_int_equal(run("hosts beta"), 2);
    assert_int_equal(run("bridge"), 2);
    assert_int_equal(run("bridge dance"), 2);
    assert_int_equal(run("bridge status beta"), 2);
    assert_int_equal(run("bridge confirm 'no host'"), 2);
}

static void test_with_one(void **state)
{
    struct raw bridge;
    struct raw proxy;
    assert_int_equal(loops_up(state, "", ""), 0);
    bridge_up(&bridge);
    tell_peer(&bridge, "beta", RBI_HOST_UP, "");
    tell_peer(&bridge, "delta", RBI_HOST_REFUSED, "the certificate names epsilon");
    tell_edge(&bridge, "alpha", "beta", 10);
    tell_edge(&bridge, "beta", "gamma", 21);
    await_way(&bridge, "gamma");
    stale_proxy_up(&proxy);

    assert_int_equal(run("hosts"), 0);
    says("beta                     up         1m     -                      10    1.2ms         4");
    says("gamma                    reachable  -      beta                   31        -");
    says("the certificate names epsilon");
    assert_int_equal(run("hosts --json"), 0);
    says("\"host\":\"beta\"");
    says("\"rtt_ns\":1250000");
    says("\"via\":\"beta\"");

    assert_int_equal(run("routes"), 0);
    says("gamma                    beta                           31     2");
    says("beta -> gamma");
    assert_int_equal(run("routes --json"), 0);
    says("\"path\":[\"beta\",\"gamma\"]");
    assert_int_equal(run("routes beta"), 0);
    says("gamma                    gamma                          21     1      -");
    assert_int_equal(run("route alpha gamma"), 0);
    assert_string_equal(out, "alpha -> beta -> gamma  cost 31, 2 hops\n");
    assert_int_equal(run("route gamma alpha"), 4);

    assert_int_equal(run("bridge status"), 0);
    says("host           alpha");
    says("hosts          3");
    says("ways           2");
    says("tls         1.2ms           11           1111           22           2222        5"
         "        6         7        8");
    says_not("gamma"); /* it is no neighbour */
    assert_int_equal(run("bridge status --json"), 0);
    says("\"resends\":5");
    assert_int_equal(run("bridge confirm gamma"), 0);
    says("0 instances");
    assert_int_equal(run("bridge confirm --json"), 0);
    says("{\"confirmed\":1}");

    assert_int_equal(run("metrics"), 0);
    says("ringbus_host_up{host=\"beta\"} 1\n");
    says("ringbus_host_up{host=\"delta\"} 0\n");
    says(
        "# TYPE ringbus_host_resends_total counter\nringbus_host_resends_total{host=\"beta\"} 5\n");
    says("ringbus_daemon_bridge_ways 2\n");

    assert_int_equal(run("ls /game"), 0);
    says("@beta (out of sight)");
    assert_int_equal(run("show --json " HALL_1), 0);
    says("\"host\":\"beta\",\"via\":\"beta\",\"cost\":10,\"stale\":true");
    assert_int_equal(run("show " HALL_1), 0);
    says("of host beta, via beta, cost 10, which cannot be reached");
    assert_int_equal(run("drain " HALL_1), 1);
    says("is drained where it lives: host beta");
    raw_close(&proxy);
    raw_close(&bridge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOPS_TEST(test_without_a_bridge, "epoll"),
        LOOPS_TEST(test_wrong_command_lines, "epoll"),
        LOOPS_BOTH(test_with_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
