/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/interest.h"
#include "daemon/request.h"

void rbi_handle_target(const struct rbi_request *request)
{
    rbi_interest_add(request, &request->body->target.path, RBI_WATCH_TARGET);
}

void rbi_handle_untarget(const struct rbi_request *request)
{
    rbi_interest_remove(request, &request->body->untarget.path, RBI_WATCH_TARGET);
}
