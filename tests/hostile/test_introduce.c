/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a peer can offer at its registration and introduction, as requester and as
 * server: refused with the reason, and nobody keeps a descriptor or a mapping of it.
 */
#include "hostile/peer.h"
#include "hostile/victim.h"
#include "shm/bell.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <ringbus/ringbus.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SEALS_ALL (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

static struct stage stage;
static struct peer peer;
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

/* ---- memory that is none ----------------------------------------------------------------------- */

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
    FLAW_PATH_ONLY,
    FLAW_WRITE_ONLY,
    FLAW_NO_SEALS,
    FLAW_NO_SHRINK,
    FLAW_NO_GROW,
    FLAW_NO_FUTURE_WRITE,
    FLAW_NO_SEAL,
    FLAW_SHORT,
    FLAW_LONG,
    FLAW_UNEVEN,
    FLAW_EMPTY,
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

static int make_bad(enum flaw flaw, enum rbi_segment_kind kind, uint64_t bytes)
{
    const int strange = make_strange(flaw, bytes);
    if (strange >= 0) {
        return strange;
    }
    const struct rbi_side head = make_head(flaw, kind, bytes);
    const uint64_t size = flaw == FLAW_SHORT    ? bytes - RBI_PAGE
                          : flaw == FLAW_LONG   ? bytes + RBI_PAGE
                          : flaw == FLAW_UNEVEN ? bytes - 1
                          : flaw == FLAW_EMPTY  ? 0
                                                : bytes;
    const int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    if (flaw != FLAW_HOLE && size > 0) {
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

/* ---- registration ------------------------------------------------------------------------------- */

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

/* ---- a side that is none -------------------------------------------------------------------------- */

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

/* ---- geometry, which only the other end looks at ---------------------------------------------------- */

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

/* ---- bells ---------------------------------------------------------------------------------------------- */

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

/* ---- descriptors that make whoever drops them wait ----------------------------------------------------- */

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

/* ---- the stage ---------------------------------------------------------------------------------------------- */

static int setup(void **state)
{
    (void)state;
    return stage_up(&stage) == 0 ? peer_up(&peer, stage.cluster.socket, HOSTILE_PATH) : -1;
}

static int teardown(void **state)
{
    (void)state;
    const bool alive = stage_alive(&stage);
    peer_down(&peer);
    const bool clean = stage_clean(&stage);
    const bool honest = stage.scene->honest_downs == 0;
    return stage_down(&stage) == 0 && alive && clean && honest ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_registration, setup, teardown),
        cmocka_unit_test_setup_teardown(test_requester_side, setup, teardown),
        cmocka_unit_test_setup_teardown(test_server_side, setup, teardown),
        cmocka_unit_test_setup_teardown(test_requester_geometry, setup, teardown),
        cmocka_unit_test_setup_teardown(test_server_geometry, setup, teardown),
        cmocka_unit_test_setup_teardown(test_head_flips, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bells_that_are_none, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_bell, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dead_bell, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bell_with_descriptors, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lingering_over_bell, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lingering_to_daemon, setup, teardown),
    };
    return cmocka_run_group_tests_name("introduce", tests, NULL, NULL);
}
