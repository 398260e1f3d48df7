/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bridge's word with the daemon of its host, and what it exports of that (features 2.13,
 * scenario group I): a real ringbusd, endpoints that come, leave and die, deaths of the daemon.
 */
#include "daemon/bridge/export.h"
#include "daemon/bridge/station.h"
#include "support/bus.h"
#include "support/raw.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SERVICE "/game/eu/pc/w1/core/far"
#define OTHER   "/game/eu/pc/w1/core/own"
#define BETA    UINT64_C(9)
#define NS_1MS  UINT64_C(1000000)
/* A new daemon is taken at its word when its clients have had that long to come back. */
#define CONFIG(return_time)                                                                        \
    "bridge: {host: alpha, insecure: true, start: false, export: [\"/game/**/far\"]}\n"            \
    "daemon: {return_time: " return_time "}\n"

static struct cluster cluster;
static struct rbi_loop *loop;
static struct rbi_bridge_config config;
static struct rbi_station *station;
static struct rbi_export *export;
static unsigned joined;
static unsigned lost;
static unsigned looks;
static bool settled;
static struct rbi_wire_way way; /* the last */
static char confirmed[64];
static struct rbi_remote_item items[64]; /* that beta was told */
static unsigned item_count;

static int sink(void *context, uint64_t host, const struct rbi_remote_item *item)
{
    (void)context;
    CHECK(host == BETA && item_count < 64);
    items[item_count++] = *item;
    return 0;
}

static void on_joined(void *context)
{
    (void)context;
    joined++;
}

static void on_lost(void *context)
{
    (void)context;
    lost++;
}

static void on_way(void *context, const char *host, const char *next, uint32_t cost, uint32_t hops)
{
    (void)context;
    rbi_text_set(&way.host, host);
    rbi_text_set(&way.next, next);
    way.cost = cost;
    way.hops = hops;
}

static void on_directory(void *context, const struct rbi_directory_view *view, bool is_settled)
{
    (void)context;
    looks++;
    settled = is_settled;
    const int result = rbi_export_look(export, view, is_settled);
    CHECK(result == 0 || result == RBI_DIRECTORY_BUSY);
    if (result != 0 || (is_settled && rbi_export_again(export))) {
        rbi_station_look(station);
    }
    while (rbi_export_pump(export)) {
    }
}

static void on_removed(void *context, const struct rbi_pidf *instance, enum rbi_reason reason)
{
    (void)context;
    rbi_export_removed(export, instance, reason);
}

static void on_confirm(void *context, const char *host, const char *prefix)
{
    (void)context;
    (void)snprintf(confirmed, sizeof confirmed, "%s %s", host, prefix);
}

static const struct rbi_station_events events = {.on_joined = on_joined,
                                                 .on_lost = on_lost,
                                                 .on_way = on_way,
                                                 .on_directory = on_directory,
                                                 .on_removed = on_removed,
                                                 .on_confirm = on_confirm};

/** Turns the loop, and polls the nodes, until the condition holds. */
#define UNTIL(condition, ...)                                                                      \
    do {                                                                                           \
        struct node *const nodes_[] = {NULL, __VA_ARGS__};                                         \
        const uint64_t deadline_ms_ = test_now_ms() + NODE_MS;                                     \
        while (!(condition)) {                                                                     \
            CHECK(test_now_ms() < deadline_ms_);                                                   \
            CHECK(rbi_loop_turn(loop, NS_1MS) == 0);                                               \
            for (unsigned i_ = 1; i_ < sizeof nodes_ / sizeof nodes_[0]; i_++) {                   \
                CHECK(ringbus_poll(nodes_[i_]->bus, 1000) >= 0);                                   \
                CHECK(ringbus_wait(nodes_[i_]->bus, 0) >= 0);                                      \
            }                                                                                      \
        }                                                                                          \
    } while (0)

static void begin_with(const char *text)
{
    joined = lost = looks = item_count = 0;
    settled = false;
    confirmed[0] = '\0';
    memset(&way, 0, sizeof way);
    assert_int_equal(cluster_up(&cluster, text), 0);
    assert_int_equal(rbi_loop_new(&loop, RBI_LOOP_AUTO), 0);
    rbi_bridge_config_defaults(&config);
    (void)snprintf(config.host, sizeof config.host, "alpha");
    config.export.count = 1;
    (void)snprintf(config.export.items[0], sizeof config.export.items[0], "/game/**/far");
    assert_int_equal(rbi_export_new(77, &config.export, sink, NULL, &export), 0);
    assert_int_equal(rbi_export_ask(export, BETA, 0, 0), 0);
    assert_int_equal(rbi_station_new(loop, cluster.socket, &config, 77, &events, NULL, &station),
                     0);
}

static void begin(void)
{
    begin_with(CONFIG("10ms"));
}

static void end(void)
{
    rbi_station_free(station);
    rbi_export_free(export);
    loop = rbi_loop_free(loop);
    cluster_down(&cluster);
}

/** The last item that beta was told of an instance, or NULL. */
static const struct rbi_remote_item *last_of(const char *path)
{
    for (unsigned i = item_count; i > 0; i--) {
        if (strcmp(items[i - 1].remote.path, path) == 0) {
            return &items[i - 1];
        }
    }
    return NULL;
}

static bool removed(const char *path, uint32_t reason)
{
    const struct rbi_remote_item *item = last_of(path);
    return item && (item->flags & RBI_ITEM_REMOVED) != 0 && item->remote.state == reason;
}

static bool told(const char *path)
{
    const struct rbi_remote_item *item = last_of(path);
    return item && (item->flags & RBI_ITEM_REMOVED) == 0;
}

static void live(const struct cluster *at, void *context)
{
    struct node node = {0};
    node_open(&node, at, context);
    for (;;) {
        CHECK(ringbus_poll(node.bus, 1000) >= 0 && ringbus_wait(node.bus, 100) >= 0);
    }
}

static void test_what_is_exported_is_told(void **state)
{
    (void)state;
    static char third[] = SERVICE "/3";
    struct node one = {0};
    struct node own = {0};
    begin();
    node_open(&own, &cluster, OTHER "/1");
    UNTIL(joined == 1 && item_count == 1, &own);
    assert_int_equal(items[0].flags, RBI_ITEM_FIRST | RBI_ITEM_LAST);
    node_open(&one, &cluster, SERVICE "/1");
    const pid_t child = child_start(live, &cluster, third);
    UNTIL(told(SERVICE "/1") && told(third), &one, &own);
    assert_int_equal(last_of(SERVICE "/1")->remote.state, RBI_ENDPOINT_READY);
    assert_null(last_of(OTHER "/1"));
    child_kill(child);
    UNTIL(removed(third, RBI_REASON_CRASHED), &one, &own);
    node_close(&one);
    UNTIL(removed(SERVICE "/1", RBI_REASON_LEFT), &own);
    assert_int_equal(rbi_export_count(export), 0);
    node_close(&own);
    end();
}

static void test_a_daemon_that_dies_takes_nobody_away(void **state)
{
    (void)state;
    static char third[] = SERVICE "/3";
    struct node one = {0};
    begin_with(CONFIG("3s"));
    node_open(&one, &cluster, SERVICE "/1");
    const pid_t child = child_start(live, &cluster, third);
    UNTIL(joined == 1 && told(SERVICE "/1") && told(third), &one);
    const unsigned before = item_count;
    cluster_kill(&cluster);
    UNTIL(lost == 1, &one);
    assert_false(rbi_station_is_joined(station));
    child_kill(child); /* and nobody is there to see it */
    assert_int_equal(cluster_start(&cluster), 0);
    UNTIL(joined == 2, );
    for (unsigned i = 0; i < 3; i++) { /* it is not back, and not missed */
        looks = 0;
        rbi_station_look(station);
        UNTIL(looks > 0, );
        assert_true(told(SERVICE "/1"));
    }
    UNTIL(settled, &one);
    UNTIL(removed(third, RBI_REASON_CRASHED), &one);
    assert_true(told(SERVICE "/1"));
    for (unsigned i = before; i < item_count; i++) {
        assert_string_not_equal(items[i].remote.path, SERVICE "/1");
    }
    node_close(&one);
    end();
}

static void test_a_directory_that_grows_is_read_on(void **state)
{
    (void)state;
    static struct node nodes[40];
    begin();
    UNTIL(joined == 1, );
    assert_int_equal(cluster_stop(&cluster), 0);
    assert_int_equal(cluster_configure(&cluster,
                                       CONFIG("10ms") "directory: {slots: 64, clusters: 16, "
                                                      "snapshots: 64KiB}\n"),
                     0);
    assert_int_equal(cluster_start(&cluster), 0);
    UNTIL(joined == 2, );
    for (unsigned i = 0; i < 40; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, "/game/eu/pc/w1/core%u/far/%u", i, i + 1);
        memset(&nodes[i], 0, sizeof nodes[i]);
        node_open(&nodes[i], &cluster, path);
    }
    UNTIL(rbi_export_count(export) == 40, );
    assert_true(cluster_log_count(&cluster, "event=directory_grown") > 0);
    for (unsigned i = 0; i < 40; i++) {
        node_close(&nodes[i]);
    }
    end();
}

static void test_other_globs_are_watched(void **state)
{
    (void)state;
    struct node one = {0};
    struct node two = {0};
    begin();
    node_open(&one, &cluster, SERVICE "/1");
    node_open(&two, &cluster, "/other/eu/pc/w1/core/far/2");
    UNTIL(told(SERVICE "/1"), &one, &two);
    (void)snprintf(config.export.items[0], sizeof config.export.items[0], "/other/**");
    rbi_export_configure(export, &config.export);
    rbi_station_configure(station, &config);
    UNTIL(removed(SERVICE "/1", RBI_REASON_LEFT), &one, &two);
    UNTIL(told("/other/eu/pc/w1/core/far/2"), &one, &two);
    node_close(&two);
    UNTIL(removed("/other/eu/pc/w1/core/far/2", RBI_REASON_LEFT), &one);
    node_close(&one);
    end();
}

/* ---- ways, hosts, tools ------------------------------------------------------------------ */

static void add_edge(struct rbi_frame_edges *edges, const char *name, uint32_t cost)
{
    struct rbi_frame_edge *edge = &edges->list.edge[edges->list.count++];
    edge->name.length = (uint8_t)strlen(name);
    (void)snprintf(edge->name.bytes, sizeof edge->name.bytes, "%s", name);
    edge->cost = cost;
}

static struct rbi_frame_edges edges_of(const char *origin)
{
    struct rbi_frame_edges edges;
    memset(&edges, 0, sizeof edges);
    edges.name.length = (uint8_t)strlen(origin);
    (void)snprintf(edges.name.bytes, sizeof edges.name.bytes, "%s", origin);
    edges.incarnation = 1;
    edges.sequence = 1;
    return edges;
}

static void test_ways_are_heard_of(void **state)
{
    (void)state;
    struct rbi_wire_host host = {.state = RBI_HOST_UP, .cost = 10};
    begin();
    UNTIL(joined == 1, );
    struct rbi_frame_edges own = edges_of("alpha");
    for (unsigned i = 0; i < 63; i++) { /* more than one message takes */
        char name[64];
        (void)snprintf(name, sizeof name, "%02u%050u", i, 0U);
        add_edge(&own, name, 100);
    }
    add_edge(&own, "beta", 10);
    struct rbi_frame_edges beta = edges_of("beta");
    add_edge(&beta, "gamma", 5);
    add_edge(&beta, "alpha", 10);
    rbi_station_edges(station, &own);
    UNTIL(strcmp(way.host.bytes, "beta") == 0, );
    assert_string_equal(way.next.bytes, "beta");
    assert_int_equal(way.cost, 10);
    rbi_station_edges(station, &beta);
    UNTIL(strcmp(way.host.bytes, "gamma") == 0, );
    assert_string_equal(way.next.bytes, "beta");
    assert_int_equal(way.hops, 2);
    rbi_text_set(&host.name, "beta");
    rbi_station_host(station, &host);
    own.list.count = 0; /* none: the last of them is told, too */
    rbi_station_edges(station, &own);
    UNTIL(strcmp(way.host.bytes, "gamma") == 0 && way.next.length == 0, );
    end();
}

static void test_an_operator_is_heard(void **state)
{
    (void)state;
    struct raw tool;
    struct rbi_wire_confirm body;
    begin();
    UNTIL(joined == 1, );
    memset(&body, 0, sizeof body);
    rbi_text_set(&body.host, "beta");
    rbi_text_set(&body.prefix, "/game");
    assert_int_equal(raw_connect(&tool, cluster.socket), 0);
    assert_int_equal(raw_hello(&tool), 0);
    assert_int_equal(raw_send(&tool, RBI_WIRE_CONFIRM, &body, NULL, 0), 0);
    UNTIL(confirmed[0] != '\0', );
    assert_string_equal(confirmed, "beta /game");
    raw_close(&tool);
    end();
}

static void test_a_second_bridge_waits_for_its_place(void **state)
{
    (void)state;
    struct rbi_station *second = NULL;
    begin();
    UNTIL(joined == 1, );
    assert_int_equal(rbi_station_new(loop, cluster.socket, &config, 78, &events, NULL, &second), 0);
    const uint64_t end_ms = test_now_ms() + 100; /* it is refused, and asks again */
    UNTIL(test_now_ms() > end_ms, );
    assert_int_equal(joined, 1);
    assert_int_equal(lost, 0);
    rbi_station_free(station);
    station = second;
    UNTIL(joined == 2, );
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_exported_is_told),
        cmocka_unit_test(test_a_daemon_that_dies_takes_nobody_away),
        cmocka_unit_test(test_a_directory_that_grows_is_read_on),
        cmocka_unit_test(test_other_globs_are_watched),
        cmocka_unit_test(test_ways_are_heard_of),
        cmocka_unit_test(test_an_operator_is_heard),
        cmocka_unit_test(test_a_second_bridge_waits_for_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
