/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/code.h"
#include "daemon/daemon.h"
#include "daemon/request.h"

#include <inttypes.h>

/** @return whether the change makes sense; if not the client has been told */
static bool set_state_check(const struct rbi_request *request)
{
    const struct rbi_wire_set_state *body = &request->body->set_state;
    const struct rbi_endpoint *endpoint = request->peer->endpoint;
    if (body->weight_set && body->weight > RBI_WEIGHT_MAX) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT, "weight %" PRIu32 " is above %u",
                           body->weight, RBI_WEIGHT_MAX);
        return false;
    }
    const bool known = body->state == RBI_ENDPOINT_STARTING || body->state == RBI_ENDPOINT_CLOSED ||
                       rbi_registry_state_visible(body->state);
    const bool back_to_start =
        body->state == RBI_ENDPOINT_STARTING && endpoint->own_state != RBI_ENDPOINT_STARTING;
    if (!known || back_to_start ||
        (endpoint->state == RBI_ENDPOINT_CLOSED && body->state != RBI_ENDPOINT_CLOSED)) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT,
                           "no way from state %" PRIu32 " to state %" PRIu32, endpoint->state,
                           body->state);
        return false;
    }
    return true;
}

void rbi_handle_set_state(const struct rbi_request *request)
{
    const struct rbi_wire_set_state *body = &request->body->set_state;
    struct rbi_endpoint *endpoint = request->peer->endpoint;
    if (!set_state_check(request)) {
        return;
    }
    const uint32_t seen = rbi_endpoint_seen_state(endpoint, body->state);
    if (body->weight_set) {
        endpoint->own.weight = body->weight;
    }
    /* Nothing else of it changes here: who only says its state asks for no list. */
    const bool labelled = body->weight_set && rbi_live_label(endpoint);
    const bool changed = endpoint->state != seen || labelled;
    const uint32_t old_state = endpoint->state;
    const uint32_t old_own_state = endpoint->own_state;
    endpoint->state = seen;
    endpoint->own_state = body->state;
    if (!rbi_registry_state_visible(body->state)) {
        rbi_registry_hide(request->daemon, endpoint, RBI_REASON_LEFT);
    } else if (!endpoint->visible) {
        const int result = rbi_registry_show(request->daemon, endpoint);
        if (result < 0) {
            endpoint->state = old_state;
            endpoint->own_state = old_own_state;
            rbi_request_refuse_errno(request, "directory", result);
            return;
        }
    } else if (changed) {
        rbi_registry_update(request->daemon, endpoint);
    }
    rbi_request_ok(request, 0);
}
