/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/demand.h"

#include "bus/label.h"

#include <string.h>

#define ONE UINT64_C(1024) /* a call, just now */
#define MS  UINT64_C(1000000)

/* Each step everything loses this part: half of it in RBI_DEMAND_HALF_MS. */
#define STEP_NS   (RBI_DEMAND_HALF_MS * MS / 20)
#define LOSS_PART UINT64_C(2233) /* 65536 x (1 - 2^(-1/20)) */
#define STEPS_MAX 600U           /* then nothing is left */

void rbi_demand_init(struct rbi_demand *demand, uint64_t now_ns)
{
    *demand = (struct rbi_demand){.now_ns = now_ns, .told_ns = now_ns};
}

static bool is_group(const struct rbi_demand_place *place, struct rbi_label_part group)
{
    const struct rbi_label_part own = {place->group, strlen(place->group)};
    return rbi_label_equal(own, group);
}

/* @return NULL: there is none, and no room for one */
static struct rbi_demand_place *
place_of(struct rbi_demand *demand, struct rbi_label_part group, uint32_t node)
{
    for (uint32_t i = 0; i < demand->count; i++) {
        struct rbi_demand_place *place = &demand->places[i];
        if (place->node == node && is_group(place, group)) {
            return place;
        }
    }
    if (demand->count == RBI_DEMAND_PLACES_MAX || group.length > RBI_LABEL_MAX) {
        return NULL;
    }
    struct rbi_demand_place *place = &demand->places[demand->count++];
    *place = (struct rbi_demand_place){.node = node};
    if (group.length > 0) {
        memcpy(place->group, group.text, group.length);
    }
    return place;
}

void rbi_demand_add(struct rbi_demand *demand, const char *idc, uint32_t node, uint32_t calls)
{
    struct rbi_demand_place *place = place_of(demand, rbi_label_idc_parse(idc).group, node);
    *(place != NULL ? &place->calls : &demand->elsewhere) += calls * ONE;
}

static void age_one(uint64_t *calls)
{
    /* In two parts: any count of calls stays in range. */
    *calls -= (*calls >> 16) * LOSS_PART + (((*calls & 0xffff) * LOSS_PART) >> 16);
    *calls -= *calls > 0 && *calls <= 65536 / LOSS_PART ? 1 : 0; /* so that it ends */
}

/* Whoever has not called for long makes room. */
static void forget(struct rbi_demand *demand)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < demand->count; i++) {
        if (demand->places[i].calls > 0 || demand->places[i].told > 0) {
            demand->places[kept++] = demand->places[i];
        }
    }
    demand->count = kept;
}

static void age(struct rbi_demand *demand, uint64_t now_ns)
{
    for (unsigned i = 0; i < STEPS_MAX && now_ns - demand->now_ns >= STEP_NS; i++) {
        demand->now_ns += STEP_NS;
        age_one(&demand->elsewhere);
        for (uint32_t j = 0; j < demand->count; j++) {
            age_one(&demand->places[j].calls);
        }
    }
    if (now_ns - demand->now_ns >= STEP_NS) {
        demand->now_ns = now_ns;
    }
}

static uint64_t all_calls(const struct rbi_demand *demand)
{
    uint64_t calls = demand->elsewhere;
    for (uint32_t i = 0; i < demand->count; i++) {
        calls += demand->places[i].calls;
    }
    return calls;
}

/* 0 is unknown: a place from which somebody calls has a share. */
static uint32_t share_of(const struct rbi_demand_place *place, uint64_t all)
{
    /* Rounded alike, whatever the sum: a shift keeps the product in range. */
    const unsigned shift = all >> 48 != 0 ? 16 : 0;
    const uint64_t share =
        (place->calls >> shift) * RBI_DEMAND_WHOLE / rbi_max_u64(all >> shift, 1);
    return place->calls > 0 ? (uint32_t)rbi_max_u64(share, 1) : 0;
}

static bool has_moved(const struct rbi_demand *demand, uint64_t all, bool enough)
{
    if (demand->told != enough) {
        return true;
    }
    for (uint32_t i = 0; enough && i < demand->count; i++) {
        const uint32_t share = share_of(&demand->places[i], all);
        const uint32_t told = demand->places[i].told;
        if ((share > told ? share - told : told - share) >= RBI_DEMAND_STEP) {
            return true;
        }
    }
    return false;
}

bool rbi_demand_turn(struct rbi_demand *demand, uint64_t now_ns)
{
    age(demand, now_ns);
    forget(demand);
    const uint64_t all = all_calls(demand);
    /* Once told they hold until hardly anything is left: no swinging around one bound. */
    const uint64_t least = RBI_DEMAND_CALLS_MIN * ONE / (demand->told ? 4 : 1);
    const bool enough = all >= least;
    if (now_ns - demand->told_ns < RBI_DEMAND_REST_MS * MS || !has_moved(demand, all, enough)) {
        return false;
    }
    demand->told_ns = now_ns;
    demand->told = enough;
    for (uint32_t i = 0; i < demand->count; i++) {
        demand->places[i].told = enough ? share_of(&demand->places[i], all) : 0;
    }
    return true;
}

uint32_t rbi_demand_group(const struct rbi_demand *demand, const char *idc)
{
    const struct rbi_label_part group = rbi_label_idc_parse(idc).group;
    uint64_t share = 0;
    for (uint32_t i = 0; i < demand->count; i++) {
        share += is_group(&demand->places[i], group) ? demand->places[i].told : 0;
    }
    return (uint32_t)rbi_min_u64(share, RBI_DEMAND_WHOLE);
}

uint32_t rbi_demand_node(const struct rbi_demand *demand, const char *idc, uint32_t node)
{
    const struct rbi_label_part group = rbi_label_idc_parse(idc).group;
    for (uint32_t i = 0; node != 0 && i < demand->count; i++) {
        if (demand->places[i].node == node && is_group(&demand->places[i], group)) {
            return demand->places[i].told;
        }
    }
    return 0;
}
