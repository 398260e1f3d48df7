/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/route_realm.c - stage 3: one business serves, never several. The own one if it has anybody
 * healthy, else the first import that has. With remote_first off, those near the caller are asked
 * first: own and near, import and near, own, import.
 */
#include "bus/route_stage.h"

/* Same region: up to the logical group. */
static bool is_near(const struct rbi_route_entry *entry)
{
    return entry->rank <= RBI_ROUTE_LOGICAL;
}

struct realm {
    bool any;
    bool healthy;
    bool near; /* and healthy */
};

static void survey(const struct rbi_route *route, struct realm *realms)
{
    for (struct rbi_route_entry *entry = route->entries; entry < rbi_route_end(route); entry++) {
        if (rbi_route_is_in(entry)) {
            struct realm *realm = &realms[entry->cluster];
            realm->any = true;
            realm->healthy = realm->healthy || entry->healthy;
            realm->near = realm->near || (entry->healthy && is_near(entry));
        }
    }
}

/* The one to be asked; nobody healthy anywhere: the first that has members, for panic. */
static unsigned choose(const struct realm *realms, unsigned count, bool near_first)
{
    for (unsigned i = 0; near_first && i < count; i++) {
        if (realms[i].near) {
            return i;
        }
    }
    for (unsigned i = 0; i < count; i++) {
        if (realms[i].healthy) {
            return i;
        }
    }
    for (unsigned i = 0; i < count; i++) {
        if (realms[i].any) {
            return i;
        }
    }
    return 0;
}

void rbi_route_realm(struct rbi_route *route)
{
    const struct rbi_route_cause cause = {
        .stage = RBI_ROUTE_REALM, .reason = RBI_ROUTE_OTHER_REALM, .rule = RBI_ROUTE_NO_RULE};
    const struct rbi_realm_policy *policy = &route->in->policy->realm;
    struct rbi_route_step *step = rbi_route_step(route, RBI_ROUTE_REALM);
    struct realm realms[1 + RBI_REALMS_MAX] = {{false, false, false}};
    step->mode = (uint8_t)policy->mode;
    step->skipped = route->in->cluster_count == 1;
    if (policy->mode == RBI_STAGE_PREFER) {
        survey(route, realms);
        route->result->realm =
            (uint16_t)choose(realms, route->in->cluster_count, policy->remote_first == 0);
        step->fell_back = route->result->realm != 0;
    }
    for (struct rbi_route_entry *entry = route->entries; entry < rbi_route_end(route); entry++) {
        if (entry->cluster != route->result->realm) {
            rbi_route_drop(entry, &cause);
        }
    }
}
