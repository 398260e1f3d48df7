/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/record_follow.h"

#include "bus/record_attributes.h"

#include <string.h>

#define WORD 8U

/** Bytes that parsing looks at: all but the payload, and that when it is a reference. */
static uint64_t head_bytes(uint32_t meta)
{
    const uint64_t words = meta >> 16 & 0xffU;
    const bool reference = (meta >> 8 & RBI_RECORD_REF) != 0;
    return RBI_RECORD_TAG + words * WORD + (reference ? sizeof(struct rbi_record_ref) : 0);
}

bool rbi_followed_read(uint32_t meta,
                       const unsigned char *body,
                       uint64_t there,
                       uint64_t size,
                       struct rbi_followed *out)
{
    struct rbi_record record;
    struct rbi_attributes attributes;
    const unsigned kind = rbi_record_meta_kind(meta);
    const bool answer = kind == RBI_RECORD_REP || kind == RBI_RECORD_ERROR;
    if ((!answer && kind != RBI_RECORD_REQ && kind != RBI_RECORD_ONEWAY) ||
        there < rbi_min_u64(head_bytes(meta), size) ||
        rbi_record_parse(meta, body, size, &record) != 0) {
        return false;
    }
    struct rbi_followed got = {
        .answer = answer, .correlated = kind != RBI_RECORD_ONEWAY, .correlation = record.tag};
    if (!answer && (record.flags & RBI_RECORD_ATTRIBUTES) != 0 &&
        rbi_attributes_decode(&record, &attributes) == 0 && attributes.follow) {
        got.marked = true;
        memcpy(got.trace.bytes, attributes.trace, sizeof got.trace.bytes);
        got.sent_ns = attributes.sent_ns;
    }
    *out = got;
    return true;
}

static void slot_free(struct rbi_follow_memory *memory, struct rbi_follow_slot *slot)
{
    if (slot->used) {
        memory->count--;
        slot->used = false;
    }
}

static void keep(struct rbi_follow_memory *memory, const struct rbi_follow_slot *slot)
{
    struct rbi_follow_slot *at = NULL;
    for (unsigned i = 0; i < RBI_FOLLOW_SLOTS; i++) {
        struct rbi_follow_slot *other = &memory->slots[i];
        /* Sent again after a cut: it is the same request. */
        if (other->used && other->way == slot->way && other->correlation == slot->correlation) {
            at = other;
        }
    }
    if (at == NULL) {
        at = &memory->slots[memory->next++ % RBI_FOLLOW_SLOTS];
    }
    slot_free(memory, at);
    *at = *slot;
    memory->count++;
}

/** The request of an answer; NULL: it was not followed. It is forgotten. */
static struct rbi_follow_slot *
take(struct rbi_follow_memory *memory, unsigned way, uint64_t correlation, uint64_t now_ns)
{
    struct rbi_follow_slot *found = NULL;
    for (unsigned i = 0; i < RBI_FOLLOW_SLOTS && memory->count > 0; i++) {
        struct rbi_follow_slot *slot = &memory->slots[i];
        if (slot->used && slot->until_ns <= now_ns) {
            slot_free(memory, slot);
        } else if (slot->used && slot->way != way && slot->correlation == correlation) {
            found = slot;
            slot_free(memory, slot);
        }
    }
    return found;
}

bool rbi_follow_pass(struct rbi_follow_memory *memory,
                     unsigned way,
                     const struct rbi_followed *record,
                     uint64_t now_ns,
                     struct rbi_follow_news *out)
{
    if (record->answer) {
        const struct rbi_follow_slot *slot = take(memory, way, record->correlation, now_ns);
        if (slot == NULL) {
            return false;
        }
        *out = (struct rbi_follow_news){
            .trace = slot->trace, .age_ns = now_ns - slot->sent_ns, .reply = true};
        return true;
    }
    if (!record->marked) {
        return false;
    }
    /* What cannot be, is not believed: it was sent now. */
    const bool sound = record->sent_ns != 0 && record->sent_ns <= now_ns;
    const uint64_t sent_ns = sound ? record->sent_ns : now_ns;
    if (record->correlated) {
        keep(memory, &(struct rbi_follow_slot){.correlation = record->correlation,
                                               .sent_ns = sent_ns,
                                               .until_ns = now_ns + RBI_FOLLOW_NS,
                                               .trace = record->trace,
                                               .way = (uint8_t)way,
                                               .used = true});
    }
    *out = (struct rbi_follow_news){.trace = record->trace, .age_ns = now_ns - sent_ns};
    return true;
}
