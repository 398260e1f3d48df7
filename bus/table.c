/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/table.c - slot tables: shape, name, and the order of a build's phases.
 */
#include "bus/table.h"

#include "bus/table_build.h"

#include <xxhash.h>

bool rbi_table_shape_valid(const struct rbi_table_shape *shape)
{
    if (shape->ranks < 1 || shape->ranks > RBI_TABLE_RANKS_MAX) {
        return false;
    }
    if (shape->kind == RBI_TABLE_MAGLEV) {
        return shape->slots == RBI_TABLE_SLOTS_MAGLEV && shape->strict == 0;
    }
    return shape->kind == RBI_TABLE_HRW && rbi_is_pow2(shape->slots) &&
           shape->slots >= RBI_TABLE_SLOTS_MIN && shape->slots <= RBI_TABLE_SLOTS_MAX &&
           shape->strict <= RBI_TABLE_STRICT_MAX;
}

/** Moves the entry at @p root down to its place in a heap with the largest instance on top. */
static void sift_down(struct rbi_table_member *members, unsigned root, unsigned count)
{
    const struct rbi_table_member moved = members[root];
    for (unsigned child = 2 * root + 1; child < count; child = 2 * root + 1) {
        if (child + 1 < count && members[child + 1].instance > members[child].instance) {
            child++;
        }
        if (members[child].instance <= moved.instance) {
            break;
        }
        members[root] = members[child];
        root = child;
    }
    members[root] = moved;
}

unsigned rbi_table_sort(struct rbi_table_member *members, unsigned count)
{
    for (unsigned i = count / 2; i > 0; i--) {
        sift_down(members, i - 1, count);
    }
    for (unsigned end = count; end > 1; end--) {
        const struct rbi_table_member largest = members[0];
        members[0] = members[end - 1];
        members[end - 1] = largest;
        sift_down(members, 0, end - 1);
    }
    unsigned kept = 0;
    for (unsigned i = 0; i < count; i++) {
        if (kept != 0 && members[kept - 1].instance == members[i].instance) {
            /* Which of them came first is an accident: the larger weight is not. */
            if (members[i].weight > members[kept - 1].weight) {
                members[kept - 1].weight = members[i].weight;
            }
            continue;
        }
        members[kept++] = members[i];
    }
    return kept;
}

uint64_t rbi_table_fingerprint(const struct rbi_table_shape *shape,
                               const struct rbi_table_member *members,
                               unsigned member_count)
{
    const uint32_t head[] = {shape->kind, shape->slots, shape->ranks, shape->strict, member_count};
    const uint64_t seed = XXH3_64bits(head, sizeof head);
    const uint64_t name = XXH3_64bits_withSeed(members, member_count * sizeof *members, seed);
    return name != 0 ? name : 1;
}

size_t rbi_table_owner_bytes(const struct rbi_table_shape *shape)
{
    return (size_t)shape->ranks * shape->slots * sizeof(uint16_t);
}

static size_t bytes_of(size_t count, size_t size)
{
    return rbi_align_up(count * size, 16);
}

size_t rbi_table_scratch_bytes(const struct rbi_table_shape *shape,
                               unsigned member_count,
                               unsigned old_count)
{
    size_t bytes = 2 * bytes_of(member_count, sizeof(struct rbi_table_candidate)) +
                   bytes_of(old_count, sizeof(struct rbi_table_fate));
    if (shape->kind == RBI_TABLE_MAGLEV) {
        bytes += bytes_of(member_count, sizeof(struct rbi_table_walker));
    } else if (shape->strict != 0) {
        bytes += rbi_table_strict_bytes(shape, member_count);
    }
    return bytes;
}

static void collect(struct rbi_table_build *build)
{
    for (uint32_t i = 0; i < build->member_count; i++) {
        const struct rbi_table_member *member = &build->members[i];
        RBI_ASSERT(i == 0 || build->members[i - 1].instance < member->instance);
        if (member->weight != 0) {
            build->candidates[build->candidate_count++] = (struct rbi_table_candidate){
                .seed = rbi_hrw_seed(member->instance), .weight = member->weight, .index = i};
        }
    }
}

void rbi_table_build_begin(struct rbi_table_build *build,
                           const struct rbi_table_shape *shape,
                           const struct rbi_table *old,
                           const struct rbi_table_member *members,
                           unsigned member_count,
                           uint16_t *owners,
                           void *scratch)
{
    RBI_ASSERT(rbi_table_shape_valid(shape) && member_count <= RBI_TABLE_MEMBERS_MAX);
    unsigned char *free_bytes = scratch;
    *build = (struct rbi_table_build){.shape = *shape,
                                      .members = members,
                                      .old = old,
                                      .owners = owners,
                                      .member_count = member_count};
    build->candidates = (struct rbi_table_candidate *)(void *)free_bytes;
    free_bytes += bytes_of(member_count, sizeof(struct rbi_table_candidate));
    build->raised = (struct rbi_table_candidate *)(void *)free_bytes;
    free_bytes += bytes_of(member_count, sizeof(struct rbi_table_candidate));
    build->fates = (struct rbi_table_fate *)(void *)free_bytes;
    free_bytes += bytes_of(old != NULL ? old->member_count : 0, sizeof(struct rbi_table_fate));
    collect(build);
    if (shape->kind == RBI_TABLE_MAGLEV) {
        rbi_table_maglev_begin(build, free_bytes);
        return;
    }
    rbi_table_rank_begin(build);
    if (shape->strict != 0) {
        rbi_table_strict_begin(build, free_bytes);
    }
}

bool rbi_table_build_step(struct rbi_table_build *build, uint32_t budget)
{
    uint32_t used = 0;
    do {
        const uint32_t left = budget > used ? budget - used : 1;
        switch ((enum rbi_table_phase)build->phase) {
        case RBI_TABLE_RANK:
        case RBI_TABLE_UPDATE:
            used += rbi_table_rank_step(build, left);
            break;
        case RBI_TABLE_MATCH:
        case RBI_TABLE_SEAT:
            used += rbi_table_strict_step(build, left);
            break;
        case RBI_TABLE_FILL:
        case RBI_TABLE_WIND:
        case RBI_TABLE_FOLLOW:
            used += rbi_table_maglev_step(build, left);
            break;
        case RBI_TABLE_DONE:
            return true;
        }
    } while (used < budget);
    return build->phase == RBI_TABLE_DONE;
}

struct rbi_table rbi_table_built(const struct rbi_table_build *build)
{
    RBI_ASSERT(build->phase == RBI_TABLE_DONE);
    return (struct rbi_table){.shape = build->shape,
                              .members = build->members,
                              .member_count = build->member_count,
                              .owners = build->owners};
}
