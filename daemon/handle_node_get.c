/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at the node tree. Who has many children is read in pages, each of which is what holds when
 * it is answered; the names are ascending, so that none is left out that was there all the time.
 */
#include "daemon/code.h"
#include "daemon/daemon.h"
#include "daemon/handle_node.h"

#include <string.h>

/* Names of one answer: so many of the longest fit. */
#define PAGE_NAMES (RBI_WIRE_DATA_MAX / (RBI_PATH_ELEMENT_MAX + 1U))
/* Events of one answer: a client is read from again before it asks for more. */
#define SCAN_NODES 8U

/** The lowest names behind one. */
struct page {
    const struct rbi_text *after;
    unsigned count;
    bool more;
    char names[PAGE_NAMES][RBI_PATH_ELEMENT_MAX + 1];
};

static void page_offer(struct page *page, const char *name, size_t length)
{
    char text[RBI_PATH_ELEMENT_MAX + 1];
    memcpy(text, name, length);
    text[length] = '\0';
    if (page->after->length != 0 && strcmp(text, page->after->bytes) <= 0) {
        return;
    }
    unsigned at = page->count;
    while (at > 0 && strcmp(page->names[at - 1], text) > 0) {
        at--;
    }
    if (at > 0 && strcmp(page->names[at - 1], text) == 0) {
        return;
    }
    if (page->count == PAGE_NAMES) {
        page->more = true;
        if (at == PAGE_NAMES) {
            return;
        }
        page->count--;
    }
    memmove(page->names[at + 1], page->names[at], (page->count - at) * sizeof(page->names[0]));
    memcpy(page->names[at], text, length + 1);
    page->count++;
}

/** Whether the element right below @p prefix on the way to @p path is on the page already. */
static bool
page_has(const struct page *page, const struct rbi_text *prefix, const char *path, size_t length)
{
    size_t name_length = 0;
    const size_t name =
        rbi_node_path_below(path, length, prefix->bytes, prefix->length, &name_length);
    for (unsigned i = 0; name != 0 && i < page->count; i++) {
        if (strlen(page->names[i]) == name_length &&
            memcmp(page->names[i], path + name, name_length) == 0) {
            return true;
        }
    }
    return false;
}

/** Offers the element right below @p prefix on the way to @p path. @return whether there is one */
static bool
page_offer_below(struct page *page, const struct rbi_text *prefix, const char *path, size_t length)
{
    size_t name_length = 0;
    const size_t name =
        rbi_node_path_below(path, length, prefix->bytes, prefix->length, &name_length);
    if (name != 0) {
        page_offer(page, path + name, name_length);
    }
    return name != 0;
}

/* ---- what is below --------------------------------------------------------------------- */

static bool pages_nodes(const struct rbi_request *request, struct page *page)
{
    const struct rbi_nodes *nodes = &request->daemon->nodes;
    const struct rbi_text *path = &request->body->node.path;
    bool any = false;
    for (uint32_t i = rbi_nodes_at(nodes, path->bytes, path->length); i < nodes->count; i++) {
        const struct rbi_node *node = nodes->all[i];
        if (memcmp(node->path, path->bytes, rbi_min_u64(path->length, node->path_length)) != 0) {
            break;
        }
        if (!page_has(page, path, node->path, node->path_length) &&
            rbi_node_may_see(request->peer, node)) {
            any = page_offer_below(page, path, node->path, node->path_length) || any;
        }
    }
    return any;
}

/** Whether it may be told of a cluster, be it of one instance of it only. */
static bool cluster_may_see(struct rbi_peer *peer, const struct rbi_cluster *cluster)
{
    struct rbi_text why;
    bool may =
        rbi_rights_may_path(peer, RBI_ACL_WATCH, cluster->path.bytes, cluster->path.length, &why);
    for (uint32_t i = 0; i < cluster->member_count && !may; i++) {
        may = rbi_rights_may(peer, RBI_ACL_WATCH, cluster->members[i], &why);
    }
    return may;
}

static bool pages_clusters(const struct rbi_request *request, struct page *page)
{
    const struct rbi_text *path = &request->body->node.path;
    ck_ht_iterator_t cursor = CK_HT_ITERATOR_INITIALIZER;
    struct rbi_cluster *cluster = NULL;
    bool any = false;
    while ((cluster = rbi_map_next(&request->daemon->registry.clusters, &cursor)) != NULL) {
        if (rbi_path_has_prefix(cluster->path.bytes, cluster->path.length, path->bytes,
                                path->length) &&
            !page_has(page, path, cluster->path.bytes, cluster->path.length) &&
            cluster_may_see(request->peer, cluster)) {
            any = page_offer_below(page, path, cluster->path.bytes, cluster->path.length) || any;
        }
    }
    return any;
}

/** @return how many can be seen */
static uint32_t pages_members(const struct rbi_request *request,
                              const struct rbi_cluster *cluster,
                              struct page *page)
{
    struct rbi_text why;
    uint32_t count = 0;
    for (uint32_t i = 0; cluster && i < cluster->member_count; i++) {
        const struct rbi_endpoint *member = cluster->members[i];
        if (member->visible && rbi_rights_may(request->peer, RBI_ACL_WATCH, member, &why)) {
            page_offer(page, member->path.bytes + member->name_offset,
                       member->path.length - member->name_offset);
            count++;
        }
    }
    return count;
}

static void
get_answer(const struct rbi_request *request, struct rbi_wire_node_state *state, struct page *page)
{
    for (unsigned i = 0; i < page->count; i++) {
        const size_t length = strlen(page->names[i]);
        memcpy(state->names.bytes + state->names.length, page->names[i], length);
        state->names.length = (uint16_t)(state->names.length + length);
        state->names.bytes[state->names.length++] = '\n';
    }
    state->more = page->more;
    rbi_peer_send(request->peer, RBI_WIRE_NODE_STATE, state, request->serial);
}

static void get_none(const struct rbi_request *request, const char *what)
{
    rbi_request_refuse(request, RBI_CODE_NO_SERVICE, "there is no %s %.200s", what,
                       request->body->node.path.bytes);
}

/* ---- GET ------------------------------------------------------------------------------- */

static void get_user(const struct rbi_request *request, struct page *page)
{
    const struct rbi_text *path = &request->body->node.path;
    const struct rbi_node *node =
        rbi_nodes_find(&request->daemon->nodes, path->bytes, path->length);
    struct rbi_text why;
    if (!node) {
        get_none(request, "node");
        return;
    }
    if (!rbi_rights_may_path_of(request->peer, RBI_ACL_WATCH, node->path, node->path_length,
                                node->uid, &why)) {
        rbi_rights_refuse(request, &why);
        return;
    }
    struct rbi_wire_node_state state = {
        .kind = RBI_NODE_USER, .revision = node->revision, .flags = node->flags, .uid = node->uid};
    state.value.length = node->value_length;
    if (node->value_length != 0) {
        memcpy(state.value.bytes, node->value, node->value_length);
    }
    rbi_text_set(&state.creator, node->path + node->path_length + 1);
    (void)pages_nodes(request, page);
    get_answer(request, &state, page);
}

static void get_cluster(const struct rbi_request *request, struct page *page)
{
    const struct rbi_text *path = &request->body->node.path;
    const struct rbi_cluster *cluster =
        rbi_registry_cluster(&request->daemon->registry, rbi_cluster_id(path->bytes, path->length));
    struct rbi_wire_node_state state = {.kind = RBI_NODE_CLUSTER};
    struct rbi_text why;
    if (cluster && !cluster_may_see(request->peer, cluster)) {
        (void)rbi_rights_may_path(request->peer, RBI_ACL_WATCH, path->bytes, path->length, &why);
        rbi_rights_refuse(request, &why);
        return;
    }
    state.instances = pages_members(request, cluster, page);
    const bool nodes = pages_nodes(request, page);
    if (!cluster && !nodes) {
        get_none(request, "cluster");
        return;
    }
    get_answer(request, &state, page);
}

static void get_instance(const struct rbi_request *request, struct page *page)
{
    const struct rbi_text *path = &request->body->node.path;
    struct rbi_wire_node_state state = {.kind = RBI_NODE_INSTANCE, .instances = 1};
    struct rbi_path_info info;
    struct rbi_pidf pidf = {.cluster = 0};
    struct rbi_text why;
    const int wrong = rbi_pidf_parse(path->bytes, path->length, &pidf, &info);
    const struct rbi_cluster *cluster =
        wrong ? NULL : rbi_registry_cluster(&request->daemon->registry, pidf.cluster);
    const struct rbi_endpoint *member = cluster ? rbi_cluster_member(cluster, pidf.instance) : NULL;
    if (!member || !member->visible) {
        rbi_request_refuse(request, cluster ? RBI_CODE_NO_INSTANCE : RBI_CODE_NO_SERVICE,
                           cluster ? "no instance %.200s" : "there is no cluster of %.200s",
                           path->bytes);
        return;
    }
    if (!rbi_rights_may(request->peer, RBI_ACL_WATCH, member, &why)) {
        rbi_rights_refuse(request, &why);
        return;
    }
    state.uid = member->peer->uid;
    rbi_text_set(&state.creator, member->peer->program);
    get_answer(request, &state, page);
}

static void get_above(const struct rbi_request *request, enum rbi_node_kind kind, struct page *page)
{
    const struct rbi_wire_node_state blank = {.kind = (uint32_t)kind};
    struct rbi_wire_node_state state = blank;
    bool any = pages_nodes(request, page);
    any = (kind == RBI_NODE_PREFIX && pages_clusters(request, page)) || any;
    if (!any && request->body->node.path.length > 1) {
        get_none(request, "node");
        return;
    }
    get_answer(request, &state, page);
}

void rbi_node_get(const struct rbi_request *request, const struct rbi_node_path *parsed)
{
    struct page page = {.after = &request->body->node.after};
    switch (parsed->kind) {
    case RBI_NODE_USER:
        get_user(request, &page);
        break;
    case RBI_NODE_CLUSTER:
        get_cluster(request, &page);
        break;
    case RBI_NODE_INSTANCE:
        get_instance(request, &page);
        break;
    case RBI_NODE_PREFIX:
    case RBI_NODE_META:
        get_above(request, parsed->kind, &page);
        break;
    }
}

/* ---- SCAN ------------------------------------------------------------------------------ */

void rbi_node_scan(const struct rbi_request *request)
{
    const struct rbi_nodes *nodes = &request->daemon->nodes;
    const struct rbi_text *path = &request->body->node.path;
    const struct rbi_text *after = &request->body->node.after;
    struct rbi_wire_node_state state = {.kind = RBI_NODE_PREFIX};
    struct rbi_wire_node_event event;
    const bool goes_on = after->length > path->length;
    uint32_t i = goes_on ? rbi_nodes_at(nodes, after->bytes, after->length)
                         : rbi_nodes_at(nodes, path->bytes, path->length);
    unsigned looked_at = 0;
    for (; i < nodes->count; i++) {
        const struct rbi_node *node = nodes->all[i];
        if (memcmp(node->path, path->bytes, rbi_min_u64(path->length, node->path_length)) != 0) {
            break;
        }
        if (goes_on && strcmp(node->path, after->bytes) == 0) {
            continue;
        }
        if (looked_at++ == SCAN_NODES) {
            state.more = 1;
            break;
        }
        rbi_text_set(&state.after, node->path);
        if (!rbi_path_has_prefix(node->path, node->path_length, path->bytes, path->length)) {
            continue;
        }
        if (!rbi_node_may_see(request->peer, node)) {
            request->peer->rights.hidden = true;
            continue;
        }
        rbi_node_event_fill(&event, node, RBI_CHANGE_ADDED, node->revision);
        event.initial = 1;
        rbi_peer_send(request->peer, RBI_WIRE_NODE_EVENT, &event, request->serial);
    }
    rbi_peer_send(request->peer, RBI_WIRE_NODE_STATE, &state, request->serial);
}
