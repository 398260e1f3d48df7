/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_STREAM_WINDOW_H
#define RINGBUS_BUS_STREAM_WINDOW_H
/*
 * bus/stream_window.h - the two directions of a stream between two bridges: which records are on
 * their way, and how many bytes may be. Pure; one thread.
 *
 * The number of a record is its position in its sender's lane. Positions are multiples of 64, may
 * start anywhere, and are compared by difference only, as in shm/lane.h.
 *
 *   sender     acked <= pos <= furthest        pos: next record to be sent
 *              [acked, pos) is in flight, [acked, furthest) may have arrived; after a cut
 *              pos goes back to what the receiver expects, furthest stays
 *   receiver   settled <= put <= expect        expect: next record to come
 *              [put, expect) waits for room in the lane, [settled, put) lies in it
 *
 * What is settled is acknowledged, and forgotten by the sender: the receiver's host answers for
 * it. The caller says when: as soon as a record is in the local lane, or not before
 * its reader has released it; the latter lets what nobody has read go back to its sender.
 *
 * Bytes are those of DATA and PIECE frames, headers included, since OPEN and OPENED (which begin
 * to count anew). The receiver grants as many as it has room to keep them while its own lane is
 * full, so that nobody else on the connection has to wait. A grant is never exceeded, not even by
 * the rest of a record: a large one is cut into what may go.
 */
#include "shm/base.h"

/** A grant or an acknowledgement waits for more so long, unless much is due. */
#define RBI_STREAM_ACK_DELAY_NS UINT64_C(200000)
/** Records of so many bytes of lane are acknowledged at once. */
#define RBI_STREAM_ACK_BYTES (UINT64_C(16) << 10)

/** @p a is behind @p b, by difference. */
static inline bool rbi_stream_behind(uint64_t a, uint64_t b)
{
    return (int64_t)(a - b) > 0;
}

/** Position behind a record at @p pos with a body of @p size bytes. */
uint64_t rbi_stream_next(uint64_t pos, uint64_t size);
/** What DATA and PIECE say of a position. */
static inline uint32_t rbi_stream_mark(uint64_t pos)
{
    return (uint32_t)(pos >> 6);
}

/* ---- sending ------------------------------------------------------------------------------ */

/** Read it; changed by the functions below. */
struct rbi_stream_tx {
    uint64_t acked;    /* release the local lane up to here */
    uint64_t pos;      /* next record to be sent, or the one that is being sent */
    uint64_t furthest; /* behind the last record that was ever begun: may have arrived */
    uint64_t asked;    /* an acknowledgement was asked for at this position */
    uint64_t sent;     /* bytes, since OPEN or OPENED */
    uint64_t granted;
    uint64_t resent; /* bytes of lane that went more than once, ever */
};

void rbi_stream_tx_init(struct rbi_stream_tx *tx, uint64_t begin);
/** Bytes of frames that may go now; 0 also while nothing is granted yet. */
static inline uint64_t rbi_stream_tx_room(const struct rbi_stream_tx *tx)
{
    return tx->granted - tx->sent;
}
/**
 * The record at tx->pos is begun: before its first frame goes.
 * @param next  behind it
 */
void rbi_stream_tx_begin(struct rbi_stream_tx *tx, uint64_t next);
/** A frame of so many bytes has gone, at most rbi_stream_tx_room(). */
void rbi_stream_tx_frame(struct rbi_stream_tx *tx, uint64_t bytes);
/** All of that record has gone. */
void rbi_stream_tx_end(struct rbi_stream_tx *tx, uint64_t next);
/**
 * Whether the frame that goes now is to ask for an acknowledgement (RBI_FRAME_F_ASK): half of the
 * lane waits for one. Says so once for each half.
 */
bool rbi_stream_tx_ask(struct rbi_stream_tx *tx, uint64_t lane_capacity);
/**
 * ACK came.
 * @retval 0        tx->acked and tx->granted are what it says
 * @retval -EPROTO  before what was acknowledged, behind what was sent, or less than was granted
 */
RBI_MUST_CHECK int rbi_stream_tx_ack(struct rbi_stream_tx *tx, uint64_t position, uint64_t granted);
/**
 * The stream goes on: the other side wants the record at @p expect next.
 * @retval 0        tx->pos is that: step the lane back to it; acked is as before
 * @retval -EPROTO  before what was acknowledged, or behind what was ever sent
 */
RBI_MUST_CHECK int
rbi_stream_tx_resume(struct rbi_stream_tx *tx, uint64_t expect, uint64_t granted);

/* ---- receiving ---------------------------------------------------------------------------- */

enum rbi_stream_take {
    RBI_STREAM_TAKE = 0,      /* keep these bytes; more of the record follows */
    RBI_STREAM_RECORD = 1,    /* keep them: the record is whole, rx->expect is behind it */
    RBI_STREAM_DUPLICATE = 2, /* has come before: drop them, nothing is to be freed */
};

/** Read it; changed by the functions below. */
struct rbi_stream_rx {
    uint64_t expect;
    uint64_t put;
    uint64_t settled;
    uint64_t told; /* last acknowledgement that was sent */
    uint64_t window;
    uint64_t got;     /* bytes, since OPEN or OPENED */
    uint64_t freed;   /* of them and of held, those that are not kept any more */
    uint64_t held;    /* bytes of before that were kept then */
    uint64_t granted; /* as the sender was told */
    uint64_t wait_ns; /* since when something is due; 0: not seen yet */
    bool asked;       /* set it when DATA or PIECE has RBI_FRAME_F_ASK */
    bool partial;     /* a record has begun, PIECEs of it are to come */
    bool skipping;    /* the same, of a duplicate */
    bool owed;        /* an ACK may have been lost with a connection: it is to be said again */
    bool acked;       /* an ACK was ever sent */
    uint64_t begun_size;
    uint64_t piece_at; /* offset of the next PIECE */
    uint64_t piece_end;
    uint64_t duplicates; /* records, ever */
};

void rbi_stream_rx_init(struct rbi_stream_rx *rx, uint64_t expect, uint64_t window);
/**
 * DATA came.
 * @param mark   of its header
 * @param size   of the body in the lane
 * @param from   PIECEs begin at this offset; with @p end: none follow
 * @param end    and end there. Of a body: its size; of a payload by reference: from 0 to its size
 * @param bytes  of the frame, header included
 * @retval RBI_STREAM_TAKE, _RECORD, _DUPLICATE
 * @retval -EPROTO  another record is not whole, one is missing before this, or more than granted
 */
RBI_MUST_CHECK int rbi_stream_rx_data(struct rbi_stream_rx *rx,
                                      uint32_t mark,
                                      uint32_t size,
                                      uint64_t from,
                                      uint64_t end,
                                      uint64_t bytes);
/**
 * PIECE came.
 * @param size   bytes of the record in it
 * @param last   RBI_FRAME_F_LAST
 * @param bytes  of the frame, header included
 * @retval as rbi_stream_rx_data(); -EPROTO also for a gap, and a last one that is not the last
 */
RBI_MUST_CHECK int rbi_stream_rx_piece(struct rbi_stream_rx *rx,
                                       uint32_t mark,
                                       uint64_t offset,
                                       uint64_t size,
                                       bool last,
                                       uint64_t bytes);
/** So many bytes of frames are not kept any more: they may be granted again. */
void rbi_stream_rx_free(struct rbi_stream_rx *rx, uint64_t bytes);
/** Records before @p position lie in the local lane. */
void rbi_stream_rx_put(struct rbi_stream_rx *rx, uint64_t position);
/** Records before @p position are done with; at most rx->put. */
void rbi_stream_rx_settle(struct rbi_stream_rx *rx, uint64_t position);
/** Another window, after a reload. What was granted stays granted. */
void rbi_stream_rx_window(struct rbi_stream_rx *rx, uint64_t window);

/**
 * Whether an ACK is to go now: asked for, much of the window or many records, or what is due has
 * waited for RBI_STREAM_ACK_DELAY_NS.
 */
bool rbi_stream_rx_ack_due(struct rbi_stream_rx *rx, uint64_t now_ns);
/** When it is due by time alone; UINT64_MAX: nothing is. After rbi_stream_rx_ack_due() said no. */
uint64_t rbi_stream_rx_ack_ns(const struct rbi_stream_rx *rx);
/** The ACK that goes now. */
void rbi_stream_rx_ack(struct rbi_stream_rx *rx, uint64_t *position, uint64_t *granted);

/**
 * The connection is gone: forgets a record that is not whole, and says again what it said last.
 * @return whether there was one
 */
bool rbi_stream_rx_cut(struct rbi_stream_rx *rx);
/**
 * What OPEN or OPENED grants. Begins to count anew; after what was kept of a record that is not
 * whole has been freed.
 */
uint64_t rbi_stream_rx_offer(struct rbi_stream_rx *rx);

#endif
