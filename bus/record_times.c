/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/record_times.h"

#include "bus/record_attributes.h"

#include <string.h>

#define WORD 8U

static void shift(unsigned char *at, uint64_t delta_ns)
{
    uint64_t word = 0;
    memcpy(&word, at, sizeof word);
    word += delta_ns;
    memcpy(at, &word, sizeof word);
}

bool rbi_record_shift_times(uint32_t meta, unsigned char *body, uint64_t size, uint64_t delta_ns)
{
    struct rbi_record record;
    if ((meta >> 8 & RBI_RECORD_ATTRIBUTES) == 0 ||
        rbi_record_parse(meta, body, size, &record) != 0 || record.attributes == NULL) {
        return false;
    }
    unsigned char *at = body + (record.attributes - body);
    uint64_t head = 0;
    memcpy(&head, at, sizeof head);
    const bool deadline = (head & RBI_ATTRIBUTE_DEADLINE) != 0;
    const bool sent = (head & RBI_ATTRIBUTE_SENT) != 0;
    const unsigned before = 1U + ((head & RBI_ATTRIBUTE_METHOD) != 0 ? 1U : 0U) +
                            ((head & RBI_ATTRIBUTE_LABELS) != 0 ? 2U : 0U);
    if (before + (deadline ? 1U : 0U) + (sent ? 1U : 0U) > record.attribute_words) {
        return false;
    }
    at += (size_t)before * WORD;
    if (deadline) {
        shift(at, delta_ns);
        at += WORD;
    }
    if (sent) {
        shift(at, delta_ns);
    }
    return (head & RBI_ATTRIBUTE_FOLLOW) != 0;
}
