/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/bridge/tunnel_turn.c - tunnels that are to be looked at: before the turn ends, or soon. */
#include "daemon/bridge/tunnel.h"

#define MS UINT64_C(1000000)
/* How often it is looked whether what was put has been read, while nothing else happens; and how
 * many times in vain, before the endpoint is asked to say so: that costs it a system call. */
#define SETTLE_MIN_NS (MS / 40)
#define SETTLE_MAX_NS MS
#define SETTLE_LOOKS  16U

static void look_at_unsettled(void *context)
{
    struct rbi_bridge *bridge = context;
    RBI_LIST_EACH(node, spare, &bridge->unsettled)
    {
        rbi_tunnel_touch(RBI_CONTAINER_OF(node, struct rbi_tunnel, in_unsettled));
    }
}

/*
 * Who reads is looked at again soon: its sender's lane may be full and wait for nothing else. Who
 * has stopped reading, later and later.
 */
static void set_unsettled_timer(struct rbi_bridge *bridge)
{
    const uint64_t later_ns = rbi_max_u64(2 * bridge->settle_ns, SETTLE_MIN_NS);
    bridge->settle_ns = bridge->settled_some ? SETTLE_MIN_NS : rbi_min_u64(later_ns, SETTLE_MAX_NS);
    bridge->settled_some = false;
    if (!rbi_list_empty(&bridge->unsettled)) {
        rbi_loop_timer_set(bridge->loop, &bridge->unsettled_timer,
                           rbi_bridge_now_ns(bridge) + bridge->settle_ns, look_at_unsettled,
                           bridge);
    }
}

/* @return whether it is to be looked again soon, or on_room() tells */
static bool looks_again(struct rbi_tunnel *tunnel)
{
    const struct rbi_stream_rx *rx = &tunnel->stream.rx;
    struct rbi_half_taken taken;
    if (rx->settled != tunnel->settled_seen || rbi_stream_rx_ack_ns(rx) != UINT64_MAX) {
        tunnel->settled_seen = rx->settled;
        tunnel->vain_looks = 0;
        return true;
    }
    if (tunnel->half == NULL || !tunnel->linked || ++tunnel->vain_looks < SETTLE_LOOKS) {
        return tunnel->half != NULL;
    }
    rbi_half_taken(tunnel->half, &taken);
    if (taken.read != taken.written) {
        rbi_half_await(tunnel->half, taken.read + RBI_LINE);
    }
    return taken.read == taken.written;
}

/* Any step may end it. */
static void look_at(struct rbi_tunnel *tunnel)
{
    struct rbi_bridge *bridge = tunnel->bridge;
    const bool begins = tunnel->begin_due;
    if (tunnel->broken_due) {
        rbi_tunnel_broken(tunnel, RBI_REASON_BAD_PEER, "it goes on in the middle of a record");
        return;
    }
    const uint64_t before = tunnel->stream.rx.settled;
    const bool settled = rbi_tunnel_settle(tunnel);
    bridge->settled_some |= tunnel->stream.rx.settled != before;
    rbi_list_remove(&tunnel->in_unsettled);
    if (!settled && looks_again(tunnel)) {
        rbi_list_push_back(&bridge->unsettled, &tunnel->in_unsettled);
    }
    if (begins) {
        tunnel->begin_due = false;
        rbi_tunnel_go_on(tunnel);
    } else if (tunnel->send_due) {
        tunnel->send_due = false;
        rbi_tunnel_send(tunnel);
    }
}

static void look_at_touched(void *context)
{
    struct rbi_bridge *bridge = context;
    struct rbi_list now;
    /* Who is touched meanwhile has its turn after the others. */
    rbi_list_init(&now);
    while (!rbi_list_empty(&bridge->touched)) {
        struct rbi_list *node = bridge->touched.next;
        rbi_list_remove(node);
        rbi_list_push_back(&now, node);
    }
    while (!rbi_list_empty(&now)) {
        struct rbi_tunnel *tunnel = RBI_LIST_FIRST(&now, struct rbi_tunnel, in_touched);
        rbi_list_remove(&tunnel->in_touched);
        look_at(tunnel);
    }
    set_unsettled_timer(bridge);
}

void rbi_tunnel_touch(struct rbi_tunnel *tunnel)
{
    struct rbi_bridge *bridge = tunnel->bridge;
    rbi_list_remove(&tunnel->in_touched);
    rbi_list_push_back(&bridge->touched, &tunnel->in_touched);
    rbi_loop_defer(bridge->loop, &bridge->touched_task, look_at_touched, bridge);
}
