/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_RECORD_ATTRIBUTES_H
#define RINGBUS_BUS_RECORD_ATTRIBUTES_H
/*
 * bus/record_attributes.h - what a sender says of a message beside key and payload, in the
 * extension of its record, behind key and part sizes. Pure.
 *
 *   word 0  bits  0..15  which fields follow (RBI_ATTRIBUTE_*), in the order of their bits
 *           bits 16..17  priority
 *           bit  18      diverted: it is for another instance, which could not be reached
 *           bit  19      with ERROR: it may have been handled
 *           bit  20      follow: each bridge on its way tells of it; with TRACE
 *           bits 21..23  zero when sent, ignored when received
 *           bits 24..31  bytes of the tag
 *           bits 32..47  epoch, with RBI_ATTRIBUTE_EPOCH
 *           bits 48..63  zero when sent, ignored when received
 *
 *   METHOD    method u32 | codec u16 | schema u16
 *   LABELS    4 x u32
 *   DEADLINE  CLOCK_MONOTONIC in nanoseconds, not 0
 *   SENT      the same
 *   TRACE     16 bytes of trace, 8 of span
 *   ERROR     error i32, below 0 | retry after u32, milliseconds
 *   TAG       its bytes, in whole words
 *   FIRST     link life u64 | position u64
 *   DEST      PIDF of whom it is for, beyond its receiver, which is a broker
 *   ORIGIN    where it began, and which brokers it has passed (bus/origin.h)
 *
 * What a later version adds has bits and words behind these: a reader skips both.
 */
#include "bus/origin.h"
#include "bus/record.h"

#define RBI_ATTRIBUTE_METHOD   0x01U
#define RBI_ATTRIBUTE_LABELS   0x02U
#define RBI_ATTRIBUTE_DEADLINE 0x04U
#define RBI_ATTRIBUTE_SENT     0x08U
#define RBI_ATTRIBUTE_TRACE    0x10U
#define RBI_ATTRIBUTE_ERROR    0x20U
#define RBI_ATTRIBUTE_TAG      0x40U
#define RBI_ATTRIBUTE_EPOCH    0x80U /* in word 0 */
#define RBI_ATTRIBUTE_FIRST    0x100U
#define RBI_ATTRIBUTE_DEST     0x200U
#define RBI_ATTRIBUTE_ORIGIN   0x400U

/** Bit of word 0: the bridges on the way tell of it. */
#define RBI_ATTRIBUTE_FOLLOW (UINT64_C(1) << 20)

#define RBI_ATTRIBUTE_TAG_MAX    63U
#define RBI_ATTRIBUTE_LABELS_MAX 4U
#define RBI_PRIORITY_MAX         3U
/** Most words that one sender writes. */
#define RBI_ATTRIBUTE_WORDS_MAX                                                                    \
    (1U + 1U + 2U + 1U + 1U + 3U + 1U + 8U + 2U + 2U + RBI_ORIGIN_WORDS_MAX)

/** Attributes of a message. A field whose bit is not in `present` is zero. */
struct rbi_attributes {
    uint32_t present; /* RBI_ATTRIBUTE_* */
    uint8_t priority; /* 0 lowest, to RBI_PRIORITY_MAX */
    bool diverted;
    bool unsure;    /* with an error: it may have been handled, or may be yet */
    bool follow;    /* each bridge on the way tells the sender's host; it has a trace */
    uint16_t epoch; /* low bits of the epoch of the cluster's snapshot that the sender chose by */
    uint32_t method;
    uint16_t codec;
    uint16_t schema;
    uint32_t labels[RBI_ATTRIBUTE_LABELS_MAX];
    uint64_t deadline_ns;
    uint64_t sent_ns;
    unsigned char trace[16];
    uint64_t span;
    int32_t error; /* in an ERROR: enum ringbus_error of why it was not handled, or may not be */
    uint32_t retry_after_ms;
    char tag[RBI_ATTRIBUTE_TAG_MAX + 1]; /* terminated */
    /* Sent again over a relayed link, to the life that may have had it: where it lay when it was
     * sent first. */
    uint64_t first_life;     /* of that link: as READY named it; not 0 */
    uint64_t first_position; /* in the sender's lane of it */
    struct rbi_pidf dest;
    /*
     * As rbi_origin_encode() writes it, to be sent; of a record that came not read yet, for
     * rbi_origin_decode(). Lives as long as what it points into: not with a copy of this.
     */
    const unsigned char *origin;
    uint32_t origin_words; /* at most RBI_ORIGIN_WORDS_MAX */
};

/** Whether a tag is one: 1 to RBI_ATTRIBUTE_TAG_MAX visible bytes of ASCII without comma. */
bool rbi_tag_valid(const char *tag, size_t length);

/** Words that they take in an extension, 1 to RBI_ATTRIBUTE_WORDS_MAX. */
unsigned rbi_attributes_words(const struct rbi_attributes *attributes);
/** Writes them: rbi_attributes_words() words. @return behind them */
unsigned char *rbi_attributes_encode(const struct rbi_attributes *attributes, unsigned char *at);
/**
 * Takes them out of a record that rbi_record_parse() has taken apart. Untrusted input; reads
 * each word once.
 * @retval 0        @p out is filled
 * @retval -EPROTO  impossible: close the link
 */
RBI_MUST_CHECK int rbi_attributes_decode(const struct rbi_record *record,
                                         struct rbi_attributes *out);

#endif
