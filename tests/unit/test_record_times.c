/* SPDX-License-Identifier: Apache-2.0 */
/* bus/record_times.h: deadlines and times of sending on another host's clock. */
#include "bus/record_attributes.h"
#include "bus/record_times.h"
#include "support/test.h"

#include <string.h>

struct body {
    uint32_t meta;
    uint64_t size;
    _Alignas(8) unsigned char bytes[512];
};

static void make(struct body *body, const struct rbi_attributes *attributes, bool keyed)
{
    memset(body, 0, sizeof *body);
    const uint64_t tag = 7;
    const uint64_t key = 8;
    unsigned char *at = body->bytes;
    memcpy(at, &tag, sizeof tag);
    at += sizeof tag;
    if (keyed) {
        memcpy(at, &key, sizeof key);
        at += sizeof key;
    }
    at = rbi_attributes_encode(attributes, at);
    const unsigned words = (unsigned)(at - body->bytes) / 8U - 1U;
    memcpy(at, "payload", 7);
    body->size = (uint64_t)(at - body->bytes) + 7;
    body->meta = rbi_record_meta(RBI_RECORD_REQ,
                                 RBI_RECORD_ATTRIBUTES | (keyed ? RBI_RECORD_KEY : 0U), words, 0);
}

static struct rbi_attributes read_back(const struct body *body)
{
    struct rbi_record record;
    struct rbi_attributes out;
    assert_int_equal(rbi_record_parse(body->meta, body->bytes, body->size, &record), 0);
    assert_int_equal(rbi_attributes_decode(&record, &out), 0);
    assert_memory_equal(record.payload, "payload", 7);
    return out;
}

/* From a clock at 5 s to one at 3,000 s, with everything before and behind the times. */
static void test_two_clocks(void **state)
{
    (void)state;
    const uint64_t near_ns = UINT64_C(5000000000);
    const uint64_t far_ns = UINT64_C(3000000000000);
    for (unsigned present = 0; present < 0x100; present++) {
        for (unsigned keyed = 0; keyed < 2; keyed++) {
            struct rbi_attributes in = {.present = present, .priority = 2};
            in.method = present & RBI_ATTRIBUTE_METHOD ? 11 : 0;
            in.deadline_ns = near_ns + 1000;
            in.sent_ns = near_ns - 1000;
            in.labels[3] = 99;
            in.span = 55;
            in.error = -3;
            memcpy(in.tag, "gold", 5);
            struct body body;
            make(&body, &in, keyed != 0);
            rbi_record_shift_times(body.meta, body.bytes, body.size, 0 - near_ns);
            rbi_record_shift_times(body.meta, body.bytes, body.size, far_ns);
            const struct rbi_attributes out = read_back(&body);
            assert_int_equal(out.present, present);
            assert_int_equal(out.deadline_ns, present & RBI_ATTRIBUTE_DEADLINE ? far_ns + 1000 : 0);
            assert_int_equal(out.sent_ns, present & RBI_ATTRIBUTE_SENT ? far_ns - 1000 : 0);
            assert_int_equal(out.labels[3], present & RBI_ATTRIBUTE_LABELS ? 99 : 0);
            assert_int_equal(out.span, present & RBI_ATTRIBUTE_TRACE ? 55 : 0);
            assert_int_equal(out.error, present & RBI_ATTRIBUTE_ERROR ? -3 : 0);
        }
    }
}

/* A deadline of this very moment is zero on the way: it arrives all the same. */
static void test_a_deadline_of_now(void **state)
{
    (void)state;
    const struct rbi_attributes in = {.present = RBI_ATTRIBUTE_DEADLINE, .deadline_ns = 500};
    struct body body;
    make(&body, &in, false);
    rbi_record_shift_times(body.meta, body.bytes, body.size, 0 - UINT64_C(500));
    rbi_record_shift_times(body.meta, body.bytes, body.size, 70);
    assert_int_equal(read_back(&body).deadline_ns, 70);
}

/* What another host sends is untrusted: nothing beyond the record is touched. */
static void test_what_cannot_be_parsed_is_left(void **state)
{
    (void)state;
    const struct rbi_attributes in = {
        .present = RBI_ATTRIBUTE_DEADLINE | RBI_ATTRIBUTE_SENT, .deadline_ns = 500, .sent_ns = 400};
    struct body body;
    make(&body, &in, false);
    for (uint64_t size = 0; size < 8 + 3 * 8; size++) {
        struct body cut = body;
        rbi_record_shift_times(cut.meta, cut.bytes, size, 1000);
        assert_memory_equal(cut.bytes, body.bytes, sizeof body.bytes);
    }
    struct body few = body;
    few.meta = rbi_record_meta(RBI_RECORD_REQ, RBI_RECORD_ATTRIBUTES, 2, 0); /* of three words */
    struct body copy = few;
    rbi_record_shift_times(copy.meta, copy.bytes, copy.size, 1000);
    assert_memory_equal(copy.bytes, few.bytes, sizeof few.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_clocks),
        cmocka_unit_test(test_a_deadline_of_now),
        cmocka_unit_test(test_what_cannot_be_parsed_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
