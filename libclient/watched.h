/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_WATCHED_H
#define RINGBUS_LIBCLIENT_WATCHED_H
/*
 * libclient/watched.h - the prefixes given to ringbus_watch(), and the instances below them
 * that the application was told of: what a new daemon tells again is no news, and whoever
 * it does not name any more has left meanwhile.
 * Part of internal.h: include that.
 */
#include "bus/pidf.h"

#include <ck_hs.h>

struct rbi_sight;

struct rbi_watches {
    char (*prefixes)[RBI_PATH_MAX + 1];
    unsigned count;
    unsigned room;
    ck_hs_t by_address; /* of sights; valid once there was one */
    struct rbi_sight **sights;
    unsigned sight_count;
    unsigned sight_room;
};

#endif
