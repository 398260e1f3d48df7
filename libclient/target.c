/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/target.c - interest in clusters and prefixes: keeps their members as the daemon
 * reports them, introduces ourselves to those that are wanted, reports changes to the
 * application.
 */
#include "libclient/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RETRY_FIRST_MS 50U
/* Introductions under way at once: each holds memory and, at the daemon, descriptors. */
#define INTRODUCING_MAX 16U
#define RETRY_MAX_MS    5000U

/* ---- introductions ---------------------------------------------------------------------- */

void rbi_member_back_off(struct ringbus *bus, struct rbi_member *member)
{
    uint64_t ms = (uint64_t)RETRY_FIRST_MS << rbi_min_u64(member->retry_count, 8);
    ms = rbi_min_u64(ms, RETRY_MAX_MS);
    member->retry_count++;
    /* A quarter of jitter to either side: requesters of one restarted server spread out. */
    const uint64_t ns = ms * RBI_NS_PER_MS;
    member->retry_ns = bus->now_ns + ns - ns / 4 + rbi_random_below(bus, ns / 2);
    rbi_target_at_most(bus, member->retry_ns);
}

static void open_existing(struct ringbus *bus,
                          const struct rbi_cluster *cluster,
                          const struct rbi_member *member,
                          struct rbi_end *end)
{
    if (end->phase == RBI_END_LINKED && !end->loop) {
        rbi_terms_say(bus, end, rbi_terms_of(cluster, member)); /* the same again is not said */
    }
}

static int introduce(struct ringbus *bus, struct rbi_cluster *cluster, struct rbi_member *member)
{
    const struct rbi_pidf peer = {
        .cluster = cluster->id, .instance = member->instance, .incarnation = member->incarnation};
    if (rbi_residue_limit(bus, &peer)) {
        return rbi_fail(bus, RINGBUS_E_QUOTA, "%s holds payloads of %u ended links", member->path,
                        RBI_RESIDUES_MAX);
    }
    struct rbi_end *end = rbi_end_new(bus, &peer, member->path, rbi_directory_is_far(bus, &peer));
    if (end == NULL) {
        return bus->error.code;
    }
    int bells[2];
    int r = rbi_bell_pair(bells);
    if (r < 0) {
        rbi_end_free(bus, end);
        return rbi_fail_errno(bus, r, "the bell of a link");
    }
    end->bell = bells[0];
    const struct rbi_wire_introduce body = {.cluster = peer.cluster,
                                            .instance = peer.instance,
                                            .incarnation = peer.incarnation,
                                            .side_bytes = end->own_side.size};
    const int fds[] = {end->own_side.fd, bells[1]};
    /* Into the look-up only when sent: losing the daemon frees every introducing end there. */
    end->serial = rbi_control_send(bus, RBI_WIRE_INTRODUCE, &body, fds, RBI_ARRAY_SIZE(fds));
    (void)close(bells[1]); /* the peer holds it now; its death then closes the last one */
    bus->introducing += end->serial != 0 ? 1U : 0U;
    r = end->serial != 0 ? rbi_end_index(bus, end) : 0;
    if (r < 0 || end->serial == 0) {
        rbi_end_free(bus, end);
        return r < 0 ? rbi_fail_errno(bus, r, "introducing to a peer") : RINGBUS_E_NO_DAEMON;
    }
    return 0;
}

/* Brings a wanted member one step nearer to READY. */
static void
advance_member(struct ringbus *bus, struct rbi_cluster *cluster, struct rbi_member *member)
{
    member->retry_ns = RBI_NEVER;
    struct rbi_end *end = rbi_end_find(bus, cluster->id, member->instance);
    if (cluster->id == bus->self.cluster && member->instance == bus->self.instance) {
        end = bus->loop_end != NULL ? bus->loop_end : rbi_end_new_loop(bus);
        if (end == NULL) {
            rbi_member_back_off(bus, member);
            return;
        }
        if (!end->wanted) {
            end->wanted = true;
            rbi_cluster_end_changed(bus, end);
            rbi_emit_simple(bus, RINGBUS_EVENT_READY, &end->peer, end->path, RBI_REASON_NONE, 0);
        }
        return;
    }
    if (end != NULL) {
        if (end->phase == RBI_END_LINKED) {
            member->end = end;
            open_existing(bus, cluster, member, end);
            rbi_cluster_end_changed(bus, end);
        } else if (end->phase != RBI_END_INTRODUCING) {
            rbi_member_back_off(bus, member); /* the old life is still being read to its end */
        }
        return;
    }
    if (bus->control.phase != RBI_CONTROL_ON) {
        return; /* resumed by rbi_target_resend() */
    }
    if (member->state == RBI_ENDPOINT_DRAINING) {
        return; /* takes nobody new; resumed when it is READY again */
    }
    const int r = introduce(bus, cluster, member);
    if (r != 0) {
        rbi_member_back_off(bus, member);
        const struct rbi_pidf peer = rbi_member_pidf(cluster, member);
        rbi_emit_simple(bus, RINGBUS_EVENT_LINK_FAILED, &peer, member->path,
                        RBI_REASON_NO_RESOURCES, r);
    }
}

static enum rbi_reason reason_of(int error)
{
    switch (error) {
    case RINGBUS_E_NO_FDS:
    case RINGBUS_E_NO_MEMORY:
        return RBI_REASON_NO_RESOURCES;
    case RINGBUS_E_BAD_PEER:
        return RBI_REASON_BAD_PEER;
    case RINGBUS_E_TIMEOUT:
        return RBI_REASON_SILENT;
    case RINGBUS_E_DENIED:
        return RBI_REASON_DENIED;
    case RINGBUS_E_UNREACHABLE:
    case RINGBUS_E_NO_ROUTE:
        return RBI_REASON_UNREACHABLE;
    default:
        return RBI_REASON_REFUSED;
    }
}

void rbi_target_introduce_failed(struct ringbus *bus,
                                 const struct rbi_pidf *peer,
                                 enum rbi_reason reason,
                                 int error,
                                 const char *text,
                                 bool meets_other)
{
    struct rbi_cluster *cluster = rbi_cluster_find(bus, peer->cluster);
    struct rbi_member *member = cluster != NULL ? rbi_member_find(cluster, peer->instance) : NULL;
    if (member == NULL || !member->wanted) {
        return;
    }
    /* As the bridge says it, it is no refusal of the instance's. */
    reason = reason != RBI_REASON_NONE && reason_of(error) != RBI_REASON_UNREACHABLE
                 ? reason
                 : reason_of(error);
    rbi_member_back_off(bus, member);
    char sentence[sizeof bus->error.text];
    (void)snprintf(sentence, sizeof sentence, "%s", text); /* may be the very buffer */
    member->denied = false;
    member->out_of_reach = reason == RBI_REASON_UNREACHABLE ? error : 0;
    if (reason == RBI_REASON_DENIED) {
        rbi_rights_denied(member, sentence);
    }
    if (!meets_other) {
        (void)rbi_fail(bus, error, "no link to %s: %s", member->path, sentence);
        rbi_emit_simple(bus, RINGBUS_EVENT_LINK_FAILED, peer, member->path, reason, error);
    }
}

void rbi_target_introductions_lost(struct ringbus *bus)
{
    for (unsigned c = 0; c < bus->cluster_count; c++) {
        struct rbi_cluster *cluster = bus->clusters[c];
        for (unsigned m = 0; m < cluster->member_count; m++) {
            struct rbi_end *end = rbi_end_find(bus, cluster->id, cluster->members[m].instance);
            if (end != NULL && end->phase == RBI_END_INTRODUCING) {
                rbi_end_free(bus, end);
            }
        }
    }
}

bool rbi_target_wants(struct ringbus *bus,
                      const struct rbi_pidf *peer,
                      struct rbi_link_terms *terms)
{
    struct rbi_cluster *cluster = rbi_cluster_find(bus, peer->cluster);
    if (cluster == NULL) {
        return false;
    }
    const struct rbi_member *member = rbi_member_find(cluster, peer->instance);
    if (member == NULL || !member->wanted) {
        return false;
    }
    *terms = *rbi_terms_of(cluster, member);
    return true;
}

/* ---- events of the daemon ---------------------------------------------------------------- */

/* Room for one more. @return whether there is */
static bool member_room(struct rbi_cluster *cluster)
{
    if (cluster->member_count == cluster->member_room) {
        const unsigned room = cluster->member_room == 0 ? 8 : cluster->member_room * 2;
        struct rbi_member *members = realloc(cluster->members, room * sizeof *members);
        if (members == NULL) {
            return false;
        }
        cluster->members = members;
        cluster->member_room = room;
    }
    return true;
}

struct rbi_member *rbi_member_add(struct rbi_cluster *cluster, int32_t instance)
{
    if (!member_room(cluster)) {
        return NULL;
    }
    unsigned at = cluster->member_count;
    while (at > 0 && cluster->members[at - 1].instance > instance) {
        cluster->members[at] = cluster->members[at - 1];
        at--;
    }
    cluster->member_count++;
    struct rbi_member *member = &cluster->members[at];
    memset(member, 0, sizeof *member);
    member->instance = instance;
    member->retry_ns = RBI_NEVER;
    member->left_out = cluster->subset != 0; /* until it is chosen */
    member->wanted = cluster->all && !member->left_out;
    return member;
}

static void remove_member(struct rbi_cluster *cluster, struct rbi_member *member)
{
    const size_t at = (size_t)(member - cluster->members);
    memmove(member, member + 1, (cluster->member_count - at - 1) * sizeof *member);
    cluster->member_count--;
}

static void
member_present(struct ringbus *bus, struct rbi_cluster *cluster, const struct rbi_wire_event *event)
{
    struct rbi_member *member = rbi_member_find(cluster, event->instance);
    if (member == NULL) {
        member = rbi_member_add(cluster, event->instance);
        if (member == NULL) {
            return; /* there is room for it: has_room() */
        }
    }
    const bool new_life = member->incarnation != event->incarnation;
    if (new_life) {
        member->joined_ns = bus->now_ns;
        member->retry_count = 0; /* what the last life did says nothing of this one */
        member->denied = false;
        member->out_of_reach = 0;
    }
    member->incarnation = event->incarnation;
    member->state = event->state;
    member->weight = event->weight;
    member->seen = true;
    (void)snprintf(member->path, sizeof member->path, "%s", event->path.bytes);
    rbi_cluster_changed(bus, cluster);
    if (new_life && member->end != NULL && !member->end->loop &&
        member->end->peer.incarnation != event->incarnation) {
        rbi_end_peer_gone(bus, member->end, RBI_REASON_REPLACED);
    }
    /* A link that the other wants, and the lane to ourselves, are not yet of our own interest. */
    if (member->wanted && (member->end == NULL || !member->end->wanted)) {
        member->retry_ns = bus->now_ns;
        rbi_target_at_most(bus, member->retry_ns);
    }
}

static void
member_removed(struct ringbus *bus, struct rbi_cluster *cluster, const struct rbi_wire_event *event)
{
    struct rbi_member *member = rbi_member_find(cluster, event->instance);
    if (member == NULL || member->incarnation != event->incarnation) {
        return;
    }
    struct rbi_end *end = rbi_end_find(bus, cluster->id, event->instance);
    if (bus->control.phase != RBI_CONTROL_ON && event->reason != RBI_REASON_LEFT) {
        rbi_cluster_miss(bus, cluster, member);
    }
    if (event->reason == RBI_REASON_LEFT) {
        rbi_cluster_hand_on(cluster, event->instance);
    }
    if (end != NULL && end->phase == RBI_END_INTRODUCING) {
        rbi_end_free(bus, end);
    } else if (end != NULL && !end->loop && end->peer.incarnation == event->incarnation) {
        rbi_end_peer_gone(
            bus, end,
            rbi_relayed_told(end, event->reason > RBI_REASON_LAST || event->reason == 0
                                      ? RBI_REASON_LEFT
                                      : (enum rbi_reason)event->reason));
    }
    if (!member->pinned) {
        remove_member(cluster, rbi_member_find(cluster, event->instance));
    } else {
        member = rbi_member_find(cluster, event->instance);
        member->end = NULL;
        member->incarnation = 0;
        member->retry_ns = RBI_NEVER;
    }
    rbi_cluster_changed(bus, cluster);
}

static bool member_is_linked(const struct rbi_cluster *cluster, int32_t instance)
{
    const struct rbi_member *member = rbi_member_find(cluster, instance);
    return member != NULL && member->end != NULL;
}

/*
 * The daemon names one that we took for gone: its end of a link that was being made while no
 * daemon was there can go like that of a dead one.
 */
static void note_named(struct ringbus *bus, const struct rbi_wire_event *event)
{
    struct rbi_cluster *cluster = rbi_cluster_find(bus, event->cluster);
    unsigned kept = 0;
    for (unsigned i = 0; i < bus->gone_count; i++) {
        const struct rbi_pidf *gone = &bus->gone[i];
        if (gone->cluster != event->cluster || gone->instance != event->instance ||
            gone->incarnation != event->incarnation) {
            bus->gone[kept++] = *gone;
        }
    }
    if (kept != bus->gone_count && cluster != NULL) {
        rbi_cluster_changed(bus, cluster);
    }
    bus->gone_count = kept;
}

static bool has_room(struct rbi_cluster *cluster, const struct rbi_wire_event *event)
{
    return cluster == NULL || event->change == RBI_CHANGE_REMOVED ||
           rbi_member_find(cluster, event->instance) != NULL || member_room(cluster);
}

void rbi_target_event(struct ringbus *bus, const struct rbi_wire_event *event)
{
    struct rbi_cluster *cluster = rbi_cluster_find(bus, event->cluster);
    enum rbi_news news = RBI_NEWS_NONE;
    uint32_t old_incarnation = 0;
    if (event->change == RBI_CHANGE_REMOVED && bus->held_segment.base != NULL) {
        const struct rbi_pidf pidf = {.cluster = event->cluster,
                                      .instance = event->instance,
                                      .incarnation = event->incarnation};
        rbi_directory_note_gone(bus, &pidf); /* what is held lists it still */
    } else if (event->change == RBI_CHANGE_ADDED) {
        note_named(bus, event);
    }
    /* Room for all of it first: what is known by half would be told again when it is read again. */
    if (!has_room(cluster, event) ||
        (rbi_watched_path(bus, event->path.bytes, event->path.length) &&
         !rbi_watched_event(bus, event, &news, &old_incarnation))) {
        rbi_target_missed(bus);
        return;
    }
    if (cluster != NULL) {
        const struct rbi_member *known = rbi_member_find(cluster, event->instance);
        const uint32_t known_incarnation = known != NULL ? known->incarnation : 0;
        const enum rbi_news of_target =
            known != NULL ? rbi_news_of(known->incarnation, known->state, known->weight, event)
                          : rbi_news_of(0, 0, 0, event);
        if (news == RBI_NEWS_NONE) {
            news = of_target;
            old_incarnation = known_incarnation;
        }
        cluster->known = true;
        if (event->change == RBI_CHANGE_REMOVED) {
            member_removed(bus, cluster, event);
        } else if (of_target == RBI_NEWS_NONE && member_is_linked(cluster, event->instance)) {
            rbi_member_find(cluster, event->instance)->seen = true; /* told again: as it was */
        } else {
            member_present(bus, cluster, event);
        }
    }
    rbi_news_emit(bus, news, event, old_incarnation);
    if (cluster != NULL) {
        rbi_health_event(bus, cluster, event);
    }
}

void rbi_target_removed(struct ringbus *bus,
                        const struct rbi_pidf *pidf,
                        const char *path,
                        enum rbi_reason reason)
{
    struct rbi_wire_event event = {.change = RBI_CHANGE_REMOVED,
                                   .cluster = pidf->cluster,
                                   .instance = pidf->instance,
                                   .incarnation = pidf->incarnation,
                                   .reason = (uint32_t)reason};
    rbi_text_set(&event.path, path);
    rbi_target_event(bus, &event);
}

/* Whether an application was told of this life. @param seen  set then: the daemon has named it */
static bool is_known(struct ringbus *bus, const struct rbi_pidf *pidf, bool *seen)
{
    const struct rbi_cluster *cluster = rbi_cluster_find(bus, pidf->cluster);
    const struct rbi_member *member =
        cluster != NULL ? rbi_member_find(cluster, pidf->instance) : NULL;
    if (member != NULL && member->incarnation == pidf->incarnation) {
        *seen = member->seen;
        return true;
    }
    return rbi_watched_knows(bus, pidf, seen);
}

void rbi_target_link_over(struct ringbus *bus, const struct rbi_end *end)
{
    const struct rbi_pidf pidf = end->peer;
    bool seen = false;
    const bool dead =
        end->leave_reason == RBI_REASON_CRASHED || end->leave_reason == RBI_REASON_LEFT;
    if (end->loop || bus->closing) {
        return;
    }
    if (dead && (bus->control.phase != RBI_CONTROL_ON || bus->held_segment.base != NULL)) {
        rbi_directory_note_gone(bus, &pidf);
    }
    if (!is_known(bus, &pidf, &seen)) {
        return;
    }
    const bool settled = !bus->control.settling && bus->sweep_ns == RBI_NEVER;
    /* No daemon has it in its directory, or there is none: nobody else will tell that it went. */
    if (bus->control.phase != RBI_CONTROL_ON ? dead : settled && !seen) {
        rbi_target_removed(bus, &pidf, end->path, end->leave_reason);
    }
}

uint64_t rbi_target_tick(struct ringbus *bus, uint64_t now_ns)
{
    if (bus->sweep_ns <= now_ns) {
        rbi_target_sweep(bus);
    }
    if (bus->reread_ns <= now_ns) {
        rbi_target_reread(bus);
    }
    uint64_t next_ns = rbi_min_u64(bus->sweep_ns, bus->reread_ns);
    for (unsigned c = 0; c < bus->cluster_count; c++) {
        struct rbi_cluster *cluster = bus->clusters[c];
        if (cluster->again_ns <= now_ns) {
            cluster->again_ns = RBI_NEVER;
            rbi_cluster_changed(bus, cluster);
        }
        rbi_subset_tick(bus, cluster);
        next_ns = rbi_min_u64(next_ns, cluster->again_ns);
        for (unsigned m = 0; m < cluster->member_count; m++) {
            struct rbi_member *member = &cluster->members[m];
            if (!member->wanted) {
                continue;
            }
            if (member->retry_ns <= now_ns) {
                if (bus->introducing >= INTRODUCING_MAX) {
                    continue; /* the end of one of those under way brings it here again */
                }
                advance_member(bus, cluster, member);
            }
            next_ns = rbi_min_u64(next_ns, member->retry_ns);
        }
    }
    return next_ns;
}
