/* SPDX-License-Identifier: Apache-2.0 */
#include "libclient/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Limits that so much of what waits has been added to since are computed anew. */
#define AGAIN_PART 16U

void rbi_bound_free(struct rbi_bound *bound)
{
    free(bound->members);
    free(bound->limits);
    free(bound->from);
    memset(bound, 0, sizeof *bound);
}

static bool reserve(struct rbi_bound *bound, unsigned count)
{
    if (count <= bound->room && bound->members != NULL) {
        return true;
    }
    rbi_bound_free(bound);
    bound->members = calloc(count + 1U, sizeof *bound->members);
    bound->limits = calloc(count + 1U, sizeof *bound->limits);
    bound->from = calloc(count + 1U, sizeof *bound->from);
    if (bound->members == NULL || bound->limits == NULL || bound->from == NULL) {
        rbi_bound_free(bound);
        return false;
    }
    bound->room = count;
    return true;
}

/* What waits on all, as far as we know, and what each may have of it. */
static void refresh(struct rbi_keyed *keyed)
{
    struct rbi_bound *bound = &keyed->bound;
    uint64_t waiting = 0;
    for (unsigned i = 0; i < keyed->table.member_count; i++) {
        waiting += rbi_least_waiting(&bound->members[i]);
    }
    bound->sent = 0;
    bound->again = waiting / AGAIN_PART + 1;
    rbi_bound_refresh(bound->limits, bound->members, keyed->table.member_count, bound->percent);
}

int rbi_bound_make(struct rbi_choice *choice, uint32_t percent)
{
    struct rbi_keyed *keyed = &choice->keyed;
    struct rbi_bound *bound = &keyed->bound;
    const unsigned count = keyed->table.member_count;
    if (!reserve(bound, count)) {
        return -ENOMEM;
    }
    bound->percent = percent;
    for (unsigned i = 0; i < count; i++) {
        const struct rbi_end *end = keyed->ends[i];
        /* Who cannot be sent to carries nothing: its share is the others'. */
        bound->members[i] =
            (struct rbi_least_member){.load = end != NULL ? rbi_turns_load(end) : rbi_least_unknown,
                                      .weight = end != NULL ? keyed->members[i].weight : 0};
        bound->from[i] = end != NULL && !end->loop ? end->tx.pos : 0;
    }
    refresh(keyed);
    return 0;
}

/*
 * Those are left whose part of the lane is not handled yet. Which that is says begun_pos, at once
 * and roughly; read_pos is said by batches only. Untrusted: a position that cannot be changes
 * nothing.
 */
uint32_t rbi_bound_left(const struct rbi_end *end, uint32_t count, uint64_t *from)
{
    if (end->loop) {
        return 0;
    }
    const uint64_t bytes = end->tx.pos - *from;
    const uint64_t begun = rbi_load_rlx(end->peer_begun_pos) & ~RBI_SIDE_BETWEEN;
    const uint64_t left = end->tx.pos - begun;
    if (left == 0) {
        *from = begun;
        return 0; /* also those that were counted, and found no room */
    }
    if (left >= bytes) {
        return count;
    }
    *from = begun;
    return (uint32_t)rbi_max_u64(count * left / bytes, 1);
}

static void recount(struct rbi_keyed *keyed)
{
    struct rbi_bound *bound = &keyed->bound;
    for (unsigned i = 0; i < keyed->table.member_count; i++) {
        struct rbi_least_member *member = &bound->members[i];
        if (keyed->ends[i] != NULL && member->unread != 0) {
            member->unread = rbi_bound_left(keyed->ends[i], member->unread, &bound->from[i]);
        }
    }
    refresh(keyed);
}

void rbi_bound_look(struct rbi_choice *choice)
{
    struct rbi_bound *bound = &choice->keyed.bound;
    if (bound->picked && choice->keyed.stale == RBI_KEYED_BOUND) {
        bound->picked = false;
        recount(&choice->keyed);
    }
}

struct rbi_end *rbi_bound_end(struct rbi_choice *choice, uint64_t key, bool *away)
{
    struct rbi_keyed *keyed = &choice->keyed;
    struct rbi_bound *bound = &keyed->bound;
    const struct rbi_table_shape *shape = &keyed->table.shape;
    const uint32_t slot = rbi_table_slot(key, shape->slots);
    const uint16_t owner = keyed->owners[slot];
    *away = false;
    if (owner >= keyed->table.member_count || keyed->ends[owner] == NULL) {
        return NULL; /* load is not why: on_shield and rehash_delay say what becomes of it */
    }
    /* A key does not leave its home for what we only believe to wait there. */
    if (rbi_least_waiting(&bound->members[owner]) > bound->limits[owner] &&
        bound->sent >= bound->again) {
        recount(keyed);
    }
    uint16_t at = rbi_bound_pick(keyed->owners, shape, slot, bound->members, bound->limits);
    if (at >= keyed->table.member_count || keyed->ends[at] == NULL) {
        at = owner; /* busy, and there all the same */
    }
    bound->picked = true;
    bound->sent++;
    bound->members[at].unread++;
    *away = at != owner;
    return keyed->ends[at];
}
