/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/table_strict.c - bounds what a member owns: deferred acceptance (Gale and Shapley 1962)
 * with the slots proposing. A slot asks the members in the order of their scores for it; a member
 * with all that it may own turns away the slot whose score for it is the worst. All preferences
 * are strict, so there is one slot-optimal stable matching, and the order of asking is nothing.
 *
 * Each candidate keeps what it holds as a heap, worst on top. There is room for all slots, so
 * each slot finds an owner.
 */
#include "bus/table_build.h"

/** Slots that a member may own: its share and the allowance, rounded up. */
static uint32_t room_of(const struct rbi_table_shape *shape, uint32_t weight, uint64_t weight_sum)
{
    const uint64_t percent = 100 + (uint64_t)shape->strict; /* 11 bits; slots 18, weight 32 */
    const uint64_t whole = 100 * weight_sum;
    const uint64_t room = (percent * shape->slots * weight + whole - 1) / whole;
    return (uint32_t)rbi_min_u64(room, shape->slots);
}

/** No more than this, whatever the weights: each share is rounded up by less than one. */
static size_t places_max(const struct rbi_table_shape *shape, unsigned member_count)
{
    return (size_t)shape->slots * (100 + shape->strict) / 100 + 1 + member_count;
}

size_t rbi_table_strict_bytes(const struct rbi_table_shape *shape, unsigned member_count)
{
    return rbi_align_up(places_max(shape, member_count) * sizeof(struct rbi_table_place), 16) +
           rbi_align_up((member_count + UINT64_C(1)) * sizeof(uint32_t), 16) +
           rbi_align_up(member_count * sizeof(uint32_t), 16);
}

void rbi_table_strict_begin(struct rbi_table_build *build, unsigned char *scratch)
{
    struct rbi_table_match *match = &build->match;
    const size_t places = places_max(&build->shape, build->member_count);
    match->places = (struct rbi_table_place *)(void *)scratch;
    scratch += rbi_align_up(places * sizeof *match->places, 16);
    match->first = (uint32_t *)(void *)scratch;
    scratch += rbi_align_up((build->member_count + UINT64_C(1)) * sizeof *match->first, 16);
    match->held = (uint32_t *)(void *)scratch;
    match->seeker = build->shape.slots;
    uint64_t weight_sum = 0;
    for (uint32_t i = 0; i < build->candidate_count; i++) {
        weight_sum += build->candidates[i].weight;
    }
    match->first[0] = 0;
    for (uint32_t i = 0; i < build->candidate_count; i++) {
        match->held[i] = 0;
        match->first[i + 1] =
            match->first[i] + room_of(&build->shape, build->candidates[i].weight, weight_sum);
    }
    RBI_ASSERT(match->first[build->candidate_count] <= places);
}

static bool place_worse(const struct rbi_table_place *a, const struct rbi_table_place *b)
{
    return a->score != b->score ? a->score > b->score : a->slot > b->slot;
}

/** Puts a place into the heap at or below @p root, which is free. */
static void
sift_down(struct rbi_table_place *heap, uint32_t count, uint32_t root, struct rbi_table_place place)
{
    for (uint32_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
        if (child + 1 < count && place_worse(&heap[child + 1], &heap[child])) {
            child++;
        }
        if (!place_worse(&heap[child], &place)) {
            break;
        }
        heap[root] = heap[child];
        root = child;
    }
    heap[root] = place;
}

static void sift_up(struct rbi_table_place *heap, uint32_t at, struct rbi_table_place place)
{
    while (at > 0 && place_worse(&place, &heap[(at - 1) / 2])) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = place;
}

/** A slot asks a candidate: it is taken in, or it or another one becomes the seeker. */
static void ask(struct rbi_table_build *build, uint32_t by, uint32_t slot, uint64_t score)
{
    struct rbi_table_match *match = &build->match;
    struct rbi_table_place *heap = &match->places[match->first[by]];
    const uint32_t room = match->first[by + 1] - match->first[by];
    const struct rbi_table_place place = {.score = score, .slot = slot};
    match->seeker = build->shape.slots;
    if (match->held[by] < room) {
        sift_up(heap, match->held[by]++, place);
        return;
    }
    struct rbi_table_place turned_away = place;
    if (place_worse(&heap[0], &place)) {
        turned_away = heap[0];
        sift_down(heap, room, 0, place);
    }
    match->seeker = turned_away.slot;
    match->by = by;
    match->score = turned_away.score;
}

/** A slot asks its first choice, which ranking has found. */
static uint32_t ask_first(struct rbi_table_build *build, uint32_t slot)
{
    const uint32_t index = build->owners[slot];
    uint32_t by = 0; /* lower bound: candidates are sorted by index */
    for (uint32_t count = build->candidate_count; count > 0;) {
        const uint32_t half = count / 2;
        if (build->candidates[by + half].index < index) {
            by += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    ask(build, by, slot,
        rbi_hrw_minus_log2(rbi_hrw_hash(build->candidates[by].seed, rbi_hrw_slot_seed(slot))));
    return 4;
}

/** The slot that was turned away asks the best of those that it likes less. */
static uint32_t ask_next(struct rbi_table_build *build)
{
    const struct rbi_table_candidate *all = build->candidates;
    const uint64_t last_score = build->match.score;
    const uint32_t last = build->match.by;
    const uint32_t slot = build->match.seeker;
    const uint64_t slot_seed = rbi_hrw_slot_seed(slot);
    uint32_t best = build->candidate_count;
    uint64_t best_score = 0;
    for (uint32_t i = 0; i < build->candidate_count; i++) {
        const uint64_t score = rbi_hrw_minus_log2(rbi_hrw_hash(all[i].seed, slot_seed));
        if (rbi_hrw_better(last_score, all[last].weight, (int32_t)last, score, all[i].weight,
                           (int32_t)i) &&
            (best == build->candidate_count ||
             rbi_hrw_better(score, all[i].weight, (int32_t)i, best_score, all[best].weight,
                            (int32_t)best))) {
            best = i;
            best_score = score;
        }
    }
    RBI_ASSERT(best < build->candidate_count); /* there is room for all */
    ask(build, best, slot, best_score);
    return 2 * build->candidate_count + 1;
}

/** Writes owner @p index in front of the ranks of a slot, where it may stand already. */
static void seat(struct rbi_table_build *build, uint32_t slot, uint16_t index)
{
    uint16_t moved = index;
    for (uint32_t rank = 0; rank < build->shape.ranks; rank++) {
        uint16_t *owner = &build->owners[(size_t)rank * build->shape.slots + slot];
        const uint16_t was = *owner;
        *owner = moved;
        if (was == index) {
            return;
        }
        moved = was;
    }
}

uint32_t rbi_table_strict_step(struct rbi_table_build *build, uint32_t budget)
{
    struct rbi_table_match *match = &build->match;
    uint32_t used = 0;
    if (build->candidate_count == 0) {
        build->phase = RBI_TABLE_DONE;
        return used;
    }
    while (build->phase == RBI_TABLE_MATCH && used < budget) {
        if (match->seeker != build->shape.slots) {
            used += ask_next(build);
        } else if (build->slot < build->shape.slots) {
            used += ask_first(build, build->slot++);
        } else {
            build->phase = RBI_TABLE_SEAT;
            build->slot = 0;
        }
    }
    while (build->phase == RBI_TABLE_SEAT && used < budget) {
        if (build->slot == build->candidate_count) {
            build->phase = RBI_TABLE_DONE;
            break;
        }
        const uint32_t by = build->slot++;
        for (uint32_t i = 0; i < match->held[by]; i++) {
            seat(build, match->places[match->first[by] + i].slot,
                 (uint16_t)build->candidates[by].index);
        }
        used += match->held[by] + 1;
    }
    return used;
}
