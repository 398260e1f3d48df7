/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon/bridge/half_bell.c - waking the peer, being woken by it, and waiting for it to read
 * (shm/bell.h has the protocol).
 */
#include "daemon/bridge/desk_parts.h"
#include "shm/bell.h"

#include <errno.h>

/*
 * Honest rings follow a record, the release of one, or a payload that is given back. A peer that
 * rings more often in a row for nothing is not listened to for a while, or it would keep us awake
 * for ever; what it writes meanwhile is found when we are awake, or afterwards.
 */
#define IDLE_RINGS_MAX 32U
#define MUTE_NS        (UINT64_C(100) * RBI_DESK_NS_PER_MS)

/* ---- ringing ------------------------------------------------------------------------------- */

static void peer_gone(struct rbi_half *half)
{
    half->hung_up = true;
    rbi_loop_remove(&half->bell_source);
    if (half->residue) {
        rbi_half_free(half);
    } else if (half->phase == RBI_HALF_INTRODUCED || half->phase == RBI_HALF_INTRODUCING) {
        return; /* the daemon says so, too */
    } else {
        rbi_half_down(half, RBI_REASON_CRASHED); /* unless a DISCONNECT in its lane says why */
    }
}

static void ring(struct rbi_half *half)
{
    half->proxy->desk->figures.rings++;
    if (half->bell >= 0 && !half->hung_up && rbi_bell_ring(half->bell) == -EPIPE) {
        peer_gone(half);
    }
}

void rbi_half_ring(struct rbi_half *half)
{
    half->unrung = false;
    rbi_list_remove(&half->unrung_node);
    rbi_bell_burst_end(half->own_written_hint, half->tx.pos);
    if (half->peer_sleeps && rbi_bell_wanted(half->peer_sleep_epoch, &half->rung)) {
        ring(half);
    }
}

void rbi_half_flush(struct rbi_half *half)
{
    if (half->unrung) {
        rbi_half_ring(half);
    }
}

void rbi_half_publish(struct rbi_half *half)
{
    if (!half->peer_sleeps) {
        rbi_lane_release(&half->trail);
        return;
    }
    rbi_lane_release_seq(&half->trail);
    if (RBI_UNLIKELY(
            rbi_bell_space_wanted(half->peer_want_pos, half->trail.pos, &half->want_rung))) {
        ring(half);
    }
}

/* ---- being rung ---------------------------------------------------------------------------- */

static void unmute(void *context)
{
    struct rbi_half *half = context;
    half->idle_rings = 0;
    rbi_loop_want(&half->bell_source, RBI_LOOP_IN);
}

/** Judges a ring that was just taken in. */
static void note_ring(struct rbi_half *half)
{
    struct rbi_loop *loop = half->proxy->desk->loop;
    /* All only grow by what was really written: a liar cannot count anything twice. */
    const uint64_t moved = half->rx.pos + rbi_lane_unread_first(&half->tx) + half->refs.collected;
    if (half->phase != RBI_HALF_LINKED || rbi_half_has_records(half)) {
        return;
    }
    if ((int64_t)(moved - half->ring_seen) > 0) {
        half->ring_seen = moved;
        half->idle_rings = 0;
    } else if (++half->idle_rings > IDLE_RINGS_MAX) {
        rbi_loop_want(&half->bell_source, 0);
        rbi_loop_timer_set(loop, &half->mute_timer, rbi_loop_now_ns(loop) + MUTE_NS, unmute, half);
    }
}

static void rung(void *context, unsigned events)
{
    struct rbi_half *half = context;
    (void)events;
    if (rbi_bell_drain(half->bell) == -EPIPE) {
        peer_gone(half);
        return;
    }
    if (half->residue || half->phase != RBI_HALF_LINKED) {
        return;
    }
    note_ring(half);
    rbi_desk_attend(half);
}

int rbi_half_listen(struct rbi_half *half, int bell)
{
    const int r =
        rbi_loop_add(half->proxy->desk->loop, &half->bell_source, bell, RBI_LOOP_IN, rung, half);
    if (r == 0) {
        half->bell = bell;
    }
    return r;
}

/* ---- waiting for the peer to read ---------------------------------------------------------- */

/** Position that it has to reach, so that a put of want_bytes finds room. */
static uint64_t room_pos(const struct rbi_half *half)
{
    const uint64_t capacity = half->tx.mask + 1;
    /* The largest record needs the whole lane, and not a line more. */
    const uint64_t need = rbi_min_u64(
        rbi_align_up(half->want_bytes + RBI_LANE_CONTROL_ROOM + UINT64_C(2) * RBI_LINE, RBI_LINE),
        capacity);
    return half->tx.pos + need - capacity;
}

bool rbi_half_has_room(struct rbi_half *half)
{
    uint64_t read_pos = 0;
    if (RBI_LIKELY(!half->blocked && !half->awaiting)) {
        return false;
    }
    if (half->phase != RBI_HALF_LINKED) {
        return false;
    }
    if (rbi_lane_read_pos(&half->tx, &read_pos) != 0) {
        (void)rbi_half_bad_peer(half);
        return false;
    }
    half->tx.read_seen = read_pos; /* seen is seen: room that is there now is there for good */
    const bool room = half->blocked && (int64_t)(read_pos - room_pos(half)) >= 0;
    const bool read = half->awaiting && (int64_t)(read_pos - half->await_pos) >= 0;
    half->blocked &= !room;
    half->awaiting &= !read;
    return room || read;
}

void rbi_half_want(struct rbi_half *half)
{
    const uint64_t ticket = half->proxy->sleeps;
    if (half->awaiting && half->blocked) {
        const uint64_t room = room_pos(half);
        rbi_bell_want_space(half->own_want_pos,
                            (int64_t)(room - half->await_pos) < 0 ? room : half->await_pos, ticket);
    } else if (half->awaiting || half->blocked) {
        rbi_bell_want_space(half->own_want_pos, half->blocked ? room_pos(half) : half->await_pos,
                            ticket);
    } else if (half->proxy->starved > 0 && rbi_refs_used(&half->refs) > 0) {
        /* Returns have no position: whatever it says next may have brought one. */
        rbi_bell_want_space(half->own_want_pos, half->tx.read_seen, ticket);
    }
}

void rbi_half_want_none(struct rbi_half *half)
{
    if (rbi_load_rlx(half->own_want_pos) != 0) {
        rbi_bell_want_none(half->own_want_pos);
    }
}

void rbi_half_await(struct rbi_half *half, uint64_t pos)
{
    if (half->phase == RBI_HALF_LINKED) {
        half->awaiting = true;
        half->await_pos = pos;
        rbi_desk_attend(half);
    }
}

void rbi_half_taken(struct rbi_half *half, struct rbi_half_taken *out)
{
    uint64_t read_pos = 0;
    out->written = half->tx.pos;
    const bool sound = !half->broken && rbi_lane_read_pos(&half->tx, &read_pos) == 0;
    if (sound) {
        half->tx.read_seen = read_pos;
    }
    out->read = half->tx.read_seen;
    /* Untrusted: what cannot be says nothing. What it has begun may lie behind what it has read. */
    const uint64_t begun_raw = rbi_load_rlx(half->peer_begun_pos);
    const uint64_t begun = begun_raw & ~RBI_SIDE_BETWEEN;
    const bool ahead = begun - out->read <= out->written - out->read;
    out->believed = sound && (ahead || (int64_t)(begun - out->read) < 0);
    out->begun = !out->believed ? out->written : ahead ? begun : out->read;
    out->running = out->believed && ahead && (begun_raw & RBI_SIDE_BETWEEN) == 0;
    if (!sound) {
        (void)rbi_half_bad_peer(half);
    }
}

void rbi_half_last(struct rbi_half *half, struct rbi_half_last *out)
{
    struct rbi_half_taken taken;
    struct rbi_lane_record record;
    rbi_half_taken(half, &taken);
    out->handled = taken.read;
    out->seen = taken.written;
    if (!taken.believed) {
        return;
    }
    /* Its position is untrusted: only the end of a record that lies before it counts. */
    while ((int64_t)(taken.begun - out->handled) > 0 &&
           rbi_lane_unread_at(&half->tx, out->handled, &record) == RBI_LANE_OK &&
           (int64_t)(taken.begun - record.next) >= 0) {
        out->handled = record.next;
    }
    out->seen = out->handled;
    if ((taken.running || taken.begun != out->handled) &&
        rbi_lane_unread_at(&half->tx, out->handled, &record) == RBI_LANE_OK) {
        out->seen = record.next;
    }
}
