/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_SHM_BELL_H
#define RINGBUS_SHM_BELL_H
/*
 * shm/bell.h - going to sleep without losing a wake-up, and waking with at most one
 * system call a sleep.
 *
 * The receiver announces sleep by making its epoch odd, looks at every lane once
 * more, and only then waits for a bell. A sender that ends a burst publishes
 * its last record sequentially consistent, then looks at the epoch; if it is odd
 * and this sender has not yet rung in it, it rings. Either the
 * receiver's second look sees the record, or the sender's look sees the odd epoch.
 *
 * The mirror image wakes a sender that waits for space: it stores the read
 * position that it waits for in its own side, looks at the peer's read position
 * once more, and waits; the consumer publishes its position, then looks at that
 * word.
 *
 * Ordering: all accesses of a pair are sequentially consistent (store then load on
 * each side); nothing weaker is enough, tests/model shows it.
 *   B1 sender stores the commit word,     then B2 loads sleep_epoch
 *   B3 receiver stores sleep_epoch (odd), then B4 loads the commit words
 *   B5 consumer stores read_pos,          then B6 loads want_pos
 *   B7 sender stores want_pos,            then B8 loads read_pos
 * B1 covers the record whose commit word it stores. For a burst, whose other records
 * were committed with release only, the language promises nothing about those (every
 * processor does): there the sender stores one more word, and the receiver loads it.
 *   B9 sender stores written_hint,        then B2 loads sleep_epoch
 *   B3 receiver stores sleep_epoch (odd), then B10 loads written_hint, then the commit words
 */
#include "shm/atomic.h"
#include "shm/base.h"

/** Receiver: announces sleep. Look at every lane after this, before waiting. */
static inline void rbi_bell_announce(rbi_au64 *sleep_epoch)
{
    /* B3: pairs with B2. Own word: the load needs no order. */
    rbi_store_seq(sleep_epoch, rbi_load_rlx(sleep_epoch) | 1);
}

/** Receiver: awake again. Harmless when it was not asleep. */
static inline void rbi_bell_retract(rbi_au64 *sleep_epoch)
{
    const uint64_t epoch = rbi_load_rlx(sleep_epoch);
    if (epoch & 1) {
        /* Nobody depends on seeing this early: a late reader rings once too often. */
        rbi_store_rlx(sleep_epoch, epoch + 1);
    }
}

/**
 * Sender, after a sequentially consistent commit: must it ring?
 *
 * @param sleep_epoch  the receiver's, untrusted: any value costs at most one ring each change
 * @param rung         private to this sender and receiver; the epoch last rung in
 */
static inline bool rbi_bell_wanted(const rbi_au64 *sleep_epoch, uint64_t *rung)
{
    /* B2: pairs with B3. */
    const uint64_t epoch = rbi_load_seq(sleep_epoch);
    if (RBI_LIKELY((epoch & 1) == 0) || epoch == *rung) {
        return false;
    }
    *rung = epoch;
    return true;
}

/**
 * Sender, after records that were committed with release only, before rbi_bell_wanted().
 *
 * @param written_hint  in the own side; anything stored there does, its position serves tools
 * @param pos           the lane's position
 */
static inline void rbi_bell_burst_end(rbi_au64 *written_hint, uint64_t pos)
{
    /* B9: pairs with B10. */
    rbi_store_seq(written_hint, pos);
}

/**
 * Receiver, after announcing sleep, before the second look at a lane: whatever a burst
 * left there that ended before is seen by that look. The value is not used.
 *
 * @param written_hint  the sender's
 */
static inline void rbi_bell_burst_seen(const rbi_au64 *written_hint)
{
    /* B10: pairs with B9. */
    (void)rbi_load_seq(written_hint);
}

/** Low bits of a want, free because positions are multiples of 64. */
#define RBI_BELL_TICKETS 63U

/**
 * Sender: waits for the consumer to reach @p pos (a multiple of 64), or, with a position
 * that it has reached already, for whatever it does next. Look once more after this.
 *
 * @param ticket  counts the sleeps of this sender: one is rung for once
 */
static inline void rbi_bell_want_space(rbi_au64 *want_pos, uint64_t pos, uint64_t ticket)
{
    /* B7: pairs with B6. */
    rbi_store_seq(want_pos, pos | (ticket % RBI_BELL_TICKETS + 1));
}

/** Sender: no longer waits. */
static inline void rbi_bell_want_none(rbi_au64 *want_pos)
{
    rbi_store_rlx(want_pos, 0);
}

/**
 * Consumer, after a sequentially consistent release of @p read_pos: must it ring the sender?
 *
 * @param want_pos  the sender's, untrusted
 * @param rung      private; the want last rung for
 */
static inline bool
rbi_bell_space_wanted(const rbi_au64 *want_pos, uint64_t read_pos, uint64_t *rung)
{
    /* B6: pairs with B7. */
    const uint64_t want = rbi_load_seq(want_pos);
    if (RBI_LIKELY(want == 0) || want == *rung ||
        (int64_t)(read_pos - (want & ~(uint64_t)RBI_BELL_TICKETS)) < 0) {
        return false;
    }
    *rung = want;
    return true;
}

/**
 * Makes the bell of one link: a pair of connected sockets, non-blocking and
 * close-on-exec. Each end of the link holds one and rings the other through it.
 *
 * Why not an eventfd: everybody who holds one can drain it, clear O_NONBLOCK
 * or fill its counter, and so swallow the wake-ups of others or hang a sender in
 * write(). A socket of its own for each link, written with MSG_DONTWAIT, leaves a
 * hostile peer nothing to break but its own link; and it reports the peer's
 * death by itself, while the daemon is down as well (docs/design/002-bell.md).
 *
 * @param ends  both owned by the caller; written on success only
 * @retval 0; -errno
 */
RBI_MUST_CHECK int rbi_bell_pair(int ends[2]);

/**
 * Rings the peer; one system call, never waits. A full buffer is as good as a ring, because
 * the peer empties it long before it fills, or does not listen at all.
 * @retval 0       it will wake
 * @retval -EPIPE  the peer has closed its end: it is dead or has left
 */
int rbi_bell_ring(int fd);

/**
 * Takes back what the peer has rung; bounded, one system call as a rule. Whatever
 * it sent, descriptors included, is thrown away.
 * @retval 0       drained
 * @retval -EPIPE  the peer has closed its end
 */
int rbi_bell_drain(int fd);

/**
 * Tells the peer that we are done, as closing would: no ring comes from us any more. Its own
 * end is still reported to us.
 */
void rbi_bell_hang_up(int fd);

/** Whether the peer has hung up or closed its end, or died; one system call. */
bool rbi_bell_is_hung_up(int fd);

/** Ends the bell for both and closes our end of it; bounded, whatever the peer has put into it. */
void rbi_bell_close(int fd);

/**
 * Whether a received descriptor is a connected Unix stream socket. Untrusted input.
 * @retval 0; -EBADF it is something else
 */
RBI_MUST_CHECK int rbi_bell_check(int fd);

#endif
