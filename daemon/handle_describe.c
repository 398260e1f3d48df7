/* SPDX-License-Identifier: Apache-2.0 */
/* What the configuration says of a cluster to people: whom to ask, what it is made for. */
#include "daemon/code.h"
#include "daemon/daemon.h"
#include "daemon/policy.h"
#include "daemon/request.h"

void rbi_handle_describe(const struct rbi_request *request)
{
    const struct rbi_text *path = &request->body->describe.path;
    const struct rbi_governance_layers layers = rbi_live_layers(&request->daemon->live);
    struct rbi_governance_description said;
    struct rbi_policy policy;
    struct rbi_path_info info;
    struct rbi_text why;
    if (rbi_path_parse(path->bytes, path->length, &info) != 0 ||
        info.elements != RBI_PATH_CLUSTER_ELEMENTS) {
        rbi_request_refuse(request, RBI_CODE_PATH, "a cluster has %u path elements",
                           RBI_PATH_CLUSTER_ELEMENTS);
        return;
    }
    if (!rbi_rights_may_path(request->peer, RBI_ACL_WATCH, path->bytes, path->length, &why)) {
        rbi_rights_refuse(request, &why);
        return;
    }
    rbi_governance_describe(&layers, path->bytes, path->length, &said);
    (void)rbi_governance_policy(&layers, path->bytes, path->length, &policy, NULL);
    struct rbi_wire_description answer = {.qps = said.qps, .p99_us = said.p99_us};
    if (policy.fingerprint != rbi_policy_default_fingerprint()) {
        answer.policy = policy.fingerprint;
    }
    rbi_text_set(&answer.owner, said.owner);
    rbi_text_set(&answer.schema, said.schema);
    rbi_peer_send(request->peer, RBI_WIRE_DESCRIPTION, &answer, request->serial);
}
