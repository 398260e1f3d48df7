/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/route_health.c - stage 8: shields. In panic they are ignored, for then the measure is doubted
 * rather than the instances; but farther levels come first, if these and the nearer ones can carry
 * the load.
 */
#include "bus/route_stage.h"

void rbi_route_health(struct rbi_route *route)
{
    const struct rbi_panic_policy *policy = &route->in->policy->panic;
    const bool panic =
        route->in->cluster_count > 0 && route->in->clusters[route->result->realm].panic;
    const bool last_resort = panic && !route->spilled_enough;
    const bool fail = last_resort && policy->mode == RBI_PANIC_FAIL;
    rbi_route_step(route, RBI_ROUTE_HEALTH)->mode =
        last_resort && !fail ? RBI_STAGE_OFF : RBI_STAGE_STRICT;
    route->result->shields_ignored = last_resort && !fail;
    if (route->result->shields_ignored) {
        return;
    }
    const struct rbi_route_cause cause = {.stage = RBI_ROUTE_HEALTH,
                                          .reason = fail ? RBI_ROUTE_PANIC : RBI_ROUTE_SHIELDED,
                                          .rule = RBI_ROUTE_NO_RULE,
                                          .keyed_stay = !fail};
    for (struct rbi_route_entry *entry = route->entries; entry < rbi_route_end(route); entry++) {
        if (fail || !entry->healthy) {
            rbi_route_drop(entry, &cause);
        }
    }
}
