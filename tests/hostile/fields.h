/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_HOSTILE_FIELDS_H
#define RINGBUS_TESTS_HOSTILE_FIELDS_H
/*
 * Every field of the segments that a peer owns, what the others do when it holds something
 * else, and the values that are tried. A member of shm/layout.h that is not listed in
 * fields.c does not compile.
 */
#include "shm/layout.h"

/** What a reader makes of a field. After the link is up only the positions are read again. */
enum field_effect {
    FIELD_EXACT,       /**< offered: one value is right, any other is refused */
    FIELD_SHAPE,       /**< offered: refused unless it describes what lies in the segment */
    FIELD_READ_POS,    /**< alive: a line that was written and not yet read, or BAD_PEER */
    FIELD_RETURNS_POS, /**< alive: no more than references are out, or BAD_PEER */
    FIELD_FREE,        /**< any value at any time: the link goes on */
};

struct field {
    const char *name;
    enum rbi_segment_kind segment;
    enum field_effect effect;
    uint32_t offset;
    uint32_t bytes; /* of all its words */
    uint32_t width; /* of one word: 4 or 8 */
};

extern const struct field fields[];
extern const unsigned fields_count;

/** First word of a field. */
uint64_t field_get(const void *segment, const struct field *field);
/** Writes a value into every word of a field. */
void field_set(void *segment, const struct field *field, uint64_t value);

#define FIELD_VALUES_MAX 256U
/**
 * Values for a field that holds @p right: extremes, neighbours of the right one, what wraps with
 * it, what other fields hold; with @p full also each power of two and its neighbours.
 * @return their number, none of them twice
 */
unsigned field_values(const struct field *field, uint64_t right, bool full, uint64_t *values);
/** Whether a side of @p size bytes may be of this geometry: the rules of shm/layout.h once more. */
bool field_shape_possible(const struct rbi_side *side, uint64_t size);

#endif
