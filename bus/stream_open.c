/* SPDX-License-Identifier: Apache-2.0 */
/* bus/stream_open.c - how a stream begins, and goes on after a cut. */
#include "bus/stream_life.h"

static bool same_id(const struct rbi_stream_id *a, const struct rbi_stream_id *b)
{
    return a->life == b->life && a->number == b->number;
}

static void send_open(struct rbi_stream *stream, struct rbi_stream_actions *out)
{
    stream->attempt++;
    stream->cut = false;
    stream->retry_ns = UINT64_MAX;
    out->todo |= RBI_STREAM_DO_SEND_OPEN;
}

void rbi_stream_on_way(struct rbi_stream *stream, struct rbi_stream_actions *out)
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
    /* One that only waits for its own lane to drain needs no way. */
    stream->deadline_ns = stream->remote_ended ? UINT64_MAX : now_ns + stream->terms.unreachable_ns;
    stream->retry_ns = UINT64_MAX;
    stream->retry_wait_ns = RBI_STREAM_RETRY_MIN_NS;
    if (!stream->local_ended && !stream->remote_ended) {
        stream->told_hold = true;
        out->todo |= RBI_STREAM_DO_HOLD;
    }
}

void rbi_stream_on_cut(struct rbi_stream *stream, uint64_t now_ns, struct rbi_stream_actions *out)
{
    if (stream->state == RBI_STREAM_OPENING) {
        stream->cut = true;
        if (stream->opener && stream->local_ended) {
            rbi_stream_give_up(stream, RBI_REASON_LEFT, out);
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
    if (stream->local) {
        out->todo |= RBI_STREAM_DO_BACK;
    }
    if (stream->told_hold && !stream->local_ended) {
        out->todo |= RBI_STREAM_DO_RELEASE;
    }
    stream->told_hold = false;
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
    /* Made by an OPEN of before the one that was OPENED, which came when that stream was forgotten
     * here already: this is not the stream that goes on, though it has its name. */
    const bool ghost = input->opened > stream->attempt;
    stream->attempt = input->attempt;
    out->todo |= RBI_STREAM_DO_MOVE;
    if (!ghost && stream->state == RBI_STREAM_OPENING) {
        stream->cut = false;
        stream->tx.granted = input->granted;
    } else if (!ghost && go_on(stream, input, out)) {
        out->todo |= RBI_STREAM_DO_SEND_OPENED;
    } else {
        rbi_stream_refuse(&stream->id, input->attempt, 0, true, out);
        rbi_stream_give_up(stream, RBI_REASON_BAD_PEER, out);
    }
}

/** Both sides open the same pair, and the other's OPEN stands: it is as if we had sent none. */
static void adopt(struct rbi_stream *stream,
                  const struct rbi_stream_input *input,
                  struct rbi_stream_actions *out)
{
    if (!go_on(stream, input, out)) {
        rbi_stream_refuse(&input->id, input->attempt, 0, true, out);
        return;
    }
    stream->id = input->id;
    stream->theirs = input->id;
    stream->attempt = input->attempt;
    stream->opener = false;
    stream->local = true;
    out->todo |= RBI_STREAM_DO_MOVE | RBI_STREAM_DO_ACCEPT | RBI_STREAM_DO_SEND_OPENED;
}

static void on_crossing(struct rbi_stream *stream,
                        const struct rbi_stream_input *input,
                        struct rbi_stream_actions *out)
{
    if (stream->attempt != 0 && stream->self_host < stream->peer_host) {
        /* Ours stands, even if it only comes to its end. */
        stream->crossed = input->id;
        stream->crossed_attempt = input->attempt;
    } else if (stream->local_ended) {
        rbi_stream_finish(stream, RBI_REASON_LEFT, stream->tx.furthest, 0, out);
        out->todo |= RBI_STREAM_DO_NEW;
    } else {
        adopt(stream, input, out);
    }
}

void rbi_stream_on_open(struct rbi_stream *stream,
                        const struct rbi_stream_input *input,
                        struct rbi_stream_actions *out)
{
    if (same_id(&input->id, &stream->id)) {
        on_own_open(stream, input, out);
    } else if (input->id.life == stream->theirs.life && input->id.number <= stream->theirs.number) {
        return; /* older than this stream, by a slow way */
    } else if (input->again) {
        rbi_stream_refuse(&input->id, input->attempt, 0, true, out);
    } else if (stream->opener && stream->state == RBI_STREAM_OPENING) {
        on_crossing(stream, input, out);
    } else {
        if (!stream->remote_ended) {
            /* The other side has given this stream up, or it would not make another. */
            rbi_stream_abort(stream, RBI_REASON_UNREACHABLE, out);
        }
        out->todo |= RBI_STREAM_DO_NEW;
    }
}

void rbi_stream_on_opened(struct rbi_stream *stream,
                          const struct rbi_stream_input *input,
                          struct rbi_stream_actions *out)
{
    const bool first = stream->state == RBI_STREAM_OPENING && !stream->cut;
    if (!stream->opener || input->attempt != stream->attempt ||
        !(first || stream->state == RBI_STREAM_RESUMING)) {
        return;
    }
    if (!go_on(stream, input, out)) {
        rbi_stream_send_close(stream, RBI_REASON_BAD_PEER, true, out);
        rbi_stream_give_up(stream, RBI_REASON_BAD_PEER, out);
        return;
    }
    stream->theirs = input->theirs;
    stream->opened = first ? input->attempt : stream->opened;
    stream->crossed.number = 0;
    if (stream->local_ended && (first || stream->local_now)) {
        rbi_stream_send_close(stream, stream->local_reason, stream->local_now, out);
    } else if (first) {
        out->todo |= RBI_STREAM_DO_ACCEPT;
    }
    stream->local = true;
}

void rbi_stream_on_refused(struct rbi_stream *stream,
                           const struct rbi_stream_input *input,
                           uint64_t now_ns,
                           struct rbi_stream_actions *out)
{
    if (!stream->opener || input->attempt != stream->attempt) {
        return;
    }
    if (stream->state == RBI_STREAM_OPENING && !stream->cut) {
        rbi_stream_finish(stream, RBI_REASON_REFUSED, stream->tx.furthest, input->code, out);
    } else if (stream->state == RBI_STREAM_RESUMING && input->forgotten) {
        rbi_stream_give_up(stream, RBI_REASON_UNREACHABLE, out);
    } else if (stream->state == RBI_STREAM_RESUMING) {
        stream->state = RBI_STREAM_HELD;
        stream->retry_ns = now_ns + stream->retry_wait_ns;
        stream->retry_wait_ns = rbi_min_u64(2 * stream->retry_wait_ns, RBI_STREAM_RETRY_MAX_NS);
    }
}

/* ---- the local link of an acceptor ---------------------------------------------------------- */

void rbi_stream_on_linked(struct rbi_stream *stream,
                          uint64_t now_ns,
                          struct rbi_stream_actions *out)
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
void rbi_stream_on_failed(struct rbi_stream *stream, int32_t code, struct rbi_stream_actions *out)
{
    if (stream->opener || stream->state != RBI_STREAM_OPENING) {
        return;
    }
    if (!stream->cut) {
        rbi_stream_refuse(&stream->id, stream->attempt, code, false, out);
    }
    stream->local_ended = true;
    rbi_stream_give_up(stream, RBI_REASON_REFUSED, out);
}
