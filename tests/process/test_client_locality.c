/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stage of locality on what is measured (features 2.6, section 5, T19, J23): a room with less
 * capacity than callers is relieved; a room that was left is used again when it has been well for
 * the time that the policy says; who is on the same NUMA node is nearer.
 */
#include "libclient/internal.h"
#include "support/bus.h"
#include "support/raw.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define HALL "/game/eu/pc/w1/core/hall" /* one in the callers' room, three in another */
#define CLUB "/game/eu/pc/w1/core/club" /* two, and one */
#define YARD "/game/eu/pc/w1/core/yard" /* on two nodes of one host */
#define GATE "/game/eu/pc/w1/core/gate/1"

static const char config[] = "clusters:\n"
                             "  - match: " HALL "\n"
                             "    balance: {keyless: weighted}\n"
                             "  - match: " CLUB "\n"
                             "    balance: {keyless: weighted}\n"
                             "    locality: {hold: 2s}\n"
                             "    shield: {open_min: 60s}\n";

#define SERVERS 4U

struct server {
    struct node node;
    uint64_t got;
};

static struct cluster cluster;
static struct server servers[SERVERS];
static struct node gate;
static struct ringbus_addr to;

static void on_request(struct node *node, const struct ringbus_message *message)
{
    struct server *server = node->context;
    server->got++;
    CHECK(ringbus_reply(node->bus, &message->reply_to, "ok", 2, 0) == 1);
}

static void open_server(unsigned at, const char *target, const char *idc)
{
    char path[RINGBUS_PATH_MAX + 1];
    (void)snprintf(path, sizeof path, "%s/%u", target, at + 1);
    struct ringbus_options options = node_options(&cluster, path);
    options.idc = idc;
    servers[at] = (struct server){.node = {.on_message = on_request, .context = &servers[at]}};
    node_open_with(&servers[at].node, &options);
}

static void step(void)
{
    struct node *const nodes[] = {&gate, &servers[0].node, &servers[1].node, &servers[2].node,
                                  &servers[3].node};
    unsigned count = 1;
    while (count <= SERVERS && servers[count - 1].node.bus != NULL) {
        count++;
    }
    nodes_step(nodes, count);
}

static void up(const char *target, const char *const *idcs, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        open_server(i, target, idcs[i]);
    }
    struct ringbus_options options = node_options(&cluster, GATE);
    options.idc = "r1";
    node_open_with(&gate, &options);
    assert_int_equal(ringbus_target(gate.bus, target, NULL, &to), 0);
    const uint64_t end_ms = test_now_ms() + NODE_MS;
    while (gate.events[RINGBUS_EVENT_READY] < count) {
        assert_true(test_now_ms() < end_ms);
        step();
    }
}

static void down(void)
{
    if (gate.bus != NULL) {
        node_close(&gate);
    }
    for (unsigned i = 0; i < SERVERS && servers[i].node.bus != NULL; i++) {
        node_close(&servers[i].node);
    }
    memset(servers, 0, sizeof servers);
    gate = (struct node){.bus = NULL};
}

/* So many requests, one after the other. @return of them, in percent, those of the servers from */
static unsigned ask(unsigned count, unsigned from)
{
    uint64_t before[SERVERS];
    uint64_t all = 0;
    uint64_t some = 0;
    for (unsigned i = 0; i < SERVERS; i++) {
        before[i] = servers[i].got;
    }
    for (unsigned i = 0; i < count; i++) {
        const unsigned ended = gate.replies[RINGBUS_REPLIED] + 1;
        CHECK(ringbus_request(gate.bus, &to, 0, "hi", 2, 0, 20000, node_on_result, &gate) == 1);
        while (gate.replies[RINGBUS_REPLIED] < ended) {
            step();
        }
    }
    for (unsigned i = 0; i < SERVERS; i++) {
        all += servers[i].got - before[i];
        some += i >= from ? servers[i].got - before[i] : 0;
    }
    return (unsigned)((some * 100 + all / 2) / all);
}

/* "If local capacity share < 0.5 x local demand share, spill the excess proportionally". */
static void test_small_room_of_all_callers_is_relieved(void **state)
{
    (void)state;
    static const char *const idcs[] = {"r1", "r2", "r2", "r2"};
    up(HALL, idcs, 4);
    assert_int_equal(ask(20, 1), 0); /* nothing is known of the callers yet */
    const uint64_t end_ms = test_now_ms() + 3 * NODE_MS;
    unsigned far = 0;
    while (far < 40) { /* until the daemon has summed what we count, and said so */
        assert_true(test_now_ms() < end_ms);
        far = ask(100, 1);
    }
    const uint64_t first = servers[0].got;
    far = ask(600, 1);
    assert_in_range(far, 48, 52); /* a quarter of the capacity: twice the mean is half of all */
    assert_in_range(servers[0].got - first, 288, 312);
    for (unsigned i = 1; i < 4; i++) {
        assert_true(servers[i].got > 80);
    }
}

static void unshield(const char *path)
{
    struct raw raw;
    struct rbi_wire_unshield body = {0};
    rbi_text_set(&body.path, path);
    assert_int_equal(raw_connect(&raw, cluster.socket), 0);
    assert_int_equal(raw_hello(&raw), 0);
    assert_int_equal(raw_send(&raw, RBI_WIRE_UNSHIELD, &body, NULL, 0), 0);
    struct raw_message message;
    assert_int_equal(raw_expect(&raw, RBI_WIRE_OK, &message, RAW_TIMEOUT_MS), 0);
    raw_message_deinit(&message);
    raw_close(&raw);
}

static void count_in(void *user, const struct ringbus_explain_row *row)
{
    unsigned *count = user;
    *count += row->kind == RINGBUS_EXPLAIN_IN ? 1U : 0U;
}

/* Instances that get some of our messages. */
static unsigned takers(const char *target)
{
    unsigned count = 0;
    CHECK(ringbus_explain(gate.bus, target, NULL, count_in, &count) >= 0);
    return count;
}

/* "Leave a level at healthy < 71 %, return at >= 85 %, for >= 5 s": here 2 s. */
static void test_room_that_was_left_is_back_when_it_has_been_well(void **state)
{
    (void)state;
    static const char *const idcs[] = {"r1", "r1", "r2"};
    up(CLUB, idcs, 3);
    assert_int_equal(ask(20, 2), 0);
    const struct ringbus_addr bad = {.cluster = to.cluster, .instance = 2};
    uint64_t end_ms = test_now_ms() + 3 * NODE_MS;
    while (gate.events[RINGBUS_EVENT_SHIELDED] == 0) {
        assert_true(test_now_ms() < end_ms);
        assert_int_equal(ringbus_report(gate.bus, &bad, RINGBUS_REPORT_ERROR, 1000), 0);
        step();
    }
    /* 50 % healthy: the room takes 70 %, and the other one the rest. */
    assert_in_range(ask(300, 2), 29, 31);
    const uint64_t begin_ms = test_now_ms();
    unshield(CLUB "/2");
    end_ms = test_now_ms() + 3 * NODE_MS;
    while (gate.events[RINGBUS_EVENT_UNSHIELDED] == 0) {
        assert_true(test_now_ms() < end_ms);
        step();
    }
    (void)ask(1, 2);
    unsigned in = takers(CLUB);
    assert_true(in == 3 || test_now_ms() - begin_ms >= 2000); /* it takes nearly all meanwhile */
    while (in == 3) {
        assert_true(test_now_ms() < end_ms);
        (void)ask(20, 2);
        in = takers(CLUB);
    }
    assert_int_equal(in, 2);
    assert_true(test_now_ms() - begin_ms >= 2000);
    assert_int_equal(ask(300, 2), 0);
}

/* ---- nodes --------------------------------------------------------------------------------- */

static void register_at(struct raw *raw, const char *path, uint16_t node)
{
    struct raw_message message;
    struct rbi_wire_registration body = {.weight = 100, .state = RBI_ENDPOINT_READY, .node = node};
    rbi_text_set(&body.path, path);
    assert_int_equal(raw_connect(raw, cluster.socket), 0);
    assert_int_equal(raw_hello(raw), 0);
    assert_int_equal(raw_send_register(raw, &body), 0);
    assert_int_equal(raw_expect(raw, RBI_WIRE_REGISTERED, &message, RAW_TIMEOUT_MS), 0);
    raw->registered = message.body.registered;
}

/* Levels of the instances that are in, as digits in order. */
static void note_in(void *user, const struct ringbus_explain_row *row)
{
    char *levels = user;
    const size_t length = strlen(levels);
    if (row->kind == RINGBUS_EXPLAIN_IN && length < 8) {
        levels[length] = (char)('0' + row->level);
        levels[length + 1] = row->path[strlen(row->path) - 1];
    }
}

static bool explained(const char *caller, const char *expected)
{
    char levels[16] = "";
    const struct ringbus_explain_options options = {.struct_size = sizeof options,
                                                    .caller = caller};
    CHECK(ringbus_explain(gate.bus, YARD, &options, note_in, levels) >= 0);
    return strcmp(levels, expected) == 0;
}

/* Level 0. A client says its node when it registers, and when it has moved. */
static void test_same_node_is_nearest(void **state)
{
    (void)state;
    struct raw one;
    struct raw two;
    struct raw nowhere;
    struct raw caller;
    const struct rbi_wire_place moved = {.node = 1};
    register_at(&one, YARD "/1", 1);
    register_at(&two, YARD "/2", 2);
    register_at(&nowhere, "/game/eu/pc/w1/core/lost/1", 0);
    register_at(&caller, "/game/eu/pc/w1/core/lost/2", 2);
    node_open(&gate, &cluster, GATE);
    assert_int_equal(ringbus_target(gate.bus, YARD, NULL, &to), 0);
    RUN_UNTIL(explained("/game/eu/pc/w1/core/lost/2", "02"), NODE_MS, &gate);
    assert_true(explained("/game/eu/pc/w1/core/lost/1", "1112")); /* it takes both alike */
    assert_int_equal(raw_send(&caller, RBI_WIRE_PLACE, &moved, NULL, 0), 0);
    RUN_UNTIL(explained("/game/eu/pc/w1/core/lost/2", "01"), NODE_MS, &gate);
    const struct rbi_wire_place impossible = {.node = UINT16_MAX};
    assert_int_equal(raw_send(&caller, RBI_WIRE_PLACE, &impossible, NULL, 0), 0);
    RUN_UNTIL(explained("/game/eu/pc/w1/core/lost/2", "1112"), NODE_MS, &gate);
    raw_close(&caller);
    raw_close(&nowhere);
    raw_close(&two);
    raw_close(&one);
}

static int set_up(void **state)
{
    (void)state;
    return cluster_up(&cluster, config);
}

/* As if they ran there: this host may have one node. */
static void put_gate(uint32_t node)
{
    gate.bus->place.node = node;
    rbi_cluster_changed(gate.bus, gate.bus->clusters[0]);
}

static void test_caller_prefers_its_node(void **state)
{
    (void)state;
    static const char *const idcs[] = {"r1", "r1"};
    up(YARD, idcs, 2);
    for (unsigned i = 0; i < 2; i++) {
        const struct rbi_wire_place body = {.node = (uint16_t)(i + 1)};
        CHECK(rbi_control_send(servers[i].node.bus, RBI_WIRE_PLACE, &body, NULL, 0) != 0);
    }
    put_gate(1);
    const uint64_t end_ms = test_now_ms() + NODE_MS;
    while (takers(YARD) != 1) { /* until the directory has it */
        assert_true(test_now_ms() < end_ms);
        step();
    }
    assert_int_equal(ask(20, 1), 0);
    put_gate(2);
    assert_int_equal(ask(20, 1), 100);
    put_gate(0);
    assert_int_equal(takers(YARD), 2);
}

/* One that failed leaves nobody behind who has the names of the next. */
static int end_test(void **state)
{
    (void)state;
    down();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_small_room_of_all_callers_is_relieved, end_test),
        cmocka_unit_test_teardown(test_room_that_was_left_is_back_when_it_has_been_well, end_test),
        cmocka_unit_test_teardown(test_same_node_is_nearest, end_test),
        cmocka_unit_test_teardown(test_caller_prefers_its_node, end_test),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
