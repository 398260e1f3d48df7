/* SPDX-License-Identifier: Apache-2.0 */
/* quota.users: limits of one user; what is given, what is as for everybody, what is refused. */
#include "bus/config_schema.h"
#include "support/config.h"

#include <stdio.h>
#include <string.h>

static struct rbi_config config;
static struct rbi_config_errors errors;

static void assert_accepted(const char *text)
{
    memset(&config, 0x5a, sizeof config);
    config_accepted(rbi_config_parse(text, strlen(text), &config, &errors), text, &errors);
}

static void assert_refused(const char *text, unsigned line, unsigned column, const char *says)
{
    const int r = rbi_config_parse(text, strlen(text), &config, &errors);
    config_refused_once(r, &errors, line, column, says);
}

static void test_parse_some_limits_of_some_users(void **state)
{
    (void)state;
    assert_accepted("quota:\n"
                    "  users:\n"
                    "    65534: {connections: 100, connects: 5, bytes: 1MiB}\n"
                    "    0:\n"
                    "      user_links: 4000000\n"
                    "    4294967294: {}\n"
                    "  links: 77\n" /* what follows is inherited as well */
                    "  connections: 8\n"
                    "liveness: {misses: 9}\n");
    assert_int_equal(config.quota_users.count, 3);
    assert_int_equal(config.liveness.misses, 9);
    const struct rbi_config_limits *nobody = rbi_config_limits(&config, 65534);
    assert_int_equal(nobody->connections, 100);
    assert_int_equal(nobody->connects_per_s, 5);
    assert_true(nobody->bytes == 1 << 20);
    assert_int_equal(nobody->links, 77);
    assert_int_equal(nobody->instances, 256);
    assert_int_equal(nobody->user_control_per_s, 20000);
    const struct rbi_config_limits *root = rbi_config_limits(&config, 0);
    assert_int_equal(root->user_links, 4000000);
    assert_int_equal(root->connections, 8);
    assert_true(root->bytes == 512 << 20);
    assert_memory_equal(rbi_config_limits(&config, UINT32_MAX - 1), &config.quota,
                        sizeof config.quota);
    assert_true(rbi_config_limits(&config, 1000) == &config.quota);
}

static void test_parse_every_limit(void **state)
{
    (void)state;
    assert_accepted("quota: {users: {5: {connections: 1, instances: 2, links: 3, user_links: 4, "
                    "bytes: 5MiB, watches: 6, user_watches: 7, control: 8, user_control: 9, "
                    "connects: 10, nodes: 11, node_bytes: 12KiB}}}");
    const struct rbi_config_limits expected = {.connections = 1,
                                               .instances = 2,
                                               .links = 3,
                                               .user_links = 4,
                                               .bytes = 5 << 20,
                                               .watches = 6,
                                               .user_watches = 7,
                                               .control_per_s = 8,
                                               .user_control_per_s = 9,
                                               .connects_per_s = 10,
                                               .nodes = 11,
                                               .node_bytes = 12 << 10};
    const size_t size = offsetof(struct rbi_config_limits, node_bytes) + sizeof(uint64_t);
    assert_memory_equal(rbi_config_limits(&config, 5), &expected, size);
    /* A key more than this test knows would not be in here. */
    assert_int_equal(config.quota_users.items[0].given, (1U << 12) - 1);
}

static void test_parse_refuses_what_is_no_user(void **state)
{
    (void)state;
    assert_refused("quota: {users: {nobody: {links: 1}}}", 1, 17,
                   "quota.users: expected a user id, which is what \"id -u NAME\" says, found "
                   "\"nobody\"");
    assert_refused("quota: {users: {-1: {links: 1}}}", 1, 17, "it cannot be negative");
    assert_refused("quota: {users: {4294967295: {links: 1}}}", 1, 17, "out of range");
    assert_refused("quota: {users: {0x10: {links: 1}}}", 1, 17, "hexadecimal is not taken");
    assert_refused("quota: {users: {[1]: {links: 1}}}", 1, 17, "expected a key, found a list");
    assert_refused("quota: {users: 5}", 1, 16, "quota.users: expected a map of user ids");
    assert_refused("quota: {users: [5]}", 1, 16, "quota.users: expected a map of user ids");
    assert_refused("quota: {users: }", 1, 16, "found nothing");
    assert_refused("quota: {users: {5: 6}}", 1, 20,
                   "quota.users.5: expected limits below it, found a scalar");
    assert_refused("quota: {users: {5: }}", 1, 20, "found nothing");
    assert_refused("quota: {users: {5: [links]}}", 1, 20, "found a list");
    assert_refused("users: {5: {}}", 1, 1, "write users below quota");
    assert_refused("daemon: {users: {5: {}}}", 1, 10, "did you mean quota.users?");
}

static void test_parse_refuses_what_is_no_limit(void **state)
{
    (void)state;
    assert_refused("quota: {users: {5: {lincs: 1}}}", 1, 21,
                   "quota.users.5: unknown key \"lincs\"; did you mean quota.links?");
    assert_refused("quota: {users: {5: {users: {}}}}", 1, 21, "quota.users.5: unknown key");
    assert_refused("quota: {users: {5: {log_level: info}}}", 1, 21, "daemon.log_level");
    assert_refused("quota: {users: {5: {links: 0}}}", 1, 28,
                   "quota.users.5.links: expected a decimal number in 1..1048576, found \"0\"");
    assert_refused("quota: {users: {5: {bytes: 5}}}", 1, 28, "the unit is missing");
    assert_refused("quota: {users: {5: {bytes: {}}}}", 1, 28, "quota.users.5.bytes: expected");
    assert_refused("quota: {users: {5: {links: }}}", 1, 28, "found nothing");
    assert_refused("quota: {users: {5: {? [links] : 1}}}", 1, 23, "expected a key, found a list");
    assert_refused("quota: {users: {5: {links: &x 1}}}", 1, 28, "anchors are not taken");
}

static void test_parse_duplicates_name_both_lines(void **state)
{
    (void)state;
    assert_refused("quota:\n users:\n  5: {}\n  6: {}\n  5: {}\n", 5, 3,
                   "5: duplicate key, given in line 3 and again in line 5");
    assert_refused("quota:\n users:\n  5:\n   links: 1\n   links: 1\n", 5, 4,
                   "quota.users.5.links: duplicate key, given in line 4 and again in line 5");
    assert_refused("quota:\n users: {}\n users: {}\n", 3, 2, "duplicate key");
    assert_accepted("quota:\n users:\n  5: {links: 1}\n  6: {links: 1}\n");
}

static void test_parse_limit_of_users(void **state)
{
    char text[4096] = "quota: {users: {";
    (void)state;
    for (unsigned i = 0; i < RBI_CONFIG_USERS_MAX; i++) {
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%u: {links: %u}, ", i,
                       i + 1);
    }
    const size_t full = strlen(text);
    (void)snprintf(text + full, sizeof text - full, "}}");
    assert_accepted(text);
    assert_int_equal(rbi_config_limits(&config, 63)->links, 64);
    (void)snprintf(text + full, sizeof text - full, "64: {links: 1}}}");
    assert_refused(text, 1, (unsigned)full + 1, "expected at most 64 users");
}

/* ---- report ------------------------------------------------------------------------------ */

static char lines[2048];

static void on_difference(
    void *context, const char *key, const char *old_value, const char *new_value, bool restart)
{
    const size_t used = strlen(lines);
    (void)context;
    assert_false(restart);
    (void)snprintf(lines + used, sizeof lines - used, "%s: %s -> %s\n", key, old_value, new_value);
}

static void test_diff_names_user_and_key(void **state)
{
    struct rbi_config running;
    (void)state;
    assert_accepted("quota: {users: {5: {links: 1, bytes: 1MiB}, 6: {control: 7}}}");
    running = config;
    lines[0] = '\0';
    rbi_config_diff(&running, &config, on_difference, NULL);
    assert_string_equal(lines, "");
    assert_accepted("quota: {users: {6: {control: 7}, 5: {links: 2, connects: 3}, 8: {links: 9}}}");
    rbi_config_diff(&running, &config, on_difference, NULL);
    assert_string_equal(lines, "quota.users.5.links: 1 -> 2\n"
                               "quota.users.5.bytes: 1048576 B -> as all\n"
                               "quota.users.5.connects: as all -> 3 per second\n"
                               "quota.users.8.links: as all -> 9\n");
    lines[0] = '\0';
    assert_accepted("{}");
    rbi_config_diff(&running, &config, on_difference, NULL);
    assert_string_equal(lines, "quota.users.5.links: 1 -> as all\n"
                               "quota.users.5.bytes: 1048576 B -> as all\n"
                               "quota.users.6.control: 7 per second -> as all\n");
}

static void on_value(void *context, const char *key, const char *value, bool is_default)
{
    const size_t used = strlen(lines);
    (void)context;
    if (strstr(key, "users")) {
        (void)snprintf(lines + used, sizeof lines - used, "%s=%s %d\n", key, value, is_default);
    }
}

static void test_print_names_user_and_key(void **state)
{
    (void)state;
    lines[0] = '\0';
    assert_accepted("quota: {users: {5: {bytes: 1MiB, links: 1}, 6: {}}}");
    rbi_config_print(&config, on_value, NULL);
    assert_string_equal(lines, "quota.users.5.links=1 0\nquota.users.5.bytes=1048576 B 0\n");
    lines[0] = '\0';
    assert_accepted("{}");
    rbi_config_print(&config, on_value, NULL);
    assert_string_equal(lines, "quota.users={} 1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_some_limits_of_some_users),
        cmocka_unit_test(test_parse_every_limit),
        cmocka_unit_test(test_parse_refuses_what_is_no_user),
        cmocka_unit_test(test_parse_refuses_what_is_no_limit),
        cmocka_unit_test(test_parse_duplicates_name_both_lines),
        cmocka_unit_test(test_parse_limit_of_users),
        cmocka_unit_test(test_diff_names_user_and_key),
        cmocka_unit_test(test_print_names_user_and_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
