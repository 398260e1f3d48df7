/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 88: callers, messages and instances that differ share one cluster,
 * one process, one directory; whatever the order, nobody gets a message from
 * outside its set, tag or rule (features 1.2 T21 to T24, 1.5 J22, J31,
 * J32, 2.6).
 */
#include "support/bus.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define HALL "/game/eu/pc/w1/core/hall"
#define CLUB "/game/eu/pc/w1/core/club"
#define YARD "/game/eu/pc/w1/core/yard"
#define GATE "/game/eu/pc/w1/core/gate"

static const char config[] =
    "clusters:\n"
    "  - match: " HALL "\n"
    "    set: {mode: strict}\n"
    "    tags: {mode: strict}\n"
    "    balance: {mode: auto, keyless: random}\n"
    "    rules:\n"
    "      - {id: reads, methods: 1..9, mode: strict, instance: 'read-*'}\n"
    "      - {id: nobody, methods: 99, mode: strict, instance: 'nobody-*'}\n"
    "  - match: " CLUB "\n"
    "    tags: {canaries: [{id: early, tag: v2, share: 30%}]}\n"
    "instances:\n"
    "  " HALL "/read-staged: {staged: true}\n"
    "  " YARD "/only: {isolated: true}\n";

#define INSTANCES 9U
#define CALLERS   3U
#define KINDS     4U /* of messages: plain, read, tagged, to be tried */

struct instance {
    const char *name;
    const char *set;
    const char *tags;
    struct node node;
    unsigned got;
};

static struct instance instances[INSTANCES] = {
    {.name = "read-a", .set = "app.a.1"},
    {.name = "write-a", .set = "app.a.1"},
    {.name = "read-a2", .set = "app.a.1", .tags = "v2"},
    {.name = "read-b", .set = "app.b.1"},
    {.name = "write-b", .set = "app.b.*"},
    {.name = "read-b2", .set = "app.b.1", .tags = "pre,v2"},
    {.name = "read-c", .set = "web.a.1"},
    {.name = "read-none"},
    {.name = "read-staged", .set = "app.a.1"},
};

static struct cluster cluster;
static struct node callers[CALLERS];
/* The last is in no set that the cluster knows, so that sets say nothing to it.
 */
static const char *const caller_sets[CALLERS] = {"app.a.1", "app.b.1", "none.a.1"};

struct letter {
    uint32_t caller;
    uint32_t kind;
};

static const struct ringbus_message_options kinds[KINDS] = {
    {.struct_size = sizeof kinds[0]},
    {.struct_size = sizeof kinds[0], .method = 5},
    {.struct_size = sizeof kinds[0], .tag = "v2"},
    {.struct_size = sizeof kinds[0], .tag = "test"},
};

/* Whom a letter may reach: rows by caller and kind, names in brackets. */
static const char *const allowed[CALLERS][KINDS] = {
    {"[read-a][write-a]", "[read-a]", "[read-a2]", "[read-staged]"},
    {"[read-b]", "[read-b]", "[read-b2]", ""},
    {"[read-a][write-a][read-b][write-b][read-c][read-none]", "[read-a][read-b][read-c][read-none]",
     "[read-a2][read-b2]", "[read-staged]"},
};

static bool may(uint32_t caller, uint32_t kind, const char *name)
{
    char word[32];
    (void)snprintf(word, sizeof word, "[%s]", name);
    return strstr(allowed[caller][kind], word) != NULL;
}

static void on_letter(struct node *node, const struct ringbus_message *message)
{
    struct instance *instance = node->context;
    struct letter letter;
    CHECK(message->size == sizeof letter);
    memcpy(&letter, message->data, sizeof letter);
    if (!may(letter.caller, letter.kind, instance->name)) {
        (void)fprintf(stderr, "%s got kind %u of caller %u\n", instance->name, letter.kind,
                      letter.caller);
        CHECK(false);
    }
    instance->got++;
}

static int set_up(void **state)
{
    (void)state;
    bus_shared_reset();
    assert_int_equal(cluster_up(&cluster, config), 0);
    for (unsigned i = 0; i < INSTANCES; i++) {
        char path[RINGBUS_PATH_MAX + 1];
        (void)snprintf(path, sizeof path, HALL "/%s", instances[i].name);
        struct ringbus_options options = node_options(&cluster, path);
        options.set = instances[i].set;
        options.tags = instances[i].tags;
        instances[i].node.on_message = on_letter;
        instances[i].node.context = &instances[i];
        node_open_with(&instances[i].node, &options);
    }
    for (unsigned i = 0; i < CALLERS; i++) {
        char path[RINGBUS_PATH_MAX + 1];
        (void)snprintf(path, sizeof path, GATE "/%u", i + 1);
        struct ringbus_options options = node_options(&cluster, path);
        options.set = caller_sets[i];
        node_open_with(&callers[i], &options);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CALLERS; i++) {
        node_close(&callers[i]);
    }
    for (unsigned i = 0; i < INSTANCES; i++) {
        node_close(&instances[i].node);
    }
    cluster_down(&cluster);
    return 0;
}

static void step(void)
{
    struct node *nodes[INSTANCES + CALLERS];
    for (unsigned i = 0; i < INSTANCES; i++) {
        nodes[i] = &instances[i].node;
    }
    for (unsigned i = 0; i < CALLERS; i++) {
        nodes[INSTANCES + i] = &callers[i];
    }
    nodes_step(nodes, INSTANCES + CALLERS);
}

static unsigned got(void)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < INSTANCES; i++) {
        sum += instances[i].got;
    }
    return sum;
}

static struct ringbus_addr target_all(void)
{
    struct ringbus_addr to = {0};
    for (unsigned i = 0; i < CALLERS; i++) {
        assert_int_equal(ringbus_target(callers[i].bus, HALL, NULL, &to), 0);
    }
    const uint64_t end = test_now_ms() + NODE_MS;
    for (unsigned i = 0; i < CALLERS; i++) {
        while (callers[i].events[RINGBUS_EVENT_READY] < INSTANCES) {
            assert_true(test_now_ms() < end);
            step();
        }
    }
    return to;
}

/* By turns, at random: callers, kinds, with key and without. */
static void test_nobody_outside_gets_any(void **state)
{
    (void)state;
    const struct ringbus_addr to = target_all();
    uint64_t seed = 7;
    unsigned sent = 0;
    unsigned refused = 0;
    for (unsigned round = 0; round < 6000; round++) {
        const struct letter letter = {.caller = (uint32_t)(bus_random(&seed) % CALLERS),
                                      .kind = (uint32_t)(bus_random(&seed) % KINDS)};
        struct ringbus_message_options options = kinds[letter.kind];
        options.key = bus_random(&seed) % 100;
        options.flags = bus_random(&seed) % 2 == 0 ? RINGBUS_KEY : 0;
        const struct ringbus_part part = {&letter, sizeof letter};
        const int r = ringbus_send_with(callers[letter.caller].bus, &to, &part, 1, &options);
        if (allowed[letter.caller][letter.kind][0] == '\0') {
            assert_int_equal(r, RINGBUS_E_NO_MATCH);
            refused++;
        } else {
            assert_int_equal(r, 1);
            sent++;
        }
        const uint64_t end = test_now_ms() + NODE_MS;
        while (round % 32 == 31 && got() < sent) {
            assert_true(test_now_ms() < end);
            step();
        }
    }
    const uint64_t end = test_now_ms() + NODE_MS;
    while (got() < sent) {
        assert_true(test_now_ms() < end);
        step();
    }
    assert_int_equal(got(), sent);
    assert_true(refused > 100);
    for (unsigned i = 0; i < INSTANCES; i++) {
        /* Behind an exact group nobody asks the area's own, but the caller without
     * a set does. */
        if (instances[i].got == 0) {
            fail_msg("%s got nothing", instances[i].name);
        }
    }
}

/* The call says which stage left nobody, and by which rule. */
static void test_refusal_names_stage_and_rule(void **state)
{
    (void)state;
    struct ringbus_addr to;
    assert_int_equal(ringbus_resolve(HALL, &to), 0);
    const struct ringbus_part part = {"x", 1};
    const struct ringbus_message_options nobody = {.struct_size = sizeof nobody, .method = 99};
    assert_int_equal(ringbus_send_with(callers[1].bus, &to, &part, 1, &kinds[3]),
                     RINGBUS_E_NO_MATCH);
    assert_non_null(strstr(ringbus_errmsg(callers[1].bus), "\"tag\""));
    assert_int_equal(ringbus_send_with(callers[1].bus, &to, &part, 1, &nobody), RINGBUS_E_NO_MATCH);
    assert_non_null(strstr(ringbus_errmsg(callers[1].bus), "\"rules\" by nobody"));
}

/* It is there and linked, and out of dispatch: nothing that will pass by itself. */
static void test_refusal_when_all_are_isolated(void **state)
{
    (void)state;
    static struct node only;
    struct ringbus_addr to;
    struct ringbus *bus = callers[0].bus;
    node_open(&only, &cluster, YARD "/only");
    const unsigned ready = callers[0].events[RINGBUS_EVENT_READY];
    assert_int_equal(ringbus_target(bus, YARD, NULL, &to), 0);
    RUN_UNTIL(callers[0].events[RINGBUS_EVENT_READY] > ready, NODE_MS, &callers[0], &only);
    assert_int_equal(ringbus_send(bus, &to, 0, "x", 1, 0), RINGBUS_E_NO_MATCH);
    assert_non_null(strstr(ringbus_errmsg(bus), "\"state\""));
    assert_int_equal(ringbus_send(bus, &to, 7, "x", 1, RINGBUS_KEY), RINGBUS_E_NO_MATCH);
    assert_int_equal(ringbus_resolve(YARD "/only", &to), 0);
    assert_int_equal(ringbus_send(bus, &to, 0, "x", 1, 0), 1);
    assert_int_equal(ringbus_untarget(bus, YARD), 0);
    node_close(&only);
}

/* ---- canaries ------------------------------------------------------------------------------ */

static bool goes_to_canary(const struct ringbus_addr *to,
                           struct node *plain,
                           struct node *canary,
                           const struct ringbus_message_options *options)
{
    const struct ringbus_part part = {"x", 1};
    const uint64_t before = canary->messages;
    const uint64_t all = plain->messages + canary->messages;
    CHECK(ringbus_send_with(callers[0].bus, to, &part, 1, options) == 1);
    RUN_UNTIL(plain->messages + canary->messages > all, NODE_MS, plain, canary, &callers[0]);
    return canary->messages > before;
}

/* A share of the keys, else of the traces, each always on the same side; none without either. */
static void test_canary_by_key_or_trace(void **state)
{
    (void)state;
    static struct node plain;
    static struct node canary;
    struct ringbus_addr to;
    struct ringbus_options tagged = node_options(&cluster, CLUB "/canary");
    tagged.tags = "v2";
    node_open_with(&canary, &tagged);
    node_open(&plain, &cluster, CLUB "/plain");
    const unsigned ready = callers[0].events[RINGBUS_EVENT_READY];
    assert_int_equal(ringbus_target(callers[0].bus, CLUB, NULL, &to), 0);
    RUN_UNTIL(callers[0].events[RINGBUS_EVENT_READY] == ready + 2, NODE_MS, &callers[0], &plain,
              &canary);
    unsigned shares[2] = {0, 0};
    for (unsigned n = 0; n < 200; n++) {
        struct ringbus_message_options by_key = {
            .struct_size = sizeof by_key, .flags = RINGBUS_KEY, .key = n};
        struct ringbus_message_options by_trace = {.struct_size = sizeof by_trace};
        memcpy(by_trace.trace_id + 4, &n, sizeof n);
        by_trace.trace_id[0] = 1;
        const bool key_side = goes_to_canary(&to, &plain, &canary, &by_key);
        const bool trace_side = goes_to_canary(&to, &plain, &canary, &by_trace);
        assert_int_equal(goes_to_canary(&to, &plain, &canary, &by_key), key_side);
        assert_int_equal(goes_to_canary(&to, &plain, &canary, &by_trace), trace_side);
        shares[0] += key_side ? 1U : 0U;
        shares[1] += trace_side ? 1U : 0U;
        assert_false(goes_to_canary(&to, &plain, &canary, &kinds[0]));
    }
    /* 60 of 200, within four sigma. */
    assert_in_range(shares[0], 34, 86);
    assert_in_range(shares[1], 34, 86);
    node_close(&plain);
    node_close(&canary);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_outside_gets_any),
        cmocka_unit_test(test_refusal_names_stage_and_rule),
        cmocka_unit_test(test_refusal_when_all_are_isolated),
        cmocka_unit_test(test_canary_by_key_or_trace),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
