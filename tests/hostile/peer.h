/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_HOSTILE_PEER_H
#define RINGBUS_TESTS_HOSTILE_PEER_H
/*
 * A peer without a library: owns its side, page, pool and bell, and writes into them
 * whatever the test wants, at any time. Functions return 0 or a negative value; nothing
 * asserts.
 */
#include "bus/record.h"
#include "support/raw.h"

#define PEER_LANE_CAPACITY 16384U
#define PEER_RETURNS       64U
#define PEER_SIDE_BYTES    (RBI_PAGE + PEER_LANE_CAPACITY)
#define PEER_TIMEOUT_MS    2000U

struct peer {
    struct raw raw;
    struct rbi_segment side;       /* ours, lane mirrored */
    struct rbi_segment their_side; /* mirrored */
    struct rbi_segment their_page;
    int bell;      /* our end */
    int bell_copy; /* the end that the other holds as well: we need not have closed it */
    uint64_t link_id;
    uint64_t pos; /* of our next record */
    uint64_t read_pos;
    uint64_t their_lane;
    uint64_t their_capacity;
    uint64_t ping;
    enum rbi_reason told; /* what the last DISCONNECT in their lane said */
};

/** Connects, greets, registers. */
int peer_up(struct peer *peer, const char *socket, const char *path);
/** The same as a proxy of an instance of another host: its links are relayed ones. */
int peer_up_far(struct peer *peer, const char *socket, const char *path);
void peer_down(struct peer *peer);

/** A fresh, right side and bell; what was there before is dropped. */
int peer_offer(struct peer *peer);
/** Asks for a link with what peer_offer() made. @return 0, or the code of the refusal */
int peer_introduce(struct peer *peer, uint64_t cluster, int32_t instance);
/** The same with descriptors of the caller's choice. */
int peer_introduce_with(
    struct peer *peer, uint64_t cluster, int32_t instance, int side, uint64_t bytes, int bell);
/** Waits for INTRODUCED and maps what it brings; nothing is answered. */
int peer_introduced(struct peer *peer);
/** Answers it. @return 0; -1 not sent */
int peer_accept_with(struct peer *peer, int side, uint64_t bytes);
/** Offers, introduces, says READY, waits for the ACK. */
int peer_link(struct peer *peer, uint64_t cluster, int32_t instance);
/** Tells the daemon that the link is over and drops all memory of it. */
void peer_unlink(struct peer *peer);
/** Waits for LINK_DOWN of this link. @return its reason, or -1 */
int peer_await_down(struct peer *peer, unsigned timeout_ms);

struct rbi_side *peer_side(const struct peer *peer);
const struct rbi_side *peer_their_side(const struct peer *peer);
struct rbi_page *peer_page(const struct peer *peer);
/** Where the body of the next record lies; its commit word is 8 bytes before. */
unsigned char *peer_body(const struct peer *peer);
/** Stores a commit word at the present position, rings, steps behind it if it is possible. */
void peer_commit(struct peer *peer, uint64_t word);
/** Writes a record and commits it. @p body may be NULL: what lies there is sent. */
void peer_put(struct peer *peer, uint32_t meta, const void *body, uint64_t size);
void peer_put_ready(struct peer *peer, const struct rbi_ready *ready);
/** READY as it should be. */
struct rbi_ready peer_ready(const struct peer *peer);
void peer_ring(const struct peer *peer);
/** Whether the other has read everything within the time. */
bool peer_consumed(const struct peer *peer, unsigned timeout_ms);

/** Next record of the other's lane, read and released. @return 0; 1 none; -1 broken */
int peer_read(struct peer *peer, struct rbi_record *out);
/** Reads until a record of that kind, or DISCONNECT. @return 0; 1 DISCONNECT; -1 not in time */
int peer_await(struct peer *peer, enum rbi_record_kind kind, uint64_t tag, unsigned timeout_ms);
/** PING, and waits for its PONG. @return as peer_await() */
int peer_ping(struct peer *peer, unsigned timeout_ms);

#endif
