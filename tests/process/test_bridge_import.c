/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instances of one host in the directory of another, as applications see them, while what lists
 * them fails (features, tests, 7): lost, empty, without one of them. Two real daemons; what lies
 * between two bridges is done by hand (support/relay.h). With RINGBUS_TEST_FULL the times are those
 * that the scenario names, else some of a second.
 */
#include "daemon/bridge/export.h"
#include "daemon/bridge/import_desk.h"
#include "daemon/bridge/station.h"
#include "support/relay.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAR  "/game/eu/pc/w1/core/far"
#define OWN  "/game/eu/pc/w1/core/own"
#define LIFE UINT64_C(77)
#define CONFIG                                                                                     \
    "daemon: {return_time: 10ms}\n"                                                                \
    "clusters: [{match: \"/**\", balance: {keyless: rr}}]\n"
#define FARS      2U
#define INSTANCES 8U

static struct relay relay;
static struct rbi_bridge_config config[2];
static struct rbi_station *station[2];
static struct rbi_directory_view view; /* of alpha */
static bool viewed;
static struct rbi_export *export;    /* beta's */
static struct rbi_import_desk *desk; /* alpha's */
static bool asked;
static uint64_t asked_incarnation;
static uint64_t asked_revision;
static bool mute; /* what beta says does not come through */
static struct node caller;
static struct node own;       /* a service of alpha */
static struct node far[FARS]; /* services of beta */
static uint32_t grace_ms;
static uint32_t hold_ms;
static uint64_t beta;

/* ---- the bridges ------------------------------------------------------------------------- */

static int sink(void *context, uint64_t host, const struct rbi_remote_item *item)
{
    (void)context;
    (void)host;
    if (!mute) {
        CHECK(rbi_import_desk_item(desk, beta, item) == 0);
    }
    return 0;
}

static struct rbi_proxy_spec
spec_of(const struct rbi_import_host *host, const struct rbi_remote *remote, bool stale)
{
    return (struct rbi_proxy_spec){.path = remote->path,
                                   .incarnation = remote->pidf.incarnation,
                                   .host = host != NULL ? host->name : "beta",
                                   .state = remote->state,
                                   .weight = remote->weight,
                                   .health = remote->health,
                                   .reported = remote->reported,
                                   .set = remote->set,
                                   .idc = remote->idc,
                                   .tags = remote->tags,
                                   .stale = stale};
}

static int add(void *context,
               const struct rbi_import_host *host,
               uint32_t entry,
               const struct rbi_remote *remote,
               bool stale,
               void **user)
{
    const struct rbi_proxy_spec spec = spec_of(host, remote, stale);
    (void)context;
    (void)entry;
    *user = relay_proxy(&relay, 0, &spec);
    return 0;
}

static void update(void *context, void *user, const struct rbi_remote *remote, bool stale)
{
    const struct rbi_proxy_spec spec = spec_of(NULL, remote, stale);
    (void)context;
    CHECK(rbi_proxy_update(user, &spec) == 0);
}

static void take_away(void *context, void *user, uint32_t reason)
{
    (void)context;
    rbi_proxy_free(user, (enum rbi_reason)reason);
}

static int ask(void *context, uint64_t host, uint64_t incarnation, uint64_t revision)
{
    (void)context;
    CHECK(host == beta);
    asked = true; /* it comes over a network: not from inside the sink */
    asked_incarnation = incarnation;
    asked_revision = revision;
    return 0;
}

/** The exporter hears what it was asked, and tells. */
static void pump(void)
{
    if (asked && !mute) {
        CHECK(rbi_export_ask(export, 1, asked_incarnation, asked_revision) == 0);
    }
    asked = false;
    while (rbi_export_pump(export)) {
    }
}

static const struct rbi_import_desk_calls calls = {
    .add = add, .update = update, .remove = take_away, .ask = ask};

static void on_nothing(void *context)
{
    (void)context;
}

static void on_way(void *context, const char *host, const char *next, uint32_t cost, uint32_t hops)
{
    (void)context;
    (void)host;
    (void)next;
    (void)cost;
    (void)hops;
}

static void on_directory(void *context, const struct rbi_directory_view *now, bool settled)
{
    if (context == &station[0]) {
        view = *now;
        viewed = true;
        return;
    }
    const int result = rbi_export_look(export, now, settled);
    if (result != 0 || (settled && rbi_export_again(export))) {
        rbi_station_look(station[1]);
    }
}

static void on_removed(void *context, const struct rbi_pidf *instance, enum rbi_reason reason)
{
    if (context == &station[1]) {
        rbi_export_removed(export, instance, reason);
    }
}

static void on_confirm(void *context, const char *host, const char *prefix)
{
    (void)context;
    (void)rbi_import_desk_confirm(desk, host, prefix);
}

static const struct rbi_station_events events = {.on_joined = on_nothing,
                                                 .on_lost = on_nothing,
                                                 .on_way = on_way,
                                                 .on_directory = on_directory,
                                                 .on_removed = on_removed,
                                                 .on_confirm = on_confirm};

/* ---- the story so far -------------------------------------------------------------------- */

static void answer(struct node *at, const struct ringbus_message *message)
{
    if (message->reply_to.id != 0) {
        CHECK(ringbus_reply(at->bus, &message->reply_to, message->data, message->size, 0) == 1);
    }
}

#define UNTIL(condition)                                                                           \
    RELAY_UNTIL(&relay, (pump(), (condition)), NODE_MS, &caller, &own, &far[0], &far[1])

static void open_station(unsigned host)
{
    rbi_bridge_config_defaults(&config[host]);
    (void)snprintf(config[host].host, sizeof config[host].host, "%s", relay.host[host].name);
    config[host].grace_ms = grace_ms;
    config[host].mass_hold_ms = hold_ms;
    config[host].limits.instances = INSTANCES;
    config[host].export.count = 1;
    (void)snprintf(config[host].export.items[0], RBI_PATH_MAX + 1, "/game/**/far");
    CHECK(rbi_station_new(relay.loop, relay.host[host].cluster.socket, &config[host], LIFE, &events,
                          &station[host], &station[host]) == 0);
}

/** A request to each cluster, answered. */
static void ask_both(void)
{
    const char *const paths[] = {OWN, FAR};
    for (unsigned i = 0; i < 2; i++) {
        struct ringbus_addr to;
        const unsigned before = caller.replies[RINGBUS_REPLIED];
        CHECK(ringbus_resolve(paths[i], &to) == 0);
        CHECK(ringbus_request(caller.bus, &to, 0, &i, sizeof i, 0, 5000, node_on_result, &caller) ==
              1);
        UNTIL(caller.replies[RINGBUS_REPLIED] == before + 1);
    }
}

/** How many of the far cluster alpha's directory has. @param stale  those of them; or NULL */
static uint32_t seen(uint32_t *stale)
{
    struct rbi_directory_cluster head;
    struct rbi_directory_instance instances[INSTANCES];
    uint32_t count = 0;
    if (!viewed || rbi_directory_read(&view, rbi_cluster_id(FAR, sizeof FAR - 1), &head, instances,
                                      INSTANCES) != RBI_DIRECTORY_OK) {
        return UINT32_MAX;
    }
    for (uint32_t i = 0; i < head.instance_count; i++) {
        CHECK(instances[i].host != 0);
        count += (instances[i].flags & RBI_INSTANCE_STALE) != 0 ? 1U : 0U;
    }
    if (stale != NULL) {
        *stale = count;
    }
    return head.instance_count;
}

static uint32_t seen_stale(void)
{
    uint32_t stale = UINT32_MAX;
    (void)seen(&stale);
    return stale;
}

/** Two services of beta, one of alpha, and a caller of alpha that is linked to all. */
static void begin(void)
{
    memset(&caller, 0, sizeof caller);
    memset(&own, 0, sizeof own);
    memset(far, 0, sizeof far);
    viewed = false;
    mute = false;
    grace_ms = getenv("RINGBUS_TEST_FULL") ? 60000 : 1100;
    hold_ms = grace_ms / 2;
    beta = rbi_host_id("beta", 4);
    relay_up(&relay, CONFIG, NULL);
    own.on_message = answer;
    node_open(&own, &relay.host[0].cluster, OWN "/1");
    for (unsigned i = 0; i < FARS; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, FAR "/%u", i + 1);
        far[i].on_message = answer;
        node_open(&far[i], &relay.host[1].cluster, path);
    }
    open_station(0);
    open_station(1);
    CHECK(rbi_export_new(LIFE, &config[1].export, sink, NULL, &export) == 0);
    CHECK(rbi_import_desk_new(relay.loop, &config[0], NULL, &calls, NULL, &desk) == 0);
    rbi_import_desk_reach(desk, beta, "beta", true);
    node_open(&caller, &relay.host[0].cluster, NULL);
    CHECK(ringbus_target(caller.bus, OWN, NULL, NULL) == 0);
    CHECK(ringbus_target(caller.bus, FAR, NULL, NULL) == 0);
    UNTIL(caller.events[RINGBUS_EVENT_READY] == 1 + FARS);
    UNTIL(seen(NULL) == FARS && seen_stale() == 0);
    for (unsigned i = 0; i < 4; i++) {
        ask_both();
    }
}

static void end(void)
{
    node_close(&caller);
    node_close(&own);
    for (unsigned i = 0; i < FARS; i++) {
        node_close(&far[i]);
    }
    rbi_station_free(station[0]);
    rbi_station_free(station[1]);
    rbi_import_desk_free(desk);
    rbi_export_free(export);
    relay_down(&relay);
}

/** Requests go on for so long, and none fails. */
static void go_on(uint64_t ms)
{
    const uint64_t end_ms = test_now_ms() + ms;
    while (test_now_ms() < end_ms) {
        ask_both();
        test_sleep_ms(2);
    }
    assert_int_equal(caller.replies[RINGBUS_REPLIED],
                     caller.replies[0] + caller.replies[1] + caller.replies[2] + caller.replies[3]);
}

/** Beta says: nobody but those. */
static void list(uint64_t revision, const struct node *const *nodes, uint32_t count)
{
    struct rbi_remote_item item = {
        .incarnation = LIFE, .revision = revision, .flags = RBI_ITEM_FIRST, .number = 1};
    for (uint32_t i = 0; i < count; i++) {
        char path[64];
        const struct rbi_proxy_spec spec = relay_spec(&relay, 0, nodes[i]);
        (void)snprintf(path, sizeof path, "%s", spec.path);
        memset(&item.remote, 0, sizeof item.remote);
        CHECK(rbi_remote_set_path(&item.remote, path, strlen(path)) == 0);
        item.remote.pidf.incarnation = spec.incarnation;
        item.remote.state = RBI_ENDPOINT_READY;
        item.remote.weight = 100;
        CHECK(rbi_import_desk_item(desk, beta, &item) == 0);
        item.flags = 0;
        item.number++;
    }
    memset(&item.remote, 0, sizeof item.remote);
    item.flags |= RBI_ITEM_LAST;
    CHECK(rbi_import_desk_item(desk, beta, &item) == 0);
}

static void test_a_source_that_is_lost_stops_nobody(void **state)
{
    (void)state;
    begin();
    mute = true;
    rbi_import_desk_source_lost(desk, beta);
    UNTIL(seen_stale() == FARS);
    go_on(grace_ms + hold_ms + 200);
    assert_int_equal(seen(NULL), FARS);
    mute = false; /* it is asked until it answers */
    UNTIL(seen_stale() == 0);
    assert_int_equal(seen(NULL), FARS);
    assert_int_equal(caller.events[RINGBUS_EVENT_DOWN], 0);
    end();
}

/** The loop's clock is not behind from here on. @return the time */
static uint64_t mark(void)
{
    const uint64_t now_ms = test_now_ms();
    relay_turn(&relay, true);
    return now_ms;
}

static void test_an_empty_list_takes_nobody_away_that_answers(void **state)
{
    (void)state;
    const struct node *const all[] = {&far[0], &far[1]};
    begin();
    mute = true;
    const uint64_t begun_ms = mark();
    list(1000, NULL, 0);
    UNTIL(seen_stale() == FARS);
    go_on(hold_ms);
    const uint32_t count = seen(NULL);
    assert_int_equal(rbi_import_desk_table(desk)->counters.mass_held, 1);
    if (test_now_ms() < begun_ms + grace_ms) { /* else this machine has slept through it */
        assert_int_equal(count, FARS);
        list(1001, all, FARS);
        UNTIL(seen_stale() == 0);
        go_on(grace_ms);
        assert_int_equal(seen(NULL), FARS);
        assert_int_equal(caller.events[RINGBUS_EVENT_DOWN], 0);
    }
    end();
}

static void test_an_empty_list_is_believed_in_the_end(void **state)
{
    (void)state;
    begin();
    mute = true;
    list(1000, NULL, 0);
    UNTIL(seen_stale() == FARS);
    RELAY_UNTIL(&relay, seen(NULL) == 0, grace_ms + NODE_MS, &caller, &own, &far[0], &far[1]);
    UNTIL(caller.events[RINGBUS_EVENT_DOWN] == FARS);
    end();
}

static void test_one_that_is_not_listed_any_more_is_kept_for_a_grace(void **state)
{
    (void)state;
    const struct node *const first[] = {&far[0]};
    begin();
    mute = true;
    const uint64_t begun_ms = mark();
    list(1000, first, 1);
    UNTIL(seen_stale() == 1);
    while (test_now_ms() < begun_ms + grace_ms - 100) {
        ask_both();
        test_sleep_ms(2);
        const uint32_t count = seen(NULL);
        assert_true(count == FARS || test_now_ms() >= begun_ms + grace_ms);
    }
    RELAY_UNTIL(&relay, seen(NULL) == 1, NODE_MS, &caller, &own, &far[0], &far[1]);
    assert_true(test_now_ms() >= begun_ms + grace_ms);
    go_on(100);
    assert_int_equal(seen(NULL), 1);
    end();
}

static void test_an_end_on_its_host_is_told_at_once(void **state)
{
    (void)state;
    begin();
    node_close(&far[1]);
    memset(&far[1], 0, sizeof far[1]);
    node_open(&far[1], &relay.host[1].cluster, NULL); /* somebody else, so that UNTIL has all */
    UNTIL(seen(NULL) == 1); /* no wait of a grace: with the long times, this would not end */
    go_on(100);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_source_that_is_lost_stops_nobody),
        cmocka_unit_test(test_an_empty_list_takes_nobody_away_that_answers),
        cmocka_unit_test(test_an_empty_list_is_believed_in_the_end),
        cmocka_unit_test(test_one_that_is_not_listed_any_more_is_kept_for_a_grace),
        cmocka_unit_test(test_an_end_on_its_host_is_told_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
