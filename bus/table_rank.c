/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/table_rank.c - rendezvous by rank, from nothing or from the table before.
 *
 * An update takes a slot's old owners, and whoever was raised (is new, or weighs more): nobody
 * else can have become better than the last of the old owners. Where owners were lowered or left,
 * somebody else may come up: unless all that stay are still as good as the last old owner was,
 * the slot is scored anew.
 */
#include "bus/table_build.h"

struct kept {
    uint64_t score;
    const struct rbi_table_candidate *candidate;
};

/** The best of a slot so far, and a cheap test of who cannot be among them. */
struct best {
    struct kept kept[RBI_TABLE_RANKS_MAX];
    uint32_t count;
    uint32_t ranks;
    /* Who has (~hash >> 32) x bar_weight > bar x weight + slack is worse than all of them. */
    uint64_t bar;
    uint64_t bar_weight;
    uint64_t slack;
};

#define OPEN_TO_ALL UINT64_MAX

static void best_init(struct best *best, uint32_t ranks)
{
    best->count = 0;
    best->ranks = ranks;
    best->bar = 0;
    best->bar_weight = 0;
    best->slack = OPEN_TO_ALL;
}

/**
 * Sets the test by the last of the kept. With x = hash / 2^64, -log2(x) >= (1 - x) / ln 2, and
 * the fixed point is off by less than 12 units, so a score is at least
 * (~hash >> 32) / ln 2 - 12; ln 2 is rounded up.
 */
static void best_raise_bar(struct best *best)
{
    const struct kept *last = &best->kept[best->ranks - 1];
    const uint64_t bar = (last->score * 726820U >> 20) + 1;
    if (bar >= UINT64_C(1) << 31) { /* the products could overflow, and it would not help */
        best->slack = OPEN_TO_ALL;
        return;
    }
    best->bar = bar;
    best->bar_weight = last->candidate->weight;
    best->slack = 12 * best->bar_weight;
}

static inline bool best_excludes(const struct best *best, uint64_t hash, uint32_t weight)
{
    return (~hash >> 32) * best->bar_weight > best->bar * weight + best->slack;
}

static bool kept_better(const struct kept *a, const struct kept *b)
{
    /* The order of the indices is that of the ids. */
    return rbi_hrw_better(a->score, a->candidate->weight, (int32_t)a->candidate->index, b->score,
                          b->candidate->weight, (int32_t)b->candidate->index);
}

static void
best_offer_score(struct best *best, uint64_t score, const struct rbi_table_candidate *candidate)
{
    const struct kept offered = {score, candidate};
    uint32_t at = best->count;
    while (at > 0 && kept_better(&offered, &best->kept[at - 1])) {
        at--;
    }
    if (at == best->ranks) {
        return;
    }
    if (best->count < best->ranks) {
        best->count++;
    }
    for (uint32_t i = best->count - 1; i > at; i--) {
        best->kept[i] = best->kept[i - 1];
    }
    best->kept[at] = offered;
    if (best->count == best->ranks) {
        best_raise_bar(best);
    }
}

static inline void
best_offer(struct best *best, uint64_t slot_seed, const struct rbi_table_candidate *candidate)
{
    const uint64_t hash = rbi_hrw_hash(candidate->seed, slot_seed);
    if (!best_excludes(best, hash, candidate->weight)) {
        best_offer_score(best, rbi_hrw_minus_log2(hash), candidate);
    }
}

static void best_write(const struct best *best, struct rbi_table_build *build, uint32_t slot)
{
    for (uint32_t rank = 0; rank < best->ranks; rank++) {
        build->owners[(size_t)rank * build->shape.slots + slot] =
            rank < best->count ? (uint16_t)best->kept[rank].candidate->index : RBI_TABLE_NONE;
    }
}

static uint32_t rank_slot(struct rbi_table_build *build, uint32_t slot)
{
    const uint64_t slot_seed = rbi_hrw_slot_seed(slot);
    struct best best;
    best_init(&best, build->shape.ranks);
    for (uint32_t i = 0; i < build->candidate_count; i++) {
        best_offer(&best, slot_seed, &build->candidates[i]);
    }
    best_write(&best, build, slot);
    return build->candidate_count + 1;
}

/* ---- update ---------------------------------------------------------------------------- */

/** The owners of a slot in the old table. */
struct owned {
    const struct rbi_table_fate *fate[RBI_TABLE_RANKS_MAX];
    uint32_t count;
    uint32_t marks; /* of all of them */
};

/* By reference: returned by value it would be copied, at twice the cost of an update. */
static inline void
owned_read(struct owned *owned, const struct rbi_table_build *build, uint32_t slot)
{
    uint32_t count = 0;
    uint32_t marks = 0;
    for (uint32_t rank = 0; rank < build->shape.ranks; rank++) {
        const uint16_t index = build->old->owners[(size_t)rank * build->shape.slots + slot];
        if (index == RBI_TABLE_NONE) {
            break;
        }
        RBI_ASSERT(index < build->old->member_count);
        owned->fate[count++] = &build->fates[index];
        marks |= build->fates[index].marks;
    }
    owned->count = count;
    owned->marks = marks;
}

/** Takes over a slot whose owners are as they were; indices may have moved. */
static inline void carry(struct rbi_table_build *build, const struct owned *owned, uint32_t slot)
{
    for (uint32_t rank = 0; rank < build->shape.ranks; rank++) {
        build->owners[(size_t)rank * build->shape.slots + slot] =
            rank < owned->count ? (uint16_t)owned->fate[rank]->now.index : RBI_TABLE_NONE;
    }
}

/** Whether one of the raised gets past the last of owners that are all as they were. */
static bool
raised_enter(const struct rbi_table_build *build, const struct owned *owned, uint32_t slot)
{
    if (build->raised_count == 0 || owned->count < build->shape.ranks) {
        return build->raised_count != 0;
    }
    const uint64_t slot_seed = rbi_hrw_slot_seed(slot);
    const struct rbi_table_candidate *last = &owned->fate[owned->count - 1]->now;
    struct best best;
    best_init(&best, 1);
    best_offer_score(&best, rbi_hrw_minus_log2(rbi_hrw_hash(last->seed, slot_seed)), last);
    for (uint32_t i = 0; i < build->raised_count; i++) {
        best_offer(&best, slot_seed, &build->raised[i]);
    }
    return best.kept[0].candidate != last;
}

/** Whether all of the best are as good as the last old owner was, so that no outsider is better. */
static bool still_best(const struct best *best,
                       const struct rbi_table_build *build,
                       const struct rbi_table_fate *last,
                       uint64_t slot_seed)
{
    if (best->count < best->ranks) {
        return false;
    }
    const uint64_t score = rbi_hrw_minus_log2(rbi_hrw_hash(last->seed, slot_seed));
    const struct kept *worst = &best->kept[best->ranks - 1];
    return !rbi_hrw_better(score, last->weight, build->old->members[last - build->fates].instance,
                           worst->score, worst->candidate->weight,
                           build->members[worst->candidate->index].instance);
}

static uint32_t update_slot(struct rbi_table_build *build, uint32_t slot)
{
    const uint32_t used = build->raised_count + build->shape.ranks;
    struct owned owned;
    owned_read(&owned, build, slot);
    if (owned.marks == 0 && !raised_enter(build, &owned, slot)) {
        carry(build, &owned, slot);
        return used;
    }
    const uint64_t slot_seed = rbi_hrw_slot_seed(slot);
    struct best best;
    best_init(&best, build->shape.ranks);
    for (uint32_t i = 0; i < owned.count; i++) {
        const struct rbi_table_fate *fate = owned.fate[i];
        if (fate->now.index != RBI_TABLE_NONE && (fate->marks & RBI_TABLE_RAISED) == 0) {
            best_offer(&best, slot_seed, &fate->now);
        }
    }
    for (uint32_t i = 0; i < build->raised_count; i++) {
        best_offer(&best, slot_seed, &build->raised[i]);
    }
    const bool outsiders = owned.count == build->shape.ranks; /* else all were among the owners */
    if ((owned.marks & RBI_TABLE_LOWERED) != 0 && outsiders &&
        !still_best(&best, build, owned.fate[owned.count - 1], slot_seed)) {
        return used + rank_slot(build, slot);
    }
    best_write(&best, build, slot);
    return used;
}

/** Notes for each old member that it is gone. @return how many of them owned something */
static uint32_t forget_all(struct rbi_table_build *build)
{
    uint32_t gone = 0;
    for (uint32_t i = 0; i < build->old->member_count; i++) {
        const struct rbi_table_member *was = &build->old->members[i];
        build->fates[i] = (struct rbi_table_fate){.now.index = RBI_TABLE_NONE,
                                                  .seed = rbi_hrw_seed(was->instance),
                                                  .weight = was->weight,
                                                  .marks = RBI_TABLE_LOWERED};
        gone += was->weight != 0;
    }
    return gone;
}

/** Notes what became of the old members, and who is raised. @return how many members differ */
static uint32_t compare(struct rbi_table_build *build)
{
    const struct rbi_table *old = build->old;
    uint32_t changes = forget_all(build);
    uint32_t was = 0;
    for (uint32_t i = 0; i < build->candidate_count; i++) {
        const struct rbi_table_candidate *now = &build->candidates[i];
        const int32_t instance = build->members[now->index].instance;
        while (was < old->member_count && old->members[was].instance < instance) {
            was++;
        }
        const bool known = was < old->member_count && old->members[was].instance == instance &&
                           old->members[was].weight != 0;
        const uint32_t before = known ? old->members[was].weight : 0;
        if (now->weight > before) {
            build->raised[build->raised_count++] = *now;
        }
        if (known) {
            build->fates[was].now = *now;
            build->fates[was].marks = now->weight < before   ? RBI_TABLE_LOWERED
                                      : now->weight > before ? RBI_TABLE_RAISED
                                                             : 0;
        }
        changes += known ? 0 : 1;
        changes -= known && now->weight == before; /* it was counted as gone */
    }
    return changes;
}

void rbi_table_rank_begin(struct rbi_table_build *build)
{
    const struct rbi_table *old = build->old;
    const bool alike = old != NULL && old->shape.kind == RBI_TABLE_HRW && old->shape.strict == 0 &&
                       build->shape.strict == 0 && old->shape.slots == build->shape.slots &&
                       old->shape.ranks == build->shape.ranks;
    build->phase = RBI_TABLE_RANK;
    /* With half of them changed, most slots would be scored anew after all. */
    if (alike && compare(build) <= build->candidate_count / 2) {
        build->phase = RBI_TABLE_UPDATE;
    }
}

uint32_t rbi_table_rank_step(struct rbi_table_build *build, uint32_t budget)
{
    uint32_t used = 0;
    RBI_ASSERT(build->shape.ranks >= 1 && build->shape.ranks <= RBI_TABLE_RANKS_MAX);
    while (build->slot < build->shape.slots && used < budget) {
        used += build->phase == RBI_TABLE_RANK ? rank_slot(build, build->slot)
                                               : update_slot(build, build->slot);
        build->slot++;
    }
    if (build->slot == build->shape.slots) {
        build->slot = 0;
        build->phase = build->shape.strict != 0 ? RBI_TABLE_MATCH : RBI_TABLE_DONE;
    }
    return used;
}
