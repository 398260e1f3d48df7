/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_UNCONFIRMED_H
#define RINGBUS_DAEMON_UNCONFIRMED_H
/*
 * daemon/unconfirmed.h - instances that the daemon before had in its directory and that have
 * not come back yet. They stay listed, as they were, until they do or the time for that is
 * over (settle.h): nobody vanishes because of a restart. They are nothing but lines in the
 * directory: nobody is introduced to them, and no event tells of them.
 */
#include "bus/directory.h"
#include "daemon/list.h"

struct rbi_cluster;
struct rbi_daemon;

struct rbi_unconfirmed {
    struct rbi_list in_registry;              /* while there are any */
    struct rbi_directory_instance *instances; /* ascending */
    uint32_t count;
};

/** Takes over @p instances (ascending; from malloc) for a cluster that has none. */
void rbi_unconfirmed_set(struct rbi_daemon *daemon,
                         struct rbi_cluster *cluster,
                         struct rbi_directory_instance *instances,
                         uint32_t count);
/** Its address is taken, by itself or by another life. @return whether it was one of them */
bool rbi_unconfirmed_drop(struct rbi_cluster *cluster, int32_t instance);
/** Drops all and takes them from the directory. */
void rbi_unconfirmed_clear(struct rbi_daemon *daemon);
/** Frees those of a cluster that ends. */
void rbi_unconfirmed_free(struct rbi_cluster *cluster);
/** How many there are. */
uint32_t rbi_unconfirmed_count(const struct rbi_daemon *daemon);

#endif
