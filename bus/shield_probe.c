/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/shield_probe.c - HALF_OPEN: a PING, then probes, each with a deadline. Every way in which
 * a probe can end frees its place in the same call; what nobody ends the sweep ends.
 */
#include "bus/shield_impl.h"

void rbi_shield_ask_ping(struct rbi_shield_cluster *cluster,
                         struct rbi_shield_member *member,
                         const struct rbi_shield_turn *turn)
{
    member->ping = ++cluster->token;
    member->ping_due_ns = turn->now_ns + cluster->rules.probe_timeout_ms * RBI_NS_PER_MS;
    const struct rbi_shield_event event = {.kind = RBI_SHIELD_PING,
                                           .instance = member->instance,
                                           .incarnation = member->incarnation,
                                           .until_ns = member->ping_due_ns,
                                           .token = member->ping};
    rbi_shield_emit(turn, &event);
}

static uint32_t probes_under_way(const struct rbi_shield_member *member)
{
    uint32_t count = 0;
    for (unsigned i = 0; i < RBI_SHIELD_PROBES_MAX; i++) {
        count += member->probes[i].token != 0;
    }
    return count;
}

/** HALF_OPEN has lasted as long as it may without an end, and as long as its probes take. */
static bool is_idle(const struct rbi_shield_cluster *cluster,
                    const struct rbi_shield_member *member,
                    uint64_t now_ns)
{
    const struct rbi_shield_policy *rules = &cluster->rules;
    const uint64_t probes_ns = UINT64_C(1000000000) / rules->probe_per_s * rules->close_of +
                               rules->probe_timeout_ms * RBI_NS_PER_MS;
    return now_ns - member->since_ns >=
           rbi_max_u64(RBI_SHIELD_IDLE_FACTOR * member->open_ns, probes_ns);
}

void rbi_shield_ping(struct rbi_shield_cluster *cluster,
                     int32_t instance,
                     uint64_t token,
                     bool answered,
                     const struct rbi_shield_turn *turn)
{
    struct rbi_shield_member *member = rbi_shield_member(cluster, instance);
    if (member == NULL || token == 0 || member->ping != token) {
        return;
    }
    member->ping = 0;
    if (!answered) {
        rbi_shield_open(cluster, member, RBI_SHIELD_BECAUSE_PING_LOST, true, turn);
    } else if (is_idle(cluster, member, turn->now_ns)) {
        rbi_shield_close(cluster, member, RBI_SHIELD_BECAUSE_IDLE, turn);
    }
}

/** The end of a round: enough were well, or too few can still be. */
static void decide(struct rbi_shield_cluster *cluster,
                   struct rbi_shield_member *member,
                   enum rbi_shield_reason failure,
                   const struct rbi_shield_turn *turn)
{
    const struct rbi_shield_policy *rules = &cluster->rules;
    const uint32_t left = rules->close_of - member->probes_spent;
    if (member->probes_failed > rules->close_fails) {
        rbi_shield_open(cluster, member, failure, true, turn);
    } else if (member->probes_ok >= rules->close_ok) {
        rbi_shield_close(cluster, member, RBI_SHIELD_BECAUSE_PROBES_OK, turn);
    } else if (member->probes_ok + left < rules->close_ok) {
        /* Nothing is known against it but what failed: k grows with a failure only. */
        const bool failed = member->probes_failed > 0;
        rbi_shield_open(cluster, member, failed ? failure : RBI_SHIELD_BECAUSE_INCONCLUSIVE, failed,
                        turn);
    }
}

static void end_probe(struct rbi_shield_cluster *cluster,
                      struct rbi_shield_member *member,
                      struct rbi_shield_probe *probe,
                      enum rbi_shield_probe_result result,
                      const struct rbi_shield_turn *turn)
{
    probe->token = 0;
    if (result == RBI_SHIELD_PROBE_UNUSED) {
        return;
    }
    member->probes_spent++;
    if (result == RBI_SHIELD_PROBE_OK) {
        member->probes_ok++;
    } else if (result == RBI_SHIELD_PROBE_FAIL || result == RBI_SHIELD_PROBE_EXPIRED) {
        member->probes_failed++;
    }
    decide(cluster, member,
           result == RBI_SHIELD_PROBE_EXPIRED ? RBI_SHIELD_BECAUSE_PROBE_EXPIRED
                                              : RBI_SHIELD_BECAUSE_PROBE_FAILED,
           turn);
}

void rbi_shield_probe_end(struct rbi_shield_cluster *cluster,
                          int32_t instance,
                          uint64_t token,
                          enum rbi_shield_probe_result result,
                          const struct rbi_shield_turn *turn)
{
    struct rbi_shield_member *member = rbi_shield_member(cluster, instance);
    for (unsigned i = 0; member != NULL && token != 0 && i < RBI_SHIELD_PROBES_MAX; i++) {
        if (member->probes[i].token == token) {
            end_probe(cluster, member, &member->probes[i], result, turn);
            return;
        }
    }
}

/** Grants one of @p member's, if one is due and there is a place. */
static bool grant_of(struct rbi_shield_cluster *cluster,
                     struct rbi_shield_member *member,
                     struct rbi_shield_grant *grant,
                     uint64_t now_ns)
{
    const struct rbi_shield_policy *rules = &cluster->rules;
    if (member->health != RBI_HEALTH_HALF_OPEN || member->ping != 0 ||
        now_ns < member->next_probe_ns || is_idle(cluster, member, now_ns) ||
        member->probes_spent + probes_under_way(member) >= rules->close_of) {
        return false;
    }
    for (unsigned i = 0; i < RBI_SHIELD_PROBES_MAX; i++) {
        struct rbi_shield_probe *probe = &member->probes[i];
        if (probe->token == 0) {
            const uint64_t timeout_ns = rules->probe_timeout_ms * RBI_NS_PER_MS;
            *probe = (struct rbi_shield_probe){.token = ++cluster->token,
                                               .deadline_ns = now_ns + timeout_ns};
            member->next_probe_ns = now_ns + UINT64_C(1000000000) / rules->probe_per_s;
            *grant = (struct rbi_shield_grant){.instance = member->instance,
                                               .incarnation = member->incarnation,
                                               .token = probe->token,
                                               .use_by_ns = now_ns + timeout_ns / 2,
                                               .deadline_ns = probe->deadline_ns};
            return true;
        }
    }
    return false;
}

int rbi_shield_probe_grant(struct rbi_shield_cluster *cluster,
                           struct rbi_shield_grant *grant,
                           const struct rbi_shield_turn *turn)
{
    for (uint32_t i = 0; i < cluster->count; i++) {
        const uint32_t index = (cluster->cursor + i) % cluster->count;
        if (grant_of(cluster, cluster->members[index], grant, turn->now_ns)) {
            cluster->cursor = index + 1;
            return 0;
        }
    }
    return 1;
}

void rbi_shield_half_open_age(struct rbi_shield_cluster *cluster,
                              struct rbi_shield_member *member,
                              const struct rbi_shield_turn *turn)
{
    if (member->ping != 0 && turn->now_ns >= member->ping_due_ns) {
        rbi_shield_open(cluster, member, RBI_SHIELD_BECAUSE_PING_LOST, true, turn);
        return;
    }
    for (unsigned i = 0; i < RBI_SHIELD_PROBES_MAX; i++) {
        struct rbi_shield_probe *probe = &member->probes[i];
        if (probe->token != 0 && turn->now_ns >= probe->deadline_ns) {
            end_probe(cluster, member, probe, RBI_SHIELD_PROBE_EXPIRED, turn);
            if (member->health != RBI_HEALTH_HALF_OPEN) {
                return;
            }
        }
    }
    if (member->ping == 0 && is_idle(cluster, member, turn->now_ns) &&
        probes_under_way(member) == 0) {
        rbi_shield_ask_ping(cluster, member, turn);
    }
}
