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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables_of_the_guide),
        cmocka_unit_test(test_tables_of_the_corners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
