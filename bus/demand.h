/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_DEMAND_H
#define RINGBUS_BUS_DEMAND_H
/*
 * bus/demand.h - from where a cluster is called: which share of the calls of the last seconds came
 * from each place, a place being a group of the location (bus/label.h) and a NUMA node in it. The
 * router chain compares it with the share of the capacity that is there, and relieves a place that
 * has far less (bus/route_locality.c). Pure; one thread at a time.
 *
 * Shares are published, and each time all callers choose anew: so they are told only when they have
 * moved by RBI_DEMAND_STEP, not more often than once in RBI_DEMAND_REST_MS, and only from
 * RBI_DEMAND_CALLS_MIN calls on, below which a share is chance.
 */
#include "bus/policy.h"

/** Further places are counted together, and are told no share. */
#define RBI_DEMAND_PLACES_MAX 64U
#define RBI_DEMAND_WHOLE      10000U
#define RBI_DEMAND_STEP       500U /* of WHOLE */
#define RBI_DEMAND_REST_MS    1000U
#define RBI_DEMAND_CALLS_MIN  100U
/** What a call counts halves in so long. */
#define RBI_DEMAND_HALF_MS 5000U

struct rbi_demand_place {
    uint64_t calls; /* weighed by age, in 1/1024 */
    uint32_t node;  /* 1 + NUMA node; 0: unknown */
    uint32_t told;  /* share of all, of WHOLE, that was told */
    char group[RBI_LABEL_MAX + 1];
};

struct rbi_demand {
    uint64_t now_ns; /* up to when it was aged */
    uint64_t told_ns;
    uint64_t elsewhere; /* calls from places for which there was no room */
    bool told;          /* there are shares that hold */
    uint32_t count;
    struct rbi_demand_place places[RBI_DEMAND_PLACES_MAX];
};

void rbi_demand_init(struct rbi_demand *demand, uint64_t now_ns);
/**
 * So many calls ended whose caller is at @p idc.
 * @param idc   terminated; "": it is in no group
 * @param node  1 + NUMA node; 0: unknown
 */
void rbi_demand_add(struct rbi_demand *demand, const char *idc, uint32_t node, uint32_t calls);
/**
 * Lets time act; every few hundred milliseconds, after what has come was added.
 * @param now_ns  CLOCK_MONOTONIC, never falls
 * @return whether the shares are others than before, and are to be told
 */
bool rbi_demand_turn(struct rbi_demand *demand, uint64_t now_ns);
/** Share of the calls from the group of @p idc, of WHOLE, as it was told; 0: unknown, or none. */
uint32_t rbi_demand_group(const struct rbi_demand *demand, const char *idc);
/** The same from one node of that group. */
uint32_t rbi_demand_node(const struct rbi_demand *demand, const char *idc, uint32_t node);

#endif
