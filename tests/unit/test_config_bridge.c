/* SPDX-License-Identifier: Apache-2.0 */
/* The section "bridge": defaults, what is taken, what is refused and where, what has changed. */
#include "bus/governance.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

static struct rbi_config config;
static struct rbi_config_errors errors;

static int parse(const char *text)
{
    memset(&config, 0x5a, sizeof(config));
    memset(&errors, 0, sizeof(errors));
    return rbi_config_parse(text, strlen(text), &config, &errors);
}

/** Refused, with this text at this place. */
static void refused(const char *text, unsigned line, unsigned column, const char *why)
{
    assert_int_equal(parse(text), 1);
    for (unsigned i = 0; i < errors.count; i++) {
        if (strstr(errors.items[i].text, why)) {
            assert_int_equal(errors.items[i].line, line);
            assert_int_equal(errors.items[i].column, column);
            return;
        }
    }
    fail_msg("not said: %s; but: %s", why, errors.items[0].text);
}

#define PLAIN "bridge: {host: alpha, insecure: true"

static void test_without_the_section(void **state)
{
    struct rbi_bridge_config defaults;
    (void)state;
    rbi_bridge_config_defaults(&defaults);
    assert_int_equal(parse("{}"), 0);
    assert_false(config.bridge.given);
    assert_memory_equal(&config.bridge, &defaults, sizeof(defaults));
}

static void test_defaults_of_the_table_are_those_of_the_structure(void **state)
{
    struct rbi_bridge_config defaults;
    (void)state;
    rbi_bridge_config_defaults(&defaults);
    assert_int_equal(parse(PLAIN ", start: true, transit: true, import: [\"/**\"], "
                                 "ping_interval: 1s, ping_misses: 3, unreachable_after: 10s, "
                                 "grace: 1m, mass_hold: 30s, window: 512KiB, batch_delay: 50us, "
                                 "limits: {instances: 1024, streams: 4096, queue: 4MiB}}"),
                     0);
    defaults.given = true;
    defaults.insecure = true;
    memcpy(defaults.host, "alpha", 6);
    assert_memory_equal(&config.bridge, &defaults, sizeof(defaults));
}

static void test_everything(void **state)
{
    (void)state;
    assert_int_equal(parse("bridge:\n"
                           "  host: alpha.example\n"
                           "  listen: [\"10.0.0.1:7740\", \"[fd00::1%eth0]:0\"]\n"
                           "  start: false\n"
                           "  user: 990\n"
                           "  peers:\n"
                           "    - {host: beta, address: \"beta.example:7740\", cost: 5}\n"
                           "    - {host: gamma}\n"
                           "  certificate: /etc/c.pem\n"
                           "  key: /etc/k.pem\n"
                           "  ca: /etc/ca.pem\n"
                           "  crl: /etc/crl.pem\n"
                           "  export: [\"/game/**\", \"/shop/*/*/*/*/till\"]\n"
                           "  import: []\n"
                           "  transit: false\n"
                           "  ping_interval: 10ms\n"
                           "  unreachable_after: 0ms\n"
                           "  window: 16MiB\n"
                           "  batch_delay: 1ms\n"
                           "  limits: {streams: 7}\n"),
                     0);
    const struct rbi_bridge_config *b = &config.bridge;
    assert_true(b->given && !b->start && !b->transit && !b->insecure);
    assert_string_equal(b->host, "alpha.example");
    assert_int_equal(b->listen_count, 2);
    assert_string_equal(b->listen[1], "[fd00::1%eth0]:0");
    assert_int_equal(b->user, 990);
    assert_int_equal(b->peer_count, 2);
    assert_string_equal(rbi_bridge_config_peer(b, "beta")->address, "beta.example:7740");
    assert_int_equal(b->peers[0].cost, 5);
    assert_string_equal(b->peers[1].address, "");
    assert_null(rbi_bridge_config_peer(b, "delta"));
    assert_string_equal(b->certificate, "/etc/c.pem");
    assert_string_equal(b->crl, "/etc/crl.pem");
    assert_int_equal(b->export.count, 2);
    assert_string_equal(b->export.items[1], "/shop/*/*/*/*/till");
    assert_int_equal(b->import.count, 0);
    assert_int_equal(b->ping_interval_ms, 10);
    assert_int_equal(b->unreachable_after_ms, 0);
    assert_int_equal(b->window_bytes, 16 << 20);
    assert_int_equal(b->batch_delay_us, 1000);
    assert_int_equal(b->limits.streams, 7);
    assert_int_equal(b->limits.instances, 1024);
}

static void test_what_is_refused_and_where(void **state)
{
    (void)state;
    refused("bridge: {}", 1, 1, "bridge: host is missing");
    refused("bridge:\n  host: Alpha\n  insecure: true\n", 2, 9, "expected a host name");
    refused("bridge:\n  host: a_b\n  insecure: true\n", 2, 9, "expected a host name");
    refused("bridge: {host: alpha}", 1, 1, "bridge.certificate: needed");
    refused("bridge: {host: alpha, certificate: c, key: k}", 1, 1, "bridge.ca: needed");
    refused(PLAIN ",\n listen: [\"127.0.0.1:1\", \"10.0.0.1:7740\"]}", 2, 26, "only loopback");
    refused(PLAIN ",\n listen: [\"127.0.0.1.evil.example:1\"]}", 2, 11, "only loopback");
    refused(PLAIN ",\n listen: [\"127.0.0.1\"]}", 2, 11, "expected an address");
    refused(PLAIN ",\n listen: [\"127.0.0.1:65536\"]}", 2, 11, "expected an address");
    refused(PLAIN ",\n listen: [\"::1:7740\"]}", 2, 11, "expected an address");
    refused(PLAIN ",\n listen: [\"127.0.0.1:7 0\"]}", 2, 11, "expected an address");
    refused(PLAIN ",\n peers: [{host: alpha}]}", 2, 17, "is this host itself");
    refused(PLAIN ",\n peers: [{host: b}, {host: b}]}", 2, 28, "is a peer already");
    refused(PLAIN ",\n peers: [{address: \"127.0.0.1:1\"}]}", 2, 10, "host is missing");
    refused(PLAIN ",\n peers: [{host: b, address: \"127.0.0.1:0\"}]}", 2, 29,
            "expected an address");
    refused(PLAIN ",\n peers: [{host: b, address: \"10.0.0.2:1\"}]}", 2, 29, "only loopback");
    refused(PLAIN ",\n export: [\"game\"]}", 2, 11, "begins with a slash");
    refused(PLAIN ",\n batch_delay: 2ms}", 2, 15, "0us..1ms");
    refused(PLAIN ",\n windw: 4KiB}", 2, 2, "did you mean window");
}

static void test_is_not_taken_from_what_is_applied(void **state)
{
    struct rbi_governance governance = RBI_GOVERNANCE_NULL;
    const char *text = PLAIN "}";
    (void)state;
    memset(&errors, 0, sizeof(errors));
    assert_int_equal(rbi_governance_parse(text, strlen(text), &governance, &errors), 1);
    assert_non_null(strstr(errors.items[0].text, "bridge"));
}

static unsigned reports;

static void count_change(void *context, const char *key, const char *a, const char *b, bool restart)
{
    assert_false(restart);
    assert_non_null(a);
    assert_non_null(b);
    assert_string_equal(key, context);
    reports++;
}

static void changed(const char *text, char *key)
{
    static struct rbi_config before;
    assert_int_equal(parse(PLAIN ", listen: [\"127.0.0.1:1\"]}"), 0);
    before = config;
    assert_int_equal(parse(text), 0);
    reports = 0;
    rbi_config_diff(&before, &config, count_change, key);
    assert_int_equal(reports, 1);
}

static void test_changes_are_named(void **state)
{
    char none[] = "";
    char listen[] = "bridge.listen";
    char queue[] = "bridge.limits.queue";
    char user[] = "bridge.user";
    char all[] = "bridge";
    static struct rbi_config before;
    (void)state;
    changed(PLAIN ", listen: [\"127.0.0.1:2\"]}", listen);
    changed(PLAIN ", listen: []}", listen);
    changed(PLAIN ", listen: [\"127.0.0.1:1\"], limits: {queue: 8MiB}}", queue);
    changed(PLAIN ", listen: [\"127.0.0.1:1\"], user: 5}", user);
    changed("{}", all);
    assert_int_equal(parse(PLAIN "}"), 0);
    before = config;
    reports = 0;
    rbi_config_diff(&before, &config, count_change, none);
    assert_int_equal(reports, 0);
}

static void find_value(void *context, const char *key, const char *value, bool is_default)
{
    static const struct {
        const char *key;
        const char *value;
        bool is_default;
    } wanted[] = {
        {"bridge.host", "\"alpha\"", false},   {"bridge.user", "none", true},
        {"bridge.insecure", "true", false},    {"bridge.import", "1 of them", true},
        {"bridge.batch_delay", "50 us", true}, {"bridge.limits.queue", "4194304 B", true}};
    (void)context;
    for (size_t i = 0; i < RBI_ARRAY_SIZE(wanted); i++) {
        if (strcmp(wanted[i].key, key) == 0) {
            assert_string_equal(value, wanted[i].value);
            assert_int_equal(is_default, wanted[i].is_default);
            reports++;
        }
    }
}

static void test_values_are_printed(void **state)
{
    (void)state;
    assert_int_equal(parse(PLAIN "}"), 0);
    reports = 0;
    rbi_config_print(&config, find_value, NULL);
    assert_int_equal(reports, 6);
    assert_int_equal(parse("{}"), 0);
    reports = 0;
    rbi_config_print(&config, find_value, NULL);
    assert_int_equal(reports, 0);
}

static void test_ids_of_hosts(void **state)
{
    (void)state;
    assert_true(rbi_host_id("alpha", 5) != rbi_host_id("beta", 4));
    assert_true(rbi_host_id("", 0) != 0);
    assert_true(rbi_host_name_valid("a-1.b", 5));
    assert_false(rbi_host_name_valid("", 0));
    char long_name[RBI_HOST_NAME_MAX + 1];
    memset(long_name, 'a', sizeof(long_name));
    assert_true(rbi_host_name_valid(long_name, RBI_HOST_NAME_MAX));
    assert_false(rbi_host_name_valid(long_name, RBI_HOST_NAME_MAX + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_the_section),
        cmocka_unit_test(test_defaults_of_the_table_are_those_of_the_structure),
        cmocka_unit_test(test_everything),
        cmocka_unit_test(test_what_is_refused_and_where),
        cmocka_unit_test(test_is_not_taken_from_what_is_applied),
        cmocka_unit_test(test_changes_are_named),
        cmocka_unit_test(test_values_are_printed),
        cmocka_unit_test(test_ids_of_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
