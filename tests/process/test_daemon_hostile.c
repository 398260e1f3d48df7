/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that say the wrong thing, in pieces, too much, or nothing at all. */
#include "bus/record.h"
#include "daemon/code.h"
#include "shm/bell.h"
#include "support/loops.h"
#include "support/raw.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define ECHO   "/game/eu/pc/w1/core/echo"
#define ECHO_1 ECHO "/1"

static const char *socket_path(void)
{
    return loops_cluster.socket;
}

static void send_packet(struct raw *raw, const void *data, size_t size)
{
    assert_int_equal(rbi_handoff_send(raw->fd, data, size, NULL, 0), 0);
}

static size_t encode_hello(void *frame)
{
    struct rbi_wire_hello hello = {
        .protocol_min = 1, .protocol_max = 1, .fingerprint = rbi_layout_fingerprint()};
    rbi_text_set(&hello.program, "raw");
    return rbi_wire_encode(RBI_WIRE_HELLO, &hello, 1, 0, frame);
}

static size_t encode_query(void *frame, uint32_t serial)
{
    const struct rbi_wire_query query = {.what = RBI_QUERY_STATUS};
    return rbi_wire_encode(RBI_WIRE_QUERY, &query, serial, 0, frame);
}

/** Nothing is left of the bad clients, and others are served. */
static void assert_healthy(int fd_count)
{
    struct raw raw;
    assert_int_equal(cluster_fd_wait(&loops_cluster, fd_count), fd_count);
    assert_int_equal(raw_up(&raw, socket_path(), ECHO "/77"), 0);
    raw_close(&raw);
    assert_int_equal(cluster_fd_wait(&loops_cluster, fd_count), fd_count);
}

/* Scenario 25: byte by byte. */
static void test_pieces(void **state)
{
    unsigned char frame[RBI_WIRE_FRAME_MAX];
    struct raw raw;
    struct raw_message message;
    assert_int_equal(loops_up(state, "", ""), 0);
    assert_int_equal(raw_connect(&raw, socket_path()), 0);
    size_t size = encode_hello(frame);
    for (size_t i = 0; i < size; i++) {
        send_packet(&raw, frame + i, 1);
    }
    assert_int_equal(raw_expect(&raw, RBI_WIRE_HELLO_OK, &message, RAW_TIMEOUT_MS), 0);
    raw_message_deinit(&message);
    /* With descriptors in front of the first byte. */
    struct rbi_wire_registration body = {.weight = 1,
                                         .state = RBI_ENDPOINT_READY,
                                         .page_bytes = RBI_PAGE,
                                         .pool_bytes = 2 * RBI_PAGE};
    rbi_text_set(&body.path, ECHO_1);
    assert_int_equal(rbi_segment_create(&raw.page, "page", RBI_SEGMENT_PAGE, body.page_bytes, 0),
                     0);
    assert_int_equal(rbi_segment_create(&raw.pool, "pool", RBI_SEGMENT_POOL, body.pool_bytes, 0),
                     0);
    const int fds[] = {raw.page.fd, raw.pool.fd};
    size = rbi_wire_encode(RBI_WIRE_REGISTER, &body, 2, 0, frame);
    assert_int_equal(rbi_handoff_send(raw.fd, frame, 1, fds, 2), 0);
    for (size_t i = 1; i < size; i++) {
        send_packet(&raw, frame + i, 1);
    }
    assert_int_equal(raw_expect(&raw, RBI_WIRE_REGISTERED, &message, RAW_TIMEOUT_MS), 0);
    raw_close(&raw);
}

/* Scenario 25: five requests in one packet. */
static void test_glued(void **state)
{
    unsigned char packet[RBI_WIRE_FRAME_MAX];
    struct raw raw;
    struct raw_message message;
    assert_int_equal(loops_up(state, "", ""), 0);
    assert_int_equal(raw_connect(&raw, socket_path()), 0);
    size_t size = encode_hello(packet);
    for (uint32_t serial = 2; serial <= 6; serial++) {
        unsigned char frame[RBI_WIRE_FRAME_MAX];
        const size_t more = encode_query(frame, serial);
        memcpy(packet + size, frame, more);
        size += more;
    }
    send_packet(&raw, packet, size);
    for (uint32_t serial = 2; serial <= 6; serial++) {
        assert_int_equal(raw_expect(&raw, RBI_WIRE_QUERY_END, &message, RAW_TIMEOUT_MS), 0);
        assert_int_equal(message.header.reply_to, serial);
        assert_true(message.body.query_end.rows > 10);
    }
    raw_close(&raw);
}

/* Scenario 25: half a request, then silence; half a request, then the end. */
static void test_half_a_frame(void **state)
{
    unsigned char frame[RBI_WIRE_FRAME_MAX];
    struct raw silent;
    struct raw ended;
    struct raw other;
    assert_int_equal(loops_up(state, "request_timeout: 200ms", ""), 0);
    const int fds = loops_idle_fds();
    assert_int_equal(raw_up(&other, socket_path(), ""), 0);
    assert_int_equal(raw_connect(&silent, socket_path()), 0);
    assert_int_equal(raw_connect(&ended, socket_path()), 0);
    assert_int_equal(raw_hello(&silent), 0);
    const size_t size = encode_query(frame, 9);
    send_packet(&ended, frame, size / 2);
    raw_close(&ended);
    const uint64_t before_ms = test_now_ms();
    send_packet(&silent, frame, size / 2);
    assert_int_equal(raw_expect_error(&silent), RBI_CODE_TIMEOUT);
    assert_true(test_now_ms() - before_ms >= 190);
    assert_true(raw_closed(&silent, 500));
    raw_close(&silent);
    assert_true(raw_silent(&other, 20));
    assert_int_equal(raw_set_state(&other, RBI_ENDPOINT_BUSY), 0);
    raw_close(&other);
    assert_healthy(fds);
}

/** Sends bytes on a fresh, greeted connection; wants an error and the end. */
static void assert_violation(const void *data, size_t size, int code)
{
    struct raw raw;
    assert_int_equal(raw_connect(&raw, socket_path()), 0);
    assert_int_equal(raw_hello(&raw), 0);
    send_packet(&raw, data, size);
    assert_int_equal(raw_expect_error(&raw), code);
    assert_true(raw_closed(&raw, 500));
    raw_close(&raw);
}

/* Scenario 30. */
static void test_garbage(void **state)
{
    unsigned char frame[2 * RBI_WIRE_FRAME_MAX + 1];
    assert_int_equal(loops_up(state, "", ""), 0);
    const int fds = loops_idle_fds();
    size_t size = encode_query(frame, 3);
    frame[0] ^= 1; /* magic */
    assert_violation(frame, size, RBI_CODE_BAD_PEER);
    size = encode_query(frame, 3);
    memset(frame + 4, 0xff, 4); /* length */
    assert_violation(frame, size, RBI_CODE_BAD_PEER);
    size = encode_query(frame, 3);
    frame[8] = 0xee; /* type */
    assert_violation(frame, size, RBI_CODE_BAD_PEER);
    size = encode_query(frame, 3);
    frame[8] = RBI_WIRE_HELLO_OK; /* not one of a client */
    assert_violation(frame, size, RBI_CODE_BAD_PEER);
    size = encode_query(frame, 3);
    frame[11] = 2; /* descriptors that QUERY has not */
    assert_violation(frame, size, RBI_CODE_BAD_PEER);
    struct rbi_wire_watch watch;
    memset(&watch, 0, sizeof(watch));
    rbi_text_set(&watch.prefix, "/game");
    size = rbi_wire_encode(RBI_WIRE_WATCH, &watch, 4, 0, frame);
    frame[size - 2] = 0; /* NUL inside a text */
    assert_violation(frame, size, RBI_CODE_BAD_PEER);
    memset(frame, 'A', sizeof(frame));
    assert_violation(frame, 2000, RBI_CODE_BAD_PEER);
    assert_violation(frame, sizeof(frame), RBI_CODE_BAD_PEER); /* longer than any packet */
    size = encode_hello(frame);
    assert_violation(frame, size, RBI_CODE_BAD_PEER); /* greets twice */
    assert_true(cluster_log_count(&loops_cluster, "event=bad_frame") == 1);
    assert_healthy(fds);
}

/** Fixed seed: a failure can be repeated. */
static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525U + 1013904223U;
    return *seed >> 8;
}

/* Scenario 30: random bytes, and good frames with random damage. */
static void test_random_bytes(void **state)
{
    uint32_t seed = 4711;
    unsigned char frame[RBI_WIRE_FRAME_MAX];
    assert_int_equal(loops_up(state, "request_timeout: 200ms", "quota: {connects: 10000}\n"), 0);
    const int fds = loops_idle_fds();
    for (unsigned round = 0; round < 1000; round++) {
        struct raw raw;
        assert_int_equal(raw_connect(&raw, socket_path()), 0);
        size_t size = encode_query(frame, 1);
        if (round % 2) {
            assert_int_equal(raw_hello(&raw), 0);
            for (unsigned i = 0; i < 3; i++) {
                frame[next_random(&seed) % size] = (unsigned char)next_random(&seed);
            }
        } else {
            size = 1 + next_random(&seed) % 600;
            for (size_t i = 0; i < size; i++) {
                frame[i] = (unsigned char)next_random(&seed);
            }
        }
        send_packet(&raw, frame, size);
        raw_close(&raw);
    }
    assert_healthy(fds);
}

static void test_before_hello(void **state)
{
    unsigned char frame[RBI_WIRE_FRAME_MAX];
    struct raw raw;
    assert_int_equal(loops_up(state, "", ""), 0);
    assert_int_equal(raw_connect(&raw, socket_path()), 0);
    send_packet(&raw, frame, encode_query(frame, 1));
    assert_int_equal(raw_expect_error(&raw), RBI_CODE_BAD_PEER);
    assert_true(raw_closed(&raw, 500));
    raw_close(&raw);
}

static void test_other_version(void **state)
{
    struct raw raw;
    struct rbi_text text;
    assert_int_equal(loops_up(state, "", ""), 0);
    struct rbi_wire_hello hello = {
        .protocol_min = 7, .protocol_max = 9, .fingerprint = rbi_layout_fingerprint()};
    assert_int_equal(raw_connect(&raw, socket_path()), 0);
    assert_int_equal(raw_send(&raw, RBI_WIRE_HELLO, &hello, NULL, 0), 0);
    assert_int_equal(raw_expect_error_text(&raw, &text), RBI_CODE_VERSION);
    assert_non_null(strstr(text.bytes, "7 to 9"));
    assert_non_null(strstr(text.bytes, "1 to 2"));
    assert_true(raw_closed(&raw, 500));
    raw_close(&raw);
    hello.protocol_min = 1;
    hello.fingerprint = UINT64_C(0x1122334455667788);
    assert_int_equal(raw_connect(&raw, socket_path()), 0);
    assert_int_equal(raw_send(&raw, RBI_WIRE_HELLO, &hello, NULL, 0), 0);
    assert_int_equal(raw_expect_error_text(&raw, &text), RBI_CODE_VERSION);
    assert_non_null(strstr(text.bytes, "1122334455667788"));
    assert_true(raw_closed(&raw, 500));
    raw_close(&raw);
}

/* Scenario 31: 200 connections that never speak. */
static void test_silent_connections(void **state)
{
    struct raw raws[200];
    assert_int_equal(loops_up(state, "handshake_timeout: 200ms", ""), 0);
    const int fds = loops_idle_fds();
    for (unsigned i = 0; i < 200; i++) {
        assert_int_equal(raw_connect(&raws[i], socket_path()), 0);
    }
    for (unsigned i = 0; i < 200; i++) {
        assert_int_equal(raw_expect_error(&raws[i]), RBI_CODE_TIMEOUT);
        assert_true(raw_closed(&raws[i], 1000));
        raw_close(&raws[i]);
    }
    assert_healthy(fds);
}

/** Events in a watcher's socket, until RESYNC. @return their number, or -1 without RESYNC */
static int count_until_resync(struct raw *raw)
{
    struct raw_message message;
    for (int count = 0;; count++) {
        if (raw_receive(raw, &message, RAW_TIMEOUT_MS) != 0) {
            return -1;
        }
        if (message.header.type == RBI_WIRE_RESYNC) {
            return count;
        }
        assert_int_equal(message.header.type, RBI_WIRE_EVENT);
    }
}

/* Scenario 31: a watcher that does not read. */
static void test_watcher_that_does_not_read(void **state)
{
    struct raw deaf;
    struct raw busy;
    struct raw_message message;
    assert_int_equal(loops_up(state, "send_queue: 64", "quota: {control: 100000}\n"), 0);
    assert_int_equal(raw_up(&deaf, socket_path(), ""), 0);
    assert_int_equal(raw_watch(&deaf, RBI_WIRE_WATCH, "/game"), 0);
    assert_int_equal(raw_up(&busy, socket_path(), ECHO_1), 0);
    for (unsigned i = 0; i < 5000; i++) {
        assert_int_equal(raw_set_state(&busy, i % 2 ? RBI_ENDPOINT_READY : RBI_ENDPOINT_BUSY), 0);
    }
    assert_true(raw_status(socket_path(), "events_dropped") > 1000);
    const int kept = count_until_resync(&deaf);
    assert_in_range(kept, 48, 4000);
    assert_int_equal(raw_status(socket_path(), "resyncs"), 1);
    /* It hears again. */
    assert_int_equal(raw_set_state(&busy, RBI_ENDPOINT_DRAINING), 0);
    assert_int_equal(raw_receive(&deaf, &message, RAW_TIMEOUT_MS), 0);
    assert_int_equal(message.header.type, RBI_WIRE_EVENT);
    assert_int_equal(message.body.event.state, RBI_ENDPOINT_DRAINING);
    raw_close(&deaf);
    raw_close(&busy);
}

/** Makes the daemon send what must not be lost to a server that does not read. */
static void test_server_that_does_not_read(void **state)
{
    struct raw deaf;
    struct raw client;
    struct raw_message message;
    assert_int_equal(
        loops_up(state, "send_queue: 16, request_timeout: 10s", "quota: {control: 100000}\n"), 0);
    const int fds = loops_idle_fds();
    assert_int_equal(raw_up(&deaf, socket_path(), ECHO_1), 0);
    assert_int_equal(raw_up(&client, socket_path(), ""), 0);
    bool closed = false;
    for (unsigned i = 0; i < 1000 && !closed; i++) {
        /* It never answers the first; the second tells which link to give up for the next. */
        assert_int_equal(raw_introduce(&client, deaf.registered.cluster, 1, 0), 0);
        assert_int_equal(raw_introduce(&client, deaf.registered.cluster, 1, 0), 0);
        assert_int_equal(raw_expect(&client, RBI_WIRE_ERROR, &message, RAW_TIMEOUT_MS), 0);
        const struct rbi_wire_link_down down = {.link_id = message.body.error.link_id,
                                                .reason = RBI_REASON_GIVEN_UP};
        closed = message.body.error.code != RBI_CODE_IN_USE;
        assert_int_equal(raw_send(&client, RBI_WIRE_LINK_DOWN, &down, NULL, 0), 0);
    }
    assert_true(closed);
    assert_true(raw_status(socket_path(), "queue_overflows") >= 1);
    raw_close(&deaf);
    raw_close(&client);
    assert_healthy(fds);
}

/* Scenario 35: descriptors nobody asked for. */
static void test_unwanted_descriptors(void **state)
{
    unsigned char frame[RBI_WIRE_FRAME_MAX];
    struct raw raw;
    int fds[RBI_HANDOFF_FDS_MAX];
    assert_int_equal(loops_up(state, "", ""), 0);
    const int before = loops_idle_fds();
    for (unsigned i = 0; i < RBI_HANDOFF_FDS_MAX; i++) {
        fds[i] = STDERR_FILENO;
    }
    assert_int_equal(raw_connect(&raw, socket_path()), 0);
    assert_int_equal(raw_hello(&raw), 0);
    size_t size = encode_query(frame, 5);
    assert_int_equal(rbi_handoff_send(raw.fd, frame, size, fds, 3), 0);
    assert_int_equal(raw_expect_error(&raw), RBI_CODE_BAD_PEER);
    assert_true(raw_closed(&raw, 500));
    raw_close(&raw);
    /* 253 of them, as many as the kernel takes. */
    union {
        struct cmsghdr align;
        unsigned char bytes[CMSG_SPACE(RBI_HANDOFF_FDS_KERNEL * sizeof(int))];
    } control;
    struct iovec iov = {.iov_base = frame, .iov_len = size};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = &control,
                         .msg_controllen = sizeof(control)};
    memset(&control, 0, sizeof(control));
    control.align.cmsg_level = SOL_SOCKET;
    control.align.cmsg_type = SCM_RIGHTS;
    control.align.cmsg_len = CMSG_LEN(RBI_HANDOFF_FDS_KERNEL * sizeof(int));
    for (unsigned i = 0; i < RBI_HANDOFF_FDS_KERNEL; i++) {
        const int fd = STDERR_FILENO;
        memcpy(CMSG_DATA(&control.align) + i * sizeof(int), &fd, sizeof(int));
    }
    assert_int_equal(raw_connect(&raw, socket_path()), 0);
    assert_int_equal(raw_hello(&raw), 0);
    size = encode_query(frame, 6);
    assert_true(sendmsg(raw.fd, &msg, 0) > 0);
    assert_int_equal(raw_expect_error(&raw), RBI_CODE_BAD_PEER);
    raw_close(&raw);
    assert_healthy(before);
}

/* Scenario 35: credentials in front of the descriptors change nothing. */
static void test_credentials_are_skipped(void **state)
{
    struct raw raw;
    const int on = 1;
    assert_int_equal(loops_up(state, "", ""), 0);
    assert_int_equal(raw_connect(&raw, socket_path()), 0);
    assert_int_equal(setsockopt(raw.fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)), 0);
    assert_int_equal(raw_hello(&raw), 0);
    assert_int_equal(raw_register(&raw, ECHO_1, RBI_ENDPOINT_READY), 0);
    raw_close(&raw);
}

static void assert_register_refused(struct raw *raw, int page_fd, int pool_fd, uint64_t pool_bytes)
{
    struct rbi_wire_registration body = {
        .weight = 1, .state = RBI_ENDPOINT_READY, .page_bytes = RBI_PAGE, .pool_bytes = pool_bytes};
    const int fds[] = {page_fd, pool_fd};
    rbi_text_set(&body.path, ECHO_1);
    assert_int_equal(raw_send(raw, RBI_WIRE_REGISTER, &body, fds, 2), 0);
    assert_int_equal(raw_expect_error(raw), RBI_CODE_BAD_PEER);
}

static void test_bad_segments(void **state)
{
    struct raw raw;
    struct rbi_segment page = RBI_SEGMENT_NULL;
    struct rbi_segment pool = RBI_SEGMENT_NULL;
    assert_int_equal(loops_up(state, "", ""), 0);
    const int before = loops_idle_fds();
    const int unsealed = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(unsealed >= 0);
    assert_int_equal(ftruncate(unsealed, RBI_PAGE), 0);
    assert_int_equal(rbi_segment_create(&page, "page", RBI_SEGMENT_PAGE, RBI_PAGE, 0), 0);
    assert_int_equal(rbi_segment_create(&pool, "pool", RBI_SEGMENT_POOL, 2 * RBI_PAGE, 0), 0);
    assert_int_equal(raw_connect(&raw, socket_path()), 0);
    assert_int_equal(raw_hello(&raw), 0);
    assert_register_refused(&raw, unsealed, pool.fd, pool.size);
    assert_register_refused(&raw, STDERR_FILENO, pool.fd, pool.size);
    assert_register_refused(&raw, pool.fd, pool.fd, pool.size);
    assert_register_refused(&raw, page.fd, page.fd, pool.size);
    assert_register_refused(&raw, page.fd, unsealed, RBI_PAGE);
    assert_register_refused(&raw, page.fd, pool.fd, 3 * RBI_PAGE);
    /* It may still do it right. */
    assert_int_equal(raw_register(&raw, ECHO_1, RBI_ENDPOINT_READY), 0);
    raw_close(&raw);
    rbi_segment_deinit(&page);
    rbi_segment_deinit(&pool);
    (void)close(unsealed);
    assert_healthy(before);
}

static void test_bad_offers(void **state)
{
    struct raw server;
    struct raw client;
    assert_int_equal(loops_up(state, "", ""), 0);
    assert_int_equal(raw_up(&server, socket_path(), ECHO_1), 0);
    assert_int_equal(raw_up(&client, socket_path(), ""), 0);
    assert_int_equal(raw_make_side(&client.side), 0);
    assert_int_equal(rbi_bell_pair(client.bell), 0);
    struct rbi_wire_introduce body = {
        .cluster = server.registered.cluster, .instance = 1, .side_bytes = client.side.size};
    const int no_bell[] = {client.side.fd, client.side.fd};
    assert_int_equal(raw_send(&client, RBI_WIRE_INTRODUCE, &body, no_bell, 2), 0);
    assert_int_equal(raw_expect_error(&client), RBI_CODE_BAD_PEER);
    const int no_side[] = {client.pool.fd, client.bell[1]};
    assert_int_equal(raw_send(&client, RBI_WIRE_INTRODUCE, &body, no_side, 2), 0);
    assert_int_equal(raw_expect_error(&client), RBI_CODE_BAD_PEER);
    assert_true(raw_silent(&server, 50)); /* it was never bothered */
    assert_int_equal(raw_link(&client, &server, NULL), 0);
    raw_close(&client);
    raw_close(&server);
}

static void limit_fds(void *context)
{
    const struct rlimit limit = {.rlim_cur = *(const rlim_t *)context,
                                 .rlim_max = *(const rlim_t *)context};
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* Scenario 34, the daemon's half: a request that lost its descriptors is refused, nothing leaks. */
static void test_descriptors_lost_on_the_way(void **state)
{
    rlim_t max = 40;
    struct raw keep[24];
    unsigned count = 0;
    struct raw raw;
    struct rbi_wire_registration body = {.weight = 1, .state = RBI_ENDPOINT_READY};
    rbi_text_set(&body.path, ECHO_1);
    assert_int_equal(loops_make(state, "", ""), 0);
    loops_cluster.before_exec = limit_fds;
    loops_cluster.context = &max;
    assert_int_equal(cluster_start(&loops_cluster), 0);
    const int before = loops_idle_fds();
    assert_int_equal(raw_connect(&raw, socket_path()), 0);
    assert_int_equal(raw_hello(&raw), 0);
    /* Until it has one descriptor left, or none. */
    while (count < 24 && cluster_fd_count(&loops_cluster) < (int)max - 1) {
        assert_int_equal(raw_connect(&keep[count], socket_path()), 0);
        (void)raw_hello(&keep[count]);
        count++;
    }
    assert_int_equal(raw_send_register(&raw, &body), 0);
    assert_int_equal(raw_expect_error(&raw), RBI_CODE_NO_FDS);
    while (count) {
        raw_close(&keep[--count]);
    }
    assert_int_equal(cluster_fd_wait(&loops_cluster, before + 2), before + 2);
    assert_int_equal(raw_register(&raw, ECHO_1, RBI_ENDPOINT_READY), 0);
    raw_close(&raw);
    assert_int_equal(cluster_fd_wait(&loops_cluster, before), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOPS_BOTH(test_pieces),
        LOOPS_BOTH(test_glued),
        LOOPS_BOTH(test_half_a_frame),
        LOOPS_BOTH(test_garbage),
        LOOPS_BOTH(test_random_bytes),
        LOOPS_BOTH(test_before_hello),
        LOOPS_BOTH(test_other_version),
        LOOPS_BOTH(test_silent_connections),
        LOOPS_BOTH(test_watcher_that_does_not_read),
        LOOPS_BOTH(test_server_that_does_not_read),
        LOOPS_BOTH(test_unwanted_descriptors),
        LOOPS_BOTH(test_credentials_are_skipped),
        LOOPS_BOTH(test_bad_segments),
        LOOPS_BOTH(test_bad_offers),
        LOOPS_BOTH(test_descriptors_lost_on_the_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
