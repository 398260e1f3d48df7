/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_NODES_H
#define RINGBUS_DAEMON_NODES_H
/*
 * daemon/nodes.h - the nodes that users make (bus/node_path.h has where): a value of up to 1 KiB
 * under a unique path, with a revision that no other change ever has. Persistent ones outlive
 * everything but their removal (node_store.h). Ephemeral ones are bound to the endpoint that made
 * them, and nobody else becomes their owner by changing them.
 *
 * What is above them, prefixes, clusters and "meta", is there as long as something is below it,
 * and is nobody's; instances come by registering.
 *
 * A daemon that starts knows the ephemeral nodes of the one before it. They stay, and stay taken,
 * until their owners are back or the time for that is over (settle.h).
 */
#include "bus/node_path.h"
#include "bus/record.h"
#include "bus/wire.h"
#include "daemon/list.h"
#include "daemon/node_store.h"
#include "daemon/quota.h"

struct rbi_daemon;
struct rbi_endpoint;

struct rbi_node {
    struct rbi_list in_owner;
    struct rbi_endpoint *owner; /* NULL: persistent, or its owner is not back yet */
    struct rbi_pidf owner_pidf; /* of an ephemeral one: that life of that endpoint */
    uint64_t revision;
    uint32_t flags; /* RBI_NODE_EPHEMERAL */
    uint32_t uid;   /* who made it, and pays */
    uint32_t children;
    struct rbi_charge count_charge;
    struct rbi_charge bytes_charge;
    unsigned char *value; /* NULL: empty */
    uint16_t value_length;
    uint16_t path_length;
    uint16_t creator_length;
    char path[]; /* terminated; its creator's behind it, terminated too */
};

struct rbi_nodes {
    struct rbi_node **all; /* ascending path, by bytes */
    uint32_t count;
    uint32_t room;
    uint32_t expected; /* ephemeral ones whose owners are not back yet */
    uint64_t revision; /* of the last change */
    struct rbi_node_store store;
};

/** What a node is to be. Lent. */
struct rbi_node_plan {
    const char *path; /* canonical, of kind RBI_NODE_USER */
    const char *creator;
    const unsigned char *value;
    uint16_t path_length;
    uint16_t creator_length;
    uint16_t value_length;
    uint32_t flags;
    uint32_t uid;
    struct rbi_endpoint *owner; /* ephemeral */
};

void rbi_nodes_init(struct rbi_nodes *nodes);
/** What the daemon before has left. Once it has its socket: nobody else has its files then. */
void rbi_nodes_open(struct rbi_daemon *daemon);
void rbi_nodes_free_all(struct rbi_nodes *nodes);

struct rbi_node *rbi_nodes_find(const struct rbi_nodes *nodes, const char *path, size_t length);
/** Index of the first one whose path is not below @p path in the order of bytes. */
uint32_t rbi_nodes_at(const struct rbi_nodes *nodes, const char *path, size_t length);
/** Whether there is one below a path, itself not counted. */
bool rbi_nodes_below(const struct rbi_nodes *nodes, const char *path, size_t length);
/** The node that it is below, or NULL: it is right below "meta". */
struct rbi_node *rbi_node_parent(const struct rbi_nodes *nodes, const struct rbi_node *node);

/**
 * What can fail of a change: quota (1, @p why written), memory, and keeping it (-errno). Nothing
 * has changed then. Watchers are told.
 * @retval 0; 1; -errno
 */
RBI_MUST_CHECK int rbi_node_create(struct rbi_daemon *daemon,
                                   const struct rbi_node_plan *plan,
                                   struct rbi_node **out,
                                   struct rbi_text *why);
RBI_MUST_CHECK int rbi_node_set(struct rbi_daemon *daemon,
                                struct rbi_node *node,
                                const struct rbi_data *value,
                                struct rbi_text *why);
/** Removes one without children. @retval 0; -errno it could not be noted */
RBI_MUST_CHECK int rbi_node_remove(struct rbi_daemon *daemon, struct rbi_node *node);

/** One that is expected is that endpoint's. @return whether it was */
bool rbi_node_return(struct rbi_daemon *daemon,
                     struct rbi_node *node,
                     struct rbi_endpoint *endpoint);
/** Its ephemeral nodes end with it. */
void rbi_nodes_endpoint_gone(struct rbi_endpoint *endpoint, enum rbi_reason reason);
/** The time for coming back is over. */
void rbi_nodes_settled(struct rbi_daemon *daemon);

/** One that was kept. Untrusted. @retval 0; 1 it cannot be one; -ENOMEM */
RBI_MUST_CHECK int rbi_nodes_restore(struct rbi_daemon *daemon, const struct rbi_node_record *from);

/* ---- who is told of them: node_watch.c ------------------------------------------------- */

struct rbi_peer;

/** Tells who watches it, and its owner. @param revision  of the change */
void rbi_node_notify(struct rbi_daemon *daemon,
                     const struct rbi_node *node,
                     enum rbi_change change,
                     uint64_t revision,
                     enum rbi_reason reason);
/** Whether a client may be told of a node. */
bool rbi_node_may_see(struct rbi_peer *peer, const struct rbi_node *node);
/** What an EVENT says of a node as it is. */
void rbi_node_event_fill(struct rbi_wire_node_event *event,
                         const struct rbi_node *node,
                         enum rbi_change change,
                         uint64_t revision);
/** Tells of all at and below a path that it watches: after it has been given rights. */
void rbi_node_send_present(struct rbi_peer *peer, const struct rbi_text *path);

#endif
