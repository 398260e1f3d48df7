/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames between hosts, as another host may send them: cut anywhere, with every value out of its
 * range, of later versions, and handed on by a host in between.
 */
#include "bus/frame.h"
#include "bus/record.h"
#include "frame_golden.h"
#include "support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/** Decodes from memory that ends with the frame, so that a sanitizer sees each byte too far. */
static int decode(const unsigned char *frame,
                  size_t size,
                  union rbi_frame_body *out,
                  struct rbi_frame_fault *fault)
{
    struct rbi_frame_header header;
    assert_int_equal(rbi_frame_look(frame, size, &header), RBI_FRAME_WHOLE);
    unsigned char *body = malloc(header.size + 1);
    assert_non_null(body);
    unsigned char *exact = body + 1; /* never aligned */
    memcpy(exact, frame + RBI_FRAME_HEADER, header.size);
    const int r = rbi_frame_decode(&header, exact, out, fault);
    free(body);
    return r;
}

/** A copy of a vector, with room behind it. */
static size_t copy(enum rbi_frame_type type, unsigned char *frame)
{
    const struct golden *golden = &goldens[type - 1];
    memcpy(frame, golden->bytes, golden->size);
    return golden->size;
}

static void set_size(unsigned char *frame, size_t size)
{
    const size_t body = size - RBI_FRAME_HEADER;
    for (unsigned i = 0; i < 4; i++) {
        frame[i] = (unsigned char)(body >> 8 * i);
    }
}

static void test_frame_look_waits_for_the_whole(void **state)
{
    (void)state;
    struct rbi_frame_header header;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(goldens); i++) {
        for (size_t size = 0; size < goldens[i].size; size++) {
            assert_int_equal(rbi_frame_look(goldens[i].bytes, size, &header), RBI_FRAME_SHORT);
            assert_int_equal(header.size,
                             size < RBI_FRAME_HEADER ? 0 : goldens[i].size - RBI_FRAME_HEADER);
        }
        assert_int_equal(rbi_frame_look(goldens[i].bytes, goldens[i].size, &header),
                         RBI_FRAME_WHOLE);
        assert_int_equal(header.type, goldens[i].type);
    }
}

static void test_frame_look_refuses_by_eight_bytes(void **state)
{
    (void)state;
    struct rbi_frame_header header;
    unsigned char head[8] = {0x40, 0, 1, 0, RBI_FRAME_PING, 0xff, 0, 0}; /* the largest */
    assert_int_equal(rbi_frame_look(head, sizeof head, &header), RBI_FRAME_SHORT);
    head[0] = 0x41;
    assert_int_equal(rbi_frame_look(head, sizeof head, &header), -EPROTO);
    assert_int_equal(rbi_frame_look(head, sizeof head - 1, &header), RBI_FRAME_SHORT);
    head[0] = 0x40;
    head[3] = 0x80;
    assert_int_equal(rbi_frame_look(head, sizeof head, &header), -EPROTO);
    head[3] = 0;
    head[4] = 0;
    assert_int_equal(rbi_frame_look(head, sizeof head, &header), -EPROTO);
    head[4] = 200; /* of a later version */
    assert_int_equal(rbi_frame_look(head, sizeof head, &header), RBI_FRAME_SHORT);
    head[6] = 1;
    assert_int_equal(rbi_frame_look(head, sizeof head, &header), -EPROTO);
    head[6] = 0;
    head[7] = 1;
    assert_int_equal(rbi_frame_look(head, sizeof head, &header), -EPROTO);
}

static void test_frame_cut_anywhere_is_refused(void **state)
{
    (void)state;
    static unsigned char frame[RBI_FRAME_MAX];
    static union rbi_frame_body body;
    static union rbi_frame_body untouched;
    memset(&untouched, 0x5a, sizeof untouched);
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(goldens); i++) {
        const size_t whole = copy(goldens[i].type, frame);
        /* The bytes of DATA and PIECE are what is left: there is no end that could be missed. */
        const bool open_end =
            goldens[i].type == RBI_FRAME_DATA || goldens[i].type == RBI_FRAME_PIECE;
        const size_t most = open_end ? RBI_FRAME_DATA_HEAD : whole;
        for (size_t size = RBI_FRAME_HEADER; size < most; size++) {
            struct rbi_frame_fault fault = {.text = ""};
            set_size(frame, size);
            memset(&body, 0x5a, sizeof body);
            assert_int_equal(decode(frame, size, &body, &fault), -EPROTO);
            assert_non_null(strstr(fault.text, rbi_frame_type_name(goldens[i].type)));
            assert_memory_equal(&body, &untouched, sizeof body);
        }
    }
}

static void test_frame_appended_and_unknown_are_skipped(void **state)
{
    (void)state;
    static unsigned char frame[RBI_FRAME_MAX];
    static union rbi_frame_body body;
    static union rbi_frame_body known;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(goldens); i++) {
        const size_t size = copy(goldens[i].type, frame);
        if (goldens[i].type == RBI_FRAME_DATA || goldens[i].type == RBI_FRAME_PIECE) {
            continue;
        }
        memset(&body, 0, sizeof body);
        memset(&known, 0, sizeof known);
        assert_int_equal(decode(frame, size, &known, NULL), RBI_FRAME_WHOLE);
        memset(frame + size, 0xaa, 9);
        set_size(frame, size + 9);
        assert_int_equal(decode(frame, size + 9, &body, NULL), RBI_FRAME_WHOLE);
        assert_memory_equal(&body, &known, sizeof body);
    }
    const size_t size = copy(RBI_FRAME_PING, frame);
    frame[4] = RBI_FRAME_HOP + 1;
    assert_int_equal(decode(frame, size, &body, NULL), RBI_FRAME_UNKNOWN);
    assert_string_equal(rbi_frame_type_name(frame[4]), "?");
}

/* A byte of a vector that is changed, and what is said of it. */
struct change {
    enum rbi_frame_type type;
    unsigned offset; /* behind the header */
    unsigned char value;
    const char *fault;
};

static const struct change wrong[] = {
    {RBI_FRAME_HELLO, 0, 'X', "HELLO: magic out of range"},
    {RBI_FRAME_HELLO, 4, 0, "HELLO: version_min out of range"},
    {RBI_FRAME_HELLO, 4, 4, "HELLO: version_max out of range"},
    {RBI_FRAME_HELLO, 8, 0x5b, "HELLO: host out of range"},
    {RBI_FRAME_HELLO, 32, 0, "HELLO: name out of range"},
    {RBI_FRAME_HELLO, 32, 64, "HELLO: name too short"},
    {RBI_FRAME_HELLO, 33, 'A', "HELLO: name out of range"},
    {RBI_FRAME_HELLO, 33, '/', "HELLO: name out of range"},
    {RBI_FRAME_HELLO, 40, 0, "HELLO: software out of range"},
    {RBI_FRAME_BYE, 5, 0, "BYE: text out of range"},
    {RBI_FRAME_BYE, 4, 9, "BYE: text too short"},
    {RBI_FRAME_EDGES, 0, 0, "EDGES: origin out of range"},
    {RBI_FRAME_EDGES, 8, 0, "EDGES: incarnation out of range"},
    {RBI_FRAME_EDGES, 24, 9, "EDGES: hops out of range"},
    {RBI_FRAME_EDGES, 30, 65, "EDGES: list out of range"},
    {RBI_FRAME_EDGES, 30, 3, "EDGES: list too short"},
    {RBI_FRAME_EDGES, 31, 0, "EDGES: list out of range"},
    {RBI_FRAME_EDGES, 44, ' ', "EDGES: list out of range"},
    {RBI_FRAME_OPEN, 16, 9, "OPEN: envelope out of range"},
    {RBI_FRAME_OPEN, 17, 9, "OPEN: envelope out of range"},
    {RBI_FRAME_OPEN, 28 + 16, 0, "OPEN: handle out of range"},
    {RBI_FRAME_OPEN, 28 + 20, 0, "OPEN: attempt out of range"},
    {RBI_FRAME_OPEN, 28 + 28, 0x41, "OPEN: expect out of range"},
    {RBI_FRAME_OPEN, 28 + 36, 0x81, "OPEN: begin out of range"},
    {RBI_FRAME_OPEN, 28 + 56, 25, "OPEN: requester out of range"}, /* the path ends with a slash */
    {RBI_FRAME_OPEN, 28 + 57, 'x', "OPEN: requester out of range"},
    {RBI_FRAME_OPEN, 28 + 83, 0, "OPEN: requester out of range"}, /* another cluster's id */
    {RBI_FRAME_OPEN, 28 + 91, 4, "OPEN: requester out of range"}, /* another instance's */
    {RBI_FRAME_OPENED, 36, 0, "OPENED: handle out of range"},
    {RBI_FRAME_OPENED, 40, 0, "OPENED: attempt out of range"},
    {RBI_FRAME_OPENED, 44, 0xc1, "OPENED: expect out of range"},
    {RBI_FRAME_OPENED, 52, 0x20, "OPENED: begin out of range"},
    {RBI_FRAME_OPENED, 68, 0, "OPENED: life out of range"},
    {RBI_FRAME_REFUSED, 36, 0, "REFUSED: attempt out of range"},
    {RBI_FRAME_REFUSED, 45, 0, "REFUSED: text out of range"},
    {RBI_FRAME_DATA, 0, 0, "DATA: meta out of range"},
    {RBI_FRAME_DATA, 4, 7, "DATA: bytes out of range"},
    {RBI_FRAME_DATA, 7, 4, "DATA: size out of range"},
    {RBI_FRAME_ACK, 0, 0x3f, "ACK: position out of range"},
    {RBI_FRAME_CLOSE, 4, 0x41, "CLOSE: position out of range"},
    {RBI_FRAME_CLOSE, 12, 0x81, "CLOSE: settled out of range"},
    {RBI_FRAME_CLOSE, 20, 0xc1, "CLOSE: seen out of range"},
    {RBI_FRAME_DIR_ITEM, 20, 0, "DIR_ITEM: item out of range"},   /* incarnation */
    {RBI_FRAME_DIR_ITEM, 45, 'x', "DIR_ITEM: item out of range"}, /* path */
    {RBI_FRAME_DIR_ITEM, 44, 26, "DIR_ITEM: item out of range"},  /* of a cluster only */
    {RBI_FRAME_DIR_ITEM, 93, 64, "DIR_ITEM: item too short"},     /* set */
    {RBI_FRAME_DIR_ITEM, 94, 0, "DIR_ITEM: item out of range"},
    {RBI_FRAME_HOP, 36, 0, "HOP: host out of range"},
    {RBI_FRAME_HOP, 41, 0, "HOP: what out of range"},
    {RBI_FRAME_HOP, 41, 4, "HOP: what out of range"},
    {RBI_FRAME_HOP, 41, RBI_HOP_PUT, "HOP: next out of range"}, /* it goes nowhere from there */
    {RBI_FRAME_HOP, 42, 2, "HOP: reply out of range"},
    {RBI_FRAME_HOP, 44, 'A', "HOP: next out of range"},
    {RBI_FRAME_HOP, 43, 6, "HOP: age_ns too short"}, /* a byte of it is taken for the name's */
};

static void test_frame_values_out_of_range_are_refused(void **state)
{
    (void)state;
    static unsigned char frame[RBI_FRAME_MAX];
    static union rbi_frame_body body;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(wrong); i++) {
        struct rbi_frame_fault fault = {.text = ""};
        const size_t size = copy(wrong[i].type, frame);
        frame[RBI_FRAME_HEADER + wrong[i].offset] = wrong[i].value;
        assert_int_equal(decode(frame, size, &body, &fault), -EPROTO);
        assert_string_equal(fault.text, wrong[i].fault);
    }
}

/** Sets @p count bytes of a vector to zero. */
static void expect_zeroed(enum rbi_frame_type type, unsigned offset, unsigned count)
{
    static unsigned char frame[RBI_FRAME_MAX];
    static union rbi_frame_body body;
    const size_t size = copy(type, frame);
    memset(frame + RBI_FRAME_HEADER + offset, 0, count);
    assert_int_equal(decode(frame, size, &body, NULL), -EPROTO);
}

static void test_frame_ids_are_not_zero(void **state)
{
    (void)state;
    expect_zeroed(RBI_FRAME_HELLO, 16, 8); /* incarnation */
    expect_zeroed(RBI_FRAME_OPEN, 0, 8);   /* from */
    expect_zeroed(RBI_FRAME_OPEN, 8, 8);   /* to */
    expect_zeroed(RBI_FRAME_OPEN, 20, 8);  /* visited */
    expect_zeroed(RBI_FRAME_OPEN, 28, 8);  /* life of the stream */
    expect_zeroed(RBI_FRAME_OPEN, 36, 8);  /* its number */
}

static void test_frame_server_has_a_path(void **state)
{
    (void)state;
    static unsigned char out[RBI_FRAME_MAX];
    static union rbi_frame_body body;
    struct rbi_frame_header header;
    struct rbi_frame_fault fault = {.text = ""};
    assert_int_equal(rbi_frame_look(golden_open, sizeof golden_open, &header), RBI_FRAME_WHOLE);
    assert_int_equal(rbi_frame_decode(&header, golden_open + RBI_FRAME_HEADER, &body, NULL), 0);
    rbi_frame_path_set(&body.open.requester.path, ""); /* anonymous, with any pidf */
    struct rbi_frame_open open = body.open;
    size_t size = rbi_frame_encode(&header, &open, out);
    assert_int_equal(decode(out, size, &body, &fault), RBI_FRAME_WHOLE);
    assert_int_equal(body.open.requester.path.length, 0);
    rbi_frame_path_set(&open.server.path, "");
    size = rbi_frame_encode(&header, &open, out);
    assert_int_equal(decode(out, size, &body, &fault), -EPROTO);
    assert_string_equal(fault.text, "OPEN: server out of range");
}

static void test_frame_parts_have_bounds(void **state)
{
    (void)state;
    static unsigned char frame[RBI_FRAME_MAX];
    static union rbi_frame_body body;
    struct rbi_frame_header header;
    struct rbi_frame_data data;
    struct rbi_frame_piece piece;
    struct rbi_frame_ack ack;
    const size_t largest = RBI_FRAME_DATA_HEAD + RBI_FRAME_PART_MAX;
    /* The whole, and one byte more, both ways of reading. */
    for (size_t more = 0; more <= 1; more++) {
        rbi_frame_data_head(frame, RBI_FRAME_F_MORE, 1, 0, 8, RBI_FRAME_PART_MAX + 2,
                            RBI_FRAME_PART_MAX);
        set_size(frame, largest + more);
        assert_int_equal(rbi_frame_look(frame, largest + more, &header), RBI_FRAME_WHOLE);
        assert_int_equal(decode(frame, largest + more, &body, NULL), more ? -EPROTO : 0);
        assert_int_equal(rbi_frame_data(&header, frame + RBI_FRAME_HEADER, &data),
                         more ? -EPROTO : 0);
        rbi_frame_piece_head(frame, 0, 1, 0, UINT64_MAX - RBI_FRAME_PART_MAX, RBI_FRAME_PART_MAX);
        set_size(frame, largest + more);
        assert_int_equal(rbi_frame_look(frame, largest + more, &header), RBI_FRAME_WHOLE);
        assert_int_equal(decode(frame, largest + more, &body, NULL), more ? -EPROTO : 0);
        assert_int_equal(rbi_frame_piece(&header, frame + RBI_FRAME_HEADER, &piece),
                         more ? -EPROTO : 0);
    }
    rbi_frame_piece_head(frame, 0, 1, 0, UINT64_MAX - 6, 7); /* its end overflows */
    set_size(frame, RBI_FRAME_PIECE_HEAD + 7);
    assert_int_equal(decode(frame, RBI_FRAME_PIECE_HEAD + 7, &body, NULL), -EPROTO);
    header.size = 15;
    assert_int_equal(rbi_frame_piece(&header, frame + RBI_FRAME_HEADER, &piece), -EPROTO);
    header.size = 8;
    assert_int_equal(rbi_frame_piece(&header, frame + RBI_FRAME_HEADER, &piece), -EPROTO);
    header.size = 7;
    assert_int_equal(rbi_frame_data(&header, frame + RBI_FRAME_HEADER, &data), -EPROTO);
    header.size = 15;
    assert_int_equal(rbi_frame_ack(&header, golden_ack + RBI_FRAME_HEADER, &ack), -EPROTO);
}

/** A frame of DATA with @p part of @p size bytes, both ways of reading. */
static void expect_data(unsigned flags, uint32_t meta, uint32_t size, uint32_t part, int result)
{
    unsigned char frame[RBI_FRAME_DATA_HEAD + 64] = {0};
    struct rbi_frame_header header;
    struct rbi_frame_data data;
    union rbi_frame_body body;
    rbi_frame_data_head(frame, flags, 1, 0, meta, size, part);
    assert_int_equal(rbi_frame_look(frame, RBI_FRAME_DATA_HEAD + part, &header), RBI_FRAME_WHOLE);
    assert_int_equal(rbi_frame_data(&header, frame + RBI_FRAME_HEADER, &data), result);
    assert_int_equal(decode(frame, RBI_FRAME_DATA_HEAD + part, &body, NULL), result);
}

static void test_frame_data_lacks_nothing_in_silence(void **state)
{
    (void)state;
    const uint32_t plain = rbi_record_meta(RBI_RECORD_ONEWAY, 0, 0, 0);
    const uint32_t by_reference = rbi_record_meta(RBI_RECORD_ONEWAY, RBI_RECORD_REF, 0, 0);
    expect_data(0, plain, 40, 40, 0);
    expect_data(0, plain, 40, 39, -EPROTO);
    expect_data(RBI_FRAME_F_MORE, plain, 40, 39, 0);
    expect_data(RBI_FRAME_F_MORE, plain, 40, 40, -EPROTO); /* what more? */
    expect_data(RBI_FRAME_F_MORE, plain, RBI_FRAME_BODY_MAX, 39, 0);
    expect_data(RBI_FRAME_F_MORE, plain, RBI_FRAME_BODY_MAX + 1, 39, -EPROTO);
    expect_data(0, plain, 0, 0, 0);
    expect_data(RBI_FRAME_F_MORE, by_reference, 40, 40, 0);
    expect_data(0, by_reference, 40, 40, 0); /* an empty payload */
    expect_data(RBI_FRAME_F_MORE, by_reference, 40, 39, -EPROTO);
    expect_data(RBI_FRAME_F_MORE, by_reference, 32, 32, 0);
    expect_data(RBI_FRAME_F_MORE, by_reference, 31, 31, -EPROTO); /* no room for the reference */
}

/* ---- handing on ---------------------------------------------------------------------------- */

#define SELF UINT64_C(0x2ad8eef499e131d0)

static void test_frame_forward_changes_what_it_must(void **state)
{
    (void)state;
    unsigned char out[RBI_FRAME_CONTROL_MAX];
    unsigned char frame[RBI_FRAME_CONTROL_MAX];
    union rbi_frame_body before;
    union rbi_frame_body after;
    struct rbi_frame_header header;
    size_t size = 0;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(goldens); i++) {
        const bool enveloped = rbi_frame_has_envelope(goldens[i].type);
        size_t whole = copy(goldens[i].type, frame);
        memset(frame + whole, 0xaa, 5); /* fields of a later version go on as they are */
        whole += 5;
        set_size(frame, whole);
        assert_int_equal(rbi_frame_look(frame, whole, &header), RBI_FRAME_WHOLE);
        const int r =
            rbi_frame_forward(&header, frame + RBI_FRAME_HEADER, SELF, 0x66, 0x77, out, &size);
        assert_int_equal(r, enveloped ? RBI_FRAME_WHOLE : -EPROTO);
        if (!enveloped) {
            continue;
        }
        assert_int_equal(size, whole + 8);
        assert_memory_equal(out + size - 5, frame + whole - 5, 5);
        assert_int_equal(decode(frame, whole, &before, NULL), 0);
        assert_int_equal(rbi_frame_look(out, size, &header), RBI_FRAME_WHOLE);
        assert_int_equal(header.handle, 0x66);
        assert_int_equal(header.flags, frame[5]);
        assert_int_equal(decode(out, size, &after, NULL), 0);
        /* Every such body begins with its envelope. */
        assert_int_equal(after.open.envelope.hops, before.open.envelope.hops - 1);
        const unsigned visited = before.open.envelope.visited_count;
        assert_int_equal(after.open.envelope.visited_count, visited + 1);
        assert_int_equal(after.open.envelope.visited[visited], SELF);
        after.open.envelope = before.open.envelope;
        if (goldens[i].type == RBI_FRAME_OPEN) {
            assert_int_equal(after.open.handle, 0x77);
            after.open.handle = before.open.handle;
            assert_memory_equal(&after.open, &before.open, sizeof after.open);
        } else if (goldens[i].type == RBI_FRAME_OPENED) {
            assert_int_equal(after.opened.handle, 0x77);
            after.opened.handle = before.opened.handle;
            assert_memory_equal(&after.opened, &before.opened, sizeof after.opened);
        } else if (goldens[i].type == RBI_FRAME_DIR_ITEM) {
            assert_memory_equal(&after.dir_item, &before.dir_item, sizeof after.dir_item);
        }
    }
}

static void test_frame_forward_ends_loops(void **state)
{
    (void)state;
    unsigned char out[RBI_FRAME_CONTROL_MAX];
    unsigned char frame[RBI_FRAME_CONTROL_MAX];
    struct rbi_frame_header header;
    struct rbi_frame_envelope envelope;
    size_t size = copy(RBI_FRAME_DIR_ASK, frame);
    memcpy(out, frame, size);
    frame[RBI_FRAME_HEADER + 16] = 0; /* no hop is left, though nobody has had it */
    assert_int_equal(rbi_frame_look(frame, size, &header), RBI_FRAME_WHOLE);
    assert_int_equal(rbi_frame_forward(&header, frame + RBI_FRAME_HEADER, 1, 0, 0, out, &size),
                     RBI_FRAME_DROPPED);
    size = copy(RBI_FRAME_DIR_ASK, frame);
    memcpy(out, frame, size);
    /* Eight hosts hand it on, the ninth does not: no hop is left. */
    for (uint64_t self = 1; self <= RBI_FRAME_HOPS_MAX + 1; self++) {
        memcpy(frame, out, size);
        assert_int_equal(rbi_frame_look(frame, size, &header), RBI_FRAME_WHOLE);
        const int r = rbi_frame_forward(&header, frame + RBI_FRAME_HEADER, self, 0, 0, out, &size);
        assert_int_equal(r, self <= RBI_FRAME_HOPS_MAX ? RBI_FRAME_WHOLE : RBI_FRAME_DROPPED);
        if (self == 3) { /* who has seen it, and both ends, do not hand it on again */
            const uint64_t seen[] = {1, 2, UINT64_C(0xbe6903b5f625ab5a),
                                     UINT64_C(0x28faff7f97dff641)};
            for (unsigned i = 0; i < RBI_ARRAY_SIZE(seen); i++) {
                unsigned char other[RBI_FRAME_CONTROL_MAX];
                size_t unused = 0;
                assert_int_equal(rbi_frame_forward(&header, frame + RBI_FRAME_HEADER, seen[i], 0, 0,
                                                   other, &unused),
                                 RBI_FRAME_DROPPED);
            }
        }
    }
    assert_int_equal(rbi_frame_envelope(&header, frame + RBI_FRAME_HEADER, &envelope), 0);
    assert_int_equal(envelope.hops, 0);
    assert_int_equal(envelope.visited_count, RBI_FRAME_HOPS_MAX);
    header.size = 19;
    assert_int_equal(rbi_frame_envelope(&header, frame + RBI_FRAME_HEADER, &envelope), -EPROTO);
    header.type = RBI_FRAME_PING;
    header.size = 20;
    assert_int_equal(rbi_frame_envelope(&header, frame + RBI_FRAME_HEADER, &envelope), -EPROTO);
}

static void test_frame_set_handle_changes_nothing_else(void **state)
{
    (void)state;
    unsigned char frame[sizeof golden_data];
    struct rbi_frame_header header;
    memcpy(frame, golden_data, sizeof frame);
    rbi_frame_set_handle(frame, 0xa1b2c3d4);
    assert_int_equal(rbi_frame_look(frame, sizeof frame, &header), RBI_FRAME_WHOLE);
    assert_int_equal(header.handle, 0xa1b2c3d4);
    rbi_frame_set_handle(frame, 0x42);
    assert_memory_equal(frame, golden_data, sizeof frame);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frame_look_waits_for_the_whole),
        cmocka_unit_test(test_frame_look_refuses_by_eight_bytes),
        cmocka_unit_test(test_frame_cut_anywhere_is_refused),
        cmocka_unit_test(test_frame_appended_and_unknown_are_skipped),
        cmocka_unit_test(test_frame_values_out_of_range_are_refused),
        cmocka_unit_test(test_frame_ids_are_not_zero),
        cmocka_unit_test(test_frame_server_has_a_path),
        cmocka_unit_test(test_frame_parts_have_bounds),
        cmocka_unit_test(test_frame_data_lacks_nothing_in_silence),
        cmocka_unit_test(test_frame_forward_changes_what_it_must),
        cmocka_unit_test(test_frame_forward_ends_loops),
        cmocka_unit_test(test_frame_set_handle_changes_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
