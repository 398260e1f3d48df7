/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/daemon.h"
#include "daemon/request.h"
#include "daemon/table.h"

/* Unanswered: whoever asks has a table of its own already. */
void rbi_handle_keyed(const struct rbi_request *request)
{
    struct rbi_cluster *cluster =
        rbi_registry_cluster(&request->daemon->registry, request->body->keyed.cluster);
    if (cluster) {
        rbi_table_want(request->daemon, cluster);
    }
}
