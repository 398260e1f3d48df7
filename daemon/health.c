/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/health.h"

#include "daemon/daemon.h"

#define SWEEP_NS (UINT64_C(250) * 1000 * 1000)

/** A look at the figures of one caller. */
struct health_look {
    struct rbi_daemon *daemon;
    const struct rbi_endpoint *caller;
};

void rbi_health_init(struct rbi_health_desk *health)
{
    rbi_list_init(&health->readers);
}

/** The instance, if it lives that life and the caller has a link with it: else it says so only. */
static struct rbi_endpoint *health_instance(const struct health_look *look,
                                            const struct rbi_outcome_news *news)
{
    const struct rbi_cluster *cluster =
        rbi_registry_cluster(&look->daemon->registry, news->cluster);
    struct rbi_endpoint *instance = cluster ? rbi_cluster_member(cluster, news->instance) : NULL;
    if (!instance || instance->incarnation != news->incarnation) {
        return NULL;
    }
    const struct rbi_link *link = rbi_link_find_pair(look->daemon, look->caller, instance);
    return link && link->linked ? instance : NULL;
}

static void health_take(void *context, const struct rbi_outcome_news *news)
{
    const struct health_look *look = context;
    struct rbi_daemon_counters *counters = &look->daemon->counters;
    if (!health_instance(look, news)) {
        return;
    }
    counters->calls_ok += news->ok;
    counters->calls_failed += news->failed;
    counters->calls_lost += news->lost;
}

static void health_sweep(void *context)
{
    struct rbi_daemon *daemon = context;
    const uint64_t now_ns = rbi_loop_now_ns(daemon->loop);
    RBI_LIST_EACH(node, spare, &daemon->health.readers)
    {
        struct rbi_outcome_reader *reader =
            RBI_CONTAINER_OF(node, struct rbi_outcome_reader, in_readers);
        struct health_look look = {
            .daemon = daemon, .caller = RBI_CONTAINER_OF(reader, struct rbi_endpoint, outcomes)};
        rbi_outcome_look(reader, now_ns, health_take, &look);
    }
    if (!rbi_list_empty(&daemon->health.readers)) {
        rbi_loop_timer_set(daemon->loop, &daemon->health.timer, now_ns + SWEEP_NS, health_sweep,
                           daemon);
    }
}

void rbi_health_add_reader(struct rbi_daemon *daemon, struct rbi_endpoint *endpoint)
{
    struct rbi_health_desk *health = &daemon->health;
    if (rbi_list_empty(&health->readers)) {
        rbi_loop_timer_set(daemon->loop, &health->timer, rbi_loop_now_ns(daemon->loop) + SWEEP_NS,
                           health_sweep, daemon);
    }
    rbi_list_push_back(&health->readers, &endpoint->outcomes.in_readers);
}
