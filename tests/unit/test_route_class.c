/* SPDX-License-Identifier: Apache-2.0 */
/* Classes of messages (features 2.6, J22): which rules match, and who belongs to a canary. */
#include "bus/route_class.h"
#include "support/test.h"

#include <string.h>

static const uint32_t no_labels[RBI_LABELS_MAX] = {0};

static void add_rule(struct rbi_policy *policy, const struct rbi_label_rule *rule)
{
    policy->rules[policy->rule_count++] = *rule;
}

static const struct rbi_label_rule every_method = {.method_high = UINT32_MAX,
                                                   .mode = RBI_STAGE_PREFER};

static void test_policy_without_rules_is_classless(void **state)
{
    (void)state;
    static struct rbi_policy policy;
    struct rbi_route_classes classes;
    rbi_policy_defaults(&policy);
    rbi_route_classes_init(&classes, &policy, NULL);
    assert_true(rbi_route_classless(&classes));
    assert_int_equal(rbi_route_rules(&classes, 1, true, 2, no_labels), 0);
    assert_int_equal(rbi_route_canary(&classes, 7), 0);
    add_rule(&policy, &every_method);
    policy.rules[0].mode = RBI_STAGE_OFF;
    rbi_route_classes_init(&classes, &policy, NULL);
    assert_true(rbi_route_classless(&classes));
    policy.rules[0].mode = RBI_STAGE_STRICT;
    rbi_route_classes_init(&classes, &policy, NULL);
    assert_false(rbi_route_classless(&classes));
}

/* J20: rules about some callers, by their process. */
static void test_rules_about_callers(void **state)
{
    static const struct rbi_subject gate = {.uid = 1001,
                                            .gid = 50,
                                            .program = "/usr/bin/gate",
                                            .cgroup = "/game.slice/gate-1.service",
                                            .cgroup_length = 26};
    static const struct rbi_subject unknown = {.uid = 1001, .gid = 50, .program = ""};
    static struct rbi_policy policy;
    struct rbi_route_classes classes;
    (void)state;
    rbi_policy_defaults(&policy);
    for (unsigned i = 0; i < 6; i++) {
        add_rule(&policy, &every_method);
    }
    policy.rules[1].caller = (struct rbi_caller_match){.given = RBI_CALLER_BY_UID, .uid = 1001};
    policy.rules[2].caller = (struct rbi_caller_match){.given = RBI_CALLER_BY_UID, .uid = 0};
    policy.rules[3].caller = (struct rbi_caller_match){
        .given = RBI_CALLER_BY_UID | RBI_CALLER_BY_GID, .uid = 1001, .gid = 50};
    policy.rules[4].caller = (struct rbi_caller_match){.program = "gate"};
    policy.rules[5].caller =
        (struct rbi_caller_match){.program = "/usr/bin/gate", .cgroup = "/game.slice/**"};
    rbi_route_classes_init(&classes, &policy, &gate);
    assert_int_equal(rbi_route_rules(&classes, 1, false, 0, no_labels), 0x3b);
    policy.rules[3].caller.gid = 51;
    rbi_route_classes_init(&classes, &policy, &gate);
    assert_int_equal(rbi_route_rules(&classes, 1, false, 0, no_labels), 0x33);
    policy.rules[3].caller.gid = 50;
    rbi_route_classes_init(&classes, &policy, &unknown);
    assert_int_equal(rbi_route_rules(&classes, 1, false, 0, no_labels), 0x0b);
    rbi_route_classes_init(&classes, &policy, NULL);
    assert_int_equal(rbi_route_rules(&classes, 1, false, 0, no_labels), 0x01);
    policy.rules[0].mode = RBI_STAGE_OFF;
    rbi_route_classes_init(&classes, &policy, NULL);
    assert_true(rbi_route_classless(&classes)); /* rules about others cost nothing */
}

static void test_rules_methods(void **state)
{
    (void)state;
    static struct rbi_policy policy;
    struct rbi_route_classes classes;
    rbi_policy_defaults(&policy);
    struct rbi_label_rule rule = every_method;
    add_rule(&policy, &rule);
    rule.method_low = 10;
    rule.method_high = 20;
    add_rule(&policy, &rule);
    rule.method_low = rule.method_high = 0;
    add_rule(&policy, &rule);
    rule.method_low = UINT32_MAX;
    rule.method_high = UINT32_MAX;
    add_rule(&policy, &rule);
    rule.method_low = 20;
    rule.method_high = 10; /* nothing lies between */
    add_rule(&policy, &rule);
    rbi_route_classes_init(&classes, &policy, NULL);
    static const struct {
        uint32_t method;
        uint32_t rules;
    } rows[] = {{0, 5}, {1, 1}, {9, 1}, {10, 3}, {20, 3}, {21, 1}, {UINT32_MAX, 9}};
    for (size_t i = 0; i < RBI_ARRAY_SIZE(rows); i++) {
        assert_int_equal(rbi_route_rules(&classes, rows[i].method, false, 0, no_labels),
                         rows[i].rules);
    }
}

/* Key 0 is a key; no key is none (features 2.1). */
static void test_rules_keys(void **state)
{
    (void)state;
    static struct rbi_policy policy;
    struct rbi_route_classes classes;
    rbi_policy_defaults(&policy);
    struct rbi_label_rule rule = every_method;
    rule.key_mask = 0xff;
    rule.key_value = 0x0c;
    add_rule(&policy, &rule);
    rule.key_value = 0;
    add_rule(&policy, &rule);
    rule.key_mask = UINT64_C(1) << 63;
    rule.key_value = UINT64_MAX; /* bits outside the mask do not count */
    add_rule(&policy, &rule);
    rbi_route_classes_init(&classes, &policy, NULL);
    assert_int_equal(rbi_route_rules(&classes, 0, true, 0xabc0c, no_labels), 1);
    assert_int_equal(rbi_route_rules(&classes, 0, true, 0, no_labels), 2);
    assert_int_equal(rbi_route_rules(&classes, 0, false, 0, no_labels), 0);
    assert_int_equal(rbi_route_rules(&classes, 0, true, UINT64_C(0x8000000000000001), no_labels),
                     4);
}

static void test_rules_labels(void **state)
{
    (void)state;
    static struct rbi_policy policy;
    struct rbi_route_classes classes;
    rbi_policy_defaults(&policy);
    for (unsigned i = 0; i < RBI_LABELS_MAX; i++) {
        struct rbi_label_rule rule = every_method;
        rule.label_masks[i] = 0xf0;
        rule.label_values[i] = 0x30;
        add_rule(&policy, &rule);
    }
    rbi_route_classes_init(&classes, &policy, NULL);
    for (unsigned i = 0; i < RBI_LABELS_MAX; i++) {
        uint32_t labels[RBI_LABELS_MAX] = {0};
        labels[i] = 0xf3f;
        assert_int_equal(rbi_route_rules(&classes, 5, true, 6, labels), 1U << i);
        labels[i] = 0xf4f;
        assert_int_equal(rbi_route_rules(&classes, 5, true, 6, labels), 0);
    }
}

/* A player stays on one side: these values never change. */
static void test_share_golden(void **state)
{
    (void)state;
    static const struct {
        uint64_t key;
        uint32_t share;
    } golden[] = {{0, 0},
                  {1, 7044},
                  {2, 2294},
                  {42, 5040},
                  {10001, 6595},
                  {UINT64_C(0xffffffff), 7986},
                  {UINT64_C(0x123456789abcdef), 5304},
                  {UINT64_C(0xffffffffffffffff), 3933}};
    for (size_t i = 0; i < RBI_ARRAY_SIZE(golden); i++) {
        assert_int_equal(rbi_route_share(golden[i].key), golden[i].share);
    }
}

/* Sequential keys and keys in steps are spread: within five sigma of what the shares say. */
static void test_canary_shares(void **state)
{
    (void)state;
    static struct rbi_policy policy;
    struct rbi_route_classes classes;
    rbi_policy_defaults(&policy);
    policy.tags.count = 3;
    policy.tags.canaries[0].share = 500;
    policy.tags.canaries[1].share = 0;
    policy.tags.canaries[2].share = 3000;
    rbi_route_classes_init(&classes, &policy, NULL);
    static const uint64_t steps[] = {1, 3, 1024, UINT64_C(0x100000000)};
    for (size_t i = 0; i < RBI_ARRAY_SIZE(steps); i++) {
        unsigned counts[4] = {0};
        for (uint64_t n = 0; n < 100000; n++) {
            counts[rbi_route_canary(&classes, n * steps[i])]++;
        }
        assert_in_range(counts[1], 5000 - 345, 5000 + 345);
        assert_int_equal(counts[2], 0);
        assert_in_range(counts[3], 30000 - 725, 30000 + 725);
    }
    policy.tags.canaries[0].share = 10000;
    rbi_route_classes_init(&classes, &policy, NULL);
    for (uint64_t n = 0; n < 1000; n++) {
        assert_int_equal(rbi_route_canary(&classes, n), 1);
    }
    policy.tags.mode = RBI_STAGE_OFF;
    rbi_route_classes_init(&classes, &policy, NULL);
    assert_true(rbi_route_classless(&classes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policy_without_rules_is_classless),
        cmocka_unit_test(test_rules_about_callers),
        cmocka_unit_test(test_rules_methods),
        cmocka_unit_test(test_rules_keys),
        cmocka_unit_test(test_rules_labels),
        cmocka_unit_test(test_share_golden),
        cmocka_unit_test(test_canary_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
