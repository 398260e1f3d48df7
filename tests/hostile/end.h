/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_HOSTILE_END_H
#define RINGBUS_TESTS_HOSTILE_END_H
/* A node that targets a peer, which ends as it pleases, while memory may be short. */
#include "hostile/peer.h"
#include "hostile/victim.h"
#include "shm/bell.h"
#include "shm/pool.h"
#include "support/bus.h"
#include "support/test.h"

#include <poll.h>
#include <string.h>

#define LARGE   12000U
#define PING_MS 20U

static struct cluster cluster;
static struct node node;
static struct peer peer;
static struct ringbus_addr any;

static struct {
    unsigned certain;
    unsigned maybe;
    unsigned char first[8]; /* first byte of each, as far as there is room */
} back;

/* ---- memory that is short -------------------------------------------------------------------- */

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
static bool calloc_fails;

void *__wrap_calloc(size_t count, size_t size)
{
    return calloc_fails ? NULL : __real_calloc(count, size);
}

/* ---- a node that targets a peer -------------------------------------------------------------- */

static inline void note_back(struct node *at, const struct ringbus_event *event)
{
    (void)at;
    if (event->type == RINGBUS_EVENT_UNDELIVERED) {
        const unsigned count = back.certain + back.maybe;
        CHECK(event->message->size > 0);
        if (count < sizeof back.first) {
            back.first[count] = *(const unsigned char *)event->message->data;
        }
        back.certain += event->maybe_seen == 0;
        back.maybe += event->maybe_seen != 0;
    }
}

static inline void step(void)
{
    CHECK(ringbus_poll(node.bus, 1000) >= 0);
    CHECK(ringbus_wait(node.bus, 1) >= 0);
}

/* The other's next record of a kind, though both are in one thread. */
static inline void await(enum rbi_record_kind kind)
{
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    struct rbi_record record = {.kind = 0};
    while (record.kind != (unsigned)kind) {
        CHECK(test_now_ms() < deadline_ms);
        if (peer_read(&peer, &record) != 0) {
            record.kind = 0;
            step();
        }
    }
}

/* The daemon has said something to the peer. */
static inline bool told_of_something(void)
{
    struct pollfd control = {.fd = peer.raw.fd, .events = POLLIN};
    return poll(&control, 1, 0) == 1;
}

struct setting {
    uint32_t ping_ms;
    uint32_t redeliver_ms; /* 0: report */
    bool far;              /* the peer is another host's, as far as the node knows */
};

static inline void target_it(struct setting setting)
{
    const struct ringbus_target_options target = {
        .struct_size = sizeof target,
        .ping_interval_ms = setting.ping_ms,
        .ping_misses = setting.ping_ms != 0 ? 1 : 0,
        .on_down = setting.redeliver_ms != 0 ? RINGBUS_ON_DOWN_REDELIVER : RINGBUS_ON_DOWN_REPORT,
        .redeliver_ms = setting.redeliver_ms};
    assert_int_equal(ringbus_target(node.bus, HOSTILE, &target, &any), 0);
}

/* The peer takes the link that the node asks for. */
static inline void answer(void)
{
    unsigned char body[8 + RBI_CONTROL_BODY_MAX] = {0};
    const struct rbi_ready_ack ack = {.version = 1};
    const unsigned before = node.events[RINGBUS_EVENT_READY];
    RUN_UNTIL(told_of_something(), NODE_MS, &node);
    assert_int_equal(peer_introduced(&peer), 0);
    assert_int_equal(peer_accept_with(&peer, peer.side.fd, peer.side.size), 0);
    await(RBI_RECORD_READY);
    const uint64_t size = 8 + rbi_ready_ack_encode(&ack, body + 8);
    peer_put(&peer, rbi_record_meta(RBI_RECORD_READY_ACK, 0, 0, 0), body, size);
    RUN_UNTIL(node.events[RINGBUS_EVENT_READY] == before + 1, NODE_MS, &node);
}

static inline void link_up(struct setting setting)
{
    memset(&back, 0, sizeof back);
    assert_int_equal((setting.far ? peer_up_far : peer_up)(&peer, cluster.socket, HOSTILE_PATH), 0);
    struct ringbus_options options = node_options(&cluster, NULL);
    options.pool[0] = (struct ringbus_pool_class){.chunk_bytes = 16384, .count = 8};
    node.on_event = note_back;
    node_open_with(&node, &options);
    target_it(setting);
    answer();
}

static inline void send_bytes(unsigned char first, size_t size)
{
    static unsigned char bytes[LARGE];
    bytes[0] = first;
    assert_int_equal(ringbus_send(node.bus, &any, 0, bytes, size, 0), 1);
}

static inline void put_disconnect(uint64_t reason)
{
    const uint64_t bye[2] = {0, reason};
    peer_put(&peer, rbi_record_meta(RBI_RECORD_DISCONNECT, 0, 0, 0), bye, sizeof bye);
}

/* Whether the other has written such a record that the peer has not read. */
static inline bool lies_unread(enum rbi_record_kind kind)
{
    const unsigned char *lane = (const unsigned char *)peer.their_side.base + peer.their_lane;
    for (uint64_t pos = peer.read_pos;;) {
        const uint64_t word =
            rbi_load_acq(rbi_au64_at_const(lane, pos & (peer.their_capacity - 1)));
        if (word == 0) {
            return false;
        }
        if (rbi_record_meta_kind((uint32_t)(word >> 32)) == (unsigned)kind) {
            return true;
        }
        pos += rbi_align_up((word & UINT32_MAX) + 8, RBI_LINE);
    }
}

static inline void give_slot_back(uint64_t slot)
{
    struct rbi_side *side = peer_side(&peer);
    rbi_word *ring = (rbi_word *)(void *)((unsigned char *)side + side->returns_offset);
    const uint64_t pos = rbi_load_rlx(&side->returns_pos);
    rbi_word_put(&ring[pos & (side->returns_capacity - 1)], slot);
    rbi_store_rel(&side->returns_pos, pos + 1);
}

static inline int setup(void **state)
{
    (void)state;
    bus_shared_reset();
    return cluster_up(&cluster, "{}\n");
}

static inline int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

#endif
