/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/link.h"

#include "daemon/code.h"
#include "daemon/daemon.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#define ID_TRIES 8U

int rbi_links_init(struct rbi_links *links)
{
    *links = (struct rbi_links){.next_number = 1};
    rbi_list_init(&links->all);
    const int result = rbi_map_init(&links->by_id);
    return result < 0 ? result : rbi_map_init(&links->by_pair);
}

void rbi_links_deinit(struct rbi_links *links)
{
    RBI_ASSERT(links->count == 0);
    rbi_map_deinit(&links->by_id);
    rbi_map_deinit(&links->by_pair);
}

/** Slots are unique among the living, so two of them name a pair exactly. */
static uint64_t link_pair_key(const struct rbi_endpoint *a, const struct rbi_endpoint *b)
{
    const uint64_t low = rbi_min_u64(a->slot, b->slot);
    const uint64_t high = rbi_max_u64(a->slot, b->slot);
    return (high + 1) << 32 | low;
}

struct rbi_link *rbi_link_find(struct rbi_daemon *daemon, uint64_t id)
{
    return rbi_map_get(&daemon->links.by_id, id);
}

struct rbi_link *rbi_link_find_pair(struct rbi_daemon *daemon,
                                    const struct rbi_endpoint *a,
                                    const struct rbi_endpoint *b)
{
    return rbi_map_get(&daemon->links.by_pair, link_pair_key(a, b));
}

static void link_timed_out(void *context)
{
    struct rbi_link *link = context;
    rbi_health_unreachable(link->server);
    rbi_link_end(link, NULL, RBI_REASON_GIVEN_UP, RBI_CODE_TIMEOUT,
                 "the instance did not answer the introduction in time");
}

/** Enters a link under its id and its pair. @retval 0; -EEXIST; -ENOMEM */
static int link_enter(struct rbi_links *links, struct rbi_link *link)
{
    int result = rbi_map_put(&links->by_id, link->id, link);
    if (result < 0) {
        return result == -EEXIST ? -EEXIST : -ENOMEM;
    }
    result = rbi_map_put(&links->by_pair, link->pair, link);
    if (result < 0) {
        (void)rbi_map_remove(&links->by_id, link->id);
        return result == -EEXIST ? -EEXIST : -ENOMEM;
    }
    link->number = links->next_number++;
    links->count++;
    rbi_list_push_back(&links->all, &link->in_links);
    rbi_list_push_back(&link->requester->links_out, &link->in_requester);
    rbi_list_push_back(&link->server->links_in, &link->in_server);
    link->requester->link_count++;
    link->server->link_count++;
    return 0;
}

static int link_make(struct rbi_daemon *daemon,
                     struct rbi_endpoint *requester,
                     struct rbi_endpoint *server,
                     uint64_t id,
                     struct rbi_link **out)
{
    struct rbi_link *link = calloc(1, sizeof(*link));
    if (!link) {
        return -ENOMEM;
    }
    link->daemon = daemon;
    link->id = id;
    link->pair = link_pair_key(requester, server);
    link->requester = requester;
    link->server = server;
    link->created_ns = rbi_loop_now_ns(daemon->loop);
    const int result = link_enter(&daemon->links, link);
    if (result < 0) {
        free(link);
        return result;
    }
    *out = link;
    return 0;
}

/**
 * An id that is free. Ends of a link outlive the daemon, and the next one must not give the same;
 * and who knows its own must not know those of others, or it could take them under the next
 * daemon, before their ends have told of them. @retval 0; -EIO
 */
static int link_fresh_id(struct rbi_links *links, uint64_t *out)
{
    for (unsigned i = 0; i < ID_TRIES; i++) {
        uint64_t id = 0;
        if (getrandom(&id, sizeof(id), 0) != (ssize_t)sizeof(id)) {
            break;
        }
        if (id != 0 && id != UINT64_MAX && !rbi_map_get(&links->by_id, id)) {
            *out = id;
            return 0;
        }
    }
    return -EIO;
}

int rbi_link_new(struct rbi_daemon *daemon,
                 struct rbi_endpoint *requester,
                 struct rbi_endpoint *server,
                 uint32_t serial,
                 struct rbi_link **out)
{
    struct rbi_link *link = NULL;
    uint64_t id = 0;
    int result = link_fresh_id(&daemon->links, &id);
    if (result == 0) {
        result = link_make(daemon, requester, server, id, &link);
    }
    if (result != 0) {
        return result;
    }
    link->serial = serial;
    const uint64_t timeout_ns = (uint64_t)daemon->config.daemon.request_timeout_ms * 1000000;
    rbi_loop_timer_set(daemon->loop, &link->timer, link->created_ns + timeout_ns, link_timed_out,
                       link);
    *out = link;
    return 0;
}

int rbi_link_restore(struct rbi_daemon *daemon,
                     struct rbi_endpoint *requester,
                     struct rbi_endpoint *server,
                     uint64_t id,
                     struct rbi_link **out)
{
    struct rbi_link *link = NULL;
    const int result = link_make(daemon, requester, server, id, &link);
    if (result < 0) {
        return result;
    }
    link->linked = true;
    *out = link;
    return 0;
}

void rbi_link_charges_release(struct rbi_link_charges *charges)
{
    rbi_charge_release(&charges->link);
    rbi_charge_release(&charges->sides[0]);
    rbi_charge_release(&charges->sides[1]);
    rbi_share_return(charges->place, 1);
    charges->place = NULL;
}

struct rbi_link *rbi_link_free(struct rbi_link *link)
{
    struct rbi_daemon *daemon = link->daemon;
    struct rbi_links *links = &daemon->links;
    rbi_loop_timer_cancel(daemon->loop, &link->timer);
    (void)rbi_map_remove(&links->by_id, link->id);
    (void)rbi_map_remove(&links->by_pair, link->pair);
    rbi_list_remove(&link->in_links);
    rbi_list_remove(&link->in_requester);
    rbi_list_remove(&link->in_server);
    link->requester->link_count--;
    link->server->link_count--;
    links->count--;
    rbi_link_charges_release(&link->charges);
    free(link);
    return NULL;
}

void rbi_link_set_linked(struct rbi_link *link)
{
    rbi_loop_timer_cancel(link->daemon->loop, &link->timer);
    link->linked = true;
}

static void link_tell_down(const struct rbi_link *link,
                           struct rbi_endpoint *end,
                           enum rbi_reason reason,
                           const char *text)
{
    struct rbi_wire_link_down down = {.link_id = link->id, .reason = (uint32_t)reason};
    rbi_text_set(&down.text, text);
    rbi_peer_send(end->peer, RBI_WIRE_LINK_DOWN, &down, 0);
}

void rbi_link_end(struct rbi_link *link,
                  const struct rbi_endpoint *silent,
                  enum rbi_reason reason,
                  int code,
                  const char *text)
{
    rbi_health_last_words(link->requester);
    rbi_health_last_words(link->server);
    if (link->server != silent) {
        link_tell_down(link, link->server, reason, text);
    }
    if (!link->linked) {
        link->daemon->counters.introductions_failed++;
    }
    if (link->requester != silent) {
        if (link->linked) {
            link_tell_down(link, link->requester, reason, text);
        } else {
            struct rbi_wire_error error = {.code = code, .refused = reason == RBI_REASON_REFUSED};
            rbi_text_set(&error.text, text);
            rbi_peer_send(link->requester->peer, RBI_WIRE_ERROR, &error, link->serial);
        }
    }
    (void)rbi_link_free(link);
}

void rbi_link_endpoint_gone(struct rbi_endpoint *endpoint, enum rbi_reason reason)
{
    static const char text[] = "the instance died or left";
    while (!rbi_list_empty(&endpoint->links_out)) {
        rbi_link_end(RBI_LIST_FIRST(&endpoint->links_out, struct rbi_link, in_requester), endpoint,
                     reason, RBI_CODE_PEER_GONE, text);
    }
    while (!rbi_list_empty(&endpoint->links_in)) {
        rbi_link_end(RBI_LIST_FIRST(&endpoint->links_in, struct rbi_link, in_server), endpoint,
                     reason, RBI_CODE_PEER_GONE, text);
    }
}
