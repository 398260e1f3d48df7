/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon/bridge/half.c - the life of a half: asked for, accepted or refused, linked, down, freed,
 * and what it leaves behind.
 *
 * When a link ends whose peer still reads payloads of ours, these may not go out again before the
 * peer is done: it says so by hanging up its bell (libclient/residue.c does the same for us). What
 * remains until then is the bell, and the chunks that are out.
 */
#include "daemon/bridge/half.h"

#include "daemon/bridge/desk_parts.h"
#include "daemon/code.h"
#include "shm/bell.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct rbi_half *
rbi_half_new(struct rbi_proxy *proxy, const struct rbi_pidf *peer, const char *path)
{
    struct rbi_half *half = NULL;
    if (posix_memalign((void **)&half, RBI_LINE, rbi_align_up(sizeof *half, RBI_LINE)) != 0) {
        return NULL;
    }
    memset(half, 0, sizeof *half);
    half->proxy = proxy;
    half->peer = *peer;
    half->peer_uid = UINT32_MAX;
    half->bell = -1;
    half->own_side = half->peer_side = half->peer_page = (struct rbi_segment)RBI_SEGMENT_NULL;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(half->offered); i++) {
        half->offered[i] = -1;
    }
    (void)snprintf(half->path, sizeof half->path, "%s", path);
    rbi_list_push_back(&proxy->halves, &half->node);
    rbi_list_init(&half->turn);
    rbi_list_init(&half->unrung_node);
    rbi_list_init(&half->news_node);
    proxy->half_count++;
    return half;
}

/* ---- asking and answering ------------------------------------------------------------------ */

int rbi_half_introduce(struct rbi_half *half, uint64_t lane_bytes)
{
    int bells[2] = {-1, -1};
    int r = rbi_half_make_side(half, lane_bytes);
    if (r == 0) {
        r = rbi_bell_pair(bells);
    }
    if (r == 0) {
        r = rbi_half_listen(half, bells[0]);
        if (r < 0) {
            (void)close(bells[0]);
        }
    }
    if (r == 0) {
        const int fds[] = {half->own_side.fd, bells[1]};
        const struct rbi_wire_introduce body = {.cluster = half->peer.cluster,
                                                .instance = half->peer.instance,
                                                .incarnation = half->peer.incarnation,
                                                .side_bytes = half->own_side.size};
        half->serial = rbi_uplink_send(&half->proxy->uplink, RBI_WIRE_INTRODUCE, &body, fds,
                                       RBI_ARRAY_SIZE(fds));
        r = half->serial != 0 ? 0 : -EAGAIN;
    }
    if (bells[1] >= 0) {
        (void)close(bells[1]);
    }
    return r;
}

static void drop_bell(struct rbi_half *half)
{
    rbi_loop_timer_cancel(half->proxy->desk->loop, &half->mute_timer);
    rbi_loop_remove(&half->bell_source);
    if (half->bell >= 0) {
        rbi_bell_close(half->bell);
    }
    half->bell = -1;
}

void rbi_half_drop_request(struct rbi_half *half)
{
    drop_bell(half);
    rbi_segment_deinit(&half->own_side);
    half->serial = 0;
}

static void drop_offer(struct rbi_half *half)
{
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(half->offered); i++) {
        if (half->offered[i] >= 0 && i == 3) {
            rbi_bell_close(half->offered[i]);
        } else if (half->offered[i] >= 0) {
            rbi_fd_discard(half->offered[i]);
        }
        half->offered[i] = -1;
    }
}

static void say_refused(struct rbi_half *half, int code, const char *text)
{
    struct rbi_wire_refuse body = {.link_id = half->link_id, .code = code};
    if (half->link_id != 0) {
        rbi_text_set(&body.text, text);
        half->link_id = 0;
        (void)rbi_uplink_send(&half->proxy->uplink, RBI_WIRE_REFUSE, &body, NULL, 0);
    }
}

static int accept_offer(struct rbi_half *half, uint64_t lane_bytes)
{
    int r = rbi_half_make_side(half, lane_bytes);
    const int side = half->own_side.fd;
    half->own_side.fd = -1; /* attaching closes it, ACCEPT still needs it */
    if (r == 0) {
        r = rbi_half_attach(half, half->offered, half->offered_side_bytes,
                            half->offered_pool_bytes);
    }
    if (r == 0) {
        r = rbi_bell_check(half->offered[3]);
    }
    if (r == 0) {
        r = rbi_half_listen(half, half->offered[3]);
    }
    if (r == 0) {
        half->offered[3] = -1;
        const struct rbi_wire_accept body = {.link_id = half->link_id,
                                             .side_bytes = half->own_side.size};
        r = rbi_uplink_send(&half->proxy->uplink, RBI_WIRE_ACCEPT, &body, &side, 1) != 0 ? 0
                                                                                         : -EPIPE;
    }
    if (side >= 0) {
        (void)close(side);
    }
    return r;
}

int rbi_half_accept(struct rbi_half *half, uint64_t lane_bytes)
{
    if (half->phase != RBI_HALF_INTRODUCED || half->failed_due) {
        return -EINVAL;
    }
    const int r = accept_offer(half, lane_bytes);
    if (r == -EINVAL) {
        return r;
    }
    if (r < 0) {
        const bool bad = r == -EPROTO || r == -EBADF || r == -EFBIG;
        half->proxy->desk->figures.bad_peers += bad ? 1U : 0U;
        say_refused(half, bad ? RBI_CODE_BAD_PEER : RBI_CODE_NO_MEMORY,
                    bad ? "its memory cannot be trusted" : strerrordesc_np(-r));
        return bad ? -EPROTO : r;
    }
    drop_offer(half);
    rbi_half_linked(half);
    return 0;
}

void rbi_half_refuse(struct rbi_half *half, int code, const char *text)
{
    say_refused(half, code < 0 ? code : RBI_CODE_DENIED, text);
    rbi_half_free(half);
}

/* ---- news of it ---------------------------------------------------------------------------- */

void rbi_half_linked(struct rbi_half *half)
{
    half->phase = RBI_HALF_LINKED;
    half->linked_due = true;
    half->proxy->desk->figures.halves++;
    rbi_desk_attend(half);
    rbi_desk_tell(half);
}

void rbi_half_failed(struct rbi_half *half, int code, const char *text)
{
    if (half->failed_due) {
        return;
    }
    half->failed_due = true;
    half->linked_due = false;
    half->error = code;
    (void)snprintf(half->text, sizeof half->text, "%s", text);
    rbi_desk_tell(half);
}

static void waits_no_more(struct rbi_half *half)
{
    if (half->starved && half->proxy->starved > 0) {
        half->proxy->starved--;
    }
    half->blocked = half->starved = half->awaiting = half->room_due = false;
}

void rbi_half_down(struct rbi_half *half, enum rbi_reason reason)
{
    if (half->phase != RBI_HALF_LINKED) {
        return;
    }
    half->phase = RBI_HALF_DOWN;
    half->reason = reason;
    half->down_due = true;
    half->down_pos = half->rx.pos;
    waits_no_more(half);
    half->proxy->desk->figures.halves--;
    rbi_desk_attend(half);
    rbi_desk_tell(half);
}

int rbi_half_bad_peer(struct rbi_half *half)
{
    if (!half->broken) {
        half->broken = true;
        half->read_out = true;
        half->proxy->desk->figures.bad_peers++;
        rbi_half_down(half, RBI_REASON_BAD_PEER);
        half->reason = RBI_REASON_BAD_PEER; /* also of one that is down already */
    }
    return -EPROTO;
}

/* ---- the end ------------------------------------------------------------------------------- */

static void leave_lists(struct rbi_half *half)
{
    struct rbi_desk *desk = half->proxy->desk;
    rbi_desk_leave(half);
    rbi_list_remove(&half->unrung_node);
    rbi_list_remove(&half->news_node);
    half->failed_due = half->linked_due = half->down_due = half->room_due = false;
    half->introduced_due = false;
    if (desk->visited == half) {
        desk->visited = NULL;
    }
    waits_no_more(half);
}

static void drop_memory(struct rbi_half *half)
{
    free(half->tx.inside);
    half->tx.inside = NULL;
    rbi_track_deinit(&half->track);
    rbi_segment_deinit(&half->own_side);
    rbi_segment_deinit(&half->peer_side);
    rbi_segment_deinit(&half->peer_page);
    rbi_peer_pool_unref(half->peer_pool);
    half->peer_pool = NULL;
}

void rbi_half_free(struct rbi_half *half)
{
    struct rbi_proxy *proxy = half->proxy;
    leave_lists(half);
    if (half->residue) {
        proxy->desk->figures.residues--;
    } else {
        proxy->half_count--;
        proxy->desk->figures.halves -= half->phase == RBI_HALF_LINKED ? 1U : 0U;
    }
    drop_bell(half);
    drop_offer(half);
    if (half->refs.chunk_of != NULL) {
        rbi_refs_drop_all(&half->refs, &proxy->pool);
    }
    rbi_refs_deinit(&half->refs);
    drop_memory(half);
    rbi_list_remove(&half->node);
    free(half);
}

/** Whether its peer may still read what we have lent it; then only that is left of it. */
static bool keep_residue(struct rbi_half *half)
{
    struct rbi_proxy *proxy = half->proxy;
    if (half->refs.chunk_of == NULL || half->hung_up || half->bell < 0) {
        return false;
    }
    (void)!rbi_refs_collect(&half->refs, &proxy->pool);
    if (rbi_refs_used(&half->refs) == 0 || rbi_bell_is_hung_up(half->bell)) {
        return false;
    }
    leave_lists(half);
    proxy->half_count--;
    proxy->desk->figures.halves -= half->phase == RBI_HALF_LINKED ? 1U : 0U;
    proxy->desk->figures.residues++;
    rbi_bell_hang_up(half->bell);
    drop_memory(half);
    half->phase = RBI_HALF_DOWN;
    half->residue = true;
    return true;
}

/** The last word in its lane, if there is room: the peer reads it before it sees our end. */
static void say_goodbye(struct rbi_half *half, enum rbi_reason reason)
{
    unsigned char body[RBI_RECORD_TAG + RBI_CONTROL_BODY_MAX] RBI_ALIGNED(8) = {0};
    const struct rbi_disconnect bye = {.reason = (uint32_t)reason};
    const uint64_t size = rbi_disconnect_encode(&bye, body + RBI_RECORD_TAG);
    (void)!rbi_half_put(half, rbi_record_meta(RBI_RECORD_DISCONNECT, 0, 0, 0), body,
                        RBI_RECORD_TAG + size);
}

void rbi_half_end(struct rbi_half *half, enum rbi_reason reason)
{
    if (half->phase == RBI_HALF_INTRODUCED) {
        say_refused(half, RBI_CODE_PEER_GONE, "the instance has left");
    }
    if (half->phase == RBI_HALF_LINKED && reason != RBI_REASON_NONE && !half->said_bye) {
        say_goodbye(half, reason);
    }
    if (half->unrung) {
        rbi_half_ring(half);
    }
    if (half->link_id != 0) {
        /* NONE is how it would look if this process had died. */
        struct rbi_wire_link_down down = {
            .link_id = half->link_id,
            .reason = (uint32_t)(reason != RBI_REASON_NONE ? reason : RBI_REASON_CRASHED)};
        rbi_text_set(&down.text, "");
        half->link_id = 0;
        (void)rbi_uplink_send(&half->proxy->uplink, RBI_WIRE_LINK_DOWN, &down, NULL, 0);
    }
    if (!keep_residue(half)) {
        rbi_half_free(half);
    }
}

/* ---- what others ask ----------------------------------------------------------------------- */

enum rbi_half_phase rbi_half_phase(const struct rbi_half *half)
{
    return (enum rbi_half_phase)half->phase;
}

struct rbi_proxy *rbi_half_proxy(const struct rbi_half *half)
{
    return half->proxy;
}

const struct rbi_pidf *rbi_half_peer(const struct rbi_half *half)
{
    return &half->peer;
}

const char *rbi_half_peer_path(const struct rbi_half *half)
{
    return half->path;
}

uint32_t rbi_half_peer_uid(const struct rbi_half *half)
{
    return half->peer_uid;
}

void *rbi_half_context(const struct rbi_half *half)
{
    return half->context;
}

void rbi_half_set_context(struct rbi_half *half, void *context)
{
    half->context = context;
}
