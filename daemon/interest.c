/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/interest.h"

#include "daemon/code.h"
#include "daemon/daemon.h"

#include <inttypes.h>

/** @return whether the path can be watched; if not the client has been told */
static bool interest_check(const struct rbi_request *request,
                           const struct rbi_text *path,
                           enum rbi_watch_kind kind)
{
    struct rbi_path_info info;
    const bool root = kind == RBI_WATCH_PREFIX && path->length == 1 && path->bytes[0] == '/';
    struct rbi_node_path node;
    if (root ||
        (kind == RBI_WATCH_PREFIX && rbi_node_path_parse(path->bytes, path->length, &node) == 0)) {
        return true;
    }
    if (rbi_path_parse(path->bytes, path->length, &info) != 0) {
        rbi_request_refuse(request, RBI_CODE_PATH, "path is wrong at byte %u: %s",
                           info.error_offset, rbi_path_error_text(info.error));
        return false;
    }
    if (kind == RBI_WATCH_TARGET && info.elements < RBI_PATH_CLUSTER_ELEMENTS) {
        rbi_request_refuse(request, RBI_CODE_PATH,
                           "a target is a cluster or an instance: %u or %u elements, this has %u",
                           RBI_PATH_CLUSTER_ELEMENTS, RBI_PATH_INSTANCE_ELEMENTS, info.elements);
        return false;
    }
    return true;
}

/** One more for the endpoint and for its user. @retval as rbi_quota_charge() */
static int interest_charge(struct rbi_peer *peer, struct rbi_charge *charge, struct rbi_text *why)
{
    struct rbi_quota *quota = &peer->daemon->quota;
    const uint32_t limit = rbi_quota_limits(quota, peer->actor)->watches;
    if (peer->watch_count >= limit) {
        rbi_text_format(why,
                        "uid %" PRIu32 ": quota.watches is used up: limit %" PRIu32
                        " for each endpoint, used %" PRIu32 "; end some, or raise it for this uid",
                        peer->actor, limit, peer->watch_count);
        return 1;
    }
    return rbi_quota_charge(quota, peer->actor, RBI_QUOTA_WATCHES, 1, charge, why);
}

void rbi_interest_add(const struct rbi_request *request,
                      const struct rbi_text *path,
                      enum rbi_watch_kind kind)
{
    struct rbi_peer *peer = request->peer;
    if (!interest_check(request, path, kind)) {
        return;
    }
    struct rbi_charge charge = {.user = NULL};
    struct rbi_text why;
    int result = interest_charge(peer, &charge, &why);
    if (result > 0) {
        rbi_request_refuse_quota(request, &why);
        return;
    }
    if (result == 0) {
        result = rbi_watch_add(peer, path, kind, &charge);
        rbi_charge_release(&charge);
    }
    if (result < 0) {
        rbi_request_refuse_errno(request, "watch", result);
        return;
    }
    rbi_request_ok(request, request->daemon->registry.revision);
    rbi_watch_send_present(peer, kind, path);
    if (kind == RBI_WATCH_PREFIX) {
        rbi_alarms_send_present(peer, path);
    }
}

void rbi_interest_remove(const struct rbi_request *request,
                         const struct rbi_text *path,
                         enum rbi_watch_kind kind)
{
    if (rbi_watch_remove(request->peer, path, kind) == 0) {
        rbi_request_ok(request, 0);
    } else {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT, "%.200s was not asked for", path->bytes);
    }
}
