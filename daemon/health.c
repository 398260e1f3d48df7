/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/health.h"

#include "daemon/daemon.h"
#include "daemon/demand.h"
#include "daemon/policy.h"

#include <stdlib.h>

#define SWEEP_NS (RBI_WINDOW_STEP_MS * UINT64_C(1000) * 1000)

/* So often at most a caller is looked at because a link of it ends; what came since is in the next
 * sweep, if it still has a link then. */
#define WORDS_NS (UINT64_C(10) * 1000 * 1000)

/** A look at the figures of one caller. */
struct health_look {
    struct rbi_daemon *daemon;
    struct rbi_endpoint *caller;
};

void rbi_health_init(struct rbi_health_desk *desk)
{
    rbi_list_init(&desk->readers);
    rbi_list_init(&desk->clusters);
    rbi_list_init(&desk->changed);
}

/* ---- what the shield says ---------------------------------------------------------------- */

/** Publishes what this turn has changed, each instance once. */
static void health_publish(void *context)
{
    struct rbi_daemon *daemon = context;
    RBI_LIST_EACH(node, spare, &daemon->health.changed)
    {
        struct rbi_cluster_health *health =
            RBI_CONTAINER_OF(node, struct rbi_cluster_health, in_changed);
        struct rbi_cluster *cluster = health->cluster;
        rbi_list_remove(node);
        for (uint32_t i = 0; i < cluster->member_count; i++) {
            struct rbi_endpoint *endpoint = cluster->members[i];
            rbi_health_ping(health, endpoint);
            /* Panic is the cluster's, and travels with the news of any of its instances. */
            if (endpoint->visible && (endpoint->health.changed || health->panic_changed)) {
                endpoint->stale = true;
                health->panic_changed = false;
            }
        }
        health->panic_changed = false;
        const bool demand_changed = health->demand_changed && cluster->member_count > 0;
        health->demand_changed = false;
        if (rbi_registry_update_stale(daemon, cluster) == 0 && demand_changed) {
            rbi_registry_refresh(daemon, cluster); /* no instance has changed: none is told of */
        }
    }
}

static void health_note(struct rbi_cluster_health *health)
{
    struct rbi_health_desk *desk = &health->daemon->health;
    if (rbi_list_empty(&health->in_changed)) {
        rbi_list_push_back(&desk->changed, &health->in_changed);
    }
    rbi_loop_defer(health->daemon->loop, &desk->publish, health_publish, health->daemon);
}

static void health_emit(void *context, const struct rbi_shield_event *event)
{
    struct rbi_cluster_health *health = context;
    struct rbi_endpoint *endpoint = rbi_cluster_member(health->cluster, event->instance);
    const bool same = endpoint && endpoint->incarnation == event->incarnation;
    switch (event->kind) {
    case RBI_SHIELD_CHANGED:
        if (same) {
            endpoint->health.health = (uint32_t)event->to;
            endpoint->health.ramp = event->ramp;
            endpoint->health.changed = true;
        }
        break;
    case RBI_SHIELD_PING:
        if (same) {
            endpoint->health.ping = event->token;
        }
        break;
    case RBI_SHIELD_PANIC:
    case RBI_SHIELD_PANIC_OVER:
        health->panic_changed = true;
        break;
    case RBI_SHIELD_SPARED:
        break;
    }
    rbi_health_log(health, event);
    health_note(health);
}

/** xorshift64*: nobody gains by guessing a jitter. */
static uint64_t health_random(struct rbi_daemon *daemon)
{
    uint64_t x = daemon->health.random ? daemon->health.random : daemon->incarnation;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    daemon->health.random = x;
    return x * UINT64_C(2685821657736338717);
}

struct rbi_shield_turn rbi_health_turn(struct rbi_cluster_health *health)
{
    return (struct rbi_shield_turn){.now_ns = rbi_loop_now_ns(health->daemon->loop),
                                    .random = health_random(health->daemon),
                                    .emit = health_emit,
                                    .context = health};
}

bool rbi_health_panics(const struct rbi_cluster *cluster)
{
    return cluster->panic.on || (cluster->health && rbi_shield_panics(&cluster->health->shield));
}

/* ---- sweeps ------------------------------------------------------------------------------- */

static void health_arm(struct rbi_daemon *daemon);

/** The rules may be others by now. */
static void health_follow_policy(struct rbi_cluster_health *health)
{
    const struct rbi_policy *policy = rbi_daemon_policy(health->daemon, health->cluster);
    if (policy->fingerprint != health->policy) {
        const struct rbi_shield_turn turn = rbi_health_turn(health);
        health->policy = policy->fingerprint;
        rbi_shield_set_policy(&health->shield, &policy->shield, &policy->panic, &turn);
    }
}

/** Lets time act. @return whether more is due without anybody calling */
static bool health_judge(struct rbi_daemon *daemon, uint64_t now_ns)
{
    bool due = false;
    RBI_LIST_EACH(node, spare, &daemon->health.clusters)
    {
        struct rbi_cluster_health *health =
            RBI_CONTAINER_OF(node, struct rbi_cluster_health, in_clusters);
        health_follow_policy(health);
        if (rbi_shield_due(&health->shield) <= now_ns) {
            const struct rbi_shield_turn turn = rbi_health_turn(health);
            rbi_shield_sweep(&health->shield, &turn);
            rbi_health_grant(health);
        }
        if (rbi_demand_judge(health, now_ns)) {
            health->demand_changed = true;
            health_note(health);
        }
        due = due || rbi_shield_due(&health->shield) != UINT64_MAX;
    }
    return due;
}

static struct rbi_cluster_health *health_of(struct rbi_daemon *daemon, struct rbi_cluster *cluster)
{
    if (cluster->health) {
        return cluster->health;
    }
    struct rbi_cluster_health *health = calloc(1, sizeof(*health));
    if (!health) {
        return NULL; /* the next outcome tries again */
    }
    const struct rbi_policy *policy = rbi_daemon_policy(daemon, cluster);
    health->daemon = daemon;
    health->cluster = cluster;
    health->number = ++daemon->health.next_number;
    health->policy = policy->fingerprint;
    rbi_list_init(&health->in_changed);
    rbi_list_init(&health->in_clusters);
    rbi_list_push_back(&daemon->health.clusters, &health->in_clusters);
    rbi_shield_init(&health->shield, &policy->shield, &policy->panic);
    cluster->health = health;
    for (uint32_t i = 0; i < cluster->member_count; i++) {
        rbi_health_member(cluster->members[i]);
    }
    return health;
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
    struct rbi_endpoint *instance = health_instance(look, news);
    struct rbi_cluster_health *health =
        instance ? health_of(look->daemon, instance->cluster) : NULL;
    const uint64_t bad = (uint64_t)news->failed + news->lost;
    if (!health) {
        return;
    }
    const struct rbi_shield_outcomes outcomes = {.ok = news->ok,
                                                 .fail = (uint32_t)rbi_min_u64(bad, UINT32_MAX),
                                                 .slow = news->slow,
                                                 .local = news->local,
                                                 .streak = news->in_a_row,
                                                 .latency_ns = news->latency_ns};
    rbi_shield_count(&health->shield, news->instance, news->incarnation, &outcomes);
    rbi_figures_take(&look->caller->outcomes, news, rbi_loop_now_ns(look->daemon->loop),
                     &health->figures, &instance->health.figures);
    instance->reported.failed += bad;
    rbi_demand_take(health, look->caller, (uint64_t)news->ok + bad);
    counters->calls_ok += news->ok;
    counters->calls_failed += news->failed;
    counters->calls_lost += news->lost;
}

static void health_look(struct rbi_endpoint *caller)
{
    struct health_look look = {.daemon = caller->daemon, .caller = caller};
    rbi_outcome_look(&caller->outcomes, rbi_loop_now_ns(caller->daemon->loop), health_take, &look);
}

void rbi_health_last_words(struct rbi_endpoint *caller)
{
    struct rbi_outcome_reader *reader = &caller->outcomes;
    const uint64_t now_ns = rbi_loop_now_ns(caller->daemon->loop);
    /* Its table may be large, and it can say of each link that it ended. */
    if (reader->segment.base && !caller->daemon->stopping &&
        now_ns - reader->words_ns >= WORDS_NS) {
        reader->words_ns = now_ns;
        health_look(caller);
    }
}

static void health_sweep(void *context)
{
    struct rbi_daemon *daemon = context;
    const uint64_t now_ns = rbi_loop_now_ns(daemon->loop);
    RBI_LIST_EACH(node, spare, &daemon->health.readers)
    {
        struct rbi_outcome_reader *reader =
            RBI_CONTAINER_OF(node, struct rbi_outcome_reader, in_readers);
        health_look(RBI_CONTAINER_OF(reader, struct rbi_endpoint, outcomes));
    }
    const bool due = health_judge(daemon, now_ns);
    rbi_alarms_sweep(daemon);
    if (due || !rbi_list_empty(&daemon->health.readers) || rbi_alarms_wanted(daemon)) {
        health_arm(daemon);
    }
}

static void health_arm(struct rbi_daemon *daemon)
{
    struct rbi_loop_timer *timer = &daemon->health.timer;
    if (!timer->heap_idx && !daemon->stopping) {
        rbi_loop_timer_set(daemon->loop, timer, rbi_loop_now_ns(daemon->loop) + SWEEP_NS,
                           health_sweep, daemon);
    }
}

void rbi_health_unreachable(struct rbi_endpoint *instance)
{
    struct rbi_daemon *daemon = instance->daemon;
    const struct rbi_shield_outcomes outcomes = {.local = 1};
    if (!instance->cluster || daemon->stopping ||
        rbi_daemon_policy(daemon, instance->cluster)->shield.split == 0) {
        return;
    }
    struct rbi_cluster_health *health = health_of(daemon, instance->cluster);
    if (health) {
        rbi_shield_count(&health->shield, instance->instance, instance->incarnation, &outcomes);
        health_arm(daemon);
    }
}

void rbi_health_wake(struct rbi_daemon *daemon)
{
    health_arm(daemon);
}

void rbi_health_add_reader(struct rbi_daemon *daemon, struct rbi_endpoint *endpoint)
{
    rbi_list_push_back(&daemon->health.readers, &endpoint->outcomes.in_readers);
    health_arm(daemon);
}

/* ---- members ------------------------------------------------------------------------------ */

void rbi_health_member(struct rbi_endpoint *endpoint)
{
    struct rbi_cluster_health *health = endpoint->cluster ? endpoint->cluster->health : NULL;
    if (!health || endpoint->daemon->stopping) {
        return;
    }
    const struct rbi_shield_turn turn = rbi_health_turn(health);
    const bool chosen =
        endpoint->visible && (endpoint->seen.override & RBI_OVERRIDE_ISOLATED) == 0 &&
        (endpoint->state == RBI_ENDPOINT_READY || endpoint->state == RBI_ENDPOINT_BUSY);
    if (!chosen) {
        rbi_shield_remove(&health->shield, endpoint->instance, &turn);
    } else if (rbi_shield_put(&health->shield, endpoint->instance, endpoint->incarnation,
                              endpoint->seen.weight, &turn) != 0) {
        rbi_log(RBI_LOG_WARNING, "not_watched", "path=%s", endpoint->path.bytes);
    }
    health_arm(endpoint->daemon);
}

void rbi_health_cluster_gone(struct rbi_cluster *cluster)
{
    struct rbi_cluster_health *health = cluster->health;
    if (health) {
        cluster->health = NULL;
        rbi_list_remove(&health->in_clusters);
        rbi_list_remove(&health->in_changed);
        rbi_shield_deinit(&health->shield);
        free(health->figures);
        free(health->demand);
        free(health);
    }
}
