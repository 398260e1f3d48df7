/* SPDX-License-Identifier: Apache-2.0 */
#include "shm/side.h"

#include <errno.h>
#include <stdlib.h>

int rbi_side_create(struct rbi_segment *out, uint64_t lane_bytes, uint64_t returns)
{
    const uint64_t returns_offset = rbi_align_up(sizeof(struct rbi_side), RBI_LINE);
    const uint64_t returns_bytes = returns * sizeof(rbi_word);
    const uint64_t lane_offset = rbi_align_up(returns_offset + returns_bytes, RBI_PAGE);
    const int r = rbi_segment_create(out, "ringbus-side", RBI_SEGMENT_SIDE,
                                     lane_offset + lane_bytes, lane_offset);
    if (r < 0) {
        return r;
    }
    struct rbi_side *side = out->base;
    side->lane_offset = lane_offset;
    side->lane_capacity = lane_bytes;
    side->returns_offset = returns_offset;
    side->returns_capacity = returns;
    rbi_store_rlx(&side->begun_pos, RBI_SIDE_BETWEEN); /* none yet */
    return 0;
}

struct rbi_side_geometry rbi_side_own_geometry(const struct rbi_segment *own)
{
    const struct rbi_side *side = own->base;
    return (struct rbi_side_geometry){.lane_offset = side->lane_offset,
                                      .lane_capacity = side->lane_capacity,
                                      .returns_offset = side->returns_offset,
                                      .returns_capacity = side->returns_capacity};
}

/** Untrusted: copies the geometry once and checks the copy against the mapped size. */
static int check(const struct rbi_segment *segment, struct rbi_side_geometry *out)
{
    const struct rbi_side *side = segment->base;
    const struct rbi_side_geometry raw = {
        .lane_offset = ((const volatile struct rbi_side *)side)->lane_offset,
        .lane_capacity = ((const volatile struct rbi_side *)side)->lane_capacity,
        .returns_offset = ((const volatile struct rbi_side *)side)->returns_offset,
        .returns_capacity = ((const volatile struct rbi_side *)side)->returns_capacity,
    };
    if (!rbi_is_pow2(raw.lane_capacity) || raw.lane_capacity < RBI_LANE_CAPACITY_MIN ||
        raw.lane_capacity > RBI_LANE_CAPACITY_MAX || raw.lane_capacity > segment->size ||
        raw.lane_offset % RBI_PAGE != 0 || raw.lane_offset < sizeof(struct rbi_side) ||
        raw.lane_offset != segment->size - raw.lane_capacity) {
        return -EPROTO;
    }
    if (!rbi_is_pow2(raw.returns_capacity) || raw.returns_capacity < RBI_RETURNS_MIN ||
        raw.returns_capacity > RBI_RETURNS_MAX || raw.returns_offset % RBI_LINE != 0 ||
        raw.returns_offset < sizeof(struct rbi_side) || raw.returns_offset > raw.lane_offset ||
        raw.returns_capacity * sizeof(rbi_word) > raw.lane_offset - raw.returns_offset) {
        return -EPROTO;
    }
    *out = raw;
    return 0;
}

int rbi_side_adopt(struct rbi_segment *out,
                   int fd,
                   uint64_t bytes,
                   struct rbi_side_geometry *geometry)
{
    int r = rbi_segment_adopt(out, fd, RBI_SEGMENT_SIDE, bytes, bytes);
    if (r == 0) {
        r = check(out, geometry);
    }
    if (r == 0) {
        r = rbi_segment_reserve_mirror(out, fd, geometry->lane_offset);
    }
    return r;
}

int rbi_side_wire(const struct rbi_segment *own,
                  const struct rbi_side *peer,
                  const struct rbi_side_geometry *theirs,
                  const struct rbi_side_wiring *out)
{
    struct rbi_side *side = own->base;
    unsigned char *base = own->base;
    const unsigned char *peer_base = (const unsigned char *)peer;
    uint64_t *inside = calloc(RBI_LANE_INSIDE_WORDS(side->lane_capacity), sizeof *inside);
    if (inside == NULL) {
        return -ENOMEM;
    }
    rbi_lane_tx_init(out->tx, base + side->lane_offset, side->lane_capacity, &peer->read_pos, 0,
                     inside);
    rbi_lane_rx_init(out->rx, peer_base + theirs->lane_offset, theirs->lane_capacity,
                     &side->read_pos, 0);
    rbi_returns_init(out->returns, &side->returns_pos,
                     (rbi_word *)(void *)(base + side->returns_offset), side->returns_capacity);
    return rbi_refs_init(out->refs, (uint32_t)theirs->returns_capacity, &peer->returns_pos,
                         (const rbi_word *)(const void *)(peer_base + theirs->returns_offset));
}
