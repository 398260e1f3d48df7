/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a lane: 4 bytes of meta, then the body. Both ways to take one apart must agree. */
#include "bus/record_attributes.h"
#include "bus/record_inline.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool right)
{
    if (!right) {
        abort();
    }
}

static void check_record(const struct rbi_record *rec, const unsigned char *body, size_t size)
{
    uint64_t sum = 0;
    check(rec->kind != 0);
    check(rec->part_count >= 1 && rec->part_count <= RBI_RECORD_PARTS_MAX);
    for (unsigned i = 0; i < rec->part_count; i++) {
        check(rec->part_sizes[i] <= rec->payload_size - sum);
        sum += rec->part_sizes[i];
    }
    check(sum == rec->payload_size);
    if (rec->flags & RBI_RECORD_REF) {
        check(rec->payload == NULL && rec->ref.size == rec->payload_size);
        return;
    }
    check(rec->payload >= body + RBI_RECORD_TAG);
    check((uint64_t)(rec->payload - body) + rec->payload_size == size);
}

/* Read or refused, wherever it lies, and the same in both places; its way can be made longer. */
static void take_origin(const struct rbi_attributes *a, const struct rbi_attributes *b)
{
    struct rbi_origin first;
    struct rbi_origin second;
    if ((a->present & RBI_ATTRIBUTE_ORIGIN) == 0) {
        return;
    }
    const int r = rbi_origin_decode(a->origin, a->origin_words, &first);
    check(rbi_origin_decode(b->origin, b->origin_words, &second) == r);
    if (r == 0) {
        check(memcmp(&first, &second, sizeof first) == 0);
        check(first.hops >= 1 && first.hops <= RBI_HOPS_MAX);
        check(memchr(first.path, 0, sizeof first.path) != NULL);
        check(rbi_origin_pass(&first, first.via[0]) == 1);
    }
}

/* What was taken can be said again, and means the same. */
static void take_attributes(const struct rbi_record *rec)
{
    _Alignas(8) unsigned char again[RBI_ATTRIBUTE_WORDS_MAX * 8U];
    struct rbi_attributes first;
    struct rbi_attributes second;
    if ((rec->flags & RBI_RECORD_ATTRIBUTES) == 0 || rbi_attributes_decode(rec, &first) != 0) {
        return;
    }
    const unsigned words = rbi_attributes_words(&first);
    check(words <= RBI_ATTRIBUTE_WORDS_MAX && words <= rec->attribute_words);
    check(memchr(first.tag, 0, sizeof first.tag) != NULL);
    check(rbi_attributes_encode(&first, again) == again + (size_t)words * 8U);
    const struct rbi_record said = {
        .flags = RBI_RECORD_ATTRIBUTES, .attributes = again, .attribute_words = words};
    check(rbi_attributes_decode(&said, &second) == 0);
    take_origin(&first, &second);
    first.origin = second.origin = NULL;
    check(memcmp(&first, &second, sizeof first) == 0);
}

static void take_control(const unsigned char *body, uint64_t size)
{
    struct rbi_ready ready;
    struct rbi_ready_ack ack;
    struct rbi_disconnect bye;
    if (rbi_ready_decode(body, size, &ready) == 0) {
        check(memchr(ready.path, 0, sizeof ready.path) != NULL);
        check(ready.version_min <= ready.version_max);
    }
    struct rbi_hold_body hold;
    if (rbi_hold_decode(body, size, &hold) == 0) {
        check(hold.on <= 1);
    }
    struct rbi_gap_body gap;
    if (rbi_gap_decode(body, size, &gap) == 0) {
        check(gap.from < gap.to && gap.maybe_seen <= gap.count && gap.link_life != 0);
    }
    (void)!rbi_ready_ack_decode(body, size, &ack);
    (void)!rbi_disconnect_decode(body, size, &bye);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t meta = 0;
    if (size < sizeof meta) {
        return 0;
    }
    memcpy(&meta, data, sizeof meta);
    size -= sizeof meta;
    /* As long as the body, to the byte: a step too far is seen. */
    unsigned char *body = aligned_alloc(8, (size + 7) / 8 * 8 + 8);
    if (body == NULL) {
        return 0;
    }
    memcpy(body, data + sizeof meta, size);
    struct rbi_record slow;
    struct rbi_record fast;
    memset(&slow, 0x5a, sizeof slow);
    memset(&fast, 0x5a, sizeof fast);
    const int r = rbi_record_parse(meta, body, size, &slow);
    check(rbi_record_parse_inline(meta, body, size, &fast) == r);
    if (r == 0) {
        check_record(&slow, body, size);
        check_record(&fast, body, size);
        take_attributes(&slow);
        check(slow.tag == fast.tag && slow.kind == fast.kind && slow.payload == fast.payload);
        if (slow.payload != NULL) {
            take_control(slow.payload, slow.payload_size);
        }
    }
    free(body);
    return 0;
}
