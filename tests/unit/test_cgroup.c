/* SPDX-License-Identifier: Apache-2.0 */
/* The control group of a process, as rights ask for it (features 2.11, J20). */
#include "bus/cgroup.h"
#include "support/test.h"

#include <string.h>

static void expect(const char *text, const char *path)
{
    size_t length = 0;
    const char *found = rbi_cgroup_path(text, strlen(text), &length);
    if (path == NULL) {
        assert_null(found);
        return;
    }
    assert_non_null(found);
    assert_int_equal(length, strlen(path));
    assert_memory_equal(found, path, length);
}

static void test_path_is_that_of_version_2(void **state)
{
    (void)state;
    expect("0::/system.slice/gate.service\n", "/system.slice/gate.service");
    expect("0::/\n", "/");
    expect("9:name=systemd:/a\n8:pids:/b\n0::/c\n", "/c");
    expect("0::/c\n1:cpu:/d\n", "/c");
    expect("0::/../sibling\n", "/../sibling");
    expect("0::/a:b::c\n", "/a:b::c");
}

static void test_path_without_the_last_line_break(void **state)
{
    (void)state;
    expect("0::/a", "/a");
}

static void test_none_without_version_2(void **state)
{
    (void)state;
    expect("", NULL);
    expect("\n", NULL);
    expect("0::", NULL);
    expect("0::\n", NULL);
    expect("0::a\n", NULL);
    expect("10::/a\n", NULL);
    expect("4:memory:/a\n1:cpu:0::/b\n", NULL);
}

static void test_mark_of_a_removed_group_is_no_part_of_it(void **state)
{
    (void)state;
    expect("0::/game/gate (deleted)\n", "/game/gate");
    expect("0:: (deleted)\n", NULL);
}

static void test_nothing_behind_the_text_is_read(void **state)
{
    (void)state;
    char text[] = {'0', ':', ':', '/', 'a', 'b', '\n', '0'};
    size_t length = 0;
    assert_non_null(rbi_cgroup_path(text, 5, &length));
    assert_int_equal(length, 2);
    assert_null(rbi_cgroup_path(text, 3, &length));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_path_is_that_of_version_2),
        cmocka_unit_test(test_path_without_the_last_line_break),
        cmocka_unit_test(test_none_without_version_2),
        cmocka_unit_test(test_mark_of_a_removed_group_is_no_part_of_it),
        cmocka_unit_test(test_nothing_behind_the_text_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
