/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/interest.h"
#include "daemon/request.h"

void rbi_handle_watch(const struct rbi_request *request)
{
    rbi_interest_add(request, &request->body->watch.prefix, RBI_WATCH_PREFIX);
}

void rbi_handle_unwatch(const struct rbi_request *request)
{
    rbi_interest_remove(request, &request->body->unwatch.prefix, RBI_WATCH_PREFIX);
}
