/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/balance_least.c - who has the least to do.
 */
#include "bus/balance_least.h"

#include "bus/u128.h"

const rbi_au64 rbi_least_unknown[2];

#define STEP_MAX 22U /* from 4 ms on a message is slow, however slow */

/** What a member has to do, read once: receivers write what they like. */
struct todo {
    uint64_t waiting;
    unsigned step; /* messages take 2^step ns; 0: not known */
    uint32_t weight;
};

size_t rbi_least_scratch_bytes(unsigned count)
{
    return rbi_align_up(count * sizeof(uint32_t), 8) + rbi_alias_scratch_bytes(count);
}

void rbi_least_build(struct rbi_least *least,
                     struct rbi_least_member *members,
                     unsigned count,
                     struct rbi_alias_column *columns,
                     void *scratch)
{
    uint32_t *weights = scratch;
    least->members = members;
    least->even = true;
    for (unsigned i = 0; i < count; i++) {
        weights[i] = members[i].weight;
        least->even = least->even && weights[i] == weights[0];
    }
    rbi_alias_build(&least->alias, columns, weights, count,
                    (unsigned char *)scratch + rbi_align_up(count * sizeof *weights, 8));
}

static inline struct todo todo_of(const struct rbi_least_member *member)
{
    const uint64_t ewma_ns = rbi_load_rlx(&member->load[RBI_LEAST_EWMA]);
    const unsigned step = 63U - (unsigned)__builtin_clzll(ewma_ns | 1);
    return (struct todo){.waiting = rbi_least_waiting(member),
                         .step = step < STEP_MAX ? step : STEP_MAX,
                         .weight = member->weight};
}

/** Whether @p a has more to do than @p b (above 0), less, or as much (0). */
static inline int compare(const struct todo *a, const struct todo *b)
{
    const bool timed = a->step != 0 && b->step != 0; /* else by what waits alone */
    const uint64_t cost_a = a->waiting << (timed ? a->step : 0);
    const uint64_t cost_b = b->waiting << (timed ? b->step : 0);
    const rbi_u128 left = (rbi_u128)cost_a * b->weight;
    const rbi_u128 right = (rbi_u128)cost_b * a->weight;
    return (left > right) - (left < right);
}

uint16_t rbi_least_scan(struct rbi_least *least)
{
    uint16_t best = RBI_PICK_NONE;
    struct todo best_todo = {0};
    uint64_t tied = 0; /* weight of those that are as good as the best */
    for (uint32_t i = 0; i < least->alias.count; i++) {
        const struct todo todo = todo_of(&least->members[i]);
        if (todo.weight == 0) {
            continue;
        }
        const int order = best == RBI_PICK_NONE ? -1 : compare(&todo, &best_todo);
        if (order > 0) {
            continue;
        }
        tied = (order < 0 ? 0 : tied) + todo.weight;
        /* Each of the tied has become and stayed the best with its share of their weight. */
        const rbi_u128 drawn =
            order < 0 ? 0 : (rbi_u128)(rbi_random_next(&least->random) >> 32) * tied;
        if ((uint64_t)(drawn >> 32) < todo.weight) {
            best = (uint16_t)i;
            best_todo = todo;
        }
    }
    return best;
}

uint16_t rbi_least_of_two(struct rbi_least *least)
{
    const uint64_t number = rbi_random_next(&least->random);
    uint32_t a;
    uint32_t b;
    if (RBI_LIKELY(least->even)) {
        a = rbi_random_scale((uint32_t)(number >> 32), least->alias.count);
        b = rbi_random_scale((uint32_t)number, least->alias.count - 1);
        b += b >= a;
    } else {
        a = rbi_alias_draw(&least->alias, number);
        b = rbi_alias_draw(&least->alias, rbi_random_next(&least->random));
        if (a == b) { /* a heavy one: one more try for an alternative */
            b = rbi_alias_draw(&least->alias, rbi_random_next(&least->random));
        }
    }
    const struct todo first = todo_of(&least->members[a]);
    const struct todo second = todo_of(&least->members[b]);
    return (uint16_t)(compare(&first, &second) <= 0 ? a : b);
}
