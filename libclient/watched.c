/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/watched.c - what the application knows of the instances below its prefixes. */
#include "libclient/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/** An instance that was reported. */
struct rbi_sight {
    struct rbi_pidf pidf; /* what the set points to */
    uint32_t state;
    uint32_t weight;
    unsigned position; /* in sights */
    bool seen;         /* the daemon that we are connected to has named it */
    char path[];
};

static struct rbi_sight *sight_find(struct rbi_watches *watches, uint64_t cluster, int32_t instance)
{
    const struct rbi_pidf key = {.cluster = cluster, .instance = instance};
    if (watches->by_address.map == NULL) {
        return NULL;
    }
    struct rbi_pidf *found = ck_hs_get(&watches->by_address, rbi_end_hash(cluster, instance), &key);
    return found != NULL ? RBI_CONTAINER_OF(found, struct rbi_sight, pidf) : NULL;
}

static int sight_room(struct rbi_watches *watches)
{
    if (watches->by_address.map == NULL && rbi_address_set_init(&watches->by_address) < 0) {
        return -ENOMEM;
    }
    if (watches->sight_count == watches->sight_room) {
        const unsigned room = watches->sight_room == 0 ? 16 : watches->sight_room * 2;
        struct rbi_sight **sights = realloc(watches->sights, room * sizeof *sights);
        if (sights == NULL) {
            return -ENOMEM;
        }
        watches->sights = sights;
        watches->sight_room = room;
    }
    return 0;
}

static int sight_add(struct rbi_watches *watches, const struct rbi_wire_event *event)
{
    if (sight_room(watches) < 0) {
        return -ENOMEM;
    }
    struct rbi_sight *sight = calloc(1, sizeof *sight + event->path.length + 1U);
    if (sight == NULL) {
        return -ENOMEM;
    }
    sight->pidf = (struct rbi_pidf){
        .cluster = event->cluster, .instance = event->instance, .incarnation = event->incarnation};
    sight->state = event->state;
    sight->weight = event->weight;
    sight->seen = true;
    memcpy(sight->path, event->path.bytes, event->path.length);
    if (!ck_hs_put(&watches->by_address, rbi_end_hash(event->cluster, event->instance),
                   &sight->pidf)) {
        free(sight);
        return -ENOMEM;
    }
    sight->position = watches->sight_count;
    watches->sights[watches->sight_count++] = sight;
    return 0;
}

static void sight_remove(struct rbi_watches *watches, struct rbi_sight *sight)
{
    struct rbi_sight *last = watches->sights[--watches->sight_count];
    (void)ck_hs_remove(&watches->by_address,
                       rbi_end_hash(sight->pidf.cluster, sight->pidf.instance), &sight->pidf);
    watches->sights[sight->position] = last;
    last->position = sight->position;
    free(sight);
}

bool rbi_watched_path(const struct ringbus *bus, const char *path, size_t length)
{
    for (unsigned i = 0; i < bus->watches.count; i++) {
        const char *prefix = bus->watches.prefixes[i];
        if (rbi_path_has_prefix(path, length, prefix, strlen(prefix))) {
            return true;
        }
    }
    return false;
}

bool rbi_watched_cluster(const struct ringbus *bus, const char *path, size_t length)
{
    for (unsigned i = 0; i < bus->watches.count; i++) {
        const char *prefix = bus->watches.prefixes[i];
        const size_t prefix_length = strlen(prefix);
        const bool below = rbi_path_has_prefix(path, length, prefix, prefix_length);
        /* Or the other way round. NOLINTNEXTLINE(readability-suspicious-call-argument) */
        if (below || rbi_path_has_prefix(prefix, prefix_length, path, length)) {
            return true;
        }
    }
    return false;
}

bool rbi_watched_event(struct ringbus *bus,
                       const struct rbi_wire_event *event,
                       enum rbi_news *news,
                       uint32_t *old_incarnation)
{
    struct rbi_watches *watches = &bus->watches;
    struct rbi_sight *sight = sight_find(watches, event->cluster, event->instance);
    *news = sight != NULL ? rbi_news_of(sight->pidf.incarnation, sight->state, sight->weight, event)
                          : rbi_news_of(0, 0, 0, event);
    if (*news == RBI_NEWS_REMOVED) {
        sight_remove(watches, sight);
    } else if (sight != NULL && event->change != RBI_CHANGE_REMOVED) {
        *old_incarnation = sight->pidf.incarnation;
        sight->pidf.incarnation = event->incarnation;
        sight->state = event->state;
        sight->weight = event->weight;
        sight->seen = true;
    } else if (*news == RBI_NEWS_ADDED) {
        return sight_add(watches, event) == 0;
    }
    return true;
}

bool rbi_watched_knows(struct ringbus *bus, const struct rbi_pidf *pidf, bool *seen)
{
    const struct rbi_sight *sight = sight_find(&bus->watches, pidf->cluster, pidf->instance);
    if (sight == NULL || sight->pidf.incarnation != pidf->incarnation) {
        return false;
    }
    *seen = sight->seen;
    return true;
}

static bool is_linked(struct ringbus *bus, const struct rbi_pidf *pidf)
{
    const struct rbi_end *end = rbi_end_find(bus, pidf->cluster, pidf->instance);
    return end != NULL && end->usable && end->peer.incarnation == pidf->incarnation;
}

void rbi_watched_unsee(struct ringbus *bus)
{
    for (unsigned i = 0; i < bus->watches.sight_count; i++) {
        bus->watches.sights[i]->seen = false;
    }
}

void rbi_watched_see(struct ringbus *bus, const struct rbi_pidf *pidf)
{
    struct rbi_sight *sight = sight_find(&bus->watches, pidf->cluster, pidf->instance);
    if (sight != NULL && sight->pidf.incarnation == pidf->incarnation) {
        sight->seen = true;
    }
}

void rbi_watched_drop_unseen(struct ringbus *bus, enum rbi_reason reason, bool spare_linked)
{
    struct rbi_watches *watches = &bus->watches;
    for (unsigned i = watches->sight_count; i-- > 0;) {
        const struct rbi_sight *sight = watches->sights[i];
        if (!sight->seen && !(spare_linked && is_linked(bus, &sight->pidf))) {
            rbi_target_removed(bus, &sight->pidf, sight->path, reason);
        }
    }
}

void rbi_watched_forget_unwatched(struct ringbus *bus)
{
    struct rbi_watches *watches = &bus->watches;
    for (unsigned i = watches->sight_count; i-- > 0;) {
        struct rbi_sight *sight = watches->sights[i];
        if (!rbi_watched_path(bus, sight->path, strlen(sight->path))) {
            sight_remove(watches, sight);
        }
    }
}

void rbi_watched_deinit(struct rbi_watches *watches)
{
    while (watches->sight_count > 0) {
        free(watches->sights[--watches->sight_count]);
    }
    free(watches->sights);
    free(watches->prefixes);
    if (watches->by_address.map != NULL) {
        ck_hs_destroy(&watches->by_address);
    }
}
