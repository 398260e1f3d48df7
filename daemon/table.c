/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/table.h"

#include "bus/balance.h"
#include "bus/route_keyed.h"
#include "daemon/daemon.h"
#include "daemon/policy.h"

#include <stdlib.h>

/* So many scores are some 60 us; a change of one member of 300 takes three times as many. */
#define SLICE_SCORES 20000U
/* Changes up to this are worked in at once: 0.6 ms each at 300 members. */
#define AT_ONCE_MAX 2U

/* ---- members ---------------------------------------------------------------------------- */

/**
 * Those that a caller without labels counts, as the library does (bus/route_keyed.h).
 * @return members, from malloc; NULL: no memory
 */
static struct rbi_table_member *table_members(const struct rbi_policy *policy,
                                              const struct rbi_directory_cluster *head,
                                              const struct rbi_directory_instance *instances,
                                              uint64_t now_ns,
                                              unsigned *count)
{
    const struct rbi_route_caller caller = {.set = "", .idc = ""};
    const struct rbi_route_message message = {.tag = ""};
    const struct rbi_route_cluster offer = {
        .instances = instances, .count = head->instance_count, .absent_count = head->absent_count};
    const struct rbi_route_input input = {.caller = &caller,
                                          .message = &message,
                                          .policy = policy,
                                          .clusters = &offer,
                                          .cluster_count = 1,
                                          .now_ns = now_ns};
    const unsigned room = rbi_route_keyed_room(&input);
    struct rbi_route_entry *entries = calloc(room + 1, sizeof(*entries));
    struct rbi_table_member *members = calloc(room + 1, sizeof(*members));
    struct rbi_route_result result;
    *count = 0;
    if (!entries || !members) {
        free(entries);
        free(members);
        return NULL;
    }
    rbi_route_keyed_run(&input, entries, &result);
    for (unsigned i = 0; i < result.entry_count; i++) {
        if (entries[i].hash_weight != 0) {
            members[(*count)++] = (struct rbi_table_member){
                .instance = instances[entries[i].index].instance, .weight = entries[i].hash_weight};
        }
    }
    *count = rbi_table_sort(members, *count);
    free(entries);
    return members;
}

/** How many differ, in either list; both are sorted. */
static unsigned
table_changes(const struct rbi_table *old, const struct rbi_table_member *members, unsigned count)
{
    unsigned changes = 0;
    unsigned i = 0;
    unsigned j = 0;
    while (i < old->member_count || j < count) {
        const bool left =
            j == count || (i < old->member_count && old->members[i].instance < members[j].instance);
        const bool joined =
            !left && (i == old->member_count || members[j].instance < old->members[i].instance);
        changes += left || joined || old->members[i].weight != members[j].weight;
        i += !joined;
        j += !left;
    }
    return changes;
}

/* ---- building --------------------------------------------------------------------------- */

static void table_abandon(struct rbi_cluster_table *own)
{
    if (own->building) {
        rbi_loop_timer_cancel(own->daemon->loop, &own->timer);
        own->building = false;
    }
    free(own->next_members);
    free(own->next_owners);
    free(own->scratch);
    own->next_members = NULL;
    own->next_owners = NULL;
    own->scratch = NULL;
}

/** The build is done: its table takes the place of the one before. */
static void table_take(struct rbi_cluster_table *own)
{
    const struct rbi_table table = rbi_table_built(&own->build);
    struct rbi_daemon *daemon = own->daemon;
    own->building = false;
    if (rbi_blob_hold(daemon, own->next_key, own->next_owners,
                      rbi_table_owner_bytes(&table.shape)) < 0) {
        table_abandon(own); /* callers build their own */
        return;
    }
    rbi_blob_release(daemon, own->old_key);
    own->old_key = own->key;
    own->key = own->next_key;
    free(own->members);
    own->members = own->next_members;
    own->next_members = NULL;
    own->table = table;
    own->table.members = own->members;
    own->table.owners = rbi_blob_bytes(daemon, own->key);
    table_abandon(own);
}

static void table_slice(void *context)
{
    struct rbi_cluster_table *own = context;
    if (rbi_table_build_step(&own->build, SLICE_SCORES)) {
        table_take(own);
        rbi_table_settle(own->cluster);
    } else {
        rbi_loop_timer_set(own->daemon->loop, &own->timer, rbi_loop_now_ns(own->daemon->loop),
                           table_slice, own);
    }
}

static void table_build(struct rbi_cluster_table *own,
                        const struct rbi_table_shape *shape,
                        struct rbi_table_member *members,
                        unsigned count,
                        uint64_t key)
{
    const struct rbi_table *old = own->key != 0 ? &own->table : NULL;
    const unsigned old_count = old ? old->member_count : 0;
    table_abandon(own);
    own->next_members = members;
    own->next_key = key;
    own->next_owners = malloc(rbi_table_owner_bytes(shape));
    own->scratch = malloc(rbi_table_scratch_bytes(shape, count, old_count) + 1);
    if (!own->next_owners || !own->scratch) {
        table_abandon(own);
        return;
    }
    rbi_table_build_begin(&own->build, shape, old, members, count, own->next_owners, own->scratch);
    if (old && table_changes(old, members, count) <= AT_ONCE_MAX) {
        while (!rbi_table_build_step(&own->build, UINT32_MAX)) {
        }
        table_take(own);
    } else {
        own->building = true;
        table_slice(own);
    }
}

/* ---- clusters --------------------------------------------------------------------------- */

void rbi_tables_init(struct rbi_tables *tables)
{
    rbi_list_init(&tables->all);
    rbi_shares_init(&tables->users);
    tables->count = 0;
}

static bool table_has_room(const struct rbi_tables *tables, uint32_t uid)
{
    return rbi_shares_room(&tables->users, RBI_CLUSTER_TABLES_MAX - tables->count, uid) > 0;
}

/** Whoever still sends to such a cluster has a copy, and builds the next one. */
static void table_free_of_gone(struct rbi_daemon *daemon)
{
    RBI_LIST_EACH(node, spare, &daemon->tables.all)
    {
        const struct rbi_cluster_table *table =
            RBI_CONTAINER_OF(node, struct rbi_cluster_table, in_tables);
        if (rbi_quota_used(&daemon->quota, table->share->actor, RBI_QUOTA_CONNECTIONS) == 0) {
            rbi_table_free(table->cluster);
        }
    }
}

static struct rbi_cluster_table *
table_new(struct rbi_daemon *daemon, struct rbi_cluster *cluster, uint32_t uid)
{
    struct rbi_cluster_table *table = calloc(1, sizeof(*table));
    struct rbi_share *share = table ? rbi_share_take(&daemon->tables.users, uid, 1) : NULL;
    if (!share) {
        free(table);
        return NULL;
    }
    table->daemon = daemon;
    table->cluster = cluster;
    table->share = share;
    rbi_list_push_back(&daemon->tables.all, &table->in_tables);
    daemon->tables.count++;
    return table;
}

void rbi_table_want(struct rbi_daemon *daemon, struct rbi_cluster *cluster, uint32_t uid)
{
    if (cluster->table) {
        return;
    }
    if (!table_has_room(&daemon->tables, uid)) {
        table_free_of_gone(daemon);
    }
    cluster->table = table_has_room(&daemon->tables, uid) ? table_new(daemon, cluster, uid) : NULL;
    if (cluster->table) {
        rbi_publish_table(daemon, cluster);
    }
}

void rbi_table_follow(struct rbi_cluster *cluster,
                      const struct rbi_directory_cluster *head,
                      const struct rbi_directory_instance *instances)
{
    struct rbi_cluster_table *own = cluster->table;
    struct rbi_table_shape shape;
    unsigned count = 0;
    if (!own) {
        return;
    }
    const struct rbi_policy *policy = rbi_daemon_policy(own->daemon, cluster);
    if (!rbi_balance_shape(&policy->balance, &shape)) {
        table_abandon(own);
        return;
    }
    struct rbi_table_member *members =
        table_members(policy, head, instances, rbi_loop_now_ns(own->daemon->loop), &count);
    const uint64_t key = members ? rbi_table_fingerprint(&shape, members, count) : 0;
    if (!members || key == own->key || (own->building && key == own->next_key)) {
        if (members && key == own->key) {
            table_abandon(own); /* of a state that is over */
        }
        free(members);
        return;
    }
    table_build(own, &shape, members, count, key);
}

void rbi_table_settle(struct rbi_cluster *cluster)
{
    if (cluster->table) {
        rbi_blob_release(cluster->table->daemon, cluster->table->old_key);
        cluster->table->old_key = 0;
    }
}

void rbi_table_free(struct rbi_cluster *cluster)
{
    struct rbi_cluster_table *own = cluster->table;
    if (own) {
        /* A daemon that stops has no directory any more, nor a loop. */
        own->building = own->building && !own->daemon->stopping;
        table_abandon(own);
        if (!own->daemon->stopping) {
            rbi_blob_release(own->daemon, own->key);
            rbi_blob_release(own->daemon, own->old_key);
        }
        rbi_share_return(own->share, 1);
        rbi_list_remove(&own->in_tables);
        own->daemon->tables.count--;
        free(own->members);
        free(own);
        cluster->table = NULL;
    }
}
