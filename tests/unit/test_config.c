/* SPDX-License-Identifier: Apache-2.0 */
/* Shape of the file: sections, keys, duplicates, encodings; each error with its place. */
#include "bus/config_schema.h"
#include "support/config.h"

#include <stdio.h>
#include <string.h>

static struct rbi_config config;
static struct rbi_config_errors errors;

static int parse_bytes(const char *text, size_t size)
{
    memset(&config, 0x5a, sizeof config);
    memset(&errors, 0x5a, sizeof errors);
    return rbi_config_parse(text, size, &config, &errors);
}

static int parse(const char *text)
{
    return parse_bytes(text, strlen(text));
}

static void assert_accepted(const char *text)
{
    config_accepted(parse(text), text, &errors);
}

/** The first error is at this place and says this. */
static void assert_refused_bytes(
    const char *text, size_t size, unsigned line, unsigned column, const char *says)
{
    config_refused(parse_bytes(text, size), &errors, line, column, says);
}

static void assert_refused(const char *text, unsigned line, unsigned column, const char *says)
{
    assert_refused_bytes(text, strlen(text), line, column, says);
}

static void test_defaults_are_the_documented_ones(void **state)
{
    (void)state;
    struct rbi_config d;
    rbi_config_defaults(&d);
    assert_string_equal(d.daemon.socket, "");
    assert_int_equal(d.daemon.socket_mode, 0666);
    assert_int_equal(d.daemon.log_level, RBI_LOG_INFO);
    assert_int_equal(d.daemon.loop, RBI_LOOP_AUTO);
    assert_int_equal(d.daemon.handshake_timeout_ms, 5000);
    assert_int_equal(d.daemon.request_timeout_ms, 5000);
    assert_int_equal(d.daemon.send_queue_max, 1024);
    assert_int_equal(d.directory.slots, 4096);
    assert_int_equal(d.directory.clusters, 1024);
    assert_int_equal(d.directory.snapshot_bytes, 4 << 20);
    assert_int_equal(d.quota.connections, 4096);
    assert_int_equal(d.quota.instances, 256);
    assert_int_equal(d.quota.links, 1024);
    assert_int_equal(d.quota.bytes, 512 << 20);
    assert_int_equal(d.quota.watches, 4096);
    assert_int_equal(d.quota.control_per_s, 200);
    assert_int_equal(d.quota.connects_per_s, 50);
    assert_int_equal(d.quota.nodes, 4096);
    assert_int_equal(d.quota.node_bytes, 1 << 20);
    assert_int_equal(d.liveness.interval_ms, 1000);
    assert_int_equal(d.liveness.misses, 3);
    assert_int_equal(d.liveness.debug_hold, 0);
}

static void test_parse_every_key(void **state)
{
    (void)state;
    assert_accepted("daemon:\n"
                    "  socket: /tmp/x.sock\n"
                    "  socket_mode: \"0600\"\n"
                    "  log_level: debug\n"
                    "  loop: epoll\n"
                    "  handshake_timeout: 250ms\n"
                    "  request_timeout: 1m\n"
                    "  send_queue: 16\n"
                    "directory:\n"
                    "  slots: 64\n"
                    "  clusters: 1048576\n"
                    "  snapshots: 1GiB\n"
                    "quota:\n"
                    "  connections: 1\n"
                    "  instances: 2\n"
                    "  links: 3\n"
                    "  bytes: 5GiB\n"
                    "  watches: 5\n"
                    "  control: 6\n"
                    "  connects: 7\n"
                    "  user_links: 8\n"
                    "  user_watches: 9\n"
                    "  user_control: 10\n"
                    "  nodes: 11\n"
                    "  node_bytes: 12KiB\n"
                    "liveness:\n"
                    "  interval: 10ms\n"
                    "  misses: 100\n"
                    "  debug_hold: true\n");
    assert_string_equal(config.daemon.socket, "/tmp/x.sock");
    assert_int_equal(config.daemon.socket_mode, 0600);
    assert_int_equal(config.daemon.log_level, RBI_LOG_DEBUG);
    assert_int_equal(config.daemon.loop, RBI_LOOP_EPOLL);
    assert_int_equal(config.daemon.handshake_timeout_ms, 250);
    assert_int_equal(config.daemon.request_timeout_ms, 60000);
    assert_int_equal(config.daemon.send_queue_max, 16);
    assert_int_equal(config.directory.slots, 64);
    assert_int_equal(config.directory.clusters, 1048576);
    assert_true(config.directory.snapshot_bytes == UINT64_C(1) << 30);
    assert_int_equal(config.quota.connections, 1);
    assert_int_equal(config.quota.instances, 2);
    assert_int_equal(config.quota.links, 3);
    assert_true(config.quota.bytes == UINT64_C(5) << 30);
    assert_int_equal(config.quota.watches, 5);
    assert_int_equal(config.quota.control_per_s, 6);
    assert_int_equal(config.quota.connects_per_s, 7);
    assert_int_equal(config.quota.user_links, 8);
    assert_int_equal(config.quota.user_watches, 9);
    assert_int_equal(config.quota.user_control_per_s, 10);
    assert_int_equal(config.quota.nodes, 11);
    assert_int_equal(config.quota.node_bytes, 12 << 10);
    assert_int_equal(config.liveness.interval_ms, 10);
    assert_int_equal(config.liveness.misses, 100);
    assert_int_equal(config.liveness.debug_hold, 1);
}

static void test_parse_keeps_defaults_of_what_is_not_given(void **state)
{
    (void)state;
    struct rbi_config defaults;
    rbi_config_defaults(&defaults);
    assert_accepted("{}");
    assert_memory_equal(&config, &defaults, sizeof config);
    assert_accepted("--- {liveness: {}}\n...\n");
    assert_memory_equal(&config, &defaults, sizeof config);
    assert_accepted("{liveness: {misses: 4}} # flow style is YAML as well\n");
    assert_int_equal(config.liveness.misses, 4);
    assert_int_equal(config.liveness.interval_ms, 1000);
}

static void test_parse_leaves_the_output_alone_on_failure(void **state)
{
    (void)state;
    struct rbi_config before;
    /* A good value before the bad one, and a file that breaks off: nothing is half applied. */
    static const char *const bad[] = {
        "liveness:\n  misses: 4\n  interval: 5\n",
        "liveness:\n  misses: 4\n  interval: \"5s",
        "liveness:\n  misses: 4\nquota: {links: 5\n",
    };
    for (size_t i = 0; i < RBI_ARRAY_SIZE(bad); i++) {
        assert_int_equal(parse(bad[i]), 1);
        memset(&before, 0x5a, sizeof before);
        assert_memory_equal(&config, &before, sizeof config);
    }
}

/* 128: a file that is just being written is empty for a moment; the running one must stay. */
static void test_parse_refuses_empty_files(void **state)
{
    (void)state;
    static const char *const empty[] = {"", "\n\n", "# only words\n", "---\n", "---\n...\n", "~\n"};
    for (size_t i = 0; i < RBI_ARRAY_SIZE(empty) - 1; i++) {
        assert_refused(empty[i], 0, 0, "expected keys, found nothing");
        assert_int_equal(errors.count, 1);
    }
    assert_refused("~\n", 1, 1, "expected a map of sections");
}

static void test_parse_unknown_keys_name_what_is_near(void **state)
{
    (void)state;
    assert_refused("deamon:\n  loop: auto\n", 1, 1,
                   "\"deamon\": unknown section; did you mean daemon?");
    assert_int_equal(errors.count, 1); /* what lies below is not reported too */
    assert_refused("zzz: 1\n", 1, 1, "\"zzz\": unknown section");
    assert_null(strstr(errors.items[0].text, "did you mean"));
    assert_refused("liveness:\n  intervall: 1s\n", 2, 3,
                   "liveness: unknown key \"intervall\"; did you mean liveness.interval?");
    assert_refused("daemon:\n  zzz: 1s\n", 2, 3, "daemon: unknown key \"zzz\"");
    assert_null(strstr(errors.items[0].text, "did you mean"));
    assert_refused("daemon:\n  misses: 3\n", 2, 3, "did you mean liveness.misses?");
    assert_refused("liveness.interval: 1s\n", 1, 1, "write interval below liveness");
    assert_refused("interval: 1s\n", 1, 1, "write interval below liveness");
    assert_refused("Daemon: {}\n", 1, 1, "did you mean daemon?");
}

static void test_parse_lists_all_errors(void **state)
{
    (void)state;
    assert_refused("daemon:\n  loop: fast\n  nope: 1\nquota:\n  links: many\n", 2, 9,
                   "daemon.loop");
    assert_int_equal(errors.count, 3);
    assert_non_null(strstr(errors.items[1].text, "nope"));
    assert_int_equal(errors.items[1].line, 3);
    assert_non_null(strstr(errors.items[2].text, "quota.links"));
    assert_int_equal(errors.items[2].line, 5);

    char many[4096] = "daemon:\n";
    for (int i = 0; i < 50; i++) {
        (void)snprintf(many + strlen(many), sizeof many - strlen(many), "  k%d: 1\n", i);
    }
    assert_int_equal(parse(many), 1);
    assert_int_equal(errors.count, 50);
    assert_non_null(strstr(errors.items[RBI_CONFIG_ERRORS_MAX - 1].text, "\"k19\""));
}

/* 123: both lines are named, wherever and however the key is written twice. */
static void test_parse_duplicates_name_both_lines(void **state)
{
    (void)state;
    assert_refused("daemon:\n  loop: auto\nquota:\n  links: 3\ndaemon:\n  loop: auto\n", 5, 1,
                   "daemon: duplicate key, given in line 1 and again in line 5");
    assert_refused("daemon:\n  loop: auto\n  log_level: info\n  loop: auto\n", 4, 3,
                   "daemon.loop: duplicate key, given in line 2 and again in line 4");
    assert_refused("daemon:\n  loop: auto\n  \"loop\": auto\n", 3, 3,
                   "given in line 2 and again in line 3");
    assert_refused("daemon:\n  loop: auto\n  'loop': auto\n", 3, 3,
                   "given in line 2 and again in line 3");
    assert_refused("daemon:\n  loop: auto\n  \"l\\x6fop\": auto\n", 3, 3,
                   "given in line 2 and again in line 3");
    assert_refused("daemon:\n  loop: auto\n  ? loop\n  : auto\n", 3, 5, "given in line 2");
    assert_refused("daemon: {loop: auto,\n loop: auto}\n", 2, 2,
                   "given in line 1 and again in line 2");
    assert_refused("daemon:\n  loop: auto\n---\ndaemon:\n  loop: auto\n", 3, 1, "began in line 1");
    /* Through a merge key: the merge itself is refused, and so is what feeds it. */
    assert_refused("daemon: &d\n  loop: auto\n", 1, 9, "anchors are not taken");
    assert_refused("daemon:\n  <<: {loop: auto}\n  loop: auto\n", 2, 3, "merge keys are not taken");
    assert_refused("<<: {daemon: {}}\n", 1, 1, "merge keys are not taken");
}

static void test_parse_refuses_anchors_aliases_tags(void **state)
{
    (void)state;
    assert_refused("daemon:\n  socket: *x\n", 2, 11, "aliases are not taken, found \"x\"");
    assert_refused("*x : 1\n", 1, 1, "aliases are not taken");
    assert_refused("daemon:\n  *x : 1\n", 2, 3, "aliases are not taken");
    assert_refused("daemon:\n  socket: &x y\n", 2, 11, "anchors are not taken, found \"x\"");
    assert_refused("unknown: [1, &x 2]\n", 1, 1, "unknown section");
    assert_int_equal(errors.count, 2); /* in skipped parts as well */
    assert_refused("daemon:\n  socket: !!str y\n", 2, 11, "tags are not taken");
    assert_refused("daemon:\n  socket: !mine y\n", 2, 11, "tags are not taken, found \"!mine\"");
    assert_refused("daemon:\n  socket: ! y\n", 2, 11, "tags are not taken, found \"!\"");
    assert_refused("daemon:\n  socket: ! \"y\"\n", 2, 11, "tags are not taken, found \"!\"");
    assert_refused("daemon: !!map\n  loop: auto\n", 1, 9, "tags are not taken");
    assert_refused("daemon:\n  socket: !u!v y\n", 2, 11, "undefined tag handle");
    assert_refused("%YAML 1.1\n---\n{}\n", 1, 1, "no YAML directives");
    assert_refused("{}\n...\n%TAG ! x\n---\n{}\n", 3, 1, "no YAML directives");
    /* "!" inside a value is a character like any other, after characters of several bytes too. */
    assert_accepted("# \xc3\xa9\xe2\x82\xac\ndaemon:\n  socket: a!b\n");
    assert_refused("# \xc3\xa9\xe2\x82\xac\ndaemon:\n  socket: ! ab\n", 3, 11, "tags");
}

static void test_parse_wrong_shapes(void **state)
{
    (void)state;
    assert_refused("- a\n", 1, 1, "expected a map of sections, found a list");
    assert_refused("just words\n", 1, 1, "expected a map of sections, found a scalar");
    assert_refused("daemon: 3\n", 1, 9, "daemon: expected keys below it, found a scalar");
    assert_refused("daemon: [3]\n", 1, 9, "daemon: expected keys below it, found a list");
    assert_refused("daemon:\nquota: {}\n", 1, 8, "daemon: expected keys below it, found nothing");
    assert_refused("quota:\n  links: [1]\n", 2, 10,
                   "quota.links: expected a decimal number in "
                   "1..1048576, found a list");
    assert_refused("quota:\n  links: {a: 1}\n", 2, 10, "found a map");
    assert_refused("[1]: 2\n", 1, 1, "expected a key, found a list");
    assert_refused("daemon:\n  {a: b}: 2\n", 2, 3, "expected a key, found a map");
    /* The walk finds its way back after each of them. */
    assert_refused("x: [[], {}]\ndaemon:\n  {a: [b]}: [c]\n  loop: [auto]\nquota:\n  links: x\n", 1,
                   1, "\"x\"");
    assert_int_equal(errors.count, 4);
    assert_int_equal(errors.items[3].line, 6);
    assert_non_null(strstr(errors.items[3].text, "quota.links"));
}

static void test_parse_nothing_is_not_a_value(void **state)
{
    (void)state;
    assert_refused("daemon:\n  socket:\n  loop: auto\n", 2, 10,
                   "daemon.socket: expected a text of "
                   "0..107 bytes, found nothing");
    assert_refused("daemon:\n  socket: ~\n", 2, 11, "found nothing");
    assert_refused("quota:\n  links: ~\n", 2, 10, "quota.links: expected a decimal number");
    assert_refused("quota:\n  links: \"\"\n", 2, 10, "found \"\"");
    assert_accepted("daemon:\n  socket: \"\"\n");
    assert_string_equal(config.daemon.socket, "");
    assert_accepted("daemon:\n  socket: \"~\"\n");
    assert_string_equal(config.daemon.socket, "~");
}

static void test_parse_encodings_and_bytes(void **state)
{
    (void)state;
    assert_accepted("daemon:\r\n  loop: epoll\r\n  socket: /a\r\n");
    assert_string_equal(config.daemon.socket, "/a"); /* without the carriage return */
    assert_refused("daemon:\r\n  loop: epoll\r\n  socket: /a\r\n  bad: 1\r\n", 4, 3, "\"bad\"");
    assert_accepted("\xef\xbb\xbf{daemon: {loop: epoll}}");
    assert_refused("\xef\xbb\xbfnope: 1", 1, 1, "nope");
    assert_refused_bytes("\xff\xfe{\0}\0", 6, 1, 1, "UTF-16");
    assert_refused_bytes("\xfe\xff\0{\0}", 6, 1, 1, "UTF-16");
    assert_refused_bytes("{\0}\0", 4, 1, 2, "control character 0x00");
    assert_refused_bytes("daemon:\n  socket: a\0b\n", 22, 2, 12, "control character 0x00");
    assert_refused("daemon:\n  socket: a\x1b[2Jb\n", 2, 12, "control character 0x1b");
    assert_refused("daemon:\n  socket: \"a\\0b\"\n", 2, 11, "control characters are not taken");
    assert_refused("daemon:\n  socket: \"a\\nb\"\n", 2, 11, "control characters are not taken");
    assert_refused("daemon:\n  socket: \"a\\x9bb\"\n", 2, 11, "control characters are not taken");
    assert_refused("daemon:\n  socket: \xff\xff\n", 2, 11, "expected UTF-8");
    assert_refused("daemon:\n  socket: caf\xc3\n", 2, 15, "expected UTF-8");
    assert_accepted("daemon:\n  socket: /\xc3\xa9\xe2\x82\xac\n");
    assert_string_equal(config.daemon.socket, "/\xc3\xa9\xe2\x82\xac");
    assert_refused("# \xc3\xa9\ndaemon:\n  socket: \"\xc3\xa9\"\n  x: 1\n", 4, 3, "\"x\"");
    /* Tabs: fine between words, refused where they would indent. */
    assert_accepted("daemon:\n  loop:\tepoll\t# words\n");
    assert_refused("daemon:\n\tloop: epoll\n", 2, 1, "tabs do not indent, use spaces");
}

static void test_parse_broken_yaml_has_a_place(void **state)
{
    (void)state;
    assert_refused("daemon: {loop: auto\n", 2, 1, "not YAML");
    assert_refused("daemon:\n  socket: \"a\n", 3, 1, "unexpected end of stream");
    assert_refused("daemon:\n  loop: auto\n loop: auto\n", 3, 2, "not YAML");
    assert_refused("daemon: }\n", 1, 9, "not YAML");
    assert_refused("daemon:\n  loop\n  socket: x\n", 2, 3, "found a scalar");
    assert_int_equal(errors.count, 2);
    assert_non_null(strstr(errors.items[1].text, "not YAML"));
}

/** Text of "section: {key: value}" for a number of base units beyond a limit or at it. */
static void set_number(const struct rbi_config_key *key, uint64_t value, char *buffer, size_t size)
{
    const char *unit = key->type == RBI_CONFIG_TYPE_DURATION ? "ms" : "";
    unit = key->type == RBI_CONFIG_TYPE_SIZE ? "B" : unit;
    (void)snprintf(buffer, size, "%.*s: {%s: %llu%s}", (int)(strchr(key->name, '.') - key->name),
                   key->name, strchr(key->name, '.') + 1, (unsigned long long)value, unit);
}

static void test_parse_ends_of_every_range(void **state)
{
    (void)state;
    unsigned tried = 0;
    for (size_t i = 0; i < rbi_config_schema.count; i++) {
        const struct rbi_config_key *key = &rbi_config_schema.keys[i];
        char text[128];
        if (key->type == RBI_CONFIG_TYPE_TEXT || key->type == RBI_CONFIG_TYPE_MODE ||
            key->type == RBI_CONFIG_TYPE_CHOICE || key->type == RBI_CONFIG_TYPE_USERS) {
            continue;
        }
        tried++;
        set_number(key, key->min, text, sizeof text);
        assert_accepted(text);
        set_number(key, key->max, text, sizeof text);
        assert_accepted(text);
        set_number(key, key->min - 1, text, sizeof text);
        assert_int_equal(parse(text), 1);
        assert_non_null(strstr(errors.items[0].text, "out of range"));
        set_number(key, key->max + 1, text, sizeof text);
        assert_int_equal(parse(text), 1);
        assert_non_null(strstr(errors.items[0].text, "out of range"));
    }
    assert_int_equal(tried, 22);
}

static void test_restart_is_asked_for_where_it_is_needed(void **state)
{
    (void)state;
    static const char *const restart[] = {
        "daemon.socket",      "daemon.socket_mode",  "daemon.loop",        "directory.slots",
        "directory.clusters", "directory.snapshots", "daemon.return_time", "daemon.state_dir"};
    for (size_t i = 0; i < rbi_config_schema.count; i++) {
        const struct rbi_config_key *key = &rbi_config_schema.keys[i];
        bool expected = false;
        for (size_t j = 0; j < RBI_ARRAY_SIZE(restart); j++) {
            expected |= strcmp(restart[j], key->name) == 0;
        }
        assert_int_equal(key->restart, expected);
    }
}

struct seen {
    unsigned count;
    bool restart;
    char key[64];
    char old_value[64];
    char new_value[64];
};

static void on_difference(
    void *context, const char *key, const char *old_value, const char *new_value, bool restart)
{
    struct seen *seen = context;
    seen->count++;
    seen->restart = restart;
    (void)snprintf(seen->key, sizeof seen->key, "%s", key);
    (void)snprintf(seen->old_value, sizeof seen->old_value, "%s", old_value);
    (void)snprintf(seen->new_value, sizeof seen->new_value, "%s", new_value);
}

/* 128: a line for each key that changed, and whether it needs a restart. */
static void test_diff_reports_each_change(void **state)
{
    (void)state;
    struct rbi_config running;
    struct seen seen = {0};
    rbi_config_defaults(&running);
    rbi_config_diff(&running, &running, on_difference, &seen);
    assert_int_equal(seen.count, 0);

    assert_accepted("liveness: {interval: 1000ms}"); /* another spelling is no change */
    rbi_config_diff(&running, &config, on_difference, &seen);
    assert_int_equal(seen.count, 0);

    assert_accepted("liveness: {interval: 2s}");
    rbi_config_diff(&running, &config, on_difference, &seen);
    assert_int_equal(seen.count, 1);
    assert_string_equal(seen.key, "liveness.interval");
    assert_string_equal(seen.old_value, "1000 ms");
    assert_string_equal(seen.new_value, "2000 ms");
    assert_false(seen.restart);

    memset(&seen, 0, sizeof seen);
    assert_accepted("{daemon: {socket: /x}}");
    rbi_config_diff(&running, &config, on_difference, &seen);
    assert_int_equal(seen.count, 1);
    assert_string_equal(seen.key, "daemon.socket");
    assert_string_equal(seen.old_value, "\"\"");
    assert_string_equal(seen.new_value, "\"/x\"");
    assert_true(seen.restart);

    memset(&seen, 0, sizeof seen);
    assert_accepted("{daemon: {loop: epoll, log_level: error}, quota: {bytes: 1GiB, control: 1}}");
    rbi_config_diff(&running, &config, on_difference, &seen);
    assert_int_equal(seen.count, 4);
}

struct listing {
    unsigned keys;
    unsigned standard;
    char text[2048];
};

static void on_value(void *context, const char *key, const char *value, bool is_default)
{
    struct listing *list = context;
    const size_t used = strlen(list->text);
    list->keys++;
    list->standard += is_default;
    (void)snprintf(list->text + used, sizeof list->text - used, "%s=%s\n", key, value);
}

static void on_doc(void *context,
                   const char *key,
                   const char *type,
                   const char *unit,
                   const char *default_value,
                   const char *range,
                   bool needs_restart,
                   const char *text)
{
    unsigned *count = context;
    (void)default_value;
    (void)needs_restart;
    (*count)++;
    assert_non_null(strchr(key, '.'));
    assert_true(strlen(type) > 1 && strlen(range) > 1 && strlen(text) > 10);
    assert_true((strcmp(type, "duration") == 0) == (strcmp(unit, "ms, s, m, h") == 0));
}

/* 125: effective values are printed in base units. */
static void test_print_and_doc_cover_every_key(void **state)
{
    (void)state;
    struct listing list = {0};
    unsigned documented = 0;
    assert_accepted("{liveness: {interval: 1m}, directory: {snapshots: 64KiB}}");
    rbi_config_print(&config, on_value, &list);
    rbi_config_doc(on_doc, &documented);
    assert_int_equal(list.keys, documented);
    assert_int_equal(list.standard, documented - 2);
    assert_non_null(strstr(list.text, "liveness.interval=60000 ms\n"));
    assert_non_null(strstr(list.text, "directory.snapshots=65536 B\n"));
    assert_non_null(strstr(list.text, "daemon.socket_mode=0666\n"));
    assert_non_null(strstr(list.text, "daemon.loop=auto\n"));
    assert_non_null(strstr(list.text, "quota.control=200 per second\n"));
    assert_non_null(strstr(list.text, "quota.links=1024\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_are_the_documented_ones),
        cmocka_unit_test(test_parse_every_key),
        cmocka_unit_test(test_parse_keeps_defaults_of_what_is_not_given),
        cmocka_unit_test(test_parse_leaves_the_output_alone_on_failure),
        cmocka_unit_test(test_parse_refuses_empty_files),
        cmocka_unit_test(test_parse_unknown_keys_name_what_is_near),
        cmocka_unit_test(test_parse_lists_all_errors),
        cmocka_unit_test(test_parse_duplicates_name_both_lines),
        cmocka_unit_test(test_parse_refuses_anchors_aliases_tags),
        cmocka_unit_test(test_parse_wrong_shapes),
        cmocka_unit_test(test_parse_nothing_is_not_a_value),
        cmocka_unit_test(test_parse_encodings_and_bytes),
        cmocka_unit_test(test_parse_broken_yaml_has_a_place),
        cmocka_unit_test(test_parse_ends_of_every_range),
        cmocka_unit_test(test_restart_is_asked_for_where_it_is_needed),
        cmocka_unit_test(test_diff_reports_each_change),
        cmocka_unit_test(test_print_and_doc_cover_every_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
