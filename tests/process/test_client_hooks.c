/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the application has to say in routing (features D71 to D73, B1, B8, 2.3): filters leave
 * instances out, routers rewrite, refuse or name one, choosers choose among those who are there,
 * in the order in which they were added, until they are taken off.
 */
#include "support/bus.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define WORK "/game/eu/pc/w1/core/work"
#define PICK "/game/eu/pc/w1/core/pick"
#define MANY 3U

static const char config[] = "clusters:\n"
                             "  - {match: \"" PICK "\", balance: {mode: custom}}\n"
                             "  - match: \"" WORK "\"\n"
                             "    tags: {mode: strict}\n";

static struct cluster cluster;
static struct node caller;
static struct node workers[MANY];
static uint64_t last_key;    /* of the last message that a worker got, */
static uint32_t last_method; /* as it says itself */

#define ALL &caller, &workers[0], &workers[1], &workers[2]

static void take(struct node *node, const struct ringbus_message *message)
{
    (void)node;
    last_key = message->key;
    last_method = message->attributes != NULL ? message->attributes->method : 0;
}

static void open_worker(unsigned i, const char *of)
{
    char path[64];
    static const char *const tags[MANY] = {NULL, NULL, "v2"};
    (void)snprintf(path, sizeof path, "%s/%u", of, i + 1);
    struct ringbus_options options = node_options(&cluster, path);
    options.set = "app.s.1";
    options.idc = "r1/z";
    options.weight = 100 + i;
    options.tags = strcmp(of, WORK) == 0 ? tags[i] : NULL;
    memset(&workers[i], 0, sizeof workers[i]);
    workers[i].on_message = take;
    node_open_with(&workers[i], &options);
}

static struct ringbus_addr open_all(const char *of)
{
    struct ringbus_addr any;
    memset(&caller, 0, sizeof caller);
    for (unsigned i = 0; i < MANY; i++) {
        open_worker(i, of);
    }
    node_open(&caller, &cluster, NULL);
    CHECK(ringbus_target(caller.bus, of, NULL, &any) == 0);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == MANY, NODE_MS, ALL);
    return any;
}

static void close_all(void)
{
    for (unsigned i = 0; i < MANY; i++) {
        if (workers[i].bus != NULL) {
            node_close(&workers[i]);
        }
    }
    node_close(&caller);
}

static uint64_t got(void)
{
    return workers[0].messages + workers[1].messages + workers[2].messages;
}

/* Sends one and waits for it. @return place of the worker that got it, or the error */
static int send_one(const struct ringbus_addr *to, const struct ringbus_message_options *options)
{
    const struct ringbus_part part = {.data = "x", .size = 1};
    uint64_t before[MANY];
    const uint64_t sum = got();
    for (unsigned i = 0; i < MANY; i++) {
        before[i] = workers[i].messages;
    }
    const int r = options != NULL ? ringbus_send_with(caller.bus, to, &part, 1, options)
                                  : ringbus_send(caller.bus, to, 7, "x", 1, 0);
    if (r < 0) {
        return r;
    }
    CHECK(r == 1);
    RUN_UNTIL(got() == sum + 1, NODE_MS, ALL);
    for (unsigned i = 0; i < MANY; i++) {
        if (workers[i].messages > before[i]) {
            return (int)i;
        }
    }
    return INT32_MIN;
}

/* ---- filters -------------------------------------------------------------------------------- */

struct filtering {
    const char *out; /* name of the instance that is left out; "*": all */
    unsigned asked;
    unsigned destroyed;
};

static int filter(void *user, const struct ringbus_candidate *candidate)
{
    struct filtering *filtering = user;
    filtering->asked++;
    CHECK(strcmp(candidate->set, "app.s.1") == 0 && strcmp(candidate->idc, "r1/z") == 0);
    CHECK(candidate->addr.instance > 0 && candidate->healthy);
    CHECK(strncmp(candidate->path, WORK "/", strlen(WORK) + 1) == 0);
    CHECK(candidate->weight == 99 + (uint32_t)candidate->addr.instance);
    return filtering->out[0] != '*' &&
           strcmp(strrchr(candidate->path, '/') + 1, filtering->out) != 0;
}

static void count_destroyed(void *user)
{
    ((struct filtering *)user)->destroyed++;
}

static int add_filter(struct filtering *filtering, const char *name)
{
    const struct ringbus_hooks hooks = {.struct_size = sizeof hooks,
                                        .name = name,
                                        .user = filtering,
                                        .filter = filter,
                                        .destroy = count_destroyed};
    return ringbus_hook(caller.bus, WORK, &hooks);
}

static bool explained; /* stage and instance that fell out by it */

static void look_at_row(void *user, const struct ringbus_explain_row *row)
{
    const bool out = row->kind == RINGBUS_EXPLAIN_OUT && strcmp(row->stage, "filter") == 0;
    if (out && strcmp(row->rule, user) == 0 && strcmp(row->path, WORK "/2") == 0) {
        explained = true;
    }
}

static void test_filters(void **state)
{
    (void)state;
    char name[] = "no-2";
    struct filtering second = {.out = "2"};
    struct filtering all = {.out = "*"};
    struct ringbus_addr any = open_all(WORK);
    const int number = add_filter(&second, name);
    CHECK(number > 0);
    assert_int_equal(second.asked, 0); /* nothing was chosen yet */
    const struct ringbus_message_options keyed = {
        .struct_size = sizeof keyed, .flags = RINGBUS_KEY, .key = 0};
    for (unsigned i = 0; i < 20; i++) {
        struct ringbus_message_options options = keyed;
        options.key = i;
        assert_int_equal(send_one(&any, NULL), 0); /* 3 is tagged */
        assert_int_equal(send_one(&any, &options), 0);
    }
    assert_in_range(second.asked, MANY, 4 * MANY); /* by change, not by message */
    explained = false;
    CHECK(ringbus_explain(caller.bus, WORK, NULL, look_at_row, name) == 1);
    assert_true(explained);

    /* Another behind it: who is left by both. */
    const int other = add_filter(&all, "nobody");
    CHECK(other > number);
    assert_int_equal(send_one(&any, NULL), RINGBUS_E_NO_MATCH);
    assert_non_null(strstr(ringbus_errmsg(caller.bus), "filter"));
    assert_non_null(strstr(ringbus_errmsg(caller.bus), "nobody"));
    assert_int_equal(ringbus_unhook(caller.bus, other), 0);
    assert_int_equal(ringbus_unhook(caller.bus, other), RINGBUS_E_ARGUMENT);
    assert_int_equal(all.destroyed, 1);
    assert_int_equal(send_one(&any, NULL), 0);
    /* An instance's own address is not routed. */
    struct ringbus_addr to = any;
    to.instance = 2;
    assert_int_equal(send_one(&to, NULL), 1);

    assert_int_equal(ringbus_unhook(caller.bus, number), 0);
    unsigned seen = 0;
    for (unsigned i = 0; i < 64 && seen != 3; i++) {
        seen |= 1U << send_one(&any, NULL);
    }
    assert_int_equal(seen, 3);
    CHECK(add_filter(&second, "again") > 0);
    close_all();
    assert_int_equal(second.destroyed, 2);
}

/* A filter runs where a choice is made, which cannot be made once more within it. */
static int sends(void *user, const struct ringbus_candidate *candidate)
{
    struct ringbus_addr *any = user;
    struct ringbus_addr all = *any;
    all.instance = RINGBUS_ALL;
    (void)candidate;
    CHECK(ringbus_send(caller.bus, any, 7, "x", 1, 0) == RINGBUS_E_BUSY);
    CHECK(ringbus_send(caller.bus, any, 7, "x", 1, RINGBUS_KEY) == RINGBUS_E_BUSY);
    CHECK(strstr(ringbus_errmsg(caller.bus), "inside a hook") != NULL);
    CHECK(ringbus_send(caller.bus, &all, 7, "x", 1, 0) == MANY);
    return 1;
}

static void test_a_filter_that_sends(void **state)
{
    (void)state;
    struct ringbus_addr any = open_all(WORK);
    const struct ringbus_hooks hooks = {
        .struct_size = sizeof hooks, .name = "sends", .user = &any, .filter = sends};
    CHECK(ringbus_hook(caller.bus, WORK, &hooks) > 0);
    CHECK(ringbus_send(caller.bus, &any, 7, "x", 1, 0) == 1);
    RUN_UNTIL(got() == MANY * MANY + 1, NODE_MS, ALL);
    close_all();
}

/* ---- routers -------------------------------------------------------------------------------- */

struct router {
    struct ringbus_routing set;
    int answer;
    unsigned asked;
    struct ringbus_routing saw;
    char saw_tag[RINGBUS_TAG_MAX + 1]; /* saw.tag is lent for the call */
    const struct ringbus_addr *any;
};

static int route(void *user, struct ringbus_routing *routing)
{
    struct router *router = user;
    struct ringbus_addr out;
    router->asked++;
    router->saw = *routing;
    (void)snprintf(router->saw_tag, sizeof router->saw_tag, "%s", routing->tag);
    /* Whatever would change what is looked at. */
    CHECK(ringbus_poll(caller.bus, 1) == RINGBUS_E_BUSY);
    CHECK(ringbus_wait(caller.bus, 0) == RINGBUS_E_BUSY);
    CHECK(ringbus_close(caller.bus, 0) == RINGBUS_E_BUSY);
    CHECK(ringbus_unhook(caller.bus, 1) == RINGBUS_E_BUSY);
    CHECK(ringbus_target(caller.bus, PICK, NULL, &out) == RINGBUS_E_BUSY);
    CHECK(ringbus_untarget(caller.bus, WORK) == RINGBUS_E_BUSY);
    CHECK(ringbus_send(caller.bus, router->any, 0, "", 0, 0) == RINGBUS_E_BUSY);
    routing->tag = router->set.tag != NULL ? router->set.tag : routing->tag;
    routing->key += router->set.key;
    routing->keyed = routing->keyed || router->set.keyed;
    routing->method += router->set.method;
    routing->labels[3] += router->set.labels[3];
    routing->instance = router->set.instance;
    routing->error = router->set.error;
    return router->answer;
}

static int add_router(struct router *router, const char *target)
{
    const struct ringbus_hooks hooks = {
        .struct_size = sizeof hooks, .name = "router", .user = router, .route = route};
    router->answer = RINGBUS_HOOK_PASS;
    return ringbus_hook(caller.bus, target, &hooks);
}

static void test_routers(void **state)
{
    (void)state;
    struct ringbus_addr any = open_all(WORK);
    struct router first = {.any = &any, .set = {.key = 1, .method = 10, .labels = {0, 0, 0, 5}}};
    struct router then = {.any = &any};
    struct ringbus_message_options options = {
        .struct_size = sizeof options, .flags = RINGBUS_KEY, .key = 41, .method = 3};
    int homes[64];
    for (unsigned i = 0; i < 64; i++) {
        options.key = i;
        homes[i] = send_one(&any, &options);
        CHECK(homes[i] == 0 || homes[i] == 1);
    }
    CHECK(add_router(&first, WORK) > 0);
    CHECK(add_router(&then, NULL) > 0);
    /* The second sees what the first made of it; routing goes by that, the message stays. */
    for (unsigned i = 0; i < 63; i++) {
        options.key = i;
        assert_int_equal(send_one(&any, &options), homes[i + 1]);
        assert_int_equal(last_key, i);
        assert_int_equal(last_method, 3);
    }
    assert_int_equal(then.asked, 63);
    assert_int_equal(then.saw.key, 63);
    assert_int_equal(then.saw.method, 13);
    assert_int_equal(then.saw.labels[3], 5);
    assert_string_equal(then.saw_tag, "");
    assert_int_equal(then.saw.keyed, 1);
    /* A tag; plain sends come by as well. */
    then.set.tag = "v2";
    assert_int_equal(send_one(&any, NULL), 2);
    assert_int_equal(first.saw.keyed, 0);
    /* Refused, with the error that it says. */
    first.answer = RINGBUS_HOOK_REFUSE;
    first.set.error = RINGBUS_E_DENIED;
    const unsigned asked = then.asked;
    assert_int_equal(send_one(&any, NULL), RINGBUS_E_DENIED);
    assert_non_null(strstr(ringbus_errmsg(caller.bus), "\"router\""));
    assert_int_equal(then.asked, asked);
    first.set.error = 77;
    assert_int_equal(send_one(&any, &options), RINGBUS_E_NO_MATCH);
    /* Named, whatever its tag; who is not there is refused and counted. */
    first.answer = RINGBUS_HOOK_PASS;
    first.set.instance = 3;
    then.set.tag = NULL;
    assert_int_equal(send_one(&any, NULL), 2);
    assert_int_equal(node_stats(&caller).bad_choice, 0);
    first.set.instance = 4;
    assert_int_equal(send_one(&any, NULL), RINGBUS_E_NO_INSTANCE);
    first.set.instance = -1;
    assert_int_equal(send_one(&any, &options), RINGBUS_E_NO_INSTANCE);
    first.set.instance = 0;
    first.answer = 12;
    assert_int_equal(send_one(&any, NULL), RINGBUS_E_NO_INSTANCE);
    first.answer = RINGBUS_HOOK_PASS;
    first.set.tag = "a,b"; /* two are none */
    assert_int_equal(send_one(&any, NULL), RINGBUS_E_NO_INSTANCE);
    assert_int_equal(node_stats(&caller).bad_choice, 4);
    close_all();
}

/* ---- choosers ------------------------------------------------------------------------------- */

struct choosing {
    int answer;
    unsigned asked;
    unsigned count;
    struct ringbus_routing saw;
    struct ringbus_candidate candidates[MANY];
};

static int choose(void *user,
                  const struct ringbus_routing *routing,
                  const struct ringbus_candidate *candidates,
                  unsigned count)
{
    struct choosing *choosing = user;
    choosing->asked++;
    choosing->saw = *routing;
    choosing->count = count;
    CHECK(count >= 1 && count <= MANY);
    memcpy(choosing->candidates, candidates, count * sizeof candidates[0]);
    CHECK(strcmp(candidates[0].set, "app.s.1") == 0 && strcmp(candidates[0].tags, "") == 0);
    CHECK(strncmp(candidates[0].path, "/game/", 6) == 0 && candidates[0].healthy);
    return choosing->answer == 99 ? (int)(routing->method % count) : choosing->answer;
}

static int add_chooser(struct choosing *choosing, const char *name)
{
    const struct ringbus_hooks hooks = {
        .struct_size = sizeof hooks, .name = name, .user = choosing, .choose = choose};
    return ringbus_hook(caller.bus, NULL, &hooks);
}

static void test_choosers(void **state)
{
    (void)state;
    struct choosing first = {.answer = RINGBUS_HOOK_PASS};
    struct choosing then = {.answer = 99};
    struct ringbus_addr any = open_all(PICK);
    /* Nobody chooses in its place. */
    assert_int_equal(send_one(&any, NULL), RINGBUS_E_NO_MATCH);
    assert_non_null(strstr(ringbus_errmsg(caller.bus), "custom"));
    CHECK(add_chooser(&first, "first") > 0);
    assert_int_equal(send_one(&any, NULL), RINGBUS_E_NO_MATCH);
    assert_int_equal(node_stats(&caller).bad_choice, 0);
    CHECK(add_chooser(&then, "then") > 0);
    struct ringbus_message_options options = {.struct_size = sizeof options,
                                              .labels = {1, 2, 3, 4}};
    for (unsigned i = 0; i < 2 * MANY; i++) {
        options.method = i;
        options.flags = i % 2 != 0 ? RINGBUS_KEY : 0;
        options.key = 5;
        assert_int_equal(send_one(&any, &options), i % MANY);
    }
    assert_int_equal(first.asked, then.asked + 1);
    assert_int_equal(then.saw.key, 5);
    assert_int_equal(then.saw.labels[3], 4);
    assert_int_equal(then.count, MANY);
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(then.candidates[i].addr.instance, i + 1);
        assert_int_equal(then.candidates[i].weight, 100 * (100 + i));
        assert_int_equal(then.candidates[i].suspect, 0);
        assert_true(then.candidates[i].waiting < 100);
    }
    /* An answer that is nobody is never followed, and nobody else gets the message. */
    static const int wrong[] = {MANY, 1 << 30, -3, INT32_MIN};
    for (unsigned i = 0; i < 4; i++) {
        then.answer = wrong[i];
        assert_int_equal(send_one(&any, NULL), RINGBUS_E_NO_INSTANCE);
        assert_non_null(strstr(ringbus_errmsg(caller.bus), "\"then\""));
    }
    assert_int_equal(node_stats(&caller).bad_choice, 4);
    const uint64_t bad = node_stats(&caller).bad_choice;
    then.answer = RINGBUS_HOOK_REFUSE;
    assert_int_equal(send_one(&any, NULL), RINGBUS_E_NO_MATCH);
    assert_int_equal(node_stats(&caller).bad_choice, bad);
    /* Who has ended is not offered any more. */
    node_close(&workers[0]);
    workers[0].bus = NULL;
    RUN_UNTIL(caller.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &caller, &workers[1], &workers[2]);
    then.answer = 0;
    assert_int_equal(ringbus_send(caller.bus, &any, 0, "", 0, 0), 1);
    assert_int_equal(then.count, 2);
    assert_int_equal(then.candidates[0].addr.instance, 2);
    RUN_UNTIL(workers[1].messages > 0, NODE_MS, &caller, &workers[1], &workers[2]);
    close_all();
}

/* A target's own option, whatever the policy says; requests and claims go the same way. */
static void test_custom_target(void **state)
{
    (void)state;
    struct choosing chooser = {.answer = 1};
    struct ringbus_addr any = open_all(WORK);
    struct ringbus_target_options options = {.struct_size = sizeof options, .custom = 1};
    struct ringbus_claim claim;
    CHECK(add_chooser(&chooser, "mine") > 0);
    CHECK(send_one(&any, NULL) >= 0);
    assert_int_equal(chooser.asked, 0);
    CHECK(ringbus_target(caller.bus, WORK, &options, NULL) == 0);
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(send_one(&any, NULL), 1);
    }
    assert_int_equal(chooser.count, 2); /* whom the stages leave: 3 is tagged */
    CHECK(ringbus_claim(caller.bus, &any, 0, 8, 0, &claim) == 0);
    CHECK(ringbus_commit(caller.bus, &claim, 8) == 1);
    const uint64_t had = workers[1].messages;
    RUN_UNTIL(workers[1].messages > had, NODE_MS, ALL);
    CHECK(ringbus_request(caller.bus, &any, 0, "", 0, 0, 5000, node_on_result, &caller) == 1);
    RUN_UNTIL(workers[1].messages > had + 1, NODE_MS, ALL);
    options.custom = 0;
    CHECK(ringbus_target(caller.bus, WORK, &options, NULL) == 0);
    const unsigned asked = chooser.asked;
    CHECK(send_one(&any, NULL) >= 0);
    assert_int_equal(chooser.asked, asked);
    close_all();
}

/* ---- arguments ------------------------------------------------------------------------------ */

static void test_arguments(void **state)
{
    (void)state;
    struct filtering filtering = {.out = ""};
    memset(&caller, 0, sizeof caller);
    node_open(&caller, &cluster, NULL);
    struct ringbus_hooks hooks = {.struct_size = sizeof hooks, .name = "x"};
    assert_int_equal(ringbus_hook(NULL, NULL, &hooks), RINGBUS_E_ARGUMENT);
    assert_int_equal(ringbus_hook(caller.bus, NULL, NULL), RINGBUS_E_ARGUMENT);
    assert_int_equal(ringbus_hook(caller.bus, NULL, &hooks), RINGBUS_E_ARGUMENT);
    hooks.filter = filter;
    hooks.user = &filtering;
    hooks.destroy = count_destroyed;
    assert_int_equal(ringbus_hook(caller.bus, WORK "/1", &hooks), RINGBUS_E_PATH);
    assert_int_equal(ringbus_hook(caller.bus, "game", &hooks), RINGBUS_E_PATH);
    hooks.name = "";
    assert_int_equal(ringbus_hook(caller.bus, WORK, &hooks), RINGBUS_E_ARGUMENT);
    hooks.name = "0123456789012345678901234567890_";
    assert_int_equal(ringbus_hook(caller.bus, WORK, &hooks), RINGBUS_E_ARGUMENT);
    hooks.name = "x";
    hooks.struct_size = 8;
    assert_int_equal(ringbus_hook(caller.bus, WORK, &hooks), RINGBUS_E_ARGUMENT);
    hooks.struct_size = sizeof hooks;
    for (int i = 1; i <= RINGBUS_HOOKS_MAX; i++) {
        assert_int_equal(ringbus_hook(caller.bus, WORK, &hooks), i);
    }
    assert_int_equal(ringbus_hook(caller.bus, WORK, &hooks), RINGBUS_E_ARGUMENT);
    assert_int_equal(filtering.destroyed, 0);
    node_close(&caller);
    assert_int_equal(filtering.destroyed, RINGBUS_HOOKS_MAX);
}

static int setup(void **state)
{
    (void)state;
    return cluster_up(&cluster, config);
}

static int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_filters, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_filter_that_sends, setup, teardown),
        cmocka_unit_test_setup_teardown(test_routers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_choosers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_custom_target, setup, teardown),
        cmocka_unit_test_setup_teardown(test_arguments, setup, teardown),
    };
    return cmocka_run_group_tests_name("hooks", tests, NULL, NULL);
}
