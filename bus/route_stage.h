/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_ROUTE_STAGE_H
#define RINGBUS_BUS_ROUTE_STAGE_H
/*
 * bus/route_stage.h - what the stages of the router chain share. For bus/route*.c and nobody else.
 */
#include "bus/route.h"

struct rbi_route {
    const struct rbi_route_input *in;
    struct rbi_route_memory *memory; /* may be NULL */
    struct rbi_route_entry *entries;
    struct rbi_route_result *result;
    const char *tag;     /* the message's own, or its canary's; "" untagged */
    bool spilled_enough; /* the nearer and the farther levels carry the load together */
};

/** What takes instances out. */
struct rbi_route_cause {
    enum rbi_route_stage stage;
    enum rbi_route_reason reason;
    unsigned rule;
    bool dry;        /* it is only noted what it would do */
    bool keyed_stay; /* balancers by key are not concerned */
};

/** The stages, in their order. */
void rbi_route_state(struct rbi_route *route);
void rbi_route_acl(struct rbi_route *route);
void rbi_route_filter(struct rbi_route *route);
void rbi_route_realm(struct rbi_route *route);
void rbi_route_set(struct rbi_route *route);
void rbi_route_tag(struct rbi_route *route);
void rbi_route_label_rules(struct rbi_route *route);
void rbi_route_locality(struct rbi_route *route);
void rbi_route_health(struct rbi_route *route);
/** After the last of them. */
void rbi_route_weigh(struct rbi_route *route);

/** Tag that a message counts as tagged with. */
const char *rbi_route_tag_of(const struct rbi_route_input *input);
/** Distance of an instance from the caller. */
enum rbi_route_rank rbi_route_rank_of(const struct rbi_route *route,
                                      const struct rbi_route_entry *entry);
/** Whether an enabled rule that matches lets an untagged message reach this instance's tags. */
bool rbi_route_opened(const struct rbi_route *route, const struct rbi_directory_instance *instance);

/** Takes @p entry out, or notes that a dry run would have. One that is out stays as it is. */
void rbi_route_drop(struct rbi_route_entry *entry, const struct rbi_route_cause *cause);

static inline const struct rbi_directory_instance *
rbi_route_instance(const struct rbi_route *route, const struct rbi_route_entry *entry)
{
    return &route->in->clusters[entry->cluster].instances[entry->index];
}

static inline bool rbi_route_is_in(const struct rbi_route_entry *entry)
{
    return entry->stage == RBI_ROUTE_IN;
}

/** One past the last entry. */
static inline struct rbi_route_entry *rbi_route_end(const struct rbi_route *route)
{
    return route->entries + route->result->entry_count;
}

static inline struct rbi_route_step *rbi_route_step(struct rbi_route *route,
                                                    enum rbi_route_stage stage)
{
    return &route->result->steps[stage];
}

/** The result is to be computed again at @p ns at the latest. */
static inline void rbi_route_again(struct rbi_route *route, uint64_t ns)
{
    uint64_t *again = &route->result->again_ns;
    *again = *again == 0 || ns < *again ? ns : *again;
}

#endif
