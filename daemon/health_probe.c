/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shielded instance comes back by probes: the daemon asks it for a sign of life itself, then lets
 * one caller after the other send it one real request. Whatever becomes of that caller and its
 * request, the probe ends in time: by its word, by its end, or by the deadline that the shield
 * keeps.
 */
#include "daemon/code.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/request.h"

#include <inttypes.h>

#define NS_PER_MS UINT64_C(1000000)
/* Who has called the cluster within so long is likely to do so again before a probe is over. */
#define ACTIVE_NS (1000 * NS_PER_MS)
/* Of the protocol that knows probes. */
#define PROTOCOL_MIN 2U

/* ---- the instance itself ------------------------------------------------------------------ */

void rbi_health_ping(struct rbi_cluster_health *health, struct rbi_endpoint *endpoint)
{
    const struct rbi_wire_probe probe = {.number = endpoint->health.ping};
    if (probe.number == 0) {
        return;
    }
    endpoint->health.ping = 0;
    if (endpoint->peer->protocol < PROTOCOL_MIN || endpoint->origin) {
        /* It cannot answer; that it is connected has to do, and the probes decide. */
        const struct rbi_shield_turn turn = rbi_health_turn(health);
        rbi_shield_ping(&health->shield, endpoint->instance, probe.number, true, &turn);
        return;
    }
    rbi_peer_send(endpoint->peer, RBI_WIRE_PROBE, &probe, 0);
}

void rbi_handle_probe(const struct rbi_request *request)
{
    const struct rbi_endpoint *endpoint = request->peer->endpoint;
    struct rbi_cluster_health *health = endpoint->cluster ? endpoint->cluster->health : NULL;
    if (health) {
        const struct rbi_shield_turn turn = rbi_health_turn(health);
        rbi_shield_ping(&health->shield, endpoint->instance, request->body->probe.number, true,
                        &turn);
    }
}

/* ---- callers ------------------------------------------------------------------------------ */

static bool probe_may(const struct rbi_endpoint *caller,
                      const struct rbi_cluster_health *health,
                      const struct rbi_shield_grant *grant,
                      uint64_t now_ns)
{
    const struct rbi_outcome_reader *reader = &caller->outcomes;
    const bool vain = now_ns - reader->vain_ns <= ACTIVE_NS; /* whom it called it does not say */
    bool has = false;
    if ((now_ns - reader->active_ns > ACTIVE_NS && !vain) || caller->peer->doomed ||
        caller->peer->protocol < PROTOCOL_MIN ||
        (caller->health.probe.token != 0 && caller->health.probe.deadline_ns > now_ns)) {
        return false;
    }
    const uint64_t active_ns = rbi_outcome_active_ns(
        reader, health->cluster->id, rbi_outcome_who(grant->instance, grant->incarnation), &has);
    return has && (vain || (active_ns != 0 && now_ns - active_ns <= ACTIVE_NS));
}

/** Who calls the cluster now and has a link to the instance; others each time. NULL: nobody. */
static struct rbi_endpoint *probe_caller(struct rbi_cluster_health *health,
                                         const struct rbi_shield_grant *grant)
{
    struct rbi_list *readers = &health->daemon->health.readers;
    const uint64_t now_ns = rbi_loop_now_ns(health->daemon->loop);
    RBI_LIST_EACH(node, spare, readers)
    {
        struct rbi_outcome_reader *reader =
            RBI_CONTAINER_OF(node, struct rbi_outcome_reader, in_readers);
        struct rbi_endpoint *caller = RBI_CONTAINER_OF(reader, struct rbi_endpoint, outcomes);
        if (probe_may(caller, health, grant, now_ns)) {
            rbi_list_remove(node);
            rbi_list_push_back(readers, node); /* the next time it is another's turn */
            return caller;
        }
    }
    return NULL;
}

static uint32_t probe_ms(uint64_t until_ns, uint64_t now_ns)
{
    return until_ns > now_ns ? (uint32_t)rbi_min_u64((until_ns - now_ns) / NS_PER_MS, UINT32_MAX)
                             : 0;
}

static void probe_send(struct rbi_cluster_health *health,
                       struct rbi_endpoint *caller,
                       const struct rbi_shield_grant *grant)
{
    const uint64_t now_ns = rbi_loop_now_ns(health->daemon->loop);
    const struct rbi_wire_probe_grant body = {.token = grant->token,
                                              .cluster = health->cluster->id,
                                              .instance = grant->instance,
                                              .incarnation = grant->incarnation,
                                              .use_ms = probe_ms(grant->use_by_ns, now_ns),
                                              .timeout_ms = probe_ms(grant->deadline_ns, now_ns)};
    caller->health.probe = (struct rbi_health_probe){.token = grant->token,
                                                     .cluster = health->cluster->id,
                                                     .instance = grant->instance,
                                                     .deadline_ns = grant->deadline_ns};
    health->daemon->counters.probes++;
    rbi_peer_send(caller->peer, RBI_WIRE_PROBE_GRANT, &body, 0);
}

void rbi_health_grant(struct rbi_cluster_health *health)
{
    struct rbi_shield_turn turn = rbi_health_turn(health);
    struct rbi_shield_grant grant;
    while (rbi_shield_probe_grant(&health->shield, &grant, &turn) == 0) {
        struct rbi_endpoint *caller = probe_caller(health, &grant);
        if (caller) {
            probe_send(health, caller, &grant);
        } else {
            rbi_shield_probe_end(&health->shield, grant.instance, grant.token,
                                 RBI_SHIELD_PROBE_UNUSED, &turn);
        }
        turn = rbi_health_turn(health);
    }
}

/** Ends the probe of a caller, if that is the one. */
static void
probe_end(struct rbi_endpoint *caller, uint64_t token, enum rbi_shield_probe_result result)
{
    const struct rbi_health_probe probe = caller->health.probe;
    if (token == 0 || probe.token != token) {
        return;
    }
    caller->health.probe = (struct rbi_health_probe){.token = 0};
    const struct rbi_cluster *cluster =
        rbi_registry_cluster(&caller->daemon->registry, probe.cluster);
    if (cluster && cluster->health) {
        const struct rbi_shield_turn turn = rbi_health_turn(cluster->health);
        rbi_shield_probe_end(&cluster->health->shield, probe.instance, token, result, &turn);
    }
}

void rbi_handle_probe_result(const struct rbi_request *request)
{
    const struct rbi_wire_probe_result *body = &request->body->probe_result;
    enum rbi_shield_probe_result result = RBI_SHIELD_PROBE_UNUSED;
    if (body->outcome == RBI_PROBE_OK) {
        result = RBI_SHIELD_PROBE_OK;
    } else if (body->outcome == RBI_PROBE_FAILED) {
        result = RBI_SHIELD_PROBE_FAIL;
    } else if (body->outcome == RBI_PROBE_CANCELLED) {
        result = RBI_SHIELD_PROBE_CANCELLED;
    } else if (body->outcome == RBI_PROBE_NO_ROOM) {
        result = RBI_SHIELD_PROBE_REFUSED_FULL;
    }
    probe_end(request->peer->endpoint, body->token, result);
}

void rbi_health_endpoint_gone(struct rbi_endpoint *endpoint)
{
    if (!endpoint->daemon->stopping) {
        probe_end(endpoint, endpoint->health.probe.token, RBI_SHIELD_PROBE_CALLER_DIED);
    }
}

/* ---- the operator ------------------------------------------------------------------------- */

void rbi_handle_unshield(const struct rbi_request *request)
{
    const struct rbi_text *path = &request->body->unshield.path;
    const uint32_t incarnation = request->body->unshield.incarnation;
    struct rbi_path_info info;
    struct rbi_pidf pidf;
    if (rbi_pidf_parse(path->bytes, path->length, &pidf, &info) != 0 ||
        info.elements != RBI_PATH_INSTANCE_ELEMENTS) {
        rbi_request_refuse(request, RBI_CODE_PATH, "not the path of an instance");
        return;
    }
    const struct rbi_cluster *cluster =
        rbi_registry_cluster(&request->daemon->registry, pidf.cluster);
    struct rbi_endpoint *endpoint = cluster ? rbi_cluster_member(cluster, pidf.instance) : NULL;
    if (!endpoint || endpoint->peer->doomed ||
        (incarnation && incarnation != endpoint->incarnation)) {
        rbi_request_refuse(request, RBI_CODE_NO_INSTANCE, "no instance %.200s", path->bytes);
        return;
    }
    if (!rbi_rights_admin(request, endpoint)) {
        return;
    }
    uint64_t cleared = 0; /* one that nobody has called, or chooses now, has no state */
    if (cluster->health) {
        const struct rbi_shield_turn turn = rbi_health_turn(cluster->health);
        cleared = rbi_shield_unshield(&cluster->health->shield, pidf.instance, &turn) == 0;
    }
    rbi_request_ok(request, cleared);
}
