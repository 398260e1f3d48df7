/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/absent.h"

#include "daemon/daemon.h"
#include "daemon/policy.h"

#include <stdlib.h>

void rbi_absences_init(struct rbi_absences *absences)
{
    rbi_list_init(&absences->clusters);
}

void rbi_absent_free(struct rbi_cluster *cluster)
{
    rbi_list_remove(&cluster->absent.in_absences);
    free(cluster->absent.who);
    free(cluster->absent.due_ns);
    cluster->absent.who = NULL;
    cluster->absent.due_ns = NULL;
    cluster->absent.count = 0;
    cluster->absent.room = 0;
}

static void absent_remove(struct rbi_daemon *daemon, struct rbi_cluster *cluster, uint32_t idx)
{
    struct rbi_absent *absent = &cluster->absent;
    absent->count--;
    absent->who[idx] = absent->who[absent->count];
    absent->due_ns[idx] = absent->due_ns[absent->count];
    if (absent->count == 0) {
        rbi_absent_free(cluster);
        daemon->absences.count--;
    }
}

void rbi_absent_drop(struct rbi_daemon *daemon, struct rbi_cluster *cluster, int32_t instance)
{
    for (uint32_t i = 0; i < cluster->absent.count; i++) {
        if (cluster->absent.who[i].instance == instance) {
            absent_remove(daemon, cluster, i);
            return;
        }
    }
}

/* ---- time ------------------------------------------------------------------------------- */

static void absences_due(void *context);

static void absences_wait(struct rbi_daemon *daemon)
{
    uint64_t due_ns = UINT64_MAX;
    RBI_LIST_EACH(node, spare, &daemon->absences.clusters)
    {
        const struct rbi_cluster *cluster =
            RBI_CONTAINER_OF(node, struct rbi_cluster, absent.in_absences);
        for (uint32_t i = 0; i < cluster->absent.count; i++) {
            due_ns = rbi_min_u64(due_ns, cluster->absent.due_ns[i]);
        }
    }
    if (due_ns != UINT64_MAX) {
        rbi_loop_timer_set(daemon->loop, &daemon->absences.timer, due_ns, absences_due, daemon);
    }
}

static void absences_due(void *context)
{
    struct rbi_daemon *daemon = context;
    const uint64_t now_ns = rbi_loop_now_ns(daemon->loop);
    RBI_LIST_EACH(node, spare, &daemon->absences.clusters)
    {
        struct rbi_cluster *cluster =
            RBI_CONTAINER_OF(node, struct rbi_cluster, absent.in_absences);
        const uint32_t before = cluster->absent.count;
        for (uint32_t i = before; i > 0; i--) {
            if (cluster->absent.due_ns[i - 1] <= now_ns) {
                absent_remove(daemon, cluster, i - 1);
            }
        }
        if (cluster->absent.count != before) {
            rbi_registry_refresh(daemon, cluster);
        }
    }
    absences_wait(daemon);
}

/* ---- who is waited for ------------------------------------------------------------------ */

static bool absent_reserve(struct rbi_absent *absent)
{
    if (absent->count < absent->room) {
        return true;
    }
    if (absent->count == RBI_DIRECTORY_ABSENT_MAX) {
        return false;
    }
    const uint32_t room = absent->room ? absent->room * 2 : 2;
    struct rbi_directory_instance *who = realloc(absent->who, room * sizeof(*who));
    absent->who = who ? who : absent->who;
    uint64_t *due_ns = realloc(absent->due_ns, room * sizeof(*due_ns));
    absent->due_ns = due_ns ? due_ns : absent->due_ns;
    if (!who || !due_ns) {
        return false;
    }
    absent->room = room;
    return true;
}

/** One more cluster is to wait. */
static void absences_make_room(struct rbi_daemon *daemon)
{
    if (daemon->absences.count < RBI_ABSENCES_MAX) {
        return;
    }
    struct rbi_cluster *first =
        RBI_LIST_FIRST(&daemon->absences.clusters, struct rbi_cluster, absent.in_absences);
    rbi_absent_free(first);
    daemon->absences.count--;
    rbi_registry_refresh(daemon, first);
}

void rbi_absent_add(struct rbi_daemon *daemon, const struct rbi_endpoint *endpoint)
{
    struct rbi_cluster *cluster = endpoint->cluster;
    const struct rbi_balance_policy *balance = &rbi_daemon_policy(daemon, cluster)->balance;
    const bool keyed = balance->mode == RBI_BALANCE_AUTO || balance->mode == RBI_BALANCE_HASH ||
                       balance->mode == RBI_BALANCE_MAGLEV;
    if (!keyed || balance->rehash_delay_ms == 0 || endpoint->seen.weight == 0 ||
        (endpoint->state != RBI_ENDPOINT_READY && endpoint->state != RBI_ENDPOINT_BUSY)) {
        return;
    }
    struct rbi_absent *absent = &cluster->absent;
    if (!absent_reserve(absent)) {
        if (absent->count == 0) {
            rbi_absent_free(cluster);
        }
        return; /* its slots move at once, as those of one too many */
    }
    rbi_publish_describe(&absent->who[absent->count], endpoint);
    absent->due_ns[absent->count] =
        rbi_loop_now_ns(daemon->loop) + (uint64_t)balance->rehash_delay_ms * 1000000;
    if (absent->count++ == 0) {
        absences_make_room(daemon);
        rbi_list_push_back(&daemon->absences.clusters, &absent->in_absences);
        daemon->absences.count++;
    }
    absences_wait(daemon);
}
