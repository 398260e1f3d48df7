/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/stream.c - the life of a stream: one function an input. Whatever ends it goes through
 * finish(), so that the local end is told once, and nothing is done after it.
 */
#include "bus/stream.h"

#include <errno.h>

static bool same_id(const struct rbi_stream_id *a, const struct rbi_stream_id *b)
{
    return a->life == b->life && a->number == b->number;
}

/* ---- ends --------------------------------------------------------------------------------- */

/** The stream is over; what the local end is told depends on how far it had come. */
static void finish(struct rbi_stream *stream,
                   enum rbi_reason reason,
                   uint64_t seen,
                   int32_t code,
                   struct rbi_stream_actions *out)
{
    if (!stream->local_ended && stream->opener && !stream->local) {
        out->todo |= RBI_STREAM_DO_REFUSE_LOCAL;
        out->code = code;
    } else if (!stream->local_ended) {
        out->todo |= RBI_STREAM_DO_END_LOCAL;
        out->reason = reason;
        out->seen = seen;
    }
    if (stream->crossed.number != 0 && stream->state == RBI_STREAM_OPENING) {
        /* Whoever opened the same pair counted on our OPEN. */
        out->todo |= RBI_STREAM_DO_SEND_REFUSED;
        out->id = stream->crossed;
        out->attempt = stream->crossed_attempt;
        out->code = code;
    }
    if (rbi_stream_rx_cut(&stream->rx)) {
        out->todo |= RBI_STREAM_DO_DROP_PART;
    }
    out->todo |= RBI_STREAM_DO_FORGET;
    stream->state = RBI_STREAM_CLOSED;
    stream->deadline_ns = UINT64_MAX;
    stream->retry_ns = UINT64_MAX;
}

/** Nobody answers for what was sent and not acknowledged. */
static void
give_up(struct rbi_stream *stream, enum rbi_reason reason, struct rbi_stream_actions *out)
{
    finish(stream, reason, stream->tx.furthest, 0, out);
}

static void send_close(struct rbi_stream *stream,
                       enum rbi_reason reason,
                       bool now,
                       struct rbi_stream_actions *out)
{
    stream->close_sent = true;
    out->todo |= RBI_STREAM_DO_SEND_CLOSE;
    out->reason = reason;
    out->now = now;
}

static void
broken(struct rbi_stream *stream, enum rbi_reason reason, struct rbi_stream_actions *out)
{
    if (stream->state == RBI_STREAM_OPEN && !stream->close_sent) {
        send_close(stream, reason, true, out);
    }
    give_up(stream, reason, out);
}

static void refuse(const struct rbi_stream_id *id,
                   uint32_t attempt,
                   int32_t code,
                   bool forgotten,
                   struct rbi_stream_actions *out)
{
    out->todo |= RBI_STREAM_DO_SEND_REFUSED;
    out->id = *id;
    out->attempt = attempt;
    out->code = code;
    out->forgotten = forgotten;
}

/** Everything that came before the other's CLOSE lies in the local lane. */
static void finish_remote(struct rbi_stream *stream, struct rbi_stream_actions *out)
{
    if (stream->state == RBI_STREAM_OPEN && !stream->close_sent) {
        send_close(stream, stream->remote_reason, false, out);
    }
    finish(stream, stream->remote_reason, stream->remote_seen, 0, out);
}

/* ---- cuts and ways ------------------------------------------------------------------------ */

static void drop_part(struct rbi_stream *stream, struct rbi_stream_actions *out)
{
    if (rbi_stream_rx_cut(&stream->rx)) {
        out->todo |= RBI_STREAM_DO_DROP_PART;
    }
}

static void hold(struct rbi_stream *stream, uint64_t now_ns, struct rbi_stream_actions *out)
{
    drop_part(stream, out);
    stream->state = RBI_STREAM_HELD;
    stream->close_sent = false;
    /* One that only waits for its own lane to drain needs no way. */
    stream->deadline_ns =
        stream->remote_ended ? UINT64_MAX : now_ns + stream->terms.unreachable_ns;
    stream->retry_ns = UINT64_MAX;
    stream->retry_wait_ns = RBI_STREAM_RETRY_MIN_NS;
    if (!stream->local_ended && !stream->remote_ended) {
        stream->told_hold = true;
        out->todo |= RBI_STREAM_DO_HOLD;
    }
}

static void send_open(struct rbi_stream *stream, struct rbi_stream_actions *out)
{
    stream->attempt++;
    stream->cut = false;
    stream->retry_ns = UINT64_MAX;
    out->todo |= RBI_STREAM_DO_SEND_OPEN;
}

static void on_way(struct rbi_stream *stream, struct rbi_stream_actions *out)
{
    if (!stream->opener) {
        return; /* it waits for OPEN, so that there is one way for both directions */
    }
    if (stream->state == RBI_STREAM_OPENING && stream->cut) {
        send_open(stream, out);
    } else if (stream->state == RBI_STREAM_HELD) {
        send_open(stream, out);
        stream->state = RBI_STREAM_RESUMING;
    }
}

static void on_cut(struct rbi_stream *stream, uint64_t now_ns, struct rbi_stream_actions *out)
{
    if (stream->state == RBI_STREAM_OPENING) {
        stream->cut = true;
        if (stream->opener && stream->local_ended) {
            give_up(stream, RBI_REASON_LEFT, out);
        }
    } else if (stream->state == RBI_STREAM_OPEN) {
        hold(stream, now_ns, out);
    } else if (stream->state == RBI_STREAM_RESUMING) {
        stream->state = RBI_STREAM_HELD;
    }
}

/**
 * Both sides know each other's positions: the stream goes on from there. False, and nothing has
 * changed: they do not fit what we know.
 */
static bool go_on(struct rbi_stream *stream,
                  const struct rbi_stream_input *input,
                  struct rbi_stream_actions *out)
{
    if (rbi_stream_behind(input->begin, stream->rx.expect) ||
        rbi_stream_tx_resume(&stream->tx, input->expect, input->granted) != 0) {
        return false;
    }
    drop_part(stream, out);
    out->todo |= RBI_STREAM_DO_BACK;
    if (stream->told_hold) {
        stream->told_hold = false;
        out->todo |= RBI_STREAM_DO_RELEASE;
    }
    stream->state = RBI_STREAM_OPEN;
    stream->cut = false;
    stream->close_sent = false;
    stream->deadline_ns = UINT64_MAX;
    return true;
}

/* ---- OPEN --------------------------------------------------------------------------------- */

/** The OPEN of this very stream, again, to the side that did not open it. */
static void on_own_open(struct rbi_stream *stream,
                        const struct rbi_stream_input *input,
                        struct rbi_stream_actions *out)
{
    if (stream->opener || input->attempt <= stream->attempt) {
        return; /* old */
    }
    stream->attempt = input->attempt;
    if (stream->state == RBI_STREAM_OPENING) {
        stream->cut = false;
        stream->tx.granted = input->granted;
    } else if (go_on(stream, input, out)) {
        out->todo |= RBI_STREAM_DO_SEND_OPENED;
    } else {
        refuse(&stream->id, input->attempt, 0, true, out);
        give_up(stream, RBI_REASON_BAD_PEER, out);
    }
}

/** Both sides open the same pair, and the other's OPEN stands: it is as if we had sent none. */
static void adopt(struct rbi_stream *stream,
                  const struct rbi_stream_input *input,
                  struct rbi_stream_actions *out)
{
    if (!go_on(stream, input, out)) {
        refuse(&input->id, input->attempt, 0, true, out);
        return;
    }
    stream->id = input->id;
    stream->theirs = input->id;
    stream->attempt = input->attempt;
    stream->opener = false;
    stream->local = true;
    out->todo |= RBI_STREAM_DO_ACCEPT | RBI_STREAM_DO_SEND_OPENED;
}

static void on_crossing(struct rbi_stream *stream,
                        const struct rbi_stream_input *input,
                        struct rbi_stream_actions *out)
{
    if (stream->local_ended) {
        finish(stream, RBI_REASON_LEFT, stream->tx.furthest, 0, out);
        out->todo |= RBI_STREAM_DO_NEW;
    } else if (stream->attempt == 0 || stream->self_host > stream->peer_host) {
        adopt(stream, input, out);
    } else {
        stream->crossed = input->id;
        stream->crossed_attempt = input->attempt;
    }
}

static void on_open(struct rbi_stream *stream,
                    const struct rbi_stream_input *input,
                    struct rbi_stream_actions *out)
{
    if (same_id(&input->id, &stream->id)) {
        on_own_open(stream, input, out);
    } else if (input->id.life == stream->theirs.life &&
               input->id.number <= stream->theirs.number) {
        return; /* older than this stream, by a slow way */
    } else if (input->again) {
        refuse(&input->id, input->attempt, 0, true, out);
    } else if (stream->opener && stream->state == RBI_STREAM_OPENING) {
        on_crossing(stream, input, out);
    } else {
        if (!stream->remote_ended) {
            /* The other side does not know this stream any more, or would not make another. */
            give_up(stream, RBI_REASON_UNREACHABLE, out);
        }
        out->todo |= RBI_STREAM_DO_NEW;
    }
}

static void on_opened(struct rbi_stream *stream,
                      const struct rbi_stream_input *input,
                      struct rbi_stream_actions *out)
{
    const bool first = stream->state == RBI_STREAM_OPENING && !stream->cut;
    if (!stream->opener || input->attempt != stream->attempt ||
        !(first || stream->state == RBI_STREAM_RESUMING)) {
        return;
    }
    if (!go_on(stream, input, out)) {
        send_close(stream, RBI_REASON_BAD_PEER, true, out);
        give_up(stream, RBI_REASON_BAD_PEER, out);
        return;
    }
    stream->theirs = input->theirs;
    stream->crossed.number = 0;
    if (stream->local_ended && (first || stream->local_now)) {
        send_close(stream, stream->local_reason, stream->local_now, out);
    } else if (first) {
        out->todo |= RBI_STREAM_DO_ACCEPT;
    }
    stream->local = true;
}

static void on_refused(struct rbi_stream *stream,
                       const struct rbi_stream_input *input,
                       uint64_t now_ns,
                       struct rbi_stream_actions *out)
{
    if (!stream->opener || input->attempt != stream->attempt) {
        return;
    }
    if (stream->state == RBI_STREAM_OPENING && !stream->cut) {
        finish(stream, RBI_REASON_REFUSED, stream->tx.furthest, input->code, out);
    } else if (stream->state == RBI_STREAM_RESUMING && input->forgotten) {
        give_up(stream, RBI_REASON_UNREACHABLE, out);
    } else if (stream->state == RBI_STREAM_RESUMING) {
        stream->state = RBI_STREAM_HELD;
        stream->retry_ns = now_ns + stream->retry_wait_ns;
        stream->retry_wait_ns = rbi_min_u64(2 * stream->retry_wait_ns, RBI_STREAM_RETRY_MAX_NS);
    }
}

/* ---- the local end ------------------------------------------------------------------------ */

static void on_linked(struct rbi_stream *stream, uint64_t now_ns, struct rbi_stream_actions *out)
{
    if (stream->opener || stream->state != RBI_STREAM_OPENING) {
        return;
    }
    stream->local = true;
    if (stream->cut) {
        hold(stream, now_ns, out);
        return;
    }
    stream->state = RBI_STREAM_OPEN;
    stream->deadline_ns = UINT64_MAX;
    out->todo |= RBI_STREAM_DO_SEND_OPENED;
}

/** The local link will not be, or has ended before it stood. */
static void
on_failed(struct rbi_stream *stream, int32_t code, struct rbi_stream_actions *out)
{
    if (stream->opener || stream->state != RBI_STREAM_OPENING) {
        return;
    }
    if (!stream->cut) {
        refuse(&stream->id, stream->attempt, code, false, out);
    }
    stream->local_ended = true;
    give_up(stream, RBI_REASON_REFUSED, out);
}

static void on_left(struct rbi_stream *stream,
                    const struct rbi_stream_input *input,
                    struct rbi_stream_actions *out)
{
    if (stream->state == RBI_STREAM_OPENING && !stream->opener) {
        on_failed(stream, input->code, out);
        return;
    }
    if (!stream->local_ended) {
        stream->local_ended = true;
        stream->local_reason = input->reason;
    }
    stream->local_now |= input->now;
    if (stream->remote_ended) {
        finish_remote(stream, out);
    } else if (stream->state == RBI_STREAM_OPENING && stream->cut) {
        give_up(stream, input->reason, out); /* nobody waits for it */
    } else if (stream->state == RBI_STREAM_OPEN && input->now && !stream->close_sent) {
        send_close(stream, stream->local_reason, true, out);
    }
}

static void on_sent(struct rbi_stream *stream, struct rbi_stream_actions *out)
{
    if (stream->local_ended && rbi_stream_sends(stream)) {
        send_close(stream, stream->local_reason, stream->local_now, out);
    }
}

/* ---- the other end ------------------------------------------------------------------------ */

static void on_close(struct rbi_stream *stream,
                     const struct rbi_stream_input *input,
                     struct rbi_stream_actions *out)
{
    if (stream->state != RBI_STREAM_OPEN || stream->remote_ended) {
        return;
    }
    if (rbi_stream_tx_ack(&stream->tx, input->settled, stream->tx.granted) != 0) {
        broken(stream, RBI_REASON_BAD_PEER, out);
        return;
    }
    if (stream->local_ended) {
        /* The answer to ours, or both at once; it waits for one. What comes is not for anybody. */
        if (!stream->close_sent) {
            send_close(stream, stream->local_reason, true, out);
        }
        give_up(stream, input->reason, out);
        return;
    }
    if (!input->now && (input->position != stream->rx.expect || stream->rx.partial)) {
        broken(stream, RBI_REASON_BAD_PEER, out);
        return;
    }
    const uint64_t furthest = stream->tx.furthest;
    const uint64_t acked = stream->tx.acked;
    stream->remote_ended = true;
    stream->remote_reason = input->reason;
    stream->remote_seen = rbi_stream_behind(input->seen, furthest) ? furthest
                          : rbi_stream_behind(acked, input->seen)  ? acked
                                                                   : input->seen;
    if (input->now || stream->rx.put == stream->rx.expect) {
        finish_remote(stream, out);
    }
}

static void on_drained(struct rbi_stream *stream, struct rbi_stream_actions *out)
{
    if (stream->remote_ended && stream->rx.put == stream->rx.expect) {
        finish_remote(stream, out);
    }
}

static void on_lost(struct rbi_stream *stream, uint64_t now_ns, struct rbi_stream_actions *out)
{
    if (stream->remote_ended || (stream->state == RBI_STREAM_OPENING && stream->opener)) {
        on_cut(stream, now_ns, out); /* it needs nothing of the life that is over */
    } else {
        give_up(stream, RBI_REASON_UNREACHABLE, out);
    }
}

static void on_tick(struct rbi_stream *stream, uint64_t now_ns, struct rbi_stream_actions *out)
{
    if (now_ns >= stream->deadline_ns) {
        if (stream->state == RBI_STREAM_OPENING && !stream->opener && !stream->cut) {
            refuse(&stream->id, stream->attempt, 0, false, out);
        }
        give_up(stream, RBI_REASON_UNREACHABLE, out);
    } else if (now_ns >= stream->retry_ns) {
        on_way(stream, out);
    }
}

/* ---- one step ----------------------------------------------------------------------------- */

static void dispatch(struct rbi_stream *stream,
                     const struct rbi_stream_input *input,
                     uint64_t now_ns,
                     struct rbi_stream_actions *out)
{
    switch (input->type) {
    case RBI_STREAM_IN_WAY:
        on_way(stream, out);
        break;
    case RBI_STREAM_IN_CUT:
        on_cut(stream, now_ns, out);
        break;
    case RBI_STREAM_IN_OPEN:
        on_open(stream, input, out);
        break;
    case RBI_STREAM_IN_OPENED:
        on_opened(stream, input, out);
        break;
    case RBI_STREAM_IN_REFUSED:
        on_refused(stream, input, now_ns, out);
        break;
    case RBI_STREAM_IN_LINKED:
        on_linked(stream, now_ns, out);
        break;
    case RBI_STREAM_IN_FAILED:
        on_failed(stream, input->code, out);
        break;
    case RBI_STREAM_IN_LEFT:
        on_left(stream, input, out);
        break;
    case RBI_STREAM_IN_SENT:
        on_sent(stream, out);
        break;
    case RBI_STREAM_IN_CLOSE:
        on_close(stream, input, out);
        break;
    case RBI_STREAM_IN_DRAINED:
        on_drained(stream, out);
        break;
    case RBI_STREAM_IN_LOST:
        on_lost(stream, now_ns, out);
        break;
    case RBI_STREAM_IN_BROKEN:
        broken(stream, input->reason, out);
        break;
    case RBI_STREAM_IN_TICK:
        on_tick(stream, now_ns, out);
        break;
    }
}

void rbi_stream_step(struct rbi_stream *stream,
                     const struct rbi_stream_input *input,
                     uint64_t now_ns,
                     struct rbi_stream_actions *out)
{
    *out = (struct rbi_stream_actions){0};
    if (stream->state != RBI_STREAM_CLOSED) {
        dispatch(stream, input, now_ns, out);
    }
}

uint64_t rbi_stream_deadline_ns(const struct rbi_stream *stream)
{
    return rbi_min_u64(stream->deadline_ns, stream->retry_ns);
}

static void init(struct rbi_stream *stream,
                 const struct rbi_stream_id *id,
                 uint64_t self_host,
                 uint64_t peer_host,
                 const struct rbi_stream_terms *terms,
                 uint64_t now_ns)
{
    *stream = (struct rbi_stream){
        .state = RBI_STREAM_OPENING,
        .id = *id,
        .self_host = self_host,
        .peer_host = peer_host,
        .terms = *terms,
        .deadline_ns = now_ns + terms->open_ns,
        .retry_ns = UINT64_MAX,
        .retry_wait_ns = RBI_STREAM_RETRY_MIN_NS,
    };
    rbi_stream_tx_init(&stream->tx, terms->start);
    rbi_stream_rx_init(&stream->rx, terms->start, terms->window);
}

void rbi_stream_init_opener(struct rbi_stream *stream,
                            const struct rbi_stream_id *id,
                            uint64_t self_host,
                            uint64_t peer_host,
                            const struct rbi_stream_terms *terms,
                            uint64_t now_ns)
{
    init(stream, id, self_host, peer_host, terms, now_ns);
    stream->opener = true;
    stream->cut = true;
}

int rbi_stream_init_acceptor(struct rbi_stream *stream,
                             const struct rbi_stream_input *open,
                             uint64_t self_host,
                             uint64_t peer_host,
                             const struct rbi_stream_terms *terms,
                             uint64_t now_ns)
{
    if (open->again || open->begin != terms->start || open->expect != terms->start) {
        return -EPROTO;
    }
    init(stream, &open->id, self_host, peer_host, terms, now_ns);
    stream->attempt = open->attempt;
    stream->theirs = open->id;
    stream->tx.granted = open->granted;
    return 0;
}
