/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections between hosts, over loopback: with io_uring and with epoll, with TLS and without.
 * Bytes come once and in order whatever sizes they are written and taken in, queues are bounded,
 * one who reads nothing stops nobody but itself, ends are told once and say why.
 */
#include "daemon/bridge/conn_impl.h"
#include "support/machine.h"
#include "support/net.h"
#include "support/test.h"

#include <errno.h>
#include <liburing.h>
#include <stdio.h>
#include <string.h>

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

static void connect_hosts(void)
{
    net_open(&net.b);
    net_dial(&net.a, &net.b, rbi_door_address(net.b.door));
    assert_true(net_until(&net, net_connected));
}

/* ---- bytes ----------------------------------------------------------------------------- */

static void test_names_are_those_of_the_certificates(void **state)
{
    (void)state;
    connect_hosts();
    assert_string_equal(net.a.peer, net.tls ? "beta" : "");
    assert_string_equal(net.b.peer, net.tls ? "alpha" : "");
    assert_true(rbi_conn_dialled(net.a.conn));
    assert_false(rbi_conn_dialled(net.b.conn));
    assert_true(rbi_conn_names(net.a.conn, "beta"));
    assert_int_equal(rbi_conn_names(net.a.conn, "gamma"), !net.tls);
    assert_string_equal(rbi_conn_address(net.a.conn), rbi_door_address(net.b.door));
}

static void test_bytes_come_once_and_in_order_in_any_sizes(void **state)
{
    (void)state;
    connect_hosts();
    net_exchange(&net, 100000, 30);
    net.b.taste = 1000; /* leaves what is less, as the beginning of a frame */
    net_exchange(&net, 1000000, 3000);
    net_exchange(&net, FULL_OR(1000000000U, 30000000U), 262144);
    net_exchange(&net, 1000, 3);
    assert_int_equal(net.a.ups, 1);
    assert_int_equal(net.b.downs, 0);
}

static bool queue_is_full(struct net *at)
{
    return net_send(&at->a, 65536) == 0 && net_send(&at->a, 1) == 0 &&
           rbi_conn_write(at->a.conn, at, 65536) == -ENOBUFS;
}

static bool fill(struct net *at)
{
    while (net_send(&at->a, 65536)) {
    }
    while (net_send(&at->a, 1)) {
    }
    /* Full, and nothing leaves any more. */
    struct rbi_conn_figures before;
    struct rbi_conn_figures after;
    rbi_conn_figures(at->a.conn, &before);
    net_turn_ms(at, 200);
    rbi_conn_figures(at->a.conn, &after);
    return queue_is_full(at) && before.bytes_out == after.bytes_out;
}

static bool all_memory_is_free(struct net *at)
{
    return at->a.terms.alive == 0 && at->b.terms.alive == 0;
}

static bool memory_of_a_is_free(struct net *at)
{
    return at->a.terms.alive == 0;
}

/** Loopback copies all the same; what matters is that memory is not used again too early. */
static void test_sends_without_a_copy_are_held_until_they_are_returned(void **state)
{
    (void)state;
    struct rbi_conn_figures figures;
    connect_hosts();
    net_exchange(&net, 3000000,
                 262144); /* the kernel says that it copies: it is no longer asked to */
    rbi_conn_figures(net.a.conn, &figures);
    const uint64_t lent = figures.zero_copy_sends;
    assert_in_range(lent, 1, 16);
    net_exchange(&net, 3000000, 262144);
    rbi_conn_figures(net.a.conn, &figures);
    assert_int_equal(figures.zero_copy_sends, lent);
    net.b.terms.lends_always = net.a.terms.lends_always = true;
    rbi_conn_cut(net.a.conn, "again");
    net.a.conn = net.b.conn = NULL;
    assert_true(net_until(&net, net_connected));
    net.a.sent = net.b.received = net.b.sent = net.a.received = 0;
    for (unsigned i = 0; i < 5; i++) {
        net_exchange(&net, 4000000, 262144);
        net_exchange(&net, 1000000, 20000);
    }
    rbi_conn_figures(net.a.conn, &figures);
    assert_in_range(figures.zero_copy_sends, 17, figures.sends);
    /* Cut with memory that nobody acknowledges: it comes back at once. */
    net.b.deaf = true;
    assert_true(net_until(&net, fill));
    rbi_dial_pause(net.a.dial);
    rbi_conn_cut(net.a.conn, "no answer");
    net.a.conn = NULL;
    assert_true(net_until(&net, memory_of_a_is_free));
}

/** However much waits to be read, others have their turn between: 2 MiB, or twice 4 pieces. */
static void test_reading_is_bounded_a_turn(void **state)
{
    (void)state;
    const bool uring = strcmp(rbi_loop_backend(net.loop), "io_uring") == 0;
    const uint64_t most = uring ? 32 * RBI_LOOP_STREAM_PIECE : 8 * RBI_LOOP_STREAM_PIECE;
    uint64_t seen_most = 0;
    connect_hosts();
    while (net.a.sent < 20000000) {
        while (net_send(&net.a, 65536)) {
        }
        const uint64_t before = net.b.received;
        assert_int_equal(rbi_loop_turn(net.loop, 1000000), 0);
        seen_most = rbi_max_u64(seen_most, net.b.received - before);
    }
    assert_in_range(seen_most, RBI_LOOP_STREAM_PIECE / 2, most);
    assert_true(net_until(&net, net_all_came));
}

/** AES-GCM allows so many records with a key (RFC 8446, 5.5): another one is taken before. */
static void test_keys_are_changed(void **state)
{
    (void)state;
    connect_hosts();
    net_exchange(&net, 100000, 20000);
    for (unsigned i = 0; i < 5; i++) {
        net.a.conn->session.records = UINT64_C(1) << 23;
        net.b.conn->session.records = UINT64_C(1) << 23;
        net_exchange(&net, 100000, 20000);
        assert_in_range(net.a.conn->session.records, 1, 1000);
    }
    assert_int_equal(net.a.ups, 1);
}

static void test_quiet_connections_send_at_once_and_busy_ones_gather(void **state)
{
    (void)state;
    struct rbi_conn_figures before;
    struct rbi_conn_figures after;
    connect_hosts();
    /* Message by message, each awaited: each is a send. */
    rbi_conn_figures(net.a.conn, &before);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(net_send(&net.a, 48), 48);
        assert_true(net_until(&net, net_all_came));
    }
    rbi_conn_figures(net.a.conn, &after);
    assert_int_equal(after.sends - before.sends, 100);
    /* Many in a turn: few sends. */
    for (unsigned i = 0; i < 1000; i++) {
        assert_int_equal(net_send(&net.a, 48), 48);
    }
    assert_true(net_until(&net, net_all_came));
    before = after;
    rbi_conn_figures(net.a.conn, &after);
    assert_in_range(after.sends - before.sends, 1, 10);
    assert_false(net.b.wrong);
}

/* ---- slow readers ---------------------------------------------------------------------- */

static bool a_has_all(struct net *at)
{
    return at->a.received == at->b.sent;
}

static void test_who_reads_nothing_fills_a_bounded_queue(void **state)
{
    (void)state;
    struct rbi_conn_figures figures;
    connect_hosts();
    net.b.deaf = true;
    assert_true(net_until(&net, fill));
    rbi_conn_figures(net.a.conn, &figures);
    assert_in_range(figures.queued_max, 1, net.a.terms.queue_bytes + 65536);
    const unsigned rooms = net.a.rooms; /* while the buffers of the kernel filled */
    /* The other direction goes on. */
    while (net.b.sent < 200000) {
        net_send(&net.b, 1000);
        assert_int_equal(rbi_loop_turn(net.loop, 0), 0);
    }
    assert_true(net_until(&net, a_has_all));
    net.b.deaf = false;
    rbi_conn_resume(net.b.conn);
    assert_true(net_until(&net, net_all_came));
    assert_true(net.a.rooms > rooms);
    assert_false(net.a.wrong || net.b.wrong);
    net_exchange(&net, 1000000, 100000);
}

/* ---- ends ------------------------------------------------------------------------------ */

static bool b_is_down(struct net *at)
{
    return at->b.downs > 0;
}

static void test_what_was_written_before_a_close_comes(void **state)
{
    (void)state;
    connect_hosts();
    rbi_dial_pause(net.a.dial);
    while (net_send(&net.a, 100000)) {
    }
    rbi_conn_close(net.a.conn, "done");
    net.a.conn = NULL;
    assert_true(net_until(&net, b_is_down));
    assert_int_equal(net.b.received, net.a.sent);
    assert_false(net.b.wrong);
    assert_string_equal(net.b.why, "the peer has closed it");
    assert_int_equal(net.a.downs, 0);
    assert_int_equal(net.b.downs, 1);
}

static void test_a_cut_is_told_as_one(void **state)
{
    (void)state;
    connect_hosts();
    rbi_dial_pause(net.a.dial);
    net_send(&net.a, 100000);
    net_turn_ms(&net, 20);
    rbi_conn_cut(net.a.conn, "no answer");
    net.a.conn = NULL;
    assert_true(net_until(&net, b_is_down));
    if (net.tls) {
        assert_string_equal(net.b.why, "cut: it ended without a farewell");
    }
    assert_int_equal(net.b.downs, 1);
    assert_int_equal(net.a.downs, 0);
    struct rbi_dial_report report;
    rbi_dial_report(net.a.dial, &report);
    assert_int_equal(report.state, RBI_DIAL_PAUSED);
}

static void test_connections_are_made_again_and_leave_nothing(void **state)
{
    (void)state;
    connect_hosts();
    for (unsigned i = 0; i < FULL_OR(100U, 4U); i++) {
        net_exchange(&net, 100000, 50000);
        while (net_send(&net.a, 100000)) {
        }
        rbi_conn_cut(i % 2 ? net.a.conn : net.b.conn, "cut"); /* with a full queue, in the ring */
        if (i % 2) {
            net.a.conn = NULL;
        } else {
            net.b.conn = NULL;
        }
        assert_true(net_until(&net, net_connected));
        while (net.a.ups != i + 2 || net.b.ups != i + 2) {
            assert_int_equal(rbi_loop_turn(net.loop, 1000000), 0);
        }
        net.a.sent = net.b.received = net.b.sent = net.a.received = 0;
    }
    rbi_dial_pause(net.a.dial);
    rbi_conn_close(net.a.conn, "done");
    net.a.conn = NULL;
    assert_true(net_until(&net, all_memory_is_free));
}

/* ---- without buffers ------------------------------------------------------------------- */

static bool no_buffers;
int __real_io_uring_register_buf_ring(struct io_uring *ring,
                                      struct io_uring_buf_reg *reg,
                                      unsigned flags);
int __wrap_io_uring_register_buf_ring(struct io_uring *ring,
                                      struct io_uring_buf_reg *reg,
                                      unsigned flags);
int __wrap_io_uring_register_buf_ring(struct io_uring *ring,
                                      struct io_uring_buf_reg *reg,
                                      unsigned flags)
{
    return no_buffers ? -EINVAL : __real_io_uring_register_buf_ring(ring, reg, flags);
}

/** An io_uring that has no rings of buffers, or is out of memory for one: by readiness. */
static int setup_without_buffers(void **state)
{
    no_buffers = true;
    return setup(state);
}

static int teardown_without_buffers(void **state)
{
    no_buffers = false;
    return teardown(state);
}

#define MODE_WITHOUT_BUFFERS(test, mode)                                                           \
    {                                                                                              \
#test " without buffers", test, setup_without_buffers, teardown_without_buffers,           \
            (void *)(uintptr_t)mode                                                                \
    }
#define MODE(test, mode)                                                                           \
    {                                                                                              \
#test " " mode, test, setup, teardown, (void *)(uintptr_t)mode                             \
    }
#define MODES(test)                                                                                \
    MODE(test, "uring plain"), MODE(test, "epoll plain"), MODE(test, "uring tls"),                 \
        MODE(test, "epoll tls")

int main(void)
{
    const struct CMUnitTest tests[] = {
        MODES(test_names_are_those_of_the_certificates),
        MODES(test_bytes_come_once_and_in_order_in_any_sizes),
        MODES(test_reading_is_bounded_a_turn),
        MODE(test_keys_are_changed, "uring tls"),
        MODE(test_sends_without_a_copy_are_held_until_they_are_returned, "uring plain"),
        MODE(test_sends_without_a_copy_are_held_until_they_are_returned, "uring tls"),
        MODES(test_quiet_connections_send_at_once_and_busy_ones_gather),
        MODES(test_who_reads_nothing_fills_a_bounded_queue),
        MODES(test_what_was_written_before_a_close_comes),
        MODES(test_a_cut_is_told_as_one),
        MODES(test_connections_are_made_again_and_leave_nothing),
        MODE_WITHOUT_BUFFERS(test_bytes_come_once_and_in_order_in_any_sizes, "uring tls"),
        MODE_WITHOUT_BUFFERS(test_who_reads_nothing_fills_a_bounded_queue, "uring plain"),
        MODE_WITHOUT_BUFFERS(test_a_cut_is_told_as_one, "uring tls"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
