/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/daemon.h"
#include "daemon/numa.h"
#include "daemon/request.h"

/** Unanswered. Watchers are not told: nothing that an event says has changed. */
void rbi_handle_place(const struct rbi_request *request)
{
    struct rbi_endpoint *endpoint = request->peer->endpoint;
    const uint16_t node = rbi_numa_checked(request->body->place.node);
    if (endpoint->node == node) {
        return;
    }
    endpoint->node = node;
    if (endpoint->visible) {
        rbi_registry_refresh(request->daemon, endpoint->cluster);
    }
}
