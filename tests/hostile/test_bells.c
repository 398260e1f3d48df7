/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bells that are none, full, dead or loaded, and descriptors that make whoever drops them
 * wait.
 */
#include "hostile/attack.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <ringbus/ringbus.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int introduce(int side, uint64_t bytes, int bell)
{
    return peer_introduce_with(&peer, stage.scene->cluster, (int32_t)stage.scene->instance, side,
                               bytes, bell);
}

static int one_of(int fds[2])
{
    (void)close(fds[1]);
    return fds[0];
}

/* ---- bells ------------------------------------------------------------------------------- */

static int make_listening(void)
{
    const struct sockaddr_un any = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    /* The kernel picks an abstract name. */
    assert_int_equal(bind(fd, (const struct sockaddr *)(const void *)&any, sizeof(sa_family_t)), 0);
    assert_int_equal(listen(fd, 1), 0);
    return fd;
}

static void test_bells_that_are_none(void **state)
{
    int bells[9];
    int pair[2];
    (void)state;
    assert_int_equal(peer_offer(&peer), 0);
    bells[0] = eventfd(0, EFD_CLOEXEC);
    assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
    bells[1] = one_of(pair);
    bells[2] = make_listening();
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair), 0);
    bells[3] = one_of(pair);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    bells[4] = one_of(pair);
    bells[5] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bells[6] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); /* not connected */
    bells[7] = peer.side.fd;
    bells[8] = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(bells); i++) {
        assert_true(bells[i] >= 0);
        const int code = introduce(peer.side.fd, PEER_SIDE_BYTES, bells[i]);
        if (code != RINGBUS_E_BAD_PEER) {
            print_error("bell %u: code %d\n", i, code);
        }
        assert_int_equal(code, RINGBUS_E_BAD_PEER);
        if (i != 7) {
            (void)close(bells[i]);
        }
    }
}

static void fill_socket(int fd)
{
    static const unsigned char bytes[4096];
    while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
    while (send(fd, bytes, 1, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
}

/** Full both ways from the beginning: the link works, rings are thrown away. */
static void test_full_bell(void **state)
{
    (void)state;
    assert_int_equal(peer_offer(&peer), 0);
    fill_socket(peer.bell);
    fill_socket(peer.bell_copy);
    assert_int_equal(introduce(peer.side.fd, PEER_SIDE_BYTES, peer.bell_copy), 0);
    const struct rbi_ready ready = peer_ready(&peer);
    peer_put_ready(&peer, &ready);
    assert_int_equal(peer_await(&peer, RBI_RECORD_READY_ACK, 0, PEER_TIMEOUT_MS), 0);
    stage.scene->talk = 1;
    for (unsigned i = 0; i < 20; i++) {
        fill_socket(peer.bell);
        assert_int_equal(peer_ping(&peer, PEER_TIMEOUT_MS), 0);
    }
    stage.scene->talk = 0;
}

static void test_dead_bell(void **state)
{
    (void)state;
    for (int how = 0; how < 4; how++) {
        assert_int_equal(peer_offer(&peer), 0);
        if (how == 3) {
            (void)close(peer.bell);
            peer.bell = -1;
        } else {
            (void)shutdown(how == 2 ? peer.bell_copy : peer.bell, how % 3);
        }
        const int code = introduce(peer.side.fd, PEER_SIDE_BYTES, peer.bell_copy);
        if (code == 0) {
            const struct rbi_ready ready = peer_ready(&peer);
            peer_put_ready(&peer, &ready);
            if (how == SHUT_RD) { /* it does not listen to us: its own loss */
                assert_int_equal(peer_ping(&peer, PEER_TIMEOUT_MS), 0);
            } else {
                assert_true(peer_await_down(&peer, PEER_TIMEOUT_MS) >= 0);
            }
        } else {
            assert_true(code > -1000);
        }
        peer_unlink(&peer);
    }
}

/** Descriptors sent over a bell are closed, not kept. */
static void test_bell_with_descriptors(void **state)
{
    static const unsigned char byte = 1;
    (void)state;
    assert_int_equal(peer_link(&peer, stage.scene->cluster, (int32_t)stage.scene->instance), 0);
    for (unsigned i = 0; i < 200; i++) {
        const int fds[] = {peer.side.fd, peer.side.fd, peer.bell, peer.side.fd};
        (void)!rbi_handoff_send(peer.bell, &byte, 1, fds, 4);
        if (i % 10 == 0) {
            assert_int_equal(peer_ping(&peer, PEER_TIMEOUT_MS), 0);
        }
    }
    peer_unlink(&peer);
    assert_true(stage_alive(&stage));
}

/* ---- descriptors that make whoever drops them wait --------------------------------------- */

/** A TCP socket with bytes that nobody takes: its last close waits 20 s for them. */
static int make_lingering(int *kept)
{
    static const unsigned char bytes[65536];
    const struct linger linger = {.l_onoff = 1, .l_linger = 20};
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(addr);
    const int small = 4096;
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)) < 0 ||
        bind(listener, (struct sockaddr *)(void *)&addr, sizeof(addr)) < 0 ||
        listen(listener, 1) < 0 ||
        getsockname(listener, (struct sockaddr *)(void *)&addr, &length) < 0 ||
        connect(fd, (struct sockaddr *)(void *)&addr, sizeof(addr)) < 0) {
        (void)close(listener);
        (void)close(fd);
        return -1; /* no loopback here */
    }
    *kept = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    (void)close(listener);
    for (unsigned i = 0; i < 30; i++) {
        while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0) {
        }
        test_sleep_ms(1);
    }
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
    return fd;
}

/** Sends it over @p sock; the copy there is the last one. */
static bool send_lingering(int sock, const void *bytes, size_t size, int *kept)
{
    const int fd = make_lingering(kept);
    const int fds[] = {fd, fd};
    if (fd < 0) {
        return false;
    }
    assert_int_equal(rbi_handoff_send(sock, bytes, size, fds, 2), 0);
    /* Ours is not the last close: the message in flight holds it. */
    (void)close(fd);
    return true;
}

static void test_lingering_over_bell(void **state)
{
    static const unsigned char byte = 1;
    int kept[3] = {-1, -1, -1};
    (void)state;
    assert_int_equal(peer_link(&peer, stage.scene->cluster, (int32_t)stage.scene->instance), 0);
    if (!send_lingering(peer.bell, &byte, 1, &kept[0])) {
        skip();
    }
    for (unsigned i = 0; i < 10; i++) {
        assert_true(stage_alive(&stage));
    }
    /* Two more lie there when the link ends. */
    const uint64_t bye[2] = {0, RBI_REASON_LEFT};
    const uint64_t downs = stage.scene->downs;
    assert_true(send_lingering(peer.bell, &byte, 1, &kept[1]));
    assert_true(send_lingering(peer.bell, &byte, 1, &kept[2]));
    peer_put(&peer, rbi_record_meta(RBI_RECORD_DISCONNECT, 0, 0, 0), bye, sizeof(bye));
    assert_true(stage_changes(&stage.scene->downs, downs, 2000));
    peer_unlink(&peer);
    assert_true(stage_alive(&stage));
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(kept); i++) {
        (void)close(kept[i]);
    }
}

/** As page and pool of a registration: the daemon refuses them, and goes on at once. */
static void test_lingering_to_daemon(void **state)
{
    unsigned char frame[RBI_WIRE_FRAME_MAX];
    struct raw raw;
    struct rbi_wire_registration body = {.weight = 100,
                                         .state = RBI_ENDPOINT_READY,
                                         .page_bytes = RBI_PAGE,
                                         .pool_bytes = 4 * RBI_PAGE};
    int kept = -1;
    (void)state;
    rbi_text_set(&body.path, HOSTILE "/9");
    assert_int_equal(raw_connect(&raw, stage.cluster.socket), 0);
    assert_int_equal(raw_hello(&raw), 0);
    const size_t size = rbi_wire_encode(RBI_WIRE_REGISTER, &body, 2, 0, frame);
    const uint64_t start_ms = test_now_ms();
    if (!send_lingering(raw.fd, frame, size, &kept)) {
        skip();
    }
    assert_int_equal(raw_expect_error(&raw), RINGBUS_E_BAD_PEER);
    raw_close(&raw);
    assert_int_equal(peer_link(&peer, stage.scene->cluster, (int32_t)stage.scene->instance), 0);
    assert_true(test_now_ms() - start_ms < 2000);
    (void)close(kept);
}

/** Queued behind a packet that ends the connection: thrown away unread, and at once. */
static void test_lingering_behind_a_violation(void **state)
{
    static const unsigned char garbage[64] = "this is no frame";
    struct raw raw;
    int kept = -1;
    (void)state;
    assert_int_equal(raw_connect(&raw, stage.cluster.socket), 0);
    assert_int_equal(raw_hello(&raw), 0);
    /* Stopped, so that all of it lies in the socket when it looks. */
    assert_int_equal(kill(stage.cluster.pid, SIGSTOP), 0);
    assert_int_equal(rbi_handoff_send(raw.fd, garbage, sizeof(garbage), NULL, 0), 0);
    const bool sent = send_lingering(raw.fd, garbage, sizeof(garbage), &kept);
    raw_close(&raw);
    const uint64_t start_ms = test_now_ms();
    assert_int_equal(kill(stage.cluster.pid, SIGCONT), 0);
    if (!sent) {
        skip();
    }
    assert_int_equal(peer_link(&peer, stage.scene->cluster, (int32_t)stage.scene->instance), 0);
    assert_true(test_now_ms() - start_ms < 2000);
    (void)close(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_bells_that_are_none, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_full_bell, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_dead_bell, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_bell_with_descriptors, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_lingering_over_bell, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_lingering_to_daemon, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_lingering_behind_a_violation, attack_setup,
                                        attack_teardown),
    };
    return cmocka_run_group_tests_name("bells", tests, NULL, NULL);
}
