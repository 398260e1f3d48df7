/* SPDX-License-Identifier: Apache-2.0 */
/* Random worlds: rich enough that each stage has something to do, small enough to be met often. */
#include "route_world.h"

#include "shm/layout.h"

#include <stdio.h>
#include <string.h>

static uint64_t seed;

void route_world_seed(uint64_t value)
{
    seed = value;
}

uint32_t route_world_below(uint32_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((seed >> 33) % n);
}

static bool one_in(uint32_t n)
{
    return route_world_below(n) == 0;
}

static const char *const sets[] = {"", "app.s.1", "app.s.2", "app.s.*", "app.n.1", "web.s.1"};
static const char *const idcs[] = {"", "r1", "r1/z", "r2", "r3/z", "r4"};
static const char *const tags[] = {"", "", "", "v2", "v3", "v2,v3", "test"};
static const char *const message_tags[] = {"", "", "v2", "v3", "test"};

#define PICK(array) array[route_world_below(RBI_ARRAY_SIZE(array))]

static void make_instance(struct rbi_directory_instance *one, unsigned cluster, unsigned index)
{
    static const uint32_t states[] = {RBI_ENDPOINT_READY,    RBI_ENDPOINT_READY,
                                      RBI_ENDPOINT_READY,    RBI_ENDPOINT_BUSY,
                                      RBI_ENDPOINT_STARTING, RBI_ENDPOINT_DRAINING};
    memset(one, 0, sizeof *one);
    one->instance = (int32_t)(cluster * 100 + index + 1);
    one->state = PICK(states);
    one->health = one_in(3) ? 1 + route_world_below(3) : 0;
    one->ramp = route_world_below(101);
    one->weight = one_in(16) ? 0 : 1 + route_world_below(200);
    one->host = route_world_below(2);
    one->node = (uint16_t)route_world_below(3);
    one->reported = (uint16_t)(one_in(2) ? route_world_below(1001) : 0);
    one->demand = (uint16_t)(one_in(2) ? route_world_below(10001) : 0);
    one->node_demand = (uint16_t)route_world_below(10001);
    one->override =
        (one_in(16) ? RBI_OVERRIDE_ISOLATED : 0) | (one_in(12) ? RBI_OVERRIDE_STAGED : 0);
    snprintf(one->set, sizeof one->set, "%s", PICK(sets));
    snprintf(one->idc, sizeof one->idc, "%s", PICK(idcs));
    snprintf(one->tags, sizeof one->tags, "%s", PICK(tags));
    one->name_length = (uint32_t)snprintf(one->name, sizeof one->name, "i%d", one->instance);
}

static void make_rules(struct rbi_policy *policy)
{
    policy->rule_count = one_in(2) ? route_world_below(4) : 0;
    for (unsigned i = 0; i < policy->rule_count; i++) {
        struct rbi_label_rule *rule = &policy->rules[i];
        rule->method_high = UINT32_MAX;
        rule->mode = route_world_below(3);
        rule->dry_run = one_in(4);
        snprintf(rule->tag, sizeof rule->tag, "%s", one_in(3) ? "v2" : "");
        snprintf(rule->set, sizeof rule->set, "%s", one_in(3) ? PICK(sets) : "");
        snprintf(rule->idc, sizeof rule->idc, "%s", one_in(3) ? PICK(idcs) : "");
    }
}

static void make_policy(struct rbi_policy *policy)
{
    rbi_policy_defaults(policy);
    policy->panic.mode = one_in(4) ? RBI_PANIC_FAIL : RBI_PANIC_IGNORE_SHIELD;
    policy->realm.mode = route_world_below(3);
    policy->realm.remote_first = route_world_below(2);
    policy->set.mode = one_in(2) ? RBI_STAGE_STRICT : RBI_STAGE_OFF;
    policy->set.dry_run = one_in(4);
    policy->tags.mode = route_world_below(3);
    policy->tags.dry_run = one_in(4);
    policy->tags.untagged_leaks = one_in(4);
    policy->tags.count = 1;
    snprintf(policy->tags.canaries[0].tag, sizeof policy->tags.canaries[0].tag, "v2");
    policy->tags.canaries[0].share = 100;
    policy->tags.canaries[0].dry_run = one_in(2);
    make_rules(policy);
    policy->locality.mode = one_in(4) ? RBI_STAGE_STRICT : route_world_below(2);
    policy->locality.dry_run = one_in(4);
    policy->locality.min_local = route_world_below(3);
    policy->locality.count = one_in(2) ? 1 : 0;
    policy->locality.priorities[0].count = 2;
    snprintf(policy->locality.priorities[0].groups[0], RBI_LABEL_MAX, "r1");
    snprintf(policy->locality.priorities[0].groups[1], RBI_LABEL_MAX, "r2");
    rbi_policy_seal(policy);
    RBI_ASSERT(rbi_policy_valid(policy));
}

void route_world_make(struct route_world *w)
{
    memset(w, 0, sizeof *w);
    make_policy(&w->policy);
    w->caller = (struct rbi_route_caller){.set = PICK(sets),
                                          .idc = PICK(idcs),
                                          .host = route_world_below(2),
                                          .node = route_world_below(3)};
    w->message = (struct rbi_route_message){
        .tag = PICK(message_tags), .rules = route_world_below(16), .canary = route_world_below(2)};
    w->input =
        (struct rbi_route_input){.caller = &w->caller,
                                 .message = &w->message,
                                 .policy = &w->policy,
                                 .clusters = w->clusters,
                                 .cluster_count = 1 + route_world_below(ROUTE_WORLD_CLUSTERS),
                                 .now_ns = UINT64_C(1000000000)};
    for (unsigned i = 0; i < ROUTE_WORLD_CLUSTERS; i++) {
        w->invisible[i] = one_in(4) ? seed >> 40 & 0x111 : 0;
        w->clusters[i] = (struct rbi_route_cluster){
            .instances = w->instances[i],
            .count = one_in(8) ? 0 : 1 + route_world_below(ROUTE_WORLD_INSTANCES),
            .panic = one_in(4),
            .invisible = &w->invisible[i]};
        for (unsigned j = 0; j < w->clusters[i].count; j++) {
            make_instance(&w->instances[i][j], i, j);
        }
    }
}

void route_world_run(struct route_world *w)
{
    RBI_ASSERT(rbi_route_room(&w->input) <= RBI_ARRAY_SIZE(w->entries));
    rbi_route_run(&w->input, NULL, w->entries, &w->result);
}
