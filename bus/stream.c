/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/stream.c - the life of a stream: one function an input, in stream_open.c and stream_end.c.
 */
#include "bus/stream.h"

#include "bus/stream_life.h"

#include <errno.h>

static void on_lost(struct rbi_stream *stream, uint64_t now_ns, struct rbi_stream_actions *out)
{
    if (stream->remote_ended || (stream->state == RBI_STREAM_OPENING && stream->opener)) {
        rbi_stream_on_cut(stream, now_ns, out); /* it needs nothing of the life that is over */
    } else {
        rbi_stream_give_up(stream, RBI_REASON_UNREACHABLE, out);
    }
}

static void on_tick(struct rbi_stream *stream, uint64_t now_ns, struct rbi_stream_actions *out)
{
    if (now_ns >= stream->deadline_ns) {
        if (stream->state == RBI_STREAM_OPENING && !stream->opener && !stream->cut) {
            rbi_stream_refuse(&stream->id, stream->attempt, 0, false, out);
        }
        rbi_stream_give_up(stream, RBI_REASON_UNREACHABLE, out);
    } else if (now_ns >= stream->retry_ns) {
        rbi_stream_on_way(stream, out);
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
        rbi_stream_on_way(stream, out);
        break;
    case RBI_STREAM_IN_CUT:
        rbi_stream_on_cut(stream, now_ns, out);
        break;
    case RBI_STREAM_IN_OPEN:
        rbi_stream_on_open(stream, input, out);
        break;
    case RBI_STREAM_IN_OPENED:
        rbi_stream_on_opened(stream, input, out);
        break;
    case RBI_STREAM_IN_REFUSED:
        rbi_stream_on_refused(stream, input, now_ns, out);
        break;
    case RBI_STREAM_IN_LINKED:
        rbi_stream_on_linked(stream, now_ns, out);
        break;
    case RBI_STREAM_IN_FAILED:
        rbi_stream_on_failed(stream, input->code, out);
        break;
    case RBI_STREAM_IN_LEFT:
        rbi_stream_on_left(stream, input, out);
        break;
    case RBI_STREAM_IN_SENT:
        rbi_stream_on_sent(stream, out);
        break;
    case RBI_STREAM_IN_CLOSE:
        rbi_stream_on_close(stream, input, out);
        break;
    case RBI_STREAM_IN_DRAINED:
        rbi_stream_on_drained(stream, out);
        break;
    case RBI_STREAM_IN_LOST:
        on_lost(stream, now_ns, out);
        break;
    case RBI_STREAM_IN_BROKEN:
        rbi_stream_abort(stream, input->reason, out);
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
