/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bridge that lives, and a peer that breaks every rule of bus/frame.h: bytes of no frame, frames
 * out of turn, of streams that are not there or were, grants exceeded, acknowledgements of what was
 * never sent, records that cannot be. It costs the peer its stream or its connection; endpoints,
 * the bridge and what it says to other peers go on.
 */
#include "bus/bridge_config.h"
#include "bus/frame.h"
#include "bus/record.h"
#include "bus/stream_window.h"
#include "support/hosts.h"
#include "support/raw.h"
#include "support/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BATTLE "/Game/eu/pc/w1/core/battle/1"
#define EVIL   "/Game/eu/pc/w1/core/evil/1"
/* Of a connection: frames that are sent, at most. */
#define FRAMES 60U

static struct hosts hosts;
static struct node victim;
static struct node bystander;
static struct ringbus_addr to_victim;
static uint64_t seed = 5;

/** The peer: says that it is beta. */
struct peer {
    int fd;
    uint64_t life;
    uint64_t streams;
    uint32_t handle;  /* alpha's number of the last stream */
    uint32_t own;     /* ours of it */
    uint64_t granted; /* to us */
    uint64_t pos;     /* of the next record */
    uint32_t size;    /* of the one that is being sent in pieces, and how far; 0: none */
    uint32_t piece;
    uint32_t whole; /* its body in the lane */
    unsigned char in[RBI_FRAME_MAX];
    size_t in_size;
    unsigned opened;
    unsigned ponged;
};

static unsigned opened_in_all;

static bool is_full(void)
{
    return getenv("RINGBUS_TEST_FULL") != NULL; /* NOLINT(concurrency-mt-unsafe) */
}

static uint64_t below(uint64_t n)
{
    return bus_random(&seed) % n;
}

/* A number that is nearly right, or far off. */
static uint64_t near(uint64_t right)
{
    switch (below(40)) {
    case 0:
        return bus_random(&seed);
    case 1:
        return right + 64;
    case 2:
        return right - 64;
    case 3:
        return UINT64_MAX - below(3);
    default:
        return right;
    }
}

static int setup(void **state)
{
    static const struct hosts_options options = {.count = 2, .bridge = "  window: 64KiB"};
    (void)state;
    hosts_up(&hosts, &options);
    hosts_bridge_kill(&hosts, 1);
    fault_proxy_door(hosts.proxy[0][1], FAULT_CLOSED);
    victim = (struct node){.bus = NULL};
    bystander = (struct node){.bus = NULL};
    node_open(&victim, &hosts.host[0].cluster, BATTLE);
    node_open(&bystander, &hosts.host[0].cluster, NULL);
    to_victim = node_target(&bystander, BATTLE, 1, &victim);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)ringbus_close(victim.bus, 0);
    (void)ringbus_close(bystander.bus, 0);
    hosts_down(&hosts);
    return 0;
}

/* ---- the peer ------------------------------------------------------------------------------- */

static void peer_connect(struct peer *peer)
{
    char node[32];
    unsigned port = 0;
    struct sockaddr_in address = {.sin_family = AF_INET};
    CHECK(sscanf(hosts.host[0].address, "%31[0-9.]:%u", node, &port) == 2);
    CHECK(inet_pton(AF_INET, node, &address.sin_addr) == 1);
    address.sin_port = htons((uint16_t)port);
    peer->life = 1 + below(UINT64_C(1) << 60);
    peer->streams = 0;
    peer->handle = 0;
    peer->in_size = 0;
    peer->opened = 0;
    peer->ponged = 0;
    peer->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(peer->fd >= 0);
    CHECK(connect(peer->fd, (const struct sockaddr *)(const void *)&address, sizeof address) == 0);
}

/* @return false: alpha has closed the connection */
static bool peer_send(struct peer *peer, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    while (size > 0) {
        const ssize_t n = send(peer->fd, at, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN) {
            return false;
        }
        if (n < 0) {
            struct pollfd room = {.fd = peer->fd, .events = POLLOUT};
            CHECK(poll(&room, 1, 10000) == 1);
        } else {
            at += n;
            size -= (size_t)n;
        }
    }
    return true;
}

static void on_frame(struct peer *peer, const struct rbi_frame_header *header)
{
    static union rbi_frame_body body;
    if (rbi_frame_decode(header, peer->in + RBI_FRAME_HEADER, &body, NULL) != RBI_FRAME_WHOLE) {
        bus_die(__FILE__, __LINE__, "the bridge sends what cannot be read");
    }
    if (header->type == RBI_FRAME_OPENED) {
        peer->handle = body.opened.handle;
        peer->granted = body.opened.granted;
        peer->pos = body.opened.expect;
        peer->size = 0;
        peer->opened++;
        opened_in_all++;
    } else if (header->type == RBI_FRAME_ACK) {
        peer->granted = body.ack.granted;
    } else if (header->type == RBI_FRAME_PONG) {
        peer->ponged++;
    }
}

/* Takes what has come. @return false: the connection is over */
static bool peer_read(struct peer *peer)
{
    for (;;) {
        struct rbi_frame_header header;
        const ssize_t n =
            recv(peer->fd, peer->in + peer->in_size, sizeof peer->in - peer->in_size, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN)) {
            return false;
        }
        if (n < 0) {
            return true;
        }
        peer->in_size += (size_t)n;
        while (rbi_frame_look(peer->in, peer->in_size, &header) == RBI_FRAME_WHOLE) {
            const size_t size = RBI_FRAME_HEADER + header.size;
            on_frame(peer, &header);
            peer->in_size -= size;
            memmove(peer->in, peer->in + size, peer->in_size);
        }
    }
}

/* ---- frames --------------------------------------------------------------------------------- */

static size_t hello(struct peer *peer, unsigned char *out)
{
    struct rbi_frame_header header = {.type = RBI_FRAME_HELLO};
    struct rbi_frame_hello body = {.magic = RBI_FRAME_MAGIC,
                                   .version_min = RBI_FRAME_VERSION,
                                   .version_max = RBI_FRAME_VERSION,
                                   .host = rbi_host_id("beta", 4),
                                   .incarnation = peer->life};
    rbi_frame_host_set(&body.name, "beta");
    rbi_frame_text_set(&body.software, "evil");
    return rbi_frame_encode(&header, &body, out);
}

static struct rbi_frame_envelope envelope(void)
{
    return (struct rbi_frame_envelope){
        .from = rbi_host_id("beta", 4), .to = rbi_host_id("alpha", 5), .hops = RBI_FRAME_HOPS_MAX};
}

static void endpoint(struct rbi_frame_endpoint *out, const char *path, uint32_t incarnation)
{
    struct ringbus_addr addr;
    CHECK(ringbus_resolve(path, &addr) == 0);
    out->pidf = (struct rbi_pidf){
        .cluster = addr.cluster, .instance = addr.instance, .incarnation = incarnation};
    rbi_frame_path_set(&out->path, path);
}

static size_t open_stream(struct peer *peer, unsigned char *out)
{
    struct rbi_frame_header header = {.type = RBI_FRAME_OPEN,
                                      .flags = below(8) == 0 ? RBI_FRAME_F_AGAIN : 0};
    struct rbi_frame_open body = {
        .envelope = envelope(),
        .stream = {.life = peer->life, .number = below(4) == 0 ? 1 + below(3) : ++peer->streams},
        .handle = peer->own = 1 + (uint32_t)below(4),
        .attempt = 1 + (uint32_t)below(2),
        .expect = below(8) == 0 ? near(0) & ~UINT64_C(63) : 0,
        .begin = below(8) == 0 ? near(0) & ~UINT64_C(63) : 0,
        .granted = below(4) == 0 ? near(65536) : 65536};
    if ((header.flags & RBI_FRAME_F_AGAIN) != 0) {
        body.opened = 1;
    }
    endpoint(&body.requester, EVIL, 7 + (uint32_t)below(2));
    endpoint(&body.server, BATTLE, to_victim.incarnation);
    return rbi_frame_encode(&header, &body, out);
}

static size_t data(struct peer *peer, unsigned char *out)
{
    static unsigned char bytes[RBI_FRAME_PART_MAX];
    const uint32_t size = (uint32_t)(below(12) == 0 ? 8 + below(60000) : 8 + below(300));
    const uint32_t part = below(4) == 0 ? (uint32_t)below(size) : size;
    const unsigned flags = below(3) == 0 ? (unsigned)below(256) & ~(unsigned)RBI_RECORD_REF : 0;
    const uint32_t meta = rbi_record_meta((enum rbi_record_kind)(1 + below(16)), flags,
                                          (unsigned)below(3), (unsigned)below(3));
    for (uint32_t i = 0; i < part; i += 8) {
        const uint64_t word = below(3) == 0 ? below(100) : bus_random(&seed);
        memcpy(bytes + i, &word, part - i < 8 ? part - i : 8);
    }
    const unsigned follow = below(4) == 0 ? RBI_FRAME_F_FOLLOW : 0;
    rbi_frame_data_head(out, (part < size ? RBI_FRAME_F_MORE : 0) | follow, peer->handle,
                        rbi_stream_mark(near(peer->pos)), meta, size, part);
    memcpy(out + RBI_FRAME_DATA_HEAD, bytes, part);
    peer->size = part < size ? size : 0;
    peer->piece = part;
    peer->whole = size;
    peer->pos = part < size ? peer->pos : rbi_stream_next(peer->pos, size);
    return RBI_FRAME_DATA_HEAD + part;
}

/* A record whose payload would lie in a pool: of many bytes, or of few, which follow. */
static size_t reference(struct peer *peer, unsigned char *out)
{
    const struct rbi_record_ref ref = {
        .offset = near(0), .size = near(below(300)), .slot = near(0)};
    unsigned char bytes[RBI_RECORD_TAG + sizeof ref] = {0};
    memcpy(bytes + RBI_RECORD_TAG, &ref, sizeof ref);
    const uint32_t meta = rbi_record_meta(RBI_RECORD_ONEWAY, RBI_RECORD_REF, 0, 0);
    rbi_frame_data_head(out, ref.size > 0 ? RBI_FRAME_F_MORE : 0, peer->handle,
                        rbi_stream_mark(near(peer->pos)), meta, sizeof bytes, sizeof bytes);
    memcpy(out + RBI_FRAME_DATA_HEAD, bytes, sizeof bytes);
    peer->size = (uint32_t)ref.size;
    peer->piece = 0;
    peer->whole = sizeof bytes;
    peer->pos = ref.size > 0 ? peer->pos : rbi_stream_next(peer->pos, sizeof bytes);
    return RBI_FRAME_DATA_HEAD + sizeof bytes;
}

static size_t piece(struct peer *peer, unsigned char *out)
{
    const uint32_t left = peer->size - peer->piece;
    const uint32_t part = left > 1 && below(3) == 0 ? 1 + (uint32_t)below(left - 1) : left;
    const uint32_t bytes = part == 0 || part > 60000 ? 1 : part;
    const bool last = peer->piece + bytes == peer->size;
    memset(out + RBI_FRAME_PIECE_HEAD, 1, bytes);
    rbi_frame_piece_head(out, last ? RBI_FRAME_F_LAST : 0, peer->handle,
                         rbi_stream_mark(near(peer->pos)), near(peer->piece), bytes);
    peer->piece += bytes;
    if (last) {
        /* What a record takes depends on its body: of a reference that is all that counts. */
        peer->pos = rbi_stream_next(peer->pos, peer->whole);
        peer->size = 0;
    }
    return RBI_FRAME_PIECE_HEAD + bytes;
}

static size_t of_stream(struct peer *peer, unsigned char *out)
{
    struct rbi_frame_header header = {.type = below(2) == 0 ? RBI_FRAME_ACK : RBI_FRAME_CLOSE,
                                      .flags = (uint8_t)below(256),
                                      .handle = (uint32_t)near(peer->handle)};
    union rbi_frame_body body;
    memset(&body, 0, sizeof body);
    if (header.type == RBI_FRAME_ACK) {
        body.ack = (struct rbi_frame_ack){.position = near(0), .granted = near(65536)};
    } else {
        body.close = (struct rbi_frame_close){.reason = (uint32_t)below(20),
                                              .position = near(peer->pos),
                                              .settled = near(0),
                                              .seen = near(0)};
    }
    return rbi_frame_encode(&header, &body, out);
}

static size_t of_host(struct peer *peer, unsigned char *out)
{
    static union rbi_frame_body body;
    struct rbi_frame_header header = {.type = RBI_FRAME_EDGES};
    memset(&body, 0, sizeof body);
    switch (below(5)) {
    case 0:
        body.edges.origin = below(2) == 0 ? rbi_host_id("alpha", 5) : rbi_host_id("beta", 4);
        body.edges.incarnation = peer->life;
        body.edges.sequence = near(1);
        body.edges.hops = (uint8_t)below(9);
        rbi_frame_host_set(&body.edges.name, below(2) == 0 ? "alpha" : "beta");
        body.edges.list.count = 1;
        body.edges.list.edge[0].to = rbi_host_id("gamma", 5);
        body.edges.list.edge[0].cost = (uint32_t)below(100000);
        rbi_frame_host_set(&body.edges.list.edge[0].name, "gamma");
        break;
    case 1:
        header.type = RBI_FRAME_DIR_ASK;
        body.dir_ask.envelope = envelope();
        body.dir_ask.incarnation = bus_random(&seed);
        body.dir_ask.revision = near(0);
        break;
    case 2:
        header.type = RBI_FRAME_PONG;
        body.pong.id = near(1);
        body.pong.sent_ns = bus_random(&seed);
        break;
    case 3:
        header.type = RBI_FRAME_HOP; /* of a message that nobody has sent */
        body.hop.envelope = envelope();
        body.hop.what = (uint8_t)below(5);
        body.hop.reply = (uint8_t)below(3);
        rbi_frame_host_set(&body.hop.host, below(2) == 0 ? "alpha" : "beta");
        rbi_frame_text_set(&body.hop.next, below(2) == 0 ? "" : "gamma");
        break;
    default:
        return hello(peer, out); /* a second one */
    }
    return rbi_frame_encode(&header, &body, out);
}

/* One frame: right, nearly right, or with bytes changed. */
static size_t any_frame(struct peer *peer, unsigned char *out)
{
    size_t size = 0;
    switch (below(40)) {
    case 0:
        size = open_stream(peer, out);
        break;
    case 1:
        size = below(4) == 0 ? of_host(peer, out) : open_stream(peer, out);
        break;
    case 2:
        size = of_stream(peer, out);
        break;
    default:
        size = peer->size > 0 || below(40) == 0 ? piece(peer, out)
               : below(4) == 0                  ? reference(peer, out)
                                                : data(peer, out);
        break;
    }
    for (uint64_t flips = below(100) == 0 ? 1 + below(4) : 0; flips > 0; flips--) {
        out[below(size)] = (unsigned char)below(256);
    }
    return size;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void poll_victim(void)
{
    struct node *const nodes[] = {&victim, &bystander};
    nodes_step(nodes, 2);
}

/* Until alpha has opened the stream, or the connection is over. */
static bool until_opened(struct peer *peer)
{
    const uint64_t until_ms = test_now_ms() + NODE_MS;
    unsigned char frame[RBI_FRAME_CONTROL_MAX];
    struct rbi_frame_header header = {.type = RBI_FRAME_OPEN};
    struct rbi_frame_open body = {.envelope = envelope(),
                                  .stream = {.life = peer->life, .number = ++peer->streams},
                                  .handle = peer->own = 1,
                                  .attempt = 1,
                                  .granted = 65536};
    endpoint(&body.requester, EVIL, 7);
    endpoint(&body.server, BATTLE, to_victim.incarnation);
    if (!peer_send(peer, frame, rbi_frame_encode(&header, &body, frame))) {
        return false;
    }
    while (peer->opened == 0) {
        poll_victim();
        if (!peer_read(peer)) {
            return false;
        }
        if (test_now_ms() > until_ms) {
            return true; /* refused: its link of before has not ended yet */
        }
    }
    return true;
}

static void be_hostile(void)
{
    static unsigned char frame[RBI_FRAME_MAX];
    static struct peer peer;
    peer_connect(&peer);
    bool there = peer_send(&peer, frame, hello(&peer, frame));
    there = there && (below(8) == 0 || until_opened(&peer));
    for (unsigned i = 0; i < FRAMES && there; i++) {
        there = peer_send(&peer, frame, any_frame(&peer, frame)) && peer_read(&peer);
        if (below(4) == 0) {
            poll_victim();
        }
    }
    (void)close(peer.fd);
}

static void all_is_well(void)
{
    const uint64_t before = victim.messages;
    CHECK(kill(hosts.host[0].bridge, 0) == 0 && waitpid(hosts.host[0].bridge, NULL, WNOHANG) == 0);
    CHECK(ringbus_send(bystander.bus, &to_victim, 0, "", 0, 0) == 1);
    RUN_UNTIL(victim.messages > before, NODE_MS, &victim, &bystander);
    assert_int_equal(bystander.events[RINGBUS_EVENT_DOWN], 0);
    assert_int_equal(hosts_log_count(&hosts, 0, "Sanitizer"), 0);
}

static void test_frames_against_the_rules_end_their_stream_or_connection(void **state)
{
    const unsigned rounds = is_full() ? 5000 : 60;
    (void)state;
    for (unsigned i = 0; i < rounds; i++) {
        be_hostile();
        all_is_well();
    }
    print_message("%u streams opened\n", opened_in_all);
    assert_true(opened_in_all > rounds / 4);
    assert_true(hosts_bridge_kib(&hosts, 0) < 32768 * TEST_SCALE);
    /* The real one comes: it is joined, and sees what there is. */
    struct node other = {0};
    hosts_bridge_start(&hosts, 1);
    hosts_wait_joined(&hosts, 0, 1);
    node_open(&other, &hosts.host[1].cluster, NULL);
    const struct ringbus_addr to = node_target(&other, BATTLE, 1, &victim);
    const uint64_t before = victim.messages;
    CHECK(ringbus_send(other.bus, &to, 0, "", 0, 0) == 1);
    RUN_UNTIL(victim.messages > before, NODE_MS, &other, &victim);
    node_close(&other);
}

static void test_bytes_that_are_no_frames_end_the_connection(void **state)
{
    static unsigned char bytes[4096];
    static struct peer peer;
    (void)state;
    for (unsigned i = 0; i < 30; i++) {
        peer_connect(&peer);
        if (i % 2 == 0) {
            CHECK(peer_send(&peer, bytes, hello(&peer, bytes)));
        }
        for (size_t at = 0; at < sizeof bytes; at++) {
            bytes[at] = (unsigned char)below(256);
        }
        (void)peer_send(&peer, bytes, sizeof bytes);
        const uint64_t until_ms = test_now_ms() + NODE_MS;
        while (peer_read(&peer)) {
            poll_victim();
            CHECK(test_now_ms() < until_ms);
        }
        (void)close(peer.fd);
    }
    all_is_well();
    assert_true(hosts_log_count(&hosts, 0, "event=host_broke_the_rules") >= 15);
}

/* What is another host's, as it says, and comes over this one's connection, is not believed. */
static void test_nobody_speaks_in_the_name_of_another_host(void **state)
{
    static unsigned char bytes[4096];
    static struct peer peer;
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct rbi_frame_header header = {.type = RBI_FRAME_DIR_ASK};
        struct rbi_frame_dir_ask ask = {.envelope = envelope()};
        if (i == 0) {
            ask.envelope.from = rbi_host_id("gamma", 5);
        } else {
            ask.envelope.visited_count = 1;
            ask.envelope.visited[0] = rbi_host_id("gamma", 5);
        }
        peer_connect(&peer);
        CHECK(peer_send(&peer, bytes, hello(&peer, bytes)));
        CHECK(peer_send(&peer, bytes, rbi_frame_encode(&header, &ask, bytes)));
        const uint64_t until_ms = test_now_ms() + NODE_MS;
        while (peer_read(&peer)) {
            poll_victim();
            CHECK(test_now_ms() < until_ms);
        }
        (void)close(peer.fd);
        assert_int_equal(hosts_log_count(&hosts, 0, "what=\"an envelope in another host's name\""),
                         i + 1);
    }
    all_is_well();
}

/* Steps of a message that nobody has sent are told to nobody, though one waits for them. */
static void test_steps_of_no_message_are_told_to_nobody(void **state)
{
    static unsigned char frame[RBI_FRAME_MAX];
    static struct peer peer;
    const struct rbi_wire_follow follow = {.trace = {.length = 16}};
    struct rbi_frame_hop hop = {.envelope = envelope(), .what = RBI_HOP_PUT};
    const struct rbi_frame_ping ping = {.id = 1};
    const uint64_t until_ms = test_now_ms() + NODE_MS;
    struct raw follower;
    struct raw_message message;
    (void)state;
    assert_int_equal(raw_connect(&follower, hosts.host[0].cluster.socket), 0);
    assert_int_equal(raw_hello(&follower), 0);
    assert_int_equal(raw_send(&follower, RBI_WIRE_FOLLOW, &follow, NULL, 0), 0);
    assert_int_equal(raw_expect(&follower, RBI_WIRE_OK, &message, RAW_TIMEOUT_MS), 0);
    peer_connect(&peer);
    CHECK(peer_send(&peer, frame, hello(&peer, frame)));
    rbi_frame_host_set(&hop.host, "beta");
    for (unsigned i = 0; i < 1000; i++) {
        struct rbi_frame_header header = {.type = RBI_FRAME_HOP};
        CHECK(peer_send(&peer, frame, rbi_frame_encode(&header, &hop, frame)));
    }
    struct rbi_frame_header header = {.type = RBI_FRAME_PING};
    CHECK(peer_send(&peer, frame, rbi_frame_encode(&header, &ping, frame)));
    while (peer.ponged == 0) {
        CHECK(peer_read(&peer) && test_now_ms() < until_ms);
    }
    assert_true(raw_silent(&follower, 300));
    (void)close(peer.fd);
    raw_close(&follower);
    all_is_well();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_bytes_that_are_no_frames_end_the_connection, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_nobody_speaks_in_the_name_of_another_host, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_steps_of_no_message_are_told_to_nobody, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            test_frames_against_the_rules_end_their_stream_or_connection, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
