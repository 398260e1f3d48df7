/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a configuration must not say of clusters, instances, realms and rights: each error with its
 * place, and with what was expected there.
 */
#include "bus/governance.h"
#include "support/config.h"

#include <string.h>

#define LOBBY "/game/eu/pc/w1/g1/lobby"

static struct rbi_config_errors errors;

/** The only error is at this place and says this. */
static void assert_refused(const char *text, unsigned line, unsigned column, const char *says)
{
    struct rbi_governance refused = RBI_GOVERNANCE_NULL;
    const int r = rbi_governance_parse(text, strlen(text), &refused, &errors);
    config_refused_once(r, &errors, line, column, says);
    assert_null(refused.tree.nodes);
}

static void test_parse_refuses_keys_and_shapes(void **state)
{
    (void)state;
    assert_refused("clusters:\n  - match: /a/**\n    balanse: {}\n", 3, 5,
                   "clusters[0]: unknown key \"balanse\"; did you mean balance?");
    assert_refused("cluster: []\n", 1, 1, "unknown section; did you mean clusters?");
    assert_refused("clusters:\n  - {match: /a, match: /b}\n", 2, 17,
                   "duplicate key, given in line 2");
    assert_refused("clusters: []\nclusters: []\n", 2, 1, "duplicate key, given in line 1");
    assert_refused("clusters:\n  - {set: {mode: off}}\n", 2, 5, "clusters[0]: match is missing");
    assert_refused("clusters: {}\n", 1, 11, "expected a list of at most 1024 items, found a map");
    assert_refused("clusters: 7\n", 1, 11, "expected a list");
    assert_refused("clusters:\n", 1, 10, "found nothing");
    assert_refused("clusters: [{match: /a, set: }]\n", 1, 29,
                   "clusters[0].set: expected a map of mode");
    assert_refused("clusters: [{match: /a, set: [a]}]\n", 1, 29, "found a list");
    assert_refused("clusters: [{match: {a: b}}]\n", 1, 20, "expected a pattern");
    assert_refused("clusters: [7]\n", 1, 12, "clusters[0]: expected a map of match, balance");
    assert_refused("clusters: [{[a]: b, match: /a}]\n", 1, 13, "expected a key, found a list");
    assert_refused("clusters: [{match: /a, <<: {}}]\n", 1, 24, "merge keys are not taken");
    assert_refused("instances: {/a/b/c/d/e/f: {}}\n", 1, 13, "the path of an instance");
    assert_refused("instances: {" LOBBY "/1: {}, " LOBBY "/1: {}}\n", 1, 44, "duplicate key");
    assert_refused("realms: {a b: {}}\n", 1, 10, "expected letters, digits");
}

static void test_parse_refuses_values(void **state)
{
    (void)state;
    assert_refused("clusters: [{match: 'a b'}]\n", 1, 20, "byte that is neither");
    assert_refused("clusters: [{match: /a, panic: {enter: 50}}]\n", 1, 39,
                   "the unit is missing: %");
    assert_refused("clusters: [{match: /a, panic: {enter: 101%}}]\n", 1, 39, "out of range");
    assert_refused("clusters: [{match: /a, panic: {enter: 1.5%}}]\n", 1, 39, "whole numbers only");
    assert_refused("clusters: [{match: /a, balance: {slots: 1000}}]\n", 1, 41, "a power of two");
    assert_refused("clusters: [{match: /a, balance: {slots: 524288}}]\n", 1, 41, "out of range");
    assert_refused("clusters: [{match: /a, balance: {mode: hush}}]\n", 1, 40, "did you mean hash?");
    assert_refused("clusters: [{match: /a, balance: {rehash_delay: 3}}]\n", 1, 48,
                   "unit is missing");
    assert_refused("clusters: [{match: /a, overload: {sojourn_target: 5}}]\n", 1, 51, "us, ms, s");
    assert_refused("clusters: [{match: /a, limits: [{id: a, rate: 0}]}]\n", 1, 47, "out of range");
    assert_refused("clusters: [{match: /a, limits: [{id: a, rate: -1}]}]\n", 1, 47, "negative");
    assert_refused("clusters: [{match: /a, limits: [{rate: 1}]}]\n", 1, 33, "id is missing");
    assert_refused("clusters: [{match: /a, limits: [{id: a, rate: 1}, {id: a, rate: 2}]}]\n", 1, 51,
                   "id \"a\" is taken, in line 1");
    assert_refused("clusters: [{match: /a, limits: [{id: a, rate: 1, methods: 9..3}]}]\n", 1, 59,
                   "the first is above the second");
    assert_refused("clusters: [{match: /a, limits: [{id: a, rate: 1, methods: 3-9}]}]\n", 1, 59,
                   "N, N..M, all");
    assert_refused("clusters: [{match: /a, tags: {canaries: [{id: a, tag: b, share: 0.125%}]}}]\n",
                   1, 65, "one or two decimals");
    assert_refused("clusters: [{match: /a, degrade: [{id: a, mock_hex: abc}]}]\n", 1, 52,
                   "half a byte");
    assert_refused("clusters: [{match: /a, degrade: [{id: a, on: [maunal]}]}]\n", 1, 47,
                   "did you mean manual?");
    assert_refused("instances: {" LOBBY "/1: {weight: 1001}}\n", 1, 49, "out of range");
    assert_refused("instances: {" LOBBY "/1: {isolated: yes}}\n", 1, 51, "one of false, true");
    assert_refused("instances: {" LOBBY "/1: {set: a.b}}\n", 1, 46, "a set as name.area.group");
    assert_refused("instances: {" LOBBY "/1: {idc: a/b/c}}\n", 1, 46, "group, group/zone");
    assert_refused("instances: {" LOBBY "/1: {idc: a b}}\n", 1, 46, "a location as");
    assert_refused("rights: {rules: [{id: a}]}\n", 1, 18, "verbs is missing");
}

/* Fields that are right each for itself and do not fit together. */
static void test_parse_refuses_what_does_not_fit_together(void **state)
{
    (void)state;
    assert_refused("clusters: [{match: /a, panic: {enter: 70%}}]\n", 1, 12, "at most leave");
    assert_refused("clusters: [{match: /a, degrade: [{id: x, mock: y, mock_file: z}]}]\n", 1, 12,
                   "one of mock, mock_hex, mock_file");
    assert_refused("clusters: [{match: /a, shield: {close_ok: 6}}]\n", 1, 12, "at most close_of");
    assert_refused("clusters: [{match: /a, shield: {open_min: 2m}}]\n", 1, 12, "at most open_max");
    assert_refused("clusters: [{match: /a, shield: {windows: []}}]\n", 1, 12, "one at least");
    assert_refused("clusters: [{match: /a, balance: {keyless: hash}}]\n", 1, 12, "one of least");
    assert_refused("clusters: [{match: /a, balance: {hash_bound: 90%}}]\n", 1, 12,
                   "more than 100%");
    assert_refused("clusters: [{match: /a, locality: {leave: 90%}}]\n", 1, 12, "at most back");
    assert_refused("clusters: [{match: /a, rules: [{id: a}]}]\n", 1, 12, "where the messages go");
    assert_refused("clusters: [{match: /a, rules: [{id: a, tag: b, key: {mask: 1, value: 2}}]}]\n",
                   1, 12, "it never matches");
    assert_refused("clusters: [{match: /a, tags: {canaries: [{id: a, tag: x, share: 60%}, "
                   "{id: b, tag: y, share: 41%}]}}]\n",
                   1, 12, "at most 100% together");
    assert_refused("rights: {rules: [{id: a, verbs: [own]}, {id: b, verbs: [own], methods: 3}]}\n",
                   1, 41, "rights.rules[1]: it names methods, and not the verb send");
    assert_refused("rights: {rules: [{id: a, verbs: [own], tag: 'x,y'}]}\n", 1, 18,
                   "rights.rules[0]: its tag has a comma");
    assert_refused("clusters: [{match: /a, tags: {canaries: [{id: a, tag: 'x,y', share: 1%}]}}]\n",
                   1, 12, "tags.canaries: expected one tag");
    assert_refused("clusters: [{match: /a, rules: [{id: a, tag: 'x,y'}]}]\n", 1, 12,
                   "rules: expected one tag");
}

static void test_parse_lists_every_error_with_its_place(void **state)
{
    struct rbi_governance refused = RBI_GOVERNANCE_NULL;
    static const char text[] = "clusters:\n"
                               "  - match: /a/**\n"
                               "    panic: {enter: x, nothing: [1, {2: 3}], leave: y}\n"
                               "    rules: [{id: r, tag: t, labels: [{mask: z}]}]\n"
                               "  - {}\n"
                               "instances: {x: {weight: 5}}\n";
    (void)state;
    assert_int_equal(rbi_governance_parse(text, sizeof text - 1, &refused, &errors), 1);
    assert_int_equal(errors.count, 6);
    assert_int_equal(errors.items[1].column, 23);
    assert_non_null(strstr(errors.items[3].text, "clusters[0].rules[0].labels[0].mask: expected"));
    assert_int_equal(errors.items[4].line, 5);
    assert_int_equal(errors.items[5].line, 6);
}

static void test_parse_refuses_keys_of_the_daemon_where_only_these_may_be(void **state)
{
    (void)state;
    assert_refused("daemon: {log_level: info}\n", 1, 1, "unknown section");
    assert_refused("&a clusters: []\n", 1, 1, "anchors are not taken");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_refuses_keys_and_shapes),
        cmocka_unit_test(test_parse_refuses_values),
        cmocka_unit_test(test_parse_refuses_what_does_not_fit_together),
        cmocka_unit_test(test_parse_lists_every_error_with_its_place),
        cmocka_unit_test(test_parse_refuses_keys_of_the_daemon_where_only_these_may_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
