/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/interest.c - the public calls of interest: target, watch. */
#include "libclient/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REDELIVER_DEFAULT_MS 1000U
#define REDELIVER_MS_MAX     60000U

/* ---- targets ---------------------------------------------------------------------------- */

/* A caller built against another version knows fewer or more fields. */
static int copy_options(struct ringbus *bus,
                        const struct ringbus_target_options *given,
                        struct ringbus_target_options *out)
{
    memset(out, 0, sizeof *out);
    if (given != NULL && (given->struct_size < offsetof(struct ringbus_target_options, on_down) ||
                          given->struct_size > 16 * sizeof *out)) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT, "struct_size of the target options is not set");
    }
    if (given != NULL) {
        memcpy(out, given, given->struct_size < sizeof *out ? given->struct_size : sizeof *out);
    }
    if ((out->on_down != RINGBUS_ON_DOWN_REPORT && out->on_down != RINGBUS_ON_DOWN_REDELIVER) ||
        out->redeliver_ms > REDELIVER_MS_MAX) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT, "on_down %d or redeliver_ms %u (at most %u)",
                        (int)out->on_down, out->redeliver_ms, REDELIVER_MS_MAX);
    }
    return 0;
}

struct rbi_cluster *rbi_cluster_add(struct ringbus *bus, const char *path)
{
    struct rbi_cluster **clusters =
        realloc(bus->clusters, (bus->cluster_count + 1) * sizeof *clusters);
    if (clusters == NULL) {
        return NULL;
    }
    bus->clusters = clusters;
    struct rbi_cluster *cluster = calloc(1, sizeof *cluster);
    if (cluster == NULL) {
        return NULL;
    }
    (void)snprintf(cluster->path, sizeof cluster->path, "%s", path);
    cluster->id = rbi_cluster_id(cluster->path, strlen(cluster->path));
    cluster->dispatch_stale = RBI_DISPATCH_STALE;
    cluster->again_ns = RBI_NEVER;
    bus->clusters[bus->cluster_count++] = cluster;
    return cluster;
}

void rbi_member_want(struct ringbus *bus, struct rbi_member *member)
{
    member->wanted = true;
    member->retry_ns = bus->now_ns;
    rbi_target_at_most(bus, bus->now_ns);
}

static int target_instance(struct ringbus *bus,
                           struct rbi_cluster *cluster,
                           int32_t instance,
                           const char *path,
                           const struct rbi_target_terms *target)
{
    struct rbi_member *member = rbi_member_find(cluster, instance);
    if (member == NULL) {
        member = rbi_member_add(cluster, instance);
        if (member == NULL) {
            return rbi_fail_errno(bus, -ENOMEM, "target");
        }
        (void)snprintf(member->path, sizeof member->path, "%s", path);
    }
    member->pinned = true;
    member->wanted = true;
    member->named = true;
    member->target = *target;
    if (member->incarnation != 0) {
        rbi_member_want(bus, member);
    }
    return 0;
}

static void send_target(struct ringbus *bus, const char *path)
{
    struct rbi_wire_target body;
    memset(&body, 0, sizeof body);
    rbi_text_set(&body.path, path);
    (void)rbi_control_send(bus, RBI_WIRE_TARGET, &body, NULL, 0);
}

void rbi_cluster_want_all(struct ringbus *bus,
                          struct rbi_cluster *cluster,
                          const struct rbi_target_terms *target)
{
    cluster->all = true;
    cluster->target = *target;
    for (unsigned m = 0; m < cluster->member_count; m++) {
        cluster->members[m].named = false;
        if (!cluster->members[m].left_out) {
            rbi_member_want(bus, &cluster->members[m]);
        }
    }
    send_target(bus, cluster->path);
}

static int do_target(struct ringbus *bus,
                     const char *path,
                     const struct ringbus_target_options *given,
                     struct ringbus_addr *out)
{
    struct ringbus_target_options options;
    struct rbi_path_info info = {0};
    struct rbi_pidf pidf;
    struct rbi_target_terms target;
    int r = rbi_hooks_idle(bus, "ringbus_target()");
    if (r == 0) {
        r = rbi_address_path(bus, path, RBI_PATH_CLUSTER_ELEMENTS, RBI_PATH_INSTANCE_ELEMENTS,
                             &info);
    }
    r = r != 0 ? r : copy_options(bus, given, &options);
    r = r != 0 ? r : rbi_terms_target(bus, &options, &target);
    if (r != 0) {
        return r;
    }
    if (rbi_pidf_parse(path, info.length, &pidf, &info) != 0) {
        return RINGBUS_E_PATH; /* just checked */
    }
    struct rbi_cluster *cluster = rbi_cluster_find(bus, pidf.cluster);
    if (cluster == NULL) {
        char cluster_path[RBI_PATH_MAX + 1];
        (void)snprintf(cluster_path, sizeof cluster_path, "%.*s", (int)info.cluster_length, path);
        cluster = rbi_cluster_add(bus, cluster_path);
        if (cluster == NULL) {
            return rbi_fail_errno(bus, -ENOMEM, "target");
        }
    }
    cluster->custom = options.custom != 0;
    cluster->redeliver = options.on_down == RINGBUS_ON_DOWN_REDELIVER;
    cluster->redeliver_ms = options.redeliver_ms != 0 ? options.redeliver_ms : REDELIVER_DEFAULT_MS;
    r = rbi_caller_target(bus, cluster, &options);
    if (r != 0) {
        return r;
    }
    cluster->named = true;
    cluster->dispatch_stale |= RBI_DISPATCH_STALE | rbi_hooks_bits(bus, cluster);
    if (pidf.instance == 0) {
        cluster->whole = true;
        rbi_cluster_want_all(bus, cluster, &target);
        rbi_realm_follow(bus, cluster);
        rbi_directory_look_at(bus, cluster);
    } else {
        r = target_instance(bus, cluster, pidf.instance, path, &target);
        if (r == 0) {
            send_target(bus, path);
        }
    }
    if (r == 0 && out != NULL) {
        *out = rbi_addr(&pidf);
    }
    return r;
}

int ringbus_target(struct ringbus *bus,
                   const char *path,
                   const struct ringbus_target_options *options,
                   struct ringbus_addr *out)
{
    int r = rbi_enter(bus);
    if (r == 0) {
        r = do_target(bus, path, options, out);
        rbi_leave(bus);
    }
    return r;
}

static void drop_interest(struct ringbus *bus, struct rbi_end *end)
{
    if (end != NULL && end->loop) {
        /* It stays for what is addressed to it by its id; only the interest ends. */
        if (end->wanted) {
            end->wanted = false;
            rbi_emit_simple(bus, RINGBUS_EVENT_DOWN, &end->peer, end->path, RBI_REASON_UNTARGETED,
                            0);
        }
    } else if (end != NULL && end->wanted && end->phase == RBI_END_LINKED) {
        const struct rbi_link_input input = {.type = RBI_LINK_CLOSE,
                                             .reason = RBI_REASON_UNTARGETED};
        end->wanted = false;
        rbi_end_step(bus, end, &input);
    } else if (end != NULL && end->phase == RBI_END_INTRODUCING) {
        rbi_end_free(bus, end);
    }
}

void rbi_member_unwant(struct ringbus *bus, struct rbi_cluster *cluster, struct rbi_member *member)
{
    member->wanted = false;
    member->pinned = false;
    member->retry_ns = RBI_NEVER;
    drop_interest(bus, rbi_end_find(bus, cluster->id, member->instance));
}

static void forget_cluster(struct ringbus *bus, struct rbi_cluster *cluster)
{
    for (unsigned i = 0; i < bus->cluster_count; i++) {
        if (bus->clusters[i] == cluster) {
            bus->clusters[i] = bus->clusters[--bus->cluster_count];
            break;
        }
    }
    bus->last_cluster = NULL;
    rbi_cluster_free(cluster);
}

/* Ends the interest in members that nobody wants any more. @return whether some are wanted */
static bool drop_members(struct ringbus *bus, struct rbi_cluster *cluster)
{
    bool any = cluster->all;
    for (unsigned m = 0; m < cluster->member_count; m++) {
        if (!cluster->all && !cluster->members[m].pinned) {
            rbi_member_unwant(bus, cluster, &cluster->members[m]);
        } else {
            any = true;
        }
    }
    rbi_cluster_changed(bus, cluster);
    return any;
}

static void send_untarget(struct ringbus *bus, const char *path)
{
    struct rbi_wire_untarget body;
    memset(&body, 0, sizeof body);
    rbi_text_set(&body.path, path);
    (void)rbi_control_send(bus, RBI_WIRE_UNTARGET, &body, NULL, 0);
}

void rbi_cluster_narrow(struct ringbus *bus, struct rbi_cluster *cluster)
{
    cluster->all = false;
    send_untarget(bus, cluster->path);
    if (!drop_members(bus, cluster)) {
        bus->reap_needed = true; /* whoever walks the clusters now still meets it */
    }
}

void rbi_clusters_reap(struct ringbus *bus)
{
    for (unsigned i = bus->cluster_count; i-- > 0;) {
        struct rbi_cluster *cluster = bus->clusters[i];
        if (!cluster->all && !cluster->named && cluster->importers == 0) {
            forget_cluster(bus, cluster);
        }
    }
}

static int do_untarget(struct ringbus *bus, const char *path)
{
    struct rbi_path_info info = {0};
    struct rbi_pidf pidf;
    int r = rbi_hooks_idle(bus, "ringbus_untarget()");
    if (r == 0) {
        r = rbi_address_path(bus, path, RBI_PATH_CLUSTER_ELEMENTS, RBI_PATH_INSTANCE_ELEMENTS,
                             &info);
    }
    if (r != 0) {
        return r;
    }
    if (rbi_pidf_parse(path, info.length, &pidf, &info) != 0) {
        return RINGBUS_E_PATH; /* just checked */
    }
    struct rbi_cluster *cluster = rbi_cluster_find(bus, pidf.cluster);
    struct rbi_member *member = cluster != NULL ? rbi_member_find(cluster, pidf.instance) : NULL;
    const bool known =
        cluster != NULL && (pidf.instance == 0 ? cluster->whole : member != NULL && member->pinned);
    if (!known) {
        return rbi_fail(bus, RINGBUS_E_NOT_TARGET, "%s is not a target", path);
    }
    if (pidf.instance != 0) {
        send_untarget(bus, path);
        member->pinned = false;
    } else {
        cluster->whole = false;
        rbi_realm_release(bus, cluster);
        if (cluster->importers == 0) {
            send_untarget(bus, path);
            cluster->all = false;
        } /* else another target goes on to use it */
    }
    cluster->named = cluster->whole;
    for (unsigned m = 0; m < cluster->member_count; m++) {
        cluster->named = cluster->named || cluster->members[m].pinned;
    }
    if (!drop_members(bus, cluster)) {
        forget_cluster(bus, cluster);
    }
    return 0;
}

int ringbus_untarget(struct ringbus *bus, const char *path)
{
    int r = rbi_enter(bus);
    if (r == 0) {
        r = do_untarget(bus, path);
        rbi_leave(bus);
    }
    return r;
}

/* ---- watches ---------------------------------------------------------------------------- */

static void send_watch(struct ringbus *bus, const char *prefix)
{
    struct rbi_wire_watch body;
    memset(&body, 0, sizeof body);
    rbi_text_set(&body.prefix, prefix);
    (void)rbi_control_send(bus, RBI_WIRE_WATCH, &body, NULL, 0);
}

static int do_watch(struct ringbus *bus, const char *prefix)
{
    struct rbi_node_path parsed;
    struct rbi_watches *watches = &bus->watches;
    const int r = rbi_nodes_check_path(bus, prefix, &parsed);
    if (r != 0) {
        return r;
    }
    if (watches->count == watches->room) {
        const unsigned room = watches->room == 0 ? 4 : watches->room * 2;
        void *prefixes = realloc(watches->prefixes, room * sizeof *watches->prefixes);
        if (prefixes == NULL) {
            return rbi_fail_errno(bus, -ENOMEM, "watch");
        }
        watches->prefixes = prefixes;
        watches->room = room;
    }
    (void)snprintf(watches->prefixes[watches->count], sizeof *watches->prefixes, "%s", prefix);
    watches->count++;
    send_watch(bus, prefix);
    rbi_nodes_watched(bus);
    return 0;
}

int ringbus_watch(struct ringbus *bus, const char *prefix)
{
    int r = rbi_enter(bus);
    if (r == 0) {
        r = do_watch(bus, prefix);
        rbi_leave(bus);
    }
    return r;
}

static int do_unwatch(struct ringbus *bus, const char *prefix)
{
    struct rbi_node_path parsed;
    struct rbi_watches *watches = &bus->watches;
    const int r = rbi_nodes_check_path(bus, prefix, &parsed);
    if (r != 0) {
        return r;
    }
    for (unsigned i = 0; i < watches->count; i++) {
        if (strcmp(watches->prefixes[i], prefix) == 0) {
            struct rbi_wire_unwatch body;
            memset(&body, 0, sizeof body);
            rbi_text_set(&body.prefix, prefix);
            (void)rbi_control_send(bus, RBI_WIRE_UNWATCH, &body, NULL, 0);
            watches->count--;
            memmove(watches->prefixes[i], watches->prefixes[i + 1],
                    (watches->count - i) * sizeof *watches->prefixes);
            rbi_watched_forget_unwatched(bus);
            rbi_nodes_unwatched(bus);
            rbi_alarm_sights_unwatched(bus);
            return 0;
        }
    }
    return rbi_fail(bus, RINGBUS_E_NOT_TARGET, "%s is not watched", prefix);
}

int ringbus_unwatch(struct ringbus *bus, const char *prefix)
{
    int r = rbi_enter(bus);
    if (r == 0) {
        r = do_unwatch(bus, prefix);
        rbi_leave(bus);
    }
    return r;
}

/* ---- saying everything again -------------------------------------------------------------- */

static void resend_cluster(struct ringbus *bus, struct rbi_cluster *cluster)
{
    cluster->keyed_told_ns = 0;
    for (unsigned m = 0; m < cluster->member_count; m++) {
        if (cluster->members[m].pinned) {
            send_target(bus, cluster->members[m].path);
        }
        /* Who is not back yet cannot be introduced; its ADDED brings it here again. */
        if (cluster->members[m].wanted && cluster->members[m].end == NULL &&
            cluster->members[m].seen && cluster->members[m].incarnation != 0) {
            rbi_member_want(bus, &cluster->members[m]);
        }
    }
    if (cluster->all) {
        send_target(bus, cluster->path);
    }
}

void rbi_target_resend(struct ringbus *bus)
{
    bus->now_ns = rbi_now_ns();
    for (unsigned c = 0; c < bus->cluster_count; c++) {
        resend_cluster(bus, bus->clusters[c]);
    }
    for (unsigned i = 0; i < bus->watches.count; i++) {
        send_watch(bus, bus->watches.prefixes[i]);
    }
}
