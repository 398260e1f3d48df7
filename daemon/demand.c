/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/demand.h"

#include "bus/label.h"
#include "daemon/daemon.h"
#include "daemon/policy.h"

#include <stdlib.h>

/** Whether two instances lie in different places; whom nobody sees lies nowhere. */
static bool demand_is_spread(const struct rbi_cluster *cluster)
{
    const struct rbi_endpoint *first = NULL;
    for (uint32_t i = 0; i < cluster->member_count; i++) {
        const struct rbi_endpoint *member = cluster->members[i];
        if (!member->visible) {
            continue;
        }
        first = first ? first : member;
        if (member->node != first->node ||
            !rbi_label_equal(rbi_label_idc_parse(member->seen.idc).group,
                             rbi_label_idc_parse(first->seen.idc).group)) {
            return true;
        }
    }
    return false;
}

static bool demand_matters(const struct rbi_cluster_health *health)
{
    const struct rbi_locality_policy *policy =
        &rbi_daemon_policy(health->daemon, health->cluster)->locality;
    return policy->mode != RBI_STAGE_OFF && policy->capacity_spill != 0 &&
           demand_is_spread(health->cluster);
}

void rbi_demand_take(struct rbi_cluster_health *health,
                     const struct rbi_endpoint *caller,
                     uint64_t calls)
{
    const uint64_t now_ns = rbi_loop_now_ns(health->daemon->loop);
    if (!health->demand && demand_matters(health) &&
        (health->demand = malloc(sizeof(*health->demand))) != NULL) {
        rbi_demand_init(health->demand, now_ns);
    }
    if (health->demand) {
        rbi_demand_add(health->demand, caller->seen.idc, caller->node,
                       (uint32_t)rbi_min_u64(calls, UINT32_MAX));
    }
}

bool rbi_demand_judge(struct rbi_cluster_health *health, uint64_t now_ns)
{
    struct rbi_demand *demand = health->demand;
    if (!demand) {
        return false;
    }
    if (demand_matters(health)) {
        return rbi_demand_turn(demand, now_ns);
    }
    const bool told = demand->told;
    health->demand = NULL;
    free(demand);
    return told;
}

void rbi_demand_fill(const struct rbi_cluster *cluster, struct rbi_directory_instance *out)
{
    const struct rbi_demand *demand = cluster->health ? cluster->health->demand : NULL;
    if (demand) {
        out->demand = (uint16_t)rbi_demand_group(demand, out->idc);
        out->node_demand = (uint16_t)rbi_demand_node(demand, out->idc, out->node);
    }
}
