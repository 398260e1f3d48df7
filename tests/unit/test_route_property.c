/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random clusters, policies, callers and messages through the router chain (scenario 88: never an
 * instance outside the caller's set, area, tag or rule; scenario 91: nobody looks healthy). What
 * must hold is said here by plain definitions of each stage, for one instance at a time.
 */
#include "bus/label.h"
#include "route_world.h"
#include "shm/layout.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 20000U

/* ---- what must hold for one that is in --------------------------------------------------- */

static const struct rbi_directory_instance *instance_of(const struct route_world *w,
                                                        const struct rbi_route_entry *entry)
{
    return &w->instances[entry->cluster][entry->index];
}

static const char *effective_tag(const struct route_world *w)
{
    const struct rbi_tag_policy *policy = &w->policy.tags;
    const bool canary = w->message.tag[0] == '\0' && w->message.canary == 1 &&
                        policy->canaries[0].dry_run == 0 && policy->dry_run == 0 &&
                        policy->mode != RBI_STAGE_OFF;
    return canary ? policy->canaries[0].tag : w->message.tag;
}

static bool state_holds(const struct route_world *w, const struct rbi_route_entry *entry)
{
    const struct rbi_directory_instance *one = instance_of(w, entry);
    return (one->state == RBI_ENDPOINT_READY || one->state == RBI_ENDPOINT_BUSY) &&
           one->weight > 0 && (one->override & RBI_OVERRIDE_ISOLATED) == 0 &&
           (w->invisible[entry->cluster] >> entry->index & 1U) == 0 &&
           ((one->override & RBI_OVERRIDE_STAGED) == 0 || strcmp(effective_tag(w), "test") == 0);
}

static bool realm_holds(const struct route_world *w, const struct rbi_route_entry *entry)
{
    return entry->cluster == w->result.realm &&
           (w->policy.realm.mode == RBI_STAGE_PREFER || entry->cluster == 0);
}

/* Sets as texts: "name.", "name.area." are prefixes of those that are in them. */
static bool set_applies(const struct route_world *w)
{
    const char *own = w->caller.set;
    bool same_name = false;
    for (unsigned i = 0; own[0] != '\0' && i < w->clusters[w->result.realm].count; i++) {
        same_name = same_name || strncmp(w->instances[w->result.realm][i].set, own, 4) == 0;
    }
    return same_name && w->policy.set.mode != RBI_STAGE_OFF && w->policy.set.dry_run == 0;
}

static bool set_holds(const struct route_world *w, const struct rbi_route_entry *entry)
{
    const char *own = w->caller.set;
    const char *other = instance_of(w, entry)->set;
    if (!set_applies(w)) {
        return true;
    }
    return strncmp(own, other, 6) == 0 &&
           (strcmp(own, other) == 0 || strchr(own, '*') != NULL || strchr(other, '*') != NULL);
}

static bool opened(const struct route_world *w, const struct rbi_directory_instance *one)
{
    for (unsigned i = 0; i < w->policy.rule_count; i++) {
        const struct rbi_label_rule *rule = &w->policy.rules[i];
        if ((w->message.rules >> i & 1U) != 0 && rule->mode != RBI_STAGE_OFF &&
            rule->dry_run == 0 && rule->tag[0] != '\0' && rbi_label_has_tag(one->tags, rule->tag)) {
            return true;
        }
    }
    return false;
}

static bool tag_holds(const struct route_world *w, const struct rbi_route_entry *entry)
{
    const struct rbi_directory_instance *one = instance_of(w, entry);
    const struct rbi_tag_policy *policy = &w->policy.tags;
    const char *tag = effective_tag(w);
    if (policy->mode == RBI_STAGE_OFF || policy->dry_run != 0) {
        return true;
    }
    if (tag[0] == '\0') {
        return one->tags[0] == '\0' || policy->untagged_leaks != 0 || opened(w, one);
    }
    return rbi_label_has_tag(one->tags, tag) || (one->override & RBI_OVERRIDE_STAGED) != 0 ||
           (policy->mode == RBI_STAGE_PREFER && one->tags[0] == '\0');
}

static bool rules_hold(const struct route_world *w, const struct rbi_route_entry *entry)
{
    const struct rbi_directory_instance *one = instance_of(w, entry);
    bool hold = true;
    for (unsigned i = 0; i < w->policy.rule_count; i++) {
        const struct rbi_label_rule *rule = &w->policy.rules[i];
        if ((w->message.rules >> i & 1U) != 0 && rule->mode == RBI_STAGE_STRICT &&
            rule->dry_run == 0) {
            hold = hold && (rule->tag[0] == '\0' || rbi_label_has_tag(one->tags, rule->tag)) &&
                   (rule->set[0] == '\0' || rbi_label_set_covers(rule->set, one->set)) &&
                   (rule->idc[0] == '\0' || rbi_label_idc_covers(rule->idc, one->idc));
        }
    }
    return hold;
}

static bool locality_holds(const struct route_world *w, const struct rbi_route_entry *entry)
{
    const struct rbi_locality_policy *policy = &w->policy.locality;
    const char *own = w->caller.idc;
    return policy->mode != RBI_STAGE_STRICT || policy->dry_run != 0 || own[0] == '\0' ||
           set_applies(w) || strncmp(own, instance_of(w, entry)->idc, 2) == 0;
}

static bool health_holds(const struct route_world *w, const struct rbi_route_entry *entry)
{
    const uint32_t health = instance_of(w, entry)->health;
    return health == RBI_HEALTH_OK || health == RBI_HEALTH_RAMP ||
           (w->clusters[entry->cluster].panic && w->policy.panic.mode == RBI_PANIC_IGNORE_SHIELD);
}

static bool door_holds(const struct route_world *w, const struct rbi_route_entry *entry)
{
    return state_holds(w, entry) && realm_holds(w, entry) && set_holds(w, entry) &&
           tag_holds(w, entry) && rules_hold(w, entry) && locality_holds(w, entry);
}

static void check_entries(const struct route_world *w, unsigned round)
{
    unsigned in = 0;
    unsigned keyed = 0;
    for (unsigned i = 0; i < w->result.entry_count; i++) {
        const struct rbi_route_entry *entry = &w->entries[i];
        assert_int_equal(entry->weight > 0, entry->stage == RBI_ROUTE_IN);
        assert_int_equal(entry->reason == RBI_ROUTE_FITS, entry->stage == RBI_ROUTE_IN);
        if (entry->weight > 0 && (!door_holds(w, entry) || !health_holds(w, entry))) {
            fail_msg("round %u: instance %d is in", round, instance_of(w, entry)->instance);
        }
        if (entry->hash_weight > 0 && !door_holds(w, entry)) {
            fail_msg("round %u: instance %d is in by key", round, instance_of(w, entry)->instance);
        }
        assert_true(entry->weight == 0 || entry->hash_weight > 0);
        in += entry->weight > 0 ? 1U : 0U;
        keyed += entry->hash_weight > 0 ? 1U : 0U;
    }
    assert_int_equal(in, w->result.in_count);
    assert_int_equal(keyed, w->result.keyed_count);
    assert_int_equal(in == 0, w->result.emptied != RBI_ROUTE_IN);
    assert_int_equal(keyed == 0, w->result.keyed_emptied != RBI_ROUTE_IN);
}

static void check_steps(const struct route_world *w)
{
    uint32_t before = w->result.entry_count;
    for (unsigned i = RBI_ROUTE_STATE; i < RBI_ROUTE_STAGES; i++) {
        const struct rbi_route_step *step = &w->result.steps[i];
        uint32_t out = 0;
        for (unsigned j = 0; j < w->result.entry_count; j++) {
            out += w->entries[j].stage == i ? 1U : 0U;
        }
        assert_int_equal(step->before, before);
        assert_int_equal(step->before - step->after, out);
        before = step->after;
    }
    assert_int_equal(before, w->result.in_count);
}

static void test_nobody_outside(void **state)
{
    (void)state;
    static struct route_world w;
    unsigned in = 0;
    unsigned empty = 0;
    route_world_seed(1);
    for (unsigned round = 0; round < ROUNDS; round++) {
        route_world_make(&w);
        route_world_run(&w);
        check_entries(&w, round);
        check_steps(&w);
        in += w.result.in_count;
        empty += w.result.in_count == 0 ? 1U : 0U;
    }
    assert_true(in > ROUNDS);
    assert_in_range(empty, ROUNDS / 20, ROUNDS * 3 / 4);
}

/* ---- order ------------------------------------------------------------------------------- */

static void reverse(struct route_world *w)
{
    for (unsigned i = 0; i < ROUTE_WORLD_CLUSTERS; i++) {
        const unsigned count = w->clusters[i].count;
        struct rbi_directory_instance copy[ROUTE_WORLD_INSTANCES];
        uint64_t invisible = 0;
        memcpy(copy, w->instances[i], sizeof copy);
        for (unsigned j = 0; j < count; j++) {
            w->instances[i][j] = copy[count - 1 - j];
            invisible |= (w->invisible[i] >> (count - 1 - j) & 1U) << j;
        }
        w->invisible[i] = invisible;
    }
}

static void test_order_of_instances_does_not_matter(void **state)
{
    (void)state;
    static struct route_world w;
    static struct route_world other;
    route_world_seed(2);
    for (unsigned round = 0; round < ROUNDS; round++) {
        route_world_make(&w);
        route_world_run(&w);
        memcpy(&other, &w, sizeof w);
        reverse(&w);
        route_world_run(&w);
        for (unsigned i = 0; i < w.result.entry_count; i++) {
            const struct rbi_route_entry *new = &w.entries[i];
            unsigned j = 0;
            while (other.entries[j].cluster != new->cluster ||
                   other.entries[j].index != w.clusters[new->cluster].count - 1 - new->index) {
                j++;
            }
            const struct rbi_route_entry *old = &other.entries[j];
            assert_int_equal(old->weight, new->weight);
            assert_int_equal(old->hash_weight, new->hash_weight);
            assert_int_equal(old->stage, new->stage);
            assert_int_equal(old->would_stage, new->would_stage);
        }
    }
}

/* ---- dry runs ------------------------------------------------------------------------------ */

static void make_dry(struct rbi_policy *policy, struct rbi_policy *off, unsigned what)
{
    *off = *policy;
    switch (what) {
    case RBI_ROUTE_SET:
        policy->set.dry_run = 1;
        off->set.mode = RBI_STAGE_OFF;
        break;
    case RBI_ROUTE_TAG:
        policy->tags.dry_run = 1;
        off->tags.mode = RBI_STAGE_OFF;
        break;
    case RBI_ROUTE_RULES:
        for (unsigned i = 0; i < policy->rule_count; i++) {
            policy->rules[i].dry_run = 1;
            off->rules[i].mode = RBI_STAGE_OFF;
        }
        break;
    case RBI_ROUTE_LOCALITY:
        policy->locality.dry_run = 1;
        off->locality.mode = RBI_STAGE_OFF;
        break;
    default: /* the canary alone */
        policy->tags.canaries[0].dry_run = 1;
        off->tags.count = 0;
        break;
    }
}

/* A stage in dry run and a stage that is off have the same result. */
static void test_dry_run_changes_nothing(void **state)
{
    (void)state;
    static struct route_world dry;
    static struct route_world off;
    static const unsigned whats[] = {RBI_ROUTE_SET, RBI_ROUTE_TAG, RBI_ROUTE_RULES,
                                     RBI_ROUTE_LOCALITY, RBI_ROUTE_IN};
    unsigned would[RBI_ROUTE_STAGES] = {0};
    route_world_seed(3);
    for (unsigned round = 0; round < ROUNDS; round++) {
        route_world_make(&dry);
        const unsigned what = whats[route_world_below(RBI_ARRAY_SIZE(whats))];
        static struct rbi_policy policy;
        make_dry(&dry.policy, &policy, what);
        route_world_run(&dry);
        memcpy(&off, &dry, sizeof off);
        off.policy = policy;
        off.input.policy = &off.policy;
        route_world_run(&off);
        for (unsigned i = 0; i < dry.result.entry_count; i++) {
            assert_int_equal(dry.entries[i].weight, off.entries[i].weight);
            assert_int_equal(dry.entries[i].hash_weight, off.entries[i].hash_weight);
            assert_int_equal(dry.entries[i].stage, off.entries[i].stage);
            would[dry.entries[i].would_stage]++;
        }
    }
    for (unsigned i = RBI_ROUTE_SET; i <= RBI_ROUTE_LOCALITY; i++) {
        assert_true(would[i] > 100);
    }
}

/* What a dry run says would go, goes when it is real, if no other dry run comes before it. */
static void test_dry_run_tells_what_would_go(void **state)
{
    (void)state;
    static struct route_world dry;
    unsigned told = 0;
    route_world_seed(4);
    for (unsigned round = 0; round < ROUNDS; round++) {
        route_world_make(&dry);
        dry.policy.set.dry_run = 1;
        route_world_run(&dry);
        static struct route_world real;
        memcpy(&real, &dry, sizeof real);
        real.policy.set.dry_run = 0;
        real.input.policy = &real.policy;
        route_world_run(&real);
        for (unsigned i = 0; i < dry.result.entry_count; i++) {
            const bool would = dry.entries[i].would_stage == RBI_ROUTE_SET;
            const bool goes = real.entries[i].stage == RBI_ROUTE_SET;
            assert_int_equal(would, goes);
            told += would ? 1U : 0U;
        }
    }
    assert_true(told > 1000);
}

/* ---- nobody is forgotten -------------------------------------------------------------------- */

/* With nothing strict or tagged, whoever is well is reached: PREFER alone never empties. */
static void test_prefer_never_empties(void **state)
{
    (void)state;
    static struct route_world w;
    unsigned reached = 0;
    route_world_seed(5);
    for (unsigned round = 0; round < ROUNDS; round++) {
        bool well = false;
        route_world_make(&w);
        w.policy.realm.mode = RBI_STAGE_PREFER;
        w.policy.set.mode = RBI_STAGE_OFF;
        w.policy.tags.mode = RBI_STAGE_PREFER;
        w.policy.locality.mode = RBI_STAGE_PREFER;
        w.policy.panic.mode = RBI_PANIC_IGNORE_SHIELD;
        for (unsigned i = 0; i < w.policy.rule_count; i++) {
            w.policy.rules[i].mode = RBI_STAGE_PREFER;
        }
        for (unsigned i = 0; i < w.input.cluster_count; i++) {
            for (unsigned j = 0; j < w.clusters[i].count; j++) {
                w.instances[i][j].tags[0] = '\0';
                const struct rbi_route_entry entry = {.cluster = (uint16_t)i, .index = j};
                const uint32_t health = w.instances[i][j].health;
                well = well || (state_holds(&w, &entry) &&
                                (health == RBI_HEALTH_OK || health == RBI_HEALTH_RAMP));
            }
        }
        route_world_run(&w);
        assert_true(!well || w.result.in_count > 0);
        reached += well ? 1U : 0U;
    }
    assert_true(reached > ROUNDS / 4);
}

/* The sum of the weights of a level is its share, whatever its instances are. */
static void test_shares_of_levels(void **state)
{
    (void)state;
    static struct route_world w;
    unsigned spilled = 0;
    route_world_seed(6);
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t weights[RBI_ROUTE_RANKS] = {0};
        uint64_t total = 0;
        uint32_t shares = 0;
        route_world_make(&w);
        w.policy.set.mode = RBI_STAGE_OFF;
        w.policy.tags.mode = RBI_STAGE_OFF;
        w.policy.rule_count = 0;
        w.policy.locality.mode = RBI_STAGE_PREFER;
        route_world_run(&w);
        for (unsigned i = 0; i < w.result.entry_count; i++) {
            weights[w.entries[i].rank] += w.entries[i].weight;
            total += w.entries[i].weight;
        }
        for (unsigned rank = 0; rank < RBI_ROUTE_RANKS; rank++) {
            shares += w.result.share[rank];
            if (w.result.share[rank] > 0 && total > 1000) {
                const int64_t got = (int64_t)(weights[rank] * 10000 / total);
                /* An instance has 1 at least, and each rounding costs one. */
                assert_true(llabs(got - w.result.share[rank]) < 120);
                spilled += w.result.share[rank] < 9000 ? 1U : 0U;
            }
        }
        assert_true(shares == 0 || (shares > 9900 && shares <= 10000));
    }
    assert_in_range(spilled, 2000, UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_outside),
        cmocka_unit_test(test_order_of_instances_does_not_matter),
        cmocka_unit_test(test_dry_run_changes_nothing),
        cmocka_unit_test(test_dry_run_tells_what_would_go),
        cmocka_unit_test(test_prefer_never_empties),
        cmocka_unit_test(test_shares_of_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
