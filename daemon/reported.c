/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/reported.h"

#include "daemon/daemon.h"
#include "daemon/policy.h"

#include <stdlib.h>

#define PERIOD_NS (RBI_REPORTED_PERIOD_MS * UINT64_C(1000000))

void rbi_reported_init(struct rbi_reported_desk *desk)
{
    rbi_list_init(&desk->clusters);
}

static bool reported_is_asked(struct rbi_daemon *daemon, struct rbi_cluster *cluster)
{
    return cluster->member_count > 0 &&
           rbi_daemon_policy(daemon, cluster)->balance.reported_weight != 0;
}

uint16_t rbi_reported_seen(const struct rbi_endpoint *endpoint)
{
    return endpoint->seen.weight_given ? 0 : endpoint->reported.weight;
}

/** What its page says; untrusted. */
static void reported_look(struct rbi_endpoint *endpoint, uint64_t now_ns)
{
    const struct rbi_page *page = endpoint->page.base;
    const uint64_t word = rbi_load_rlx(&page->load_report);
    const struct rbi_reported_look look = {.number = (uint32_t)(word >> 32),
                                           .use = (uint32_t)word,
                                           .handled =
                                               rbi_load_rlx(&page->counters[RBI_COUNTER_received]),
                                           .failed = endpoint->reported.failed};
    rbi_reported_turn(&endpoint->reported.reported, &look, now_ns);
}

/** Weighs the visible members. @return whether the cluster is to be published */
static bool reported_weigh(struct rbi_cluster *cluster, uint64_t *capacities)
{
    uint32_t count = 0;
    bool differs = false;
    for (uint32_t i = 0; i < cluster->member_count; i++) {
        const struct rbi_endpoint *member = cluster->members[i];
        if (member->visible) {
            capacities[count++] = member->reported.reported.capacity;
        }
    }
    const uint64_t mean = rbi_reported_mean(capacities, count);
    for (uint32_t i = 0; i < cluster->member_count; i++) {
        const struct rbi_endpoint_reported *reported = &cluster->members[i]->reported;
        differs =
            differs || rbi_reported_differs(reported->weight,
                                            rbi_reported_weight(reported->reported.capacity, mean));
    }
    for (uint32_t i = 0; differs && i < cluster->member_count; i++) {
        struct rbi_endpoint_reported *reported = &cluster->members[i]->reported;
        reported->weight = (uint16_t)rbi_reported_weight(reported->reported.capacity, mean);
    }
    return differs;
}

/** Once a second; one that is no longer asked about ends. */
static void reported_turn(struct rbi_daemon *daemon, struct rbi_cluster *cluster, uint64_t now_ns)
{
    const bool asked = reported_is_asked(daemon, cluster);
    bool changed = false;
    if (asked) {
        uint64_t *capacities = calloc(cluster->member_count, sizeof(*capacities));
        for (uint32_t i = 0; i < cluster->member_count; i++) {
            reported_look(cluster->members[i], now_ns);
        }
        changed = capacities && reported_weigh(cluster, capacities); /* else a second later */
        free(capacities);
    } else {
        rbi_list_remove(&cluster->in_reported);
    }
    for (uint32_t i = 0; !asked && i < cluster->member_count; i++) {
        changed = changed || cluster->members[i]->reported.weight != 0;
        cluster->members[i]->reported = (struct rbi_endpoint_reported){.weight = 0};
    }
    if (changed) {
        rbi_registry_refresh(daemon, cluster);
    }
}

static void reported_arm(struct rbi_daemon *daemon);

static void reported_sweep(void *context)
{
    struct rbi_daemon *daemon = context;
    const uint64_t now_ns = rbi_loop_now_ns(daemon->loop);
    RBI_LIST_EACH(node, spare, &daemon->reported.clusters)
    {
        reported_turn(daemon, RBI_CONTAINER_OF(node, struct rbi_cluster, in_reported), now_ns);
    }
    if (!rbi_list_empty(&daemon->reported.clusters)) {
        reported_arm(daemon);
    }
}

static void reported_arm(struct rbi_daemon *daemon)
{
    struct rbi_loop_timer *timer = &daemon->reported.timer;
    if (!timer->heap_idx && !daemon->stopping) {
        rbi_loop_timer_set(daemon->loop, timer, rbi_loop_now_ns(daemon->loop) + PERIOD_NS,
                           reported_sweep, daemon);
    }
}

void rbi_reported_follow(struct rbi_daemon *daemon, struct rbi_cluster *cluster)
{
    if (rbi_list_empty(&cluster->in_reported) && reported_is_asked(daemon, cluster)) {
        rbi_list_push_back(&daemon->reported.clusters, &cluster->in_reported);
        reported_arm(daemon);
    }
}
