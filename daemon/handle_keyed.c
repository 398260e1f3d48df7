/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A slot table costs a third of a MiB and some milliseconds of the daemon: only who may send to the
 * cluster can have it made, and only its share of them. Unanswered: whoever asks has a table of its
 * own already, the same to the byte, and nothing is refused for want of ours.
 */
#include "daemon/daemon.h"
#include "daemon/request.h"
#include "daemon/rights.h"
#include "daemon/table.h"

/* Members that are asked about: a cluster's are mostly alike to the rules. */
#define MEMBERS_ASKED 128U

/** Whether the client may send to any of its instances; to where they will be, if it has none. */
static bool keyed_may_send(const struct rbi_request *request, const struct rbi_cluster *cluster)
{
    struct rbi_text why;
    const struct rbi_endpoint *asker = request->peer->endpoint;
    const uint64_t count = rbi_min_u64(cluster->member_count, MEMBERS_ASKED);
    for (uint64_t i = 0; i < count; i++) {
        const struct rbi_endpoint *member = cluster->members[i];
        if (member == asker || rbi_rights_may_link(asker, member, &why)) {
            return true;
        }
    }
    return count == 0 && rbi_rights_may_path(request->peer, RBI_ACL_CONNECT, cluster->path.bytes,
                                             cluster->path.length, &why);
}

void rbi_handle_keyed(const struct rbi_request *request)
{
    struct rbi_cluster *cluster =
        rbi_registry_cluster(&request->daemon->registry, request->body->keyed.cluster);
    if (cluster && !cluster->table && keyed_may_send(request, cluster)) {
        rbi_table_want(request->daemon, cluster, request->peer->actor);
    }
}
