/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_NODE_H
#define RINGBUS_NODE_H
/* ringbus/node.h - the tree of nodes. */
#include <ringbus/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Longest value of a node, in bytes. */
#define RINGBUS_NODE_VALUE_MAX 1024
/** For ringbus_node_create(): the node ends with this endpoint. */
#define RINGBUS_NODE_EPHEMERAL 0x1U

/** What is at a path of the tree (docs/guide/directory.md). */
enum ringbus_node_kind {
    RINGBUS_NODE_PREFIX = 0,   /**< there while something is below it */
    RINGBUS_NODE_CLUSTER = 1,  /**< 6 elements */
    RINGBUS_NODE_INSTANCE = 2, /**< 7 elements */
    RINGBUS_NODE_META = 3,     /**< ends with "meta": there while a node is below it */
    RINGBUS_NODE_USER = 4,     /**< below it: what ringbus_node_create() makes */
};

/** Something in the tree: lent for the time of the callback. */
struct ringbus_node {
    const char *path;
    enum ringbus_node_kind kind;
    uint64_t revision; /**< USER: of its last change; no other change has the same */
    const void *value; /**< USER; not terminated */
    size_t size;       /**< of value, 0 to RINGBUS_NODE_VALUE_MAX */
    int ephemeral;     /**< USER: 1 when it ends with the endpoint that made it */
    const char
        *creator;       /**< USER: path of that endpoint, or program of a tool; INSTANCE: program */
    uint32_t uid;       /**< USER, INSTANCE: whose it is */
    uint32_t instances; /**< CLUSTER: how many are there */
    const char *const *children; /**< names of what is right below it, ascending; at most 1024 */
    size_t child_count;
    int more; /**< 1: there are more: ask again with the last name as @p after */
};

/** How a question about a node ended: lent for the time of the callback. */
struct ringbus_node_result {
    int error;                       /**< 0, or enum ringbus_error: see each call */
    const char *text;                /**< sentence of a failure, "" when none */
    uint64_t revision;               /**< CREATE, SET, REMOVE: of the change; 0 of a cluster */
    const struct ringbus_node *node; /**< GET: what is there, else NULL */
};
typedef void (*ringbus_node_fn)(struct ringbus *bus,
                                const struct ringbus_node_result *result,
                                void *context);

/**
 * Makes a node below the element "meta" of a prefix or cluster, as in /game/eu/meta/season.
 *
 * Returns at once; the answer comes by @p on_result from ringbus_poll(), once, whatever happens:
 * - 0; revision is the new node's
 * - RINGBUS_E_IN_USE: it is there already; of several who try, one succeeds
 * - RINGBUS_E_NO_SERVICE: the node above it is not there
 * - RINGBUS_E_QUOTA (quota.nodes, quota.node_bytes), RINGBUS_E_DENIED (right "own"),
 *   RINGBUS_E_PATH, RINGBUS_E_ARGUMENT (no place for a node), RINGBUS_E_SYSTEM (not to be kept)
 * - RINGBUS_E_UNKNOWN_OUTCOME: the daemon was lost first, or took 10 s: get it when it is back
 * - RINGBUS_E_CLOSED: ringbus_close()
 *
 * A node stays until it is removed, over restarts of the daemon too. With RINGBUS_NODE_EPHEMERAL it
 * ends with this endpoint, stays this endpoint's whoever changes it, and has no children; a new
 * daemon is told of it by the library, and keeps its place until then.
 *
 * The path of a cluster, without a value: it is known from now on, and waited for (right "admin").
 *
 * @param value      copied; may be NULL when @p size is 0
 * @param size       0 to RINGBUS_NODE_VALUE_MAX bytes
 * @param flags      0 or RINGBUS_NODE_EPHEMERAL
 * @param on_result  not called when this call fails
 * @retval 0  asked
 * @retval RINGBUS_E_NO_DAEMON  ask again after RINGBUS_EVENT_DAEMON_BACK
 * @retval RINGBUS_E_QUOTA      256 questions wait for their answers: poll first
 * @retval RINGBUS_E_PATH, RINGBUS_E_TOO_BIG, RINGBUS_E_ARGUMENT, RINGBUS_E_NO_MEMORY
 * @retval RINGBUS_E_VERSION    the daemon is of an earlier version
 * Cost: a message to the daemon, and one of it.
 */
RINGBUS_API RINGBUS_MUST_CHECK int ringbus_node_create(struct ringbus *bus,
                                                       const char *path,
                                                       const void *value,
                                                       size_t size,
                                                       unsigned flags,
                                                       ringbus_node_fn on_result,
                                                       void *context);
/**
 * Gives a node another value. As ringbus_node_create(), and:
 * - RINGBUS_E_IN_USE: it has another revision by now: get it, and decide anew
 * - RINGBUS_E_NO_SERVICE: there is no such node
 * - RINGBUS_E_DENIED: the right "admin" of it; and of instances, which are their own
 * @param revision  only while it has this one; 0: whatever it has
 */
RINGBUS_API RINGBUS_MUST_CHECK int ringbus_node_set(struct ringbus *bus,
                                                    const char *path,
                                                    const void *value,
                                                    size_t size,
                                                    uint64_t revision,
                                                    ringbus_node_fn on_result,
                                                    void *context);
/**
 * Removes a node, an empty cluster, or an instance that an earlier daemon had and that has not come
 * back. As ringbus_node_set(), and:
 * - RINGBUS_E_IN_USE: something is below it
 * - RINGBUS_E_NO_INSTANCE: no such instance; RINGBUS_E_DENIED: it lives
 * @param revision  of a node, only while it has this one; 0: whatever it has
 */
RINGBUS_API RINGBUS_MUST_CHECK int ringbus_node_remove(struct ringbus *bus,
                                                       const char *path,
                                                       uint64_t revision,
                                                       ringbus_node_fn on_result,
                                                       void *context);
/**
 * Asks what is at a path, and right below it. The answer, by @p on_result:
 * - 0: node says what is there
 * - RINGBUS_E_NO_INSTANCE: a cluster that is known and has nobody in it now; node is there all the
 *   same. It is worth waiting: ringbus_target(), ringbus_watch(). Of 7 elements: no such instance
 * - RINGBUS_E_NO_SERVICE: there is no such node, and nobody has heard of such a cluster
 * - RINGBUS_E_DENIED (right "watch"), RINGBUS_E_NO_DAEMON, RINGBUS_E_TIMEOUT, RINGBUS_E_CLOSED
 * @param path   "/", 1 to 7 elements, or the path of a node
 * @param after  NULL, or: only children behind this name
 * @retval as ringbus_node_create()
 */
RINGBUS_API RINGBUS_MUST_CHECK int ringbus_node_get(struct ringbus *bus,
                                                    const char *path,
                                                    const char *after,
                                                    ringbus_node_fn on_result,
                                                    void *context);

#ifdef __cplusplus
}
#endif

#endif
