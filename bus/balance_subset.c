/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/balance_subset.c - which of many instances a caller links to. Every constant here decides
 * who links to whom, on every host and in every release.
 */
#include "bus/balance_subset.h"

#include "bus/hrw_score.h"

/** The chosen so far are a heap, the one that goes first on top. */
struct choice {
    uint64_t caller_seed;
    const struct rbi_table_member *members;
    uint16_t *heap;
    unsigned count;
};

static bool worse(const struct choice *choice, uint16_t a, uint16_t b)
{
    const uint64_t hash_a =
        rbi_hrw_hash(rbi_hrw_seed(choice->members[a].instance), choice->caller_seed);
    const uint64_t hash_b =
        rbi_hrw_hash(rbi_hrw_seed(choice->members[b].instance), choice->caller_seed);
    return hash_a != hash_b ? hash_a < hash_b : a > b;
}

static void add(struct choice *choice, uint16_t member)
{
    unsigned at = choice->count++;
    while (at > 0 && worse(choice, member, choice->heap[(at - 1) / 2])) {
        choice->heap[at] = choice->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    choice->heap[at] = member;
}

static void replace_worst(struct choice *choice, uint16_t member)
{
    unsigned at = 0;
    for (unsigned child = 1; child < choice->count; child = 2 * at + 1) {
        if (child + 1 < choice->count &&
            worse(choice, choice->heap[child + 1], choice->heap[child])) {
            child++;
        }
        if (!worse(choice, choice->heap[child], member)) {
            break;
        }
        choice->heap[at] = choice->heap[child];
        at = child;
    }
    choice->heap[at] = member;
}

/** Ascending. */
static void sort(uint16_t *indices, unsigned count)
{
    for (unsigned gap = count / 2; gap > 0; gap /= 2) { /* Shell's: few, and nearly no code */
        for (unsigned i = gap; i < count; i++) {
            const uint16_t moved = indices[i];
            unsigned at = i;
            for (; at >= gap && indices[at - gap] > moved; at -= gap) {
                indices[at] = indices[at - gap];
            }
            indices[at] = moved;
        }
    }
}

unsigned rbi_subset_choose(uint64_t caller,
                           const struct rbi_table_member *members,
                           unsigned member_count,
                           unsigned size,
                           uint16_t *chosen)
{
    RBI_ASSERT(member_count <= RBI_TABLE_MEMBERS_MAX);
    struct choice choice = {.caller_seed = rbi_hrw_mix(caller + UINT64_C(0xd1342543de82ef95)),
                            .members = members,
                            .heap = chosen};
    for (unsigned i = 0; i < member_count; i++) {
        if (members[i].weight == 0) {
            continue;
        }
        if (size == 0 || choice.count < size) {
            add(&choice, (uint16_t)i);
        } else if (worse(&choice, choice.heap[0], (uint16_t)i)) {
            replace_worst(&choice, (uint16_t)i);
        }
    }
    sort(chosen, choice.count);
    return choice.count;
}
