/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_LIMIT_H
#define RINGBUS_BUS_LIMIT_H
/*
 * bus/limit.h - the limits of a cluster as one caller is subject to them: those of the policy whose
 * pattern describes it, made ready to be asked for each message. Pure: time is an argument.
 *
 * Limits do not know of each other: a message must be within all of those that concern it, and one
 * that is not takes nothing from any. So it is asked first (rbi_limits_check()), sent, and taken
 * when it was sent (rbi_limits_take()): what finds no room in the lane costs nothing either.
 *
 * The state of a limit lies with whom it counts: one word for each limit and cluster, or for each
 * limit and instance (RBI_LIMIT_INSTANCE).
 */
#include "bus/gcra.h"
#include "bus/policy.h"

#define RBI_LIMIT_BIT(scope) (1U << (scope))
/** What a caller looks at before it sends, and a receiver when it reads. */
#define RBI_LIMITS_OF_CALLER                                                                       \
    (RBI_LIMIT_BIT(RBI_LIMIT_CALLER) | RBI_LIMIT_BIT(RBI_LIMIT_INSTANCE) |                         \
     RBI_LIMIT_BIT(RBI_LIMIT_CLUSTER))
#define RBI_LIMITS_OF_RECEIVER RBI_LIMIT_BIT(RBI_LIMIT_RECEIVER)

struct rbi_limit_rule {
    struct rbi_gcra_rate rate;
    uint32_t method_low; /* inclusive */
    uint32_t method_high;
    uint8_t scope; /* enum rbi_limit_scope */
    uint8_t unit;  /* enum rbi_limit_unit */
    uint8_t dry_run;
    uint8_t index; /* in the policy's limits */
    char id[RBI_LABEL_MAX + 1];
};

/** What is left of a policy for one caller. */
struct rbi_limits {
    unsigned count;
    unsigned scopes; /* bits of RBI_LIMIT_BIT() that occur */
    struct rbi_limit_rule rules[RBI_LIMITS_MAX];
};

/** Words of state, one for each limit: by position in rbi_limits.rules. */
struct rbi_limit_words {
    struct rbi_gcra word[RBI_LIMITS_MAX];
};

/** What is asked for a message. */
struct rbi_limit_question {
    uint32_t method;
    uint64_t bytes; /* of payload */
    uint64_t now_ns;
};

enum rbi_limit_result {
    RBI_LIMIT_PASS = 0,
    RBI_LIMIT_DELAY = 1,  /* due in wait_ns */
    RBI_LIMIT_REFUSE = 2, /* would pass in wait_ns, if nothing else is sent */
};

struct rbi_limit_verdict {
    uint64_t wait_ns;
    uint8_t rule;     /* position of the limit that makes it wait longest */
    uint8_t dry_rule; /* position of one that would have refused, were it no dry run */
    bool dry_refused;
};

/**
 * Takes those limits of a policy that concern @p caller and have one of @p scopes.
 * @param caller  path
 */
void rbi_limits_compile(struct rbi_limits *limits,
                        const struct rbi_policy *policy,
                        const char *caller,
                        size_t caller_length,
                        unsigned scopes);
/**
 * Carries the state of the limits that both know, by id, from one policy to its successor: a
 * change of the configuration gives nobody a second burst, and another rate nobody another debt
 * (rbi_gcra_follow()).
 * @param old  may be the same limits as before
 * @param old_words  the state by them
 */
void rbi_limit_words_carry(struct rbi_limit_words *words,
                           const struct rbi_limits *limits,
                           const struct rbi_limit_words *old_words,
                           const struct rbi_limits *old,
                           uint64_t now_ns);
/** Position of the limit in @p old that is the one at @p position of @p limits, or -1. */
int rbi_limit_same(const struct rbi_limits *limits,
                   unsigned position,
                   const struct rbi_limits *old);
/**
 * Another rate for the limit at @p position, as a lease says; burst and wait keep their time, what
 * was sent ahead its units.
 */
void rbi_limits_set_rate(struct rbi_limits *limits,
                         struct rbi_limit_words *shared,
                         unsigned position,
                         uint64_t rate_milli,
                         uint64_t now_ns);

/**
 * Whether a message may be sent now. Takes nothing.
 * @param shared    state of the limits that count for the whole cluster, or link
 * @param instance  state of those that count for the receiver alone; NULL: there are none
 * @param verdict   always written
 */
enum rbi_limit_result rbi_limits_check(const struct rbi_limits *limits,
                                       const struct rbi_limit_words *shared,
                                       const struct rbi_limit_words *instance,
                                       const struct rbi_limit_question *question,
                                       struct rbi_limit_verdict *verdict);
/** It was sent: by the same arguments, in the same moment. */
void rbi_limits_take(const struct rbi_limits *limits,
                     struct rbi_limit_words *shared,
                     struct rbi_limit_words *instance,
                     const struct rbi_limit_question *question);

#endif
