/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control frames. First byte: size of the pieces in which the rest arrives. What is
 * decoded must encode to a frame that decodes to the same.
 */
#include "bus/wire_stream.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool right)
{
    if (!right) {
        abort();
    }
}

static void take_frame(const struct rbi_wire_header *header, const void *frame)
{
    static unsigned char again[RBI_WIRE_FRAME_MAX];
    union rbi_wire_body body;
    union rbi_wire_body back;
    struct rbi_wire_header second;
    struct rbi_wire_fault fault = {.text = ""};
    const int r = rbi_wire_decode(header, frame, &body, &fault);
    check(r < 0 ? fault.text[0] != 0 : fault.text[0] == 0);
    check((r == 1) == (rbi_wire_type_name(header->type)[0] == '?'));
    if (r != 0) {
        return;
    }
    const size_t size = rbi_wire_encode((enum rbi_wire_type)header->type, &body, header->serial,
                                        header->reply_to, again);
    check(rbi_wire_header_decode(again, size, &second) == RBI_WIRE_DONE);
    check(second.length == size && second.type == header->type);
    check(rbi_wire_decode(&second, again, &back, &fault) == 0);
    check(memcmp(&body, &back, sizeof body) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct rbi_wire_stream stream;
    if (size < 1) {
        return 0;
    }
    const size_t piece = data[0] == 0 ? RBI_WIRE_FRAME_MAX : data[0];
    rbi_wire_stream_init(&stream);
    for (size_t at = 1; at < size;) {
        size_t room = 0;
        void *to = rbi_wire_stream_room(&stream, &room);
        check(room >= RBI_WIRE_FRAME_MAX);
        const size_t take = size - at < piece ? size - at : piece;
        memcpy(to, data + at, take);
        rbi_wire_stream_filled(&stream, take);
        at += take;
        struct rbi_wire_header header;
        const void *frame = NULL;
        int r = 0;
        while ((r = rbi_wire_stream_next(&stream, &header, &frame)) == RBI_WIRE_DONE) {
            take_frame(&header, frame);
        }
        if (r < 0) {
            return 0;
        }
    }
    return 0;
}
