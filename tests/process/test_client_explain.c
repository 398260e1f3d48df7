/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ringbus_explain() tells of a real bus (features 2.6): stages, who fell out and by which rule
 * of the configuration; for the caller's own messages, for another's, and without a daemon.
 */
#include "support/bus.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HALL   "/game/eu/pc/w1/core/hall"
#define OTHER  "/play/eu/pc/w1/core/hall"
#define SHOP   "/game/eu/pc/w1/core/shop"
#define CALLER "/game/eu/pc/w1/core/gate/1"

static const char config[] =
    "rights: {otherwise: allow}\n"
    "clusters:\n"
    "  - match: " HALL "\n"
    "    set: {mode: strict}\n"
    "    realm: {mode: prefer, imports: [play]}\n"
    "    tags: {canaries: [{id: early, tag: v2, share: 100%}]}\n"
    "    rules:\n"
    "      - {id: reads, methods: 1..9, mode: strict, instance: 'read-*'}\n"
    "      - {id: big, methods: 5..20, mode: prefer, instance: 'x*', dry_run: true}\n"
    "  - match: " SHOP "\n"
    "    balance: {mode: hash, rehash_delay: 1m}\n"
    "instances:\n"
    "  " HALL "/idle: {isolated: true}\n";

static struct cluster cluster;
static struct node caller;
static struct node halls[6];

/* ---- rows, by what they are about ---------------------------------------------------------- */

struct told {
    unsigned count;
    struct ringbus_explain_row rows[64];
    char paths[64][RINGBUS_PATH_MAX + 1];
    char rules[64][64];
};

static struct told told;

static void on_row(void *user, const struct ringbus_explain_row *row)
{
    struct told *all = user;
    CHECK(all->count < 64);
    CHECK(ringbus_close(caller.bus, 0) == RINGBUS_E_BUSY);
    struct ringbus_explain_row *kept = &all->rows[all->count];
    *kept = *row;
    (void)snprintf(all->paths[all->count], RINGBUS_PATH_MAX + 1, "%s",
                   row->path != NULL ? row->path : "");
    (void)snprintf(all->rules[all->count], 64, "%s", row->rule != NULL ? row->rule : "");
    kept->path = all->paths[all->count];
    kept->rule = all->rules[all->count];
    all->count++;
}

static int explain(const struct ringbus_explain_options *options)
{
    memset(&told, 0, sizeof told);
    return ringbus_explain(caller.bus, HALL, options, on_row, &told);
}

/* The row about an instance of the given kind; NULL: there is none. */
static const struct ringbus_explain_row *row_of(enum ringbus_explain_kind kind, const char *name)
{
    for (unsigned i = 0; i < told.count; i++) {
        const char *slash = strrchr(told.rows[i].path, '/');
        if (told.rows[i].kind == kind && slash != NULL && strcmp(slash + 1, name) == 0) {
            return &told.rows[i];
        }
    }
    return NULL;
}

static const struct ringbus_explain_row *stage_row(const char *stage)
{
    for (unsigned i = 0; i < told.count; i++) {
        if (told.rows[i].kind == RINGBUS_EXPLAIN_STAGE && strcmp(told.rows[i].stage, stage) == 0) {
            return &told.rows[i];
        }
    }
    return NULL;
}

static void check_out(const char *name, const char *stage, const char *rule)
{
    const struct ringbus_explain_row *row = row_of(RINGBUS_EXPLAIN_OUT, name);
    if (row == NULL || strcmp(row->stage, stage) != 0 || strcmp(row->rule, rule) != 0) {
        fail_msg("%s: %s, rule \"%s\"", name, row != NULL ? row->stage : "is not out",
                 row != NULL ? row->rule : "");
    }
}

/* ---- the bus ------------------------------------------------------------------------------ */

static void
open_hall(struct node *node, const char *path, const char *set, const char *idc, const char *tags)
{
    struct ringbus_options options = node_options(&cluster, path);
    options.set = set;
    options.idc = idc;
    options.tags = tags;
    node_open_with(node, &options);
}

static int set_up(void **state)
{
    (void)state;
    bus_shared_reset();
    assert_int_equal(cluster_up(&cluster, config), 0);
    open_hall(&halls[0], HALL "/read-1", "app.south.1", NULL, NULL);
    open_hall(&halls[1], HALL "/write-1", "app.south.1", NULL, NULL);
    open_hall(&halls[2], HALL "/new-1", "app.south.1", NULL, "v2");
    open_hall(&halls[3], HALL "/north-1", "app.north.1", NULL, NULL);
    open_hall(&halls[4], HALL "/idle", "app.south.1", NULL, NULL);
    open_hall(&halls[5], OTHER "/guest", NULL, NULL, NULL);
    open_hall(&caller, CALLER, "app.south.1", NULL, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    node_close(&caller);
    for (size_t i = 0; i < sizeof halls / sizeof halls[0]; i++) {
        node_close(&halls[i]);
    }
    cluster_down(&cluster);
    return 0;
}

static void test_stages_of_an_untagged_message(void **state)
{
    (void)state;
    assert_int_equal(explain(NULL), 2);
    assert_non_null(row_of(RINGBUS_EXPLAIN_IN, "read-1"));
    assert_non_null(row_of(RINGBUS_EXPLAIN_IN, "write-1"));
    assert_int_equal(row_of(RINGBUS_EXPLAIN_IN, "read-1")->weight,
                     row_of(RINGBUS_EXPLAIN_IN, "write-1")->weight);
    check_out("idle", "state", "");
    check_out("guest", "realm", "");
    check_out("north-1", "set", "");
    check_out("new-1", "tag", "");
    assert_int_equal(told.rows[0].kind, RINGBUS_EXPLAIN_TARGET);
    assert_string_equal(told.rows[0].path, HALL);
    assert_int_equal(told.rows[0].before, 5);
    assert_string_equal(told.rows[1].path, OTHER);
    assert_int_equal(told.rows[1].before, 1);
    assert_int_equal(stage_row("state")->before, 6);
    assert_int_equal(stage_row("state")->after, 5);
    assert_int_equal(stage_row("health")->after, 2);
    assert_string_equal(stage_row("set")->mode, "strict");
    assert_true(stage_row("rules")->skipped);
    assert_true(stage_row("locality")->skipped); /* a set applies */
}

static void test_rules_and_canaries_are_named(void **state)
{
    (void)state;
    struct ringbus_message_options message = {.struct_size = sizeof message, .method = 7};
    const struct ringbus_explain_options options = {.struct_size = sizeof options,
                                                    .message = &message};
    assert_int_equal(explain(&options), 1);
    check_out("write-1", "rules", "reads");
    message.method = 15;
    assert_int_equal(explain(&options), 2);
    assert_null(row_of(RINGBUS_EXPLAIN_WOULD, "read-1")); /* prefers, and nobody is a target */
    message.method = 0;
    message.flags = RINGBUS_KEY;
    message.key = 4711;
    assert_int_equal(explain(&options), 1);
    check_out("write-1", "tag", "early");
    assert_non_null(row_of(RINGBUS_EXPLAIN_IN, "new-1"));
    message.flags = 0;
    memset(message.trace_id, 7, sizeof message.trace_id);
    message.trace_id[0] = 1;
    assert_int_equal(explain(&options), 1);
    check_out("read-1", "tag", "early");
    message.tag = "v3";
    assert_int_equal(explain(&options), 2);
    check_out("new-1", "tag", "");
    assert_true(stage_row("tag")->fell_back);
}

static void test_other_callers(void **state)
{
    (void)state;
    struct ringbus_explain_options options = {.struct_size = sizeof options,
                                              .caller = HALL "/north-1"};
    assert_int_equal(explain(&options), 1);
    assert_non_null(row_of(RINGBUS_EXPLAIN_IN, "north-1"));
    options.caller = "";
    assert_int_equal(explain(&options), 3);
    options.set = "app.north.1";
    assert_int_equal(explain(&options), 1);
    options.set = "app.west.1";
    assert_int_equal(explain(&options), 0);
    check_out("read-1", "set", "");
    assert_int_equal(stage_row("set")->after, 0);
    options.set = NULL;
    options.caller = HALL "/nobody";
    assert_int_equal(explain(&options), RINGBUS_E_NO_INSTANCE);
    assert_non_null(strstr(ringbus_errmsg(caller.bus), "nobody"));
    options.caller = HALL;
    assert_int_equal(explain(&options), RINGBUS_E_PATH);
}

static void test_errors(void **state)
{
    (void)state;
    const struct ringbus_explain_options none = {.struct_size = 0};
    struct ringbus_message_options message = {.struct_size = sizeof message, .tag = "a,b"};
    const struct ringbus_explain_options bad = {.struct_size = sizeof bad, .message = &message};
    assert_int_equal(ringbus_explain(NULL, HALL, NULL, on_row, &told), RINGBUS_E_ARGUMENT);
    assert_int_equal(ringbus_explain(caller.bus, NULL, NULL, on_row, &told), RINGBUS_E_ARGUMENT);
    assert_int_equal(ringbus_explain(caller.bus, HALL, NULL, NULL, &told), RINGBUS_E_ARGUMENT);
    assert_int_equal(explain(&none), RINGBUS_E_ARGUMENT);
    assert_int_equal(explain(&bad), RINGBUS_E_ARGUMENT);
    assert_int_equal(ringbus_explain(caller.bus, HALL "/read-1", NULL, on_row, &told),
                     RINGBUS_E_PATH);
    assert_int_equal(ringbus_explain(caller.bus, "hall", NULL, on_row, &told), RINGBUS_E_PATH);
    assert_int_equal(ringbus_explain(caller.bus, "/game/eu/pc/w1/core/none", NULL, on_row, &told),
                     RINGBUS_E_NO_SERVICE);
    assert_int_equal(ringbus_explain_text(caller.bus, HALL, NULL, NULL, 5), RINGBUS_E_ARGUMENT);
}

static void test_text(void **state)
{
    (void)state;
    char text[4096];
    const struct ringbus_message_options message = {.struct_size = sizeof message, .method = 7};
    const struct ringbus_explain_options options = {.struct_size = sizeof options,
                                                    .message = &message};
    const int length = ringbus_explain_text(caller.bus, HALL, &options, text, sizeof text);
    assert_int_equal(length, strlen(text));
    assert_non_null(strstr(text, "  - write-1: is no target of the rule (reads)\n"));
    assert_non_null(strstr(text, "in       " HALL "/read-1: share "));
    char part[64];
    assert_int_equal(ringbus_explain_text(caller.bus, HALL, &options, part, sizeof part), length);
    assert_memory_equal(part, text, sizeof part - 1);
    assert_int_equal(part[sizeof part - 1], '\0');
    assert_int_equal(ringbus_explain_text(caller.bus, HALL, &options, NULL, 0), length);
}

/* A drained instance falls out for everybody who looks, as soon as the directory says so. */
static void test_draining_and_without_daemon(void **state)
{
    (void)state;
    assert_int_equal(ringbus_drain(halls[1].bus), 0);
    RUN_UNTIL(explain(NULL) == 1, NODE_MS, &halls[1], &caller);
    check_out("write-1", "state", "");
    cluster_kill(&cluster);
    assert_int_equal(explain(NULL), 1);
    check_out("write-1", "state", "");
    assert_int_equal(cluster_start(&cluster), 0);
}

/* ---- keys --------------------------------------------------------------------------------- */

static char owner[RINGBUS_PATH_MAX + 1];
static char owner_reason[64];

/* Whose key it is, by its row. */
static void on_owner(void *user, const struct ringbus_explain_row *row)
{
    (void)user;
    if (row->kind == RINGBUS_EXPLAIN_OWNER) {
        (void)snprintf(owner, sizeof owner, "%s", row->path);
        (void)snprintf(owner_reason, sizeof owner_reason, "%s", row->reason);
    }
}

static const char *owner_of(uint64_t key)
{
    const struct ringbus_message_options message = {
        .struct_size = sizeof message, .flags = RINGBUS_KEY, .key = key};
    const struct ringbus_explain_options options = {.struct_size = sizeof options,
                                                    .message = &message};
    owner[0] = '\0';
    CHECK(ringbus_explain(caller.bus, SHOP, &options, on_owner, NULL) >= 0);
    return owner;
}

static void shop(const struct cluster *its, void *context)
{
    struct node node = {.context = context};
    node_open(&node, its, SHOP "/3");
    RUN_UNTIL(false, 60000, &node);
}

/* The owner that is told gets the messages; one that died keeps its keys for a while. */
static void test_owner_of_a_key(void **state)
{
    (void)state;
    static struct node shops[2];
    struct node *nodes[] = {&shops[0], &shops[1]};
    const pid_t third = child_start(shop, &cluster, NULL);
    node_open(&shops[0], &cluster, SHOP "/1");
    node_open(&shops[1], &cluster, SHOP "/2");
    struct ringbus_addr to = {0};
    const unsigned ready = caller.events[RINGBUS_EVENT_READY];
    assert_int_equal(ringbus_target(caller.bus, SHOP, NULL, &to), 0);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == ready + 3, NODE_MS, &caller, &shops[0],
              &shops[1]);
    unsigned owned[2] = {0, 0};
    uint64_t of_third = UINT64_MAX;
    for (uint64_t key = 0; key < 64; key++) {
        const char *path = owner_of(key);
        assert_string_equal(owner_reason, "");
        const int name = path[strlen(path) - 1] - '1';
        if (name == 2) {
            of_third = key;
            continue;
        }
        const uint64_t before = shops[name].messages;
        assert_int_equal(ringbus_send(caller.bus, &to, key, "x", 1, RINGBUS_KEY), 1);
        RUN_UNTIL(shops[name].messages == before + 1, NODE_MS, nodes[name]);
        owned[name]++;
    }
    assert_true(owned[0] > 0 && owned[1] > 0 && of_third != UINT64_MAX);
    child_kill(third);
    RUN_UNTIL((owner_of(of_third), owner_reason[0] != '\0'), NODE_MS, &caller);
    assert_string_equal(owner, SHOP "/3");
    assert_non_null(strstr(owner_reason, "has died"));
    assert_int_equal(ringbus_untarget(caller.bus, SHOP), 0);
    node_close(&shops[0]);
    node_close(&shops[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stages_of_an_untagged_message),
        cmocka_unit_test(test_rules_and_canaries_are_named),
        cmocka_unit_test(test_other_callers),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_owner_of_a_key),
        cmocka_unit_test(test_draining_and_without_daemon),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
