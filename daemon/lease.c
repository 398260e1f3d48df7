/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/lease.c - see daemon/lease.h. */
#include "daemon/lease.h"

#include "daemon/daemon.h"
#include "daemon/policy.h"
#include "daemon/request.h"

#include <stdlib.h>
#include <string.h>

/* A share that stays is told again while it is fresh: half of its time. */
#define LEASE_AGAIN_NS (RBI_LEASE_FRESH_NS / 2)

void rbi_leases_init(struct rbi_lease_desk *desk)
{
    rbi_list_init(&desk->quotas);
}

static void caller_free(struct rbi_lease_caller *caller)
{
    struct rbi_lease_quota *quota = caller->quota;
    rbi_list_remove(&caller->in_quota);
    rbi_list_remove(&caller->in_endpoint);
    free(caller);
    if (--quota->caller_count == 0) {
        rbi_list_remove(&quota->in_quotas);
        free(quota);
    }
}

void rbi_leases_endpoint_gone(struct rbi_endpoint *endpoint)
{
    RBI_LIST_EACH(node, next, &endpoint->leases)
    {
        caller_free(RBI_CONTAINER_OF(node, struct rbi_lease_caller, in_endpoint));
    }
}

void rbi_leases_deinit(struct rbi_lease_desk *desk)
{
    free(desk->leases);
    free(desk->order);
    free(desk->asking);
}

/* ---- a division ---------------------------------------------------------------------------- */

/** Rate of the limit as it is configured now, in thousandths; 0: there is none of that name. */
static uint64_t
quota_rate(struct rbi_daemon *daemon, uint64_t cluster_id, const struct rbi_text *id)
{
    struct rbi_cluster *cluster = rbi_registry_cluster(&daemon->registry, cluster_id);
    const struct rbi_policy *policy = cluster ? rbi_daemon_policy(daemon, cluster) : NULL;
    for (unsigned i = 0; policy && i < policy->limit_count; i++) {
        const struct rbi_limit *limit = &policy->limits[i];
        if (limit->scope == RBI_LIMIT_CLUSTER && strcmp(limit->id, id->bytes) == 0) {
            return 1000 * rbi_min_u64(limit->rate, UINT64_MAX / 1000);
        }
    }
    return 0;
}

static bool desk_has_room(struct rbi_lease_desk *desk, unsigned count)
{
    if (count <= desk->room) {
        return true;
    }
    const unsigned room = count + count / 2;
    struct rbi_lease *leases = realloc(desk->leases, room * sizeof *leases);
    desk->leases = leases ? leases : desk->leases;
    uint32_t *order = realloc(desk->order, room * sizeof *order);
    desk->order = order ? order : desk->order;
    struct rbi_lease_caller **asking =
        realloc(desk->asking, room * sizeof *asking); /* NOLINT(bugprone-sizeof-expression) */
    desk->asking = asking ? asking : desk->asking;
    if (!leases || !order || !asking) {
        return false;
    }
    desk->room = room;
    return true;
}

/** Those who want something, with what they want. @return how many */
static unsigned collect(struct rbi_lease_desk *desk, struct rbi_lease_quota *quota, uint64_t now_ns)
{
    unsigned count = 0;
    RBI_LIST_EACH(node, next, &quota->callers)
    {
        struct rbi_lease_caller *caller = RBI_CONTAINER_OF(node, struct rbi_lease_caller, in_quota);
        if (now_ns - caller->demand_ns >= RBI_LEASE_DEMAND_NS) {
            caller->told = 0; /* it sends nothing: what it was told is for the others */
            caller->told_ns = 0;
            continue;
        }
        desk->asking[count] = caller;
        desk->leases[count++] = (struct rbi_lease){.demand = caller->demand, .told = caller->told};
    }
    return count;
}

static void
tell(struct rbi_lease_caller *caller, uint64_t share, uint64_t fallback, uint64_t now_ns)
{
    /* A little more or less is not worth a message, unless it would be more than there is. */
    const bool near = share >= caller->told && share - caller->told <= caller->told / 32 &&
                      fallback == caller->told_fallback;
    if (near && caller->told_ns != 0 && now_ns - caller->told_ns < LEASE_AGAIN_NS) {
        return;
    }
    const struct rbi_lease_quota *quota = caller->quota;
    const struct rbi_wire_lease lease = {
        .cluster = quota->cluster, .limit = quota->limit, .share = share, .fallback = fallback};
    caller->told = share;
    caller->told_fallback = fallback;
    caller->told_ns = now_ns;
    rbi_peer_send(caller->endpoint->peer, RBI_WIRE_LEASE, &lease, 0);
}

/** @return whether somebody asks */
static bool divide(struct rbi_daemon *daemon, struct rbi_lease_quota *quota, uint64_t now_ns)
{
    struct rbi_lease_desk *desk = &daemon->leases;
    const uint64_t rate = quota_rate(daemon, quota->cluster, &quota->limit);
    if (rate == 0 || !desk_has_room(desk, quota->caller_count)) {
        return rate != 0; /* nobody is told: they fall back, each to its static share */
    }
    const uint64_t fallback = rbi_lease_static(rate, quota->caller_count);
    const unsigned count = collect(desk, quota, now_ns);
    rbi_lease_divide(rate, desk->leases, count, desk->order);
    rbi_lease_settle(rate, desk->leases, count);
    for (unsigned i = 0; i < count; i++) {
        tell(desk->asking[i], desk->leases[i].share, fallback, now_ns);
    }
    return count > 0;
}

static void divide_all(void *context)
{
    struct rbi_daemon *daemon = context;
    const uint64_t now_ns = rbi_loop_now_ns(daemon->loop);
    bool asked = false;
    RBI_LIST_EACH(node, next, &daemon->leases.quotas)
    {
        asked |= divide(daemon, RBI_CONTAINER_OF(node, struct rbi_lease_quota, in_quotas), now_ns);
    }
    if (asked) {
        rbi_loop_timer_set(daemon->loop, &daemon->leases.timer, now_ns + RBI_LEASE_PERIOD_NS,
                           divide_all, daemon);
    }
}

/* ---- a demand -------------------------------------------------------------------------------- */

static struct rbi_lease_quota *
quota_of(struct rbi_lease_desk *desk, uint64_t cluster, const struct rbi_text *limit)
{
    RBI_LIST_EACH(node, next, &desk->quotas)
    {
        struct rbi_lease_quota *quota = RBI_CONTAINER_OF(node, struct rbi_lease_quota, in_quotas);
        if (quota->cluster == cluster && strcmp(quota->limit.bytes, limit->bytes) == 0) {
            return quota;
        }
    }
    struct rbi_lease_quota *quota = calloc(1, sizeof *quota);
    if (quota) {
        quota->cluster = cluster;
        quota->limit = *limit;
        rbi_list_init(&quota->callers);
        rbi_list_push_back(&desk->quotas, &quota->in_quotas);
    }
    return quota;
}

static struct rbi_lease_caller *
caller_of(struct rbi_endpoint *endpoint, uint64_t cluster, const struct rbi_text *limit)
{
    RBI_LIST_EACH(node, next, &endpoint->leases)
    {
        struct rbi_lease_caller *caller =
            RBI_CONTAINER_OF(node, struct rbi_lease_caller, in_endpoint);
        if (caller->quota->cluster == cluster &&
            strcmp(caller->quota->limit.bytes, limit->bytes) == 0) {
            return caller;
        }
    }
    struct rbi_lease_caller *caller = calloc(1, sizeof *caller);
    struct rbi_lease_quota *quota =
        caller ? quota_of(&endpoint->daemon->leases, cluster, limit) : NULL;
    if (!quota) {
        free(caller);
        return NULL;
    }
    caller->quota = quota;
    caller->endpoint = endpoint;
    quota->caller_count++;
    rbi_list_push_back(&quota->callers, &caller->in_quota);
    rbi_list_push_back(&endpoint->leases, &caller->in_endpoint);
    return caller;
}

static bool has_link(const struct rbi_endpoint *endpoint, const struct rbi_cluster *cluster)
{
    RBI_LIST_EACH(node, next, &endpoint->links_out)
    {
        if (RBI_CONTAINER_OF(node, struct rbi_link, in_requester)->server->cluster == cluster) {
            return true;
        }
    }
    RBI_LIST_EACH(node, next, &endpoint->links_in)
    {
        if (RBI_CONTAINER_OF(node, struct rbi_link, in_server)->requester->cluster == cluster) {
            return true;
        }
    }
    return false;
}

/** Who can send nothing to a cluster must not take a share from those who can. */
static bool may_ask(const struct rbi_endpoint *endpoint, const struct rbi_cluster *cluster)
{
    struct rbi_text why;
    bool may = has_link(endpoint, cluster);
    for (uint32_t i = 0; i < cluster->member_count && !may; i++) {
        may = rbi_rights_may_link(endpoint, cluster->members[i], &why);
    }
    return may;
}

void rbi_handle_lease_demand(const struct rbi_request *request)
{
    const struct rbi_wire_lease_demand *body = &request->body->lease_demand;
    struct rbi_daemon *daemon = request->daemon;
    const uint64_t now_ns = rbi_loop_now_ns(daemon->loop);
    const struct rbi_cluster *cluster = rbi_registry_cluster(&daemon->registry, body->cluster);
    if (!cluster || quota_rate(daemon, body->cluster, &body->limit) == 0) {
        return; /* its policy is an older one: the change is on its way to it */
    }
    if (!may_ask(request->peer->endpoint, cluster)) {
        return;
    }
    struct rbi_lease_caller *caller =
        caller_of(request->peer->endpoint, body->cluster, &body->limit);
    if (!caller) {
        return; /* without memory it has its static share */
    }
    caller->demand = body->demand;
    caller->demand_ns = now_ns;
    if (caller->told_ns == 0) {
        /* It begins: it need not wait for the next division. */
        rbi_loop_timer_set(daemon->loop, &daemon->leases.timer, now_ns, divide_all, daemon);
    }
}
