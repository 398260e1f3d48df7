/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_RECORD_INLINE_H
#define RINGBUS_BUS_RECORD_INLINE_H
/*
 * bus/record_inline.h - the receive path's way into rbi_record_parse(): a message
 * without extension and reference is taken apart in place; all the rest is called.
 */
#include "bus/record.h"

/** Loads a word of the peer's memory, exactly once whatever the compiler makes of the copy. */
static inline uint64_t rbi_record_word(const unsigned char *at)
{
    return *(const volatile uint64_t *)(const void *)at;
}

/* Reference, extension, parts: whatever makes a record more than tag and payload. */
#define RBI_RECORD_META_RARE                                                                       \
    ((uint32_t)(RBI_RECORD_REF | RBI_RECORD_ATTRIBUTES) << 8 | UINT32_C(0x1fff) << 16)

/** The same contract as rbi_record_parse(). */
RBI_MUST_CHECK static inline int rbi_record_parse_inline(uint32_t meta,
                                                         const unsigned char *body,
                                                         uint64_t size,
                                                         struct rbi_record *out)
{
    const unsigned kind = rbi_record_meta_kind(meta);
    const unsigned flags = meta >> 8 & 0xffU;
    const bool plain =
        kind == RBI_RECORD_ONEWAY ||
        ((kind == RBI_RECORD_REQ || kind == RBI_RECORD_REP) && (flags & RBI_RECORD_KEY) == 0);
    if (RBI_UNLIKELY((meta & RBI_RECORD_META_RARE) != 0 || !plain || size < RBI_RECORD_TAG)) {
        return rbi_record_parse(meta, body, size, out);
    }
    out->kind = kind;
    out->flags = flags;
    out->tag = rbi_record_word(body);
    out->key = out->tag;
    out->part_count = 1;
    out->part_sizes[0] = size - RBI_RECORD_TAG;
    out->payload = body + RBI_RECORD_TAG;
    out->payload_size = size - RBI_RECORD_TAG;
    return 0;
}

#endif
