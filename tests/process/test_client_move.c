/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callers and instances that the operator moves to another set or place (features 1.5, J27, J28):
 * from then on messages go where they belong now, over the links that are there.
 */
#include "support/bus.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define HALL   "/game/eu/pc/w1/core/hall"
#define CALLER "/game/eu/pc/w1/core/gate/1"

#define RULES "clusters: [{match: " HALL ", set: {mode: strict}, locality: {mode: strict}}]\n"

static struct cluster cluster;
static struct node caller;
static struct node a;
static struct node b;
static struct ringbus_addr to;

static void open_node(struct node *node, const char *path, const char *set, const char *idc)
{
    struct ringbus_options options = node_options(&cluster, path);
    options.set = set;
    options.idc = idc;
    node_open_with(node, &options);
}

static void reload(const char *instances)
{
    char config[1024];
    const unsigned before = cluster_log_count(&cluster, "event=reloaded");
    (void)snprintf(config, sizeof config, RULES "%s", instances);
    assert_int_equal(cluster_configure(&cluster, config), 0);
    assert_int_equal(kill(cluster.pid, SIGHUP), 0);
    RUN_UNTIL(cluster_log_count(&cluster, "event=reloaded") > before, NODE_MS, &caller, &a, &b);
}

static void up(const char *set_a, const char *idc_a, const char *set_b, const char *idc_b)
{
    assert_int_equal(cluster_up(&cluster, RULES), 0);
    open_node(&a, HALL "/a", set_a, idc_a);
    open_node(&b, HALL "/b", set_b, idc_b);
    open_node(&caller, CALLER, set_a, idc_a);
    assert_int_equal(ringbus_target(caller.bus, HALL, NULL, &to), 0);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &caller, &a, &b);
}

static void down(void)
{
    assert_int_equal(caller.events[RINGBUS_EVENT_DOWN], 0); /* nobody was linked anew */
    assert_int_equal(caller.events[RINGBUS_EVENT_READY], 2);
    node_close(&caller);
    node_close(&a);
    node_close(&b);
    cluster_down(&cluster);
    caller = a = b = (struct node){.bus = NULL};
}

static bool try_one(void)
{
    return ringbus_send(caller.bus, &to, 0, "x", 1, 0) == 1;
}

/* Sends until one arrives at @p node, then a hundred more, which all do. */
static void check_reaches(struct node *node)
{
    const uint64_t before = node->messages;
    RUN_UNTIL(try_one() && node->messages > before, NODE_MS, &caller, &a, &b);
    RUN_UNTIL(a.messages + b.messages == node_stats(&caller).sent, NODE_MS, &caller, &a, &b);
    const struct node *other = node == &a ? &b : &a;
    const uint64_t elsewhere = other->messages;
    const uint64_t here = node->messages;
    for (uint64_t key = 0; key < 100; key++) {
        assert_int_equal(ringbus_send(caller.bus, &to, key, "x", 1, key % 2 == 0 ? RINGBUS_KEY : 0),
                         1);
    }
    RUN_UNTIL(node->messages == here + 100, NODE_MS, &caller, &a, &b);
    assert_int_equal(other->messages, elsewhere);
}

static void test_caller_is_moved_to_another_set(void **state)
{
    (void)state;
    up("app.a.1", NULL, "app.b.1", NULL);
    check_reaches(&a);
    reload("instances: {" CALLER ": {set: app.b.1}}\n");
    check_reaches(&b);
    reload("");
    check_reaches(&a);
    down();
}

static void test_caller_is_moved_to_another_room(void **state)
{
    (void)state;
    up(NULL, "room1", NULL, "room2");
    check_reaches(&a);
    reload("instances: {" CALLER ": {idc: room2}}\n");
    check_reaches(&b);
    reload("");
    check_reaches(&a);
    down();
}

static void test_instances_change_places(void **state)
{
    (void)state;
    up("app.a.1", NULL, "app.b.1", NULL);
    check_reaches(&a);
    reload("instances: {" HALL "/a: {set: app.b.1}, " HALL "/b: {set: app.a.1}}\n");
    check_reaches(&b);
    down();
}

int main(void)
{
    bus_shared_reset();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_caller_is_moved_to_another_set),
        cmocka_unit_test(test_caller_is_moved_to_another_room),
        cmocka_unit_test(test_instances_change_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
