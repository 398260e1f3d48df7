/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of a message: what goes in comes out, and nothing else is believed (features D17,
 * J18, J22). */
#include "bus/record_attributes.h"
#include "support/test.h"

#include <errno.h>
#include <string.h>

static uint64_t words[80];

/* As it comes out of rbi_record_parse(). */
static struct rbi_record record_of(unsigned count)
{
    return (struct rbi_record){.flags = RBI_RECORD_ATTRIBUTES,
                               .attributes = (const unsigned char *)words,
                               .attribute_words = count};
}

/* The longest that there is. */
static const unsigned char *long_origin(void)
{
    static uint64_t room[RBI_ORIGIN_WORDS_MAX];
    struct rbi_origin origin = {.pidf = {.cluster = 1, .instance = 2, .incarnation = 3},
                                .hops = RBI_HOPS_MAX};
    memset(origin.path, 'p', RBI_PATH_MAX);
    memset(room, 0, sizeof room);
    assert_int_equal(rbi_origin_words(&origin), RBI_ORIGIN_WORDS_MAX);
    rbi_origin_encode(&origin, (unsigned char *)room);
    return (unsigned char *)room;
}

static struct rbi_attributes everything(void)
{
    struct rbi_attributes all = {.present = 0x7ff,
                                 .priority = 3,
                                 .diverted = true,
                                 .epoch = 0xfedc,
                                 .method = 0x80000001,
                                 .codec = 0xabcd,
                                 .schema = 0x1234,
                                 .labels = {1, 0, UINT32_MAX, 4},
                                 .deadline_ns = UINT64_MAX,
                                 .sent_ns = 5,
                                 .span = UINT64_MAX - 1,
                                 .error = -17,
                                 .retry_after_ms = UINT32_MAX,
                                 .first_life = UINT64_MAX - 2,
                                 .first_position = 64,
                                 .dest = {.cluster = 77, .instance = -1, .incarnation = 5},
                                 .origin = long_origin(),
                                 .origin_words = RBI_ORIGIN_WORDS_MAX};
    memset(all.tag, 't', RBI_ATTRIBUTE_TAG_MAX);
    memset(all.trace, 0xee, sizeof all.trace);
    return all;
}

static unsigned encode(const struct rbi_attributes *attributes)
{
    memset(words, 0x5a, sizeof words);
    const unsigned count = rbi_attributes_words(attributes);
    const unsigned char *end = rbi_attributes_encode(attributes, (unsigned char *)words);
    assert_ptr_equal(end, (unsigned char *)(words + count));
    assert_true(words[count] == UINT64_C(0x5a5a5a5a5a5a5a5a)); /* not a byte more */
    return count;
}

static void test_layout_is_pinned(void **state)
{
    (void)state;
    struct rbi_attributes some = {.present = RBI_ATTRIBUTE_METHOD | RBI_ATTRIBUTE_TAG |
                                             RBI_ATTRIBUTE_EPOCH,
                                  .priority = 2,
                                  .diverted = true,
                                  .epoch = 0x0102,
                                  .method = 7,
                                  .codec = 3,
                                  .schema = 4,
                                  .tag = "canary"};
    assert_int_equal(encode(&some), 3);
    assert_true(words[0] == UINT64_C(0x0000010206060000 + 0xc1));
    assert_true(words[1] == UINT64_C(0x0004000300000007));
    assert_true(memcmp(&words[2], "canary\0\0", 8) == 0);
    some.present |= RBI_ATTRIBUTE_FIRST;
    some.first_life = 3;
    some.first_position = 128;
    assert_int_equal(encode(&some), 5);
    assert_true(words[0] == UINT64_C(0x0000010206060000 + 0x1c1));
    assert_true(memcmp(&words[2], "canary\0\0", 8) == 0);
    assert_true(words[3] == 3 && words[4] == 128);
}

/* Each subset of the fields, in words as few as they need. */
static void test_every_subset_comes_back(void **state)
{
    (void)state;
    const struct rbi_attributes all = everything();
    const struct rbi_attributes none = {0};
    for (uint32_t present = 0; present <= 0x7ff; present++) {
        struct rbi_attributes in = all;
        struct rbi_attributes out;
        in.present = present;
        const unsigned count = encode(&in);
        const struct rbi_record record = record_of(count);
        assert_true(count <= RBI_ATTRIBUTE_WORDS_MAX);
        assert_int_equal(rbi_attributes_decode(&record, &out), 0);
        assert_int_equal(out.present, present);
        assert_int_equal(out.priority, 3);
        assert_true(out.diverted);
        assert_int_equal(out.epoch, present & RBI_ATTRIBUTE_EPOCH ? all.epoch : 0);
        assert_int_equal(out.method, present & RBI_ATTRIBUTE_METHOD ? all.method : 0);
        assert_int_equal(out.codec, present & RBI_ATTRIBUTE_METHOD ? all.codec : 0);
        assert_int_equal(out.schema, present & RBI_ATTRIBUTE_METHOD ? all.schema : 0);
        assert_memory_equal(out.labels, present & RBI_ATTRIBUTE_LABELS ? all.labels : none.labels,
                            16);
        assert_true(out.deadline_ns == (present & RBI_ATTRIBUTE_DEADLINE ? all.deadline_ns : 0));
        assert_true(out.sent_ns == (present & RBI_ATTRIBUTE_SENT ? all.sent_ns : 0));
        assert_memory_equal(out.trace, present & RBI_ATTRIBUTE_TRACE ? all.trace : none.trace, 16);
        assert_true(out.span == (present & RBI_ATTRIBUTE_TRACE ? all.span : 0));
        assert_int_equal(out.error, present & RBI_ATTRIBUTE_ERROR ? all.error : 0);
        assert_string_equal(out.tag, present & RBI_ATTRIBUTE_TAG ? all.tag : "");
        assert_true(out.first_life == (present & RBI_ATTRIBUTE_FIRST ? all.first_life : 0));
        assert_true(out.first_position == (present & RBI_ATTRIBUTE_FIRST ? 64 : 0));
        assert_memory_equal(&out.dest, present & RBI_ATTRIBUTE_DEST ? &all.dest : &none.dest,
                            sizeof out.dest);
        assert_int_equal(out.origin_words,
                         present & RBI_ATTRIBUTE_ORIGIN ? RBI_ORIGIN_WORDS_MAX : 0);
        assert_true((out.origin != NULL) == ((present & RBI_ATTRIBUTE_ORIGIN) != 0));
        if (out.origin != NULL) {
            assert_memory_equal(out.origin, all.origin, (size_t)RBI_ORIGIN_WORDS_MAX * 8);
        }
    }
    assert_int_equal(encode(&all), RBI_ATTRIBUTE_WORDS_MAX);
}

/* Cut at every word, it is refused and nothing is written. */
static void test_short_ones_are_refused(void **state)
{
    (void)state;
    const struct rbi_attributes all = everything();
    const unsigned count = encode(&all);
    for (unsigned cut = 0; cut < count; cut++) {
        struct rbi_attributes out;
        struct rbi_attributes untouched;
        memset(&out, 0x33, sizeof out);
        untouched = out;
        const struct rbi_record record = record_of(cut);
        assert_int_equal(rbi_attributes_decode(&record, &out), -EPROTO);
        assert_memory_equal(&out, &untouched, sizeof out);
    }
}

static void test_impossible_values_are_refused(void **state)
{
    (void)state;
    static const uint64_t impossible[][3] = {
        {RBI_ATTRIBUTE_TAG, 0, 0},                            /* a tag of no bytes */
        {RBI_ATTRIBUTE_TAG | UINT64_C(64) << 24, 0, 0},       /* one too long */
        {RBI_ATTRIBUTE_TAG | UINT64_C(3) << 24, 0x2c6161, 0}, /* with a comma */
        {RBI_ATTRIBUTE_TAG | UINT64_C(3) << 24, 0x610061, 0}, /* with its end inside */
        {RBI_ATTRIBUTE_TAG | UINT64_C(1) << 24, 0xff, 0},     /* not ASCII */
        {RBI_ATTRIBUTE_DEADLINE, 0, 0},                       /* none */
        {RBI_ATTRIBUTE_ERROR, 1, 0},                          /* a success */
        {RBI_ATTRIBUTE_ERROR, 0, 0},
        {RBI_ATTRIBUTE_FIRST, 0, 64},  /* no link */
        {RBI_ATTRIBUTE_DEST, 0, 1},    /* nobody */
        {RBI_ATTRIBUTE_ORIGIN, 0, 0},  /* no words */
        {RBI_ATTRIBUTE_ORIGIN, 40, 0}, /* more than there are */
        {RBI_ATTRIBUTE_ORIGIN, 255, 0},
    };
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(impossible); i++) {
        struct rbi_attributes out;
        memset(words, 0, sizeof words);
        memcpy(words, impossible[i], sizeof impossible[i]);
        const struct rbi_record record = record_of(40);
        assert_int_equal(rbi_attributes_decode(&record, &out), -EPROTO);
    }
}

/* Bits, words and flags of later versions are skipped. */
static void test_what_later_versions_add_is_skipped(void **state)
{
    (void)state;
    struct rbi_attributes out;
    memset(words, 0xff, sizeof words);
    words[0] = UINT64_C(0xffff000000f8f800) | RBI_ATTRIBUTE_METHOD;
    words[1] = 9;
    const struct rbi_record record = record_of(7);
    assert_int_equal(rbi_attributes_decode(&record, &out), 0);
    assert_int_equal(out.present, RBI_ATTRIBUTE_METHOD);
    assert_int_equal(out.method, 9);
    assert_int_equal(out.priority, 0);
    assert_false(out.diverted);
}

/* In a record: behind key and part table, before the payload. */
static void test_place_in_a_record(void **state)
{
    (void)state;
    const struct rbi_attributes some = {.present = RBI_ATTRIBUTE_METHOD, .method = 7};
    static uint64_t body[16];
    struct rbi_record record;
    struct rbi_attributes out;
    body[0] = 42;
    body[1] = 5;
    body[2] = 3;
    body[3] = 5;
    assert_ptr_equal(rbi_attributes_encode(&some, (unsigned char *)&body[4]), &body[6]);
    const unsigned flags = RBI_RECORD_KEY | RBI_RECORD_ATTRIBUTES;
    assert_int_equal(rbi_record_parse(rbi_record_meta(RBI_RECORD_REQ, flags, 5, 2),
                                      (const unsigned char *)body, 56, &record),
                     0);
    assert_true(record.key == 5);
    assert_int_equal(record.part_count, 2);
    assert_ptr_equal(record.attributes, &body[4]);
    assert_int_equal(record.attribute_words, 2);
    assert_ptr_equal(record.payload, &body[6]);
    assert_int_equal(rbi_attributes_decode(&record, &out), 0);
    assert_int_equal(out.method, 7);
    /* Said, and not a word of it. */
    assert_int_equal(rbi_record_parse(rbi_record_meta(RBI_RECORD_REQ, flags, 3, 2),
                                      (const unsigned char *)body, 56, &record),
                     -EPROTO);
    /* Kinds of later versions may mean something else by it. */
    assert_int_equal(rbi_record_parse(rbi_record_meta(200, flags, 0, 0),
                                      (const unsigned char *)body, 56, &record),
                     0);
    assert_int_equal(rbi_attributes_decode(&record, &out), -EPROTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout_is_pinned),
        cmocka_unit_test(test_every_subset_comes_back),
        cmocka_unit_test(test_short_ones_are_refused),
        cmocka_unit_test(test_impossible_values_are_refused),
        cmocka_unit_test(test_what_later_versions_add_is_skipped),
        cmocka_unit_test(test_place_in_a_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
