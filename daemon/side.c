/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/side.h"

#include "daemon/code.h"
#include "daemon/daemon.h"
#include "shm/segment.h"

#define SIDE_BYTES_MAX                                                                             \
    (RBI_LANE_CAPACITY_MAX + RBI_RETURNS_MAX * sizeof(uint64_t) + UINT64_C(4) * RBI_PAGE)

int rbi_side_charge(const struct rbi_request *request,
                    uint32_t actor,
                    uint64_t side_bytes,
                    struct rbi_charge *charge,
                    struct rbi_text *why)
{
    rbi_text_set(why, "the other end could not be offered");
    if (side_bytes < RBI_PAGE || side_bytes > SIDE_BYTES_MAX) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT, "side is of no possible size");
        return RBI_CODE_DENIED;
    }
    const int result = rbi_quota_charge_bytes(&request->daemon->quota, request->peer->actor, actor,
                                              side_bytes, charge, why);
    if (result > 0) {
        rbi_request_refuse_quota(request, why);
        return RBI_CODE_QUOTA;
    }
    if (result < 0) {
        rbi_request_refuse_errno(request, "side", result);
        return RBI_CODE_NO_MEMORY;
    }
    return 0;
}

int rbi_side_admit(const struct rbi_request *request,
                   uint32_t actor,
                   int fd,
                   uint64_t side_bytes,
                   struct rbi_charge *charge,
                   struct rbi_text *why)
{
    const int code = rbi_side_charge(request, actor, side_bytes, charge, why);
    if (code != 0) {
        return code;
    }
    /* The receiver checks again; this keeps a bad one from reaching anybody. */
    const int result = rbi_segment_verify(fd, RBI_SEGMENT_SIDE, side_bytes, side_bytes);
    if (result < 0) {
        rbi_charge_release(charge);
        rbi_request_refuse_errno(request, "side", result);
        return RBI_CODE_DENIED;
    }
    return 0;
}
