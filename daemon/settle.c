/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/settle.h"

#include "daemon/daemon.h"

#include <inttypes.h>

static void settle_over(void *context);

static void settle_wait(struct rbi_daemon *daemon, uint64_t from_ns)
{
    daemon->settle.due_ns = from_ns + daemon->settle.time_ns;
    rbi_loop_timer_set(daemon->loop, &daemon->settle.timer, daemon->settle.due_ns, settle_over,
                       daemon);
}

static void settle_over(void *context)
{
    struct rbi_daemon *daemon = context;
    const uint64_t now_ns = rbi_loop_now_ns(daemon->loop);
    /* Late by so much, we did not run, and perhaps nobody did: they have the time anew. */
    if (now_ns - daemon->settle.due_ns > daemon->settle.time_ns / 2) {
        settle_wait(daemon, now_ns);
        return;
    }
    daemon->settle.settling = false;
    daemon->quota.returning = false;
    rbi_unconfirmed_clear(daemon);
    rbi_names_settled(&daemon->names);
    rbi_nodes_settled(daemon);
    const struct rbi_wire_settled settled = {.revision = daemon->registry.revision};
    RBI_LIST_EACH(node, spare, &daemon->peers.all)
    {
        struct rbi_peer *peer = RBI_CONTAINER_OF(node, struct rbi_peer, in_peers);
        if (peer->protocol >= 2 && peer->hello && !peer->doomed) {
            rbi_peer_send(peer, RBI_WIRE_SETTLED, &settled, 0);
        }
    }
    rbi_log(RBI_LOG_INFO, "settled", "endpoints=%" PRIu32 " links=%" PRIu32,
            daemon->registry.endpoint_count, daemon->links.count);
}

void rbi_settle_start(struct rbi_daemon *daemon)
{
    daemon->settle.time_ns = (uint64_t)daemon->config.daemon.return_time_ms * 1000000;
    daemon->settle.settling = daemon->settle.time_ns != 0;
    daemon->quota.returning = daemon->settle.settling;
    if (!daemon->settle.settling) {
        rbi_unconfirmed_clear(daemon);
        rbi_names_settled(&daemon->names);
        rbi_nodes_settled(daemon);
    } else {
        settle_wait(daemon, daemon->started_ns);
    }
}
