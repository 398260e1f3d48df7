/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes of the tree through the library (features D21 to D36, 2.7; scenarios 97, 132): what each
 * question is answered, and who is told of which change.
 */
#include "client_nodes.h"

/* ---- what is answered ------------------------------------------------------------------------ */

static void test_create_set_get_remove(void **state)
{
    (void)state;
    both_open(BATTLE "/1", NULL);
    assert_int_equal(get(&a, SEASON), RINGBUS_E_NO_SERVICE);
    assert_false(answer.there);
    assert_int_equal(create(&a, SEASON, "winter", 0), 0);
    const uint64_t first = answer.revision;
    assert_true(first > 0);
    assert_int_equal(create(&b, SEASON, "summer", 0), RINGBUS_E_IN_USE);
    assert_int_equal(get(&b, SEASON), 0);
    assert_int_equal(answer.kind, RINGBUS_NODE_USER);
    assert_string_equal(answer.value, "winter");
    assert_string_equal(answer.creator, BATTLE "/1");
    assert_int_equal(answer.ephemeral, 0);
    assert_true(answer.node_revision == first);

    /* Compare and set. */
    assert_int_equal(set(&b, SEASON, "spring", first), 0);
    const uint64_t second = answer.revision;
    assert_true(second > first);
    assert_int_equal(set(&a, SEASON, "autumn", first), RINGBUS_E_IN_USE);
    assert_non_null(strstr(answer.text, "was expected"));
    check_value(&a, SEASON, "spring");
    assert_int_equal(drop(&a, SEASON, first), RINGBUS_E_IN_USE);
    assert_int_equal(set(&a, SEASON, "", 0), 0);
    assert_int_equal(get(&a, SEASON), 0);
    assert_int_equal(answer.size, 0);
    assert_string_equal(answer.creator, BATTLE "/1"); /* as it was */

    /* Parents. */
    assert_int_equal(create(&a, SEASON "/next/one", "", 0), RINGBUS_E_NO_SERVICE);
    assert_int_equal(create(&a, SEASON "/next", "", 0), 0);
    assert_int_equal(create(&a, SEASON "/next/one", "", 0), 0);
    assert_int_equal(drop(&a, SEASON, 0), RINGBUS_E_IN_USE);
    assert_int_equal(drop(&a, SEASON "/next", 0), RINGBUS_E_IN_USE);
    assert_int_equal(drop(&a, SEASON "/next/one", 0), 0);
    assert_int_equal(drop(&a, SEASON "/next", 0), 0);
    assert_int_equal(drop(&a, SEASON, 0), 0);
    assert_true(answer.revision > second);
    assert_int_equal(drop(&a, SEASON, 0), RINGBUS_E_NO_SERVICE);
    assert_int_equal(set(&a, SEASON, "x", 0), RINGBUS_E_NO_SERVICE);
    both_close();
}

/* What cannot be asked is said at once; nothing is called back then. */
static void test_refused_before_asking(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        const char *where;
    } bad[] = {
        {"", "at byte 0"},
        {"/game/eu/meta/", "at byte 13"},
        {"/game//meta/a", "at byte 6"},
        {"/game/eu/meta/a b", "at byte 15"},
        {"/meta/a", "at byte 1"},
        {"/game/meta/meta", "at byte 11"},
        {"/game/meta/a/b/c/d/e", "at byte 19"},
        {BATTLE "/1/meta/a", "at byte 29"},
        {"/game/meta/.", "at byte 11"},
    };
    static char big[RINGBUS_NODE_VALUE_MAX + 1];
    char long_path[400];
    both_open(NULL, NULL);
    const unsigned before = answer.count;
    for (size_t i = 0; i < RBI_ARRAY_SIZE(bad); i++) {
        assert_int_equal(ringbus_node_create(a.bus, bad[i].path, "", 0, 0, on_answer, &answer),
                         RINGBUS_E_PATH);
        assert_non_null(strstr(ringbus_errmsg(a.bus), bad[i].where));
        assert_int_equal(ringbus_watch(a.bus, bad[i].path), RINGBUS_E_PATH);
    }
    memset(long_path, 'a', sizeof long_path);
    memcpy(long_path, "/game/meta/", 11);
    long_path[sizeof long_path - 1] = '\0';
    assert_int_equal(ringbus_node_get(a.bus, long_path, NULL, on_answer, &answer), RINGBUS_E_PATH);
    assert_int_equal(ringbus_node_create(a.bus, SEASON, big, sizeof big, 0, on_answer, &answer),
                     RINGBUS_E_TOO_BIG);
    assert_int_equal(ringbus_node_create(a.bus, SEASON, NULL, 1, 0, on_answer, &answer),
                     RINGBUS_E_ARGUMENT);
    assert_int_equal(ringbus_node_create(a.bus, SEASON, NULL, 0, 2, on_answer, &answer),
                     RINGBUS_E_ARGUMENT);
    assert_int_equal(ringbus_node_get(a.bus, SEASON, NULL, NULL, &answer), RINGBUS_E_ARGUMENT);
    assert_int_equal(ringbus_node_get(a.bus, NULL, NULL, on_answer, &answer), RINGBUS_E_ARGUMENT);
    /* More than can be under way; all that were asked are answered. */
    int r = 0;
    unsigned asked = 0;
    while ((r = ringbus_node_get(a.bus, "/", NULL, on_answer, &answer)) == 0) {
        asked++;
    }
    assert_int_equal(r, RINGBUS_E_QUOTA);
    assert_int_equal(asked, 256);
    RUN_UNTIL(answer.count == before + asked, 5000, &a);
    both_close();
}

/* Scenario 97: no two texts are one node, and no name of an instance is also one of a node. */
static void test_paths_that_look_alike_are_apart(void **state)
{
    (void)state;
    struct ringbus_options options;
    struct ringbus *none = NULL;
    both_open(NULL, NULL);
    assert_int_equal(create(&a, "/game/ab/meta/c", "1", 0), 0);
    assert_int_equal(create(&a, "/game/a/meta/bc", "2", 0), 0);
    assert_int_equal(create(&a, "/Game/ab/meta/c", "3", 0), 0);
    assert_int_equal(create(&a, "/game/ab/meta/C", "4", 0), 0);
    check_value(&b, "/game/ab/meta/c", "1");
    check_value(&b, "/game/a/meta/bc", "2");
    check_value(&b, "/Game/ab/meta/c", "3");
    check_value(&b, "/game/ab/meta/C", "4");
    assert_int_equal(get(&a, "/game/a"), 0);
    assert_int_equal(answer.child_count, 1);
    assert_string_equal(answer.children[0], "meta");
    static const char *const reserved[] = {"/game/eu/meta/w1/core/battle/1",
                                           "/game/eu/pc/w1/core/meta/1",
                                           "/game/eu/pc/w1/core/battle/meta"};
    for (size_t i = 0; i < RBI_ARRAY_SIZE(reserved); i++) {
        options = node_options(&cluster, reserved[i]);
        assert_int_equal(ringbus_open(&options, &none), RINGBUS_E_PATH);
        assert_non_null(strstr(ringbus_errmsg(NULL), "reserved"));
        assert_int_equal(ringbus_target(a.bus, reserved[i], NULL, NULL), RINGBUS_E_PATH);
    }
    assert_int_equal(drop(&a, "/game/ab/meta/c", 0), 0);
    check_value(&b, "/game/ab/meta/C", "4");
    both_close();
}

/* D34: no service, no instance, there; and waiting for it. */
static void test_three_answers_of_a_cluster(void **state)
{
    (void)state;
    both_open(NULL, NULL);
    assert_int_equal(get(&a, BATTLE), RINGBUS_E_NO_SERVICE);
    assert_int_equal(ringbus_wait_ready(a.bus, BATTLE, 0), RINGBUS_E_NOT_TARGET);
    assert_int_equal(ringbus_target(a.bus, BATTLE, NULL, NULL), 0);
    assert_int_equal(ringbus_wait_ready(a.bus, BATTLE, 50), RINGBUS_E_NO_SERVICE);
    assert_int_equal(create(&a, BATTLE, "", 0), 0);
    assert_int_equal(get(&a, BATTLE), RINGBUS_E_NO_INSTANCE);
    assert_true(answer.there);
    assert_int_equal(answer.kind, RINGBUS_NODE_CLUSTER);
    assert_int_equal(ringbus_wait_ready(a.bus, BATTLE, 0), RINGBUS_E_NO_INSTANCE);
    struct node server = {.bus = NULL};
    node_open(&server, &cluster, BATTLE "/7");
    assert_int_equal(get(&a, BATTLE), 0);
    assert_int_equal(answer.instances, 1);
    assert_string_equal(answer.children[0], "7");
    assert_int_equal(get(&a, BATTLE "/7"), 0);
    assert_int_equal(answer.kind, RINGBUS_NODE_INSTANCE);
    assert_int_equal(get(&a, BATTLE "/8"), RINGBUS_E_NO_INSTANCE);
    /* Nobody polls it, so no link gets READY: it is there, and that is all. */
    assert_int_equal(ringbus_wait_ready(a.bus, BATTLE, 50), RINGBUS_E_NOT_READY);
    RUN_UNTIL(ringbus_wait_ready(a.bus, BATTLE, 0) == 0, 5000, &server);
    assert_int_equal(ringbus_wait_ready(a.bus, BATTLE "/7", -1), 0);
    node_close(&server);
    RUN_UNTIL(get(&a, BATTLE) == RINGBUS_E_NO_INSTANCE, 5000, &a);
    both_close();
}

static void test_children_beyond_one_answer(void **state)
{
    (void)state;
    char path[128];
    both_open(NULL, NULL);
    assert_int_equal(create(&a, "/game/meta/many", "", 0), 0);
    for (unsigned i = 0; i < 1100; i++) {
        (void)snprintf(path, sizeof path, "/game/meta/many/child-%04u", i);
        assert_int_equal(create(&a, path, "", 0), 0);
    }
    assert_int_equal(get(&b, "/game/meta/many"), 0);
    assert_true(answer.child_count >= 1024 && answer.child_count < 1100);
    assert_int_equal(answer.more, 1);
    assert_string_equal(answer.children[0], "child-0000");
    const size_t first = answer.child_count;
    char last[64];
    (void)snprintf(last, sizeof last, "%s", answer.last);
    assert_int_equal(
        wait_answer(&b, ringbus_node_get(b.bus, "/game/meta/many", last, on_answer, &answer)), 0);
    assert_int_equal(first + answer.child_count, 1100);
    assert_int_equal(answer.more, 0);

    /* And whoever begins to watch is told of each, though that is more than a queue holds. */
    struct told told;
    struct node watcher;
    watcher_open(&watcher, &told, "/game/meta/many");
    RUN_UNTIL(told.count[0] == 1101, 10000, &watcher);
    assert_int_equal(watcher.events[RINGBUS_EVENT_RESYNC], 0);
    node_close(&watcher);
    both_close();
}

/* ---- who is told ----------------------------------------------------------------------------- */

/* Scenario 132: one event a change, of the node that has changed, through however many prefixes. */
static void test_watchers_get_one_event_a_change(void **state)
{
    (void)state;
    struct told wide;
    struct told narrow;
    struct told single;
    struct node watchers[3];
    both_open(NULL, NULL);
    assert_int_equal(create(&a, SEASON, "winter", 0), 0);
    assert_int_equal(create(&a, "/game/us/meta/season", "summer", 0), 0);
    watcher_open(&watchers[0], &wide, "/");
    assert_int_equal(ringbus_watch(watchers[0].bus, "/game"), 0);
    assert_int_equal(ringbus_watch(watchers[0].bus, SEASON), 0);
    watcher_open(&watchers[1], &narrow, "/game/eu");
    watcher_open(&watchers[2], &single, SEASON);
    RUN_UNTIL(wide.count[0] == 2 && narrow.count[0] == 1 && single.count[0] == 1, 5000,
              &watchers[0], &watchers[1], &watchers[2]);
    assert_string_equal(single.value, "winter");
    assert_int_equal(set(&a, SEASON, "spring", 0), 0);
    const uint64_t revision = answer.revision;
    assert_int_equal(set(&a, "/game/us/meta/season", "autumn", 0), 0);
    for (unsigned i = 0; i < 3; i++) {
        catch_up(&watchers[i]);
    }
    check_told(&wide, 2, 2, 0);
    check_told(&narrow, 1, 1, 0);
    check_told(&single, 1, 1, 0);
    assert_string_equal(single.path, SEASON);
    assert_string_equal(single.value, "spring");
    assert_true(single.revision == revision);

    /* What fails changes nothing, and nobody is told; nor of an instance's registering. */
    assert_int_equal(set(&a, SEASON, "x", 1), RINGBUS_E_IN_USE);
    assert_int_equal(create(&a, SEASON, "x", 0), RINGBUS_E_IN_USE);
    struct node other = {.bus = NULL};
    node_open(&other, &cluster, BATTLE "/1");
    node_close(&other);
    assert_int_equal(drop(&a, SEASON, 0), 0);
    for (unsigned i = 0; i < 3; i++) {
        catch_up(&watchers[i]);
    }
    check_told(&wide, 2, 2, 1);
    check_told(&narrow, 1, 1, 1);
    check_told(&single, 1, 1, 1);

    /* Not any more. */
    assert_int_equal(ringbus_unwatch(watchers[2].bus, SEASON), 0);
    assert_int_equal(create(&a, SEASON, "again", 0), 0);
    for (unsigned i = 0; i < 3; i++) {
        catch_up(&watchers[i]);
    }
    check_told(&wide, 3, 2, 1);
    check_told(&single, 1, 1, 1);
    for (unsigned i = 0; i < 3; i++) {
        node_close(&watchers[i]);
    }
    both_close();
}

/* Events that are not read make no queue grow for ever: RESYNC, and then the difference. */
static void test_who_does_not_read_is_told_the_difference(void **state)
{
    (void)state;
    struct told told;
    struct node watcher;
    static char value[RINGBUS_NODE_VALUE_MAX];
    both_open(NULL, NULL);
    memset(value, 'v', sizeof value);
    assert_int_equal(create(&a, "/game/meta/going", "", 0), 0);
    watcher_open(&watcher, &told, "/game");
    RUN_UNTIL(told.count[0] == 1, 5000, &watcher);
    assert_int_equal(create(&a, SEASON, "", 0), 0);
    for (unsigned i = 0; i < 2500; i++) { /* more than socket and queue hold */
        assert_int_equal(wait_answer(&a, ringbus_node_set(a.bus, SEASON, value, sizeof value, 0,
                                                          on_answer, &answer)),
                         0);
    }
    assert_int_equal(drop(&a, "/game/meta/going", 0), 0);
    assert_int_equal(set(&a, SEASON, "last", 0), 0);
    RUN_UNTIL(watcher.events[RINGBUS_EVENT_RESYNC] > 0, 5000, &watcher);
    RUN_UNTIL(told.count[2] == 1, 5000, &watcher);
    catch_up(&watcher);
    assert_int_equal(told.count[0], 2);
    check_value(&a, SEASON, "last");
    node_close(&watcher);
    both_close();
}

/* ---- rights ---------------------------------------------------------------------------------- */

static const char denying[] =
    "rights:\n"
    "  otherwise: allow\n"
    "  rules:\n"
    "    - {id: no-nodes, action: deny, verbs: [own], to: /game/*/meta/**}\n"
    "    - {id: no-look, action: deny, verbs: [watch], to: /play/**}\n"
    "    - {id: no-change, action: deny, verbs: [admin], to: /shop/**}\n";

static void test_rights(void **state)
{
    (void)state;
    struct told told;
    struct node watcher;
    both_open(NULL, NULL);
    assert_int_equal(create(&a, "/play/meta/hidden", "x", 0), 0);
    assert_int_equal(create(&a, "/shop/meta/fixed", "x", 0), 0);
    assert_int_equal(cluster_configure(&cluster, denying), 0);
    assert_int_equal(kill(cluster.pid, SIGHUP), 0);
    assert_true(cluster_log_wait(&cluster, "event=rights_changed", 5000));
    assert_int_equal(create(&a, SEASON, "x", 0), RINGBUS_E_DENIED);
    assert_non_null(strstr(answer.text, "no-nodes"));
    assert_int_equal(get(&a, "/play/meta/hidden"), RINGBUS_E_DENIED);
    assert_int_equal(get(&a, "/play"), RINGBUS_E_NO_SERVICE); /* nothing that it may see */
    assert_int_equal(set(&a, "/shop/meta/fixed", "y", 0), RINGBUS_E_DENIED);
    assert_int_equal(drop(&a, "/shop/meta/fixed", 0), RINGBUS_E_DENIED);
    watcher_open(&watcher, &told, "/");
    catch_up(&watcher);
    catch_up(&watcher);
    check_told(&told, 1, 0, 0);
    assert_string_equal(told.path, "/shop/meta/fixed");
    /* What may be seen from now on is told. */
    assert_int_equal(cluster_configure(&cluster, config), 0);
    assert_int_equal(kill(cluster.pid, SIGHUP), 0);
    RUN_UNTIL(told.count[0] == 2, 5000, &watcher);
    assert_string_equal(told.path, "/play/meta/hidden");
    node_close(&watcher);
    both_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NODES_TEST(test_create_set_get_remove),
        NODES_TEST(test_refused_before_asking),
        NODES_TEST(test_paths_that_look_alike_are_apart),
        NODES_TEST(test_three_answers_of_a_cluster),
        NODES_TEST(test_children_beyond_one_answer),
        NODES_TEST(test_watchers_get_one_event_a_change),
        NODES_TEST(test_who_does_not_read_is_told_the_difference),
        NODES_TEST(test_rights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
