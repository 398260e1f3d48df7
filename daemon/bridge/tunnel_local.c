/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/bridge/tunnel_local.c - what happens at the desk, told to tunnels and ends. */
#include "daemon/bridge/ends.h"
#include "daemon/bridge/import_desk.h"
#include "daemon/bridge/tunnel.h"
#include "daemon/code.h"
#include "daemon/log.h"

#include <stdio.h>
#include <string.h>

static void on_registered(struct rbi_proxy *proxy)
{
    rbi_tunnels_registered(rbi_proxy_context(proxy));
}

static void on_refused(struct rbi_proxy *proxy, int code, const char *text)
{
    struct rbi_far_end *end = rbi_proxy_context(proxy);
    struct rbi_log_text quoted;
    rbi_log(RBI_LOG_WARNING, "far_end_refused", "path=%s code=%d why=%s", rbi_proxy_path(proxy),
            code, rbi_log_quote(&quoted, text, strlen(text)));
    end->holds++;
    rbi_tunnels_end_refused(end, code);
    if (end->imported && code == RBI_CODE_IN_USE) {
        rbi_import_desk_taken(end->bridge->import, end->import_entry);
    }
    end->holds--;
    rbi_far_end_release(end);
}

static void on_introduced(struct rbi_proxy *proxy, struct rbi_half *half)
{
    rbi_tunnel_begin(rbi_proxy_context(proxy), half);
}

static void on_linked(struct rbi_half *half)
{
    struct rbi_tunnel *tunnel = rbi_half_context(half);
    tunnel->linked = true;
    if (!tunnel->stream.opener && tunnel->stream.state == RBI_STREAM_OPENING) {
        rbi_tunnel_feed(tunnel, RBI_STREAM_IN_LINKED);
    } else {
        rbi_tunnel_put_queued(tunnel);
    }
}

static void on_failed(struct rbi_half *half, int code, const char *text)
{
    struct rbi_tunnel *tunnel = rbi_half_context(half);
    struct rbi_stream_input input = {.type = RBI_STREAM_IN_FAILED, .code = code};
    (void)snprintf(tunnel->refusal, sizeof tunnel->refusal, "%s", text);
    tunnel->half = NULL;
    rbi_half_end(half, RBI_REASON_NONE);
    if (tunnel->stream.opener) {
        input = (struct rbi_stream_input){
            .type = RBI_STREAM_IN_LEFT, .reason = RBI_REASON_CRASHED, .now = true};
    }
    rbi_tunnel_step(tunnel, &input);
}

static void on_records(struct rbi_half *half)
{
    rbi_tunnel_send(rbi_half_context(half));
}

static void on_room(struct rbi_half *half)
{
    struct rbi_tunnel *tunnel = rbi_half_context(half);
    rbi_tunnel_touch(tunnel); /* it has read, also when that was not enough for what waits */
    rbi_tunnel_flush_hold(tunnel);
    rbi_tunnel_put_queued(tunnel);
}

static void on_down(struct rbi_half *half, enum rbi_reason reason)
{
    struct rbi_tunnel *tunnel = rbi_half_context(half);
    const struct rbi_stream_input left = {.type = RBI_STREAM_IN_LEFT,
                                          .reason = reason,
                                          .now = reason == RBI_REASON_BAD_PEER ||
                                                 reason == RBI_REASON_GIVEN_UP};
    const struct rbi_far_end *end = tunnel->end;
    struct rbi_bridge *bridge = tunnel->bridge;
    /* Given up: it has found the endpoint far away silent, though there is a way. */
    const uint32_t silent = reason == RBI_REASON_GIVEN_UP && end != NULL && end->imported
                                ? end->import_entry
                                : RBI_IMPORT_NONE;
    rbi_tunnel_settle_last(tunnel);
    rbi_tunnel_drop_all(tunnel);
    tunnel->send_due = true;
    rbi_tunnel_touch(tunnel); /* what lies in its lane still goes */
    rbi_tunnel_step(tunnel, &left);
    rbi_import_desk_suspect(bridge->import, silent);
}

const struct rbi_desk_events rbi_tunnel_desk_events = {.on_registered = on_registered,
                                                       .on_refused = on_refused,
                                                       .on_introduced = on_introduced,
                                                       .on_linked = on_linked,
                                                       .on_failed = on_failed,
                                                       .on_records = on_records,
                                                       .on_room = on_room,
                                                       .on_down = on_down};
