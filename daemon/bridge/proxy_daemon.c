/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon/bridge/proxy_daemon.c - what a proxy and the daemon say to each other. The same as an
 * endpoint of the library does (libclient/control_frames.c), without what only a sender needs.
 */
#include "daemon/bridge/desk_parts.h"
#include "daemon/code.h"
#include "shm/bell.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Ended links with payloads out that one peer may have: no further link before they come back. */
#define RESIDUES_MAX 4U
/* Descriptors of INTRODUCED: side, pool, page, bell; of LINKED: the first three. */
#define OFFERED 4U
#define LINKED  3U

static struct rbi_proxy *proxy_of(struct rbi_uplink *uplink)
{
    return RBI_CONTAINER_OF(uplink, struct rbi_proxy, uplink);
}

/* ---- registration -------------------------------------------------------------------------- */

static void
on_hello(struct rbi_uplink *uplink, const struct rbi_wire_hello_ok *body, struct rbi_fdlist *fds)
{
    struct rbi_proxy *proxy = proxy_of(uplink);
    const int pair[] = {proxy->page_segment.fd, proxy->pool.segment.fd};
    (void)fds; /* it reads no directory */
    if (proxy->register_serial != 0) {
        return; /* another directory takes over */
    }
    proxy->hello_incarnation = body->daemon_incarnation;
    proxy->changed = false;
    proxy->body.incarnation = proxy->ever_registered ? proxy->pidf.incarnation : 0;
    proxy->body.daemon_incarnation = proxy->daemon_incarnation;
    proxy->body.cookie = proxy->cookie;
    proxy->register_serial =
        rbi_uplink_send(uplink, RBI_WIRE_REGISTER, &proxy->body, pair, RBI_ARRAY_SIZE(pair));
}

void rbi_proxy_tell(struct rbi_proxy *proxy)
{
    if (!proxy->registered) {
        proxy->changed = true; /* told behind REGISTERED */
        return;
    }
    const struct rbi_wire_registration *now = &proxy->body;
    const struct rbi_wire_proxy body = {.state = now->state,
                                        .weight = now->weight,
                                        .set = now->set,
                                        .idc = now->idc,
                                        .tags = now->tags,
                                        .health = now->health,
                                        .reported = now->reported,
                                        .stale = now->stale,
                                        .cost = now->cost,
                                        .via = now->via,
                                        .hidden = now->hidden};
    (void)rbi_uplink_send(&proxy->uplink, RBI_WIRE_PROXY, &body, NULL, 0);
}

/** A new daemon learns of a link from both ends; then it can tell one of the other's death. */
static void claim_links(struct rbi_proxy *proxy)
{
    RBI_LIST_EACH(node, spare, &proxy->halves)
    {
        const struct rbi_half *half = RBI_CONTAINER_OF(node, struct rbi_half, node);
        if (half->phase != RBI_HALF_LINKED || half->residue || half->link_id == 0) {
            continue;
        }
        const struct rbi_wire_relink body = {.link_id = half->link_id,
                                             .cluster = half->peer.cluster,
                                             .instance = half->peer.instance,
                                             .incarnation = half->peer.incarnation,
                                             .requester = half->requester,
                                             .side_bytes = half->own_side.size,
                                             .limited = half->limited};
        if (rbi_uplink_send(&proxy->uplink, RBI_WIRE_RELINK, &body, NULL, 0) == 0) {
            return; /* lost once more */
        }
    }
}

static void on_registered(struct rbi_proxy *proxy,
                          const struct rbi_wire_header *header,
                          const struct rbi_wire_registered *body)
{
    if (proxy->registered || header->reply_to != proxy->register_serial) {
        return;
    }
    if (body->cluster != proxy->pidf.cluster || body->instance != proxy->pidf.instance ||
        body->incarnation != proxy->pidf.incarnation) {
        rbi_uplink_drop(&proxy->uplink, "registered as somebody else");
        return;
    }
    /* To the daemon that lost us our links are over: their other ends were told of our death. */
    const bool claims =
        proxy->ever_registered && proxy->daemon_incarnation != proxy->hello_incarnation;
    proxy->daemon_incarnation = proxy->hello_incarnation;
    proxy->cookie = body->cookie;
    proxy->registered = true;
    proxy->ever_registered = true;
    proxy->desk->figures.registered++;
    rbi_uplink_settled(&proxy->uplink);
    if (claims) {
        claim_links(proxy);
    }
    if (proxy->changed && proxy->registered) {
        proxy->changed = false;
        rbi_proxy_tell(proxy);
    }
    if (proxy->registered) {
        proxy->desk->events->on_registered(proxy);
    }
}

static void on_lost(struct rbi_uplink *uplink, const char *why)
{
    struct rbi_proxy *proxy = proxy_of(uplink);
    (void)why;
    proxy->desk->figures.registered -= proxy->registered ? 1U : 0U;
    proxy->registered = false;
    proxy->register_serial = 0;
    RBI_LIST_EACH(node, spare, &proxy->halves)
    {
        struct rbi_half *half = RBI_CONTAINER_OF(node, struct rbi_half, node);
        if (half->phase == RBI_HALF_INTRODUCED || half->phase == RBI_HALF_INTRODUCING) {
            rbi_half_failed(half, RBI_CODE_NOT_READY, "ringbusd was lost");
        }
    }
}

static void on_refused(struct rbi_proxy *proxy, int code, const char *text)
{
    struct rbi_text why;
    rbi_text_set(&why, text);
    rbi_uplink_drop(&proxy->uplink, "refused"); /* asks again */
    proxy->desk->events->on_refused(proxy, code, why.bytes);
}

/* ---- links --------------------------------------------------------------------------------- */

static void refuse(struct rbi_proxy *proxy, uint64_t link_id, int code, const char *text)
{
    struct rbi_wire_refuse body = {.link_id = link_id, .code = code};
    rbi_text_set(&body.text, text);
    (void)rbi_uplink_send(&proxy->uplink, RBI_WIRE_REFUSE, &body, NULL, 0);
}

static unsigned residues_of(const struct rbi_proxy *proxy, const struct rbi_pidf *peer)
{
    unsigned count = 0;
    for (struct rbi_list *node = proxy->halves.next; node != &proxy->halves; node = node->next) {
        const struct rbi_half *half = RBI_CONTAINER_OF(node, struct rbi_half, node);
        count += half->residue && half->peer.cluster == peer->cluster &&
                 half->peer.instance == peer->instance;
    }
    return count;
}

static void
take_offer(struct rbi_half *half, const struct rbi_wire_introduced *body, struct rbi_fdlist *fds)
{
    for (unsigned i = 0; i < OFFERED; i++) {
        half->offered[i] = rbi_fdlist_steal(fds, i);
    }
    half->peer.incarnation = body->incarnation;
    half->peer_uid = body->uid;
    half->link_id = body->link_id;
    half->offered_side_bytes = body->side_bytes;
    half->offered_pool_bytes = body->pool_bytes;
    half->limited = body->get.length > 0 || body->send.length > 0;
}

/** Both have asked at once, and the daemon chose the other's request: it becomes our link. */
static void
meet(struct rbi_half *half, const struct rbi_wire_introduced *body, struct rbi_fdlist *fds)
{
    const struct rbi_side_geometry own = rbi_side_own_geometry(&half->own_side);
    rbi_half_drop_request(half);
    take_offer(half, body, fds);
    half->phase = RBI_HALF_INTRODUCED;
    half->requester = false;
    memcpy(half->path, body->path.bytes, (size_t)body->path.length + 1);
    if (rbi_half_accept(half, own.lane_capacity) != 0) {
        rbi_half_failed(half, RBI_CODE_BAD_PEER, "the link that both asked for could not be made");
    }
}

static void on_introduced(struct rbi_proxy *proxy,
                          const struct rbi_wire_introduced *body,
                          struct rbi_fdlist *fds)
{
    const struct rbi_pidf peer = {
        .cluster = body->cluster, .instance = body->instance, .incarnation = body->incarnation};
    struct rbi_half *old = rbi_proxy_half(proxy, peer.cluster, peer.instance);
    if (fds->count < OFFERED || fds->truncated) {
        refuse(proxy, body->link_id, RBI_CODE_NO_FDS, "the bridge is out of file descriptors");
        return;
    }
    if (residues_of(proxy, &peer) >= RESIDUES_MAX) {
        refuse(proxy, body->link_id, RBI_CODE_QUOTA, "it holds payloads of too many ended links");
        return;
    }
    if (old != NULL && old->phase == RBI_HALF_INTRODUCING && !old->failed_due) {
        meet(old, body, fds);
        return;
    }
    if (old != NULL && old->phase == RBI_HALF_LINKED && old->peer.incarnation == peer.incarnation &&
        !old->hung_up) {
        refuse(proxy, body->link_id, RBI_CODE_IN_USE, "the two have a link already");
        return;
    }
    struct rbi_half *half = rbi_half_new(proxy, &peer, body->path.bytes);
    if (half == NULL) {
        refuse(proxy, body->link_id, RBI_CODE_NO_MEMORY, "the bridge is out of memory");
        return;
    }
    half->phase = RBI_HALF_INTRODUCED;
    take_offer(half, body, fds);
    if (old != NULL && old->phase == RBI_HALF_LINKED) {
        rbi_half_down(old, RBI_REASON_REPLACED); /* an earlier life, or it hung up just now */
    } else if (old != NULL && old->phase == RBI_HALF_INTRODUCED) {
        rbi_half_failed(old, RBI_CODE_PEER_GONE, "it asks anew");
    }
    half->introduced_due = true; /* behind the end of the old one */
    rbi_desk_tell(half);
}

static struct rbi_half *find_serial(const struct rbi_proxy *proxy, uint32_t serial)
{
    for (struct rbi_list *node = proxy->halves.next; node != &proxy->halves; node = node->next) {
        struct rbi_half *half = RBI_CONTAINER_OF(node, struct rbi_half, node);
        if (half->phase == RBI_HALF_INTRODUCING && half->serial == serial && !half->failed_due) {
            return half;
        }
    }
    return NULL;
}

static struct rbi_half *find_link(const struct rbi_proxy *proxy, uint64_t link_id)
{
    for (struct rbi_list *node = proxy->halves.next; node != &proxy->halves; node = node->next) {
        struct rbi_half *half = RBI_CONTAINER_OF(node, struct rbi_half, node);
        if (half->link_id == link_id && !half->residue) {
            return half;
        }
    }
    return NULL;
}

static void link_down(struct rbi_proxy *proxy, uint64_t link_id, enum rbi_reason reason)
{
    struct rbi_wire_link_down down = {.link_id = link_id, .reason = (uint32_t)reason};
    rbi_text_set(&down.text, "");
    (void)rbi_uplink_send(&proxy->uplink, RBI_WIRE_LINK_DOWN, &down, NULL, 0);
}

static void on_linked(struct rbi_proxy *proxy,
                      const struct rbi_wire_header *header,
                      const struct rbi_wire_linked *body,
                      struct rbi_fdlist *list)
{
    struct rbi_half *half = find_serial(proxy, header->reply_to);
    int fds[LINKED] = {-1, -1, -1};
    if (half == NULL || body->cluster != half->peer.cluster ||
        body->instance != half->peer.instance) {
        link_down(proxy, body->link_id, RBI_REASON_NO_RESOURCES);
        return;
    }
    half->link_id = body->link_id;
    half->peer.incarnation = body->incarnation;
    half->limited = body->get.length > 0 || body->send.length > 0;
    memcpy(half->path, body->path.bytes, (size_t)body->path.length + 1);
    int r = list->count >= LINKED && !list->truncated ? 0 : -EMFILE;
    for (unsigned i = 0; i < LINKED && r == 0; i++) {
        fds[i] = rbi_fdlist_steal(list, i);
    }
    if (r == 0) {
        r = rbi_half_attach(half, fds, body->side_bytes, body->pool_bytes);
    }
    for (unsigned i = 0; i < LINKED; i++) {
        if (fds[i] >= 0) {
            rbi_fd_discard(fds[i]);
        }
    }
    if (r < 0) {
        const bool bad = r == -EPROTO || r == -EBADF || r == -EFBIG;
        link_down(proxy, body->link_id, bad ? RBI_REASON_BAD_PEER : RBI_REASON_NO_RESOURCES);
        half->link_id = 0;
        rbi_half_failed(half, bad ? RBI_CODE_BAD_PEER : RBI_CODE_NO_MEMORY,
                        bad ? "it offered memory that cannot be trusted" : strerrordesc_np(-r));
        return;
    }
    rbi_half_linked(half);
}

static void on_link_down(struct rbi_proxy *proxy, const struct rbi_wire_link_down *body)
{
    struct rbi_half *half = find_link(proxy, body->link_id);
    if (half == NULL) {
        return;
    }
    half->link_id = 0; /* the daemon has forgotten it: nothing to tell it later */
    if (half->phase == RBI_HALF_INTRODUCED) {
        rbi_half_failed(half, RBI_CODE_PEER_GONE, body->text.bytes);
        return;
    }
    const bool known = body->reason > RBI_REASON_NONE && body->reason <= RBI_REASON_UNREACHABLE;
    rbi_half_down(half, known ? (enum rbi_reason)body->reason : RBI_REASON_LEFT);
}

/* ---- the rest ------------------------------------------------------------------------------ */

static void on_error(struct rbi_proxy *proxy,
                     const struct rbi_wire_header *header,
                     const struct rbi_wire_error *body)
{
    const int code = body->code < 0 ? body->code : RBI_CODE_SYSTEM;
    if (!proxy->registered) {
        on_refused(proxy, code, body->text.bytes);
        return;
    }
    struct rbi_half *half = header->reply_to != 0 ? find_serial(proxy, header->reply_to) : NULL;
    if (half != NULL) {
        rbi_half_failed(half, code, body->text.bytes);
    }
}

static void on_frame(struct rbi_uplink *uplink,
                     const struct rbi_wire_header *header,
                     const union rbi_wire_body *body,
                     struct rbi_fdlist *fds)
{
    struct rbi_proxy *proxy = proxy_of(uplink);
    switch (header->type) {
    case RBI_WIRE_REGISTERED:
        on_registered(proxy, header, &body->registered);
        break;
    case RBI_WIRE_ERROR:
        on_error(proxy, header, &body->error);
        break;
    case RBI_WIRE_INTRODUCED:
        on_introduced(proxy, &body->introduced, fds);
        break;
    case RBI_WIRE_LINKED:
        on_linked(proxy, header, &body->linked, fds);
        break;
    case RBI_WIRE_LINK_DOWN:
        on_link_down(proxy, &body->link_down);
        break;
    case RBI_WIRE_PROBE:
        /* That the bridge is well; whether the instance is, its own host judges. */
        (void)rbi_uplink_send(uplink, RBI_WIRE_PROBE, &body->probe, NULL, 0);
        break;
    default:
        break; /* of no concern to a proxy, or of a later version */
    }
}

const struct rbi_uplink_events rbi_proxy_uplink_events = {
    .on_hello = on_hello, .on_frame = on_frame, .on_lost = on_lost};
