/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/code.h"
#include "daemon/daemon.h"
#include "daemon/request.h"

/** @return whether the quotas allow it; if not the client has been told */
static bool
outcomes_charge(const struct rbi_request *request, uint64_t bytes, struct rbi_charge *charge)
{
    struct rbi_text why;
    const int result = rbi_quota_charge(&request->daemon->quota, request->peer->uid,
                                        RBI_QUOTA_BYTES, bytes, charge, &why);
    if (result > 0) {
        rbi_request_refuse_quota(request, &why);
    } else if (result < 0) {
        rbi_request_refuse_errno(request, "quota", result);
    }
    return result == 0;
}

void rbi_handle_outcomes(const struct rbi_request *request)
{
    const uint64_t bytes = request->body->outcomes.bytes;
    struct rbi_endpoint *endpoint = request->peer->endpoint;
    struct rbi_outcome_reader *reader = &endpoint->outcomes;
    struct rbi_charge charge = {.user = NULL};
    if (bytes < RBI_PAGE || bytes > rbi_outcomes_bytes(RBI_OUTCOME_SLOTS_MAX)) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT, "outcomes are of no possible size");
        return;
    }
    if (!outcomes_charge(request, bytes, &charge)) {
        return;
    }
    const int result =
        rbi_outcome_adopt(reader, request->fds->fds[0], bytes, request->body->outcomes.fresh != 0);
    if (result < 0) {
        rbi_charge_release(&charge);
        rbi_request_refuse_errno(request, "outcomes", result);
        return;
    }
    rbi_charge_release(&reader->charge);
    reader->charge = charge;
    if (rbi_list_empty(&reader->in_readers)) {
        rbi_health_add_reader(request->daemon, endpoint);
    }
}
