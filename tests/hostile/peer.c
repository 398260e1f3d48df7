/* SPDX-License-Identifier: Apache-2.0 */
#include "hostile/peer.h"

#include "shm/bell.h"
#include "support/cluster.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- life -------------------------------------------------------------------------------- */

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
    }
    *fd = -1;
}

static void drop_link(struct peer *peer)
{
    rbi_segment_deinit(&peer->side);
    rbi_segment_deinit(&peer->their_side);
    rbi_segment_deinit(&peer->their_page);
    close_fd(&peer->bell);
    close_fd(&peer->bell_copy);
    peer->link_id = 0;
    peer->pos = 0;
    peer->read_pos = 0;
    peer->told = RBI_REASON_NONE;
}

static void reset(struct peer *peer)
{
    memset(peer, 0, sizeof(*peer));
    peer->side = peer->their_side = peer->their_page = (struct rbi_segment)RBI_SEGMENT_NULL;
    peer->bell = peer->bell_copy = -1;
}

int peer_up(struct peer *peer, const char *socket, const char *path)
{
    reset(peer);
    return raw_up(&peer->raw, socket, path);
}

int peer_up_far(struct peer *peer, const char *socket, const char *path)
{
    struct raw_message message;
    struct rbi_wire_registration body = {
        .weight = 100, .state = RBI_ENDPOINT_READY, .origin_incarnation = 5, .cost = 10};
    rbi_text_set(&body.path, path);
    rbi_text_set(&body.host, "beta");
    reset(peer);
    if (raw_connect(&peer->raw, socket) < 0 || raw_hello(&peer->raw) != 0 ||
        raw_send_register(&peer->raw, &body) < 0 ||
        raw_expect(&peer->raw, RBI_WIRE_REGISTERED, &message, RAW_TIMEOUT_MS) != 0) {
        return -1;
    }
    peer->raw.registered = message.body.registered;
    raw_message_deinit(&message);
    return 0;
}

void peer_down(struct peer *peer)
{
    drop_link(peer);
    raw_close(&peer->raw);
}

/* ---- introductions ----------------------------------------------------------------------- */

int peer_offer(struct peer *peer)
{
    int bells[2];
    drop_link(peer);
    if (rbi_segment_create(&peer->side, "hostile-side", RBI_SEGMENT_SIDE, PEER_SIDE_BYTES,
                           RBI_PAGE) != 0 ||
        rbi_segment_mirror(&peer->side) != 0 || rbi_bell_pair(bells) != 0) {
        return -1;
    }
    struct rbi_side *side = peer_side(peer);
    side->lane_offset = RBI_PAGE;
    side->lane_capacity = PEER_LANE_CAPACITY;
    side->returns_offset = sizeof(struct rbi_side);
    side->returns_capacity = PEER_RETURNS;
    peer->bell = bells[0];
    peer->bell_copy = bells[1];
    return 0;
}

static int adopt_theirs(struct peer *peer, int side, uint64_t bytes, int page)
{
    if (rbi_segment_adopt(&peer->their_side, side, RBI_SEGMENT_SIDE, bytes, bytes) != 0) {
        return -1;
    }
    const struct rbi_side *theirs = peer->their_side.base;
    peer->their_lane = theirs->lane_offset;
    peer->their_capacity = theirs->lane_capacity;
    if (rbi_segment_reserve_mirror(&peer->their_side, side, peer->their_lane) != 0 ||
        rbi_segment_mirror(&peer->their_side) != 0) {
        return -1;
    }
    return rbi_segment_adopt(&peer->their_page, page, RBI_SEGMENT_PAGE, RBI_PAGE, RBI_PAGE);
}

/** LINKED, or the refusal. */
static int await_linked(struct peer *peer)
{
    struct raw_message message;
    for (;;) {
        if (raw_receive(&peer->raw, &message, RAW_TIMEOUT_MS) != 0) {
            return -1000;
        }
        const bool mine = message.header.reply_to == peer->raw.serial;
        int result = 1;
        if (mine && message.header.type == RBI_WIRE_ERROR) {
            result = message.body.error.code;
        } else if (mine && message.header.type == RBI_WIRE_LINKED) {
            peer->link_id = message.body.linked.link_id;
            result = message.fds.count == 3
                         ? adopt_theirs(peer, message.fds.fds[0], message.body.linked.side_bytes,
                                        message.fds.fds[2])
                         : -1001;
        }
        raw_message_deinit(&message);
        if (result <= 0) {
            return result;
        }
    }
}

int peer_introduce_with(
    struct peer *peer, uint64_t cluster, int32_t instance, int side, uint64_t bytes, int bell)
{
    const struct rbi_wire_introduce body = {
        .cluster = cluster, .instance = instance, .side_bytes = bytes};
    const int fds[] = {side, bell};
    if (raw_send(&peer->raw, RBI_WIRE_INTRODUCE, &body, fds, 2) < 0) {
        return -1002;
    }
    return await_linked(peer);
}

int peer_introduce(struct peer *peer, uint64_t cluster, int32_t instance)
{
    return peer_introduce_with(peer, cluster, instance, peer->side.fd, peer->side.size,
                               peer->bell_copy);
}

int peer_introduced(struct peer *peer)
{
    struct raw_message message;
    drop_link(peer);
    if (raw_expect(&peer->raw, RBI_WIRE_INTRODUCED, &message, RAW_TIMEOUT_MS) != 0) {
        return -1;
    }
    int result = -1;
    if (message.fds.count == 4) {
        peer->link_id = message.body.introduced.link_id;
        result = adopt_theirs(peer, message.fds.fds[0], message.body.introduced.side_bytes,
                              message.fds.fds[2]);
        const int bell = rbi_fdlist_steal(&message.fds, 3);
        raw_message_deinit(&message);
        /* peer_offer() would drop what was just mapped. */
        if (result == 0 &&
            rbi_segment_create(&peer->side, "hostile-side", RBI_SEGMENT_SIDE, PEER_SIDE_BYTES,
                               RBI_PAGE) == 0 &&
            rbi_segment_mirror(&peer->side) == 0) {
            struct rbi_side *side = peer_side(peer);
            side->lane_offset = RBI_PAGE;
            side->lane_capacity = PEER_LANE_CAPACITY;
            side->returns_offset = sizeof(struct rbi_side);
            side->returns_capacity = PEER_RETURNS;
        }
        peer->bell = bell;
    } else {
        raw_message_deinit(&message);
    }
    return result;
}

int peer_accept_with(struct peer *peer, int side, uint64_t bytes)
{
    const struct rbi_wire_accept accept = {.link_id = peer->link_id, .side_bytes = bytes};
    return raw_send(&peer->raw, RBI_WIRE_ACCEPT, &accept, &side, 1);
}

int peer_link(struct peer *peer, uint64_t cluster, int32_t instance)
{
    int result = peer_offer(peer);
    if (result == 0) {
        result = peer_introduce(peer, cluster, instance);
    }
    if (result == 0) {
        const struct rbi_ready ready = peer_ready(peer);
        peer_put_ready(peer, &ready);
        result = peer_await(peer, RBI_RECORD_READY_ACK, 0, PEER_TIMEOUT_MS);
    }
    return result;
}

void peer_unlink(struct peer *peer)
{
    if (peer->link_id != 0) {
        const struct rbi_wire_link_down down = {.link_id = peer->link_id,
                                                .reason = RBI_REASON_LEFT};
        (void)raw_send(&peer->raw, RBI_WIRE_LINK_DOWN, &down, NULL, 0);
    }
    drop_link(peer);
}

int peer_await_down(struct peer *peer, unsigned timeout_ms)
{
    struct raw_message message;
    const uint64_t deadline_ms = test_now_ms() + timeout_ms;
    while (test_now_ms() < deadline_ms) {
        if (raw_expect(&peer->raw, RBI_WIRE_LINK_DOWN, &message,
                       (unsigned)(deadline_ms - test_now_ms())) != 0) {
            return -1;
        }
        raw_message_deinit(&message);
        if (message.body.link_down.link_id == peer->link_id) {
            return (int)message.body.link_down.reason;
        }
    }
    return -1;
}

/* ---- writing ----------------------------------------------------------------------------- */

struct rbi_side *peer_side(const struct peer *peer)
{
    return peer->side.base;
}

const struct rbi_side *peer_their_side(const struct peer *peer)
{
    return peer->their_side.base;
}

struct rbi_page *peer_page(const struct peer *peer)
{
    return peer->raw.page.base;
}

static unsigned char *lane_at(const struct peer *peer, uint64_t pos)
{
    return (unsigned char *)peer->side.base + RBI_PAGE + (pos & (PEER_LANE_CAPACITY - 1));
}

unsigned char *peer_body(const struct peer *peer)
{
    return lane_at(peer, peer->pos) + 8;
}

void peer_ring(const struct peer *peer)
{
    (void)rbi_bell_ring(peer->bell);
}

bool peer_consumed(const struct peer *peer, unsigned timeout_ms)
{
    const uint64_t deadline_ms = test_now_ms() + timeout_ms;
    while (rbi_load_acq(&peer_their_side(peer)->read_pos) != peer->pos) {
        if (test_now_ms() > deadline_ms) {
            return false;
        }
        test_sleep_ms(1);
    }
    return true;
}

static uint64_t record_bytes(uint64_t size)
{
    return (size + 8 + 63) & ~UINT64_C(63);
}

void peer_commit(struct peer *peer, uint64_t word)
{
    const uint64_t bytes = record_bytes(word & UINT32_MAX);
    rbi_au64 *at = rbi_au64_at(lane_at(peer, peer->pos), 0);
    if (word >> 32 != 0 && bytes < PEER_LANE_CAPACITY) {
        peer->pos += bytes;
        rbi_store_rlx(rbi_au64_at(lane_at(peer, peer->pos), 0), 0);
    }
    rbi_store_seq(at, word);
    peer_ring(peer);
}

void peer_put(struct peer *peer, uint32_t meta, const void *body, uint64_t size)
{
    if (body != NULL) {
        memcpy(peer_body(peer), body, size);
    }
    peer_commit(peer, (uint64_t)meta << 32 | size);
}

struct rbi_ready peer_ready(const struct peer *peer)
{
    struct rbi_ready ready = {.version_min = 1,
                              .version_max = 1,
                              .ping_interval_ms = 1000,
                              .dead_after_ms = 10000,
                              .incarnation = peer->raw.registered.incarnation,
                              .self = {.cluster = peer->raw.registered.cluster,
                                       .instance = peer->raw.registered.instance,
                                       .incarnation = peer->raw.registered.incarnation}};
    memcpy(ready.path, peer->raw.registered.path.bytes, sizeof(ready.path));
    return ready;
}

void peer_put_ready(struct peer *peer, const struct rbi_ready *ready)
{
    unsigned char body[8 + RBI_CONTROL_BODY_MAX] = {0};
    const uint64_t size = rbi_ready_encode(ready, body + 8);
    peer_put(peer, rbi_record_meta(RBI_RECORD_READY, 0, 0, 0), body, 8 + size);
}

/* ---- reading ----------------------------------------------------------------------------- */

int peer_read(struct peer *peer, struct rbi_record *out)
{
    const unsigned char *at = (const unsigned char *)peer->their_side.base + peer->their_lane +
                              (peer->read_pos & (peer->their_capacity - 1));
    const uint64_t word = rbi_load_acq(rbi_au64_at_const(at, 0));
    if (word == 0) {
        return 1;
    }
    const uint64_t size = word & UINT32_MAX;
    if (rbi_record_parse((uint32_t)(word >> 32), at + 8, size, out) != 0) {
        return -1;
    }
    if (out->kind == RBI_RECORD_DISCONNECT) {
        struct rbi_disconnect bye = {.reason = RBI_REASON_NONE};
        (void)!rbi_disconnect_decode(out->payload, out->payload_size, &bye);
        peer->told = (enum rbi_reason)bye.reason;
    }
    peer->read_pos += record_bytes(size);
    rbi_store_seq(&peer_side(peer)->read_pos, peer->read_pos);
    return 0;
}

int peer_await(struct peer *peer, enum rbi_record_kind kind, uint64_t tag, unsigned timeout_ms)
{
    const uint64_t deadline_ms = test_now_ms() + timeout_ms;
    struct rbi_record record;
    for (;;) {
        const int result = peer_read(peer, &record);
        if (result < 0) {
            return -1;
        }
        if (result == 0 && record.kind == RBI_RECORD_DISCONNECT) {
            return 1;
        }
        if (result == 0 && record.kind == (unsigned)kind && record.tag == tag) {
            return 0;
        }
        if (result == 1) {
            if (test_now_ms() > deadline_ms) {
                (void)fprintf(
                    stderr,
                    "peer: waited %u ms for kind %d: ours %llu, read of it %llu, theirs %llu\n",
                    timeout_ms, (int)kind, (unsigned long long)peer->pos,
                    (unsigned long long)rbi_load_acq(&peer_their_side(peer)->read_pos),
                    (unsigned long long)peer->read_pos);
                return -1;
            }
            (void)usleep(50);
        }
    }
}

int peer_ping(struct peer *peer, unsigned timeout_ms)
{
    const uint64_t tag = ++peer->ping;
    peer_put(peer, rbi_record_meta(RBI_RECORD_PING, 0, 0, 0), &tag, sizeof(tag));
    return peer_await(peer, RBI_RECORD_PONG, tag, timeout_ms);
}
