/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/ends.h"

#include "daemon/bridge/fars.h"
#include "daemon/bridge/import_desk.h"
#include "daemon/bridge/neighbour.h"
#include "daemon/bridge/tunnel.h"
#include "daemon/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct rbi_far_end *rbi_far_end_find(struct rbi_bridge *bridge, uint64_t cluster, int32_t instance)
{
    struct rbi_proxy *proxy = rbi_proxy_find(bridge->desk, cluster, instance);
    return proxy != NULL ? rbi_proxy_context(proxy) : NULL;
}

static struct rbi_proxy_spec spec_of(const struct rbi_far_end *end)
{
    const struct rbi_far *far = end->far;
    const struct rbi_remote *remote = &end->remote;
    const struct rbi_session *way = rbi_far_way(far);
    const struct rbi_neighbour *via = way != NULL ? way->neighbour : NULL;
    const bool shown = end->imported;
    return (struct rbi_proxy_spec){
        .path = remote->path,
        .incarnation = end->pidf.incarnation,
        .host = far->name,
        .via = via != NULL && via != far->direct ? via->peer.host : "",
        .cost = far->cost,
        .state = shown ? remote->state : (uint32_t)RBI_ENDPOINT_READY,
        .weight = shown ? remote->weight : 0,
        .health = shown ? remote->health : 0,
        .reported = shown ? remote->reported : 0,
        .uid = end->uid,
        .set = remote->set,
        .idc = remote->idc,
        .tags = remote->tags,
        .hidden = !shown,
        .stale = end->stale || !far->reachable,
    };
}

static void update(struct rbi_far_end *end)
{
    const struct rbi_proxy_spec spec = spec_of(end);
    if (rbi_proxy_update(end->proxy, &spec) < 0) {
        rbi_log(RBI_LOG_ERROR, "far_end_not_updated", "path=%s", end->remote.path);
    }
}

/* 0; -errno */
static int make(struct rbi_bridge *bridge,
                struct rbi_far *far,
                const struct rbi_remote *remote,
                uint32_t uid,
                bool imported,
                struct rbi_far_end **out)
{
    struct rbi_far_end *end = calloc(1, sizeof *end);
    if (end == NULL) {
        return -ENOMEM;
    }
    end->bridge = bridge;
    end->far = far;
    end->pidf = remote->pidf;
    end->remote = *remote;
    end->imported = imported;
    end->uid = uid;
    rbi_list_init(&end->tunnels);
    rbi_list_init(&end->in_far);
    const struct rbi_proxy_spec spec = spec_of(end);
    const int result = rbi_proxy_new(bridge->desk, &spec, end, &end->proxy);
    if (result < 0) {
        free(end);
        return result;
    }
    rbi_list_push_back(&far->ends, &end->in_far);
    *out = end;
    return 0;
}

/* Ends it with all its tunnels, as another life has its path, or it is gone. */
static void end_end(struct rbi_far_end *end, enum rbi_reason reason)
{
    end->imported = false;
    end->holds++;
    RBI_LIST_EACH(node, spare, &end->tunnels)
    {
        struct rbi_tunnel *tunnel = RBI_CONTAINER_OF(node, struct rbi_tunnel, in_end);
        const struct rbi_stream_input gone = {.type = RBI_STREAM_IN_BROKEN, .reason = reason};
        rbi_tunnel_step(tunnel, &gone);
    }
    while (!rbi_list_empty(&end->tunnels)) {
        rbi_tunnel_free(RBI_LIST_FIRST(&end->tunnels, struct rbi_tunnel, in_end));
    }
    rbi_list_remove(&end->in_far);
    rbi_proxy_free(end->proxy, reason);
    free(end);
}

void rbi_far_end_release(struct rbi_far_end *end)
{
    if (end->holds == 0 && !end->imported && rbi_list_empty(&end->tunnels)) {
        rbi_list_remove(&end->in_far);
        rbi_proxy_free(end->proxy, RBI_REASON_LEFT);
        free(end);
    }
}

int rbi_far_end_caller(struct rbi_bridge *bridge,
                       struct rbi_far *far,
                       const struct rbi_frame_endpoint *who,
                       uint32_t uid,
                       struct rbi_far_end **out)
{
    struct rbi_far_end *end = rbi_far_end_find(bridge, who->pidf.cluster, who->pidf.instance);
    struct rbi_remote remote = {.state = RBI_ENDPOINT_READY};
    if (end != NULL && end->far != far) {
        return -EEXIST;
    }
    if (end != NULL && end->pidf.incarnation == who->pidf.incarnation) {
        *out = end;
        return 0;
    }
    if (end != NULL) {
        if (end->holds > 0) {
            return -EEXIST; /* it is just being ended */
        }
        rbi_import_desk_dead(bridge->import, end->imported ? end->import_entry : UINT32_MAX);
        end = rbi_far_end_find(bridge, who->pidf.cluster, who->pidf.instance);
        if (end != NULL) {
            end_end(end, RBI_REASON_REPLACED);
        }
    }
    if (rbi_remote_set_path(&remote, who->path.bytes, who->path.length) != 0) {
        return -EINVAL;
    }
    remote.pidf.incarnation = who->pidf.incarnation;
    return make(bridge, far, &remote, uid, false, out);
}

void rbi_far_ends_way(struct rbi_far *far)
{
    RBI_LIST_EACH(node, spare, &far->ends)
    {
        update(RBI_CONTAINER_OF(node, struct rbi_far_end, in_far));
    }
}

void rbi_far_ends_free(struct rbi_bridge *bridge)
{
    ck_ht_iterator_t cursor = CK_HT_ITERATOR_INITIALIZER;
    struct rbi_far *far = NULL;
    while (bridge->hosts.ready && (far = rbi_map_next(&bridge->hosts, &cursor)) != NULL) {
        while (!rbi_list_empty(&far->ends)) {
            struct rbi_far_end *end = RBI_LIST_FIRST(&far->ends, struct rbi_far_end, in_far);
            rbi_list_remove(&end->in_far);
            rbi_proxy_free(end->proxy, RBI_REASON_LEFT);
            free(end);
        }
    }
}

/* ---- what is imported ------------------------------------------------------------------------ */

static int import_add(void *context,
                      const struct rbi_import_host *host,
                      uint32_t entry,
                      const struct rbi_remote *remote,
                      bool stale,
                      void **user)
{
    struct rbi_bridge *bridge = context;
    struct rbi_far *far = rbi_fars_named(bridge, host->name);
    struct rbi_far_end *end = rbi_far_end_find(bridge, remote->pidf.cluster, remote->pidf.instance);
    int result = far != NULL ? 0 : -ENOMEM;
    if (result == 0 && end != NULL && (end->far != far || end->imported)) {
        return -EEXIST;
    }
    if (result == 0 && end != NULL && end->pidf.incarnation != remote->pidf.incarnation) {
        end_end(end, RBI_REASON_REPLACED);
        end = NULL;
    }
    if (result == 0 && end != NULL) {
        end->remote = *remote; /* it has opened a stream here, and is exported as well */
        end->imported = true;
    } else if (result == 0) {
        result = make(bridge, far, remote, UINT32_MAX, true, &end);
    }
    if (result < 0) {
        return result;
    }
    end->import_entry = entry;
    end->stale = stale;
    update(end);
    *user = end;
    return 0;
}

static void import_update(void *context, void *user, const struct rbi_remote *remote, bool stale)
{
    struct rbi_far_end *end = user;
    (void)context;
    end->remote = *remote;
    end->stale = stale;
    update(end);
}

static void import_remove(void *context, void *user, uint32_t reason)
{
    (void)context;
    end_end(user, (enum rbi_reason)reason);
}

static int import_ask(void *context, uint64_t host, uint64_t incarnation, uint64_t revision)
{
    struct rbi_bridge *bridge = context;
    const struct rbi_far *far = rbi_fars_find(bridge, host);
    struct rbi_session *session = far != NULL ? rbi_far_way(far) : NULL;
    const struct rbi_frame_dir_ask ask = {
        .envelope = {.from = bridge->self, .to = host, .hops = RBI_FRAME_HOPS_MAX},
        .incarnation = incarnation,
        .revision = revision};
    return session != NULL ? rbi_session_send(session, RBI_FRAME_DIR_ASK, 0, 0, &ask)
                           : -EHOSTUNREACH;
}

const struct rbi_import_desk_calls rbi_far_end_calls = {
    .add = import_add, .update = import_update, .remove = import_remove, .ask = import_ask};
