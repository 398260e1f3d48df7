/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/track.h"

#include <errno.h>
#include <stdlib.h>

int rbi_track_init(struct rbi_track *track, uint64_t lane_bytes, uint32_t slots)
{
    const uint64_t lines = rbi_max_u64(lane_bytes / RBI_LINE, 64);
    *track = (struct rbi_track){.mask = lines - 1, .slot_most = slots};
    track->begins = calloc(lines / 64, sizeof *track->begins);
    return track->begins != NULL ? 0 : -ENOMEM;
}

void rbi_track_deinit(struct rbi_track *track)
{
    free(track->begins);
    free(track->slots);
    track->begins = NULL;
    track->slots = NULL;
}

void rbi_track_forget(struct rbi_track *track, uint64_t from, uint64_t to)
{
    uint64_t line = from / RBI_LINE;
    uint64_t left = (to - from) / RBI_LINE;
    while (left > 0) {
        const uint64_t bit = line % 64;
        const uint64_t count = rbi_min_u64(64 - bit, left);
        const uint64_t bits = count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
        track->begins[(line & track->mask) / 64] &= ~(bits << bit);
        line += count;
        left -= count;
    }
}

int rbi_track_put_slot(struct rbi_track *track, uint64_t pos, uint32_t slot)
{
    if (track->slots == NULL) {
        track->slots = calloc(track->slot_most, sizeof *track->slots);
        if (track->slots == NULL) {
            return -ENOMEM;
        }
    }
    if (track->slot_tail - track->slot_head == track->slot_most) {
        return -ENOBUFS;
    }
    track->slots[track->slot_tail++ & (track->slot_most - 1)] =
        (struct rbi_track_slot){.pos = pos, .slot = slot};
    return 0;
}

bool rbi_track_take_slot(struct rbi_track *track, uint64_t pos, uint32_t *slot)
{
    if (track->slot_head == track->slot_tail) {
        return false;
    }
    const struct rbi_track_slot *oldest = &track->slots[track->slot_head & (track->slot_most - 1)];
    if ((int64_t)(oldest->pos - pos) >= 0) {
        return false;
    }
    *slot = oldest->slot;
    track->slot_head++;
    return true;
}

void rbi_track_drop_slots(struct rbi_track *track, uint64_t pos)
{
    while (track->slot_head != track->slot_tail) {
        const struct rbi_track_slot *newest =
            &track->slots[(track->slot_tail - 1) & (track->slot_most - 1)];
        if ((int64_t)(newest->pos - pos) < 0) {
            return;
        }
        track->slot_tail--;
    }
}
