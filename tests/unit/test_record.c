/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a lane: what is taken apart, and what an honest peer can never have written. */
#include "bus/record_inline.h"
#include "support/test.h"

#include <errno.h>
#include <string.h>

static uint64_t body_words[64];
#define BODY ((const unsigned char *)body_words)

/** Both ways in must agree, and leave the result alone when they refuse. */
static int parse(uint32_t meta, uint64_t size, struct rbi_record *out)
{
    struct rbi_record other;
    memset(out, 0x5a, sizeof *out);
    memset(&other, 0x5a, sizeof other);
    const int r = rbi_record_parse(meta, BODY, size, out);
    assert_int_equal(rbi_record_parse_inline(meta, BODY, size, &other), r);
    if (r == 0) {
        assert_int_equal(other.kind, out->kind);
        assert_int_equal(other.flags, out->flags);
        assert_true(other.tag == out->tag);
        assert_true((out->flags & RBI_RECORD_KEY) == 0 || other.key == out->key);
        assert_ptr_equal(other.payload, out->payload);
        assert_true(other.payload_size == out->payload_size);
        assert_int_equal(other.part_count, out->part_count);
        assert_memory_equal(other.part_sizes, out->part_sizes, 8 * (size_t)out->part_count);
    } else {
        assert_int_equal(r, -EPROTO);
        struct rbi_record untouched;
        memset(&untouched, 0x5a, sizeof untouched);
        assert_memory_equal(out, &untouched, sizeof untouched);
        assert_memory_equal(&other, &untouched, sizeof untouched);
    }
    return r;
}

static void fill_body(void)
{
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(body_words); i++) {
        body_words[i] = 1000 + i;
    }
}

static void test_meta_is_pinned(void **state)
{
    (void)state;
    assert_int_equal(rbi_record_meta(RBI_RECORD_ONEWAY, RBI_RECORD_KEY, 3, 2), 0x02030108);
    assert_int_equal(rbi_record_meta(RBI_RECORD_REQ, 0xff, 255, 16), 0x10ffff06);
    assert_int_equal(rbi_record_meta_kind(0x12345607), 7);
}

static void test_parse_plain(void **state)
{
    (void)state;
    struct rbi_record rec;
    fill_body();
    static const enum rbi_record_kind kinds[] = {RBI_RECORD_ONEWAY, RBI_RECORD_REQ,
                                                 RBI_RECORD_REP,    RBI_RECORD_ERROR,
                                                 RBI_RECORD_PING,   RBI_RECORD_READY};
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(kinds); i++) {
        const uint32_t meta = rbi_record_meta(kinds[i], RBI_RECORD_IDEMPOTENT, 0, 0);
        assert_int_equal(parse(meta, 8 + 21, &rec), 0);
        assert_int_equal(rec.kind, kinds[i]);
        assert_int_equal(rec.flags, RBI_RECORD_IDEMPOTENT);
        assert_true(rec.tag == 1000);
        assert_ptr_equal(rec.payload, BODY + 8);
        assert_true(rec.payload_size == 21);
        assert_int_equal(rec.part_count, 1);
        assert_true(rec.part_sizes[0] == 21);
        /* Nothing but a tag is a message of size 0. */
        assert_int_equal(parse(meta, 8, &rec), 0);
        assert_true(rec.payload_size == 0);
        for (uint64_t size = 0; size < 8; size++) {
            assert_int_equal(parse(meta, size, &rec), -EPROTO);
        }
    }
    /* The highest three bits belong to later versions. */
    assert_int_equal(parse(rbi_record_meta(RBI_RECORD_ONEWAY, 0, 0, 0) | 0xe0000000U, 9, &rec), 0);
    assert_true(rec.payload_size == 1);
    assert_int_equal(parse(0x0000ff00U, 64, &rec), -EPROTO); /* kind 0 */
}

static void test_parse_key(void **state)
{
    (void)state;
    struct rbi_record rec;
    fill_body();
    assert_int_equal(parse(rbi_record_meta(RBI_RECORD_ONEWAY, RBI_RECORD_KEY, 0, 0), 16, &rec), 0);
    assert_true(rec.key == 1000);
    assert_int_equal(parse(rbi_record_meta(RBI_RECORD_REQ, RBI_RECORD_KEY, 1, 0), 20, &rec), 0);
    assert_true(rec.tag == 1000);
    assert_true(rec.key == 1001);
    assert_ptr_equal(rec.payload, BODY + 16);
    assert_true(rec.payload_size == 4);
    /* A request says that it has a key, and has no word for it. */
    assert_int_equal(parse(rbi_record_meta(RBI_RECORD_REQ, RBI_RECORD_KEY, 0, 0), 20, &rec),
                     -EPROTO);
}

static void test_parse_extension_lies_within(void **state)
{
    (void)state;
    struct rbi_record rec;
    fill_body();
    for (unsigned words = 0; words <= 255; words++) {
        const uint32_t meta = rbi_record_meta(RBI_RECORD_ONEWAY, 0, words, 0);
        for (uint64_t size = 0; size <= sizeof body_words; size += 4) {
            const bool fits = size >= 8 && words * 8 <= size - 8;
            assert_int_equal(parse(meta, size, &rec), fits ? 0 : -EPROTO);
            if (fits) {
                assert_ptr_equal(rec.payload, BODY + 8 + 8 * (size_t)words);
                assert_true(rec.payload_size == size - 8 - 8 * (uint64_t)words);
            }
        }
    }
}

static void test_parse_parts(void **state)
{
    (void)state;
    struct rbi_record rec;
    fill_body();
    body_words[1] = 5;
    body_words[2] = 0;
    body_words[3] = 7;
    const uint32_t three = rbi_record_meta(RBI_RECORD_ONEWAY, 0, 3, 3);
    assert_int_equal(parse(three, 8 + 24 + 12, &rec), 0);
    assert_int_equal(rec.part_count, 3);
    assert_true(rec.part_sizes[0] == 5 && rec.part_sizes[1] == 0 && rec.part_sizes[2] == 7);
    assert_true(rec.payload_size == 12);
    assert_int_equal(parse(three, 8 + 24 + 11, &rec), -EPROTO);
    assert_int_equal(parse(three, 8 + 24 + 13, &rec), -EPROTO);
    /* A sum that wraps around to the right value. */
    body_words[1] = UINT64_MAX;
    body_words[2] = 6;
    assert_int_equal(parse(three, 8 + 24 + 12, &rec), -EPROTO);
    body_words[1] = UINT64_C(1) << 63;
    body_words[2] = UINT64_C(1) << 63;
    body_words[3] = 12;
    assert_int_equal(parse(three, 8 + 24 + 12, &rec), -EPROTO);
    /* The table needs its words. */
    assert_int_equal(parse(rbi_record_meta(RBI_RECORD_ONEWAY, 0, 2, 3), 128, &rec), -EPROTO);
    /* Behind the key of a request; words of later versions follow. */
    body_words[1] = 77;
    body_words[2] = 1;
    body_words[3] = 2;
    assert_int_equal(parse(rbi_record_meta(RBI_RECORD_REQ, RBI_RECORD_KEY, 4, 2), 8 + 32 + 3, &rec),
                     0);
    assert_true(rec.key == 77);
    assert_int_equal(rec.part_count, 2);
    assert_true(rec.part_sizes[0] == 1 && rec.part_sizes[1] == 2);
    assert_int_equal(parse(rbi_record_meta(RBI_RECORD_REQ, RBI_RECORD_KEY, 2, 2), 200, &rec),
                     -EPROTO);
    /* One part needs no table. */
    assert_int_equal(parse(rbi_record_meta(RBI_RECORD_ONEWAY, 0, 0, 1), 20, &rec), 0);
    assert_int_equal(rec.part_count, 1);
    /* 17 to 31 parts: more than anybody may send. */
    for (unsigned parts = 17; parts < 32; parts++) {
        memset(body_words, 0, sizeof body_words);
        assert_int_equal(parse(rbi_record_meta(RBI_RECORD_ONEWAY, 0, parts, parts),
                               8 + 8 * (uint64_t)parts, &rec),
                         -EPROTO);
    }
    memset(body_words, 0, sizeof body_words);
    assert_int_equal(parse(rbi_record_meta(RBI_RECORD_ONEWAY, 0, 16, 16), 8 + 128, &rec), 0);
    assert_int_equal(rec.part_count, 16);
}

static void test_parse_reference(void **state)
{
    (void)state;
    struct rbi_record rec;
    fill_body();
    const uint32_t meta = rbi_record_meta(RBI_RECORD_ONEWAY, RBI_RECORD_REF, 0, 0);
    assert_int_equal(parse(meta, 32, &rec), 0);
    assert_null(rec.payload);
    assert_true(rec.ref.offset == 1001 && rec.ref.size == 1002 && rec.ref.slot == 1003);
    assert_true(rec.payload_size == 1002);
    assert_true(rec.part_sizes[0] == 1002);
    for (uint64_t size = 8; size < 64; size++) {
        assert_int_equal(parse(meta, size, &rec), size == 32 ? 0 : -EPROTO);
    }
    /* Parts of what is referred to. */
    body_words[1] = 400;
    body_words[2] = 600;
    body_words[3] = 4096;
    body_words[4] = 1000;
    body_words[5] = 3;
    const uint32_t two = rbi_record_meta(RBI_RECORD_REP, RBI_RECORD_REF, 2, 2);
    assert_int_equal(parse(two, 8 + 16 + 24, &rec), 0);
    assert_true(rec.ref.offset == 4096 && rec.payload_size == 1000 && rec.ref.slot == 3);
    assert_int_equal(rec.part_count, 2);
    body_words[4] = 1001;
    assert_int_equal(parse(two, 8 + 16 + 24, &rec), -EPROTO);
}

static void test_parse_kinds_of_later_versions(void **state)
{
    (void)state;
    struct rbi_record rec;
    fill_body();
    /* Scenario 107: not fatal; the extension is skipped without a look at it. */
    for (unsigned kind = RBI_RECORD_GAP + 1; kind < 256; kind++) {
        const uint32_t meta = kind | 0xffU << 8 | 4U << 16 | 31U << 24;
        assert_int_equal(parse(meta, 8 + 32 + 24, &rec), 0);
        assert_int_equal(rec.kind, kind);
        assert_true(rec.ref.slot == 1007);
    }
}

static struct rbi_ready some_ready(void)
{
    struct rbi_ready ready;
    memset(&ready, 0, sizeof ready);
    ready.version_min = 1;
    ready.version_max = 2;
    ready.ping_interval_ms = 1000;
    ready.dead_after_ms = 3500;
    ready.incarnation = 0xdeadbeef;
    ready.features = UINT64_C(0x8000000000000001);
    ready.self = (struct rbi_pidf){.cluster = 3, .instance = -2, .incarnation = 9};
    memcpy(ready.path, "/a/b/c/d/e/f/g", sizeof "/a/b/c/d/e/f/g");
    ready.link_life = UINT64_C(0x0807060504030201);
    return ready;
}

static void test_ready(void **state)
{
    (void)state;
    unsigned char body[RBI_CONTROL_BODY_MAX];
    struct rbi_ready out;
    const struct rbi_ready in = some_ready();
    memset(body, 0xee, sizeof body);
    const uint64_t size = rbi_ready_encode(&in, body);
    assert_int_equal(size, 308);
    assert_int_equal(body[308], 0xee);
    assert_memory_equal(body + 300, "\1\2\3\4\5\6\7\10", 8);
    /* Little-endian, pinned. */
    static const unsigned char head[16] = {1,    0,    2, 0, 0xe8, 3,    0,    0,
                                           0xac, 0x0d, 0, 0, 0xef, 0xbe, 0xad, 0xde};
    assert_memory_equal(body, head, sizeof head);
    assert_int_equal(rbi_ready_decode(body, size, &out), 0);
    assert_memory_equal(&out, &in, sizeof in);
    /* A longer one is of a later version. */
    assert_int_equal(rbi_ready_decode(body, sizeof body, &out), 0);
    memset(&out, 0x33, sizeof out);
    const struct rbi_ready untouched = out;
    for (uint64_t shorter = 0; shorter < 300; shorter++) {
        assert_int_equal(rbi_ready_decode(body, shorter, &out), -EPROTO);
    }
    static const struct {
        unsigned at;
        unsigned char value;
    } broken[] = {
        {44, 'a'}, /* path without slash */
        {46, 0},   /* NUL inside */
        {57, '/'}, /* ends with a slash */
        {40, 255}, /* longer than the text: zeros */
        {41, 1},   /* longer than any path */
        {0, 3},    /* version_min above version_max */
    };
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(broken); i++) {
        const unsigned char kept = body[broken[i].at];
        body[broken[i].at] = broken[i].value;
        assert_int_equal(rbi_ready_decode(body, size, &out), -EPROTO);
        body[broken[i].at] = kept;
    }
    assert_memory_equal(&out, &untouched, sizeof out);
    assert_int_equal(rbi_ready_decode(body, size, &out), 0);
    /* Older writers end before the life of the link. */
    for (uint64_t older = 300; older < size; older++) {
        assert_int_equal(rbi_ready_decode(body, older, &out), 0);
        assert_true(out.link_life == 0);
        assert_string_equal(out.path, in.path);
    }
}

static void test_ready_longest_path(void **state)
{
    (void)state;
    unsigned char body[RBI_CONTROL_BODY_MAX];
    struct rbi_ready in = some_ready();
    struct rbi_ready out;
    memset(in.path, 'x', RBI_PATH_MAX);
    for (unsigned at = 0; at < RBI_PATH_MAX; at += 64) {
        in.path[at] = '/';
    }
    in.path[RBI_PATH_MAX] = 0;
    assert_int_equal(rbi_ready_decode(body, rbi_ready_encode(&in, body), &out), 0);
    assert_string_equal(out.path, in.path);
    in.path[0] = 0;
    memset(in.path, 0, sizeof in.path);
    assert_int_equal(rbi_ready_decode(body, rbi_ready_encode(&in, body), &out), 0);
    assert_string_equal(out.path, "");
}

static void test_drain(void **state)
{
    (void)state;
    unsigned char body[RBI_CONTROL_BODY_MAX];
    const struct rbi_drain_body drain = {.word = RBI_DRAIN_ACK};
    struct rbi_drain_body out = {.word = 77};
    static const unsigned char pinned[8] = {2, 0, 0, 0, 0, 0, 0, 0};
    const uint64_t size = rbi_drain_encode(&drain, body);
    assert_int_equal(size, sizeof pinned);
    assert_memory_equal(body, pinned, sizeof pinned);
    for (uint64_t shorter = 0; shorter < size; shorter++) {
        assert_int_equal(rbi_drain_decode(body, shorter, &out), -EPROTO);
        assert_int_equal(out.word, 77);
    }
    body[4] = 0xff; /* a later version's */
    assert_int_equal(rbi_drain_decode(body, size, &out), 0);
    assert_memory_equal(&out, &drain, sizeof drain);
}

static void test_refused(void **state)
{
    (void)state;
    unsigned char body[RBI_CONTROL_BODY_MAX];
    const struct rbi_refused_body refused = {.error = -20, .method = 0x01020304, .count = 9};
    struct rbi_refused_body out = {.count = 77};
    static const unsigned char pinned[16] = {0xec, 0xff, 0xff, 0xff, 4, 3, 2, 1, 9};
    const uint64_t size = rbi_refused_encode(&refused, body);
    assert_int_equal(size, sizeof pinned);
    assert_memory_equal(body, pinned, sizeof pinned);
    for (uint64_t shorter = 0; shorter < size; shorter++) {
        assert_int_equal(rbi_refused_decode(body, shorter, &out), -EPROTO);
        assert_int_equal(out.count, 77);
    }
    assert_int_equal(rbi_refused_decode(body, size + 8, &out), 0);
    assert_memory_equal(&out, &refused, sizeof refused);
}

static void test_hold(void **state)
{
    (void)state;
    unsigned char body[RBI_CONTROL_BODY_MAX];
    const struct rbi_hold_body hold = {.on = 1};
    struct rbi_hold_body out = {.on = 77};
    static const unsigned char pinned[8] = {1};
    const uint64_t size = rbi_hold_encode(&hold, body);
    assert_int_equal(size, sizeof pinned);
    assert_memory_equal(body, pinned, sizeof pinned);
    for (uint64_t shorter = 0; shorter < size; shorter++) {
        assert_int_equal(rbi_hold_decode(body, shorter, &out), -EPROTO);
    }
    body[0] = 2; /* neither on nor off */
    assert_int_equal(rbi_hold_decode(body, size, &out), -EPROTO);
    assert_int_equal(out.on, 77);
    body[0] = 0;
    body[4] = 0xff; /* a later version's */
    assert_int_equal(rbi_hold_decode(body, size + 8, &out), 0);
    assert_int_equal(out.on, 0);
}

static void test_gap(void **state)
{
    (void)state;
    unsigned char body[RBI_CONTROL_BODY_MAX];
    const struct rbi_gap_body gap = {
        .link_life = 0x0102, .from = 64, .to = 1024, .count = 5, .maybe_seen = 5};
    struct rbi_gap_body out = {.count = 77};
    static const unsigned char pinned[40] = {2, 1, 0, 0, 0, 0, 0, 0, 64, 0, 0, 0, 0, 0,
                                             0, 0, 0, 4, 0, 0, 0, 0, 0,  0, 5, 0, 0, 0,
                                             0, 0, 0, 0, 5, 0, 0, 0, 0,  0, 0, 0};
    const uint64_t size = rbi_gap_encode(&gap, body);
    assert_int_equal(size, sizeof pinned);
    assert_memory_equal(body, pinned, sizeof pinned);
    for (uint64_t shorter = 0; shorter < size; shorter++) {
        assert_int_equal(rbi_gap_decode(body, shorter, &out), -EPROTO);
    }
    /* A link that is none; nothing; nothing in it; more maybe seen than there is. */
    static const struct rbi_gap_body impossible[] = {
        {.link_life = 0, .from = 64, .to = 128, .count = 1},
        {.link_life = 1, .from = 64, .to = 64, .count = 1},
        {.link_life = 1, .from = 128, .to = 64, .count = 1},
        {.link_life = 1, .from = 64, .to = 128, .count = 0},
        {.link_life = 1, .from = 64, .to = 128, .count = 1, .maybe_seen = 2},
    };
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(impossible); i++) {
        assert_int_equal(rbi_gap_decode(body, rbi_gap_encode(&impossible[i], body), &out), -EPROTO);
        assert_int_equal(out.count, 77);
    }
    assert_int_equal(rbi_gap_decode(body, rbi_gap_encode(&gap, body) + 8, &out), 0);
    assert_memory_equal(&out, &gap, sizeof gap);
}

static void test_ready_ack_and_disconnect(void **state)
{
    (void)state;
    unsigned char body[RBI_CONTROL_BODY_MAX];
    const struct rbi_ready_ack ack = {
        .version = 1, .reason = RBI_REASON_DENIED, .features = 5, .link_life = 6};
    struct rbi_ready_ack ack_out;
    const uint64_t ack_size = rbi_ready_ack_encode(&ack, body);
    assert_int_equal(ack_size, 24);
    assert_int_equal(rbi_ready_ack_decode(body, ack_size, &ack_out), 0);
    assert_memory_equal(&ack_out, &ack, sizeof ack);
    assert_int_equal(rbi_ready_ack_decode(body, 15, &ack_out), -EPROTO);
    /* Older writers end before the life of the link. */
    for (uint64_t older = 16; older < ack_size; older++) {
        assert_int_equal(rbi_ready_ack_decode(body, older, &ack_out), 0);
        assert_true(ack_out.link_life == 0 && ack_out.features == 5);
    }

    const struct rbi_disconnect bye = {.reason = 0xfffffff0, .draining = 1};
    struct rbi_disconnect bye_out;
    const uint64_t bye_size = rbi_disconnect_encode(&bye, body);
    assert_int_equal(bye_size, 8);
    assert_int_equal(rbi_disconnect_decode(body, bye_size + 100, &bye_out), 0);
    assert_memory_equal(&bye_out, &bye, sizeof bye);
    assert_int_equal(rbi_disconnect_decode(body, bye_size - 1, &bye_out), -EPROTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meta_is_pinned),
        cmocka_unit_test(test_parse_plain),
        cmocka_unit_test(test_parse_key),
        cmocka_unit_test(test_parse_extension_lies_within),
        cmocka_unit_test(test_parse_parts),
        cmocka_unit_test(test_parse_reference),
        cmocka_unit_test(test_parse_kinds_of_later_versions),
        cmocka_unit_test(test_ready),
        cmocka_unit_test(test_ready_longest_path),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_hold),
        cmocka_unit_test(test_gap),
        cmocka_unit_test(test_ready_ack_and_disconnect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
