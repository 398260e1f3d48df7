/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/code.h"
#include "daemon/daemon.h"
#include "daemon/request.h"

#include <inttypes.h>

void rbi_handle_query(const struct rbi_request *request)
{
    const struct rbi_wire_query *query = &request->body->query;
    struct rbi_path_info info;
    if (query->what < RBI_QUERY_STATUS || query->what > RBI_QUERY_WAYS) {
        rbi_request_refuse(request, RBI_CODE_ARGUMENT, "nothing to ask for: %" PRIu32, query->what);
        return;
    }
    /* Of ways it names hosts, and is looked at there. */
    const bool all = query->what == RBI_QUERY_WAYS || query->prefix.length == 0 ||
                     (query->prefix.length == 1 && query->prefix.bytes[0] == '/');
    if (!all && rbi_path_parse(query->prefix.bytes, query->prefix.length, &info) != 0) {
        rbi_request_refuse(request, RBI_CODE_PATH, "path is wrong at byte %u: %s",
                           info.error_offset, rbi_path_error_text(info.error));
        return;
    }
    rbi_query_start(request->peer, query, request->serial);
}
