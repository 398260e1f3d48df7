/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_HALF_H
#define RINGBUS_DAEMON_BRIDGE_HALF_H
/*
 * daemon/bridge/half.h - our end of the link between a proxy and a local endpoint: half of a link
 * between two hosts. It moves records as they are, and knows nothing of what they say.
 *
 *   from the local peer   peek, step, ... release: a record is stepped over when it is sent on,
 *                         and released when the other bridge has it; back() returns to one that
 *                         has to be sent again
 *   to the local peer     put, or lend and put_ref for a payload that goes by reference
 *
 * Positions are those of the lane: bytes since the link was made, multiples of 64, 0 at first. A
 * record takes rbi_half_record_bytes() of its body in any lane.
 *
 * What the peer has written is untrusted, the bodies included: load each word once. A peer that
 * breaks the protocol ends its own half only, by on_down(BAD_PEER).
 *
 * What [read_pos, begun_pos) of our side means to the peer: sent on, and maybe seen. So step over
 * a record BEFORE its first byte leaves this process: should the bridge die in between, the peer
 * is not told that nobody can have seen it.
 *
 * Threads: the loop's of its desk. No call waits, none allocates but those that say so.
 */
#include "bus/pidf.h"
#include "bus/record.h"
#include "daemon/bridge/desk.h"
#include "shm/lane.h"
#include "shm/pool.h"

/** Where a half is in its life. */
enum rbi_half_phase {
    RBI_HALF_INTRODUCED = 1,  /* a local endpoint waits for accept() or refuse() */
    RBI_HALF_INTRODUCING = 2, /* we wait for a local endpoint */
    RBI_HALF_LINKED = 3,
    RBI_HALF_DOWN = 4, /* the peer is gone; what it has sent may be read to its end */
};

/* ---- life ---------------------------------------------------------------------------------- */

/**
 * Makes the link that a local endpoint has asked for; on_linked() follows. Allocates the half's
 * side.
 *
 * @param lane_bytes  of the lane towards the peer, as in rbi_proxy_introduce()
 * @retval 0
 * @retval -EINVAL  lane_bytes out of range, or the half does not wait for this
 * @retval -EPROTO  what the peer offers cannot be trusted: it was refused; free the half
 * @retval -ENOMEM; -errno  refused likewise
 */
RBI_MUST_CHECK int rbi_half_accept(struct rbi_half *half, uint64_t lane_bytes);

/** Refuses it, and frees the half. @p code enum ringbus_error, below 0 */
void rbi_half_refuse(struct rbi_half *half, int code, const char *text);

/**
 * Ends the link and frees the half; no callback follows. What was put before is still read by the
 * peer. Accepts every phase.
 * @param reason  what the peer is told behind all records: as far as its lane has room in a
 *                DISCONNECT, unless the other host's endpoint has said so itself, and by the
 *                daemon. NONE: nothing, it takes it for a crash
 */
void rbi_half_end(struct rbi_half *half, enum rbi_reason reason);

enum rbi_half_phase rbi_half_phase(const struct rbi_half *half);
struct rbi_proxy *rbi_half_proxy(const struct rbi_half *half);
/** The local endpoint. */
const struct rbi_pidf *rbi_half_peer(const struct rbi_half *half);
const char *rbi_half_peer_path(const struct rbi_half *half);
/** Of its process; UINT32_MAX: not known, as where we asked it. */
uint32_t rbi_half_peer_uid(const struct rbi_half *half);
void *rbi_half_context(const struct rbi_half *half);
void rbi_half_set_context(struct rbi_half *half, void *context);

/* ---- what comes from the peer --------------------------------------------------------------- */

/**
 * Looks at the next record.
 *
 * @param out  body valid until it is released; untrusted, and the peer may write into it still
 * @retval RBI_LANE_OK; RBI_LANE_EMPTY
 * @retval -EPROTO  the peer broke the protocol: on_down(BAD_PEER) follows
 */
RBI_MUST_CHECK int rbi_half_peek(struct rbi_half *half, struct rbi_lane_record *out);

/**
 * Steps behind the peeked record, which is to be sent on now.
 * @retval 0
 * @retval 1  do not send it: the peer has given this half up and taken its records back, and
 *            on_down(GIVEN_UP) follows; or it has more payloads out than can be, and
 *            on_down(BAD_PEER) does
 */
RBI_MUST_CHECK int rbi_half_step(struct rbi_half *half, const struct rbi_lane_record *record);

/** Position of the next record to peek. */
uint64_t rbi_half_pos(const struct rbi_half *half);
/** Everything before it was released; 0 at first. */
uint64_t rbi_half_released(const struct rbi_half *half);
/**
 * Bytes of the peer's lane: what a lane that is to take its records must have. While it waits for
 * accept() it may be too much, as it is of what the peer has offered; 0: not known.
 */
uint64_t rbi_half_peer_lane_bytes(const struct rbi_half *half);

/**
 * Payload of a record with RBI_RECORD_REF. Maps the peer's pool at the first time.
 *
 * @param record  peeked
 * @param out     @p size bytes, valid until the record is released; untrusted as a body is
 * @retval 0
 * @retval -EPROTO  it lies outside of the peer's pool: on_down(BAD_PEER) follows
 * @retval -ENOMEM; -errno  cannot be mapped now: try again
 */
RBI_MUST_CHECK int rbi_half_payload(struct rbi_half *half,
                                    const struct rbi_lane_record *record,
                                    const unsigned char **out,
                                    uint64_t *size);

/**
 * Everything before @p pos is the peer's again, payloads by reference included.
 * @param pos  from another host, so checked: the beginning of a record, at most rbi_half_pos()
 * @retval 0        also when it is behind us already
 * @retval -EPROTO  it is no such position, and the other host's fault: what the peer writes into
 *                  its lane has no part in it
 */
RBI_MUST_CHECK int rbi_half_release(struct rbi_half *half, uint64_t pos);

/**
 * Returns to a record, to send it again: the other host has nothing from there on, so that none of
 * it counts as seen any more.
 * @param pos  checked likewise: from rbi_half_released() to rbi_half_pos()
 * @retval 0; -EPROTO
 */
RBI_MUST_CHECK int rbi_half_back(struct rbi_half *half, uint64_t pos);

/** No on_records() until further notice, as when the other host takes no more; or again. */
void rbi_half_hold(struct rbi_half *half, bool hold);

/* ---- what goes to the peer ------------------------------------------------------------------ */

/** Bytes that a record with a body of @p size takes in a lane. */
static inline uint64_t rbi_half_record_bytes(uint64_t size)
{
    return rbi_lane_record_bytes(size);
}

/** Largest body that the lane towards the peer takes. */
uint64_t rbi_half_body_max(const struct rbi_half *half);

/**
 * Writes a record. Control records find the room that data leaves free.
 *
 * @param meta  not 0; of a record without reference
 * @retval RBI_LANE_OK    it is in the lane; the peer is woken at the end of the turn, or by
 *                        rbi_half_flush()
 * @retval RBI_LANE_FULL  no room, or no memory to map the lane for its first message: on_room()
 *                        says when to try again. What comes later must wait, too
 * @retval -EMSGSIZE      larger than rbi_half_body_max()
 * @retval -EPROTO        the peer's read position is impossible: on_down(BAD_PEER) follows
 * @retval -EPIPE         the link has ended
 */
RBI_MUST_CHECK int
rbi_half_put(struct rbi_half *half, uint32_t meta, const unsigned char *body, uint64_t size);

/**
 * Room for a body, to be written in place and then published by rbi_half_commit(); nothing else
 * may be put in between. A second reserve replaces the first. The answers are those of put.
 */
RBI_MUST_CHECK int
rbi_half_reserve(struct rbi_half *half, uint32_t meta, uint64_t size, unsigned char **body);
void rbi_half_commit(struct rbi_half *half, uint32_t meta, uint64_t size);

/**
 * Lends a chunk of the proxy's pool for a payload of @p size bytes, to be filled piece by piece.
 *
 * @retval RBI_POOL_OK     the caller's until put_ref or unlend
 * @retval RBI_POOL_EMPTY  none is free, the peer holds as many as it may, or there is no memory
 *                         now: on_room() follows
 * @retval -EMSGSIZE       larger than any chunk (rbi_half_lend_max())
 * @retval -EPIPE          the link has ended
 */
RBI_MUST_CHECK int rbi_half_lend(struct rbi_half *half, uint64_t size, struct rbi_chunk *out);
void rbi_half_unlend(struct rbi_half *half, const struct rbi_chunk *chunk);
/** Largest payload that rbi_half_lend() can ever lend. */
uint64_t rbi_half_lend_max(const struct rbi_half *half);

/**
 * Writes a record whose payload lies in the chunk; the chunk is the peer's then.
 *
 * @param meta  with RBI_RECORD_REF
 * @param body  as the sender wrote it: its last 24 bytes name a place in the sender's pool, and
 *              are replaced
 * @retval      those of rbi_half_put(): the chunk is still the caller's unless RBI_LANE_OK
 * @retval -EINVAL  the body names more bytes than the chunk has, or holds no reference
 */
RBI_MUST_CHECK int rbi_half_put_ref(struct rbi_half *half,
                                    uint32_t meta,
                                    const unsigned char *body,
                                    uint64_t size,
                                    const struct rbi_chunk *chunk);

/** Wakes the peer for what was put, now instead of at the end of the turn. */
void rbi_half_flush(struct rbi_half *half);

/** on_room() comes when the peer has read up to @p pos, which was written; one such wish a half. */
void rbi_half_await(struct rbi_half *half, uint64_t pos);

/** How far the peer has come with what was put. */
struct rbi_half_taken {
    uint64_t written; /* all that was put */
    uint64_t read;    /* up to here it has read, and said so */
    uint64_t begun;   /* up to here it has handled all, though it had not said so yet */
    bool running;     /* the record at begun is being handled: it may have seen that one, too */
    bool believed;    /* its words made sense; else read is the last that did, begun is written */
};
/**
 * Costs a look at two lines of the peer's; when its words make no sense on_down(BAD_PEER) follows.
 * While it lives the answer is old at once; after
 * on_down() of a peer that is dead it is the last word: of all behind begun (and the one that was
 * running) it is certain that nobody has seen it.
 */
void rbi_half_taken(struct rbi_half *half, struct rbi_half_taken *out);

/** The last word of a peer that has ended: ends of records that were put. */
struct rbi_half_last {
    uint64_t handled; /* before it nothing needs to go back to its sender */
    uint64_t seen;    /* behind it nothing was seen */
};
/** After on_down(). Walks what was not read: costs a look at each such record. */
void rbi_half_last(struct rbi_half *half, struct rbi_half_last *out);

#endif
