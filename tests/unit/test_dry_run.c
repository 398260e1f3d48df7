/* SPDX-License-Identifier: Apache-2.0 */
/* Features 2.6: every rule has a dry run, and is counted under its own name. */
#include "bus/dry_run.h"
#include "support/test.h"

#include <string.h>

static struct rbi_policy policy;

static void begin(void)
{
    rbi_policy_defaults(&policy);
    policy.limit_count = 2;
    memcpy(policy.limits[0].id, "wet", 4);
    memcpy(policy.limits[1].id, "dry", 4);
    policy.limits[1].dry_run = 1;
    policy.rule_count = 2;
    memcpy(policy.rules[0].id, "wet", 4);
    memcpy(policy.rules[1].id, "dry", 4);
    policy.tags.count = 2;
    memcpy(policy.tags.canaries[0].id, "wet", 4);
    memcpy(policy.tags.canaries[1].id, "dry", 4);
}

static void test_has_knows_what_is_run_dry(void **state)
{
    static const char *const ids[] = {"", "wet", "dry", "other"};
    (void)state;
    begin();
    policy.rules[1].dry_run = 1;
    policy.tags.canaries[1].dry_run = 1;
    for (uint32_t kind = 0; kind <= RBI_DRY_KINDS; kind++) {
        const bool named = kind == RBI_DRY_LIMIT || kind == RBI_DRY_CANARY || kind == RBI_DRY_RULE;
        for (unsigned i = 0; i < RBI_ARRAY_SIZE(ids); i++) {
            assert_int_equal(rbi_dry_has(&policy, kind, ids[i]), named && i == 2);
        }
    }
    policy.set.dry_run = policy.locality.dry_run = policy.tags.dry_run = 1;
    assert_true(rbi_dry_has(&policy, RBI_DRY_SET, ""));
    assert_false(rbi_dry_has(&policy, RBI_DRY_SET, "dry"));
    assert_true(rbi_dry_has(&policy, RBI_DRY_LOCALITY, ""));
    assert_true(rbi_dry_has(&policy, RBI_DRY_TAGS, ""));
    assert_true(rbi_dry_has(&policy, RBI_DRY_CANARY, "wet")); /* the stage is, with all in it */
}

static void test_routes_says_whether_any_stage_is(void **state)
{
    uint32_t *const flags[] = {&policy.set.dry_run, &policy.tags.dry_run, &policy.locality.dry_run,
                               &policy.tags.canaries[1].dry_run, &policy.rules[0].dry_run};
    (void)state;
    begin();
    assert_false(rbi_dry_routes(&policy)); /* limits are no stage */
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(flags); i++) {
        begin();
        *flags[i] = 1;
        assert_true(rbi_dry_routes(&policy));
    }
}

static void test_kinds_have_names(void **state)
{
    (void)state;
    for (uint32_t kind = RBI_DRY_LIMIT; kind < RBI_DRY_KINDS; kind++) {
        assert_string_not_equal(rbi_dry_kind_name(kind), "?");
    }
    assert_string_equal(rbi_dry_kind_name(RBI_DRY_KINDS), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_has_knows_what_is_run_dry),
        cmocka_unit_test(test_routes_says_whether_any_stage_is),
        cmocka_unit_test(test_kinds_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
