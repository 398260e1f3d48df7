/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of the control socket: each field there and back, and what is refused (scenario 30). */
#include "bus/wire.h"
#include "bus/wire_table.h"
#include "support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    unsigned type;
    const char *name;
    const struct rbi_wire_table *table;
    unsigned fds;
} all[] = {
#define ROW(NAME, name, value, fds) {value, #NAME, &rbi_wire_table_##name, fds},
    RBI_WIRE_TYPES(ROW)
#undef ROW
};

static unsigned char frame[RBI_WIRE_FRAME_MAX];
static struct rbi_wire_fault fault;

static int decode(size_t size, union rbi_wire_body *out)
{
    struct rbi_wire_header header;
    /* Exactly as many bytes as there are, so that a sanitizer sees one too many. */
    unsigned char *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, frame, size);
    assert_int_equal(rbi_wire_header_decode(copy, size, &header), RBI_WIRE_DONE);
    assert_int_equal(header.length, size);
    const int r = rbi_wire_decode(&header, copy, out, &fault);
    free(copy);
    return r;
}

static void set_length(size_t size)
{
    const uint32_t length = (uint32_t)size;
    memcpy(frame + 4, &length, sizeof length);
}

/** Appends a field to the frame. @return new size */
static size_t append(size_t size, unsigned tag, const void *value, size_t length)
{
    frame[size] = (unsigned char)tag;
    frame[size + 1] = (unsigned char)(tag >> 8);
    frame[size + 2] = (unsigned char)length;
    frame[size + 3] = (unsigned char)(length >> 8);
    if (length != 0) {
        memcpy(frame + size + 4, value, length);
    }
    set_length(size + 4 + length);
    return size + 4 + length;
}

/** An empty frame of @p type. */
static size_t begin(unsigned type)
{
    const struct rbi_wire_resync body = {.revision = 1};
    (void)rbi_wire_encode(RBI_WIRE_RESYNC, &body, 5, 0, frame);
    frame[8] = (unsigned char)type;
    frame[9] = (unsigned char)(type >> 8);
    frame[11] = (unsigned char)rbi_wire_type_fds(type);
    set_length(RBI_WIRE_HEADER);
    return RBI_WIRE_HEADER;
}

/** A different value in each field, also the largest texts; @p empty leaves all zero. */
static void fill(union rbi_wire_body *body, const struct rbi_wire_table *table, bool empty)
{
    memset(body, 0, sizeof *body);
    for (unsigned i = 0; !empty && i < table->count; i++) {
        unsigned char *at = (unsigned char *)body + table->fields[i].offset;
        const uint64_t value = UINT64_C(0xf1e2d3c4b5a69788) + i;
        switch ((enum rbi_wire_kind)table->fields[i].kind) {
        case RBI_WIRE_KIND_u8:
            memcpy(at, &value, 1);
            break;
        case RBI_WIRE_KIND_u16:
            memcpy(at, &value, 2);
            break;
        case RBI_WIRE_KIND_u32:
        case RBI_WIRE_KIND_i32:
            memcpy(at, &value, 4);
            break;
        case RBI_WIRE_KIND_u64:
            memcpy(at, &value, 8);
            break;
        case RBI_WIRE_KIND_text: {
            struct rbi_text *text = (void *)at;
            text->length = (uint16_t)(RBI_WIRE_TEXT_MAX - i);
            memset(text->bytes, 'A' + (int)i, text->length);
            break;
        }
        case RBI_WIRE_KIND_data: {
            struct rbi_data *data = (void *)at;
            data->length = (uint16_t)(RBI_WIRE_DATA_MAX - i);
            memset(data->bytes, (int)i, data->length); /* NUL among them */
            break;
        }
        }
    }
}

static void test_types(void **state)
{
    (void)state;
    assert_int_equal(RBI_ARRAY_SIZE(all), 75);
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(all); i++) {
        assert_string_equal(rbi_wire_type_name(all[i].type), all[i].name);
        assert_int_equal(rbi_wire_type_fds(all[i].type), all[i].fds);
        /* Tags are unique within a message and not 0. */
        for (unsigned f = 0; f < all[i].table->count; f++) {
            assert_int_not_equal(all[i].table->fields[f].tag, 0);
            for (unsigned g = 0; g < f; g++) {
                assert_int_not_equal(all[i].table->fields[f].tag, all[i].table->fields[g].tag);
            }
        }
    }
    assert_string_equal(rbi_wire_type_name(0), "?");
    assert_int_equal(rbi_wire_type_protocol(RBI_WIRE_STOPPING), 1);
    assert_int_equal(rbi_wire_type_protocol(RBI_WIRE_RELINK), 2);
    assert_string_equal(rbi_wire_type_name(29), "?");
    assert_string_equal(rbi_wire_type_name(UINT32_MAX), "?");
    assert_int_equal(rbi_wire_type_fds(999), 0);
}

static void test_each_message_there_and_back(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(all); i++) {
        for (unsigned empty = 0; empty < 2; empty++) {
            union rbi_wire_body in;
            union rbi_wire_body out;
            struct rbi_wire_header header;
            fill(&in, all[i].table, empty != 0);
            const size_t size =
                rbi_wire_encode((enum rbi_wire_type)all[i].type, &in, 77, 66, frame);
            assert_int_equal(rbi_wire_header_decode(frame, size, &header), RBI_WIRE_DONE);
            assert_int_equal(header.length, size);
            assert_int_equal(header.type, all[i].type);
            assert_int_equal(header.version, RBI_WIRE_PROTOCOL_MAX);
            assert_int_equal(header.fd_count, all[i].fds);
            assert_int_equal(header.serial, 77);
            assert_int_equal(header.reply_to, 66);
            memset(&out, 0x5a, sizeof out);
            assert_int_equal(decode(size, &out), 0);
            assert_memory_equal(&out, &in, sizeof in);
        }
    }
}

static void test_bytes_are_pinned(void **state)
{
    (void)state;
    struct rbi_wire_refuse body;
    memset(&body, 0, sizeof body);
    body.link_id = UINT64_C(0x0807060504030201);
    body.code = -2;
    rbi_text_set(&body.text, "no");
    static const unsigned char expected[] = {
        'R', 'B', 'C', '1', 50, 0, 0,    0,    13,   0,    2, 0, 0x44, 0x33, 0x22, 0x11, 9,
        0,   0,   0,   0,   0,  0, 0,    1,    0,    8,    0, 1, 2,    3,    4,    5,    6,
        7,   8,   2,   0,   4,  0, 0xfe, 0xff, 0xff, 0xff, 3, 0, 2,    0,    'n',  'o'};
    assert_int_equal(rbi_wire_encode(RBI_WIRE_REFUSE, &body, 0x11223344, 9, frame),
                     sizeof expected);
    assert_memory_equal(frame, expected, sizeof expected);
}

static void test_header_refuses(void **state)
{
    (void)state;
    struct rbi_wire_header header;
    const struct rbi_wire_resync body = {.revision = 1};
    const size_t size = rbi_wire_encode(RBI_WIRE_RESYNC, &body, 1, 0, frame);
    for (size_t n = 0; n < RBI_WIRE_HEADER; n++) {
        assert_int_equal(rbi_wire_header_decode(frame, n, &header), RBI_WIRE_SHORT);
    }
    assert_int_equal(rbi_wire_header_decode(frame, RBI_WIRE_HEADER, &header), RBI_WIRE_DONE);
    for (unsigned i = 0; i < 4; i++) {
        frame[i] ^= 1;
        assert_int_equal(rbi_wire_header_decode(frame, size, &header), -EPROTO);
        frame[i] ^= 1;
    }
    static const struct {
        uint32_t length;
        int result;
    } lengths[] = {{0, -EPROTO},     {23, -EPROTO},        {24, 0}, {4096, 0}, {4097, -EPROTO},
                   {65536, -EPROTO}, {UINT32_MAX, -EPROTO}};
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(lengths); i++) {
        memcpy(frame + 4, &lengths[i].length, 4);
        assert_int_equal(rbi_wire_header_decode(frame, size, &header), lengths[i].result);
    }
    set_length(size);
    frame[11] = 8;
    assert_int_equal(rbi_wire_header_decode(frame, size, &header), 0);
    frame[11] = 9;
    assert_int_equal(rbi_wire_header_decode(frame, size, &header), -EPROTO);
}

/** The frame must be refused, the fault must hold both words, and nothing must be written. */
static void refused(size_t size, const char *message, const char *field)
{
    union rbi_wire_body out;
    union rbi_wire_body untouched;
    memset(&out, 0x5a, sizeof out);
    memset(&untouched, 0x5a, sizeof untouched);
    fault.text[0] = 0;
    assert_int_equal(decode(size, &out), -EPROTO);
    assert_memory_equal(&out, &untouched, sizeof out);
    assert_non_null(strstr(fault.text, message));
    assert_non_null(strstr(fault.text, field));
}

static void test_decode_refuses_each_missing_field(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(all); i++) {
        for (unsigned without = 0; without < all[i].table->count; without++) {
            static const unsigned char zeros[8];
            size_t size = begin(all[i].type);
            for (unsigned f = 0; f < all[i].table->count; f++) {
                static const size_t lengths[] = {1, 2, 4, 4, 8, 3, 8};
                const struct rbi_wire_field *field = &all[i].table->fields[f];
                if (f != without) {
                    size = append(size, field->tag,
                                  field->kind == RBI_WIRE_KIND_text ? "abc" : (const void *)zeros,
                                  lengths[field->kind]);
                }
            }
            union rbi_wire_body out;
            if (all[i].table->fields[without].required) {
                refused(size, all[i].name, all[i].table->fields[without].name);
            } else {
                assert_int_equal(decode(size, &out), 0);
            }
        }
    }
}

static void test_decode_refuses_each_wrong_length(void **state)
{
    (void)state;
    static const size_t right[] = {1, 2, 4, 4, 8, 0, 0};
    static unsigned char value[RBI_WIRE_DATA_MAX + 16];
    memset(value, 'v', sizeof value);
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(all); i++) {
        for (unsigned f = 0; f < all[i].table->count; f++) {
            const struct rbi_wire_field *field = &all[i].table->fields[f];
            const size_t from = field->kind == RBI_WIRE_KIND_text   ? RBI_WIRE_TEXT_MAX + 1
                                : field->kind == RBI_WIRE_KIND_data ? RBI_WIRE_DATA_MAX + 1
                                                                    : 0;
            for (size_t length = from; length < from + 12; length++) {
                if (from != 0 || length != right[field->kind]) {
                    const size_t size = append(begin(all[i].type), field->tag, value, length);
                    refused(size, all[i].name, field->name);
                }
            }
        }
    }
}

static void test_decode_refuses(void **state)
{
    (void)state;
    size_t size = append(append(begin(RBI_WIRE_TARGET), 1, "/a", 2), 1, "/a", 2);
    refused(size, "TARGET", "path comes twice");
    size = append(begin(RBI_WIRE_TARGET), 1, "/a\0b", 4);
    refused(size, "TARGET", "path has a NUL");
    size = append(begin(RBI_WIRE_TARGET), 1, "/a\0", 3);
    refused(size, "TARGET", "path has a NUL");
    /* A field that says to be longer than the frame, by one byte, by all. */
    size = append(begin(RBI_WIRE_TARGET), 1, "/a", 2);
    frame[RBI_WIRE_HEADER + 2] = 3;
    refused(size, "TARGET", "end of the frame");
    frame[RBI_WIRE_HEADER + 2] = 0xff;
    frame[RBI_WIRE_HEADER + 3] = 0xff;
    refused(size, "TARGET", "end of the frame");
    /* 1 to 3 bytes of a field's head. */
    size = append(begin(RBI_WIRE_TARGET), 1, "/a", 2);
    for (size_t extra = 1; extra < 4; extra++) {
        set_length(size + extra);
        refused(size + extra, "TARGET", "end of the frame");
    }
    /* Descriptors that the message does not carry. */
    size = append(begin(RBI_WIRE_TARGET), 1, "/a", 2);
    frame[11] = 1;
    refused(size, "TARGET", "1 descriptors");
}

static void test_decode_skips_what_it_does_not_know(void **state)
{
    (void)state;
    union rbi_wire_body out;
    static unsigned char big[2000];
    size_t size = append(begin(RBI_WIRE_TARGET), 999, big, sizeof big);
    size = append(size, 1, "/a", 2);
    size = append(size, 999, NULL, 0); /* twice is as unknown as once */
    size = append(size, 0, "x", 1);
    assert_int_equal(decode(size, &out), 0);
    assert_string_equal(out.target.path.bytes, "/a");
    size = append(begin(200), 1, "anything", 8);
    assert_int_equal(decode(size, &out), 1);
    size = append(begin(0), 1, "anything", 8);
    assert_int_equal(decode(size, &out), 1);
    size = append(begin(0xffff), 1, "anything", 8);
    assert_int_equal(decode(size, &out), 1);
}

static void test_text(void **state)
{
    (void)state;
    struct rbi_text text;
    char longer[400];
    memset(longer, 'x', sizeof longer);
    longer[399] = 0;
    rbi_text_set(&text, NULL);
    assert_int_equal(text.length, 0);
    assert_string_equal(text.bytes, "");
    rbi_text_set(&text, "abc");
    assert_int_equal(text.length, 3);
    rbi_text_set(&text, longer);
    assert_int_equal(text.length, RBI_WIRE_TEXT_MAX);
    assert_int_equal(strlen(text.bytes), RBI_WIRE_TEXT_MAX);
    rbi_text_format(&text, "%s-%d", "a", 7);
    assert_string_equal(text.bytes, "a-7");
    assert_int_equal(text.length, 3);
    rbi_text_format(&text, "%s", longer);
    assert_int_equal(text.length, RBI_WIRE_TEXT_MAX);
    assert_int_equal(strlen(text.bytes), RBI_WIRE_TEXT_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_each_message_there_and_back),
        cmocka_unit_test(test_bytes_are_pinned),
        cmocka_unit_test(test_header_refuses),
        cmocka_unit_test(test_decode_refuses_each_missing_field),
        cmocka_unit_test(test_decode_refuses_each_wrong_length),
        cmocka_unit_test(test_decode_refuses),
        cmocka_unit_test(test_decode_skips_what_it_does_not_know),
        cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
