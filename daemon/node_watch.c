/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is told of nodes: those who watch a path at or above them, if they may; and the owner of an
 * ephemeral one, who says under the next daemon what there was: what others have removed is not to
 * come back by that.
 */
#include "daemon/daemon.h"
#include "daemon/nodes.h"

#include <string.h>

bool rbi_node_may_see(struct rbi_peer *peer, const struct rbi_node *node)
{
    struct rbi_text why;
    return rbi_rights_may_path_of(peer, RBI_ACL_WATCH, node->path, node->path_length, node->uid,
                                  &why);
}

void rbi_node_event_fill(struct rbi_wire_node_event *event,
                         const struct rbi_node *node,
                         enum rbi_change change,
                         uint64_t revision)
{
    *event = (struct rbi_wire_node_event){
        .change = (uint32_t)change, .revision = revision, .flags = node->flags};
    event->path.length = node->path_length;
    memcpy(event->path.bytes, node->path, node->path_length);
    if (change != RBI_CHANGE_REMOVED && node->value_length != 0) {
        event->value.length = node->value_length;
        memcpy(event->value.bytes, node->value, node->value_length);
    }
}

struct notice {
    const struct rbi_node *node;
    struct rbi_wire_node_event event;
};

static void node_tell(struct rbi_peer *peer, void *context)
{
    const struct notice *notice = context;
    if (peer->last_node_revision == notice->event.revision) {
        return; /* through another prefix */
    }
    if (!rbi_node_may_see(peer, notice->node)) {
        peer->rights.hidden = true;
        return;
    }
    peer->last_node_revision = notice->event.revision;
    rbi_peer_send_node_event(peer, &notice->event);
}

void rbi_node_notify(struct rbi_daemon *daemon,
                     const struct rbi_node *node,
                     enum rbi_change change,
                     uint64_t revision,
                     enum rbi_reason reason)
{
    struct notice notice = {.node = node};
    rbi_node_event_fill(&notice.event, node, change, revision);
    notice.event.reason = (uint32_t)reason;
    rbi_watch_each(daemon, node->path, node->path_length, node_tell, &notice);
    struct rbi_peer *owner = node->owner ? node->owner->peer : NULL;
    if (owner && change != RBI_CHANGE_ADDED && owner->last_node_revision != revision) {
        owner->last_node_revision = revision;
        rbi_peer_send_node_event(owner, &notice.event);
    }
}

void rbi_node_send_present(struct rbi_peer *peer, const struct rbi_text *path)
{
    const struct rbi_nodes *nodes = &peer->daemon->nodes;
    struct rbi_wire_node_event event;
    for (uint32_t i = rbi_nodes_at(nodes, path->bytes, path->length); i < nodes->count; i++) {
        const struct rbi_node *node = nodes->all[i];
        if (memcmp(node->path, path->bytes, rbi_min_u64(path->length, node->path_length)) != 0) {
            break;
        }
        if (rbi_path_has_prefix(node->path, node->path_length, path->bytes, path->length) &&
            rbi_node_may_see(peer, node)) {
            rbi_node_event_fill(&event, node, RBI_CHANGE_ADDED, node->revision);
            event.initial = 1;
            rbi_peer_send_node_event(peer, &event);
        }
    }
}
