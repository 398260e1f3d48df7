/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_SUBSET_H
#define RINGBUS_LIBCLIENT_SUBSET_H
/* libclient/subset.h - linking to some instances of a large cluster only (balance.subset). */
#include "bus/route.h"

#include <stdbool.h>

struct rbi_cluster;
struct rbi_directory_instance;
struct ringbus;

/**
 * Notes whom the chain's entries leave us to link to. @return false: no memory
 * @param instances  of the cluster itself, the first of the chain's
 */
bool rbi_subset_choose_of(const struct ringbus *bus,
                          struct rbi_cluster *cluster,
                          const struct rbi_route_entry *entries,
                          unsigned count,
                          const struct rbi_directory_instance *instances);
/** The policy may say another number now. */
void rbi_subset_follow(struct ringbus *bus, struct rbi_cluster *cluster);
/** Brings the links in line, when something has changed. */
void rbi_subset_tick(struct ringbus *bus, struct rbi_cluster *cluster);

#endif
