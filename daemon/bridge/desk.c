/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon/bridge/desk.c - whose lanes are looked at, and when a proxy sleeps.
 *
 * A proxy is awake from the moment that something may move until its lanes have been quiet for
 * SPIN_NS: then it announces sleep in its page, looks at each lane once more, and leaves the turn
 * (shm/bell.h). While one is awake the loop does not wait.
 */
#include "daemon/bridge/desk_parts.h"
#include "shm/barrier.h"
#include "shm/bell.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REFS_DEFAULT 1024U
/* Payloads of up to a quarter. What is lent at one time is no more than its senders' pools hold. */
#define POOL_DEFAULT    (UINT64_C(64) << 20)
#define PAYLOAD_DEFAULT (UINT64_C(64) << 20)
/* A bell costs each side a system call, and a turn of the loop costs one as well. */
#define SPIN_NS UINT64_C(50000)
/* A half that had nothing for so many turns is looked at now and then only, until it has. */
#define QUIET_TURNS      64U
#define RESTING_PER_TURN 16U

static void turn(void *context);

/* ---- who is awake -------------------------------------------------------------------------- */

void rbi_desk_leave(struct rbi_half *half)
{
    if (!rbi_list_empty(&half->turn)) {
        rbi_list_remove(&half->turn);
        half->proxy->desk->moving_count -= half->rests ? 0U : 1U;
        half->rests = false;
    }
}

static void move(struct rbi_half *half)
{
    struct rbi_desk *desk = half->proxy->desk;
    if (half->rests || rbi_list_empty(&half->turn)) {
        rbi_desk_leave(half);
        rbi_list_push_back(&desk->moving, &half->turn);
        desk->moving_count++;
    }
    half->quiet = 0;
}

static void rest(struct rbi_half *half)
{
    rbi_desk_leave(half);
    rbi_list_push_back(&half->proxy->desk->resting, &half->turn);
    half->rests = true;
}

void rbi_desk_attend(struct rbi_half *half)
{
    rbi_desk_wake(half->proxy);
    move(half);
}

static bool is_attended(const struct rbi_half *half)
{
    return !half->residue && half->phase >= RBI_HALF_LINKED;
}

static void run(struct rbi_desk *desk)
{
    rbi_loop_defer(desk->loop, &desk->task, turn, desk);
}

void rbi_desk_wake(struct rbi_proxy *proxy)
{
    struct rbi_desk *desk = proxy->desk;
    proxy->active_ns = rbi_loop_now_ns(desk->loop);
    run(desk);
    if (proxy->awake) {
        return;
    }
    proxy->awake = true;
    rbi_list_push_back(&desk->awake_proxies, &proxy->awake_node);
    rbi_bell_retract(&proxy->page->sleep_epoch);
    RBI_LIST_EACH(node, spare, &proxy->halves)
    {
        struct rbi_half *half = RBI_CONTAINER_OF(node, struct rbi_half, node);
        if (is_attended(half)) {
            rbi_half_want_none(half);
            rest(half); /* whose bell has rung moves by that */
        }
    }
}

static void asleep(struct rbi_proxy *proxy)
{
    proxy->awake = false;
    rbi_list_remove(&proxy->awake_node);
    RBI_LIST_EACH(node, spare, &proxy->halves)
    {
        rbi_desk_leave(RBI_CONTAINER_OF(node, struct rbi_half, node));
    }
}

void rbi_desk_forget(struct rbi_proxy *proxy)
{
    if (proxy->awake) {
        asleep(proxy);
    }
}

/** What came before the announcement rang no bell: each lane is looked at once more. */
static bool second_look(struct rbi_proxy *proxy)
{
    bool found = false;
    RBI_LIST_EACH(node, spare, &proxy->halves)
    {
        struct rbi_half *half = RBI_CONTAINER_OF(node, struct rbi_half, node);
        if (!is_attended(half)) {
            continue;
        }
        rbi_bell_burst_seen(half->peer_written_hint);
        found |= !half->held && rbi_half_has_records(half);
        if (rbi_half_has_room(half)) {
            half->room_due = true;
            rbi_desk_tell(half);
            found = true;
        }
    }
    if (proxy->starved > 0) {
        const uint64_t before = rbi_pool_used(&proxy->pool);
        rbi_proxy_collect(proxy);
        found |= rbi_pool_used(&proxy->pool) != before;
    }
    return found;
}

static void try_to_sleep(struct rbi_proxy *proxy)
{
    proxy->sleeps++;
    rbi_bell_announce(&proxy->page->sleep_epoch);
    RBI_LIST_EACH(node, spare, &proxy->halves)
    {
        struct rbi_half *half = RBI_CONTAINER_OF(node, struct rbi_half, node);
        if (is_attended(half)) {
            rbi_half_want(half);
        }
    }
    if (!second_look(proxy)) {
        proxy->desk->figures.sleeps++;
        asleep(proxy);
        return;
    }
    rbi_bell_retract(&proxy->page->sleep_epoch);
    RBI_LIST_EACH(node, spare, &proxy->halves)
    {
        struct rbi_half *half = RBI_CONTAINER_OF(node, struct rbi_half, node);
        if (is_attended(half)) {
            rbi_half_want_none(half);
        }
    }
    proxy->active_ns = rbi_loop_now_ns(proxy->desk->loop);
}

/* ---- callbacks ----------------------------------------------------------------------------- */

void rbi_desk_tell(struct rbi_half *half)
{
    struct rbi_desk *desk = half->proxy->desk;
    if (rbi_list_empty(&half->news_node)) {
        rbi_list_push_back(&desk->news, &half->news_node);
    }
    run(desk);
}

void rbi_desk_unrung(struct rbi_half *half)
{
    struct rbi_desk *desk = half->proxy->desk;
    half->unrung = true;
    rbi_list_push_back(&desk->dirty, &half->unrung_node);
    rbi_desk_attend(half); /* an answer may be near */
}

static bool take(bool *due)
{
    const bool was = *due;
    *due = false;
    return was;
}

/** In the order in which things happen; each may free the half. */
static void tell(struct rbi_desk *desk, struct rbi_half *half)
{
    const struct rbi_desk_events *events = desk->events;
    desk->visited = half;
    if (half->failed_due && half->introduced_due) {
        rbi_half_free(half); /* nobody has heard of it */
        return;
    }
    if (take(&half->introduced_due)) {
        events->on_introduced(half->proxy, half);
    }
    if (desk->visited != half) {
        return;
    }
    if (take(&half->failed_due)) {
        events->on_failed(half, half->error, half->text);
        return;
    }
    if (take(&half->linked_due)) {
        events->on_linked(half);
    }
    if (desk->visited == half && take(&half->room_due) && half->phase == RBI_HALF_LINKED) {
        events->on_room(half);
    }
    if (desk->visited == half && take(&half->down_due)) {
        events->on_down(half, half->reason);
    }
}

static void tell_news(struct rbi_desk *desk)
{
    /* What these bring up waits for the next turn: others come in between. */
    struct rbi_list now;
    rbi_list_init(&now);
    while (!rbi_list_empty(&desk->news)) {
        struct rbi_list *node = desk->news.next;
        rbi_list_remove(node);
        rbi_list_push_back(&now, node);
    }
    while (!rbi_list_empty(&now)) {
        struct rbi_half *half = RBI_LIST_FIRST(&now, struct rbi_half, news_node);
        rbi_list_remove(&half->news_node);
        tell(desk, half);
    }
    desk->visited = NULL;
}

/* ---- one turn ------------------------------------------------------------------------------ */

/** @return whether there was something; then it may be gone */
static bool look_at(struct rbi_desk *desk, struct rbi_half *half)
{
    struct rbi_proxy *proxy = half->proxy;
    bool any = false;
    desk->visited = half;
    if (rbi_half_has_room(half)) {
        proxy->active_ns = rbi_loop_now_ns(desk->loop);
        half->quiet = 0;
        any = true;
        desk->events->on_room(half);
        if (desk->visited != half) {
            return true;
        }
    }
    if (!half->held && rbi_half_has_records(half)) {
        proxy->active_ns = rbi_loop_now_ns(desk->loop);
        half->quiet = 0;
        any = true;
        desk->events->on_records(half);
    }
    return any;
}

static void look_at_moving(struct rbi_desk *desk)
{
    for (uint32_t left = desk->moving_count; left > 0 && !rbi_list_empty(&desk->moving); left--) {
        struct rbi_list *node = desk->moving.next;
        struct rbi_half *half = RBI_CONTAINER_OF(node, struct rbi_half, turn);
        /* To the end: whoever is freed by a callback leaves the list by itself. */
        rbi_list_remove(node);
        rbi_list_push_back(&desk->moving, node);
        if (!look_at(desk, half) && ++half->quiet > QUIET_TURNS && !half->blocked) {
            rest(half);
        }
    }
}

/** A few of those that have been quiet: most links of most proxies, most of the time. */
static void look_at_resting(struct rbi_desk *desk)
{
    for (unsigned left = RESTING_PER_TURN; left > 0 && !rbi_list_empty(&desk->resting); left--) {
        struct rbi_list *node = desk->resting.next;
        struct rbi_half *half = RBI_CONTAINER_OF(node, struct rbi_half, turn);
        rbi_list_remove(node);
        rbi_list_push_back(&desk->resting, node);
        if (half->awaiting || half->blocked || (!half->held && rbi_half_has_records(half))) {
            move(half);
            (void)look_at(desk, half);
        }
    }
}

static void look_at_all(struct rbi_desk *desk)
{
    look_at_moving(desk);
    look_at_resting(desk);
    desk->visited = NULL;
}

static void ring_all(struct rbi_desk *desk)
{
    while (!rbi_list_empty(&desk->dirty)) {
        struct rbi_half *half = RBI_LIST_FIRST(&desk->dirty, struct rbi_half, unrung_node);
        rbi_half_ring(half);
    }
}

static void turn(void *context)
{
    struct rbi_desk *desk = context;
    const uint64_t now_ns = rbi_loop_now_ns(desk->loop);
    ring_all(desk); /* what the loop has brought from others */
    tell_news(desk);
    look_at_all(desk);
    ring_all(desk);
    RBI_LIST_EACH(node, spare, &desk->awake_proxies)
    {
        struct rbi_proxy *proxy = RBI_CONTAINER_OF(node, struct rbi_proxy, awake_node);
        if (proxy->starved > 0) {
            rbi_proxy_collect(proxy);
        }
        if (now_ns - rbi_min_u64(proxy->active_ns, now_ns) > SPIN_NS) {
            try_to_sleep(proxy);
        }
    }
    if (!rbi_list_empty(&desk->awake_proxies) || !rbi_list_empty(&desk->news)) {
        run(desk);
    }
}

/* ---- life ---------------------------------------------------------------------------------- */

static int take_options(struct rbi_desk *desk, const struct rbi_desk_options *options)
{
    desk->loop = options->loop;
    desk->events = options->events;
    desk->context = options->context;
    desk->lane_bytes = options->lane_bytes != 0 ? options->lane_bytes : RBI_DESK_LANE_BYTES;
    desk->refs_per_link = options->refs_per_link != 0 ? options->refs_per_link : REFS_DEFAULT;
    if (options->socket == NULL || strlen(options->socket) > RBI_SOCKET_PATH_MAX ||
        !rbi_is_pow2(desk->lane_bytes) || desk->lane_bytes < RBI_LANE_CAPACITY_MIN ||
        desk->lane_bytes > RBI_LANE_CAPACITY_MAX || !rbi_is_pow2(desk->refs_per_link) ||
        desk->refs_per_link < RBI_RETURNS_MIN || desk->refs_per_link > RBI_RETURNS_MAX) {
        return -EINVAL;
    }
    (void)snprintf(desk->socket, sizeof desk->socket, "%s", options->socket);
    return rbi_proxy_plan_pool(options->pool_bytes != 0 ? options->pool_bytes : POOL_DEFAULT,
                               options->payload_max != 0 ? options->payload_max : PAYLOAD_DEFAULT,
                               &desk->pool_plan);
}

int rbi_desk_new(const struct rbi_desk_options *options, struct rbi_desk **out)
{
    struct rbi_desk *desk = calloc(1, sizeof *desk);
    if (desk == NULL) {
        return -ENOMEM;
    }
    int r = take_options(desk, options);
    if (r == 0) {
        r = rbi_map_init(&desk->proxies);
    }
    if (r != 0) {
        free(desk);
        return r;
    }
    rbi_list_init(&desk->all);
    rbi_list_init(&desk->moving);
    rbi_list_init(&desk->resting);
    rbi_list_init(&desk->awake_proxies);
    rbi_list_init(&desk->dirty);
    rbi_list_init(&desk->news);
    desk->fenced = rbi_barrier_join();
    *out = desk;
    return 0;
}

struct rbi_desk *rbi_desk_free(struct rbi_desk *desk)
{
    if (desk == NULL) {
        return NULL;
    }
    while (!rbi_list_empty(&desk->all)) {
        rbi_proxy_free(RBI_LIST_FIRST(&desk->all, struct rbi_proxy, node), RBI_REASON_NONE);
    }
    rbi_loop_undefer(desk->loop, &desk->task);
    rbi_map_deinit(&desk->proxies);
    free(desk);
    return NULL;
}

void *rbi_desk_context(const struct rbi_desk *desk)
{
    return desk->context;
}

void rbi_desk_figures(const struct rbi_desk *desk, struct rbi_desk_figures *out)
{
    *out = desk->figures;
}
