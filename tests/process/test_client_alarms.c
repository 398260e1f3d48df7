/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Alarms, features J4/J17: what callers count in their own memory is summed by the daemon; a figure
 * that is beyond the threshold of a rule for its time is told to whoever watches the cluster, once,
 * and so is its end. Real daemon, real calls; the rules themselves are tested on virtual time
 * (tests/unit/test_alarm.c).
 */
#include "bus/alarm.h"
#include "bus/histogram.h"
#include "support/bus.h"
#include "support/raw.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define PLACE   "/game/eu/pc/w1/core"
#define SERVICE PLACE "/service"
#define NOBODY  PLACE "/nobody"
#define WAIT_MS 20U /* that a request has */

static struct cluster cluster;
static struct node server;
static struct node caller;
static struct node watcher;
static struct ringbus_addr to;
static bool silent;

/* Nothing is judged before those of the daemon before have had their time. */
#define SOON "daemon: {return_time: 300ms}\n"

static const char config[] =
    SOON "alarms:\n"
         "  - {id: errors, match: " SERVICE ", metric: error_ratio, threshold: 0.5, for: 300ms,\n"
         "     clear_for: 300ms, calls: 5}\n"
         "  - {id: late, match: " PLACE
         "/*, metric: p50_us, threshold: 15000, for: 0ms, clear_for: 0ms}\n"
         "  - {id: empty, match: " NOBODY ", metric: instances, op: <, threshold: 1, for: 0ms}\n"
         "clusters: [{match: " SERVICE ", shield: {preset: 'off'}}]\n";

/** What a watcher was told of one rule. */
struct told {
    const char *rule;
    unsigned firing;
    unsigned resolved;
    double value;
    char path[RINGBUS_PATH_MAX + 1];
    char metric[32];
};

#define RULES 3U
struct rules {
    struct told of[RULES];
};
static struct rules told;

static void note(struct node *node, const struct ringbus_event *event)
{
    struct rules *rules = node->context;
    if (event->type != RINGBUS_EVENT_ALARM_FIRING && event->type != RINGBUS_EVENT_ALARM_RESOLVED) {
        CHECK(event->alarm == NULL);
        return;
    }
    for (unsigned i = 0; i < RULES; i++) {
        struct told *rule = &rules->of[i];
        if (rule->rule != NULL && strcmp(rule->rule, event->alarm->rule) == 0) {
            rule->firing += event->type == RINGBUS_EVENT_ALARM_FIRING;
            rule->resolved += event->type == RINGBUS_EVENT_ALARM_RESOLVED;
            rule->value = event->alarm->value;
            (void)snprintf(rule->path, sizeof rule->path, "%s", event->path);
            (void)snprintf(rule->metric, sizeof rule->metric, "%s", event->alarm->metric);
            return;
        }
    }
    bus_die(__FILE__, __LINE__, "a rule that is known");
}

static void expect_rules(struct rules *rules)
{
    *rules = (struct rules){.of = {{.rule = "errors"}, {.rule = "late"}, {.rule = "empty"}}};
}

static void serve(struct node *node, const struct ringbus_message *message)
{
    if (!silent) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, "ok", 2, 0) == 1);
    }
}

/** One request each millisecond. */
static void call_step(void)
{
    static uint64_t last_ms;
    struct node *const all[] = {&caller, &server, &watcher};
    nodes_step(all, 3);
    if (test_now_ms() != last_ms) {
        last_ms = test_now_ms();
        const int r =
            ringbus_request(caller.bus, &to, 0, "hi", 2, 0, WAIT_MS, node_on_result, &caller);
        CHECK(r == 1 || r == RINGBUS_E_FULL || r == RINGBUS_E_LIMITED);
    }
}

#define CALL_UNTIL(condition)                                                                      \
    do {                                                                                           \
        const uint64_t end_ms_ = test_now_ms() + 2 * NODE_MS;                                      \
        while (!(condition)) {                                                                     \
            if (test_now_ms() > end_ms_) {                                                         \
                bus_die(__FILE__, __LINE__, "in time: " #condition);                               \
            }                                                                                      \
            call_step();                                                                           \
        }                                                                                          \
    } while (0)

static void watcher_open(struct node *node, struct rules *rules, const char *prefix)
{
    expect_rules(rules);
    *node = (struct node){.on_event = note, .context = rules};
    node_open(node, &cluster, NULL);
    CHECK(ringbus_watch(node->bus, prefix) == 0);
}

static void open_all(void)
{
    silent = false;
    server = (struct node){.on_message = serve};
    caller = (struct node){.bus = NULL};
    node_open(&server, &cluster, SERVICE "/1");
    node_open(&caller, &cluster, PLACE "/caller/1");
    watcher_open(&watcher, &told, "/game");
    to = node_target(&caller, SERVICE, 1, &server);
}

static void close_all(void)
{
    node_close(&watcher);
    node_close(&caller);
    node_close(&server);
}

/* ---- rows ----------------------------------------------------------------------------------- */

/** The only row of an answer about a prefix. */
static struct raw_message row_of(enum rbi_query what, const char *prefix, enum rbi_wire_type type)
{
    struct rbi_wire_query query = {.what = (uint32_t)what};
    struct raw raw;
    struct raw_message row = {.header = {.type = 0}};
    struct raw_message message;
    rbi_text_set(&query.prefix, prefix);
    assert_int_equal(raw_up(&raw, cluster.socket, ""), 0);
    assert_int_equal(raw_send(&raw, RBI_WIRE_QUERY, &query, NULL, 0), 0);
    for (;;) {
        assert_int_equal(raw_receive(&raw, &message, RAW_TIMEOUT_MS), 0);
        if (message.header.type == RBI_WIRE_QUERY_END) {
            break;
        }
        assert_int_equal(message.header.type, type);
        assert_int_equal(row.header.type, 0);
        row = message;
    }
    raw_close(&raw);
    assert_int_equal(row.header.type, type);
    return row;
}

static uint64_t calls_of(const struct rbi_wire_row_calls *row)
{
    return row->ok + row->failed + row->lost;
}

/* Features T31: how long calls took, of the instance and of its cluster, to 3 %. */
static void test_calls_are_summed(void **state)
{
    (void)state;
    open_all();
    const uint64_t sent = 300;
    CALL_UNTIL(caller.replies[RINGBUS_REPLIED] >= sent);
    /* All that has ended by now is there after one more sweep. */
    const uint64_t ended = node_stats(&caller).replies + node_stats(&caller).timeouts;
    struct raw_message row;
    do {
        call_step();
        row = row_of(RBI_QUERY_CLUSTER_CALLS, SERVICE, RBI_WIRE_ROW_CALLS);
    } while (calls_of(&row.body.row_calls) < ended);
    const struct rbi_wire_row_calls all = row.body.row_calls;
    uint64_t below[RBI_HISTOGRAM_OCTAVES];
    assert_string_equal(all.path.bytes, SERVICE);
    assert_int_equal(all.below.length, sizeof below);
    memcpy(below, all.below.bytes, sizeof below);
    assert_int_equal(below[RBI_HISTOGRAM_OCTAVES - 1], calls_of(&all));
    for (unsigned i = 1; i < RBI_HISTOGRAM_OCTAVES; i++) {
        assert_true(below[i] >= below[i - 1]);
    }
    assert_true(all.p50_ns > 0 && all.p50_ns <= all.p90_ns);
    assert_true(all.p90_ns <= all.p99_ns && all.p99_ns <= all.p999_ns);
    assert_true(all.recent_calls >= ended && all.recent_ms >= 8000);
    row = row_of(RBI_QUERY_INSTANCE_CALLS, SERVICE "/1", RBI_WIRE_ROW_CALLS);
    assert_true(calls_of(&row.body.row_calls) >= ended);
    assert_true(row.body.row_calls.p50_ns > 0);
    close_all();
}

/* ---- what fires ------------------------------------------------------------------------------ */

static void test_what_fires_is_told_once_and_so_is_its_end(void **state)
{
    struct node second;
    static struct rules later;
    struct node other;
    static struct rules elsewhere;
    (void)state;
    open_all();
    struct told *errors = &told.of[0];
    struct told *late = &told.of[1];
    struct told *empty = &told.of[2];
    CALL_UNTIL(caller.replies[RINGBUS_REPLIED] > 20 && empty->firing == 1);
    assert_string_equal(empty->path, NOBODY); /* nobody has ever been there */
    assert_int_equal(errors->firing + late->firing, 0);
    silent = true;
    CALL_UNTIL(errors->firing == 1 && late->firing == 1);
    assert_string_equal(errors->path, SERVICE);
    assert_string_equal(errors->metric, "error_ratio");
    assert_true(errors->value > 0.5 && errors->value <= 1);
    assert_true(late->value > 15000 && late->value < 1e6);
    assert_true(
        cluster_log_wait(&cluster, "event=alarm_firing rule=errors path=" SERVICE, NODE_MS));
    struct raw_message row = row_of(RBI_QUERY_ALARMS, NOBODY, RBI_WIRE_ROW_ALARM);
    assert_int_equal(row.body.row_alarm.state, RBI_ALARM_FIRING);
    assert_string_equal(row.body.row_alarm.rule.bytes, "empty");
    /* Who comes later is told as well; who watches others is not. */
    watcher_open(&second, &later, PLACE);
    watcher_open(&other, &elsewhere, "/game/eu/pc/w1/other");
    RUN_UNTIL(later.of[0].firing == 1 && later.of[2].firing == 1, NODE_MS, &second, &other);
    silent = false;
    CALL_UNTIL(errors->resolved == 1 && late->resolved == 1);
    assert_true(errors->value <= 0.5);
    assert_true(
        cluster_log_wait(&cluster, "event=alarm_resolved rule=errors path=" SERVICE, NODE_MS));
    assert_int_equal(errors->firing + late->firing + empty->firing, 3);
    RUN_UNTIL(later.of[0].resolved == 1, NODE_MS, &second, &other);
    assert_int_equal(empty->resolved, 0);
    assert_int_equal(other.events[RINGBUS_EVENT_ALARM_FIRING], 0);
    node_close(&other);
    node_close(&second);
    close_all();
}

/* Live: a rule that goes ends what fires by it, a new one is judged at once. */
static void test_another_configuration(void **state)
{
    (void)state;
    open_all();
    struct told *errors = &told.of[0];
    struct told *empty = &told.of[2];
    CALL_UNTIL(empty->firing == 1);
    assert_int_equal(cluster_configure(&cluster,
                                       SOON "alarms: [{id: errors, match: " SERVICE
                                            ", metric: rate, threshold: 0.5, for: 0ms}]\n"),
                     0);
    assert_int_equal(kill(cluster.pid, SIGHUP), 0);
    CALL_UNTIL(empty->resolved == 1 && errors->firing == 1);
    assert_string_equal(errors->metric, "rate");
    /* One that is about nobody's threshold any more. */
    assert_int_equal(cluster_configure(&cluster, config), 0);
    assert_int_equal(kill(cluster.pid, SIGHUP), 0);
    CALL_UNTIL(empty->firing == 2 && errors->resolved == 1);
    close_all();
}

/* A new daemon begins with nothing: what fired is over, and fires again if it still is so. */
static void test_another_daemon(void **state)
{
    (void)state;
    open_all();
    struct told *empty = &told.of[2];
    CALL_UNTIL(empty->firing == 1);
    cluster_kill(&cluster);
    assert_int_equal(cluster_start(&cluster), 0);
    CALL_UNTIL(empty->firing == 2);
    assert_int_equal(empty->resolved, 1);
    CHECK(ringbus_unwatch(watcher.bus, "/game") == 0);
    CHECK(ringbus_watch(watcher.bus, "/game") == 0);
    CALL_UNTIL(empty->firing == 3); /* as if never told */
    assert_int_equal(empty->resolved, 1);
    close_all();
}

static int up(void **state)
{
    (void)state;
    return cluster_up(&cluster, config);
}

static int down(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_calls_are_summed, up, down),
        cmocka_unit_test_setup_teardown(test_what_fires_is_told_once_and_so_is_its_end, up, down),
        cmocka_unit_test_setup_teardown(test_another_configuration, up, down),
        cmocka_unit_test_setup_teardown(test_another_daemon, up, down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
