/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/code.h"
#include "daemon/daemon.h"
#include "daemon/request.h"

#include <inttypes.h>

/** @return whether the quotas allow it; if not the client has been told */
static bool
outcomes_charge(const struct rbi_request *request, uint64_t bytes, struct rbi_charge *charge)
{
    struct rbi_text why;
    const int result = rbi_quota_charge(&request->daemon->quota, request->peer->actor,
                                        RBI_QUOTA_BYTES, bytes, charge, &why);
    if (result > 0) {
        rbi_request_refuse_quota(request, &why);
    } else if (result < 0) {
        rbi_request_refuse_errno(request, "quota", result);
    }
    return result == 0;
}

/*
 * All slots are looked at four times a second, so there may be no more of them than an endpoint
 * needs: one for each link, as many that are about to go, and twice that, for they grow so.
 */
static uint64_t outcomes_slots_max(const struct rbi_request *request)
{
    const uint32_t links = rbi_quota_limits(&request->daemon->quota, request->peer->actor)->links;
    return rbi_min_u64(4 * (uint64_t)links + 2UL * RBI_OUTCOME_SLOTS_MIN, RBI_OUTCOME_SLOTS_MAX);
}

/** @return whether there may be so many; if not the client has been told */
static bool outcomes_check(const struct rbi_request *request, uint64_t bytes)
{
    const uint64_t most = outcomes_slots_max(request);
    struct rbi_text why;
    if (bytes < RBI_PAGE || bytes > rbi_outcomes_bytes(RBI_OUTCOME_SLOTS_MAX)) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT, "outcomes are of no possible size");
        return false;
    }
    if (bytes > rbi_outcomes_bytes((uint32_t)most)) {
        rbi_text_format(&why,
                        "outcomes of %" PRIu64 " bytes are more than quota.links of uid %" PRIu32
                        " needs: %" PRIu64 " slots at most",
                        bytes, request->peer->actor, most);
        rbi_request_refuse_quota(request, &why);
        return false;
    }
    return true;
}

void rbi_handle_outcomes(const struct rbi_request *request)
{
    const uint64_t bytes = request->body->outcomes.bytes;
    struct rbi_endpoint *endpoint = request->peer->endpoint;
    struct rbi_outcome_reader *reader = &endpoint->outcomes;
    struct rbi_charge charge = {.user = NULL};
    if (!outcomes_check(request, bytes) || !outcomes_charge(request, bytes, &charge)) {
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
