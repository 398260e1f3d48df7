/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_SHM_LANE_H
#define RINGBUS_SHM_LANE_H
/*
 * shm/lane.h - one-way ring of variable-size records between two processes.
 *
 * A record starts on a 64-byte line: first the commit word, then the body. The
 * lane's memory is mapped twice in a row, so that a record never wraps. The
 * commit word lies in the record, so a small message costs one cache line, not
 * two: the consumer polls the word at its position, and the producer keeps the
 * commit words of the lines ahead zeroed. It does so in runs of 2 KiB, after
 * publishing a record, two runs ahead: those lines are then fetched for writing
 * while nobody waits for them, and those of the run behind them on the way.
 *
 *   commit word = (uint64_t)meta << 32 | body bytes,  meta != 0
 *
 * Who writes what: the producer the lane, in its own side; the consumer its read
 * position, in its own side. Each maps the other's read-only. What the peer wrote
 * is untrusted: loaded once, checked, only the checked copy is used.
 *
 * Threads: one producer thread, one consumer thread. Every call is wait-free,
 * allocates nothing, makes no system call. Positions are bytes since creation,
 * multiples of 64; they may start anywhere and are compared by difference only, so
 * that not even their wrap matters.
 *
 * Ordering. R releases, A acquires; lane.c and this header carry the same labels.
 *   R1 rbi_lane_commit()   stores the commit word -> A1 rbi_lane_peek()     body visible
 *   R2 rbi_lane_release()  stores read_pos        -> A2 rbi_lane_reserve()  lines reusable
 * The zero in the commit word ahead is ordered by R1 of the record before it.
 * The loads of A1 and A2 are sequentially consistent, because they are also the
 * second look before sleeping (B4 and B8 of shm/bell.h); that costs an acquire.
 */
#include "shm/atomic.h"
#include "shm/base.h"

/** Outcomes that the caller must handle; negative values end the link. */
enum rbi_lane_result {
    RBI_LANE_OK = 0,
    RBI_LANE_FULL = 1,  /**< no room now; retry after the consumer has moved */
    RBI_LANE_EMPTY = 2, /**< nothing to read now */
};

/** Bytes in front of a body. */
#define RBI_LANE_HEADER 8U
/* Both are smaller in tests/model alone, whose lanes are a few lines long. */
#ifndef RBI_LANE_CONTROL_ROOM
/** Room that data leaves free, so that control records always find some. */
#define RBI_LANE_CONTROL_ROOM (UINT64_C(8) * RBI_LINE)
/** Lines whose commit words are zeroed in one go; chosen with bench/micro_lane. */
#define RBI_LANE_ZERO_RUN 32U
#endif

#define RBI_LANE_RUN_BYTES (UINT64_C(1) * RBI_LANE_ZERO_RUN * RBI_LINE) /* power of two */

/** Producer's view. Private fields. */
struct rbi_lane_tx {
    unsigned char *base; /* ours, 2 x capacity of address space */
    uint64_t mask;       /* capacity - 1 */
    uint64_t pos;        /* next record */
    uint64_t zeroed;     /* commit words of all lines in [max(pos, lent), zeroed) are zero */
    uint64_t lent;       /* end of what was reserved: lines up to it may hold body bytes */
    uint64_t read_seen;  /* last checked copy of the peer's read position */
    const rbi_au64 *read_pos;
    uint64_t body_max; /* largest body that is taken; 0 while the lane is shut */
    /* Ours alone: a bit for each line that holds body bytes where a commit word would lie. */
    uint64_t *inside;
    uint64_t inside_mask; /* bits of it - 1: the lane's lines, at least 64 */
};

/** Consumer's view. Private fields. */
struct rbi_lane_rx {
    const unsigned char *base; /* the peer's, mapped read-only, 2 x capacity */
    uint64_t mask;
    uint64_t pos;       /* next record to read */
    uint64_t published; /* last value stored in *read_pos */
    rbi_au64 *read_pos; /* ours */
    uint64_t body_max;  /* largest body that is believed; one line while the lane is shut */
};

/** One record as the consumer sees it. Body bytes are still the peer's: untrusted. */
struct rbi_lane_record {
    uint32_t meta;
    uint32_t size; /* of the body, checked: lies within the mapping */
    const unsigned char *body;
    uint64_t next; /* position behind the record */
};

/**
 * Prepares the producer's side of an all-zero lane.
 *
 * @param start_pos  0 outside of tests; a multiple of 64. Both ends must use the same
 * @param inside     RBI_LANE_INSIDE_WORDS(capacity) words of zero, private to the producer; lent
 */
void rbi_lane_tx_init(struct rbi_lane_tx *tx,
                      void *base,
                      uint64_t capacity,
                      const rbi_au64 *peer_read_pos,
                      uint64_t start_pos,
                      uint64_t *inside);
#define RBI_LANE_INSIDE_WORDS(capacity) (((capacity) / RBI_LINE + 63U) / 64U)
/** Prepares the consumer's side and stores its first read position. */
void rbi_lane_rx_init(struct rbi_lane_rx *rx,
                      const void *base,
                      uint64_t capacity,
                      rbi_au64 *own_read_pos,
                      uint64_t start_pos);

/** Largest body that a lane of @p capacity bytes takes: capacity - control room - 64 - header. */
uint64_t rbi_lane_body_max(uint64_t capacity);

/*
 * A lane may start shut: mapped once, not twice, as long as nobody has anything to say but
 * control records. What would need the second mapping then fails where a size out of range
 * does, so that the test for it costs an open lane nothing.
 */

/** From now on rbi_lane_reserve() refuses every body but an empty one: -EMSGSIZE. */
void rbi_lane_tx_shut(struct rbi_lane_tx *tx);
/** The lane is mapped twice: every size that fits it is taken. */
void rbi_lane_tx_open(struct rbi_lane_tx *tx);
/** From now on rbi_lane_peek() refuses what is larger than a line: -EPROTO. */
void rbi_lane_rx_shut(struct rbi_lane_rx *rx);
/** The lane is mapped twice. */
void rbi_lane_rx_open(struct rbi_lane_rx *rx);
bool rbi_lane_tx_is_shut(const struct rbi_lane_tx *tx);
bool rbi_lane_rx_is_shut(const struct rbi_lane_rx *rx);

/**
 * Reserves room for one record. A second reserve replaces the first; nothing was sent.
 *
 * @param tx     producer
 * @param size   body bytes, 0 to rbi_lane_body_max()
 * @param room   RBI_LANE_CONTROL_ROOM for data, 0 for control records
 * @param body   set on RBI_LANE_OK: lent until commit, 8-byte aligned (its byte 8 is 16-byte
 *               aligned)
 * @retval RBI_LANE_OK    reserved
 * @retval RBI_LANE_FULL  no room now
 * @retval -EMSGSIZE      size out of range; the lane is unharmed
 * @retval -EPROTO        the peer's read position is impossible: close the link
 */
RBI_MUST_CHECK static inline int
rbi_lane_reserve(struct rbi_lane_tx *tx, uint64_t size, uint64_t room, unsigned char **body);

/** The same in a lane that may be shut. -EMSGSIZE as well: it would pass the lane's end. */
RBI_MUST_CHECK static inline int
rbi_lane_reserve_once(struct rbi_lane_tx *tx, uint64_t size, uint64_t room, unsigned char **body);

/**
 * Publishes the reserved record with release order. @p size at most what was reserved; @p meta not
 * 0.
 */
static inline void rbi_lane_commit(struct rbi_lane_tx *tx, uint64_t size, uint32_t meta);

/**
 * The same, sequentially consistent: needed before looking whether the receiver sleeps
 * (shm/bell.h).
 */
static inline void rbi_lane_commit_seq(struct rbi_lane_tx *tx, uint64_t size, uint32_t meta);

/**
 * Looks at the next record without consuming it.
 *
 * @retval RBI_LANE_OK     @p out is set; its body may be read until rbi_lane_release()
 *                         publishes a position behind it
 * @retval RBI_LANE_EMPTY  nothing committed yet
 * @retval -EPROTO         the peer's record is impossible: close the link
 */
RBI_MUST_CHECK static inline int rbi_lane_peek(const struct rbi_lane_rx *rx,
                                               struct rbi_lane_record *out);

/** The same in a lane that may be shut. -EMSGSIZE: the record passes the lane's end. */
RBI_MUST_CHECK static inline int rbi_lane_peek_once(const struct rbi_lane_rx *rx,
                                                    struct rbi_lane_record *out);

/** Steps behind a peeked record; private, publishes nothing. */
static inline void rbi_lane_advance(struct rbi_lane_rx *rx, const struct rbi_lane_record *record);

/** Publishes the position: the producer may reuse everything before it. Once a batch. */
static inline void rbi_lane_release(struct rbi_lane_rx *rx);
/** The same, sequentially consistent: needed before looking whether the sender waits for space. */
static inline void rbi_lane_release_seq(struct rbi_lane_rx *rx);

/** Bytes written and not yet known to be consumed; reads the peer's position. 0..capacity. */
uint64_t rbi_lane_used(const struct rbi_lane_tx *tx);

/**
 * Walks what a dead receiver has not released: producer side, own memory, from one record that
 * the producer wrote to the next. A position in the middle of a record, where body bytes would
 * pass for a commit word, is never taken from a receiver.
 *
 * @param pos  position of a record, from rbi_lane_unread_first() or the last record's next
 * @retval RBI_LANE_OK @p out is set;  RBI_LANE_EMPTY no more
 */
RBI_MUST_CHECK int
rbi_lane_unread_at(const struct rbi_lane_tx *tx, uint64_t pos, struct rbi_lane_record *out);
/**
 * Marks every record from @p pos on as withdrawn, for a receiver that was given up and may go
 * on all the same: one that looks after this delivers none of them.
 */
void rbi_lane_withdraw(const struct rbi_lane_tx *tx, uint64_t pos);
/** Receiver, after an rbi_store_asym(): whether a record that it looked at is withdrawn. */
static inline bool rbi_lane_is_withdrawn(const struct rbi_lane_record *record);
/** First position that the peer had not released; checked, falls back to the last good value. */
uint64_t rbi_lane_unread_first(const struct rbi_lane_tx *tx);

#include "shm/lane_inline.h"

#endif
