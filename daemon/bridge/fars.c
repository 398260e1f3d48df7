/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/fars.h"

#include "daemon/bridge/ends.h"
#include "daemon/bridge/export.h"
#include "daemon/bridge/import_desk.h"
#include "daemon/bridge/neighbour.h"
#include "daemon/bridge/tunnel.h"
#include "daemon/log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct rbi_far *rbi_fars_find(struct rbi_bridge *bridge, uint64_t id)
{
    return rbi_map_get(&bridge->hosts, id);
}

struct rbi_far *rbi_fars_named(struct rbi_bridge *bridge, const char *name)
{
    const size_t length = strnlen(name, RBI_HOST_NAME_MAX + 1);
    const uint64_t id = rbi_host_id(name, length);
    struct rbi_far *far = rbi_fars_find(bridge, id);
    if (far != NULL || !rbi_host_name_valid(name, length) || id == bridge->self ||
        rbi_map_count(&bridge->hosts) >= RBI_HOSTS_MAX) {
        return far;
    }
    far = calloc(1, sizeof *far);
    if (far == NULL || rbi_map_put(&bridge->hosts, id, far) < 0) {
        free(far);
        return NULL;
    }
    far->bridge = bridge;
    far->id = id;
    far->since_ns = rbi_bridge_now_ns(bridge);
    memcpy(far->name, name, length);
    rbi_list_init(&far->tunnels);
    rbi_list_init(&far->ends);
    return far;
}

struct rbi_session *rbi_far_way(const struct rbi_far *far)
{
    if (far->next != NULL && far->next->session != NULL) {
        return far->next->session;
    }
    return far->direct != NULL ? far->direct->session : NULL;
}

/* What has changed since it was last told. */
static void look_at(struct rbi_far *far)
{
    struct rbi_bridge *bridge = far->bridge;
    const struct rbi_session *way = rbi_far_way(far);
    const bool reachable = way != NULL;
    const bool other = reachable && (way != far->way || way->began_ns != far->way_began_ns);
    far->way = way;
    far->way_began_ns = reachable ? way->began_ns : 0;
    if (reachable != far->reachable) {
        far->reachable = reachable;
        far->since_ns = rbi_bridge_now_ns(bridge);
        rbi_log(RBI_LOG_INFO, reachable ? "host_reachable" : "host_unreachable", "host=%s",
                far->name);
        if (reachable) {
            rbi_export_resume(bridge->export, far->id);
            rbi_bridge_pump(bridge);
        } else {
            rbi_export_pause(bridge->export, far->id);
        }
        rbi_import_desk_reach(bridge->import, far->id, far->name, reachable);
        rbi_far_ends_way(far);
    } else if (other) {
        rbi_import_desk_way_changed(bridge->import, far->id); /* what was under way may be lost */
    }
    if (reachable) {
        rbi_tunnels_way(far);
    }
}

void rbi_fars_look(struct rbi_bridge *bridge)
{
    ck_ht_iterator_t cursor = CK_HT_ITERATOR_INITIALIZER;
    for (struct rbi_far *far = NULL; (far = rbi_map_next(&bridge->hosts, &cursor)) != NULL;) {
        look_at(far);
    }
}

void rbi_fars_way(
    struct rbi_bridge *bridge, const char *host, const char *next, uint32_t cost, uint32_t hops)
{
    struct rbi_far *far = rbi_fars_named(bridge, host);
    if (far == NULL) {
        return;
    }
    far->next = next[0] != '\0' ? rbi_neighbour_find(bridge, next) : NULL;
    far->cost = cost;
    far->hops = hops;
    look_at(far);
    rbi_far_ends_way(far);
}

void rbi_fars_free(struct rbi_bridge *bridge)
{
    ck_ht_iterator_t cursor = CK_HT_ITERATOR_INITIALIZER;
    for (struct rbi_far *far = NULL; (far = rbi_map_next(&bridge->hosts, &cursor)) != NULL;) {
        free(far->edges);
        free(far);
    }
    rbi_map_deinit(&bridge->hosts);
}
