/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/unconfirmed.h"

#include "daemon/daemon.h"
#include "daemon/log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void rbi_unconfirmed_set(struct rbi_daemon *daemon,
                         struct rbi_cluster *cluster,
                         struct rbi_directory_instance *instances,
                         uint32_t count)
{
    RBI_ASSERT(cluster->unconfirmed.count == 0);
    cluster->unconfirmed.instances = instances;
    cluster->unconfirmed.count = count;
    for (uint32_t i = 0; i < count; i++) {
        instances[i].health = RBI_HEALTH_OK; /* was found out by another; measured anew */
        instances[i].ramp = 0;
        instances[i].reported = 0;
        instances[i].demand = 0;
        instances[i].node_demand = 0;
    }
    if (count) {
        rbi_list_push_back(&daemon->registry.unconfirmed, &cluster->unconfirmed.in_registry);
    }
}

void rbi_unconfirmed_free(struct rbi_cluster *cluster)
{
    rbi_list_remove(&cluster->unconfirmed.in_registry);
    free(cluster->unconfirmed.instances);
    cluster->unconfirmed.instances = NULL;
    cluster->unconfirmed.count = 0;
}

bool rbi_unconfirmed_drop(struct rbi_cluster *cluster, int32_t instance)
{
    struct rbi_unconfirmed *unconfirmed = &cluster->unconfirmed;
    for (uint32_t i = 0; i < unconfirmed->count; i++) {
        if (unconfirmed->instances[i].instance == instance) {
            unconfirmed->count--;
            memmove(&unconfirmed->instances[i], &unconfirmed->instances[i + 1],
                    (unconfirmed->count - i) * sizeof(struct rbi_directory_instance));
            if (unconfirmed->count == 0) {
                rbi_unconfirmed_free(cluster);
            }
            return true;
        }
    }
    return false;
}

void rbi_unconfirmed_clear(struct rbi_daemon *daemon)
{
    struct rbi_registry *registry = &daemon->registry;
    while (!rbi_list_empty(&registry->unconfirmed)) {
        struct rbi_cluster *cluster = RBI_CONTAINER_OF(registry->unconfirmed.next,
                                                       struct rbi_cluster, unconfirmed.in_registry);
        for (uint32_t i = 0; i < cluster->unconfirmed.count; i++) {
            rbi_log(RBI_LOG_INFO, "not_returned", "path=%s/%s incarnation=%" PRIu32,
                    cluster->path.bytes, cluster->unconfirmed.instances[i].name,
                    cluster->unconfirmed.instances[i].incarnation);
        }
        rbi_unconfirmed_free(cluster);
        rbi_registry_refresh(daemon, cluster);
    }
}

uint32_t rbi_unconfirmed_count(const struct rbi_daemon *daemon)
{
    uint32_t count = 0;
    RBI_LIST_EACH(node, spare, &daemon->registry.unconfirmed)
    {
        count +=
            RBI_CONTAINER_OF(node, struct rbi_cluster, unconfirmed.in_registry)->unconfirmed.count;
    }
    return count;
}
