/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_SOJOURN_H
#define RINGBUS_BUS_SOJOURN_H
/*
 * bus/sojourn.h - a receiver that cannot keep up: found by how long messages have waited for it,
 * relieved by refusing the least important ones. Pure: time is an argument.
 *
 * As in CoDel it is the shortest wait of an interval that counts. A burst makes some wait, but
 * sooner or later finds the lanes empty; where even the luckiest message of an interval has waited
 * longer than the target, more comes than is done, and waiting only makes all of it late.
 *
 * It is what is done that makes messages wait, not that nobody looked: whoever uses this tells when
 * the receiver was away, doing something else, or stopped, or without a processor, and that time is
 * no wait. After an absence of an interval or more, as much time goes by unjudged as it took, since
 * what came meanwhile is worked off first.
 *
 * The pressure has eight steps for each of the four priorities. Its steps of eight say which
 * priorities are refused whole, lowest first, and its rest how many eighths of the next: also where
 * all messages are alike, half of them is refused and not every second interval. One message in
 * eight of the highest priority is always let through. The pressure grows with each interval above
 * the target, faster the farther above it, and falls by one with each that is not. Busy, as others
 * see it, is over with the first of those, and so is the shedding where the waits are short again:
 * only what has waited is refused, so that the receiver is never idle for it.
 */
#include "shm/base.h"

#define RBI_PRIORITIES    4U
#define RBI_SOJOURN_STEPS 8U
#define RBI_SOJOURN_MAX   (RBI_PRIORITIES * RBI_SOJOURN_STEPS - 1)

struct rbi_sojourn {
    uint64_t target_ns; /* 0: never sheds */
    uint64_t interval_ns;
    uint64_t end_ns;       /* of the interval that runs; 0: none does, the next one is not judged */
    uint64_t least_ns;     /* wait in it */
    uint64_t away_from_ns; /* the last absence */
    uint64_t away_until_ns;
    uint64_t calm_until_ns; /* not judged before */
    uint32_t pressure;      /* 0 to RBI_SOJOURN_MAX */
    bool busy;
    uint32_t credit[RBI_PRIORITIES];
};

void rbi_sojourn_init(struct rbi_sojourn *sojourn, uint64_t target_ns, uint64_t interval_ns);
/** The receiver looked at no lane from then until then. */
void rbi_sojourn_away(struct rbi_sojourn *sojourn, uint64_t from_ns, uint64_t until_ns);
/** Nothing was taken for so long that nothing is known: how it was before says nothing of now. */
static inline void rbi_sojourn_forget(struct rbi_sojourn *sojourn)
{
    sojourn->end_ns = 0;
}
/**
 * A message was taken from its lane.
 * @param waited_ns  since it was sent; 0 for one that does not say
 * @retval true  whether it is busy now has changed
 */
bool rbi_sojourn_took(struct rbi_sojourn *sojourn, uint64_t waited_ns, uint64_t now_ns);
/** Nothing waits: the same as a message that did not wait. */
bool rbi_sojourn_idle(struct rbi_sojourn *sojourn, uint64_t now_ns);
static inline bool rbi_sojourn_busy(const struct rbi_sojourn *sojourn)
{
    return sojourn->busy;
}
/**
 * Whether a message is to be refused: counts it. One that has waited no longer than the target
 * never is, or than a quarter of it where its priority is refused whole: that makes the room for
 * which else the next priority would be refused.
 * @param priority   0 lowest to RBI_PRIORITIES - 1; what is higher counts as that
 * @param waited_ns  as above: without the time of an absence
 */
bool rbi_sojourn_sheds(struct rbi_sojourn *sojourn,
                       unsigned priority,
                       uint64_t waited_ns,
                       uint64_t now_ns);

#endif
