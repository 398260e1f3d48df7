/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_UNIT_ROUTE_WORLD_H
#define RINGBUS_TESTS_UNIT_ROUTE_WORLD_H
/* Random clusters, policies, callers and messages for the router chain. */
#include "bus/route.h"

#define ROUTE_WORLD_CLUSTERS  3U
#define ROUTE_WORLD_INSTANCES 12U

struct route_world {
    struct rbi_policy policy;
    struct rbi_route_caller caller;
    struct rbi_route_message message;
    struct rbi_route_cluster clusters[ROUTE_WORLD_CLUSTERS];
    struct rbi_directory_instance instances[ROUTE_WORLD_CLUSTERS][ROUTE_WORLD_INSTANCES];
    uint64_t invisible[ROUTE_WORLD_CLUSTERS];
    struct rbi_route_input input;
    struct rbi_route_entry entries[ROUTE_WORLD_CLUSTERS * ROUTE_WORLD_INSTANCES];
    struct rbi_route_result result;
};

/** The same seed, the same worlds. */
void route_world_seed(uint64_t seed);
uint32_t route_world_below(uint32_t n);
/** Another one at each call. */
void route_world_make(struct route_world *w);
void route_world_run(struct route_world *w);

#endif
