/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draining an instance from outside. The daemon shows it as DRAINING at once, so that nobody
 * new is introduced and dispatch goes elsewhere even when the instance does not react; then it
 * orders the instance to drain, which reports how far it is. Who asks looks again and again.
 */
#include "daemon/code.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/request.h"

#include <inttypes.h>

/* An operator changes his mind a few times; whoever does it on and on does not fill the log. */
#define LOGS_PER_S 1U
#define LOGS_BURST 10U

/** The instance that is meant, or NULL: the tool has been told why not. */
static struct rbi_endpoint *drain_find(const struct rbi_request *request)
{
    const struct rbi_wire_drain *body = &request->body->drain;
    struct rbi_path_info info;
    struct rbi_pidf pidf;
    if (rbi_pidf_parse(body->path.bytes, body->path.length, &pidf, &info) != 0 ||
        info.elements != RBI_PATH_INSTANCE_ELEMENTS) {
        rbi_request_refuse(request, RBI_CODE_PATH, "not the path of an instance");
        return NULL;
    }
    const struct rbi_cluster *cluster =
        rbi_registry_cluster(&request->daemon->registry, pidf.cluster);
    struct rbi_endpoint *endpoint = cluster ? rbi_cluster_member(cluster, pidf.instance) : NULL;
    if (!endpoint || endpoint->peer->doomed || endpoint->state == RBI_ENDPOINT_CLOSED ||
        (body->incarnation && body->incarnation != endpoint->incarnation)) {
        rbi_request_refuse(request, RBI_CODE_NO_INSTANCE, "no instance %.200s", body->path.bytes);
        return NULL;
    }
    return endpoint;
}

static void drain_log(const struct rbi_request *request, struct rbi_endpoint *endpoint, bool start)
{
    if (rbi_quota_pace(&endpoint->drain_log_tat_ns, rbi_loop_now_ns(request->daemon->loop),
                       LOGS_PER_S, LOGS_BURST) != 0) {
        endpoint->drain_logs_withheld++;
        return;
    }
    rbi_log(RBI_LOG_INFO, start ? "drain" : "undrain",
            "path=%s by_uid=%" PRIu32 " by_pid=%s suppressed=%" PRIu64, endpoint->path.bytes,
            request->peer->uid, rbi_log_pid(&(struct rbi_log_pid){{0}}, request->peer->pid),
            endpoint->drain_logs_withheld);
    endpoint->drain_logs_withheld = 0;
}

static void
drain_order(const struct rbi_request *request, struct rbi_endpoint *endpoint, bool start)
{
    const struct rbi_wire_drain_order order = {.what = start ? RBI_DRAIN_START : RBI_DRAIN_STOP};
    if (start && endpoint->drain.ordered) {
        return; /* as it is; a second order has nothing to add */
    }
    endpoint->drain = (struct rbi_endpoint_drain){.ordered = start};
    const uint32_t seen = rbi_endpoint_seen_state(endpoint, endpoint->own_state);
    if (seen != endpoint->state) {
        endpoint->state = seen;
        rbi_registry_update(request->daemon, endpoint);
    }
    drain_log(request, endpoint, start);
    rbi_peer_send(endpoint->peer, RBI_WIRE_DRAIN_ORDER, &order, 0);
}

void rbi_handle_drain(const struct rbi_request *request)
{
    const uint32_t what = request->body->drain.what;
    struct rbi_endpoint *endpoint = drain_find(request);
    if (!endpoint) {
        return;
    }
    if (what < RBI_DRAIN_START || what > RBI_DRAIN_LOOK) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT, "nothing to do: %" PRIu32, what);
        return;
    }
    if (endpoint->origin) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT, "%.140s is drained where it lives: host %s",
                           endpoint->path.bytes, endpoint->origin->host);
        return;
    }
    if (what != RBI_DRAIN_LOOK) {
        if (!rbi_rights_admin(request, endpoint)) {
            return;
        }
        drain_order(request, endpoint, what == RBI_DRAIN_START);
    }
    const struct rbi_wire_drain_state state = {.incarnation = endpoint->incarnation,
                                               .state = endpoint->state,
                                               .reported = endpoint->drain.reported,
                                               .step = endpoint->drain.step,
                                               .left = endpoint->drain.left};
    rbi_peer_send(request->peer, RBI_WIRE_DRAIN_STATE, &state, request->serial);
}

void rbi_handle_drain_report(const struct rbi_request *request)
{
    const struct rbi_wire_drain_report *body = &request->body->drain_report;
    struct rbi_endpoint *endpoint = request->peer->endpoint;
    /* Shown to who asks and nothing else; a step that we do not know is not the last one. */
    endpoint->drain.reported = true;
    endpoint->drain.step = body->step;
    endpoint->drain.left = body->left;
}
