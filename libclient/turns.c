/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/turns.c - choice without a key: the balancer that the policy names (bus/balance.h)
 * over the links of a choice.
 */
#include "libclient/internal.h"

#include <errno.h>
#include <stdlib.h>

void rbi_turns_init(struct ringbus *bus, struct rbi_turns *turns)
{
    const uint64_t who = bus->self.cluster ^ (uint64_t)(uint32_t)bus->self.instance;
    turns->stale = true;
    rbi_balance_init(&turns->balance, who, rbi_random_below(bus, UINT64_MAX));
}

void rbi_turns_free(struct rbi_turns *turns)
{
    free(turns->ends);
    free(turns->members);
    free(turns->weights);
    free(turns->unhandled);
    free(turns->memory);
}

static bool reserve(struct rbi_turns *turns, unsigned count)
{
    if (count <= turns->room) {
        return true;
    }
    rbi_turns_free(turns);
    turns->memory = NULL;
    turns->memory_bytes = 0;
    turns->ends = calloc(count, sizeof *turns->ends);
    turns->members = calloc(count, sizeof *turns->members);
    turns->weights = calloc(count, sizeof *turns->weights);
    turns->unhandled = calloc(count, sizeof *turns->unhandled);
    const bool whole = turns->ends != NULL && turns->members != NULL && turns->weights != NULL &&
                       turns->unhandled != NULL;
    turns->room = whole ? count : 0;
    return turns->room == count;
}

const rbi_au64 *rbi_turns_load(const struct rbi_end *end)
{
    const struct rbi_page *page = end->loop ? NULL : end->peer_page.base;
    return page != NULL ? &page->load_depth : rbi_least_unknown;
}
_Static_assert(offsetof(struct rbi_page, load_ewma_ns) ==
                   offsetof(struct rbi_page, load_depth) + sizeof(rbi_au64),
               "side by side, as a balancer wants them");

/*
 * A receiver that is inside a handler says nothing of what has come since: what we have sent and it
 * has not begun waits there in any case.
 */
static void look_at(struct rbi_turns *turns, unsigned i)
{
    struct rbi_least_member *member = &turns->members[i];
    struct rbi_unhandled *unhandled = &turns->unhandled[i];
    const uint64_t depth = rbi_load_rlx(&rbi_turns_load(turns->ends[i])[RBI_LEAST_DEPTH]);
    unhandled->count += member->unread - unhandled->shown;
    if (unhandled->count != 0) {
        unhandled->count = rbi_bound_left(turns->ends[i], unhandled->count, &unhandled->from);
    }
    unhandled->shown = unhandled->count > depth ? unhandled->count - (uint32_t)depth : 0;
    member->unread = unhandled->shown;
}

static void copy_loads(struct rbi_turns *turns)
{
    for (unsigned i = 0; i < turns->count; i++) {
        look_at(turns, i);
        if (turns->count <= RBI_LOADS_COPIED) {
            const rbi_au64 *load = rbi_turns_load(turns->ends[i]);
            rbi_store_rlx(&turns->copies[i][RBI_LEAST_DEPTH], rbi_load_rlx(&load[RBI_LEAST_DEPTH]));
            rbi_store_rlx(&turns->copies[i][RBI_LEAST_EWMA], rbi_load_rlx(&load[RBI_LEAST_EWMA]));
        }
    }
}

/* Somebody suspect has his turn only where everybody is. */
static void collect(struct rbi_turns *turns, const struct rbi_choice *choice, bool suspects)
{
    for (unsigned i = 0; i < choice->ready_count; i++) {
        struct rbi_end *end = choice->ready[i];
        if ((end->fsm.suspect || end->avoided) && !suspects) {
            continue;
        }
        turns->ends[turns->count] = end;
        turns->members[turns->count] =
            (struct rbi_least_member){.load = rbi_turns_load(end), .weight = choice->weights[i]};
        turns->unhandled[turns->count] =
            (struct rbi_unhandled){.from = end->loop ? 0 : end->tx.pos};
        turns->count++;
    }
    for (unsigned i = 0; turns->count <= RBI_LOADS_COPIED && i < turns->count; i++) {
        turns->members[i].load = turns->copies[i];
    }
}

/* malloc() aligns to 16 bytes on every machine with 64-bit words, as the balancer wants. */
static int set_up(struct rbi_turns *turns, const struct rbi_balance_policy *policy)
{
    struct rbi_balance_plan plan;
    rbi_balance_plan(&plan, policy, turns->members, turns->count, turns->weights);
    void *scratch = malloc(plan.scratch_bytes + 1);
    if (plan.bytes > turns->memory_bytes || turns->memory == NULL) {
        free(turns->memory);
        turns->memory_bytes = rbi_align_up(plan.bytes + 1, 16);
        turns->memory = malloc(turns->memory_bytes);
    }
    if (scratch != NULL && turns->memory != NULL) {
        rbi_balance_build(&turns->balance, &plan, turns->memory, scratch);
    }
    free(scratch);
    return scratch != NULL && turns->memory != NULL ? 0 : -ENOMEM;
}

int rbi_turns_make(const struct rbi_cluster *cluster, struct rbi_choice *choice)
{
    struct rbi_turns *turns = &choice->turns;
    const uint16_t stays = turns->balance.choice;
    const struct rbi_end *sticky = stays < turns->count ? turns->ends[stays] : NULL;
    if (!reserve(turns, choice->ready_count)) {
        return -ENOMEM;
    }
    turns->count = 0;
    collect(turns, choice, false);
    if (turns->count == 0) {
        collect(turns, choice, true);
    }
    copy_loads(turns);
    if (set_up(turns, &rbi_cluster_policy(cluster)->balance) != 0) {
        turns->count = 0;
        return -ENOMEM;
    }
    for (unsigned i = 0; sticky != NULL && i < turns->count; i++) {
        if (turns->ends[i] == sticky) {
            rbi_balance_stay(&turns->balance, (uint16_t)i);
        }
    }
    turns->stale = false;
    return 0;
}

void rbi_turns_look(struct ringbus *bus)
{
    for (unsigned i = 0; i < bus->cluster_count; i++) {
        const struct rbi_cluster *cluster = bus->clusters[i];
        if ((cluster->dispatch_stale & RBI_DISPATCH_STALE) != 0) {
            continue; /* some of their links may be no more */
        }
        for (unsigned c = 0; c < cluster->choice_count; c++) {
            struct rbi_choice *choice = cluster->choices[c];
            struct rbi_turns *turns = &choice->turns;
            if (choice->stale) {
                continue;
            }
            if (turns->picked && !turns->stale && turns->balance.keyless == RBI_BALANCE_LEAST) {
                turns->picked = false;
                copy_loads(turns);
            }
            rbi_bound_look(choice);
        }
    }
}
