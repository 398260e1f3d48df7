/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_TRACK_H
#define RINGBUS_DAEMON_BRIDGE_TRACK_H
/*
 * daemon/bridge/track.h - what was sent on of a lane and is not released yet: where its records
 * began, and which payloads they named. Memory of ours, since the lane is the peer's.
 *
 * A bit for each line of the lane, set where a record began. Lines that are not between the two
 * cursors have none.
 *
 * Threads: one. Nothing allocates but init, and the first slot.
 */
#include "shm/base.h"

struct rbi_track_slot {
    uint64_t pos; /* of the record */
    uint32_t slot;
};

struct rbi_track {
    uint64_t *begins;
    uint64_t mask; /* lines of the lane - 1 */
    struct rbi_track_slot *slots;
    uint32_t slot_most; /* power of two */
    uint32_t slot_head; /* both count up */
    uint32_t slot_tail;
};

/**
 * @param lane_bytes  power of two
 * @param slots       that may be out, a power of two
 * @retval 0; -ENOMEM
 */
RBI_MUST_CHECK int rbi_track_init(struct rbi_track *track, uint64_t lane_bytes, uint32_t slots);
/** Accepts a zeroed one. */
void rbi_track_deinit(struct rbi_track *track);

/** A record begins at @p pos. */
static inline void rbi_track_begin(struct rbi_track *track, uint64_t pos)
{
    const uint64_t line = pos / RBI_LINE & track->mask;
    track->begins[line / 64] |= UINT64_C(1) << (line % 64);
}

/** Whether one does, or @p pos is @p end, where the next will. */
static inline bool rbi_track_is_begin(const struct rbi_track *track, uint64_t pos, uint64_t end)
{
    const uint64_t line = pos / RBI_LINE & track->mask;
    return pos == end ||
           (pos % RBI_LINE == 0 && (track->begins[line / 64] >> (line % 64) & 1) != 0);
}

/** Forgets the records from @p from to @p to. */
void rbi_track_forget(struct rbi_track *track, uint64_t from, uint64_t to);

/** The record at @p pos, the last so far, names a payload. @retval 0; -ENOBUFS; -ENOMEM */
RBI_MUST_CHECK int rbi_track_put_slot(struct rbi_track *track, uint64_t pos, uint32_t slot);
/** Takes out the oldest, if its record lies before @p pos. */
bool rbi_track_take_slot(struct rbi_track *track, uint64_t pos, uint32_t *slot);
/** Forgets those of records from @p pos on. */
void rbi_track_drop_slots(struct rbi_track *track, uint64_t pos);

#endif
