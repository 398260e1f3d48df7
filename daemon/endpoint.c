/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/endpoint.h"

#include "daemon/daemon.h"
#include "daemon/link.h"
#include "daemon/nodes.h"
#include "daemon/origin.h"
#include "daemon/registry.h"
#include "daemon/relink.h"

#include <stdlib.h>
#include <unistd.h>

struct rbi_endpoint *rbi_endpoint_new(struct rbi_daemon *daemon, struct rbi_peer *peer)
{
    struct rbi_endpoint *endpoint = calloc(1, sizeof(*endpoint));
    if (!endpoint) {
        return NULL;
    }
    endpoint->daemon = daemon;
    endpoint->peer = peer;
    endpoint->page = (struct rbi_segment)RBI_SEGMENT_NULL;
    endpoint->page_fd = -1;
    endpoint->pool_fd = -1;
    rbi_list_init(&endpoint->in_registry);
    rbi_outcome_reader_init(&endpoint->outcomes);
    rbi_list_init(&endpoint->links_out);
    rbi_list_init(&endpoint->links_in);
    rbi_list_init(&endpoint->claims);
    rbi_list_init(&endpoint->leases);
    rbi_list_init(&endpoint->nodes);
    rbi_shares_init(&endpoint->foreign_links);
    return endpoint;
}

bool rbi_endpoint_is_member(const struct rbi_endpoint *endpoint)
{
    return endpoint->name_offset != 0 && !(endpoint->origin && endpoint->origin->hidden);
}

uint32_t rbi_endpoint_seen_state(const struct rbi_endpoint *endpoint, uint32_t own_state)
{
    const bool takes_work = own_state == RBI_ENDPOINT_READY || own_state == RBI_ENDPOINT_BUSY;
    return endpoint->drain.ordered && takes_work ? RBI_ENDPOINT_DRAINING : own_state;
}

struct rbi_endpoint *rbi_endpoint_free(struct rbi_endpoint *endpoint)
{
    if (!endpoint) {
        return NULL;
    }
    const enum rbi_reason reason = endpoint->replaced                       ? RBI_REASON_REPLACED
                                   : endpoint->state == RBI_ENDPOINT_CLOSED ? RBI_REASON_LEFT
                                                                            : RBI_REASON_CRASHED;
    rbi_health_endpoint_gone(endpoint);
    rbi_leases_endpoint_gone(endpoint);
    rbi_registry_hide(endpoint->daemon, endpoint, reason);
    rbi_nodes_endpoint_gone(endpoint, reason);
    rbi_relink_clear(endpoint);
    rbi_link_endpoint_gone(endpoint, reason);
    rbi_names_leave(&endpoint->daemon->names, endpoint);
    rbi_registry_remove(endpoint->daemon, endpoint);
    rbi_origin_deinit(endpoint);
    rbi_segment_deinit(&endpoint->page);
    rbi_outcome_reader_deinit(&endpoint->outcomes);
    free(endpoint->health.figures);
    if (endpoint->page_fd >= 0) {
        (void)close(endpoint->page_fd);
    }
    if (endpoint->pool_fd >= 0) {
        rbi_closer_close(&endpoint->daemon->closer, endpoint->pool_fd, endpoint->pool_bytes);
    }
    rbi_charge_release(&endpoint->instance_charge);
    rbi_charge_release(&endpoint->bytes_charge);
    free(endpoint);
    return NULL;
}
