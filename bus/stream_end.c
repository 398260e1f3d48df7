/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/stream_end.c - how a stream ends. Whatever ends it goes through finish, so that the local
 * end is told once, and nothing is done after it.
 */
#include "bus/stream_life.h"

/** The stream is over; what the local end is told depends on how far it had come. */
void rbi_stream_finish(struct rbi_stream *stream,
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
void rbi_stream_give_up(struct rbi_stream *stream,
                        enum rbi_reason reason,
                        struct rbi_stream_actions *out)
{
    rbi_stream_finish(stream, reason, stream->tx.furthest, 0, out);
}

void rbi_stream_send_close(struct rbi_stream *stream,
                           enum rbi_reason reason,
                           bool now,
                           struct rbi_stream_actions *out)
{
    stream->close_sent = true;
    out->todo |= RBI_STREAM_DO_SEND_CLOSE;
    out->reason = reason;
    out->now = now;
}

void rbi_stream_abort(struct rbi_stream *stream,
                      enum rbi_reason reason,
                      struct rbi_stream_actions *out)
{
    if (stream->state == RBI_STREAM_OPEN && !stream->close_sent) {
        rbi_stream_send_close(stream, reason, true, out);
    }
    rbi_stream_give_up(stream, reason, out);
}

void rbi_stream_refuse(const struct rbi_stream_id *id,
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
        rbi_stream_send_close(stream, stream->remote_reason, false, out);
    }
    rbi_stream_finish(stream, stream->remote_reason, stream->remote_seen, 0, out);
}

/* ---- the local end ------------------------------------------------------------------------ */

void rbi_stream_on_left(struct rbi_stream *stream,
                        const struct rbi_stream_input *input,
                        struct rbi_stream_actions *out)
{
    if (stream->state == RBI_STREAM_OPENING && !stream->opener) {
        rbi_stream_on_failed(stream, input->code, out);
        return;
    }
    if (!stream->local_ended) {
        stream->local_ended = true;
        stream->local_reason = input->reason;
    }
    stream->local_now |= input->now;
    if (stream->remote_ended) {
        /* Both ends have ended: what waits here is for nobody, and goes back. */
        if (stream->state == RBI_STREAM_OPEN && !stream->close_sent) {
            rbi_stream_send_close(stream, stream->local_reason, true, out);
        }
        rbi_stream_give_up(stream, stream->local_reason, out);
    } else if (stream->state == RBI_STREAM_OPENING && stream->cut) {
        rbi_stream_give_up(stream, input->reason, out); /* nobody waits for it */
    } else if (stream->state == RBI_STREAM_OPEN && input->now && !stream->close_sent) {
        rbi_stream_send_close(stream, stream->local_reason, true, out);
    }
}

void rbi_stream_on_sent(struct rbi_stream *stream, struct rbi_stream_actions *out)
{
    if (stream->local_ended && rbi_stream_sends(stream)) {
        rbi_stream_send_close(stream, stream->local_reason, stream->local_now, out);
    }
}

/* ---- the other end ------------------------------------------------------------------------ */

void rbi_stream_on_close(struct rbi_stream *stream,
                         const struct rbi_stream_input *input,
                         struct rbi_stream_actions *out)
{
    if (stream->state != RBI_STREAM_OPEN || stream->remote_ended) {
        return;
    }
    if (input->forgotten) {
        rbi_stream_give_up(stream, RBI_REASON_UNREACHABLE, out);
        return;
    }
    if (rbi_stream_tx_ack(&stream->tx, input->settled, stream->tx.granted) != 0) {
        rbi_stream_abort(stream, RBI_REASON_BAD_PEER, out);
        return;
    }
    if (stream->local_ended) {
        /* The answer to ours, or both at once; it waits for one. What comes is not for anybody. */
        if (!stream->close_sent) {
            rbi_stream_send_close(stream, stream->local_reason, true, out);
        }
        rbi_stream_give_up(stream, input->reason, out);
        return;
    }
    if (!input->now && (input->position != stream->rx.expect || stream->rx.partial)) {
        rbi_stream_abort(stream, RBI_REASON_BAD_PEER, out);
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

void rbi_stream_on_drained(struct rbi_stream *stream, struct rbi_stream_actions *out)
{
    if (stream->remote_ended && stream->rx.put == stream->rx.expect) {
        finish_remote(stream, out);
    }
}
