/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/outcome.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void rbi_outcome_reader_init(struct rbi_outcome_reader *reader)
{
    *reader = (struct rbi_outcome_reader){.segment = RBI_SEGMENT_NULL};
    rbi_list_init(&reader->in_readers);
}

void rbi_outcome_reader_deinit(struct rbi_outcome_reader *reader)
{
    rbi_list_remove(&reader->in_readers);
    rbi_segment_deinit(&reader->segment);
    rbi_charge_release(&reader->charge);
    for (uint32_t i = 0; i < reader->slot_count; i++) {
        free(reader->bases[i].latency);
    }
    free(reader->bases);
    rbi_outcome_reader_init(reader);
}

static int outcome_check(const struct rbi_segment *segment, uint32_t slots_before, uint32_t *slots)
{
    const uint64_t count = ((const volatile struct rbi_outcomes *)segment->base)->slot_count;
    if (count < RBI_OUTCOME_SLOTS_MIN || count > RBI_OUTCOME_SLOTS_MAX || count < slots_before ||
        rbi_outcomes_bytes((uint32_t)count) != segment->size) {
        return -EPROTO;
    }
    *slots = (uint32_t)count;
    return 0;
}

/** What was counted before we came says nothing of now. */
static void
outcome_begin(const struct rbi_segment *segment, struct rbi_outcome_base *bases, uint32_t slots)
{
    const struct rbi_outcome *seen = rbi_outcomes_slots_seen(segment->base);
    for (uint32_t i = 1; i < slots; i++) {
        rbi_outcome_read(&seen[i], &bases[i].last);
        bases[i].before_us = bases[i].last.who != 0;
    }
}

int rbi_outcome_adopt(struct rbi_outcome_reader *reader, int fd, uint64_t bytes, bool fresh)
{
    struct rbi_segment segment = RBI_SEGMENT_NULL;
    uint32_t slots = 0;
    int result = rbi_segment_adopt(&segment, fd, RBI_SEGMENT_OUTCOMES, bytes, bytes);
    if (result < 0) {
        return result;
    }
    result = outcome_check(&segment, reader->slot_count, &slots);
    struct rbi_outcome_base *bases =
        result == 0 ? realloc(reader->bases, slots * sizeof(*bases)) : NULL;
    if (!bases) {
        rbi_segment_deinit(&segment);
        return result < 0 ? result : -ENOMEM;
    }
    memset(&bases[reader->slot_count], 0, (slots - reader->slot_count) * sizeof(*bases));
    rbi_segment_deinit(&reader->segment);
    rbi_segment_close_fd(&segment);
    if (reader->slot_count == 0 && !fresh) {
        outcome_begin(&segment, bases, slots);
    }
    reader->segment = segment;
    reader->bases = bases;
    reader->slot_count = slots;
    reader->changes = UINT64_MAX; /* to be looked at */
    return 0;
}

/** Growth of a counter that its owner may set to anything. */
static uint32_t outcome_grown(uint64_t from, uint64_t to)
{
    return to > from ? (uint32_t)rbi_min_u64(to - from, UINT32_MAX) : 0;
}

/** @return whether something has come */
static bool outcome_compare(uint32_t slot,
                            const struct rbi_outcome_copy *last,
                            const struct rbi_outcome_copy *now,
                            struct rbi_outcome_news *news)
{
    *news = (struct rbi_outcome_news){
        .slot = slot,
        .cluster = now->cluster,
        .instance = (int32_t)(uint32_t)now->who,
        .incarnation = (uint32_t)(now->who >> 32),
        .ok = outcome_grown(last->ok, now->ok),
        .failed = outcome_grown(last->failed, now->failed),
        .lost = outcome_grown(last->lost, now->lost),
        .slow = now->slow - last->slow, /* they wrap around */
        .local = now->local - last->local,
        .latency_ns = now->latency_ns > last->latency_ns ? now->latency_ns - last->latency_ns : 0,
        .in_a_row = (uint32_t)rbi_min_u64(now->in_a_row, UINT32_MAX)};
    return news->ok != 0 || news->failed != 0 || news->lost != 0 || news->local != 0;
}

/** The slot is another's: what it counts from now on begins with nothing. */
static void outcome_forget(struct rbi_outcome_base *base)
{
    free(base->latency);
    base->latency = NULL;
    base->before_us = false;
    base->active_ns = 0;
}

/** Nobody has the slot any more: what has come since is of who had it, up to the end. */
static void outcome_last(const struct rbi_outcome_copy *last, struct rbi_outcome_news *news)
{
    const uint64_t bad = (uint64_t)news->failed + news->lost;
    news->cluster = last->cluster;
    news->instance = (int32_t)(uint32_t)last->who;
    news->incarnation = (uint32_t)(last->who >> 32);
    news->in_a_row = (uint32_t)rbi_min_u64(news->ok == 0 ? bad + last->in_a_row : 0, UINT32_MAX);
}

void rbi_outcome_look(struct rbi_outcome_reader *reader,
                      uint64_t now_ns,
                      rbi_outcome_fn fn,
                      void *context)
{
    const struct rbi_outcomes *head = reader->segment.base;
    const struct rbi_outcome *slots = rbi_outcomes_slots_seen(head);
    const uint64_t changes = rbi_load_rlx(&head->changes);
    if (changes == reader->changes) {
        return;
    }
    reader->changes = changes;
    bool any = false;
    for (uint32_t i = 1; i < reader->slot_count; i++) {
        struct rbi_outcome_base *base = &reader->bases[i];
        struct rbi_outcome_copy now;
        struct rbi_outcome_news news;
        rbi_outcome_read(&slots[i], &now);
        /* What came while it changed hands is nobody's; one that was free had nothing coming. */
        const bool same =
            base->last.who == 0 || (now.who == base->last.who && now.cluster == base->last.cluster);
        const bool freed = base->last.who != 0 && now.who == 0;
        const bool came =
            (freed || (same && now.who != 0)) && outcome_compare(i, &base->last, &now, &news);
        if (came && freed) {
            outcome_last(&base->last, &news);
        }
        base->last = now;
        any = any || came;
        if (came) {
            base->active_ns = reader->active_ns = now_ns;
            fn(context, &news);
        }
        if (!same) {
            outcome_forget(base);
        }
    }
    reader->vain_ns = any ? reader->vain_ns : now_ns;
}

int rbi_outcome_latency(struct rbi_outcome_reader *reader,
                        uint32_t slot,
                        struct rbi_histogram_growth *out)
{
    struct rbi_outcome_base *base = &reader->bases[slot];
    const struct rbi_outcome *seen = &rbi_outcomes_slots_seen(reader->segment.base)[slot];
    const bool first = base->latency == NULL;
    if (first) {
        base->latency = calloc(RBI_LATENCY_BUCKETS, sizeof(*base->latency));
    }
    if (!base->latency) {
        return -ENOMEM;
    }
    rbi_histogram_since(base->latency, seen->latency, out);
    if (first && base->before_us) {
        memset(out, 0, sizeof(*out));
    }
    return 0;
}

uint64_t rbi_outcome_active_ns(const struct rbi_outcome_reader *reader,
                               uint64_t cluster,
                               uint64_t who,
                               bool *has)
{
    uint64_t active_ns = 0;
    *has = false;
    for (uint32_t i = 1; i < reader->slot_count; i++) {
        const struct rbi_outcome_base *base = &reader->bases[i];
        if (base->last.cluster == cluster && base->last.who != 0) {
            active_ns = rbi_max_u64(active_ns, base->active_ns);
            *has = *has || base->last.who == who;
        }
    }
    return active_ns;
}
