/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a peer can offer at its registration and introduction, as requester and as
 * server: refused with the reason, and nobody keeps a descriptor or a mapping of it.
 */
#include "hostile/attack.h"

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

#define SEALS_ALL (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

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

/* ---- memory that is none ----------------------------------------------------------------- */

enum flaw {
    FLAW_NONE,
    FLAW_FILE,
    FLAW_TMPFS_FILE,
    FLAW_PIPE,
    FLAW_DEV_NULL,
    FLAW_DEV_ZERO,
    FLAW_SOCKET,
    FLAW_EVENTFD,
    FLAW_EPOLL,
    FLAW_FOLDER,
    FLAW_PIDFD,
    FLAW_TIMER,
    FLAW_PATH_ONLY,
    FLAW_WRITE_ONLY,
    FLAW_NO_SEALS,
    FLAW_NO_SHRINK,
    FLAW_NO_GROW,
    FLAW_NO_FUTURE_WRITE,
    FLAW_NO_SEAL,
    FLAW_OTHER_SEAL,
    FLAW_HUGE_PAGES,
    FLAW_SHORT,
    FLAW_LONG,
    FLAW_UNEVEN,
    FLAW_EMPTY,
    FLAW_TEBIBYTE,
    FLAW_HOLE,
    FLAW_MAGIC,
    FLAW_VERSION,
    FLAW_KIND_NEXT,
    FLAW_KIND_DIRECTORY,
    FLAW_KIND_0,
    FLAW_FINGERPRINT,
    FLAW_SIZE_FIELD,
    FLAW_COUNT
};

static int make_file(const char *folder, uint64_t bytes)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "%s/hostile-XXXXXX", folder);
    const int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) {
        (void)unlink(path);
        (void)!ftruncate(fd, (off_t)bytes);
    }
    return fd;
}

static int one_of(int fds[2])
{
    (void)close(fds[1]);
    return fds[0];
}

/** Descriptors that are not memory at all; -1 when the flaw is another. */
static int make_strange(enum flaw flaw, uint64_t bytes)
{
    int pair[2];
    switch ((int)flaw) {
    case FLAW_FILE:
        return make_file("/var/tmp", bytes);
    case FLAW_TMPFS_FILE:
        return make_file("/dev/shm", bytes);
    case FLAW_PIPE:
        return pipe2(pair, O_CLOEXEC) == 0 ? one_of(pair) : -1;
    case FLAW_DEV_NULL:
        return open("/dev/null", O_RDWR | O_CLOEXEC);
    case FLAW_DEV_ZERO:
        return open("/dev/zero", O_RDWR | O_CLOEXEC);
    case FLAW_SOCKET:
        return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0 ? one_of(pair) : -1;
    case FLAW_EVENTFD:
        return eventfd(0, EFD_CLOEXEC);
    case FLAW_EPOLL:
        return epoll_create1(EPOLL_CLOEXEC);
    case FLAW_PIDFD:
        return (int)syscall(SYS_pidfd_open, getpid(), 0);
    case FLAW_TIMER:
        return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    case FLAW_FOLDER:
        return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    default:
        return -1;
    }
}

static int seals_of(enum flaw flaw)
{
    switch ((int)flaw) {
    case FLAW_NO_SEALS:
        return 0;
    case FLAW_NO_SHRINK:
        return SEALS_ALL & ~F_SEAL_SHRINK;
    case FLAW_NO_GROW:
        return SEALS_ALL & ~F_SEAL_GROW;
    case FLAW_NO_FUTURE_WRITE:
        return SEALS_ALL & ~F_SEAL_FUTURE_WRITE;
    case FLAW_NO_SEAL:
        return SEALS_ALL & ~F_SEAL_SEAL;
    case FLAW_OTHER_SEAL: /* of whom nobody wants to write: no owner's memory */
        return (SEALS_ALL & ~F_SEAL_FUTURE_WRITE) | F_SEAL_WRITE;
    default:
        return SEALS_ALL;
    }
}

static struct rbi_side make_head(enum flaw flaw, enum rbi_segment_kind kind, uint64_t bytes)
{
    struct rbi_side side;
    memset(&side, 0, sizeof(side));
    side.segment = (struct rbi_segment_header){
        .magic = RBI_SEGMENT_MAGIC + (flaw == FLAW_MAGIC),
        .version = RBI_LAYOUT_VERSION + (flaw == FLAW_VERSION),
        .kind = flaw == FLAW_KIND_NEXT        ? (uint32_t)kind % 3 + 1
                : flaw == FLAW_KIND_DIRECTORY ? RBI_SEGMENT_DIRECTORY
                : flaw == FLAW_KIND_0         ? 0
                                              : (uint32_t)kind,
        .fingerprint = rbi_layout_fingerprint() + (flaw == FLAW_FINGERPRINT),
        .size_bytes = bytes + (flaw == FLAW_SIZE_FIELD ? RBI_PAGE : 0)};
    if (kind == RBI_SEGMENT_SIDE) {
        side.lane_offset = RBI_PAGE;
        side.lane_capacity = PEER_LANE_CAPACITY;
        side.returns_offset = sizeof(struct rbi_side);
        side.returns_capacity = PEER_RETURNS;
    }
    return side;
}

/** The same memory, opened anew in another way. */
static int reopen(int fd, int flags)
{
    char path[32];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    const int again = open(path, flags | O_CLOEXEC);
    (void)close(fd);
    return again;
}

/** Sealable as well, but its pages may be missing when they are touched; none is, here. */
static int make_huge(void)
{
    const int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
    if (fd < 0) {
        return open("/dev/null", O_RDWR | O_CLOEXEC); /* no huge pages in this kernel */
    }
    (void)!ftruncate(fd, 2 << 20);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, SEALS_ALL), 0);
    return fd;
}

static int make_bad(enum flaw flaw, enum rbi_segment_kind kind, uint64_t bytes)
{
    const int strange = make_strange(flaw, bytes);
    if (strange >= 0) {
        return strange;
    }
    const struct rbi_side head = make_head(flaw, kind, bytes);
    const uint64_t size = flaw == FLAW_SHORT      ? bytes - RBI_PAGE
                          : flaw == FLAW_LONG     ? bytes + RBI_PAGE
                          : flaw == FLAW_UNEVEN   ? bytes - 1
                          : flaw == FLAW_EMPTY    ? 0
                          : flaw == FLAW_TEBIBYTE ? UINT64_C(1) << 40
                                                  : bytes;
    if (flaw == FLAW_HUGE_PAGES) {
        return make_huge();
    }
    const int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    if (flaw != FLAW_HOLE && flaw != FLAW_TEBIBYTE && size > 0) {
        assert_int_equal(fallocate(fd, 0, 0, (off_t)size), 0);
    }
    if (size >= sizeof(head)) {
        assert_int_equal(pwrite(fd, &head, sizeof(head), 0), sizeof(head));
        if (kind == RBI_SEGMENT_PAGE && flaw == FLAW_HOLE) {
            /* One page that is written has no hole. */
            assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, RBI_PAGE),
                             0);
        }
    }
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals_of(flaw)), 0);
    if (flaw == FLAW_PATH_ONLY) {
        return reopen(fd, O_PATH);
    }
    return flaw == FLAW_WRITE_ONLY ? reopen(fd, O_WRONLY) : fd;
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
    const int fds[] = {make_bad(page_flaw, RBI_SEGMENT_PAGE, RBI_PAGE),
                       make_bad(pool_flaw, RBI_SEGMENT_POOL, pool_bytes)};
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
        const int side = make_bad((enum flaw)flaw, RBI_SEGMENT_SIDE, PEER_SIDE_BYTES);
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
        const int side = make_bad((enum flaw)flaw, RBI_SEGMENT_SIDE, PEER_SIDE_BYTES);
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
