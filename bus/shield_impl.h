/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_SHIELD_IMPL_H
#define RINGBUS_BUS_SHIELD_IMPL_H
/*
 * bus/shield_impl.h - what the files of bus/shield*.c share: shield.c keeps members and sweeps,
 * shield_judge.c says who trips, shield_state.c changes states, shield_probe.c runs HALF_OPEN.
 */
#include "bus/shield.h"

#define RBI_NS_PER_MS UINT64_C(1000000)

/* Bits of rbi_shield_member.tripped after those of the windows. */
#define RBI_SHIELD_TRIP_CONSECUTIVE (1U << RBI_SHIELD_WINDOWS_MAX)
#define RBI_SHIELD_TRIP_SLOW        (1U << (RBI_SHIELD_WINDOWS_MAX + 1))
#define RBI_SHIELD_TRIP_DEVIATION   (1U << (RBI_SHIELD_WINDOWS_MAX + 2))
#define RBI_SHIELD_TRIP_LOCAL       (1U << (RBI_SHIELD_WINDOWS_MAX + 3)) /* window i: << i */

static inline bool rbi_shield_serves(const struct rbi_shield_member *member)
{
    return member->health == RBI_HEALTH_OK || member->health == RBI_HEALTH_RAMP;
}

/** Where all weigh nothing, all weigh the same. */
static inline uint64_t rbi_shield_weight(const struct rbi_shield_cluster *cluster,
                                         const struct rbi_shield_member *member)
{
    return cluster->weight != 0 ? member->weight : 1;
}
static inline uint64_t rbi_shield_total(const struct rbi_shield_cluster *cluster)
{
    return cluster->weight != 0 ? cluster->weight : cluster->count;
}

uint64_t rbi_shield_step_of(const struct rbi_shield_cluster *cluster, uint64_t now_ns);

/* shield_judge.c */

/** A copy in which no field can divide by zero, overflow a time or never end. */
void rbi_shield_rules(struct rbi_shield_policy *rules, const struct rbi_shield_policy *policy);
/** Sums the columns of one member as of @p step and says which of its own rules trip. */
void rbi_shield_judge_member(const struct rbi_shield_policy *rules,
                             struct rbi_shield_member *member,
                             uint64_t step);
/**
 * Compares the members with each other: whoever is to be shielded has severity > 0 afterwards and
 * its cause filled; whom only the median saves has severity 0 and its bits still set.
 */
void rbi_shield_judge_cluster(struct rbi_shield_cluster *cluster);

/* shield_state.c */

/** Out of service. @param grow  the next open time is a step longer */
void rbi_shield_open(struct rbi_shield_cluster *cluster,
                     struct rbi_shield_member *member,
                     enum rbi_shield_reason reason,
                     bool grow,
                     const struct rbi_shield_turn *turn);
void rbi_shield_half_open(struct rbi_shield_cluster *cluster,
                          struct rbi_shield_member *member,
                          const struct rbi_shield_turn *turn);
/** Back in service, over the ramp if there is one; its counts begin anew. */
void rbi_shield_close(struct rbi_shield_cluster *cluster,
                      struct rbi_shield_member *member,
                      enum rbi_shield_reason reason,
                      const struct rbi_shield_turn *turn);
/** As if it were new: counts, k, all. Keeps instance, incarnation and weight. */
void rbi_shield_clear(struct rbi_shield_cluster *cluster,
                      struct rbi_shield_member *member,
                      enum rbi_shield_reason reason,
                      const struct rbi_shield_turn *turn);
/** What time alone does: end of an open time, shares of the ramp, decay of k. */
void rbi_shield_age(struct rbi_shield_cluster *cluster,
                    struct rbi_shield_member *member,
                    const struct rbi_shield_turn *turn);
void rbi_shield_emit(const struct rbi_shield_turn *turn, const struct rbi_shield_event *event);

/* shield_probe.c */

/** Deadlines of PING and probes, and the end of a HALF_OPEN that nobody calls. */
void rbi_shield_half_open_age(struct rbi_shield_cluster *cluster,
                              struct rbi_shield_member *member,
                              const struct rbi_shield_turn *turn);
/** Asks for a PING, whose answer decides what comes next. */
void rbi_shield_ask_ping(struct rbi_shield_cluster *cluster,
                         struct rbi_shield_member *member,
                         const struct rbi_shield_turn *turn);

/* shield.c */
struct rbi_shield_member *rbi_shield_member(const struct rbi_shield_cluster *cluster,
                                            int32_t instance);

#endif
