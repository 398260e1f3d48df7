/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The router chain against its truth tables (features 1.2 T18 to T25, 1.4 B14 to B17, 2.5, 2.6;
 * scenarios 88, 91). The tables of the guide are data of this test, so that what is promised is
 * what is tested; those in route_table.md go into the corners.
 */
#include "route_table.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 4U

/* The cells of "| a | b |"; backquotes and blanks around them do not count. */
static unsigned split(char *line, char **cells)
{
    unsigned count = 0;
    char *rest = strchr(line, '|') + 1;
    for (char *end; count < COLUMNS && (end = strchr(rest, '|')) != NULL; rest = end + 1) {
        *end = '\0';
        rest += strspn(rest, " `");
        for (char *last = end - 1; last >= rest && strchr(" `", *last) != NULL; last--) {
            *last = '\0';
        }
        cells[count++] = rest;
    }
    return count;
}

static void check_row(struct route_table *table, char **cells, const char *where)
{
    char result[512];
    if (!route_table_row(table, cells[0], cells[1], cells[2])) {
        fail_msg("%s: not understood", where);
    }
    route_table_run(table, NULL);
    route_table_result(table, cells[3], result, sizeof result);
    if (strcmp(result, cells[3]) != 0) {
        fail_msg("%s: %s | %s | %s: expected \"%s\", got \"%s\"", where, cells[0], cells[1],
                 cells[2], cells[3], result);
    }
}

/*
 * A line "Policy: `...`" says what the tables after it have in common; their rows are caller,
 * message, instances, result. Other tables have no such heading.
 */
static unsigned check_file(const char *path)
{
    static struct route_table table;
    FILE *file = fopen(path, "r");
    char line[1024];
    unsigned rows = 0;
    unsigned number = 0;
    bool ours = false;
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        char where[300];
        char *cells[COLUMNS];
        snprintf(where, sizeof where, "%s:%u", path, ++number);
        if (strncmp(line, "Policy: `", 9) == 0) {
            *strchr(line + 9, '`') = '\0';
            if (!route_table_policy(&table, line + 9)) {
                fail_msg("%s: policy not understood", where);
            }
        } else if (strncmp(line, "| caller |", 10) == 0) {
            ours = true;
        } else if (line[0] != '|') {
            ours = false;
        } else if (ours && strstr(line, "---") == NULL) {
            assert_int_equal(split(line, cells), COLUMNS);
            check_row(&table, cells, where);
            rows++;
        }
    }
    assert_int_equal(fclose(file), 0);
    return rows;
}

static void test_tables_of_the_guide(void **state)
{
    (void)state;
    assert_true(check_file(ROUTE_GUIDE) >= 90);
}

static void test_tables_of_the_corners(void **state)
{
    (void)state;
    assert_true(check_file(ROUTE_CORNERS) >= 90);
}

/* ---- what is told of each instance -------------------------------------------------------- */

static const struct rbi_route_entry *entry_of(const struct route_table *table, const char *name)
{
    for (unsigned i = 0; i < table->result.entry_count; i++) {
        const struct rbi_route_entry *entry = &table->entries[i];
        if (strcmp(table->instances[entry->cluster][entry->index].name, name) == 0) {
            return entry;
        }
    }
    fail_msg("no instance %s", name);
    return NULL;
}

struct verdict {
    const char *name;
    enum rbi_route_stage stage;
    enum rbi_route_reason reason;
    unsigned rule;
};

static void test_reasons_of_those_who_fell_out(void **state)
{
    (void)state;
    static struct route_table table;
    static const struct verdict verdicts[] = {
        {"in", RBI_ROUTE_IN, RBI_ROUTE_FITS, RBI_ROUTE_NO_RULE},
        {"starting", RBI_ROUTE_STATE, RBI_ROUTE_STARTING, RBI_ROUTE_NO_RULE},
        {"draining", RBI_ROUTE_STATE, RBI_ROUTE_DRAINING, RBI_ROUTE_NO_RULE},
        {"closed", RBI_ROUTE_STATE, RBI_ROUTE_CLOSED, RBI_ROUTE_NO_RULE},
        {"isolated", RBI_ROUTE_STATE, RBI_ROUTE_ISOLATED, RBI_ROUTE_NO_RULE},
        {"staged", RBI_ROUTE_STATE, RBI_ROUTE_STAGED, RBI_ROUTE_NO_RULE},
        {"weightless", RBI_ROUTE_STATE, RBI_ROUTE_WEIGHT_0, RBI_ROUTE_NO_RULE},
        {"hidden", RBI_ROUTE_ACL, RBI_ROUTE_INVISIBLE, RBI_ROUTE_NO_RULE},
        {"imported", RBI_ROUTE_REALM, RBI_ROUTE_OTHER_REALM, RBI_ROUTE_NO_RULE},
        {"foreign", RBI_ROUTE_SET, RBI_ROUTE_OTHER_SET, RBI_ROUTE_NO_RULE},
        {"other", RBI_ROUTE_TAG, RBI_ROUTE_OTHER_TAG, 1},
        {"wrong", RBI_ROUTE_RULES, RBI_ROUTE_NO_TARGET, 1},
        {"sick", RBI_ROUTE_HEALTH, RBI_ROUTE_SHIELDED, RBI_ROUTE_NO_RULE},
    };
    assert_true(route_table_policy(&table, "set=strict tag=prefer canary=(tag=v1,share=1) "
                                           "canary=(tag=v2,share=1) rule=(mode=off) "
                                           "rule=(idc=r1)"));
    assert_true(route_table_row(
        &table, "set=app.s.1", "canary=2 rules=1",
        "in(set=app.s.1,tags=v2,idc=r1) starting(starting) draining(draining) closed(closed) "
        "isolated(isolated) staged(staged) weightless(weight=0) hidden(hidden) foreign "
        "other(set=app.s.1) wrong(set=app.s.1,tags=v2) sick(set=app.s.1,tags=v2,idc=r1,shielded) "
        "; imported"));
    route_table_run(&table, NULL);
    for (size_t i = 0; i < RBI_ARRAY_SIZE(verdicts); i++) {
        const struct verdict *expected = &verdicts[i];
        const struct rbi_route_entry *entry = entry_of(&table, expected->name);
        if (entry->stage != expected->stage || entry->reason != expected->reason ||
            entry->rule != expected->rule || entry->would_stage != RBI_ROUTE_IN) {
            fail_msg("%s: %s, %s, rule %u", expected->name,
                     rbi_route_stage_name((enum rbi_route_stage)entry->stage),
                     rbi_route_reason_text((enum rbi_route_reason)entry->reason), entry->rule);
        }
    }
}

/* Rules narrow in their order: the last that took anybody left nobody. */
static void test_rule_that_left_nobody(void **state)
{
    (void)state;
    static struct route_table table;
    assert_true(route_table_policy(&table, "tag=strict canary=(tag=v2,share=1) rule=(mode=off) "
                                           "rule=(idc=r1,mode=strict) rule=(idc=r2,mode=strict) "
                                           "rule=(idc=r3,mode=strict)"));
    (void)snprintf(table.policy.rules[2].id, RBI_LABEL_MAX, "second");
    (void)snprintf(table.policy.tags.canaries[0].id, RBI_LABEL_MAX, "early");
    assert_true(route_table_row(&table, "-", "rules=123", "a(idc=r1) b(idc=r2) c(draining)"));
    route_table_run(&table, NULL);
    assert_int_equal(table.result.emptied, RBI_ROUTE_RULES);
    unsigned rule = rbi_route_emptied_by(table.entries, table.result.entry_count, RBI_ROUTE_RULES);
    assert_int_equal(rule, 2);
    assert_string_equal(rbi_route_rule_id(&table.policy, RBI_ROUTE_RULES, rule), "second");
    assert_true(route_table_row(&table, "-", "canary=1", "a b"));
    route_table_run(&table, NULL);
    assert_int_equal(table.result.emptied, RBI_ROUTE_TAG);
    rule = rbi_route_emptied_by(table.entries, table.result.entry_count, RBI_ROUTE_TAG);
    assert_string_equal(rbi_route_rule_id(&table.policy, RBI_ROUTE_TAG, rule), "early");
    assert_true(route_table_row(&table, "-", "-", "a(draining)"));
    route_table_run(&table, NULL);
    rule = rbi_route_emptied_by(table.entries, table.result.entry_count, RBI_ROUTE_STATE);
    assert_int_equal(rule, RBI_ROUTE_NO_RULE);
    assert_string_equal(rbi_route_rule_id(&table.policy, RBI_ROUTE_STATE, rule), "");
}

struct dry_row {
    const char *policy;
    const char *caller;
    const char *message;
    const char *instances;
    struct verdict would; /* no name: nobody */
    unsigned count;       /* of those that would fall out there */
};

static const struct dry_row dry_rows[] = {
    {"set=strict set_dry",
     "set=app.s.1",
     "-",
     "a(set=app.s.1) b(set=app.s.2)",
     {"b", RBI_ROUTE_SET, RBI_ROUTE_OTHER_SET, RBI_ROUTE_NO_RULE},
     1},
    {"tag=prefer tag_dry",
     "-",
     "-",
     "a b(tags=v2)",
     {"b", RBI_ROUTE_TAG, RBI_ROUTE_TAGGED, RBI_ROUTE_NO_RULE},
     1},
    {"tag=prefer tag_dry",
     "-",
     "tag=v2",
     "a b(tags=v2)",
     {"a", RBI_ROUTE_TAG, RBI_ROUTE_OTHER_TAG, RBI_ROUTE_NO_RULE},
     1},
    {"tag=prefer tag_dry",
     "-",
     "tag=v2",
     "a b(tags=v2,shielded)",
     {"b", RBI_ROUTE_TAG, RBI_ROUTE_SICK_TAG, RBI_ROUTE_NO_RULE},
     1},
    {"tag=prefer tag_dry canary=(tag=v2,share=1)",
     "-",
     "canary=1",
     "a b(tags=v2) c",
     {"a", RBI_ROUTE_TAG, RBI_ROUTE_OTHER_TAG, 0},
     2},
    {"tag=prefer canary=(tag=v2,share=1,dry)",
     "-",
     "canary=1",
     "a b(tags=v2) c",
     {"c", RBI_ROUTE_TAG, RBI_ROUTE_OTHER_TAG, 0},
     2},
    {"rule=(idc=r1,dry)",
     "-",
     "rules=0",
     "a(idc=r1) b",
     {"b", RBI_ROUTE_RULES, RBI_ROUTE_NO_TARGET, 0},
     1},
    {"rule=(idc=r1,dry)", "-", "rules=0", "a(idc=r1,shielded) b", {NULL, 0, 0, 0}, 0},
    {"rule=(idc=r1,dry,mode=strict)",
     "-",
     "rules=0",
     "a b",
     {"b", RBI_ROUTE_RULES, RBI_ROUTE_NO_TARGET, 0},
     2},
    {"rule=(tag=read,dry)",
     "-",
     "rules=0",
     "a b(tags=read)",
     {"a", RBI_ROUTE_RULES, RBI_ROUTE_NO_TARGET, 0},
     1},
    {"rule=(tag=read,dry)", "-", "rules=0", "a b(tags=read,shielded)", {NULL, 0, 0, 0}, 0},
    {"locality=prefer locality_dry",
     "idc=r1",
     "-",
     "a(idc=r1) b(idc=r2)",
     {"b", RBI_ROUTE_LOCALITY, RBI_ROUTE_FAR, RBI_ROUTE_NO_RULE},
     1},
    {"locality=strict locality_dry",
     "idc=r1",
     "-",
     "a b(idc=r2)",
     {"b", RBI_ROUTE_LOCALITY, RBI_ROUTE_FAR, RBI_ROUTE_NO_RULE},
     2},
};

static void test_what_dry_runs_would_do(void **state)
{
    (void)state;
    static struct route_table table;
    for (size_t i = 0; i < RBI_ARRAY_SIZE(dry_rows); i++) {
        const struct dry_row *row = &dry_rows[i];
        unsigned count = 0;
        assert_true(route_table_policy(&table, row->policy));
        assert_true(route_table_row(&table, row->caller, row->message, row->instances));
        route_table_run(&table, NULL);
        for (unsigned j = 0; j < table.result.entry_count; j++) {
            count += table.entries[j].would_stage != RBI_ROUTE_IN ? 1U : 0U;
        }
        if (count != row->count) {
            fail_msg("%s | %s: %u would fall out", row->policy, row->instances, count);
        }
        if (row->would.name != NULL) {
            const struct rbi_route_entry *entry = entry_of(&table, row->would.name);
            assert_int_equal(entry->would_stage, row->would.stage);
            assert_int_equal(entry->would_reason, row->would.reason);
            assert_int_equal(entry->would_rule, row->would.rule);
            assert_int_equal(table.result.steps[row->would.stage].would_out, row->count);
        }
    }
}

static void test_names_and_texts(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RBI_ROUTE_STAGES; i++) {
        assert_string_not_equal(rbi_route_stage_name((enum rbi_route_stage)i), "unknown");
    }
    for (unsigned i = 0; i < RBI_ROUTE_REASONS; i++) {
        assert_string_not_equal(rbi_route_reason_text((enum rbi_route_reason)i), "unknown");
    }
    static const unsigned levels[RBI_ROUTE_RANKS] = {0, 1, 2, 3, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5};
    for (unsigned i = 0; i < RBI_ROUTE_RANKS; i++) {
        assert_int_equal(rbi_route_level((enum rbi_route_rank)i), levels[i]);
    }
}

/* No cluster is known, or one without instances. */
static void test_nobody_at_all(void **state)
{
    (void)state;
    static struct route_table table;
    assert_true(route_table_policy(&table, "locality=prefer set=strict realm=prefer"));
    assert_true(route_table_row(&table, "idc=r1 set=app.s.1", "tag=v2 rules=0123", "-"));
    route_table_run(&table, NULL);
    assert_int_equal(table.result.entry_count, 0);
    assert_int_equal(table.result.emptied, RBI_ROUTE_STATE);
    assert_int_equal(table.result.keyed_emptied, RBI_ROUTE_STATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables_of_the_guide),
        cmocka_unit_test(test_tables_of_the_corners),
        cmocka_unit_test(test_reasons_of_those_who_fell_out),
        cmocka_unit_test(test_rule_that_left_nobody),
        cmocka_unit_test(test_what_dry_runs_would_do),
        cmocka_unit_test(test_names_and_texts),
        cmocka_unit_test(test_nobody_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
