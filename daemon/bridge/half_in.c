/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon/bridge/half_in.c - records that come from the local peer.
 *
 * One cursor walks its lane, as records are sent on. Where they began, and which payloads they
 * named, is kept here (half_track.c): what the peer writes into its lane meanwhile cannot make a
 * position wrong that another host acknowledges, or a payload come back twice.
 */
#include "bus/record_inline.h"
#include "daemon/bridge/desk_parts.h"
#include "shm/bell.h"

#include <errno.h>

/* Longest time that a record waits for the memory to map it. */
#define STARVE_NS (UINT64_C(1000) * RBI_DESK_NS_PER_MS)

/** The next record. @retval RBI_LANE_OK; RBI_LANE_EMPTY; -EPROTO; -errno */
static int look(struct rbi_half *half, struct rbi_lane_record *out)
{
    int r = rbi_lane_peek(&half->rx, out);
    if (RBI_LIKELY(r >= 0) || !rbi_lane_rx_is_shut(&half->rx)) {
        return r;
    }
    r = rbi_lane_peek_once(&half->rx, out); /* READY, which lies in the first mapping as a rule */
    if (r == -EMSGSIZE) {
        r = rbi_half_open_rx(half);
        r = r < 0 ? r : rbi_lane_peek(&half->rx, out);
    }
    return r;
}

/** One that goes on writing when it is down could keep us reading for ever. */
static bool is_read_out(const struct rbi_half *half)
{
    return half->read_out ||
           (half->phase == RBI_HALF_DOWN && half->rx.pos - half->down_pos > half->rx.mask) ||
           half->phase < RBI_HALF_LINKED;
}

bool rbi_half_has_records(const struct rbi_half *half)
{
    struct rbi_lane_record record;
    return !is_read_out(half) && rbi_lane_peek(&half->rx, &record) != RBI_LANE_EMPTY;
}

/** What came cannot be mapped; memory that lacks now may be there soon. */
static RBI_COLD int starve(struct rbi_half *half)
{
    const uint64_t now_ns = rbi_loop_now_ns(half->proxy->desk->loop);
    if (half->starved_ns == 0) {
        half->starved_ns = now_ns;
    } else if (now_ns - half->starved_ns > STARVE_NS) {
        half->read_out = true;
        rbi_half_down(half, RBI_REASON_NO_RESOURCES);
    }
    return RBI_LANE_EMPTY;
}

int rbi_half_peek(struct rbi_half *half, struct rbi_lane_record *out)
{
    if (RBI_UNLIKELY(is_read_out(half))) {
        return RBI_LANE_EMPTY;
    }
    const int r = look(half, out);
    if (RBI_LIKELY(r >= 0)) {
        return r;
    }
    return r == -EPROTO ? rbi_half_bad_peer(half) : starve(half);
}

/** Untrusted. @retval 0; -EPROTO it has none */
static int reference_of(const struct rbi_lane_record *record, struct rbi_record_ref *out)
{
    const uint64_t head = RBI_RECORD_TAG + UINT64_C(8) * (record->meta >> 16 & 0xffU);
    if ((record->meta >> 8 & RBI_RECORD_REF) == 0 || record->size != head + sizeof *out) {
        return -EPROTO;
    }
    const unsigned char *at = record->body + head;
    out->offset = rbi_record_word(at);
    out->size = rbi_record_word(at + 8);
    out->slot = rbi_record_word(at + 16);
    return 0;
}

/** Notes which payload is to be given back. @retval 0; -EPROTO */
static RBI_COLD int note_payload(struct rbi_half *half, const struct rbi_lane_record *record)
{
    struct rbi_record_ref ref;
    const int r = reference_of(record, &ref);
    if (r == 0 && rbi_track_put_slot(&half->track, half->rx.pos, (uint32_t)ref.slot) == 0) {
        return 0;
    }
    return rbi_half_bad_peer(half); /* more are out than its ring has entries, or none is named */
}

int rbi_half_step(struct rbi_half *half, const struct rbi_lane_record *record)
{
    if (RBI_LIKELY((int64_t)(record->next - half->begun) > 0)) {
        half->begun = record->next;
        /* Before its first byte leaves; and before the look: either it sees that we have begun,
         * or we see that it has taken the record back. */
        rbi_store_asym(half->own_begun_pos, record->next | RBI_SIDE_BETWEEN);
    }
    if (RBI_UNLIKELY(rbi_lane_is_withdrawn(record))) {
        half->read_out = true;
        rbi_half_down(half, RBI_REASON_GIVEN_UP);
        return 1;
    }
    if (RBI_UNLIKELY((record->meta >> 8 & RBI_RECORD_REF) != 0) &&
        note_payload(half, record) != 0) {
        return 1;
    }
    rbi_track_begin(&half->track, half->rx.pos);
    rbi_lane_advance(&half->rx, record);
    half->proxy->desk->figures.records_in++;
    half->proxy->desk->figures.bytes_in += record->size;
    return 0;
}

uint64_t rbi_half_pos(const struct rbi_half *half)
{
    return half->rx.pos;
}

uint64_t rbi_half_released(const struct rbi_half *half)
{
    return half->trail.pos;
}

uint64_t rbi_half_peer_lane_bytes(const struct rbi_half *half)
{
    /* Its side is not looked at before it is taken; a power of two that it has room for. */
    return half->rx.base != NULL ? half->rx.mask + 1
                                 : rbi_pow2_ceil(half->offered_side_bytes / 2 + 1);
}

/* ---- payloads by reference ----------------------------------------------------------------- */

int rbi_half_payload(struct rbi_half *half,
                     const struct rbi_lane_record *record,
                     const unsigned char **out,
                     uint64_t *size)
{
    struct rbi_record_ref ref;
    if (reference_of(record, &ref) != 0) {
        return rbi_half_bad_peer(half);
    }
    const int r = rbi_peer_pool_open(half->peer_pool);
    if (r < 0) {
        return r == -EPROTO ? rbi_half_bad_peer(half) : r;
    }
    const uint64_t bytes = half->peer_pool->bytes;
    if (ref.size > bytes || ref.offset > bytes - ref.size || ref.offset % RBI_LINE != 0) {
        return rbi_half_bad_peer(half);
    }
    *out = half->peer_pool->base + ref.offset;
    *size = ref.size;
    return 0;
}

/* ---- release, and back --------------------------------------------------------------------- */

int rbi_half_release(struct rbi_half *half, uint64_t pos)
{
    if ((int64_t)(pos - half->trail.pos) <= 0) {
        return pos % RBI_LINE == 0 ? 0 : -EPROTO;
    }
    if ((int64_t)(pos - half->rx.pos) > 0 || !rbi_track_is_begin(&half->track, pos, half->rx.pos)) {
        return -EPROTO;
    }
    uint32_t slot = 0;
    while (rbi_track_take_slot(&half->track, pos, &slot)) {
        rbi_returns_put(&half->returns, slot);
    }
    rbi_track_forget(&half->track, half->trail.pos, pos);
    half->trail.pos = pos;
    rbi_half_publish(half);
    return 0;
}

int rbi_half_back(struct rbi_half *half, uint64_t pos)
{
    if ((int64_t)(pos - half->trail.pos) < 0 || (int64_t)(pos - half->rx.pos) > 0 ||
        !rbi_track_is_begin(&half->track, pos, half->rx.pos)) {
        return -EPROTO;
    }
    rbi_track_drop_slots(&half->track, pos);
    rbi_track_forget(&half->track, pos, half->rx.pos);
    half->rx.pos = pos;
    if ((int64_t)(half->begun - pos) > 0) {
        half->begun = pos; /* the other host says that it has nothing from here on */
        rbi_store_rlx(half->own_begun_pos, pos | RBI_SIDE_BETWEEN);
    }
    if (half->phase == RBI_HALF_LINKED) {
        rbi_desk_attend(half);
    }
    return 0;
}

void rbi_half_hold(struct rbi_half *half, bool hold)
{
    if (half->held && !hold) {
        rbi_desk_attend(half); /* what came meanwhile has rung for nothing */
    }
    half->held = hold;
}
