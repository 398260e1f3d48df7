/* SPDX-License-Identifier: Apache-2.0 */
/* Scenario 25: control messages in pieces or glued together. */
#include "bus/wire_stream.h"
#include "support/test.h"

#include <errno.h>
#include <string.h>

#define FRAMES 64U

static unsigned char bytes[FRAMES * 700];
static size_t bytes_size;

static void make_frames(unsigned count)
{
    static unsigned char frame[RBI_WIRE_FRAME_MAX];
    bytes_size = 0;
    for (unsigned i = 0; i < count; i++) {
        struct rbi_wire_refuse body;
        memset(&body, 0, sizeof body);
        body.link_id = i;
        body.text.length = (uint16_t)(i * 37 % (RBI_WIRE_TEXT_MAX + 1));
        memset(body.text.bytes, 'a', body.text.length);
        const size_t size = rbi_wire_encode(RBI_WIRE_REFUSE, &body, i + 1, 0, frame);
        memcpy(bytes + bytes_size, frame, size);
        bytes_size += size;
    }
}

static void feed(struct rbi_wire_stream *stream, const void *data, size_t size)
{
    size_t room = 0;
    void *to = rbi_wire_stream_room(stream, &room);
    assert_true(room >= size);
    memcpy(to, data, size);
    rbi_wire_stream_filled(stream, size);
}

/** Takes all whole frames; each must be the next one. */
static unsigned drain(struct rbi_wire_stream *stream, unsigned next)
{
    struct rbi_wire_header header;
    const void *frame = NULL;
    int r = 0;
    while ((r = rbi_wire_stream_next(stream, &header, &frame)) == RBI_WIRE_DONE) {
        union rbi_wire_body body;
        struct rbi_wire_fault fault;
        assert_int_equal(rbi_wire_decode(&header, frame, &body, &fault), 0);
        assert_int_equal(header.serial, next + 1);
        assert_true(body.refuse.link_id == next);
        next++;
    }
    assert_int_equal(r, RBI_WIRE_SHORT);
    return next;
}

static void test_next_pieces_of_every_size(void **state)
{
    (void)state;
    make_frames(FRAMES);
    for (size_t piece = 1; piece <= RBI_WIRE_FRAME_MAX; piece += piece < 64 ? 1 : 97) {
        struct rbi_wire_stream stream;
        unsigned next = 0;
        rbi_wire_stream_init(&stream);
        for (size_t at = 0; at < bytes_size; at += piece) {
            const size_t size = bytes_size - at < piece ? bytes_size - at : piece;
            feed(&stream, bytes + at, size);
            next = drain(&stream, next);
            size_t room = 0;
            (void)rbi_wire_stream_room(&stream, &room);
            assert_true(room >= RBI_WIRE_FRAME_MAX);
        }
        assert_int_equal(next, FRAMES);
        assert_false(rbi_wire_stream_partial(&stream));
    }
}

static void test_next_five_in_one_packet(void **state)
{
    (void)state;
    struct rbi_wire_stream stream;
    make_frames(5);
    rbi_wire_stream_init(&stream);
    feed(&stream, bytes, bytes_size);
    assert_int_equal(drain(&stream, 0), 5);
    assert_false(rbi_wire_stream_partial(&stream));
}

static void test_partial(void **state)
{
    (void)state;
    struct rbi_wire_stream stream;
    make_frames(1);
    rbi_wire_stream_init(&stream);
    assert_false(rbi_wire_stream_partial(&stream));
    feed(&stream, bytes, bytes_size / 2);
    assert_int_equal(drain(&stream, 0), 0);
    assert_true(rbi_wire_stream_partial(&stream));
    feed(&stream, bytes + bytes_size / 2, bytes_size - bytes_size / 2);
    assert_int_equal(drain(&stream, 0), 1);
    assert_false(rbi_wire_stream_partial(&stream));
}

static void test_next_longest_frame(void **state)
{
    (void)state;
    struct rbi_wire_stream stream;
    struct rbi_wire_header header;
    const void *frame = NULL;
    make_frames(1);
    const uint32_t longest = RBI_WIRE_FRAME_MAX;
    static unsigned char big[RBI_WIRE_FRAME_MAX];
    memcpy(big, bytes, RBI_WIRE_HEADER);
    memcpy(big + 4, &longest, 4);
    rbi_wire_stream_init(&stream);
    for (unsigned round = 0; round < 5; round++) {
        feed(&stream, big, RBI_WIRE_FRAME_MAX - 1);
        assert_int_equal(rbi_wire_stream_next(&stream, &header, &frame), RBI_WIRE_SHORT);
        feed(&stream, big + RBI_WIRE_FRAME_MAX - 1, 1);
        assert_int_equal(rbi_wire_stream_next(&stream, &header, &frame), RBI_WIRE_DONE);
        assert_memory_equal(frame, big, sizeof big);
    }
}

static void test_next_poisoned_stays_so(void **state)
{
    (void)state;
    struct rbi_wire_stream stream;
    struct rbi_wire_header header;
    const void *frame = NULL;
    make_frames(2);
    rbi_wire_stream_init(&stream);
    feed(&stream, bytes, bytes_size);
    assert_int_equal(rbi_wire_stream_next(&stream, &header, &frame), RBI_WIRE_DONE);
    /* Garbage between two good frames. */
    feed(&stream, "this is not a frame at all, is it?", 34);
    assert_int_equal(rbi_wire_stream_next(&stream, &header, &frame), RBI_WIRE_DONE);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(rbi_wire_stream_next(&stream, &header, &frame), -EPROTO);
        feed(&stream, bytes, bytes_size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_next_pieces_of_every_size),
        cmocka_unit_test(test_next_five_in_one_packet),
        cmocka_unit_test(test_partial),
        cmocka_unit_test(test_next_longest_frame),
        cmocka_unit_test(test_next_poisoned_stays_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
