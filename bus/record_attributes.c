/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/record_attributes.h"

#include "bus/record_inline.h"

#include <errno.h>
#include <string.h>

#define WORD           8U
#define PRESENT_MASK   0x7ffU /* of this version */
#define PRIORITY_SHIFT 16U
#define DIVERTED       (UINT64_C(1) << 18)
#define UNSURE         (UINT64_C(1) << 19)
#define FOLLOW         RBI_ATTRIBUTE_FOLLOW
#define TAG_SHIFT      24U
#define EPOCH_SHIFT    32U

bool rbi_tag_valid(const char *tag, size_t length)
{
    if (length == 0 || length > RBI_ATTRIBUTE_TAG_MAX) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        /* NOLINTNEXTLINE(clang-analyzer-core.*): rbi_attributes_decode() has read so many bytes */
        if (tag[i] <= ' ' || tag[i] > '~' || tag[i] == ',') {
            return false;
        }
    }
    return true;
}

static unsigned tag_words(size_t length)
{
    return (unsigned)((length + WORD - 1) / WORD);
}

/** Words of the fields of fixed size, without word 0. */
static unsigned fixed_words(uint32_t present)
{
    return ((present & RBI_ATTRIBUTE_METHOD) != 0 ? 1U : 0U) +
           ((present & RBI_ATTRIBUTE_LABELS) != 0 ? 2U : 0U) +
           ((present & RBI_ATTRIBUTE_DEADLINE) != 0 ? 1U : 0U) +
           ((present & RBI_ATTRIBUTE_SENT) != 0 ? 1U : 0U) +
           ((present & RBI_ATTRIBUTE_TRACE) != 0 ? 3U : 0U) +
           ((present & RBI_ATTRIBUTE_ERROR) != 0 ? 1U : 0U);
}

static unsigned origin_words(const struct rbi_attributes *attributes)
{
    return (attributes->present & RBI_ATTRIBUTE_ORIGIN) != 0 ? attributes->origin_words : 0;
}

/** Words behind the tag. */
static unsigned last_words(uint32_t present)
{
    return ((present & RBI_ATTRIBUTE_FIRST) != 0 ? 2U : 0U) +
           ((present & RBI_ATTRIBUTE_DEST) != 0 ? 2U : 0U);
}

static size_t tag_length(const struct rbi_attributes *attributes)
{
    return (attributes->present & RBI_ATTRIBUTE_TAG) != 0
               ? strnlen(attributes->tag, RBI_ATTRIBUTE_TAG_MAX)
               : 0;
}

unsigned rbi_attributes_words(const struct rbi_attributes *attributes)
{
    return 1U + fixed_words(attributes->present) + tag_words(tag_length(attributes)) +
           last_words(attributes->present) + origin_words(attributes);
}

static unsigned char *put(unsigned char *at, uint64_t word)
{
    memcpy(at, &word, sizeof word);
    return at + sizeof word;
}

unsigned char *rbi_attributes_encode(const struct rbi_attributes *attributes, unsigned char *at)
{
    const uint32_t present = attributes->present;
    const size_t length = tag_length(attributes);
    at = put(at, (present & PRESENT_MASK) | (uint64_t)attributes->priority << PRIORITY_SHIFT |
                     (attributes->diverted ? DIVERTED : 0) | (attributes->unsure ? UNSURE : 0) |
                     (attributes->follow ? FOLLOW : 0) | (uint64_t)length << TAG_SHIFT |
                     (uint64_t)attributes->epoch << EPOCH_SHIFT);
    if ((present & RBI_ATTRIBUTE_METHOD) != 0) {
        at = put(at, attributes->method | (uint64_t)attributes->codec << 32 |
                         (uint64_t)attributes->schema << 48);
    }
    if ((present & RBI_ATTRIBUTE_LABELS) != 0) {
        memcpy(at, attributes->labels, sizeof attributes->labels);
        at += sizeof attributes->labels;
    }
    if ((present & RBI_ATTRIBUTE_DEADLINE) != 0) {
        at = put(at, attributes->deadline_ns);
    }
    if ((present & RBI_ATTRIBUTE_SENT) != 0) {
        at = put(at, attributes->sent_ns);
    }
    if ((present & RBI_ATTRIBUTE_TRACE) != 0) {
        memcpy(at, attributes->trace, sizeof attributes->trace);
        at = put(at + sizeof attributes->trace, attributes->span);
    }
    if ((present & RBI_ATTRIBUTE_ERROR) != 0) {
        at = put(at, (uint32_t)attributes->error | (uint64_t)attributes->retry_after_ms << 32);
    }
    if (length != 0) {
        memset(at, 0, (size_t)tag_words(length) * WORD);
        memcpy(at, attributes->tag, length);
        at += (size_t)tag_words(length) * WORD;
    }
    if ((present & RBI_ATTRIBUTE_FIRST) != 0) {
        at = put(at, attributes->first_life);
        at = put(at, attributes->first_position);
    }
    if ((present & RBI_ATTRIBUTE_DEST) != 0) {
        memcpy(at, &attributes->dest, sizeof attributes->dest);
        at += sizeof attributes->dest;
    }
    const size_t origin = (size_t)origin_words(attributes) * WORD;
    if (origin != 0) {
        memcpy(at, attributes->origin, origin);
    }
    return at + origin;
}

/* ---- reading ------------------------------------------------------------------------------ */

/** Words that are there: they were counted before the first is taken. */
struct cursor {
    const unsigned char *at;
};

static uint64_t take(struct cursor *cursor)
{
    const uint64_t word = rbi_record_word(cursor->at);
    cursor->at += WORD;
    return word;
}

static void take_words(struct cursor *cursor, void *out, size_t size)
{
    unsigned char *to = out;
    for (size_t done = 0; done < size; done += WORD) {
        const uint64_t word = take(cursor);
        memcpy(to + done, &word, WORD);
    }
}

static void take_fixed(struct cursor *cursor, struct rbi_attributes *out)
{
    if ((out->present & RBI_ATTRIBUTE_METHOD) != 0) {
        const uint64_t word = take(cursor);
        out->method = (uint32_t)word;
        out->codec = (uint16_t)(word >> 32);
        out->schema = (uint16_t)(word >> 48);
    }
    if ((out->present & RBI_ATTRIBUTE_LABELS) != 0) {
        take_words(cursor, out->labels, sizeof out->labels);
    }
    if ((out->present & RBI_ATTRIBUTE_DEADLINE) != 0) {
        out->deadline_ns = take(cursor);
    }
    if ((out->present & RBI_ATTRIBUTE_SENT) != 0) {
        out->sent_ns = take(cursor);
    }
    if ((out->present & RBI_ATTRIBUTE_TRACE) != 0) {
        take_words(cursor, out->trace, sizeof out->trace);
        out->span = take(cursor);
    }
    if ((out->present & RBI_ATTRIBUTE_ERROR) != 0) {
        const uint64_t word = take(cursor);
        out->error = (int32_t)(uint32_t)word;
        out->retry_after_ms = (uint32_t)(word >> 32);
    }
}

/** @retval 0; -EPROTO */
static int take_tag(struct cursor *cursor, size_t length, struct rbi_attributes *out)
{
    char tag[RBI_ATTRIBUTE_TAG_MAX + 1];
    take_words(cursor, tag, (size_t)tag_words(length) * WORD);
    if (!rbi_tag_valid(tag, length)) {
        return -EPROTO;
    }
    memcpy(out->tag, tag, length);
    return 0;
}

/**
 * What comes behind the tag.
 * @param left  words for the origin: those that nobody else takes
 * @retval 0; -EPROTO
 */
static int take_last(struct cursor *cursor, unsigned left, struct rbi_attributes *out)
{
    if ((out->present & RBI_ATTRIBUTE_FIRST) != 0) {
        out->first_life = take(cursor);
        out->first_position = take(cursor);
        if (out->first_life == 0) {
            return -EPROTO;
        }
    }
    if ((out->present & RBI_ATTRIBUTE_DEST) != 0) {
        take_words(cursor, &out->dest, sizeof out->dest);
        if (out->dest.cluster == 0) {
            return -EPROTO;
        }
    }
    if ((out->present & RBI_ATTRIBUTE_ORIGIN) != 0) {
        out->origin = cursor->at;
        out->origin_words = left != 0 ? rbi_record_word(cursor->at) & 0xffU : 0;
        return out->origin_words == 0 || out->origin_words > left ||
                       out->origin_words > RBI_ORIGIN_WORDS_MAX
                   ? -EPROTO
                   : 0;
    }
    return 0;
}

int rbi_attributes_decode(const struct rbi_record *record, struct rbi_attributes *out)
{
    struct rbi_attributes got;
    memset(&got, 0, sizeof got);
    if ((record->flags & RBI_RECORD_ATTRIBUTES) == 0 || record->attribute_words == 0) {
        return -EPROTO;
    }
    struct cursor cursor = {.at = record->attributes};
    const uint64_t head = take(&cursor);
    got.present = (uint32_t)head & PRESENT_MASK;
    got.priority = head >> PRIORITY_SHIFT & RBI_PRIORITY_MAX;
    got.diverted = (head & DIVERTED) != 0;
    got.unsure = (got.present & RBI_ATTRIBUTE_ERROR) != 0 && (head & UNSURE) != 0;
    got.follow = (got.present & RBI_ATTRIBUTE_TRACE) != 0 && (head & FOLLOW) != 0;
    got.epoch = (got.present & RBI_ATTRIBUTE_EPOCH) != 0 ? (uint16_t)(head >> EPOCH_SHIFT) : 0;
    const bool tagged = (got.present & RBI_ATTRIBUTE_TAG) != 0;
    const size_t length = tagged ? head >> TAG_SHIFT & 0xffU : 0;
    const unsigned words =
        1U + fixed_words(got.present) + tag_words(length) + last_words(got.present);
    if (length > RBI_ATTRIBUTE_TAG_MAX || (tagged && length == 0) ||
        words > record->attribute_words) {
        return -EPROTO;
    }
    take_fixed(&cursor, &got);
    if (((got.present & RBI_ATTRIBUTE_DEADLINE) != 0 && got.deadline_ns == 0) ||
        ((got.present & RBI_ATTRIBUTE_ERROR) != 0 && got.error >= 0) ||
        (tagged && take_tag(&cursor, length, &got) != 0)) {
        return -EPROTO;
    }
    if (take_last(&cursor, record->attribute_words - words, &got) != 0) {
        return -EPROTO;
    }
    *out = got;
    return 0;
}
