/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/shield.c - the members of a cluster, what is counted of them, and the sweep: first time acts
 * on each member, then the rules judge, then the cap decides who of those that trip may go.
 */
#include "bus/shield_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_MIN      8U
#define LATENCY_SHIFT 2U /* a sweep's mean moves the smoothed one by a quarter */
#define STEP_NS       (RBI_WINDOW_STEP_MS * RBI_NS_PER_MS)

const char *rbi_shield_reason_name(enum rbi_shield_reason reason)
{
    static const char *const names[] = {
        "none",      "window",       "consecutive",   "slow",         "deviation",
        "ping lost", "probe failed", "probe expired", "inconclusive", "open time over",
        "probes ok", "idle",         "ramp",          "cap",          "median",
        "restart",   "gone",         "unshield",      "policy",       "local"};
    return (unsigned)reason < RBI_ARRAY_SIZE(names) ? names[reason] : "unknown";
}

uint64_t rbi_shield_step_of(const struct rbi_shield_cluster *cluster, uint64_t now_ns)
{
    return now_ns > cluster->begin_ns ? (now_ns - cluster->begin_ns) / STEP_NS : 0;
}

void rbi_shield_init(struct rbi_shield_cluster *cluster,
                     const struct rbi_shield_policy *policy,
                     const struct rbi_panic_policy *panic)
{
    *cluster = (struct rbi_shield_cluster){.policy = *policy, .panic_policy = *panic};
    rbi_shield_rules(&cluster->rules, policy);
}

void rbi_shield_deinit(struct rbi_shield_cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->count; i++) {
        free(cluster->members[i]);
    }
    free(cluster->members);
    free(cluster->rates);
    *cluster = (struct rbi_shield_cluster){0};
}

void rbi_shield_set_policy(struct rbi_shield_cluster *cluster,
                           const struct rbi_shield_policy *policy,
                           const struct rbi_panic_policy *panic,
                           const struct rbi_shield_turn *turn)
{
    cluster->panic_policy = *panic;
    cluster->busy = cluster->count > 0; /* the next sweep sees what it makes of panic */
    if (memcmp(&cluster->policy, policy, sizeof *policy) == 0) {
        return;
    }
    cluster->policy = *policy;
    rbi_shield_rules(&cluster->rules, policy);
    for (uint32_t i = 0; i < cluster->count; i++) {
        rbi_shield_clear(cluster, cluster->members[i], RBI_SHIELD_BECAUSE_POLICY, turn);
    }
}

/* ---- members ---------------------------------------------------------------------------- */

/** Where @p instance is or would be. */
static uint32_t place_of(const struct rbi_shield_cluster *cluster, int32_t instance)
{
    uint32_t low = 0;
    uint32_t high = cluster->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (cluster->members[middle]->instance < instance) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct rbi_shield_member *rbi_shield_member(const struct rbi_shield_cluster *cluster,
                                            int32_t instance)
{
    const uint32_t place = place_of(cluster, instance);
    const bool found = place < cluster->count && cluster->members[place]->instance == instance;
    return found ? cluster->members[place] : NULL;
}

const struct rbi_shield_member *rbi_shield_find(const struct rbi_shield_cluster *cluster,
                                                int32_t instance)
{
    return rbi_shield_member(cluster, instance);
}

/** @retval 0; -ENOMEM, and both arrays hold at least what they did */
static int make_room(struct rbi_shield_cluster *cluster)
{
    if (cluster->count < cluster->room) {
        return 0;
    }
    const uint32_t room = cluster->room == 0 ? ROOM_MIN : cluster->room * 2;
    void *members = realloc(cluster->members, room * sizeof *cluster->members);
    if (members == NULL) {
        return -ENOMEM;
    }
    cluster->members = members;
    void *rates = realloc(cluster->rates, room * sizeof *cluster->rates);
    if (rates == NULL) {
        return -ENOMEM;
    }
    cluster->rates = rates;
    cluster->room = room;
    return 0;
}

static int
add_member(struct rbi_shield_cluster *cluster, int32_t instance, struct rbi_shield_member **out)
{
    if (cluster->count == RBI_SHIELD_MEMBERS_MAX) {
        return 1;
    }
    if (make_room(cluster) != 0) {
        return -ENOMEM;
    }
    struct rbi_shield_member *member = calloc(1, sizeof *member);
    if (member == NULL) {
        return -ENOMEM;
    }
    member->instance = instance;
    const uint32_t place = place_of(cluster, instance);
    memmove(&cluster->members[place + 1], &cluster->members[place],
            (cluster->count - place) * sizeof *cluster->members);
    cluster->members[place] = member;
    cluster->count++;
    *out = member;
    return 0;
}

int rbi_shield_put(struct rbi_shield_cluster *cluster,
                   int32_t instance,
                   uint32_t incarnation,
                   uint32_t weight,
                   const struct rbi_shield_turn *turn)
{
    struct rbi_shield_member *member = rbi_shield_member(cluster, instance);
    if (member == NULL) {
        const int r = add_member(cluster, instance, &member);
        if (r != 0) {
            return r;
        }
        member->incarnation = incarnation;
        rbi_shield_clear(cluster, member, RBI_SHIELD_BECAUSE_NONE, turn);
    } else if (member->incarnation != incarnation) {
        rbi_shield_clear(cluster, member, RBI_SHIELD_BECAUSE_RESTART, turn);
        member->incarnation = incarnation;
    }
    cluster->weight = cluster->weight - member->weight + weight;
    member->weight = weight;
    cluster->busy = true;
    return 0;
}

void rbi_shield_remove(struct rbi_shield_cluster *cluster,
                       int32_t instance,
                       const struct rbi_shield_turn *turn)
{
    struct rbi_shield_member *member = rbi_shield_member(cluster, instance);
    if (member == NULL) {
        return;
    }
    rbi_shield_clear(cluster, member, RBI_SHIELD_BECAUSE_GONE, turn);
    const uint32_t place = place_of(cluster, instance);
    cluster->weight -= member->weight;
    cluster->count--;
    memmove(&cluster->members[place], &cluster->members[place + 1],
            (cluster->count - place) * sizeof *cluster->members);
    free(member);
    cluster->busy = true;
}

int rbi_shield_unshield(struct rbi_shield_cluster *cluster,
                        int32_t instance,
                        const struct rbi_shield_turn *turn)
{
    struct rbi_shield_member *member = rbi_shield_member(cluster, instance);
    if (member == NULL) {
        return 1;
    }
    rbi_shield_clear(cluster, member, RBI_SHIELD_BECAUSE_UNSHIELD, turn);
    cluster->busy = true;
    return 0;
}

/* ---- counts ----------------------------------------------------------------------------- */

void rbi_shield_count(struct rbi_shield_cluster *cluster,
                      int32_t instance,
                      uint32_t incarnation,
                      const struct rbi_shield_outcomes *outcomes)
{
    struct rbi_shield_member *member = rbi_shield_member(cluster, instance);
    const uint32_t local = cluster->rules.split != 0 ? outcomes->local : 0;
    if (member == NULL || member->incarnation != incarnation ||
        (outcomes->ok == 0 && outcomes->fail == 0 && local == 0)) {
        return;
    }
    const struct rbi_tally tally = {outcomes->ok, outcomes->fail, outcomes->slow, local};
    rbi_tally_add(&member->pending, &tally);
    member->pending_latency_ns += outcomes->latency_ns;
    if (outcomes->ok > 0) {
        const uint64_t tail = rbi_min_u64(outcomes->streak, outcomes->fail);
        member->pending_tail = (uint32_t)rbi_min_u64(member->pending_tail, tail);
    }
    cluster->busy = true;
}

/** What the calls since the last sweep make of the streak and the mean. */
static void absorb_calls(struct rbi_shield_member *member)
{
    const struct rbi_tally *pending = &member->pending;
    const uint64_t calls = rbi_tally_calls(pending);
    const uint64_t streak = (uint64_t)member->streak + pending->fail;
    member->streak =
        pending->ok > 0 ? member->pending_tail : (uint32_t)rbi_min_u64(streak, UINT32_MAX);
    const uint64_t mean_us = rbi_min_u64(member->pending_latency_ns / calls / 1000, UINT32_MAX);
    const int64_t away = (int64_t)mean_us - (int64_t)member->latency_us;
    member->latency_us = member->latency_us == 0
                             ? (uint32_t)mean_us
                             : (uint32_t)(member->latency_us + away / (1 << LATENCY_SHIFT));
}

/** What came since the last sweep goes into the windows. */
static void absorb(struct rbi_shield_member *member, uint64_t step)
{
    const struct rbi_tally *pending = &member->pending;
    if (rbi_tally_attempts(pending) == 0) {
        return;
    }
    if (rbi_tally_calls(pending) > 0) {
        absorb_calls(member);
    }
    rbi_window_add(&member->window, step, pending);
    member->pending = (struct rbi_tally){0};
    member->pending_latency_ns = 0;
    member->pending_tail = UINT32_MAX;
}

/* ---- sweep ------------------------------------------------------------------------------ */

static uint64_t shielded_weight(const struct rbi_shield_cluster *cluster)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < cluster->count; i++) {
        const struct rbi_shield_member *member = cluster->members[i];
        sum += rbi_shield_serves(member) ? 0 : rbi_shield_weight(cluster, member);
    }
    return sum;
}

static bool within_cap(const struct rbi_shield_cluster *cluster, uint64_t shielded)
{
    return cluster->count > 1 &&
           shielded * 100 <= rbi_shield_total(cluster) * cluster->rules.max_percent;
}

/** Members that left, or weights that changed, may have made too much of what is shielded. */
static void release(struct rbi_shield_cluster *cluster, const struct rbi_shield_turn *turn)
{
    for (;;) {
        struct rbi_shield_member *longest = NULL;
        for (uint32_t i = 0; i < cluster->count; i++) {
            struct rbi_shield_member *member = cluster->members[i];
            const bool better = longest == NULL || member->shielded_ns < longest->shielded_ns;
            longest = !rbi_shield_serves(member) && better ? member : longest;
        }
        if (longest == NULL || within_cap(cluster, shielded_weight(cluster))) {
            return;
        }
        rbi_shield_close(cluster, longest, RBI_SHIELD_BECAUSE_CAP, turn);
    }
}

static void spare(struct rbi_shield_member *member,
                  enum rbi_shield_reason reason,
                  const struct rbi_shield_turn *turn)
{
    const bool told = member->spared != RBI_SHIELD_BECAUSE_NONE;
    member->spared = reason;
    if (!told && reason != RBI_SHIELD_BECAUSE_NONE) {
        struct rbi_shield_event event = member->cause;
        event.kind = RBI_SHIELD_SPARED;
        event.reason = reason;
        event.instance = member->instance;
        event.incarnation = member->incarnation;
        rbi_shield_emit(turn, &event);
    }
}

/** The worst of those that a rule blames, and nothing but the cap may save. */
static struct rbi_shield_member *worst(const struct rbi_shield_cluster *cluster)
{
    struct rbi_shield_member *found = NULL;
    for (uint32_t i = 0; i < cluster->count; i++) {
        struct rbi_shield_member *member = cluster->members[i];
        if (rbi_shield_serves(member) && member->severity > 0 &&
            (found == NULL || member->severity > found->severity ||
             (member->severity == found->severity && member->cause.bad > found->cause.bad))) {
            found = member;
        }
    }
    return found;
}

static void eject(struct rbi_shield_cluster *cluster, const struct rbi_shield_turn *turn)
{
    uint64_t shielded = shielded_weight(cluster);
    for (;;) {
        struct rbi_shield_member *member = worst(cluster);
        if (member == NULL) {
            break;
        }
        const uint64_t weight = rbi_shield_weight(cluster, member);
        member->severity = 0; /* once */
        if (within_cap(cluster, shielded + weight)) {
            shielded += weight;
            rbi_shield_open(cluster, member, member->cause.reason, true, turn);
        } else {
            spare(member, RBI_SHIELD_BECAUSE_CAP, turn);
        }
    }
}

/** Those that no longer trip are not spared; those that only the median saved are. */
static void settle_spared(struct rbi_shield_cluster *cluster, const struct rbi_shield_turn *turn)
{
    for (uint32_t i = 0; i < cluster->count; i++) {
        struct rbi_shield_member *member = cluster->members[i];
        if (member->tripped == 0) {
            spare(member, RBI_SHIELD_BECAUSE_NONE, turn);
        } else if (rbi_shield_serves(member) && member->severity == 0) {
            spare(member, RBI_SHIELD_BECAUSE_MEDIAN, turn);
        }
    }
}

static void judge_panic(struct rbi_shield_cluster *cluster, const struct rbi_shield_turn *turn)
{
    uint64_t healthy = 0;
    cluster->failing = 0;
    for (uint32_t i = 0; i < cluster->count; i++) {
        const struct rbi_shield_member *member = cluster->members[i];
        cluster->failing += member->tripped != 0;
        healthy += rbi_shield_serves(member) && member->tripped == 0
                       ? rbi_shield_weight(cluster, member)
                       : 0;
    }
    const uint64_t total = rbi_shield_total(cluster);
    const enum rbi_panic_change changed =
        rbi_panic_step(&cluster->panic, &cluster->panic_policy, healthy, total);
    if (changed != RBI_PANIC_SAME) {
        const struct rbi_shield_event event = {
            .kind = changed == RBI_PANIC_ENTERED ? RBI_SHIELD_PANIC : RBI_SHIELD_PANIC_OVER,
            .healthy = total != 0 ? (uint32_t)(healthy * 100 / total) : 0};
        rbi_shield_emit(turn, &event);
    }
}

/** Whether anything of it changes without a call that is counted. */
static bool is_busy(struct rbi_shield_member *member, uint64_t step)
{
    if (member->health != RBI_HEALTH_OK || member->tripped != 0 || member->shields > 0) {
        return true;
    }
    const struct rbi_tally sum = rbi_window_sum(&member->window, step, RBI_WINDOW_MAX_MS);
    return sum.fail > 0 || sum.slow > 0 || sum.local > 0;
}

/** Steps begin so that sweeps which are on time fall into their middle, one into each. */
static void begin_steps(struct rbi_shield_cluster *cluster, uint64_t now_ns)
{
    cluster->swept = true;
    cluster->begin_ns = now_ns > STEP_NS / 2 ? now_ns - STEP_NS / 2 : 0;
    for (uint32_t i = 0; i < cluster->count; i++) {
        cluster->members[i]->begin_step = 0; /* was of no step yet */
        rbi_window_clear(&cluster->members[i]->window, 0);
    }
}

void rbi_shield_sweep(struct rbi_shield_cluster *cluster, const struct rbi_shield_turn *turn)
{
    if (!cluster->swept) {
        begin_steps(cluster, turn->now_ns);
    }
    const uint64_t step = rbi_shield_step_of(cluster, turn->now_ns);
    cluster->swept_ns = turn->now_ns;
    for (uint32_t i = 0; i < cluster->count; i++) {
        absorb(cluster->members[i], step);
        rbi_shield_age(cluster, cluster->members[i], turn);
        rbi_shield_judge_member(&cluster->rules, cluster->members[i], step);
    }
    release(cluster, turn);
    rbi_shield_judge_cluster(cluster);
    settle_spared(cluster, turn);
    eject(cluster, turn);
    judge_panic(cluster, turn);
    cluster->busy = false;
    for (uint32_t i = 0; !cluster->busy && i < cluster->count; i++) {
        cluster->busy = is_busy(cluster->members[i], step);
    }
}

uint64_t rbi_shield_due(const struct rbi_shield_cluster *cluster)
{
    return cluster->busy ? cluster->swept_ns + STEP_NS : UINT64_MAX;
}
