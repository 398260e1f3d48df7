/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames between hosts, one behind the other as a connection brings them. What is decoded must
 * encode to a frame that decodes to the same; DATA, PIECE and ACK say the same without the table as
 * with it; what is handed on by a host in between is what it was, but for the way.
 */
#include "bus/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool right)
{
    if (!right) {
        abort();
    }
}

/** Whether two bodies are the same: bytes that are lent lie in different places. */
static bool same(const struct rbi_frame_header *header,
                 const union rbi_frame_body *a,
                 const union rbi_frame_body *b)
{
    if (header->type == RBI_FRAME_DATA) {
        return a->data.meta == b->data.meta && a->data.size == b->data.size &&
               a->data.bytes.size == b->data.bytes.size &&
               memcmp(a->data.bytes.at, b->data.bytes.at, a->data.bytes.size) == 0;
    }
    if (header->type == RBI_FRAME_PIECE) {
        return a->piece.offset == b->piece.offset && a->piece.bytes.size == b->piece.bytes.size &&
               memcmp(a->piece.bytes.at, b->piece.bytes.at, a->piece.bytes.size) == 0;
    }
    return memcmp(a, b, sizeof *a) == 0;
}

static void check_fast(const struct rbi_frame_header *header,
                       const void *body,
                       int r,
                       union rbi_frame_body *full)
{
    static union rbi_frame_body fast;
    memset(&fast, 0, sizeof fast);
    int found = r;
    if (header->type == RBI_FRAME_DATA) {
        found = rbi_frame_data(header, body, &fast.data);
    } else if (header->type == RBI_FRAME_PIECE) {
        found = rbi_frame_piece(header, body, &fast.piece);
    } else if (header->type == RBI_FRAME_ACK) {
        found = rbi_frame_ack(header, body, &fast.ack);
    } else {
        return;
    }
    check(found == r);
    check(r != 0 || same(header, &fast, full));
}

static void check_forward(const struct rbi_frame_header *header, const void *body)
{
    static unsigned char out[RBI_FRAME_CONTROL_MAX];
    struct rbi_frame_envelope before;
    struct rbi_frame_envelope after;
    struct rbi_frame_header second;
    size_t size = 0;
    const int r = rbi_frame_forward(header, body, 77, 5, 6, out, &size);
    check(r != RBI_FRAME_WHOLE || rbi_frame_has_envelope(header->type));
    if (r != RBI_FRAME_WHOLE) {
        return;
    }
    check(rbi_frame_envelope(header, body, &before) == 0);
    check(rbi_frame_look(out, size, &second) == RBI_FRAME_WHOLE);
    check(size == RBI_FRAME_HEADER + header->size + 8 && second.handle == 5);
    check(rbi_frame_envelope(&second, out + RBI_FRAME_HEADER, &after) == 0);
    check(after.hops == before.hops - 1 && after.visited_count == before.visited_count + 1);
    check(after.visited[before.visited_count] == 77);
}

static void take_frame(const struct rbi_frame_header *header, const void *body)
{
    static unsigned char again[RBI_FRAME_MAX];
    static union rbi_frame_body full;
    static union rbi_frame_body back;
    struct rbi_frame_fault fault = {.text = ""};
    struct rbi_frame_header second = *header;
    memset(&full, 0, sizeof full);
    memset(&back, 0, sizeof back);
    const int r = rbi_frame_decode(header, body, &full, &fault);
    check((r < 0) == (fault.text[0] != 0));
    check((r == RBI_FRAME_UNKNOWN) == (rbi_frame_type_name(header->type)[0] == '?'));
    check_fast(header, body, r, &full);
    check_forward(header, body);
    if (r != RBI_FRAME_WHOLE) {
        return;
    }
    const size_t size = rbi_frame_encode(&second, &full, again);
    check(size <= RBI_FRAME_HEADER + header->size); /* what later versions appended is not there */
    check(rbi_frame_look(again, size, &second) == RBI_FRAME_WHOLE);
    check(second.type == header->type && second.flags == header->flags);
    check(second.handle == header->handle && second.mark == header->mark);
    check(rbi_frame_decode(&second, again + RBI_FRAME_HEADER, &back, &fault) == RBI_FRAME_WHOLE);
    check(same(header, &full, &back));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rbi_frame_header header;
    int r = 0;
    while ((r = rbi_frame_look(data, size, &header)) == RBI_FRAME_WHOLE) {
        take_frame(&header, data + RBI_FRAME_HEADER);
        data += RBI_FRAME_HEADER + header.size;
        size -= RBI_FRAME_HEADER + header.size;
    }
    check(r == RBI_FRAME_SHORT || r == -EPROTO);
    return 0;
}
