/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/bridge/half_side.c - the memory of a half: our side, and what we map of the peer's. */
#include "daemon/bridge/desk_parts.h"

#include <errno.h>
#include <stdlib.h>

/* Of a peer's memory that is mapped page by page at once: what it offers costs us no more. */
#define PREFAULT_MAX (UINT64_C(4) << 20)

int rbi_half_make_side(struct rbi_half *half, uint64_t lane_bytes)
{
    const struct rbi_desk *desk = half->proxy->desk;
    const uint64_t bytes = lane_bytes != 0 ? lane_bytes : desk->lane_bytes;
    if (!rbi_is_pow2(bytes) || bytes < RBI_LANE_CAPACITY_MIN || bytes > RBI_LANE_CAPACITY_MAX) {
        return -EINVAL;
    }
    const int r = rbi_side_create(&half->own_side, bytes, desk->refs_per_link);
    if (r < 0) {
        return r == -EINVAL ? -ENOMEM : r;
    }
    struct rbi_side *side = half->own_side.base;
    half->own_want_pos = &side->want_pos;
    half->own_begun_pos = &side->begun_pos;
    half->own_written_hint = &side->written_hint;
    return 0;
}

static void watch_peer(struct rbi_half *half)
{
    const struct rbi_side *peer = half->peer_side.base;
    const struct rbi_page *page = half->peer_page.base;
    half->peer_want_pos = &peer->want_pos;
    half->peer_written_hint = &peer->written_hint;
    half->peer_begun_pos = &peer->begun_pos;
    half->peer_sleep_epoch = &page->sleep_epoch;
    /* Fixed for the life of the endpoint; a peer that lies here only delays itself. */
    const uint64_t flags_raw = ((const volatile struct rbi_page *)page)->flags;
    half->peer_sleeps = (flags_raw & RBI_PAGE_BUSY_POLL) == 0;
}

static int wire_up(struct rbi_half *half, const struct rbi_side_geometry *theirs)
{
    const struct rbi_side_wiring wiring = {
        .tx = &half->tx, .rx = &half->rx, .returns = &half->returns, .refs = &half->refs};
    const int r = rbi_side_wire(&half->own_side, half->peer_side.base, theirs, &wiring);
    if (r < 0) {
        return r;
    }
    /* Most links are idle: they take no more than READY and PING need, until a message comes. */
    rbi_lane_tx_shut(&half->tx);
    rbi_lane_rx_shut(&half->rx);
    half->trail = half->rx;
    return rbi_track_init(&half->track, theirs->lane_capacity, half->proxy->desk->refs_per_link);
}

int rbi_half_attach(struct rbi_half *half, int fds[3], uint64_t side_bytes, uint64_t pool_bytes)
{
    struct rbi_side_geometry theirs;
    int r = rbi_side_adopt(&half->peer_side, fds[0], side_bytes, &theirs);
    if (r == 0) {
        r = rbi_peer_pool_new(&half->peer_pool, &fds[1], pool_bytes, false);
    }
    if (r == 0) {
        r = rbi_segment_adopt(&half->peer_page, fds[2], RBI_SEGMENT_PAGE, RBI_PAGE, RBI_PAGE);
    }
    if (r == 0) {
        r = wire_up(half, &theirs);
    }
    if (r == 0) {
        watch_peer(half);
        rbi_segment_close_fd(&half->own_side);
    }
    return r;
}

int rbi_half_open_tx(struct rbi_half *half)
{
    if (!rbi_lane_tx_is_shut(&half->tx)) {
        return 0;
    }
    const int r = rbi_segment_mirror(&half->own_side);
    if (r < 0) {
        return r;
    }
    rbi_segment_prefault(&half->own_side, UINT64_MAX, true);
    rbi_lane_tx_open(&half->tx);
    return 0;
}

int rbi_half_open_rx(struct rbi_half *half)
{
    if (!rbi_lane_rx_is_shut(&half->rx)) {
        return 0;
    }
    const int r = rbi_segment_mirror(&half->peer_side);
    if (r < 0) {
        return r;
    }
    rbi_segment_prefault(&half->peer_side, PREFAULT_MAX, false);
    rbi_lane_rx_open(&half->rx);
    return 0;
}
