/* SPDX-License-Identifier: Apache-2.0 */
/* bus/shield_state.c - the changes of a member's state, each told in one place. */
#include "bus/shield_impl.h"

#include <string.h>

#define EXPONENT_MAX 16U
#define RAMP_FIRST   25U
#define RAMP_SECOND  50U

void rbi_shield_emit(const struct rbi_shield_turn *turn, const struct rbi_shield_event *event)
{
    if (turn->emit != NULL) {
        turn->emit(turn->context, event);
    }
}

/** The one way from state to state. @p cause brings figures of the rule, or is NULL. */
static void change(struct rbi_shield_member *member,
                   enum rbi_health to,
                   enum rbi_shield_reason reason,
                   const struct rbi_shield_event *cause,
                   const struct rbi_shield_turn *turn)
{
    struct rbi_shield_event event = cause != NULL ? *cause : (struct rbi_shield_event){0};
    event.kind = RBI_SHIELD_CHANGED;
    event.reason = reason;
    event.instance = member->instance;
    event.incarnation = member->incarnation;
    event.from = (enum rbi_health)member->health;
    event.to = to;
    event.ramp = to == RBI_HEALTH_RAMP ? member->ramp : 0;
    event.shields = to == RBI_HEALTH_OPEN ? member->shields : 0;
    event.until_ns = to == RBI_HEALTH_OPEN ? member->until_ns : 0;
    member->health = to;
    member->reason = reason;
    member->since_ns = turn->now_ns;
    rbi_shield_emit(turn, &event);
}

/** Well mixed bits of a turn's random number and what differs between its uses. */
static uint64_t mix(uint64_t random, uint64_t salt)
{
    uint64_t x = random + salt * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t open_time_ns(const struct rbi_shield_policy *rules,
                             const struct rbi_shield_member *member,
                             uint64_t random)
{
    uint64_t ms = rules->open_linear ? (uint64_t)rules->open_min_ms * (member->shields + 1U)
                                     : (uint64_t)rules->open_min_ms << member->shields;
    ms = rbi_min_u64(ms, rules->open_max_ms);
    /* Of many that opened at once not all come back at once. */
    const uint64_t spread_ns = ms * RBI_NS_PER_MS / 100 * rules->jitter;
    const uint64_t drawn = mix(random, (uint32_t)member->instance) % (2 * spread_ns + 1);
    return ms * RBI_NS_PER_MS + drawn - spread_ns;
}

static void decay(struct rbi_shield_member *member, uint64_t now_ns)
{
    while (member->shields > 0 && now_ns - member->well_ns >= RBI_SHIELD_DECAY_MS * RBI_NS_PER_MS) {
        member->shields--;
        member->well_ns += RBI_SHIELD_DECAY_MS * RBI_NS_PER_MS;
    }
}

static void forget_probes(struct rbi_shield_member *member)
{
    member->ping = 0;
    member->probes_ok = 0;
    member->probes_failed = 0;
    member->probes_spent = 0;
    memset(member->probes, 0, sizeof member->probes);
}

void rbi_shield_open(struct rbi_shield_cluster *cluster,
                     struct rbi_shield_member *member,
                     enum rbi_shield_reason reason,
                     bool grow,
                     const struct rbi_shield_turn *turn)
{
    const bool served = rbi_shield_serves(member);
    if (served) {
        decay(member, turn->now_ns);
        member->shielded_ns = turn->now_ns;
    } else if (!grow && member->shields > 0) {
        member->shields--; /* the time that it had, once more */
    }
    member->open_ns = open_time_ns(&cluster->rules, member, turn->random);
    member->until_ns = turn->now_ns + member->open_ns;
    member->ramp = 100;
    member->spared = RBI_SHIELD_BECAUSE_NONE;
    forget_probes(member);
    change(member, RBI_HEALTH_OPEN, reason, served ? &member->cause : NULL, turn);
    if (member->shields < EXPONENT_MAX) {
        member->shields++;
    }
}

void rbi_shield_half_open(struct rbi_shield_cluster *cluster,
                          struct rbi_shield_member *member,
                          const struct rbi_shield_turn *turn)
{
    forget_probes(member);
    change(member, RBI_HEALTH_HALF_OPEN, RBI_SHIELD_BECAUSE_OPEN_OVER, NULL, turn);
    rbi_shield_ask_ping(cluster, member, turn);
}

static void forget_counts(const struct rbi_shield_cluster *cluster,
                          struct rbi_shield_member *member,
                          uint64_t now_ns)
{
    member->pending = (struct rbi_tally){0};
    member->pending_latency_ns = 0;
    member->pending_tail = UINT32_MAX;
    member->streak = 0;
    member->tripped = 0;
    member->severity = 0;
    member->spared = RBI_SHIELD_BECAUSE_NONE;
    memset(member->columns, 0, sizeof member->columns);
    member->begin_step = rbi_shield_step_of(cluster, now_ns);
    rbi_window_clear(&member->window, member->begin_step);
}

void rbi_shield_close(struct rbi_shield_cluster *cluster,
                      struct rbi_shield_member *member,
                      enum rbi_shield_reason reason,
                      const struct rbi_shield_turn *turn)
{
    const uint64_t ramp_ns = cluster->rules.ramp_ms * RBI_NS_PER_MS;
    forget_probes(member);
    forget_counts(cluster, member, turn->now_ns);
    member->well_ns = turn->now_ns;
    member->until_ns = turn->now_ns + ramp_ns;
    member->ramp = ramp_ns != 0 ? RAMP_FIRST : 100;
    change(member, ramp_ns != 0 ? RBI_HEALTH_RAMP : RBI_HEALTH_OK, reason, NULL, turn);
}

void rbi_shield_clear(struct rbi_shield_cluster *cluster,
                      struct rbi_shield_member *member,
                      enum rbi_shield_reason reason,
                      const struct rbi_shield_turn *turn)
{
    forget_probes(member);
    forget_counts(cluster, member, turn->now_ns);
    member->shields = 0;
    member->latency_us = 0;
    member->open_ns = 0;
    member->next_probe_ns = 0;
    member->well_ns = turn->now_ns;
    member->ramp = 100;
    if (member->health != RBI_HEALTH_OK) {
        change(member, RBI_HEALTH_OK, reason, NULL, turn);
    }
}

static void ramp(struct rbi_shield_cluster *cluster,
                 struct rbi_shield_member *member,
                 const struct rbi_shield_turn *turn)
{
    const uint64_t half_ns = cluster->rules.ramp_ms * RBI_NS_PER_MS / 2;
    if (turn->now_ns >= member->until_ns) {
        member->ramp = 100;
        change(member, RBI_HEALTH_OK, RBI_SHIELD_BECAUSE_RAMP, NULL, turn);
    } else if (member->ramp == RAMP_FIRST && turn->now_ns + half_ns >= member->until_ns) {
        member->ramp = RAMP_SECOND;
        change(member, RBI_HEALTH_RAMP, RBI_SHIELD_BECAUSE_RAMP, NULL, turn);
    }
}

void rbi_shield_age(struct rbi_shield_cluster *cluster,
                    struct rbi_shield_member *member,
                    const struct rbi_shield_turn *turn)
{
    switch ((enum rbi_health)member->health) {
    case RBI_HEALTH_OK:
        decay(member, turn->now_ns);
        break;
    case RBI_HEALTH_RAMP:
        decay(member, turn->now_ns);
        ramp(cluster, member, turn);
        break;
    case RBI_HEALTH_OPEN:
        if (turn->now_ns >= member->until_ns) {
            rbi_shield_half_open(cluster, member, turn);
        }
        break;
    case RBI_HEALTH_HALF_OPEN:
        rbi_shield_half_open_age(cluster, member, turn);
        break;
    }
}
