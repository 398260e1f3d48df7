/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/bridge/proxy.c - a proxy's life here; what it says to the daemon is in proxy_daemon.c. */
#include "daemon/bridge/proxy.h"

#include "daemon/bridge/desk_parts.h"
#include "shm/bell.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAM "ringbus-bridge"

/* ---- finding one --------------------------------------------------------------------------- */

uint64_t rbi_proxy_key(uint64_t cluster, int32_t instance)
{
    uint64_t key = cluster ^ (uint64_t)(uint32_t)instance * UINT64_C(0x9e3779b97f4a7c15);
    key ^= key >> 29;
    return key == 0 || key == UINT64_MAX ? 1 : key; /* what the map cannot keep */
}

struct rbi_proxy *rbi_proxy_find(struct rbi_desk *desk, uint64_t cluster, int32_t instance)
{
    struct rbi_proxy *proxy = rbi_map_get(&desk->proxies, rbi_proxy_key(cluster, instance));
    return proxy != NULL && proxy->pidf.cluster == cluster && proxy->pidf.instance == instance
               ? proxy
               : NULL;
}

struct rbi_half *rbi_proxy_half(const struct rbi_proxy *proxy, uint64_t cluster, int32_t instance)
{
    for (struct rbi_list *node = proxy->halves.next; node != &proxy->halves; node = node->next) {
        struct rbi_half *half = RBI_CONTAINER_OF(node, struct rbi_half, node);
        if (!half->residue && half->phase != RBI_HALF_DOWN && half->peer.cluster == cluster &&
            half->peer.instance == instance) {
            return half;
        }
    }
    return NULL;
}

/* ---- what it is ---------------------------------------------------------------------------- */

/** @return whether it fits */
static bool set_text(struct rbi_text *text, const char *from, size_t most)
{
    const char *value = from != NULL ? from : "";
    if (strlen(value) > most) {
        return false;
    }
    rbi_text_set(text, value);
    return true;
}

/** What may change. 0; -EINVAL */
static int describe(struct rbi_wire_registration *body, const struct rbi_proxy_spec *spec)
{
    body->cost = spec->cost;
    body->state = spec->state;
    body->weight = spec->weight;
    body->health = spec->health;
    body->reported = spec->reported;
    body->hidden = spec->hidden;
    body->stale = spec->stale;
    return set_text(&body->via, spec->via, RBI_WIRE_TEXT_MAX) &&
                   set_text(&body->set, spec->set, RBI_WIRE_TEXT_MAX) &&
                   set_text(&body->idc, spec->idc, RBI_WIRE_TEXT_MAX) &&
                   set_text(&body->tags, spec->tags, RBI_WIRE_TEXT_MAX)
               ? 0
               : -EINVAL;
}

static bool is_same(const struct rbi_wire_registration *a, const struct rbi_wire_registration *b)
{
    return a->cost == b->cost && a->state == b->state && a->weight == b->weight &&
           a->health == b->health && a->reported == b->reported && a->hidden == b->hidden &&
           a->stale == b->stale && strcmp(a->via.bytes, b->via.bytes) == 0 &&
           strcmp(a->set.bytes, b->set.bytes) == 0 && strcmp(a->idc.bytes, b->idc.bytes) == 0 &&
           strcmp(a->tags.bytes, b->tags.bytes) == 0;
}

/** What stays. 0; -EINVAL */
static int name(struct rbi_proxy *proxy, const struct rbi_proxy_spec *spec)
{
    struct rbi_path_info info;
    if (spec->path == NULL || spec->host == NULL || spec->host[0] == '\0' ||
        spec->incarnation == 0 || !set_text(&proxy->body.path, spec->path, RBI_PATH_MAX) ||
        !set_text(&proxy->body.host, spec->host, RBI_WIRE_TEXT_MAX) ||
        rbi_pidf_parse(spec->path, strlen(spec->path), &proxy->pidf, &info) != 0 ||
        info.elements != RBI_PATH_INSTANCE_ELEMENTS) {
        return -EINVAL;
    }
    proxy->pidf.incarnation = spec->incarnation;
    proxy->body.origin_incarnation = spec->incarnation;
    proxy->body.origin_uid = spec->uid;
    return 0;
}

static void write_page(struct rbi_proxy *proxy)
{
    rbi_store_rlx(&proxy->page->cluster, proxy->pidf.cluster);
    rbi_store_rlx(&proxy->page->instance, (uint64_t)(uint32_t)proxy->pidf.instance);
    rbi_store_rlx(&proxy->page->incarnation, proxy->pidf.incarnation);
    rbi_store_rlx(&proxy->page->state, proxy->body.state);
}

static int make_memory(struct rbi_proxy *proxy)
{
    int r = rbi_segment_create(&proxy->page_segment, "ringbus-page", RBI_SEGMENT_PAGE, RBI_PAGE, 0);
    if (r == 0) {
        proxy->page = proxy->page_segment.base;
        proxy->page->flags = proxy->desk->fenced ? RBI_PAGE_FENCED : 0;
        write_page(proxy);
        r = rbi_pool_init_sparse(&proxy->pool, &proxy->desk->pool_plan);
    }
    if (r == 0) {
        proxy->backed = calloc((proxy->pool.chunk_count + 63U) / 64U, sizeof *proxy->backed);
        r = proxy->backed != NULL ? 0 : -ENOMEM;
    }
    proxy->body.page_bytes = proxy->page_segment.size;
    proxy->body.pool_bytes = proxy->pool.segment.size;
    return r;
}

/* ---- life ---------------------------------------------------------------------------------- */

static void free_memory(struct rbi_proxy *proxy)
{
    rbi_segment_deinit(&proxy->page_segment);
    rbi_pool_deinit(&proxy->pool);
    free(proxy->backed);
    free(proxy);
}

static int enter(struct rbi_proxy *proxy, const struct rbi_proxy_spec *spec)
{
    struct rbi_desk *desk = proxy->desk;
    int r = name(proxy, spec);
    if (r == 0) {
        r = describe(&proxy->body, spec);
    }
    if (r == 0) {
        r = make_memory(proxy);
    }
    return r != 0 ? r
                  : rbi_map_put(&desk->proxies,
                                rbi_proxy_key(proxy->pidf.cluster, proxy->pidf.instance), proxy);
}

int rbi_proxy_new(struct rbi_desk *desk,
                  const struct rbi_proxy_spec *spec,
                  void *context,
                  struct rbi_proxy **out)
{
    struct rbi_proxy *proxy = calloc(1, sizeof *proxy);
    if (proxy == NULL) {
        return -ENOMEM;
    }
    proxy->desk = desk;
    proxy->context = context;
    proxy->page_segment = (struct rbi_segment)RBI_SEGMENT_NULL;
    const int r = enter(proxy, spec);
    if (r != 0) {
        free_memory(proxy);
        return r;
    }
    rbi_list_init(&proxy->halves);
    rbi_list_init(&proxy->awake_node);
    rbi_list_push_back(&desk->all, &proxy->node);
    desk->figures.proxies++;
    rbi_bell_announce(&proxy->page->sleep_epoch); /* nothing may move yet */
    rbi_uplink_init(&proxy->uplink, desk->loop, desk->socket, PROGRAM, &rbi_proxy_uplink_events);
    rbi_uplink_start(&proxy->uplink);
    *out = proxy;
    return 0;
}

/** Whether it is to be told that it left. Who died on its host has died here, too: to watchers, to
 *  whom it owed nodes, and to whoever keeps its slots for it. */
static bool leaves_in_order(enum rbi_reason reason)
{
    return reason != RBI_REASON_NONE && reason != RBI_REASON_CRASHED &&
           reason != RBI_REASON_SILENT && reason != RBI_REASON_UNREACHABLE;
}

void rbi_proxy_free(struct rbi_proxy *proxy, enum rbi_reason reason)
{
    if (proxy == NULL) {
        return;
    }
    struct rbi_desk *desk = proxy->desk;
    while (!rbi_list_empty(&proxy->halves)) {
        struct rbi_half *half = RBI_LIST_FIRST(&proxy->halves, struct rbi_half, node);
        if (half->residue) {
            rbi_half_free(half); /* its pool is lent to nobody any more: it ends with its readers */
        } else {
            rbi_half_end(half, reason);
        }
    }
    if (leaves_in_order(reason) && proxy->registered) {
        const struct rbi_wire_set_state left = {.state = RBI_ENDPOINT_CLOSED};
        rbi_store_rlx(&proxy->page->state, RBI_ENDPOINT_CLOSED);
        (void)rbi_uplink_send(&proxy->uplink, RBI_WIRE_SET_STATE, &left, NULL, 0);
    }
    rbi_desk_forget(proxy);
    rbi_uplink_deinit(&proxy->uplink);
    rbi_loop_timer_cancel(desk->loop, &proxy->starve_timer);
    (void)rbi_map_remove(&desk->proxies, rbi_proxy_key(proxy->pidf.cluster, proxy->pidf.instance));
    rbi_list_remove(&proxy->node);
    desk->figures.proxies--;
    desk->figures.pool_bytes -= proxy->backed_bytes;
    desk->figures.registered -= proxy->registered ? 1U : 0U;
    free_memory(proxy);
}

int rbi_proxy_update(struct rbi_proxy *proxy, const struct rbi_proxy_spec *spec)
{
    struct rbi_wire_registration next = proxy->body;
    if (spec->path == NULL || spec->host == NULL || spec->incarnation != proxy->pidf.incarnation ||
        spec->uid != proxy->body.origin_uid || strcmp(spec->path, proxy->body.path.bytes) != 0 ||
        strcmp(spec->host, proxy->body.host.bytes) != 0 || describe(&next, spec) != 0) {
        return -EINVAL;
    }
    if (is_same(&next, &proxy->body)) {
        return 0;
    }
    proxy->body = next;
    write_page(proxy);
    rbi_proxy_tell(proxy);
    return 0;
}

/* ---- links --------------------------------------------------------------------------------- */

int rbi_proxy_introduce(struct rbi_proxy *proxy,
                        const struct rbi_pidf *peer,
                        uint64_t lane_bytes,
                        void *context,
                        struct rbi_half **out)
{
    if (!proxy->registered) {
        return -EAGAIN;
    }
    if (rbi_proxy_half(proxy, peer->cluster, peer->instance) != NULL) {
        return -EEXIST;
    }
    struct rbi_half *half = rbi_half_new(proxy, peer, "");
    if (half == NULL) {
        return -ENOMEM;
    }
    half->context = context;
    half->phase = RBI_HALF_INTRODUCING;
    half->requester = true;
    const int r = rbi_half_introduce(half, lane_bytes);
    if (r < 0) {
        rbi_half_free(half);
        return r;
    }
    *out = half;
    return 0;
}

/* ---- what others ask ----------------------------------------------------------------------- */

void *rbi_proxy_context(const struct rbi_proxy *proxy)
{
    return proxy->context;
}

struct rbi_desk *rbi_proxy_desk(const struct rbi_proxy *proxy)
{
    return proxy->desk;
}

const char *rbi_proxy_path(const struct rbi_proxy *proxy)
{
    return proxy->body.path.bytes;
}

struct rbi_pidf rbi_proxy_pidf(const struct rbi_proxy *proxy)
{
    return proxy->pidf;
}

bool rbi_proxy_is_registered(const struct rbi_proxy *proxy)
{
    return proxy->registered;
}
