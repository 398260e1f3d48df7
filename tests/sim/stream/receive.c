/* SPDX-License-Identifier: Apache-2.0 */
/* What a bridge does with the frames that come, and with the records in them. */
#include "world.h"

#include <string.h>

/** What waits goes into the lane, as far as there is room; the head is copied as it comes. */
void tunnel_serve(struct host *host, struct tunnel *tunnel)
{
    struct rbi_stream *stream = &tunnel->stream;
    uint64_t kept = 0;
    while (tunnel->used && tunnel->queued != 0 && tunnel->link != NOBODY) {
        struct waiting *head = &tunnel->queue[0];
        struct link *link = link_of(host, tunnel);
        if (link->state != LINK_UP || !link_room(link, &head->record)) {
            break;
        }
        rbi_stream_rx_free(&stream->rx, head->kept);
        head->kept = 0;
        if (!head->whole) {
            break;
        }
        link_put(link, &head->record);
        rbi_stream_rx_put(&stream->rx, head->record.next);
        rbi_stream_rx_settle(&stream->rx, head->record.next);
        memmove(tunnel->queue, tunnel->queue + 1, --tunnel->queued * sizeof *tunnel->queue);
    }
    for (unsigned i = 0; i < tunnel->queued; i++) {
        kept += tunnel->queue[i].kept;
    }
    CHECK(kept <= WINDOW, "keeps more than its window", tunnel);
    if (tunnel->used && stream->remote_ended) {
        tunnel_feed(host, tunnel, (struct rbi_stream_input){.type = RBI_STREAM_IN_DRAINED});
    }
}

static void take(struct host *host, struct tunnel *tunnel, const struct frame *frame)
{
    struct rbi_stream *stream = &tunnel->stream;
    const struct record *record = &frame->record;
    int r = 0;
    if (!rbi_stream_takes(stream)) {
        return;
    }
    stream->rx.asked |= (frame->flags & RBI_FRAME_F_ASK) != 0;
    if (frame->type == RBI_FRAME_DATA) {
        const bool by_ref = record->payload != 0;
        r = rbi_stream_rx_data(&stream->rx, frame->mark, record->size, by_ref ? 0 : frame->part,
                               by_ref ? record->payload : record->size, frame->bytes);
    } else {
        r = rbi_stream_rx_piece(&stream->rx, frame->mark, frame->offset, frame->part,
                                (frame->flags & RBI_FRAME_F_LAST) != 0, frame->bytes);
    }
    CHECK(r >= 0, "a frame makes no sense", tunnel);
    CHECK(r != RBI_STREAM_DUPLICATE, "a duplicate", tunnel);
    if (rbi_stream_discards(stream)) {
        rbi_stream_rx_free(&stream->rx, frame->bytes);
        return;
    }
    if (frame->type == RBI_FRAME_DATA) {
        CHECK(tunnel->queued < RECORDS, "more waits than the window allows", tunnel);
        tunnel->queue[tunnel->queued++] = (struct waiting){.record = *record};
    }
    struct waiting *last = &tunnel->queue[tunnel->queued - 1];
    CHECK(last->record.number == record->number, "a piece of another record", tunnel);
    last->kept += frame->bytes;
    last->whole = r == RBI_STREAM_RECORD;
    CHECK(!last->whole || stream->rx.expect == record->next, "expects another position", tunnel);
    tunnel_serve(host, tunnel);
}

static void take_ack(struct host *host, struct tunnel *tunnel, const struct frame *frame)
{
    struct rbi_stream *stream = &tunnel->stream;
    if (stream->state != RBI_STREAM_OPEN) {
        return;
    }
    CHECK(rbi_stream_tx_ack(&stream->tx, frame->input.position, frame->input.granted) == 0,
          "an acknowledgement makes no sense", tunnel);
    link_release(link_of(host, tunnel), stream->tx.acked);
}

/** The stream of a name, or the oldest that was born after @p born. */
static struct tunnel *find(struct host *host, const struct rbi_stream_id *id, uint64_t born)
{
    struct tunnel *oldest = NULL;
    for (unsigned i = 0; i < STREAMS; i++) {
        struct tunnel *tunnel = &host->tunnels[i];
        const struct rbi_stream_id *name = &tunnel->stream.id;
        if (tunnel->used && name->life == id->life && name->number == id->number) {
            return tunnel;
        }
        if (tunnel->used && tunnel->born > born &&
            (oldest == NULL || tunnel->born < oldest->born)) {
            oldest = tunnel;
        }
    }
    return oldest;
}

static void take_open(struct host *host, uint32_t way, const struct frame *frame)
{
    const uint32_t conn = world.conns[way].id;
    struct rbi_stream_actions act = {.todo = RBI_STREAM_DO_NEW};
    struct tunnel *tunnel = NULL;
    uint64_t born = 0;
    while ((act.todo & RBI_STREAM_DO_NEW) != 0 &&
           (tunnel = find(host, &frame->input.id, born)) != NULL) {
        born = tunnel->born;
        tunnel_feed_by(host, tunnel, frame->input, way, conn, frame->ours, &act);
    }
    if ((act.todo & RBI_STREAM_DO_NEW) == 0) {
        return;
    }
    const struct rbi_stream_terms t = tunnel_terms();
    tunnel = tunnel_new(host);
    if (rbi_stream_init_acceptor(&tunnel->stream, &frame->input, host->id, other_host(host)->id, &t,
                                 world.now_ns) != 0) {
        tunnel->used = false;
        act = (struct rbi_stream_actions){
            .id = frame->input.id, .attempt = frame->input.attempt, .forgotten = true};
        tunnel_refuse(host, way, conn, &act);
        return;
    }
    tunnel->way = way;
    tunnel->conn = conn;
    tunnel->theirs = frame->ours;
    tunnel->linking = true;
}

static void take_refused(struct host *host, const struct frame *frame)
{
    for (unsigned i = 0; i < STREAMS; i++) {
        struct tunnel *tunnel = &host->tunnels[i];
        if (tunnel->used && tunnel->stream.id.life == frame->input.id.life &&
            tunnel->stream.id.number == frame->input.id.number) {
            tunnel_feed(host, tunnel, frame->input);
            return;
        }
    }
}

static void take_close(struct host *host, struct tunnel *tunnel, const struct frame *frame)
{
    const struct tunnel *peer = NULL;
    const struct host *there = other_host(host);
    for (unsigned i = 0; i < STREAMS; i++) {
        const struct tunnel *t = &there->tunnels[i];
        peer = t->used && t->stream.id.number == tunnel->stream.id.number &&
                       t->stream.id.life == tunnel->stream.id.life
                   ? t
                   : peer;
    }
    /* Answered by one who has forgotten it by now, as its lane was drained; not both at once. */
    tunnel->clean = tunnel->stream.close_sent && !tunnel->stream.local_now && !frame->input.now &&
                    peer == NULL && frame->input.reason == tunnel->stream.local_reason;
    tunnel_feed(host, tunnel, frame->input);
}

void tunnel_frame(struct host *host, uint32_t way, const struct frame *frame)
{
    const uint32_t conn = world.conns[way].id;
    if (frame->type == RBI_FRAME_OPEN) {
        if (!world.quiet && world.cut_rate != 0 &&
            chance(30)) { /* a host in between has no way on */
            const struct rbi_stream_actions act = {
                .id = frame->input.id, .attempt = frame->input.attempt, .code = -7};
            tunnel_refuse(host, way, conn, &act);
        } else {
            take_open(host, way, frame);
        }
        return;
    }
    if (frame->type == RBI_FRAME_REFUSED) {
        take_refused(host, frame);
        return;
    }
    for (unsigned i = 0; i < STREAMS; i++) {
        struct tunnel *tunnel = &host->tunnels[i];
        if (!tunnel->used || tunnel->conn != conn || tunnel->handle != frame->handle) {
            continue;
        }
        if (frame->type == RBI_FRAME_OPENED) {
            tunnel->theirs = frame->ours;
            tunnel_feed(host, tunnel, frame->input);
        } else if (frame->type == RBI_FRAME_ACK) {
            take_ack(host, tunnel, frame);
        } else if (frame->type == RBI_FRAME_CLOSE) {
            take_close(host, tunnel, frame);
        } else {
            take(host, tunnel, frame);
        }
        return;
    }
    if (frame->type == RBI_FRAME_OPENED) {
        wire_send(host, way, conn,
                  (struct frame){.type = RBI_FRAME_CLOSE,
                                 .handle = frame->ours,
                                 .input = {.type = RBI_STREAM_IN_CLOSE, .forgotten = true}});
    }
}
