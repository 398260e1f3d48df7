/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/code.h"
#include "daemon/daemon.h"
#include "daemon/peer.h"
#include "daemon/request.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Packets taken from one client before the others have their turn. */
#define READ_BATCH 16U
/* Packets taken from one that has ended; its socket cannot hold more. */
#define LAST_WORDS_MAX 1024U
#define LOG_LIMIT_NS   (UINT64_C(10) * 1000 * 1000 * 1000)

static bool peer_paused(const struct rbi_peer *peer)
{
    return peer->doomed ||
           ((peer->query.active || peer->stalled || peer->governing) && !peer->hangup);
}

/* ---- time limits ----------------------------------------------------------------------- */

static void peer_frame_late(void *context)
{
    struct rbi_peer *peer = context;
    peer->daemon->counters.frame_timeouts++;
    rbi_peer_send_error(peer, 0, RBI_CODE_TIMEOUT, 0,
                        "the rest of a frame did not come within %" PRIu32 " ms",
                        peer->daemon->config.daemon.request_timeout_ms);
    rbi_peer_doom(peer, "did not finish a frame");
}

/** A frame that has begun must end in time, however slowly its bytes trickle in. */
static void peer_watch_partial(struct rbi_peer *peer, bool frame_done)
{
    struct rbi_loop *loop = peer->daemon->loop;
    if (frame_done || peer_paused(peer)) {
        rbi_loop_timer_cancel(loop, &peer->frame_timer);
    }
    if (!peer_paused(peer) && rbi_wire_stream_partial(&peer->stream) &&
        !peer->frame_timer.heap_idx) {
        rbi_loop_timer_set(loop, &peer->frame_timer,
                           rbi_loop_now_ns(loop) +
                               (uint64_t)peer->daemon->config.daemon.request_timeout_ms * 1000000,
                           peer_frame_late, peer);
    }
}

static void peer_stall_over(void *context)
{
    struct rbi_peer *peer = context;
    peer->stalled = false;
    rbi_peer_resume(peer);
}

/**
 * Answers to what the daemon asked are free: a server must be able to take many clients. Their
 * handlers charge those that answer nothing. Free is also telling once of every link that it may
 * have: after a restart nothing may keep those waiting.
 */
static bool peer_message_charged(struct rbi_peer *peer, unsigned type)
{
    if (type == RBI_WIRE_RELINK &&
        peer->relinks < rbi_quota_limits(&peer->daemon->quota, peer->actor)->links) {
        peer->relinks++;
        return false;
    }
    return type != RBI_WIRE_ACCEPT && type != RBI_WIRE_REFUSE && type != RBI_WIRE_LINK_DOWN;
}

/** Whoever is slowed is told nothing, and wonders: its operator finds it here. */
static void peer_log_slowed(struct rbi_peer *peer, const struct rbi_text *why)
{
    struct rbi_daemon *daemon = peer->daemon;
    uint64_t suppressed = 0;
    daemon->counters.control_stalls++;
    if (rbi_log_limit_pass(&daemon->slowed_limit, rbi_loop_now_ns(daemon->loop), LOG_LIMIT_NS,
                           &suppressed)) {
        rbi_log(RBI_LOG_WARNING, "control_slowed",
                "path=%s uid=%" PRIu32 " pid=%s why=\"%s\" suppressed=%" PRIu64,
                peer->endpoint ? peer->endpoint->path.bytes : "none", peer->uid,
                rbi_log_pid(&(struct rbi_log_pid){{0}}, peer->pid), why->bytes, suppressed);
    }
}

void rbi_peer_charge(struct rbi_peer *peer)
{
    struct rbi_text why;
    struct rbi_loop *loop = peer->daemon->loop;
    const uint64_t wait_ns = rbi_quota_control(&peer->daemon->quota, peer->charge.user,
                                               &peer->control_tat_ns, rbi_loop_now_ns(loop), &why);
    if (wait_ns) {
        peer->stalled = true;
        peer_log_slowed(peer, &why);
        rbi_loop_timer_set(loop, &peer->stall_timer, rbi_loop_now_ns(loop) + wait_ns,
                           peer_stall_over, peer);
    }
}

/* ---- descriptors ----------------------------------------------------------------------- */

/** Adds what came with a packet to what waits. @return false: the peer was ended */
static bool peer_take_fds(struct rbi_peer *peer, struct rbi_fdlist *fds)
{
    peer->fds_truncated |= fds->truncated;
    if (fds->surplus || peer->fds.count + fds->count > RBI_HANDOFF_FDS_MAX) {
        rbi_peer_violation(peer, 0, "more descriptors than any message carries");
        return false;
    }
    for (unsigned i = 0, count = fds->count; i < count; i++) {
        peer->fds.fds[peer->fds.count++] = rbi_fdlist_steal(fds, i);
    }
    return true;
}

/** Moves the first @p wanted waiting descriptors, or what there is, to a frame's own list. */
static void peer_give_fds(struct rbi_peer *peer, struct rbi_fdlist *out, unsigned wanted)
{
    const unsigned given = wanted < peer->fds.count ? wanted : peer->fds.count;
    memcpy(out->fds, peer->fds.fds, given * sizeof(int));
    out->count = given;
    out->truncated = peer->fds_truncated;
    peer->fds.count -= given;
    memmove(peer->fds.fds, peer->fds.fds + given, peer->fds.count * sizeof(int));
}

/** All frames read so far were handled: what is left belongs to one that has begun. */
static void peer_check_fds(struct rbi_peer *peer)
{
    if (peer->doomed || rbi_wire_stream_partial(&peer->stream)) {
        return;
    }
    if (peer->fds.count) {
        if (peer->fds_truncated) {
            rbi_fdlist_deinit(&peer->fds);
        } else {
            rbi_peer_violation(peer, 0, "descriptors that no message asked for");
        }
    }
    peer->fds_truncated = false;
}

/* ---- frames ---------------------------------------------------------------------------- */

static void
peer_handle_frame(struct rbi_peer *peer, const struct rbi_wire_header *header, const void *frame)
{
    struct rbi_fdlist fds = RBI_FDLIST_NULL;
    peer_give_fds(peer, &fds, header->fd_count);
    if (peer_message_charged(peer, header->type)) {
        rbi_peer_charge(peer);
    }
    peer->handling++;
    rbi_request_handle(peer, header, frame, &fds);
    peer->handling--;
    rbi_fdlist_deinit(&fds);
}

/** Handles what lies in the stream, until the peer is paused. */
static void peer_handle_frames(struct rbi_peer *peer)
{
    struct rbi_wire_header header;
    const void *frame = NULL;
    bool frame_done = false;
    while (!peer_paused(peer)) {
        const int result = rbi_wire_stream_next(&peer->stream, &header, &frame);
        if (result == RBI_WIRE_SHORT) {
            peer_check_fds(peer);
            break;
        }
        if (result < 0) {
            rbi_peer_violation(peer, 0, "not a frame of this protocol");
            return;
        }
        peer_handle_frame(peer, &header, frame);
        frame_done = true;
    }
    if (!peer->doomed) {
        peer_watch_partial(peer, frame_done);
    }
}

/** Reads one packet. @return whether there may be more */
static bool peer_read_packet(struct rbi_peer *peer)
{
    size_t room = 0;
    struct rbi_fdlist fds = RBI_FDLIST_NULL;
    void *at = rbi_wire_stream_room(&peer->stream, &room);
    const ssize_t size = rbi_handoff_recv(peer->fd, at, room, &fds);
    if (size == -EAGAIN) {
        return false;
    }
    if (size == -EMSGSIZE) {
        rbi_peer_violation(peer, 0, "a packet is longer than %u bytes", RBI_WIRE_FRAME_MAX);
        return false;
    }
    if (size < 0 && !peer->reset) {
        /* A client that closes without reading our answers leaves a reset in front of its last
         * words; it is reported once, and then they can be read. */
        peer->reset = true;
        return true;
    }
    if (size <= 0) {
        rbi_peer_doom(peer, size == 0 ? "connection closed" : "connection lost");
        return false;
    }
    rbi_wire_stream_filled(&peer->stream, (size_t)size);
    const bool taken = peer_take_fds(peer, &fds);
    rbi_fdlist_deinit(&fds);
    if (taken) {
        peer_handle_frames(peer);
    }
    return !peer->doomed;
}

void rbi_peer_read(struct rbi_peer *peer)
{
    for (unsigned i = 0; i < READ_BATCH; i++) {
        if (peer_paused(peer)) {
            if (!peer->doomed) {
                rbi_peer_update_want(peer);
            }
            return;
        }
        if (!peer_read_packet(peer)) {
            return;
        }
    }
    rbi_loop_again(&peer->source);
}

void rbi_peer_resume(struct rbi_peer *peer)
{
    peer_handle_frames(peer);
    if (!peer->doomed) {
        rbi_peer_update_want(peer);
        rbi_loop_again(&peer->source);
    }
}

void rbi_peer_hang_up(struct rbi_peer *peer, const char *reason)
{
    peer->hangup = true;
    peer->query.active = false;
    if (!peer->doomed) {
        peer_handle_frames(peer);
    }
    for (unsigned i = 0; i < LAST_WORDS_MAX && !peer->doomed; i++) {
        if (!peer_read_packet(peer)) {
            break;
        }
    }
    rbi_peer_doom(peer, reason);
}
