/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_WATCHED_H
#define RINGBUS_LIBCLIENT_WATCHED_H
/*
 * libclient/watched.h - the prefixes given to ringbus_watch(), and the instances below them
 * that the application was told of: what a new daemon tells again is no news, and whoever
 * it does not name any more has left meanwhile.
 */
#include "bus/pidf.h"
#include "bus/record.h"
#include "bus/wire.h"
#include "libclient/news.h"

#include <ck_hs.h>

struct rbi_sight;
struct ringbus;

struct rbi_watches {
    char (*prefixes)[RBI_PATH_MAX + 1];
    unsigned count;
    unsigned room;
    ck_hs_t by_address; /* of sights; valid once there was one */
    struct rbi_sight **sights;
    unsigned sight_count;
    unsigned sight_room;
};

/** Whether a path is below a watched prefix. */
bool rbi_watched_path(const struct ringbus *bus, const char *path, size_t length);
/** Whether an instance of this cluster can be. */
bool rbi_watched_cluster(const struct ringbus *bus, const char *path, size_t length);
/**
 * Takes in an event below a watched prefix. @param old_incarnation  set when REPLACED
 * @return false: no memory, it is as if nothing had come
 */
bool rbi_watched_event(struct ringbus *bus,
                       const struct rbi_wire_event *event,
                       enum rbi_news *news,
                       uint32_t *old_incarnation);
/** Marks all as not named. */
void rbi_watched_unsee(struct ringbus *bus);
/** Marks one as named, if it is known in this life. */
void rbi_watched_see(struct ringbus *bus, const struct rbi_pidf *pidf);
/** Whether an instance was reported in this life. @param seen  set then: the daemon has named it */
bool rbi_watched_knows(struct ringbus *bus, const struct rbi_pidf *pidf, bool *seen);
/** Reports the end of those not named; of those linked to us not, where asked. */
void rbi_watched_drop_unseen(struct ringbus *bus, enum rbi_reason reason, bool spare_linked);
/** A prefix is not watched any more: forgets, without a word, what was below it alone. */
void rbi_watched_forget_unwatched(struct ringbus *bus);
void rbi_watched_deinit(struct rbi_watches *watches);

#endif
