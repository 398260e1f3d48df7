/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a peer can offer at its registration and introduction, as requester and as
 * server: refused with the reason, and nobody keeps a descriptor or a mapping of it.
 */
#include "hostile/attack.h"
#include "hostile/flaw.h"

#include <fcntl.h>
#include <pthread.h>
#include <ringbus/ringbus.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

static unsigned next_instance = 10;

/** A new hostile instance: nobody waits longer because the last one was refused. */
static void another_peer(void)
{
    char path[RBI_PATH_MAX + 1];
    peer_down(&peer);
    (void)snprintf(path, sizeof(path), HOSTILE "/%u", next_instance++);
    assert_int_equal(peer_up(&peer, stage.cluster.socket, path), 0);
}

static int introduce(int side, uint64_t bytes, int bell)
{
    return peer_introduce_with(&peer, stage.scene->cluster, (int32_t)stage.scene->instance, side,
                               bytes, bell);
}

/* ---- registration ------------------------------------------------------------------------ */

static int try_register(enum flaw page_flaw, enum flaw pool_flaw)
{
    struct raw raw;
    struct raw_message message;
    const uint64_t pool_bytes = 16 * RBI_PAGE;
    struct rbi_wire_registration body = {.weight = 100,
                                         .state = RBI_ENDPOINT_READY,
                                         .page_bytes = RBI_PAGE,
                                         .pool_bytes = pool_bytes};
    rbi_text_set(&body.path, HOSTILE "/9");
    assert_int_equal(raw_connect(&raw, stage.cluster.socket), 0);
    assert_int_equal(raw_hello(&raw), 0);
    const int fds[] = {flaw_make(page_flaw, RBI_SEGMENT_PAGE, RBI_PAGE),
                       flaw_make(pool_flaw, RBI_SEGMENT_POOL, pool_bytes)};
    assert_int_equal(raw_send(&raw, RBI_WIRE_REGISTER, &body, fds, 2), 0);
    int code = 0;
    assert_int_equal(raw_receive(&raw, &message, RAW_TIMEOUT_MS), 0);
    if (message.header.type == RBI_WIRE_ERROR) {
        code = message.body.error.code;
        assert_true(message.body.error.text.length > 0);
    } else {
        assert_int_equal(message.header.type, RBI_WIRE_REGISTERED);
    }
    raw_message_deinit(&message);
    (void)close(fds[0]);
    (void)close(fds[1]);
    raw_close(&raw);
    return code;
}

static void test_registration(void **state)
{
    (void)state;
    peer_down(&peer);
    for (int flaw = FLAW_NONE + 1; flaw < FLAW_COUNT; flaw++) {
        /* A page cannot be shorter and still be told from nothing. */
        const int page = try_register((enum flaw)flaw, FLAW_NONE);
        const int pool = try_register(FLAW_NONE, (enum flaw)flaw);
        if (page >= 0 || pool >= 0) {
            print_error("flaw %d: page %d, pool %d\n", flaw, page, pool);
        }
        assert_true(page < 0 && pool < 0);
    }
    assert_true(stage_clean(&stage));
    assert_int_equal(try_register(FLAW_NONE, FLAW_NONE), 0);
    assert_int_equal(peer_up(&peer, stage.cluster.socket, HOSTILE_PATH), 0);
}

/* ---- a side that is none ----------------------------------------------------------------- */

static void test_requester_side(void **state)
{
    (void)state;
    assert_int_equal(peer_offer(&peer), 0);
    for (int flaw = FLAW_NONE + 1; flaw < FLAW_COUNT; flaw++) {
        const int side = flaw_make((enum flaw)flaw, RBI_SEGMENT_SIDE, PEER_SIDE_BYTES);
        const int code = introduce(side, PEER_SIDE_BYTES, peer.bell_copy);
        (void)close(side);
        if (code >= 0 || code <= -1000) {
            print_error("flaw %d: code %d\n", flaw, code);
        }
        assert_true(code < 0 && code > -1000);
    }
    const uint64_t sizes[] = {0,
                              1,
                              RBI_PAGE - 1,
                              RBI_PAGE,
                              PEER_SIDE_BYTES - RBI_PAGE,
                              PEER_SIDE_BYTES - 1,
                              PEER_SIDE_BYTES + 1,
                              PEER_SIDE_BYTES + RBI_PAGE,
                              UINT32_MAX,
                              UINT64_C(1) << 63,
                              UINT64_MAX - RBI_PAGE + 1,
                              UINT64_MAX};
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(sizes); i++) {
        const int code = introduce(peer.side.fd, sizes[i], peer.bell_copy);
        assert_true(code < 0 && code > -1000);
    }
    assert_int_equal(introduce(peer.side.fd, PEER_SIDE_BYTES, peer.bell_copy), 0);
}

static void expect_failed(uint64_t failed, int error, enum rbi_reason reason)
{
    assert_true(stage_changes(&stage.scene->failed, failed, 3000));
    assert_int_equal(stage.scene->last_failed_error, error);
    assert_int_equal(stage.scene->last_failed, reason);
}

static void test_server_side(void **state)
{
    (void)state;
    stage.scene->target_hostile = 1;
    for (int flaw = FLAW_NONE + 1; flaw < FLAW_COUNT; flaw++) {
        const int side = flaw_make((enum flaw)flaw, RBI_SEGMENT_SIDE, PEER_SIDE_BYTES);
        another_peer();
        assert_int_equal(peer_introduced(&peer), 0);
        const uint64_t failed = stage.scene->failed;
        assert_int_equal(peer_accept_with(&peer, side, PEER_SIDE_BYTES), 0);
        assert_true(raw_expect_error(&peer.raw) < 0);
        expect_failed(failed, RINGBUS_E_DENIED, RBI_REASON_REFUSED);
        (void)close(side);
    }
    stage.scene->target_hostile = 0;
    test_sleep_ms(50);
}

/* ---- right descriptors in the wrong place, too many, too few ------------------------------ */

/** What is good memory for something else is none for a side. */
static void test_wrong_segments(void **state)
{
    (void)state;
    assert_int_equal(peer_offer(&peer), 0);
    const struct {
        int side;
        uint64_t bytes;
        int bell;
    } offers[] = {{peer.raw.page.fd, peer.raw.page.size, peer.bell_copy},
                  {peer.raw.pool.fd, peer.raw.pool.size, peer.bell_copy},
                  {peer.bell_copy, PEER_SIDE_BYTES, peer.bell_copy},
                  {peer.side.fd, PEER_SIDE_BYTES, peer.side.fd},
                  {peer.raw.fd, PEER_SIDE_BYTES, peer.bell_copy},
                  {peer.side.fd, PEER_SIDE_BYTES, peer.raw.fd}}; /* the control socket */
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(offers); i++) {
        assert_int_equal(introduce(offers[i].side, offers[i].bytes, offers[i].bell),
                         RINGBUS_E_BAD_PEER);
    }
    assert_int_equal(introduce(peer.side.fd, PEER_SIDE_BYTES, peer.bell_copy), 0);
}

/** Scenario 35: each message of a client with each number of descriptors that is not its own. */
static void test_descriptor_counts(void **state)
{
    static const struct {
        enum rbi_wire_type type;
        unsigned right;
    } messages[] = {{RBI_WIRE_REGISTER, 2}, {RBI_WIRE_SET_STATE, 0}, {RBI_WIRE_TARGET, 0},
                    {RBI_WIRE_UNTARGET, 0}, {RBI_WIRE_INTRODUCE, 2}, {RBI_WIRE_ACCEPT, 1},
                    {RBI_WIRE_REFUSE, 0},   {RBI_WIRE_LINK_DOWN, 0}, {RBI_WIRE_WATCH, 0},
                    {RBI_WIRE_UNWATCH, 0},  {RBI_WIRE_QUERY, 0}};
    unsigned char frame[RBI_WIRE_FRAME_MAX];
    int fds[RBI_HANDOFF_FDS_MAX];
    (void)state;
    assert_int_equal(peer_offer(&peer), 0);
    for (unsigned k = 0; k < RBI_HANDOFF_FDS_MAX; k++) {
        fds[k] = k % 2 == 0 ? peer.side.fd : peer.bell_copy;
    }
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(messages); i++) {
        for (unsigned count = 0; count <= RBI_HANDOFF_FDS_MAX; count++) {
            union rbi_wire_body body;
            struct raw raw;
            if (count == messages[i].right) {
                continue;
            }
            memset(&body, 0, sizeof(body));
            assert_int_equal(raw_up(&raw, stage.cluster.socket, ""), 0);
            const size_t size = rbi_wire_encode(messages[i].type, &body, 9, 0, frame);
            assert_int_equal(rbi_handoff_send(raw.fd, frame, size, fds, count), 0);
            const int code = raw_expect_error(&raw);
            if (code == 0) {
                print_error("message %d with %u descriptors: no error\n", (int)messages[i].type,
                            count);
            }
            assert_int_not_equal(code, 0);
            /* One that belongs to nothing ends the connection. */
            assert_true(count < messages[i].right || raw_closed(&raw, RAW_TIMEOUT_MS));
            raw_close(&raw);
        }
    }
}

/* ---- geometry, which only the other end looks at ----------------------------------------- */

static const struct {
    uint64_t lane_offset;
    uint64_t lane_capacity;
    uint64_t returns_offset;
    uint64_t returns_capacity;
} geometries[] = {
    {0, 16384, 640, 64},
    {1, 16384, 640, 64},
    {64, 16384, 640, 64},
    {4096 + 64, 16384, 640, 64},
    {8192, 16384, 640, 64},
    {UINT64_MAX - 4095, 16384, 640, 64},
    {UINT64_C(1) << 63, 16384, 640, 64},
    {4096, 0, 640, 64},
    {4096, 1, 640, 64},
    {4096, 64, 640, 64},
    {4096, 2048, 640, 64},
    {4096, 8192, 640, 64},
    {4096, 16383, 640, 64},
    {4096, 16385, 640, 64},
    {4096, 32768, 640, 64},
    {4096, UINT64_C(1) << 31, 640, 64},
    {4096, UINT64_C(1) << 32, 640, 64},
    {4096, UINT64_C(1) << 63, 640, 64},
    {4096, UINT64_MAX, 640, 64},
    {4096, 16384, 0, 64},
    {4096, 16384, 64, 64},
    {4096, 16384, 576, 64},
    {4096, 16384, 641, 64},
    {4096, 16384, 648, 64},
    {4096, 16384, 4096 - 448, 64},
    {4096, 16384, 4096, 64},
    {4096, 16384, 4160, 64},
    {4096, 16384, UINT64_MAX - 63, 64},
    {4096, 16384, UINT64_C(1) << 63, 64},
    {4096, 16384, 640, 0},
    {4096, 16384, 640, 1},
    {4096, 16384, 640, 8},
    {4096, 16384, 640, 63},
    {4096, 16384, 640, 65},
    {4096, 16384, 640, 512},
    {4096, 16384, 640, 65536},
    {4096, 16384, 640, 131072},
    {4096, 16384, 640, UINT64_C(1) << 32},
    {4096, 16384, 640, UINT64_C(1) << 61},
    {4096, 16384, 640, UINT64_C(1) << 63},
    {4096, 16384, 640, UINT64_MAX},
};

static void set_geometry(unsigned i)
{
    struct rbi_side *side = peer_side(&peer);
    side->lane_offset = geometries[i].lane_offset;
    side->lane_capacity = geometries[i].lane_capacity;
    side->returns_offset = geometries[i].returns_offset;
    side->returns_capacity = geometries[i].returns_capacity;
}

static void test_requester_geometry(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(geometries); i++) {
        assert_int_equal(peer_offer(&peer), 0);
        set_geometry(i);
        const int code = introduce(peer.side.fd, PEER_SIDE_BYTES, peer.bell_copy);
        if (code != RINGBUS_E_BAD_PEER) {
            print_error("geometry %u: code %d\n", i, code);
        }
        assert_int_equal(code, RINGBUS_E_BAD_PEER);
    }
}

static void test_server_geometry(void **state)
{
    (void)state;
    stage.scene->target_hostile = 1;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(geometries); i++) {
        another_peer();
        assert_int_equal(peer_introduced(&peer), 0);
        set_geometry(i);
        const uint64_t failed = stage.scene->failed;
        assert_int_equal(peer_accept_with(&peer, peer.side.fd, PEER_SIDE_BYTES), 0);
        assert_int_equal(peer_await_down(&peer, PEER_TIMEOUT_MS), RBI_REASON_BAD_PEER);
        expect_failed(failed, RINGBUS_E_BAD_PEER, RBI_REASON_BAD_PEER);
    }
    stage.scene->target_hostile = 0;
    test_sleep_ms(50);
}

/** What the daemon has checked may be another when the server looks. */
static void *flip_head(void *context)
{
    struct rbi_side *side = peer_side(&peer);
    _Atomic int *stop = context;
    while (!*stop) {
        ((volatile struct rbi_side *)side)->segment.fingerprint ^= 1;
        ((volatile struct rbi_side *)side)->lane_offset ^= 8192;
        ((volatile struct rbi_side *)side)->lane_capacity ^= UINT64_C(1) << 40;
        ((volatile struct rbi_side *)side)->returns_offset ^= UINT64_C(1) << 63;
    }
    return NULL;
}

static void test_head_flips(void **state)
{
    const uint64_t deadline_ms = test_now_ms() + 2000;
    unsigned linked = 0;
    unsigned refused = 0;
    (void)state;
    if (RACES_FORBIDDEN) {
        skip();
    }
    while (test_now_ms() < deadline_ms) {
        _Atomic int stop = 0;
        pthread_t thread;
        assert_int_equal(peer_offer(&peer), 0);
        assert_int_equal(pthread_create(&thread, NULL, flip_head, &stop), 0);
        const int code = introduce(peer.side.fd, PEER_SIDE_BYTES, peer.bell_copy);
        stop = 1;
        (void)pthread_join(thread, NULL);
        assert_true(code > -1000 || code == -1001);
        linked += code == 0;
        refused += code < 0;
        peer_unlink(&peer);
    }
    print_message("%u linked, %u refused\n", linked, refused);
    assert_true(refused > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_registration, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_requester_side, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_server_side, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_wrong_segments, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_descriptor_counts, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_requester_geometry, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_server_geometry, attack_setup, attack_teardown),
        cmocka_unit_test_setup_teardown(test_head_flips, attack_setup, attack_teardown),
    };
    return cmocka_run_group_tests_name("introduce", tests, NULL, NULL);
}
