/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 88, features 1.2 (T22, T24) and 2.6: what is kept apart does not mix because something
 * is not as it should be. A set, a place or tags that are of no form are refused, since they would
 * count as none; and a directory that cannot be read now is no directory without sets and tags.
 */
#include "bus/directory_layout.h"
#include "daemon/code.h"
#include "libclient/internal.h"
#include "support/bus.h"
#include "support/raw.h"
#include "support/test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define HALL "/game/eu/pc/w1/core/hall"

static struct cluster cluster;

static const struct {
    const char *set;
    const char *idc;
    const char *tags;
} wrong[] = {
    {"app.a", NULL, NULL},     {"app.*.1", NULL, NULL},   {"*.a.1", NULL, NULL},
    {"app.a.1.2", NULL, NULL}, {"app.a 1.1", NULL, NULL}, {NULL, "a/b/c", NULL},
    {NULL, "room/", NULL},     {NULL, "room 1", NULL},    {NULL, NULL, "v2, v3"},
    {NULL, NULL, "v2\n"},
};

static void test_labels_of_no_form_are_refused(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(wrong); i++) {
        struct node node = {.bus = NULL};
        struct ringbus_options options = node_options(&cluster, HALL "/1");
        options.set = wrong[i].set;
        options.idc = wrong[i].idc;
        options.tags = wrong[i].tags;
        assert_int_equal(node_try_open(&node, &options), RINGBUS_E_ARGUMENT);
    }
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(wrong); i++) {
        struct raw raw;
        struct rbi_text text;
        struct rbi_wire_registration body = {.weight = 1, .state = RBI_ENDPOINT_READY};
        rbi_text_set(&body.path, HALL "/1");
        rbi_text_set(&body.set, wrong[i].set != NULL ? wrong[i].set : "");
        rbi_text_set(&body.idc, wrong[i].idc != NULL ? wrong[i].idc : "");
        rbi_text_set(&body.tags, wrong[i].tags != NULL ? wrong[i].tags : "");
        assert_int_equal(raw_connect(&raw, cluster.socket), 0);
        assert_int_equal(raw_hello(&raw), 0);
        assert_int_equal(raw_send_register(&raw, &body), 0);
        assert_int_equal(raw_expect_error_text(&raw, &text), RBI_CODE_ARGUMENT);
        assert_non_null(strstr(text.bytes, "form"));
        raw_close(&raw);
    }
}

static const struct ringbus_part part = {"x", 1};

static int send_plain(struct ringbus *bus, uint64_t key)
{
    const struct ringbus_addr to = {.cluster = rbi_cluster_id(HALL, strlen(HALL))};
    const struct ringbus_message_options options = {
        .struct_size = sizeof options, .flags = key != 0 ? RINGBUS_KEY : 0U, .key = key};
    return ringbus_send_with(bus, &to, &part, 1, &options);
}

/* A directory in which no snapshot is ever whole. */
static void *torn(const struct rbi_directory_view *view)
{
    unsigned char *copy = aligned_alloc(RBI_LINE, rbi_align_up(view->size, RBI_LINE));
    CHECK(copy != NULL);
    memcpy(copy, view->base, view->size);
    struct rbi_directory_view mine;
    CHECK(rbi_directory_view_init(&mine, copy, view->size) == 0);
    uint64_t heap = 0;
    memcpy(&heap, copy + offsetof(struct rbi_directory_head, heap_offset), sizeof heap);
    memset(copy + heap, 0xff, view->size - heap);
    return copy;
}

static void test_what_cannot_be_read_is_not_empty(void **state)
{
    (void)state;
    static struct node caller, plain, canary;
    struct ringbus_addr to;
    struct ringbus_options options = node_options(&cluster, HALL "/canary");
    options.tags = "v2";
    node_open_with(&canary, &options);
    node_open(&plain, &cluster, HALL "/plain");
    node_open(&caller, &cluster, NULL);
    assert_int_equal(ringbus_target(caller.bus, HALL, NULL, &to), 0);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &caller, &plain, &canary);
    struct rbi_cluster *hall = rbi_cluster_find(caller.bus, to.cluster);
    const struct rbi_directory_view whole = caller.bus->directory;
    void *copy = torn(&whole);
    caller.bus->directory.base = copy;
    for (uint64_t key = 0; key < 50; key++) {
        rbi_cluster_changed(caller.bus, hall);
        assert_int_equal(send_plain(caller.bus, key), RINGBUS_E_NO_MEMORY);
    }
    caller.bus->directory.base = whole.base;
    free(copy);
    for (uint64_t key = 0; key < 50; key++) {
        assert_int_equal(send_plain(caller.bus, key), 1);
    }
    RUN_UNTIL(plain.messages == 50, NODE_MS, &caller, &plain, &canary);
    assert_int_equal(canary.messages, 0);
    node_close(&caller);
    node_close(&plain);
    node_close(&canary);
}

/* In which nothing is withdrawn but one blob. */
static void *without(const struct rbi_directory_view *view, uint64_t key)
{
    unsigned char *copy = aligned_alloc(RBI_LINE, rbi_align_up(view->size, RBI_LINE));
    CHECK(copy != NULL);
    memcpy(copy, view->base, view->size);
    struct rbi_directory_entry *entries =
        (struct rbi_directory_entry *)(void *)(copy + rbi_directory_table_offset(view->slot_count));
    bool found = false;
    for (uint64_t i = 0; i <= view->table_mask; i++) {
        if (rbi_load_rlx(&entries[i].cluster) == key) {
            rbi_store_rel(&entries[i].ref, 0); /* R22: pairs with A22 (directory_read.c). */
            found = true;
        }
    }
    CHECK(found);
    return copy;
}

/* Features 2.7: a snapshot goes with the policy that it names, and with no other. */
static void test_snapshot_waits_for_its_policy(void **state)
{
    (void)state;
    static struct node caller, plain;
    struct ringbus_addr to;
    const struct ringbus_message_options options = {.struct_size = sizeof options, .method = 99};
    assert_int_equal(cluster_configure(&cluster, "clusters: [{match: " HALL ", rules: [{id: none, "
                                                 "methods: 99, mode: strict, instance: x}]}]\n"),
                     0);
    node_open(&plain, &cluster, HALL "/plain");
    node_open(&caller, &cluster, NULL);
    assert_int_equal(ringbus_target(caller.bus, HALL, NULL, &to), 0);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &caller, &plain);
    assert_int_equal(ringbus_send_with(caller.bus, &to, &part, 1, &options), 1);
    assert_int_equal(kill(cluster.pid, SIGHUP), 0);
    assert_true(cluster_log_wait(&cluster, "event=reloaded", NODE_MS));
    /* The directory has the new snapshot and, in this copy of it, not yet its policy. */
    struct rbi_cluster *hall = rbi_cluster_find(caller.bus, to.cluster);
    struct rbi_directory_cluster head;
    const struct rbi_directory_view whole = caller.bus->directory;
    assert_int_equal(rbi_directory_read(&whole, to.cluster, &head, NULL, 0), RBI_DIRECTORY_ROOM);
    assert_true(head.policy != 0);
    void *copy = without(&whole, head.policy);
    caller.bus->directory.base = copy;
    rbi_cluster_changed(caller.bus, hall);
    assert_int_equal(ringbus_send_with(caller.bus, &to, &part, 1, &options), RINGBUS_E_NO_MEMORY);
    assert_int_equal(ringbus_send(caller.bus, &to, 0, "x", 1, 0), RINGBUS_E_NO_MEMORY);
    caller.bus->directory.base = whole.base;
    free(copy);
    assert_int_equal(ringbus_send_with(caller.bus, &to, &part, 1, &options), RINGBUS_E_NO_MATCH);
    assert_int_equal(ringbus_send(caller.bus, &to, 0, "x", 1, 0), 1);
    node_close(&caller);
    node_close(&plain);
}

static int setup(void **state)
{
    (void)state;
    return cluster_up(&cluster, "{}\n");
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
        cmocka_unit_test_setup_teardown(test_labels_of_no_form_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_cannot_be_read_is_not_empty, setup, teardown),
        cmocka_unit_test_setup_teardown(test_snapshot_waits_for_its_policy, setup, teardown),
    };
    return cmocka_run_group_tests_name("apart", tests, NULL, NULL);
}
