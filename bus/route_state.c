/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/route_state.c - stages 1 to 3: who takes work at all, whom the caller may see, and
 * whom its program wants to.
 */
#include "bus/route_stage.h"
#include "shm/layout.h"

#include <string.h>

/* Staged instances take what is tagged so, to be tried before they serve. */
#define TEST_TAG "test"

static enum rbi_route_reason unfit(const struct rbi_directory_instance *instance, const char *tag)
{
    switch (instance->state) {
    case RBI_ENDPOINT_READY:
    case RBI_ENDPOINT_BUSY:
        break;
    case RBI_ENDPOINT_STARTING:
        return RBI_ROUTE_STARTING;
    case RBI_ENDPOINT_DRAINING:
        return RBI_ROUTE_DRAINING;
    default:
        return RBI_ROUTE_CLOSED;
    }
    if ((instance->override & RBI_OVERRIDE_ISOLATED) != 0) {
        return RBI_ROUTE_ISOLATED;
    }
    if ((instance->override & RBI_OVERRIDE_STAGED) != 0 && strcmp(tag, TEST_TAG) != 0) {
        return RBI_ROUTE_STAGED;
    }
    return instance->weight == 0 ? RBI_ROUTE_WEIGHT_0 : RBI_ROUTE_FITS;
}

void rbi_route_state(struct rbi_route *route)
{
    rbi_route_step(route, RBI_ROUTE_STATE)->mode = RBI_STAGE_STRICT;
    for (struct rbi_route_entry *entry = route->entries; entry < rbi_route_end(route); entry++) {
        struct rbi_route_cause cause = {.stage = RBI_ROUTE_STATE, .rule = RBI_ROUTE_NO_RULE};
        cause.reason = unfit(rbi_route_instance(route, entry), route->tag);
        if (cause.reason != RBI_ROUTE_FITS) {
            rbi_route_drop(entry, &cause);
        }
    }
}

void rbi_route_acl(struct rbi_route *route)
{
    const struct rbi_route_cause cause = {
        .stage = RBI_ROUTE_ACL, .reason = RBI_ROUTE_INVISIBLE, .rule = RBI_ROUTE_NO_RULE};
    rbi_route_step(route, RBI_ROUTE_ACL)->mode = RBI_STAGE_STRICT;
    for (struct rbi_route_entry *entry = route->entries; entry < rbi_route_end(route); entry++) {
        const uint64_t *invisible = route->in->clusters[entry->cluster].invisible;
        if (invisible != NULL && (invisible[entry->index / 64] >> (entry->index % 64) & 1U) != 0) {
            rbi_route_drop(entry, &cause);
        }
    }
}

void rbi_route_filter(struct rbi_route *route)
{
    struct rbi_route_step *step = rbi_route_step(route, RBI_ROUTE_FILTER);
    step->mode = RBI_STAGE_STRICT;
    step->skipped = true;
    for (unsigned i = 0; i < route->in->cluster_count; i++) {
        step->skipped = step->skipped && route->in->clusters[i].filtered == NULL;
    }
    for (struct rbi_route_entry *entry = route->entries; entry < rbi_route_end(route); entry++) {
        const uint8_t *filtered = route->in->clusters[entry->cluster].filtered;
        if (filtered != NULL && filtered[entry->index] != 0) {
            const struct rbi_route_cause cause = {.stage = RBI_ROUTE_FILTER,
                                                  .reason = RBI_ROUTE_FILTERED,
                                                  .rule = filtered[entry->index] - 1U};
            rbi_route_drop(entry, &cause);
        }
    }
}
