/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory there is: of the machine, and of the control groups around this process. */
#include "shm/memory.h"
#include "shm/segment.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- memory.c ---------------------------------------------------------------------------- */

static char tree[] = "/tmp/rbi-memory-XXXXXX";

static void put_file(const char *name, const char *text)
{
    char path[512];
    const int len = snprintf(path, sizeof path, "%s/%s", tree, name);
    for (char *slash = strchr(path + sizeof tree, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    assert_true(len > 0 && (size_t)len < sizeof path);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int make_tree(void **state)
{
    (void)state;
    memcpy(tree, "/tmp/rbi-memory-XXXXXX", sizeof tree);
    assert_non_null(mkdtemp(tree));
    put_file("proc/meminfo", "MemTotal: 9000000 kB\nMemAvailable:    1024000 kB\nCached: 5 kB\n");
    return 0;
}

static int remove_tree(void **state)
{
    (void)state;
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", tree);
    return system(command); // NOLINT(cert-env33-c)
}

#define MIB (UINT64_C(1) << 20)
#define V2_MOUNT                                                                                   \
    "25 1 0:20 / /proc rw - proc proc rw\n"                                                        \
    "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"

static void test_memory_of_the_machine(void **state)
{
    (void)state;
    assert_int_equal(rbi_memory_available_below("/nonexistent"), UINT64_MAX);
    assert_int_equal(rbi_memory_available_below(tree), 1000 * MIB);
    assert_true(rbi_memory_available() > MIB);
    assert_true(rbi_memory_available() < UINT64_MAX);
}

/* Version 2: the tightest of all ancestors counts; cache that can be dropped is not held. */
static void test_memory_of_unified_groups(void **state)
{
    (void)state;
    put_file("proc/self/cgroup", "0::/outer/inner\n");
    put_file("proc/self/mountinfo", V2_MOUNT);
    put_file("sys/fs/cgroup/outer/inner/memory.max", "max\n");
    put_file("sys/fs/cgroup/outer/inner/memory.current", "5000\n");
    assert_int_equal(rbi_memory_available_below(tree), 1000 * MIB);
    put_file("sys/fs/cgroup/outer/memory.max", "104857600\n");
    put_file("sys/fs/cgroup/outer/memory.current", "31457280\n");
    assert_int_equal(rbi_memory_available_below(tree), 70 * MIB);
    put_file("sys/fs/cgroup/outer/memory.stat", "anon 7\ninactive_file 10485760\n");
    assert_int_equal(rbi_memory_available_below(tree), 80 * MIB);
    put_file("sys/fs/cgroup/outer/inner/memory.max", "33554432\n");
    assert_int_equal(rbi_memory_available_below(tree), 32 * MIB - 5000);
    put_file("sys/fs/cgroup/outer/inner/memory.current", "93554432\n");
    assert_int_equal(rbi_memory_available_below(tree), 0);
}

static void test_memory_of_version_1_groups(void **state)
{
    (void)state;
    put_file("proc/self/cgroup", "9:name=systemd:/x\n4:cpu,memory:/a/b\n0::/z\n");
    put_file("proc/self/mountinfo",
             "31 30 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
             "32 30 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    put_file("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
    put_file("sys/fs/cgroup/memory/a/b/memory.usage_in_bytes", "1\n");
    put_file("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "67108864\n");
    put_file("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "33554432\n");
    assert_int_equal(rbi_memory_available_below(tree), 32 * MIB);
    put_file("sys/fs/cgroup/memory/memory.limit_in_bytes", "16777216\n");
    assert_int_equal(rbi_memory_available_below(tree), 16 * MIB);
}

/* In a container the mount shows the container's own group as its root. */
static void test_memory_of_a_container(void **state)
{
    (void)state;
    put_file("proc/self/cgroup", "0::/docker/abc/sub\n");
    put_file("proc/self/mountinfo",
             "30 25 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
    put_file("sys/fs/cgroup/memory.max", "67108864\n");
    put_file("sys/fs/cgroup/memory.current", "0\n");
    assert_int_equal(rbi_memory_available_below(tree), 64 * MIB);
    put_file("sys/fs/cgroup/sub/memory.max", "4194304\n");
    assert_int_equal(rbi_memory_available_below(tree), 4 * MIB);
    put_file("proc/self/cgroup", "0::/elsewhere\n");
    assert_int_equal(rbi_memory_available_below(tree), 64 * MIB);
}

/* Found below the usual mounts, a group needs no look at the table of mounts. */
static void test_memory_of_groups_in_the_usual_place(void **state)
{
    (void)state;
    put_file("proc/self/cgroup", "0::/a/b\n");
    put_file("sys/fs/cgroup/a/memory.max", "67108864\n");
    put_file("sys/fs/cgroup/a/memory.current", "0\n");
    assert_int_equal(rbi_memory_available_below(tree), 1000 * MIB); /* not proven to be a group */
    put_file("sys/fs/cgroup/a/b/cgroup.procs", "1\n");
    assert_int_equal(rbi_memory_available_below(tree), 64 * MIB);
    /* Both versions side by side: the controller is in one of them, here in version 1. */
    put_file("sys/fs/cgroup/unified/a/b/cgroup.procs", "1\n");
    put_file("proc/self/cgroup", "4:memory:/x\n0::/a/b\n");
    put_file("sys/fs/cgroup/memory/x/cgroup.procs", "1\n");
    put_file("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "33554432\n");
    put_file("sys/fs/cgroup/memory/memory.limit_in_bytes", "16777216\n");
    assert_int_equal(rbi_memory_available_below(tree), 16 * MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_memory_of_the_machine, make_tree, remove_tree),
        cmocka_unit_test_setup_teardown(test_memory_of_unified_groups, make_tree, remove_tree),
        cmocka_unit_test_setup_teardown(test_memory_of_version_1_groups, make_tree, remove_tree),
        cmocka_unit_test_setup_teardown(test_memory_of_a_container, make_tree, remove_tree),
        cmocka_unit_test_setup_teardown(test_memory_of_groups_in_the_usual_place, make_tree,
                                        remove_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
