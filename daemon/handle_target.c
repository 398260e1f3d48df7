/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/daemon.h"
#include "daemon/interest.h"
#include "daemon/request.h"

void rbi_handle_target(const struct rbi_request *request)
{
    const struct rbi_text *path = &request->body->target.path;
    struct rbi_path_info info;
    if (rbi_path_parse(path->bytes, path->length, &info) == 0 &&
        info.elements == RBI_PATH_CLUSTER_ELEMENTS) {
        rbi_registry_expect(request->daemon, path);
    }
    rbi_interest_add(request, path, RBI_WATCH_TARGET);
}

void rbi_handle_untarget(const struct rbi_request *request)
{
    rbi_interest_remove(request, &request->body->untarget.path, RBI_WATCH_TARGET);
}
