/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificates age (scenario 115): with lives of seconds. One that is renewed in its place costs
 * nothing, neither a byte nor a moment without a connection; one that is not renewed ends its
 * connections within RBI_TLS_EXPIRY_MS after it has expired, and comes back when it is.
 */
#include "support/machine.h"
#include "support/net.h"
#include "support/test.h"

#include <string.h>
#include <time.h>

static struct net net;

static int setup(void **state)
{
    net_up(&net, *state);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    net_down(&net);
    return 0;
}

static void issue(const struct net_host *host, long life_s)
{
    certs_issue(net.authority, host->name, -60, life_s, net_file(host, "certificate"),
                net_file(host, "key"));
}

static void connect_with_lives(long a_s, long b_s)
{
    issue(&net.a, a_s);
    issue(&net.b, b_s);
    net_rename(&net, &net.a, "alpha");
    net_rename(&net, &net.b, "beta");
    net_open(&net.b);
    net_dial(&net.a, &net.b, rbi_door_address(net.b.door));
    assert_true(net_until(&net, net_connected));
}

static bool all_came(struct net *at)
{
    return at->b.received == at->a.sent && at->a.received == at->b.sent;
}

/**
 * Numbers both ways every millisecond, until this time of day. The dialler ends the old connection
 * in order when it has a new one; what it had got by the old one is still read.
 */
static void talk_until(time_t end)
{
    while (time(NULL) < end) {
        assert_true(net_send(&net.a, 100) == 100);
        assert_true(net_send(&net.b, 100) == 100);
        net_turn_ms(&net, 1);
        assert_non_null(net.a.conn);
        assert_non_null(net.b.conn);
    }
}

/** First the one that dials has another certificate, then the one that is dialled. */
static void test_renewed_certificates_cost_nothing(void **state)
{
    (void)state;
    struct rbi_dial_report report;
    const long life = FULL_OR(20, 6);
    const time_t begin = time(NULL);
    net.a.unordered = net.b.unordered = true;
    net.b.retires = true;
    connect_with_lives(life, life);
    talk_until(begin + life / 4);
    issue(&net.a, 3600); /* seen within a second; new connections with it at once */
    talk_until(begin + life * 3 / 4);
    assert_int_equal(net.a.ups, 2);
    issue(&net.b, 3600); /* found out when the old one is about to end */
    talk_until(begin + life + 2);
    assert_in_range(net.a.ups, 3, 4);
    assert_true(net_until(&net, all_came));
    assert_int_equal(net.a.downs, net.b.retired);
    assert_int_equal(net.b.downs, 0);
    rbi_dial_report(net.a.dial, &report);
    assert_int_equal(report.state, RBI_DIAL_CONNECTED);
}

static bool both_are_down(struct net *at)
{
    return !at->a.conn && !at->b.conn;
}

static bool dial_is_refused(struct net *at)
{
    struct rbi_dial_report report;
    rbi_dial_report(at->a.dial, &report);
    return strcmp(report.why, "certificate of the peer: certificate has expired") == 0;
}

static void test_what_is_not_renewed_ends_and_comes_back_when_it_is(void **state)
{
    (void)state;
    const long life = FULL_OR(20, 3);
    const time_t begin = time(NULL);
    connect_with_lives(3600, life);
    assert_true(net_until(&net, both_are_down));
    assert_in_range(time(NULL), begin + life, begin + life + RBI_TLS_EXPIRY_MS / 1000);
    assert_int_equal(net.a.ups, 1); /* new ones that last no longer are not wanted */
    assert_true(strstr(net.a.why, "certificate expired") ||
                strstr(net.b.why, "certificate expired"));
    assert_true(net_until(&net, dial_is_refused));
    issue(&net.b, 3600);
    assert_true(net_until(&net, net_connected));
}

#define MODE(test, mode)                                                                           \
    {                                                                                              \
#test " " mode, test, setup, teardown, (void *)(uintptr_t)mode                             \
    }

/** "lapse": what is not renewed; else what is. */
int main(int argc, char **argv)
{
    const struct CMUnitTest lapses[] = {
        MODE(test_what_is_not_renewed_ends_and_comes_back_when_it_is, "uring tls"),
        MODE(test_what_is_not_renewed_ends_and_comes_back_when_it_is, "epoll tls"),
    };
    const struct CMUnitTest tests[] = {
        MODE(test_renewed_certificates_cost_nothing, "uring tls"),
    };
    if (argc > 1 && strcmp(argv[1], "lapse") == 0) {
        return cmocka_run_group_tests(lapses, NULL, NULL);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
