/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/send_refuse.c - nobody can take a message: why. */
#include "libclient/internal.h"

#include <errno.h>
#include <string.h>

static bool is_leaving(const struct rbi_member *member)
{
    return member->state == RBI_ENDPOINT_DRAINING ||
           (member->end != NULL && member->end->drain.peer);
}

/* The choice has said why. */
static RBI_COLD int refuse(struct ringbus *bus, const struct rbi_cluster *cluster)
{
    const struct rbi_refusal *refusal = &cluster->refusal;
    if (refusal->error == RINGBUS_E_SHIELDED) {
        rbi_outcome_add(bus->outcomes.changes, 1); /* a look that finds nothing: we would call */
    }
    if (refusal->instance != 0) {
        const struct rbi_pidf owner = {.cluster = refusal->realm, .instance = refusal->instance};
        return rbi_fail_fast(bus, refusal->error, &owner, 0);
    }
    if (refusal->hook != RBI_HOOK_NONE) {
        return rbi_hooks_refuse(bus, cluster);
    }
    if (refusal->error == RINGBUS_E_NO_MEMORY) {
        return rbi_fail_errno(bus, -ENOMEM, "the choice of an instance");
    }
    const enum rbi_route_stage stage = (enum rbi_route_stage)refusal->stage;
    const char *rule = rbi_hooks_rule_id(bus, rbi_cluster_policy(cluster), stage, refusal->rule);
    const char *by = rule[0] != '\0' ? " by " : "";
    const char *why = stage == RBI_ROUTE_ACL ? rbi_rights_why(cluster, 0) : "";
    if (stage == RBI_ROUTE_ACL && why[0] == '\0') {
        why = "ringbusctl explain names the rule"; /* it is about the method */
    }
    return rbi_fail(bus, refusal->error, "%s: nobody is left after the stage \"%s\"%s%s%s%s",
                    cluster->path, rbi_route_stage_name(stage), by, rule,
                    why[0] != '\0' ? ": " : "", why);
}

/* Says precisely why nobody can take it; the failed sends are not the fast ones. */
int rbi_send_no_peer(struct ringbus *bus, const struct ringbus_addr *to)
{
    struct rbi_pidf peer;
    memcpy(&peer, to, sizeof peer);
    rbi_divert_forget(bus);
    if (bus->closing) {
        rbi_count(bus, RBI_COUNTER_no_peer, 1);
        return rbi_fail_fast(bus, RINGBUS_E_CLOSED, &peer, 0); /* its name is another's */
    }
    struct rbi_cluster *cluster = rbi_cluster_find(bus, to->cluster);
    if (cluster == NULL) {
        rbi_count(bus, RBI_COUNTER_no_peer, 1);
        return rbi_fail_fast(bus, RINGBUS_E_NOT_TARGET, &peer, 0);
    }
    if (to->instance > 0) {
        rbi_count(bus, RBI_COUNTER_no_peer, 1);
        const struct rbi_member *member = rbi_member_find(cluster, to->instance);
        if (member == NULL || member->incarnation == 0) {
            return rbi_fail_fast(bus, cluster->known ? RINGBUS_E_NO_INSTANCE : RINGBUS_E_NO_SERVICE,
                                 &peer, 0);
        }
        if (to->incarnation != 0 && member->incarnation != to->incarnation) {
            return rbi_fail_fast(bus, RINGBUS_E_PEER_GONE, &peer, 0);
        }
        return rbi_fail_fast(bus,
                             rbi_member_is_denied(member) ? RINGBUS_E_DENIED
                             : is_leaving(member)         ? RINGBUS_E_DRAINING
                                                          : rbi_member_not_ready(member),
                             &peer, 0);
    }
    if (cluster->held) {
        return rbi_redeliver_refuse(bus, cluster);
    }
    rbi_count(bus, RBI_COUNTER_no_peer, 1);
    if (cluster->refusal.error != 0) {
        return refuse(bus, cluster);
    }
    if (cluster->member_count == 0) {
        return rbi_fail_fast(bus, cluster->known ? RINGBUS_E_NO_INSTANCE : RINGBUS_E_NO_SERVICE,
                             &peer, 0);
    }
    bool leaving = false;
    bool denied = false;
    int out_of_reach = 0;
    for (unsigned i = 0; i < cluster->member_count; i++) {
        if (cluster->members[i].incarnation == 0 || cluster->members[i].weight == 0) {
            continue; /* not there; or reachable by its own address only */
        }
        if (rbi_member_is_denied(&cluster->members[i])) {
            denied = true;
            continue;
        }
        if (is_leaving(&cluster->members[i])) {
            leaving = true;
        } else if (cluster->members[i].out_of_reach != 0) {
            out_of_reach = cluster->members[i].out_of_reach;
        } else {
            return rbi_fail_fast(bus, RINGBUS_E_NOT_READY, &peer, 0);
        }
    }
    return rbi_fail_fast(bus,
                         leaving             ? RINGBUS_E_DRAINING
                         : out_of_reach != 0 ? out_of_reach
                         : denied            ? RINGBUS_E_DENIED
                                             : RINGBUS_E_NO_INSTANCE,
                         &peer, 0);
}
