/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single changes as a layer of text (features J16, J19, J27, J31), and the comparison of texts:
 * what is written reads back as the same list, and only what differs is reported.
 */
#include "bus/governance_diff.h"
#include "bus/governance_edit.h"
#include "support/governance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOBBY "/game/eu/pc/w1/g1/lobby"

static struct rbi_config_errors errors;

static void parse(const char *text, struct rbi_governance *out)
{
    config_accepted(rbi_governance_parse(text, strlen(text), out, &errors), text, &errors);
}

static void set(struct rbi_edits *edits,
                const char *target,
                const char *list,
                const char *id,
                const char *key,
                const char *value)
{
    struct rbi_edit edit = {.list = ""};
    (void)snprintf(edit.target, sizeof edit.target, "%s", target);
    (void)snprintf(edit.list, sizeof edit.list, "%s", list);
    (void)snprintf(edit.id, sizeof edit.id, "%s", id);
    (void)snprintf(edit.key, sizeof edit.key, "%s", key);
    if (value) {
        (void)snprintf(edit.value, sizeof edit.value, "%s", value);
        assert_int_equal(rbi_edits_set(edits, &edit), 0);
    } else {
        rbi_edits_clear(edits, &edit);
    }
}

static void assert_prints(const struct rbi_edits *edits, const char *expected)
{
    char *text = NULL;
    size_t size = 0;
    assert_int_equal(rbi_edits_print(edits, &text, &size), 0);
    assert_string_equal(text, expected);
    assert_int_equal(size, strlen(expected));
    free(text);
}

static const char *const printed =
    "instances:\n"
    "  \"" LOBBY "/1\": {isolated: \"true\", weight: \"7\"}\n"
    "  \"" LOBBY "/2\": {tags: \"pre,x=*\"}\n"
    "clusters:\n"
    "  - {match: \"/game/**\", degrade: [{id: \"news\", manual: \"true\"}], "
    "limits: [{id: \"a\", burst: \"9\", rate: \"5\"}, {id: \"b\", rate: \"1\"}]}\n"
    "  - {match: \"/web/**\", limits: [{id: \"a\", rate: \"2\"}]}\n";

static void make(struct rbi_edits *edits)
{
    *edits = RBI_EDITS_NULL;
    set(edits, "/game/**", "limits", "b", "rate", "1");
    set(edits, "/web/**", "limits", "a", "rate", "2");
    set(edits, LOBBY "/2", "", "", "tags", "pre,x=*");
    set(edits, "/game/**", "limits", "a", "rate", "4");
    set(edits, LOBBY "/1", "", "", "weight", "7");
    set(edits, "/game/**", "degrade", "news", "manual", "true");
    set(edits, "/game/**", "limits", "a", "burst", "9");
    set(edits, LOBBY "/1", "", "", "isolated", "true");
    set(edits, "/game/**", "limits", "a", "rate", "5"); /* again: in its place */
}

static void test_print_and_load_are_inverse(void **state)
{
    struct rbi_edits edits;
    struct rbi_edits again;
    struct rbi_governance parsed;
    (void)state;
    make(&edits);
    assert_prints(&edits, printed);
    parse(printed, &parsed);
    assert_int_equal(rbi_edits_load(&again, &parsed), 0);
    assert_int_equal(again.count, edits.count);
    assert_memory_equal(again.items, edits.items, edits.count * sizeof edits.items[0]);
    rbi_edits_deinit(&again);
    rbi_edits_deinit(&edits);
    rbi_governance_deinit(&parsed);
}

static void test_clear_takes_a_value_or_an_item(void **state)
{
    struct rbi_edits edits;
    (void)state;
    make(&edits);
    set(&edits, "/game/**", "limits", "a", "", NULL);
    set(&edits, "/game/**", "degrade", "news", "manual", NULL);
    set(&edits, LOBBY "/1", "", "", "weight", NULL);
    set(&edits, LOBBY "/2", "", "", "", NULL);
    set(&edits, LOBBY "/9", "", "", "weight", NULL); /* not there */
    assert_prints(&edits,
                  "instances:\n  \"" LOBBY "/1\": {isolated: \"true\"}\n"
                  "clusters:\n  - {match: \"/game/**\", limits: [{id: \"b\", rate: \"1\"}]}\n"
                  "  - {match: \"/web/**\", limits: [{id: \"a\", rate: \"2\"}]}\n");
    set(&edits, "/game/**", "limits", "b", "", NULL);
    set(&edits, "/web/**", "limits", "a", "", NULL);
    set(&edits, LOBBY "/1", "", "", "isolated", NULL);
    assert_prints(&edits, "{}\n");
    rbi_edits_deinit(&edits);
}

static void test_load_of_nothing_is_empty(void **state)
{
    const struct rbi_governance none = RBI_GOVERNANCE_NULL;
    struct rbi_edits edits;
    (void)state;
    assert_int_equal(rbi_edits_load(&edits, &none), 0);
    assert_int_equal(edits.count, 0);
    assert_prints(&edits, "{}\n");
}

/* mock on and off leave the other triggers alone. */
static void test_manual_sets_one_trigger(void **state)
{
    static struct layered l;
    (void)state;
    layered_add(&l, "clusters: [{match: '/**', degrade: [{id: n, action: mock, on: [limited]}]}]");
    layered_add(&l, "clusters: [{match: '/**', degrade: [{id: n, manual: true}]}]");
    layered_policy(&l, LOBBY);
    assert_int_equal(l.policy.degrades[0].triggers, RBI_DEGRADE_LIMITED | RBI_DEGRADE_MANUAL);
    layered_add(&l, "clusters: [{match: '/**', degrade: [{id: n, manual: false}]}]");
    layered_policy(&l, LOBBY);
    assert_int_equal(l.policy.degrades[0].triggers, RBI_DEGRADE_LIMITED);
    layered_clear(&l);
}

/* ---- comparison ------------------------------------------------------------------------- */

static char report[4096];

static void
on_difference(void *context, const char *name, const char *old_value, const char *new_value)
{
    const size_t used = strlen(report);
    (void)context;
    (void)snprintf(report + used, sizeof report - used, "%s: %s -> %s\n", name,
                   old_value ? old_value : "-", new_value ? new_value : "-");
}

static int differ(const char *old, const char *next)
{
    struct rbi_governance before;
    struct rbi_governance after;
    report[0] = '\0';
    parse(old, &before);
    parse(next, &after);
    const int count = rbi_governance_diff(&before, &after, on_difference, NULL);
    rbi_governance_deinit(&before);
    rbi_governance_deinit(&after);
    return count;
}

static void test_diff_names_each_value_that_differs(void **state)
{
    (void)state;
    assert_int_equal(
        differ("clusters:\n"
               "  - match: /a/**\n"
               "    limits: [{id: x, rate: 1}, {id: y, rate: 2}]\n"
               "    locality: {priority: [[a, b]]}\n"
               "instances: {" LOBBY "/1: {weight: 5}}\n"
               "rights: {rules: [{id: r, verbs: [own, send]}]}\n",
               "instances: {" LOBBY "/1: {weight: 5}, " LOBBY "/2: {isolated: true}}\n"
               "clusters:\n"
               "  - {match: /a/**, locality: {priority: [[a, c]]}, limits: [{rate: 3, id: y}]}\n"
               "rights: {rules: [{verbs: [own], id: r}]}\n"),
        6);
    assert_string_equal(report, "clusters[/a/**].limits[x].id: x -> -\n"
                                "clusters[/a/**].limits[x].rate: 1 -> -\n"
                                "clusters[/a/**].limits[y].rate: 2 -> 3\n"
                                "clusters[/a/**].locality.priority[0][1]: b -> c\n"
                                "instances." LOBBY "/2.isolated: - -> true\n"
                                "rights.rules[r].verbs[1]: send -> -\n");
}

static void test_diff_of_the_same_in_other_layout_is_none(void **state)
{
    (void)state;
    assert_int_equal(differ("clusters: [{match: /a, set: {mode: off}}, {match: /a, token: off}]\n",
                            "# the same\nclusters:\n- set:\n    mode: \"off\"\n  match: '/a'\n"
                            "- token: off\n  match: /a\n"),
                     0);
    assert_int_equal(differ("{}", "clusters: []"), 1);
    assert_string_equal(report, "clusters: - -> empty\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_print_and_load_are_inverse),
        cmocka_unit_test(test_clear_takes_a_value_or_an_item),
        cmocka_unit_test(test_load_of_nothing_is_empty),
        cmocka_unit_test(test_manual_sets_one_trigger),
        cmocka_unit_test(test_diff_names_each_value_that_differs),
        cmocka_unit_test(test_diff_of_the_same_in_other_layout_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
