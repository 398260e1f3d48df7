/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon/bridge/tunnel_receive.c - from frames into the local lane. What another host sends is
 * untrusted: sizes and references are checked here, the rest by the library that reads the lane.
 *
 * A frame that finds no room in the lane waits, and all behind it: the sender has been granted no
 * more than the window, so that is all that can wait.
 */
#include "bus/record_times.h"
#include "daemon/bridge/ends.h"
#include "daemon/bridge/tunnel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum delivery { DELIVERED = 0, FULL, GONE, TOO_LARGE, BROKEN };

struct part {
    uint64_t offset;
    const unsigned char *at;
    uint32_t size;
    bool last;
};

static void free_part(struct rbi_tunnel_in *in)
{
    in->active = false;
    if (in->room > RBI_FRAME_PART_MAX) {
        free(in->body); /* a rare one is not kept for the next */
        in->body = NULL;
        in->room = 0;
    }
}

static void forget_part(struct rbi_tunnel *tunnel)
{
    struct rbi_tunnel_in *in = &tunnel->in;
    if (in->active && in->lent && tunnel->half != NULL) {
        rbi_half_unlend(tunnel->half, &in->chunk);
    }
    in->lent = false;
    free_part(in);
}

static bool begins_part(const struct rbi_tunnel_frame *frame)
{
    struct rbi_frame_header header;
    return rbi_frame_look(frame->bytes, frame->size, &header) == RBI_FRAME_WHOLE &&
           header.type == RBI_FRAME_DATA && (header.flags & RBI_FRAME_F_MORE) != 0;
}

/* All that wait from here on. */
static void drop_frames(struct rbi_tunnel *tunnel, struct rbi_tunnel_frame **from)
{
    struct rbi_tunnel_frame *frame = *from;
    *from = NULL;
    tunnel->queue_end = from;
    while (frame != NULL) {
        struct rbi_tunnel_frame *next = frame->next;
        rbi_stream_rx_free(&tunnel->stream.rx, frame->size);
        free(frame);
        frame = next;
    }
}

/*
 * It is the last that has come. Where frames wait it is among them, from the last that begins a
 * record on; what is in the making then is one before it, which is whole and stays.
 */
void rbi_tunnel_drop_part(struct rbi_tunnel *tunnel)
{
    struct rbi_tunnel_frame **part = NULL;
    for (struct rbi_tunnel_frame **at = &tunnel->queue; *at != NULL; at = &(*at)->next) {
        part = begins_part(*at) ? at : part;
    }
    if (part != NULL) {
        drop_frames(tunnel, part);
    } else {
        forget_part(tunnel);
    }
}

void rbi_tunnel_drop_all(struct rbi_tunnel *tunnel)
{
    drop_frames(tunnel, &tunnel->queue);
    forget_part(tunnel);
}

/* ---- into the lane ------------------------------------------------------------------------- */

static enum delivery delivery_of(int result)
{
    switch (result) {
    case RBI_LANE_OK:
        return DELIVERED;
    case RBI_LANE_FULL:
    case -ENOMEM:
        return FULL;
    case -EPIPE:
        return GONE;
    case -EMSGSIZE:
        return TOO_LARGE;
    default:
        return BROKEN;
    }
}

/* A whole record is in the lane. */
static void note_put(struct rbi_tunnel *tunnel, uint64_t body_size)
{
    struct rbi_stream_rx *rx = &tunnel->stream.rx;
    tunnel->records_in++;
    rbi_stream_rx_put(rx, rbi_stream_next(rx->put, body_size));
}

static enum delivery
put_small(struct rbi_tunnel *tunnel, const struct rbi_frame_data *data, bool followed)
{
    static _Alignas(8) unsigned char body[RBI_FRAME_PART_MAX];
    memcpy(body, data->bytes.at, data->bytes.size);
    (void)rbi_record_shift_times(data->meta, body, data->size, rbi_bridge_now_ns(tunnel->bridge));
    const enum delivery result =
        delivery_of(rbi_half_put(tunnel->half, data->meta, body, data->size));
    if (result == DELIVERED) {
        note_put(tunnel, data->size);
        if (RBI_UNLIKELY(followed)) {
            (void)rbi_follow_tunnel(tunnel, RBI_FOLLOW_IN, data->meta, body, data->size, 0);
        }
    }
    return result;
}

static int make_room(struct rbi_tunnel_in *in, uint64_t size)
{
    if (in->room >= size) {
        return 0;
    }
    unsigned char *body = malloc(size);
    if (body == NULL) {
        return -ENOMEM;
    }
    free(in->body);
    in->body = body;
    in->room = size;
    return 0;
}

/* The beginning of a record that goes on. */
static enum delivery
begin(struct rbi_tunnel *tunnel, const struct rbi_frame_data *data, bool followed)
{
    struct rbi_tunnel_in *in = &tunnel->in;
    const bool by_reference = (data->meta >> 8 & RBI_RECORD_REF) != 0;
    uint64_t payload = 0;
    if (data->size > rbi_half_body_max(tunnel->half)) {
        return TOO_LARGE;
    }
    if (make_room(in, data->size) < 0) {
        return FULL;
    }
    memcpy(in->body, data->bytes.at, data->bytes.size);
    if (by_reference) {
        struct rbi_record record;
        if (rbi_record_parse(data->meta, in->body, data->size, &record) < 0) {
            return BROKEN;
        }
        payload = record.ref.size;
        const int result = rbi_half_lend(tunnel->half, payload, &in->chunk);
        if (result != RBI_POOL_OK) {
            return result == RBI_POOL_EMPTY ? FULL : delivery_of(result);
        }
    }
    (void)rbi_record_shift_times(data->meta, in->body, data->size,
                                 rbi_bridge_now_ns(tunnel->bridge));
    in->active = true;
    in->followed = followed;
    in->reference = in->lent = by_reference;
    in->meta = data->meta;
    in->body_size = data->size;
    in->payload_size = payload;
    in->done = by_reference ? 0 : data->bytes.size;
    return DELIVERED;
}

static enum delivery put_whole(struct rbi_tunnel *tunnel)
{
    struct rbi_tunnel_in *in = &tunnel->in;
    const int result =
        in->reference
            ? rbi_half_put_ref(tunnel->half, in->meta, in->body, in->body_size, &in->chunk)
            : rbi_half_put(tunnel->half, in->meta, in->body, in->body_size);
    const enum delivery delivery = delivery_of(result);
    if (delivery == DELIVERED) {
        in->lent = false;
        note_put(tunnel, in->body_size);
        if (RBI_UNLIKELY(in->followed)) {
            (void)rbi_follow_tunnel(tunnel, RBI_FOLLOW_IN, in->meta, in->body, in->body_size, 0);
        }
        free_part(in);
    }
    return delivery;
}

/* The same piece may come again when the lane had no room for the whole. */
static enum delivery go_on(struct rbi_tunnel *tunnel, const struct part *part)
{
    struct rbi_tunnel_in *in = &tunnel->in;
    const uint64_t whole = in->reference ? in->payload_size : in->body_size;
    if (!in->active) {
        return BROKEN;
    }
    if (part->offset == in->done && part->size <= whole - in->done) {
        unsigned char *to = in->reference ? in->chunk.data : in->body;
        memcpy(to + part->offset, part->at, part->size);
        in->done += part->size;
    }
    return part->last ? put_whole(tunnel) : DELIVERED;
}

/* A frame that rx has taken. */
static enum delivery deliver(struct rbi_tunnel *tunnel, const unsigned char *frame)
{
    struct rbi_frame_header header;
    struct rbi_frame_data data;
    struct rbi_frame_piece piece;
    if (tunnel->half == NULL || !tunnel->linked) {
        return tunnel->half == NULL ? GONE : FULL;
    }
    if (rbi_frame_look(frame, RBI_FRAME_MAX, &header) != RBI_FRAME_WHOLE) {
        return BROKEN;
    }
    if (header.type == RBI_FRAME_PIECE) {
        if (rbi_frame_piece(&header, frame + RBI_FRAME_HEADER, &piece) < 0) {
            return BROKEN;
        }
        const struct part part = {.offset = piece.offset,
                                  .at = piece.bytes.at,
                                  .size = piece.bytes.size,
                                  .last = (header.flags & RBI_FRAME_F_LAST) != 0};
        return go_on(tunnel, &part);
    }
    if (rbi_frame_data(&header, frame + RBI_FRAME_HEADER, &data) < 0) {
        return BROKEN;
    }
    const bool by_reference = (data.meta >> 8 & RBI_RECORD_REF) != 0;
    const bool followed = (header.flags & RBI_FRAME_F_FOLLOW) != 0;
    if ((header.flags & RBI_FRAME_F_MORE) == 0 && !by_reference) {
        return put_small(tunnel, &data, followed);
    }
    const enum delivery result = begin(tunnel, &data, followed);
    return result == DELIVERED && (header.flags & RBI_FRAME_F_MORE) == 0 ? put_whole(tunnel)
                                                                         : result;
}

/* ---- waiting ------------------------------------------------------------------------------- */

static bool enqueue(struct rbi_tunnel *tunnel, const unsigned char *frame, uint32_t size)
{
    struct rbi_tunnel_frame *kept = malloc(sizeof *kept + size);
    if (kept == NULL) {
        return false;
    }
    kept->next = NULL;
    kept->size = size;
    memcpy(kept->bytes, frame, size);
    *tunnel->queue_end = kept;
    tunnel->queue_end = &kept->next;
    return true;
}

/* @return whether the tunnel is still there, and goes on */
static bool goes_on(struct rbi_tunnel *tunnel, enum delivery delivery)
{
    if (delivery == TOO_LARGE) {
        rbi_tunnel_broken(tunnel, RBI_REASON_NO_RESOURCES, "a payload is larger than is carried");
    } else if (delivery == BROKEN) {
        rbi_tunnel_broken(tunnel, RBI_REASON_BAD_PEER, "a record cannot be delivered");
    } else if (delivery == GONE) {
        rbi_tunnel_drop_all(tunnel); /* on_down() tells the rest */
        rbi_tunnel_touch(tunnel);
    }
    return delivery == DELIVERED;
}

static void finish(struct rbi_tunnel *tunnel)
{
    rbi_tunnel_touch(tunnel);
    if (tunnel->queue == NULL && tunnel->stream.remote_ended) {
        rbi_tunnel_feed(tunnel, RBI_STREAM_IN_DRAINED);
    }
}

void rbi_tunnel_put_queued(struct rbi_tunnel *tunnel)
{
    while (tunnel->queue != NULL) {
        struct rbi_tunnel_frame *frame = tunnel->queue;
        if (!goes_on(tunnel, deliver(tunnel, frame->bytes))) {
            return;
        }
        tunnel->queue = frame->next;
        tunnel->queue_end = tunnel->queue != NULL ? tunnel->queue_end : &tunnel->queue;
        rbi_stream_rx_free(&tunnel->stream.rx, frame->size);
        free(frame);
    }
    finish(tunnel);
}

/* Tells the window of a frame. @return enum rbi_stream_take, or -EPROTO */
static int take(struct rbi_tunnel *tunnel,
                const struct rbi_frame_header *header,
                const unsigned char *frame,
                uint64_t bytes)
{
    struct rbi_stream_rx *rx = &tunnel->stream.rx;
    const bool more = (header->flags & RBI_FRAME_F_MORE) != 0;
    if (header->type == RBI_FRAME_PIECE) {
        struct rbi_frame_piece piece;
        const int result = rbi_frame_piece(header, frame + RBI_FRAME_HEADER, &piece);
        return result < 0 ? result
                          : rbi_stream_rx_piece(rx, header->mark, piece.offset, piece.bytes.size,
                                                (header->flags & RBI_FRAME_F_LAST) != 0, bytes);
    }
    struct rbi_frame_data data;
    if (rbi_frame_data(header, frame + RBI_FRAME_HEADER, &data) < 0) {
        return -EPROTO;
    }
    if ((data.meta >> 8 & RBI_RECORD_REF) == 0) {
        return rbi_stream_rx_data(rx, header->mark, data.size, data.bytes.size,
                                  more ? data.size : data.bytes.size, bytes);
    }
    uint64_t payload = 0; /* the middle of the three words of a reference */
    memcpy(&payload, data.bytes.at + data.size - 2 * sizeof payload, sizeof payload);
    if (more != (payload != 0)) {
        return -EPROTO; /* the chunk would hold what lay in it before */
    }
    return rbi_stream_rx_data(rx, header->mark, data.size, 0, more ? payload : 0, bytes);
}

void rbi_tunnel_on_bytes(struct rbi_tunnel *tunnel,
                         const struct rbi_frame_header *header,
                         const unsigned char *frame)
{
    struct rbi_stream_rx *rx = &tunnel->stream.rx;
    const uint32_t size = RBI_FRAME_HEADER + header->size;
    if (!rbi_stream_takes(&tunnel->stream)) {
        return;
    }
    const int taken = take(tunnel, header, frame, size);
    if (taken < 0) {
        rbi_tunnel_broken(tunnel, RBI_REASON_BAD_PEER, "a record is missing, or more than granted");
        return;
    }
    rx->asked = rx->asked || (header->flags & RBI_FRAME_F_ASK) != 0;
    if (taken == RBI_STREAM_DUPLICATE) {
        rbi_tunnel_touch(tunnel);
        return;
    }
    if (rbi_stream_discards(&tunnel->stream)) {
        rbi_stream_rx_free(rx, size);
        rbi_tunnel_touch(tunnel);
        return;
    }
    const enum delivery delivery = tunnel->queue != NULL ? FULL : deliver(tunnel, frame);
    if (delivery == FULL) {
        if (!enqueue(tunnel, frame, size)) {
            rbi_tunnel_broken(tunnel, RBI_REASON_NO_RESOURCES, "no memory for what waits");
        }
    } else if (delivery == GONE || goes_on(tunnel, delivery)) {
        rbi_stream_rx_free(rx, size); /* when the endpoint has gone it is for nobody */
        rbi_tunnel_touch(tunnel);
    }
}
