/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/route_rank.c - how far an instance is from the caller. Node and host lie within the group:
 * an instance on the caller's host that says it stands elsewhere, stands elsewhere.
 */
#include "bus/label.h"
#include "bus/route_stage.h"

#include <string.h>

unsigned rbi_route_level(enum rbi_route_rank rank)
{
    if (rank < RBI_ROUTE_PRIORITY) {
        return (unsigned)rank;
    }
    return rank < RBI_ROUTE_UNGROUPED ? 4 : 5;
}

static bool lists(const struct rbi_idc_priority *entry, struct rbi_label_part group)
{
    for (unsigned i = 0; i < entry->count; i++) {
        const struct rbi_label_part listed = {entry->groups[i], strlen(entry->groups[i])};
        if (rbi_label_equal(listed, group)) {
            return true;
        }
    }
    return false;
}

/* By idc.priority, which is for callers whose group it lists. */
static enum rbi_route_rank listed_rank(const struct rbi_locality_policy *policy,
                                       struct rbi_label_part own,
                                       struct rbi_label_part group)
{
    unsigned home = 0;
    while (home < policy->count && !lists(&policy->priorities[home], own)) {
        home++;
    }
    if (home == policy->count) {
        return RBI_ROUTE_ANY;
    }
    if (lists(&policy->priorities[home], group)) {
        return RBI_ROUTE_LOGICAL;
    }
    for (unsigned i = 0; i < policy->count; i++) {
        if (lists(&policy->priorities[i], group)) {
            return (enum rbi_route_rank)(RBI_ROUTE_PRIORITY + i);
        }
    }
    return RBI_ROUTE_ANY;
}

static bool same_node(const struct rbi_route *route, const struct rbi_directory_instance *instance)
{
    return instance->node != 0 && instance->node == route->in->caller->node;
}

enum rbi_route_rank rbi_route_rank_of(const struct rbi_route *route,
                                      const struct rbi_route_entry *entry)
{
    const struct rbi_directory_instance *instance = rbi_route_instance(route, entry);
    const struct rbi_label_idc own = rbi_label_idc_parse(route->in->caller->idc);
    const struct rbi_label_idc idc = rbi_label_idc_parse(instance->idc);
    if (own.group.length == 0 || rbi_label_equal(own.group, idc.group)) {
        if (instance->host == route->in->caller->host) {
            return same_node(route, instance) ? RBI_ROUTE_NODE : RBI_ROUTE_HOST;
        }
        return own.group.length == 0 ? RBI_ROUTE_ANY : RBI_ROUTE_GROUP;
    }
    if (idc.group.length == 0) {
        return RBI_ROUTE_UNGROUPED;
    }
    if (own.zone.length > 0 && rbi_label_equal(own.zone, idc.zone)) {
        return RBI_ROUTE_LOGICAL;
    }
    return listed_rank(&route->in->policy->locality, own.group, idc.group);
}
