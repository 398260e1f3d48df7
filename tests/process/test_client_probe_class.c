/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A probe of a shielded instance is one of the caller's own messages, and goes only where the
 * stages of the policy would have it go if the instance was well (features 2.5, 2.6; scenarios 88,
 * 118): never an untagged one to a tagged instance, or one past a rule; and one that nobody else
 * may have is the probe rather than refused.
 */
#include "libclient/internal.h"
#include "support/bus.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define HALL    "/game/eu/pc/w1/core/hall"
#define GUEST   "/play/eu/pc/w1/core/hall"
#define SERVERS 5U
#define SICK    2U /* tagged v2 */
#define VISITOR 3U /* the first of the other business */

#define SHIELD_FOR(time)                                                                           \
    "shield: {open_min: " time ", open_max: " time ", jitter: 0%, probe_timeout: 400ms, "          \
    "probes: 50, close_ok: 1, close_of: 2, ramp: 0ms, max_percent: 100%, above_median: 0%}"
#define SHIELD SHIELD_FOR("300ms")

static struct cluster cluster;
static struct node servers[SERVERS];
static struct node caller;
static struct ringbus_addr hall;
static char got[SERVERS]; /* kind of the last request that came */
static unsigned came[SERVERS][128];

static void serve(struct node *node, const struct ringbus_message *message)
{
    const size_t server = (size_t)(node - servers);
    if (message->kind == RINGBUS_KIND_REQUEST) {
        got[server] = *(const char *)message->data;
        came[server][(unsigned char)got[server] & 127U]++;
        CHECK(ringbus_reply(node->bus, &message->reply_to, "ok", 2, 0) == 1);
    }
}

static uint64_t before_back; /* messages of this one until its shield was over */
static unsigned sick_one;

static void on_event(struct node *node, const struct ringbus_event *event)
{
    (void)node;
    if (event->type == RINGBUS_EVENT_UNSHIELDED) {
        before_back = servers[sick_one].messages;
    }
}

static void step(void)
{
    struct node *all[SERVERS + 1] = {&caller};
    for (unsigned i = 0; i < SERVERS; i++) {
        all[i + 1] = &servers[i];
    }
    nodes_step(all, SERVERS + 1);
}

static uint64_t keys;

/* One request: untagged, tagged v2, method 5, by key, or plain, without any options. @return r */
static int ask(char kind)
{
    const struct ringbus_part part = {&kind, 1};
    struct ringbus_message_options options = {.struct_size = sizeof options, .timeout_ms = 1000};
    options.tag = kind == 't' ? "v2" : NULL;
    options.method = kind == 'm' ? 5 : 0;
    options.flags = kind == 'k' ? RINGBUS_KEY : 0;
    options.key = ++keys;
    const int r =
        kind == 'p'
            ? ringbus_request(caller.bus, &hall, 0, &kind, 1, 0, 1000, node_on_result, &caller)
            : ringbus_request_with(caller.bus, &hall, &part, 1, &options, node_on_result, &caller);
    step();
    return r;
}

static void up(const char *config, const char *sick_tags)
{
    static const char *const paths[SERVERS] = {HALL "/1", HALL "/2", HALL "/3", GUEST "/1",
                                               GUEST "/2"};
    memset(servers, 0, sizeof servers);
    memset(&caller, 0, sizeof caller);
    memset(came, 0, sizeof came);
    bus_shared_reset();
    assert_int_equal(cluster_up(&cluster, config), 0);
    for (unsigned i = 0; i < SERVERS; i++) {
        struct ringbus_options options = node_options(&cluster, paths[i]);
        options.tags = i == SICK ? sick_tags : NULL;
        servers[i].on_message = serve;
        node_open_with(&servers[i], &options);
    }
    caller.on_event = on_event;
    node_open(&caller, &cluster, "/game/eu/pc/w1/core/gate/1");
    CHECK(ringbus_target(caller.bus, HALL, NULL, &hall) == 0);
}

static void down(void)
{
    node_close(&caller);
    for (unsigned i = 0; i < SERVERS; i++) {
        node_close(&servers[i]);
    }
    cluster_down(&cluster);
}

static void until(enum ringbus_event_type type, unsigned count)
{
    const uint64_t end = test_now_ms() + NODE_MS;
    while (caller.events[type] < count) {
        CHECK(test_now_ms() < end);
        step();
    }
}

static void shield(unsigned server)
{
    struct ringbus_addr sick;
    CHECK(ringbus_self(servers[server].bus, &sick) == 0);
    for (unsigned i = 0; i < 20; i++) {
        CHECK(ringbus_report(caller.bus, &sick, RINGBUS_REPORT_TIMEOUT, 0) == 0);
    }
    until(RINGBUS_EVENT_SHIELDED, 1);
}

static void shield_all(void)
{
    for (unsigned i = 0; i < 3; i++) {
        struct ringbus_addr sick;
        CHECK(ringbus_self(servers[i].bus, &sick) == 0);
        for (unsigned j = 0; j < 20; j++) {
            CHECK(ringbus_report(caller.bus, &sick, RINGBUS_REPORT_TIMEOUT, 0) == 0);
        }
    }
    until(RINGBUS_EVENT_SHIELDED, 3);
}

/* So many probes are granted and given back, while it asks requests of these kinds only. */
static void waste(const char *kinds, unsigned grants)
{
    const uint64_t end = test_now_ms() + NODE_MS;
    uint64_t last = 0;
    while (grants > 0) {
        CHECK(test_now_ms() < end);
        for (const char *kind = kinds; *kind != '\0'; kind++) {
            CHECK(ask(*kind) == 1);
        }
        grants -= caller.bus->probing && caller.bus->probe.token != last ? 1U : 0U;
        last = caller.bus->probing ? caller.bus->probe.token : last;
    }
}

/* It asks requests of one kind until the instance is back. @param idle  keeps the caller busy */
static void heal(char kind, char idle)
{
    const uint64_t end = test_now_ms() + NODE_MS;
    while (caller.events[RINGBUS_EVENT_UNSHIELDED] == 0) {
        CHECK(test_now_ms() < end);
        (void)ask(kind);
        CHECK(idle == '\0' || ask(idle) == 1);
    }
}

static void test_untagged_is_no_probe_of_a_tagged_one(void **state)
{
    (void)state;
    up("clusters: [{match: " HALL ", " SHIELD "}]\n", "v2");
    until(RINGBUS_EVENT_READY, 3);
    shield(SICK);
    waste("up", 3);
    assert_int_equal(servers[SICK].messages, 0);
    heal('t', 'u');
    assert_true(came[SICK]['t'] > 0);
    assert_int_equal(servers[SICK].messages, came[SICK]['t']);
    down();
}

static void test_no_probe_past_a_rule(void **state)
{
    (void)state;
    up("clusters: [{match: " HALL ", rules: [{id: writes, methods: 5, instance: '1'}], " SHIELD
       "}]\n",
       NULL);
    until(RINGBUS_EVENT_READY, 3);
    shield(SICK);
    waste("m", 3);
    assert_int_equal(servers[SICK].messages, 0);
    heal('p', 'm');
    assert_true(came[SICK]['p'] > 0);
    assert_int_equal(came[SICK]['m'], 0);
    down();
}

/* All that have the tag are shielded, and the policy is strict: it is that or a refusal. */
static void test_what_would_be_refused_is_the_probe(void **state)
{
    (void)state;
    up("clusters: [{match: " HALL ", tags: {mode: strict}, " SHIELD "}]\n", "v2");
    until(RINGBUS_EVENT_READY, 3);
    shield(SICK);
    const uint64_t none = node_stats(&caller).no_peer;
    assert_int_equal(ask('t'), RINGBUS_E_SHIELDED);
    assert_int_equal(node_stats(&caller).no_peer, none + 1);
    heal('t', 'u');
    assert_true(came[SICK]['t'] > 0);
    assert_int_equal(came[SICK]['u'], 0);
    down();
}

/* The own business is out of service; the other's is, too, and comes back by messages to ours. */
static void test_one_of_another_business(void **state)
{
    (void)state;
    up("rights: {otherwise: allow}\n"
       "clusters:\n"
       "  - {match: " HALL ", realm: {mode: prefer, imports: [play]}}\n"
       "  - {match: " GUEST ", " SHIELD "}\n"
       "instances: {" HALL "/1: {isolated: true}, " HALL "/2: {isolated: true}, " HALL
       "/3: {isolated: true}}\n",
       NULL);
    until(RINGBUS_EVENT_READY, 5);
    sick_one = VISITOR;
    shield(VISITOR);
    heal('p', 'u');
    assert_true(before_back > 0);
    assert_int_equal(servers[0].messages + servers[1].messages + servers[2].messages, 0);
    down();
}

/* Every key has an owner; what the sick one has is refused, or goes elsewhere, until it is well. */
static void keyed(const char *config)
{
    up(config, NULL);
    until(RINGBUS_EVENT_READY, 3);
    sick_one = SICK;
    shield(SICK);
    heal('k', '\0');
    assert_true(before_back > 0);
    down();
}

/* Nothing but what is refused: that it is asked for all the same says who may try it. */
static void test_nobody_else_is_asked(void **state)
{
    (void)state;
    /* Longer than what was called before says that anybody calls. */
    up("clusters: [{match: " HALL ", tags: {mode: strict}, " SHIELD_FOR("1500ms") "}]\n", "v2");
    until(RINGBUS_EVENT_READY, 3);
    sick_one = SICK;
    shield(SICK);
    heal('t', '\0');
    assert_true(before_back > 0);
    down();
}

/* All are shielded, and the cluster fails then: until one after the other is well. */
static void test_panic_that_fails_ends_by_probes(void **state)
{
    (void)state;
    up("clusters: [{match: " HALL ", panic: {enter: 100%, leave: 100%, mode: fail}, " SHIELD "}]\n",
       NULL);
    until(RINGBUS_EVENT_READY, 3);
    sick_one = 1;
    shield_all();
    assert_int_equal(ask('p'), RINGBUS_E_SHIELDED);
    const uint64_t end = test_now_ms() + NODE_MS;
    while (caller.events[RINGBUS_EVENT_UNSHIELDED] < 3) {
        CHECK(test_now_ms() < end);
        (void)ask('p');
    }
    for (unsigned i = 0; i < 3; i++) {
        assert_true(servers[i].messages > 0);
    }
    assert_true(before_back > 0);
    down();
}

static void test_owner_whose_keys_fail(void **state)
{
    (void)state;
    keyed("clusters: [{match: " HALL ", balance: {mode: hash, on_shield: fail}, " SHIELD "}]\n");
}

static void test_owner_whose_keys_go_elsewhere(void **state)
{
    (void)state;
    keyed("clusters: [{match: " HALL ", balance: {mode: hash, on_shield: failover}, " SHIELD
          "}]\n");
}

/* Two programs: each takes some seconds. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_untagged_is_no_probe_of_a_tagged_one),
        cmocka_unit_test(test_no_probe_past_a_rule),
        cmocka_unit_test(test_what_would_be_refused_is_the_probe),
        cmocka_unit_test(test_one_of_another_business),
    };
    const struct CMUnitTest more[] = {
        cmocka_unit_test(test_nobody_else_is_asked),
        cmocka_unit_test(test_panic_that_fails_ends_by_probes),
        cmocka_unit_test(test_owner_whose_keys_fail),
        cmocka_unit_test(test_owner_whose_keys_go_elsewhere),
    };
    return argc > 1 && strcmp(argv[1], "more") == 0 ? cmocka_run_group_tests(more, NULL, NULL)
                                                    : cmocka_run_group_tests(tests, NULL, NULL);
}
