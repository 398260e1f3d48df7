/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/nodes.h"

#include "daemon/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void rbi_nodes_init(struct rbi_nodes *nodes)
{
    *nodes = (struct rbi_nodes){.store = RBI_NODE_STORE_NULL};
}

void rbi_nodes_open(struct rbi_daemon *daemon)
{
    rbi_node_store_open(daemon);
}

static struct rbi_node *node_free(struct rbi_node *node)
{
    if (node) {
        rbi_list_remove(&node->in_owner);
        rbi_charge_release(&node->count_charge);
        rbi_charge_release(&node->bytes_charge);
        free(node->value);
        free(node);
    }
    return NULL;
}

void rbi_nodes_free_all(struct rbi_nodes *nodes)
{
    rbi_node_store_close(&nodes->store);
    for (uint32_t i = 0; i < nodes->count; i++) {
        (void)node_free(nodes->all[i]);
    }
    free(nodes->all);
    rbi_nodes_init(nodes);
}

/* ---- finding --------------------------------------------------------------------------- */

static int path_compare(const struct rbi_node *node, const char *path, size_t length)
{
    const size_t common = node->path_length < length ? node->path_length : length;
    const int order = memcmp(node->path, path, common);
    return order != 0                    ? order
           : node->path_length == length ? 0
           : node->path_length < length  ? -1
                                         : 1;
}

uint32_t rbi_nodes_at(const struct rbi_nodes *nodes, const char *path, size_t length)
{
    uint32_t low = 0;
    uint32_t high = nodes->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (path_compare(nodes->all[middle], path, length) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct rbi_node *rbi_nodes_find(const struct rbi_nodes *nodes, const char *path, size_t length)
{
    const uint32_t idx = rbi_nodes_at(nodes, path, length);
    return idx < nodes->count && path_compare(nodes->all[idx], path, length) == 0 ? nodes->all[idx]
                                                                                  : NULL;
}

bool rbi_nodes_below(const struct rbi_nodes *nodes, const char *path, size_t length)
{
    char first[RBI_PATH_MAX + 2];
    if (length == 1) {
        return nodes->count != 0;
    }
    /* All that is below it is in a row, from its path and a slash on. */
    memcpy(first, path, length);
    first[length] = '/';
    const uint32_t idx = rbi_nodes_at(nodes, first, length + 1);
    return idx < nodes->count &&
           rbi_path_has_prefix(nodes->all[idx]->path, nodes->all[idx]->path_length, path, length);
}

static struct rbi_node *
parent_of(const struct rbi_nodes *nodes, const char *path, size_t path_length)
{
    struct rbi_node_path parsed;
    if (rbi_node_path_parse(path, path_length, &parsed) != 0 ||
        parsed.parent_length == parsed.meta_length) {
        return NULL;
    }
    return rbi_nodes_find(nodes, path, parsed.parent_length);
}

struct rbi_node *rbi_node_parent(const struct rbi_nodes *nodes, const struct rbi_node *node)
{
    return parent_of(nodes, node->path, node->path_length);
}

/* ---- making ---------------------------------------------------------------------------- */

static bool nodes_reserve(struct rbi_nodes *nodes)
{
    if (nodes->count < nodes->room) {
        return true;
    }
    const uint32_t room = nodes->room ? nodes->room * 2 : 16;
    struct rbi_node **all = realloc(nodes->all, room * sizeof(*all));
    if (!all) {
        return false;
    }
    nodes->all = all;
    nodes->room = room;
    return true;
}

static struct rbi_node *node_new(const struct rbi_node_plan *plan)
{
    struct rbi_node *node =
        calloc(1, sizeof(*node) + plan->path_length + plan->creator_length + 2U);
    if (!node) {
        return NULL;
    }
    rbi_list_init(&node->in_owner);
    node->flags = plan->flags & RBI_NODE_EPHEMERAL;
    node->uid = plan->uid;
    node->path_length = plan->path_length;
    node->creator_length = plan->creator_length;
    node->value_length = plan->value_length;
    memcpy(node->path, plan->path, plan->path_length);
    memcpy(node->path + plan->path_length + 1, plan->creator, plan->creator_length);
    if (plan->value_length != 0) {
        node->value = malloc(plan->value_length);
        if (!node->value) {
            return node_free(node);
        }
        memcpy(node->value, plan->value, plan->value_length);
    }
    return node;
}

static void nodes_insert(struct rbi_nodes *nodes, struct rbi_node *node)
{
    const uint32_t idx = rbi_nodes_at(nodes, node->path, node->path_length);
    memmove(&nodes->all[idx + 1], &nodes->all[idx], (nodes->count - idx) * sizeof(*nodes->all));
    nodes->all[idx] = node;
    nodes->count++;
    struct rbi_node *parent = rbi_node_parent(nodes, node);
    if (parent) {
        parent->children++;
    }
}

static void nodes_take_out(struct rbi_nodes *nodes, const struct rbi_node *node)
{
    const uint32_t idx = rbi_nodes_at(nodes, node->path, node->path_length);
    RBI_ASSERT(idx < nodes->count && nodes->all[idx] == node);
    struct rbi_node *parent = rbi_node_parent(nodes, node);
    if (parent) {
        parent->children--;
    }
    nodes->count--;
    memmove(&nodes->all[idx], &nodes->all[idx + 1], (nodes->count - idx) * sizeof(*nodes->all));
}

static void node_own(struct rbi_node *node, struct rbi_endpoint *endpoint)
{
    node->owner = endpoint;
    node->owner_pidf = (struct rbi_pidf){.cluster = endpoint->cluster_id,
                                         .instance = endpoint->instance,
                                         .incarnation = endpoint->incarnation};
    rbi_list_push_back(&endpoint->nodes, &node->in_owner);
}

static uint64_t node_bytes(const struct rbi_node *node, uint16_t value_length)
{
    return (uint64_t)node->path_length + value_length;
}

/** @retval as rbi_quota_charge() */
static int node_charge(struct rbi_daemon *daemon, struct rbi_node *node, struct rbi_text *why)
{
    const int result =
        rbi_quota_charge(&daemon->quota, node->uid, RBI_QUOTA_NODES, 1, &node->count_charge, why);
    return result != 0
               ? result
               : rbi_quota_charge(&daemon->quota, node->uid, RBI_QUOTA_NODE_BYTES,
                                  node_bytes(node, node->value_length), &node->bytes_charge, why);
}

int rbi_node_create(struct rbi_daemon *daemon,
                    const struct rbi_node_plan *plan,
                    struct rbi_node **out,
                    struct rbi_text *why)
{
    struct rbi_nodes *nodes = &daemon->nodes;
    struct rbi_node *node = nodes_reserve(nodes) ? node_new(plan) : NULL;
    if (!node) {
        return -ENOMEM;
    }
    if (plan->owner) {
        node_own(node, plan->owner);
    }
    int result = node_charge(daemon, node, why);
    node->revision = nodes->revision + 1;
    result = result == 0 ? rbi_node_store_put(daemon, node) : result;
    if (result != 0) {
        (void)node_free(node);
        return result;
    }
    nodes->revision++;
    nodes_insert(nodes, node);
    rbi_node_notify(daemon, node, RBI_CHANGE_ADDED, node->revision, RBI_REASON_NONE);
    *out = node;
    return 0;
}

/* ---- changing -------------------------------------------------------------------------- */

/** Pays for another size of the value. @retval as rbi_quota_charge() */
static int node_recharge(struct rbi_daemon *daemon,
                         struct rbi_node *node,
                         uint16_t value_length,
                         struct rbi_text *why)
{
    const uint64_t before = node->bytes_charge.amount;
    const uint64_t bytes = node_bytes(node, value_length);
    rbi_charge_release(&node->bytes_charge);
    const int result = bytes <= before
                           ? rbi_quota_note(&daemon->quota, node->uid, RBI_QUOTA_NODE_BYTES, bytes,
                                            &node->bytes_charge)
                           : rbi_quota_charge(&daemon->quota, node->uid, RBI_QUOTA_NODE_BYTES,
                                              bytes, &node->bytes_charge, why);
    if (result != 0 && before != 0) {
        /* Needs no memory: its user is known, it pays for the node itself. */
        const int again = rbi_quota_note(&daemon->quota, node->uid, RBI_QUOTA_NODE_BYTES, before,
                                         &node->bytes_charge);
        RBI_ASSERT(again == 0);
    }
    return result;
}

int rbi_node_set(struct rbi_daemon *daemon,
                 struct rbi_node *node,
                 const struct rbi_data *value,
                 struct rbi_text *why)
{
    unsigned char *bytes = NULL;
    if (value->length != 0) {
        bytes = malloc(value->length);
        if (!bytes) {
            return -ENOMEM;
        }
        memcpy(bytes, value->bytes, value->length);
    }
    const struct rbi_node before = *node;
    int result = node_recharge(daemon, node, value->length, why);
    if (result != 0) {
        free(bytes);
        return result;
    }
    node->value = bytes;
    node->value_length = value->length;
    node->revision = daemon->nodes.revision + 1;
    result = rbi_node_store_put(daemon, node);
    if (result != 0) {
        node->value = before.value;
        node->value_length = before.value_length;
        node->revision = before.revision;
        rbi_charge_release(&node->bytes_charge);
        const int again = rbi_quota_note(&daemon->quota, node->uid, RBI_QUOTA_NODE_BYTES,
                                         before.bytes_charge.amount, &node->bytes_charge);
        RBI_ASSERT(again == 0);
        free(bytes);
        return result;
    }
    free(before.value);
    daemon->nodes.revision++;
    rbi_node_notify(daemon, node, RBI_CHANGE_UPDATED, node->revision, RBI_REASON_NONE);
    return 0;
}

static int node_end(struct rbi_daemon *daemon, struct rbi_node *node, enum rbi_reason reason)
{
    struct rbi_nodes *nodes = &daemon->nodes;
    RBI_ASSERT(node->children == 0);
    const uint64_t revision = nodes->revision + 1;
    const int result = rbi_node_store_drop(daemon, node, revision);
    if (result != 0) {
        return result;
    }
    nodes->revision = revision;
    nodes->expected -= node->flags & RBI_NODE_EPHEMERAL && !node->owner ? 1U : 0U;
    nodes_take_out(nodes, node);
    rbi_node_notify(daemon, node, RBI_CHANGE_REMOVED, revision, reason);
    (void)node_free(node);
    return 0;
}

int rbi_node_remove(struct rbi_daemon *daemon, struct rbi_node *node)
{
    return node_end(daemon, node, RBI_REASON_NONE);
}

/* ---- owners ---------------------------------------------------------------------------- */

bool rbi_node_return(struct rbi_daemon *daemon,
                     struct rbi_node *node,
                     struct rbi_endpoint *endpoint)
{
    const struct rbi_pidf pidf = {.cluster = endpoint->cluster_id,
                                  .instance = endpoint->instance,
                                  .incarnation = endpoint->incarnation};
    if (!(node->flags & RBI_NODE_EPHEMERAL) || node->owner ||
        memcmp(&node->owner_pidf, &pidf, sizeof(pidf)) != 0) {
        return false;
    }
    node_own(node, endpoint);
    daemon->nodes.expected--;
    return true;
}

void rbi_nodes_endpoint_gone(struct rbi_endpoint *endpoint, enum rbi_reason reason)
{
    struct rbi_daemon *daemon = endpoint->daemon;
    while (!rbi_list_empty(&endpoint->nodes)) {
        struct rbi_node *node = RBI_LIST_FIRST(&endpoint->nodes, struct rbi_node, in_owner);
        rbi_list_remove(&node->in_owner);
        /* A daemon that stops leaves them to the next one; an ephemeral one cannot fail to end. */
        if (daemon->stopping) {
            node->owner = NULL;
        } else {
            (void)node_end(daemon, node, reason);
        }
    }
}

void rbi_nodes_settled(struct rbi_daemon *daemon)
{
    struct rbi_nodes *nodes = &daemon->nodes;
    for (uint32_t i = nodes->count; i-- > 0 && nodes->expected > 0;) {
        struct rbi_node *node = nodes->all[i];
        if (node->flags & RBI_NODE_EPHEMERAL && !node->owner) {
            rbi_log(RBI_LOG_INFO, "node_not_returned", "path=%s revision=%" PRIu64, node->path,
                    node->revision);
            (void)node_end(daemon, node, RBI_REASON_CRASHED);
        }
    }
}

/* ---- what was kept --------------------------------------------------------------------- */

static bool record_is_node(const struct rbi_nodes *nodes, const struct rbi_node_record *from)
{
    struct rbi_node_path parsed;
    if (rbi_node_path_parse(from->path, from->path_length, &parsed) != 0 ||
        parsed.kind != RBI_NODE_USER || memchr(from->creator, '\0', from->creator_length)) {
        return false;
    }
    const struct rbi_node *parent = parent_of(nodes, from->path, from->path_length);
    const struct rbi_node *old = rbi_nodes_find(nodes, from->path, from->path_length);
    if (old && old->children != 0 && from->flags & RBI_NODE_EPHEMERAL) {
        return false; /* it could end before them */
    }
    return parsed.parent_length == parsed.meta_length ||
           (parent && !(parent->flags & RBI_NODE_EPHEMERAL));
}

/** Takes a removal that was noted. */
static int restore_removal(struct rbi_nodes *nodes, const struct rbi_node_record *from)
{
    struct rbi_node *node = rbi_nodes_find(nodes, from->path, from->path_length);
    if (!node || node->children != 0) {
        return 1;
    }
    nodes->expected -= node->flags & RBI_NODE_EPHEMERAL ? 1U : 0U;
    nodes_take_out(nodes, node);
    (void)node_free(node);
    return 0;
}

int rbi_nodes_restore(struct rbi_daemon *daemon, const struct rbi_node_record *from)
{
    struct rbi_nodes *nodes = &daemon->nodes;
    nodes->revision = rbi_max_u64(nodes->revision, from->revision);
    if (from->what == RBI_NODE_RECORD_REMOVE) {
        return restore_removal(nodes, from);
    }
    if (!record_is_node(nodes, from)) {
        return 1;
    }
    const struct rbi_node_plan plan = {.path = from->path,
                                       .path_length = from->path_length,
                                       .creator = from->creator,
                                       .creator_length = from->creator_length,
                                       .value = from->value,
                                       .value_length = from->value_length,
                                       .flags = from->flags,
                                       .uid = from->uid};
    struct rbi_node *node = nodes_reserve(nodes) ? node_new(&plan) : NULL;
    if (!node ||
        rbi_quota_note(&daemon->quota, node->uid, RBI_QUOTA_NODES, 1, &node->count_charge) != 0 ||
        rbi_quota_note(&daemon->quota, node->uid, RBI_QUOTA_NODE_BYTES,
                       node_bytes(node, node->value_length), &node->bytes_charge) != 0) {
        (void)node_free(node);
        return -ENOMEM;
    }
    node->revision = from->revision;
    node->owner_pidf = from->owner;
    struct rbi_node *old = rbi_nodes_find(nodes, from->path, from->path_length);
    if (old) {
        node->children = old->children;
        nodes->expected -= old->flags & RBI_NODE_EPHEMERAL ? 1U : 0U;
        nodes->all[rbi_nodes_at(nodes, from->path, from->path_length)] = node;
        (void)node_free(old);
    } else {
        nodes_insert(nodes, node);
    }
    nodes->expected += node->flags & RBI_NODE_EPHEMERAL ? 1U : 0U;
    return 0;
}
