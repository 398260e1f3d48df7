/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/neighbour.h"

#include "daemon/bridge/dial.h"
#include "daemon/bridge/fars.h"
#include "daemon/bridge/flood.h"
#include "daemon/bridge/tunnel.h"
#include "daemon/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* features 2.12: a hop between hosts costs max(10, srtt in microseconds / 10). */
#define COST_MIN 10U
#define COST_NS  UINT64_C(10000)
/* And is told anew when it differs by a fifth. */
#define COST_SHARE 5U

uint32_t rbi_neighbour_cost(const struct rbi_neighbour *neighbour)
{
    if (neighbour->session == NULL) {
        return 0;
    }
    const uint64_t measured = neighbour->session->srtt_ns / COST_NS;
    const uint64_t whole = rbi_max_u64(measured, COST_MIN) + neighbour->peer.cost;
    const uint32_t cost = (uint32_t)rbi_min_u64(whole, RBI_BRIDGE_COST_MAX);
    const uint32_t told = neighbour->cost;
    return told != 0 && cost <= told + told / COST_SHARE && cost >= told - told / COST_SHARE ? told
                                                                                             : cost;
}

struct rbi_neighbour *rbi_neighbour_find(struct rbi_bridge *bridge, const char *host)
{
    RBI_LIST_EACH(node, spare, &bridge->neighbours)
    {
        struct rbi_neighbour *neighbour = RBI_CONTAINER_OF(node, struct rbi_neighbour, in_bridge);
        if (strcmp(neighbour->peer.host, host) == 0) {
            return neighbour;
        }
    }
    return NULL;
}

static int dial(struct rbi_neighbour *neighbour)
{
    return neighbour->peer.address[0] != '\0'
               ? rbi_dial_new(&neighbour->bridge->terms, neighbour->peer.host,
                              neighbour->peer.address, &rbi_session_ops, neighbour->bridge,
                              &neighbour->dial)
               : 0;
}

int rbi_neighbour_add(struct rbi_bridge *bridge, const struct rbi_bridge_peer *peer)
{
    struct rbi_neighbour *neighbour = calloc(1, sizeof *neighbour);
    struct rbi_far *far = neighbour != NULL ? rbi_fars_named(bridge, peer->host) : NULL;
    if (far == NULL) {
        free(neighbour);
        return -ENOMEM;
    }
    neighbour->bridge = bridge;
    neighbour->peer = *peer;
    neighbour->id = far->id;
    neighbour->far = far;
    const int result = dial(neighbour);
    if (result < 0) {
        free(neighbour);
        return result;
    }
    far->direct = neighbour;
    rbi_list_push_back(&bridge->neighbours, &neighbour->in_bridge);
    return 0;
}

void rbi_neighbour_remove(struct rbi_neighbour *neighbour)
{
    struct rbi_bridge *bridge = neighbour->bridge;
    neighbour->dial = rbi_dial_free(neighbour->dial);
    rbi_loop_timer_cancel(bridge->loop, &neighbour->dial_timer);
    if (neighbour->session != NULL) {
        rbi_session_end(neighbour->session, "this bridge ends, or the peer was taken out", true);
    }
    neighbour->far->direct = NULL;
    ck_ht_iterator_t cursor = CK_HT_ITERATOR_INITIALIZER;
    for (struct rbi_far *far = NULL; (far = rbi_map_next(&bridge->hosts, &cursor)) != NULL;) {
        far->next = far->next == neighbour ? NULL : far->next;
    }
    rbi_list_remove(&neighbour->in_bridge);
    free(neighbour);
    rbi_fars_look(bridge);
}

static void change(struct rbi_neighbour *neighbour, const struct rbi_bridge_peer *peer)
{
    const bool moved = strcmp(neighbour->peer.address, peer->address) != 0;
    neighbour->peer = *peer;
    if (!moved) {
        return;
    }
    if (neighbour->dial == NULL || peer->address[0] == '\0') {
        neighbour->dial = rbi_dial_free(neighbour->dial);
        (void)dial(neighbour);
    } else {
        if (rbi_dial_move(neighbour->dial, peer->address) < 0) {
            rbi_log(RBI_LOG_ERROR, "peer_refused", "host=%s address=%s", peer->host, peer->address);
        }
    }
    if (neighbour->session != NULL && rbi_conn_dialled(neighbour->session->conn)) {
        rbi_session_end(neighbour->session, "its address was changed", true);
    }
}

void rbi_neighbours_configure(struct rbi_bridge *bridge)
{
    const struct rbi_bridge_config *config = &bridge->config;
    RBI_LIST_EACH(node, spare, &bridge->neighbours)
    {
        struct rbi_neighbour *neighbour = RBI_CONTAINER_OF(node, struct rbi_neighbour, in_bridge);
        const struct rbi_bridge_peer *peer = rbi_bridge_config_peer(config, neighbour->peer.host);
        if (peer == NULL) {
            rbi_neighbour_remove(neighbour);
        } else {
            change(neighbour, peer);
        }
    }
    for (uint32_t i = 0; i < config->peer_count; i++) {
        if (rbi_neighbour_find(bridge, config->peers[i].host) == NULL &&
            rbi_neighbour_add(bridge, &config->peers[i]) < 0) {
            rbi_log(RBI_LOG_ERROR, "peer_refused", "host=%s address=%s", config->peers[i].host,
                    config->peers[i].address);
        }
    }
}

/* Of two that both sides have dialled at once the one of the lower host id stays. */
static bool stays(const struct rbi_neighbour *neighbour,
                  const struct rbi_session *old,
                  const struct rbi_session *new)
{
    const bool crossed = rbi_conn_dialled(old->conn) != rbi_conn_dialled(new->conn) &&
                         new->began_ns - old->began_ns < RBI_NEIGHBOUR_CROSS_NS &&
                         old->incarnation == new->incarnation;
    return !crossed || rbi_conn_dialled(new->conn) == (neighbour->bridge->self < neighbour->id);
}

static void keep_figures(struct rbi_neighbour *neighbour, const struct rbi_session *session)
{
    struct rbi_conn_figures figures = {0};
    if (session->conn != NULL) {
        rbi_conn_figures(session->conn, &figures);
    }
    neighbour->frames_in += session->frames_in;
    neighbour->frames_out += session->frames_out;
    neighbour->bytes_in += figures.bytes_in;
    neighbour->bytes_out += figures.bytes_out;
}

bool rbi_neighbour_up(struct rbi_neighbour *neighbour, struct rbi_session *session)
{
    struct rbi_session *old = neighbour->session;
    if (old != NULL && !stays(neighbour, old, session)) {
        return false;
    }
    session->neighbour = neighbour;
    session->state = RBI_SESSION_UP;
    neighbour->session = session;
    if (old != NULL) {
        keep_figures(neighbour, old);
        rbi_session_end(old, "another connection has taken its place", false);
    }
    neighbour->up_ns = rbi_bridge_now_ns(neighbour->bridge);
    neighbour->connects++;
    if (neighbour->dial != NULL && !rbi_conn_dialled(session->conn)) {
        rbi_dial_pause(neighbour->dial);
    }
    rbi_log(RBI_LOG_INFO, "host_up", "host=%s address=%s dialled=%d incarnation=%" PRIu64,
            neighbour->peer.host, rbi_conn_address(session->conn),
            rbi_conn_dialled(session->conn) ? 1 : 0, session->incarnation);
    rbi_tunnels_lost(neighbour->far, session->incarnation);
    return true;
}

static void dial_again(void *context)
{
    struct rbi_neighbour *neighbour = context;
    if (neighbour->dial != NULL && neighbour->session == NULL) {
        rbi_dial_resume(neighbour->dial);
    }
}

/* At once, unless the last sessions ended at once as well: whom we cannot agree with is not to be
 * asked a thousand times a second. */
static void dial_soon(struct rbi_neighbour *neighbour)
{
    struct rbi_bridge *bridge = neighbour->bridge;
    const uint64_t now_ns = rbi_bridge_now_ns(bridge);
    const bool lasted = now_ns - neighbour->up_ns >= RBI_NEIGHBOUR_LASTED_NS;
    neighbour->short_lived = lasted ? 0 : neighbour->short_lived + 1;
    if (neighbour->short_lived <= 1) {
        rbi_dial_resume(neighbour->dial);
        return;
    }
    const uint64_t wait_ns = rbi_min_u64(
        RBI_DIAL_STEP_MIN_NS << rbi_min_u64(neighbour->short_lived, 16), RBI_DIAL_STEP_MAX_NS);
    rbi_dial_pause(neighbour->dial);
    rbi_loop_timer_set(bridge->loop, &neighbour->dial_timer, now_ns + wait_ns, dial_again,
                       neighbour);
}

void rbi_neighbour_down(struct rbi_neighbour *neighbour,
                        struct rbi_session *session,
                        const char *why)
{
    if (neighbour->session != session) {
        return;
    }
    struct rbi_log_text text;
    neighbour->session = NULL;
    keep_figures(neighbour, session);
    (void)snprintf(neighbour->why, sizeof neighbour->why, "%s", why);
    rbi_log(RBI_LOG_WARNING, "host_cut", "host=%s why=%s", neighbour->peer.host,
            rbi_log_quote(&text, why, strlen(why)));
    if (neighbour->dial != NULL && !neighbour->bridge->stopping) {
        dial_soon(neighbour);
    }
    rbi_flood_look(neighbour->bridge);
}
