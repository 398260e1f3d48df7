/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/table_maglev.c - the table of Maglev (Eisenbud et al. 2016): each member fills free slots
 * in the order of a permutation of its own, in turns, by weight. The lower ranks of a slot are
 * the next other owners in the slots that follow it.
 */
#include "bus/table_build.h"

#define SLOTS RBI_TABLE_SLOTS_MAGLEV

void rbi_table_maglev_begin(struct rbi_table_build *build, unsigned char *scratch)
{
    struct rbi_table_filling *filling = &build->filling;
    filling->walkers = (struct rbi_table_walker *)(void *)scratch;
    filling->turn = 1;
    for (uint32_t i = 0; i < build->candidate_count; i++) {
        const struct rbi_table_candidate *candidate = &build->candidates[i];
        const uint64_t skip = rbi_hrw_mix(candidate->seed ^ UINT64_C(0x94d049bb133111eb));
        filling->walkers[i] =
            (struct rbi_table_walker){.weight = candidate->weight,
                                      .index = candidate->index,
                                      .at = (uint32_t)((candidate->seed >> 32) * SLOTS >> 32),
                                      .skip = 1 + (uint32_t)((skip >> 32) * (SLOTS - 1) >> 32)};
        if (candidate->weight > filling->weight_max) {
            filling->weight_max = candidate->weight;
        }
    }
    for (size_t i = 0; i < (size_t)build->shape.ranks * SLOTS; i++) {
        build->owners[i] = RBI_TABLE_NONE;
    }
    for (uint32_t i = 0; i < RBI_TABLE_RANKS_MAX; i++) {
        filling->recent[i] = RBI_TABLE_NONE;
    }
    build->phase = build->candidate_count != 0 ? RBI_TABLE_FILL : RBI_TABLE_DONE;
}

static inline void step(struct rbi_table_walker *walker)
{
    walker->at += walker->skip;
    walker->at -= walker->at >= SLOTS ? SLOTS : 0;
}

/** One walker's turn, which places it or not. The prime makes each permutation reach all slots. */
static uint32_t fill(struct rbi_table_build *build)
{
    struct rbi_table_filling *filling = &build->filling;
    struct rbi_table_walker *walker = &filling->walkers[filling->next];
    uint32_t used = 1;
    if (filling->turn * walker->weight >= walker->due) {
        walker->due += filling->weight_max;
        while (build->owners[walker->at] != RBI_TABLE_NONE) {
            step(walker);
            used++;
        }
        build->owners[walker->at] = (uint16_t)walker->index;
        step(walker);
        build->slot++;
    }
    if (++filling->next == build->candidate_count) {
        filling->next = 0;
        filling->turn++;
    }
    return used;
}

/** Moves the owner of a slot to the front of those seen last, which then are its ranks. */
static void recall(struct rbi_table_filling *filling, uint16_t owner)
{
    uint16_t moved = owner;
    for (uint32_t i = 0; i < RBI_TABLE_RANKS_MAX; i++) {
        const uint16_t was = filling->recent[i];
        filling->recent[i] = moved;
        if (was == owner) {
            return;
        }
        moved = was;
    }
}

uint32_t rbi_table_maglev_step(struct rbi_table_build *build, uint32_t budget)
{
    struct rbi_table_filling *filling = &build->filling;
    uint32_t used = 0;
    while (build->phase == RBI_TABLE_FILL && used < budget) {
        used += fill(build);
        if (build->slot == SLOTS) {
            build->phase = build->shape.ranks > 1 ? RBI_TABLE_WIND : RBI_TABLE_DONE;
        }
    }
    /* Backwards, once to know who follows the last slot, and once to write. */
    while (build->phase == RBI_TABLE_WIND && used < budget) {
        recall(filling, build->owners[--build->slot]);
        used++;
        if (build->slot == 0) {
            build->phase = RBI_TABLE_FOLLOW;
            build->slot = SLOTS;
        }
    }
    while (build->phase == RBI_TABLE_FOLLOW && used < budget) {
        const uint32_t slot = --build->slot;
        recall(filling, build->owners[slot]);
        for (uint32_t rank = 1; rank < build->shape.ranks; rank++) {
            build->owners[(size_t)rank * SLOTS + slot] = filling->recent[rank];
        }
        used++;
        if (slot == 0) {
            build->phase = RBI_TABLE_DONE;
        }
    }
    return used;
}
