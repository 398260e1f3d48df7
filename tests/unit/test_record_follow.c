/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which records are followed, and how answers, which say nothing of it, are known again: bounds,
 * ways, time, and records that lie.
 */
#include "bus/record_attributes.h"
#include "bus/record_follow.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#define SEC UINT64_C(1000000000)
#define NOW (100 * SEC)

static _Alignas(8) unsigned char body[4096];

/** Makes a record with a tag and attributes. @return its meta; *size set */
static uint32_t
make(enum rbi_record_kind kind, const struct rbi_attributes *attributes, uint64_t tag, size_t *size)
{
    unsigned char *at = body;
    unsigned words = 0;
    memset(body, 0xee, sizeof body);
    memcpy(at, &tag, sizeof tag);
    at += sizeof tag;
    if (attributes != NULL) {
        words = rbi_attributes_words(attributes);
        at = rbi_attributes_encode(attributes, at);
    }
    *size = (size_t)(at - body) + 5;
    return rbi_record_meta(kind, attributes != NULL ? RBI_RECORD_ATTRIBUTES : 0, words, 1);
}

static struct rbi_attributes marks(unsigned char trace)
{
    struct rbi_attributes attributes = {
        .present = RBI_ATTRIBUTE_SENT | RBI_ATTRIBUTE_TRACE, .follow = true, .sent_ns = NOW - SEC};
    memset(attributes.trace, trace, sizeof attributes.trace);
    return attributes;
}

static struct rbi_followed request_of(uint64_t correlation, unsigned char trace)
{
    struct rbi_followed record = {
        .marked = true, .correlated = true, .correlation = correlation, .sent_ns = NOW - SEC};
    memset(record.trace.bytes, trace, sizeof record.trace.bytes);
    return record;
}

static struct rbi_followed answer_of(uint64_t correlation)
{
    return (struct rbi_followed){.answer = true, .correlated = true, .correlation = correlation};
}

static void test_marked_records_are_read(void **state)
{
    struct rbi_attributes attributes = marks(7);
    struct rbi_followed record;
    size_t size = 0;
    (void)state;
    uint32_t meta = make(RBI_RECORD_REQ, &attributes, 42, &size);
    assert_true(rbi_followed_read(meta, body, size, size, &record));
    assert_true(record.marked && record.correlated && !record.answer);
    assert_true(record.correlation == 42 && record.sent_ns == NOW - SEC);
    assert_memory_equal(record.trace.bytes, attributes.trace, sizeof attributes.trace);
    meta = make(RBI_RECORD_ONEWAY, &attributes, 42, &size);
    assert_true(rbi_followed_read(meta, body, size, size, &record));
    assert_true(record.marked && !record.correlated);
    /* The mark survives the way through a record, and needs a trace. */
    struct rbi_record parsed;
    struct rbi_attributes out;
    assert_int_equal(rbi_record_parse(meta, body, size, &parsed), 0);
    assert_int_equal(rbi_attributes_decode(&parsed, &out), 0);
    assert_true(out.follow && !out.unsure && !out.diverted);
    attributes.present = RBI_ATTRIBUTE_SENT;
    meta = make(RBI_RECORD_REQ, &attributes, 42, &size);
    assert_true(rbi_followed_read(meta, body, size, size, &record));
    assert_false(record.marked);
    attributes = marks(7);
    attributes.follow = false;
    meta = make(RBI_RECORD_REQ, &attributes, 42, &size);
    assert_true(rbi_followed_read(meta, body, size, size, &record));
    assert_false(record.marked);
}

static void test_answers_and_others(void **state)
{
    struct rbi_attributes attributes = marks(7);
    struct rbi_followed record;
    size_t size = 0;
    (void)state;
    uint32_t meta = make(RBI_RECORD_REP, NULL, 42, &size);
    assert_true(rbi_followed_read(meta, body, size, size, &record));
    assert_true(record.answer && !record.marked && record.correlation == 42);
    /* An answer cannot mark itself. */
    meta = make(RBI_RECORD_ERROR, &attributes, 42, &size);
    assert_true(rbi_followed_read(meta, body, size, size, &record));
    assert_true(record.answer && !record.marked);
    meta = make(RBI_RECORD_PING, NULL, 42, &size);
    assert_false(rbi_followed_read(meta, body, size, size, &record));
}

static void test_records_that_are_cut_or_wrong(void **state)
{
    const struct rbi_attributes attributes = marks(7);
    struct rbi_followed record;
    size_t size = 0;
    (void)state;
    const uint32_t meta = make(RBI_RECORD_REQ, &attributes, 42, &size);
    const size_t head = size - 5;
    for (size_t there = 0; there <= size; there++) {
        /* Exactly as many bytes as there are, so that a sanitizer sees one too many. */
        unsigned char *copy = malloc(there + 8);
        assert_non_null(copy);
        memcpy(copy, body, there);
        assert_int_equal(rbi_followed_read(meta, copy, there, size, &record), there >= head);
        free(copy);
    }
    assert_false(rbi_followed_read(meta, body, 4096, head - 1, &record)); /* its size says less */
}

static void test_an_answer_is_known_by_its_request(void **state)
{
    struct rbi_follow_memory memory = {.next = 0};
    struct rbi_followed request = request_of(1, 9);
    const struct rbi_followed answer = answer_of(1);
    struct rbi_follow_news news;
    (void)state;
    assert_false(rbi_follow_pass(&memory, 1, &answer, NOW, &news));
    assert_true(rbi_follow_pass(&memory, 0, &request, NOW, &news));
    assert_true(news.age_ns == SEC && !news.reply && memory.count == 1);
    assert_false(rbi_follow_pass(&memory, 0, &answer, NOW, &news)); /* the other side's number 1 */
    const struct rbi_followed other = answer_of(2);
    assert_false(rbi_follow_pass(&memory, 1, &other, NOW, &news));
    assert_true(rbi_follow_pass(&memory, 1, &answer, NOW + SEC, &news));
    assert_true(news.age_ns == 2 * SEC && news.reply && memory.count == 0);
    assert_int_equal(news.trace.bytes[15], 9);
    assert_false(rbi_follow_pass(&memory, 1, &answer, NOW + SEC, &news)); /* once */
    request.marked = false;
    assert_false(rbi_follow_pass(&memory, 0, &request, NOW, &news));
    assert_int_equal(memory.count, 0);
    request = request_of(1, 9);
    request.correlated = false; /* nothing comes back */
    assert_true(rbi_follow_pass(&memory, 0, &request, NOW, &news));
    assert_int_equal(memory.count, 0);
}

static void test_what_is_remembered_is_bounded(void **state)
{
    struct rbi_follow_memory memory = {.next = 0};
    struct rbi_follow_news news;
    (void)state;
    for (uint64_t i = 1; i <= RBI_FOLLOW_SLOTS + 2; i++) {
        const struct rbi_followed request = request_of(i, (unsigned char)i);
        for (unsigned again = 0; again < 3; again++) { /* over another way: the same one */
            assert_true(rbi_follow_pass(&memory, 1, &request, NOW, &news));
        }
    }
    assert_int_equal(memory.count, RBI_FOLLOW_SLOTS);
    for (uint64_t i = 1; i <= RBI_FOLLOW_SLOTS + 2; i++) {
        const struct rbi_followed answer = answer_of(i);
        assert_int_equal(rbi_follow_pass(&memory, 0, &answer, NOW, &news), i > 2);
    }
    assert_int_equal(memory.count, 0);
}

static void test_time(void **state)
{
    struct rbi_follow_memory memory = {.next = 0};
    struct rbi_followed request = request_of(1, 1);
    const struct rbi_followed answer = answer_of(1);
    struct rbi_follow_news news;
    (void)state;
    request.sent_ns = NOW + 1; /* of a clock that is none */
    assert_true(rbi_follow_pass(&memory, 0, &request, NOW, &news));
    assert_true(news.age_ns == 0);
    request.sent_ns = 0;
    assert_true(rbi_follow_pass(&memory, 0, &request, NOW, &news));
    assert_true(news.age_ns == 0);
    /* Nobody answers: it is forgotten when something else comes. */
    assert_false(rbi_follow_pass(&memory, 1, &answer, NOW + RBI_FOLLOW_NS, &news));
    assert_int_equal(memory.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_marked_records_are_read),
        cmocka_unit_test(test_answers_and_others),
        cmocka_unit_test(test_records_that_are_cut_or_wrong),
        cmocka_unit_test(test_an_answer_is_known_by_its_request),
        cmocka_unit_test(test_what_is_remembered_is_bounded),
        cmocka_unit_test(test_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
