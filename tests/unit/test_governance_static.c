/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Features B11: static over pushed. Items of the file's lists with ids stay as they are, whatever
 * is pushed over them; a push that would change one is found in the texts, an edit may.
 */
#include "bus/governance_static.h"
#include "support/governance.h"

#include <stdio.h>
#include <string.h>

#define LOBBY "/game/eu/pc/w1/g1/lobby"

static const char file[] = "rights:\n"
                           "  rules: [{id: door, action: deny, verbs: [connect]}]\n"
                           "clusters:\n"
                           "  - match: /game/**\n"
                           "    limits: [{id: each, rate: 10}]\n"
                           "    rules: [{id: vip, tag: gold}]\n"
                           "    tags: {canaries: [{id: new, tag: beta, share: 10%}]}\n"
                           "    degrade: [{id: off, methods: 1}]\n"
                           "  - match: /shop/**\n"
                           "    limits: [{id: buy, rate: 10}]\n";

static struct layered l;

/** What the file holds of @p pushed. @return whether it clashes; @p out is set */
static bool clashes(const char *pushed, struct rbi_governance_clash *out)
{
    layered_clear(&l);
    layered_add(&l, file);
    layered_add(&l, pushed);
    const int result = rbi_governance_clash(&l.room[0], &l.room[1], out);
    assert_in_range(result, 0, 1);
    return result == 1;
}

static void test_clash_names_both_places(void **state)
{
    static const struct {
        const char *pushed;
        const char *list;
        const char *id;
        unsigned line; /* in the file */
    } rows[] = {
        {"rights: {rules: [{id: new, verbs: [own]}, {id: door, verbs: [own]}]}", "rules", "door",
         2},
        {"clusters: [{match: " LOBBY ", limits: [{id: each, rate: 99}]}]", "limits", "each", 5},
        {"clusters: [{match: /**, rules: [{id: vip, tag: lead}]}]", "rules", "vip", 6},
        {"clusters: [{match: /game/eu/**, tags: {canaries: [{id: new, tag: beta}]}}]", "canaries",
         "new", 7},
        {"clusters: [{match: /game/**, degrade: [{id: off, action: mock, mock: '{}'}]}]", "degrade",
         "off", 8},
        {"clusters: [{match: /none/**, limits: [{id: buy, rate: 1}]}, "
         "{match: '/**', limits: [{id: buy, rate: 1}]}]",
         "limits", "buy", 10},
    };
    (void)state;
    for (size_t i = 0; i < RBI_ARRAY_SIZE(rows); i++) {
        struct rbi_governance_clash clash;
        assert_true(clashes(rows[i].pushed, &clash));
        assert_string_equal(clash.list, rows[i].list);
        assert_string_equal(clash.id, rows[i].id);
        assert_int_equal(clash.fixed.line, rows[i].line);
        assert_true(clash.fixed.column > 5);
        assert_int_equal(clash.pushed.line, 1);
        assert_true(clash.pushed.column > 20);
    }
    layered_clear(&l);
}

static void test_what_does_not_change_an_item_is_no_clash(void **state)
{
    static const char *const rows[] = {
        "{}",
        /* others, behind them */
        "clusters: [{match: /game/**, limits: [{id: all, rate: 1}], rules: [{id: x, tag: t}]}]",
        /* the same id in another list, and for clusters that the file's is not about */
        "clusters: [{match: /game/**, limits: [{id: vip, rate: 1}, {id: door, rate: 1}]}]",
        "clusters: [{match: /shop/**, limits: [{id: each, rate: 1}]}]",
        "rights: {rules: [{id: vip, verbs: [own]}]}",
        /* what it says already */
        "clusters: [{match: '/**', limits: [{id: each, rate: 10}]}]",
        "rights: {rules: [{id: door, action: deny, verbs: [connect]}]}",
        /* fields that have no id */
        "clusters: [{match: /game/**, balance: {mode: rr}, set: {mode: strict}}]",
    };
    (void)state;
    for (size_t i = 0; i < RBI_ARRAY_SIZE(rows); i++) {
        struct rbi_governance_clash clash;
        if (clashes(rows[i], &clash)) {
            fail_msg("%s: %s %s", rows[i], clash.list, clash.id);
        }
    }
    layered_clear(&l);
    struct rbi_governance_clash clash;
    struct rbi_governance none = RBI_GOVERNANCE_NULL;
    assert_int_equal(rbi_governance_clash(&none, &none, &clash), 0);
}

/* Whatever came first: with items that a push has already changed, those of the file hold. */
static void test_file_holds_over_a_push_and_an_edit_over_both(void **state)
{
    (void)state;
    layered_clear(&l);
    layered_add(&l, file);
    layered_add(&l, "clusters:\n"
                    "  - match: /**\n"
                    "    limits: [{id: each, rate: 99}, {id: all, rate: 5}]\n"
                    "    rules: [{id: more, tag: t}, {id: vip, tag: lead}]\n"
                    "    tags: {canaries: [{id: new, tag: alpha, share: 50%}]}\n"
                    "    degrade: [{id: off, methods: 9}]\n"
                    "    balance: {slots: 1024}\n");
    l.layers.fixed = 1;
    const struct rbi_policy *policy = layered_policy(&l, LOBBY);
    assert_int_equal(policy->limit_count, 2);
    assert_int_equal(policy->limits[0].rate, 10);
    assert_int_equal(policy->limits[1].rate, 5);
    assert_int_equal(policy->rule_count, 2); /* the file's stands first: it is asked first */
    assert_string_equal(policy->rules[0].tag, "gold");
    assert_string_equal(policy->rules[1].id, "more");
    assert_int_equal(policy->tags.count, 1);
    assert_string_equal(policy->tags.canaries[0].tag, "beta");
    assert_int_equal(policy->degrades[0].method_high, 1);
    assert_int_equal(policy->balance.slots, 1024); /* fields without an id are the upper's */
    /* Of a cluster that the file says nothing of, they are the push's. */
    policy = layered_policy(&l, "/none/eu/pc/w1/g1/lobby");
    assert_int_equal(policy->limits[0].rate, 99);
    /* What an operator sets by itself is no push. */
    layered_add(&l, "clusters: [{match: /game/**, limits: [{id: each, rate: 3}]}]");
    assert_int_equal(layered_policy(&l, LOBBY)->limits[0].rate, 3);
    l.layers.fixed = 0;
    layered_clear(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clash_names_both_places),
        cmocka_unit_test(test_what_does_not_change_an_item_is_no_clash),
        cmocka_unit_test(test_file_holds_over_a_push_and_an_edit_over_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
