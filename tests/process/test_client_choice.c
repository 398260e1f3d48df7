/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was chosen, and what it was chosen from, while links and daemons come and go (features 2.2,
 * 2.8): no choice outlives its links, not even where memory is short; a message is chosen for
 * once, whatever hinders its sender; the policy is that of the daemon at hand. And a receiver's
 * limits come with the memory for them.
 */
#include "libclient/internal.h"
#include "support/bus.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORK      "/game/eu/pc/w1/core/work"
#define TURN      "/game/eu/pc/w1/core/turn"
#define TIGHT     "/game/eu/pc/w1/core/tight"
#define GATED     "/game/eu/pc/w1/core/gated"
#define WARM      20000 /* polls: enough for a tick to be hundreds of polls away */
#define PAST_TICK 5000  /* and to be past it */
#define ROUNDS    4

static const char config[] = "clusters:\n"
                             "  - match: \"" WORK "\"\n"
                             "    balance: {mode: hash, hash_bound: 125%}\n"
                             "  - match: \"" TURN "\"\n"
                             "    balance: {keyless: rr}\n"
                             "    limits: [{id: wide, rate: 1000000}]\n"
                             "  - match: \"" TIGHT "\"\n"
                             "    limits: [{id: tight, rate: 1, burst: 3}]\n"
                             "  - match: \"" GATED "\"\n"
                             "    limits: [{id: gate, scope: receiver, rate: 1, burst: 3}]\n";
static const char config_after[] = "clusters:\n"
                                   "  - match: \"" WORK "\"\n"
                                   "    limits: [{id: tight, rate: 1, burst: 3}]\n";

static struct cluster cluster;
static struct node client, first, second;

/* ---- memory that is refused ------------------------------------------------------------------ */

static bool no_memory;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
    return no_memory ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return no_memory ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return no_memory ? NULL : __real_realloc(old, size);
}

/* ---- the cluster ----------------------------------------------------------------------------- */

static struct ringbus_addr open_all(const char *path)
{
    char paths[2][RINGBUS_PATH_MAX + 1];
    struct ringbus_addr any;
    memset(&client, 0, sizeof client);
    memset(&first, 0, sizeof first);
    memset(&second, 0, sizeof second);
    (void)snprintf(paths[0], sizeof paths[0], "%s/1", path);
    (void)snprintf(paths[1], sizeof paths[1], "%s/2", path);
    node_open(&first, &cluster, paths[0]);
    node_open(&second, &cluster, paths[1]);
    node_open(&client, &cluster, NULL);
    CHECK(ringbus_target(client.bus, path, NULL, &any) == 0);
    RUN_UNTIL(client.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &client, &first, &second);
    return any;
}

static void close_all(void)
{
    node_close(&client);
    if (first.bus != NULL) {
        node_close(&first);
    }
    node_close(&second);
}

static void poll_client(unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        CHECK(ringbus_poll(client.bus, 100) >= 0);
    }
}

/* By turns and by key, of the class of most messages and of one of its own. */
static void send_each_way(const struct ringbus_addr *any)
{
    const struct ringbus_part part = {.data = "", .size = 0};
    struct ringbus_message_options options = {.struct_size = sizeof options, .tag = "v2"};
    for (options.key = 0; options.key < 8; options.key++) {
        options.flags = 0;
        CHECK(ringbus_send_with(client.bus, any, &part, 1, &options) == 1);
        CHECK(ringbus_send(client.bus, any, 0, "", 0, 0) == 1);
        options.flags = RINGBUS_KEY;
        CHECK(ringbus_send_with(client.bus, any, &part, 1, &options) == 1);
        CHECK(ringbus_send(client.bus, any, options.key, "", 0, RINGBUS_KEY) == 1);
    }
}

/* The loads of those that were chosen between are looked at with the next tick: who has ended
 * meanwhile is not (a sanitizer sees it). */
static void test_no_choice_outlives_its_links(void **state)
{
    (void)state;
    const struct ringbus_addr any = open_all(WORK);
    poll_client(WARM);
    for (unsigned i = 0; i < ROUNDS; i++) {
        send_each_way(&any);
        node_close(&first);
        for (unsigned n = 0; i % 2 == 0 && n < 4; n++) {
            poll_client(1); /* only one of the choices is made anew */
            CHECK(ringbus_send(client.bus, &any, 0, "", 0, 0) == 1);
        }
        poll_client(PAST_TICK);
        RUN_UNTIL(client.events[RINGBUS_EVENT_DOWN] == i + 1, NODE_MS, &client, &second);
        poll_client(PAST_TICK);
        memset(&first, 0, sizeof first);
        node_open(&first, &cluster, WORK "/1");
        RUN_UNTIL(client.events[RINGBUS_EVENT_READY] == i + 3, NODE_MS, &client, &first, &second);
    }
    close_all();
}

/* A choice that cannot be made anew is none: neither by turns nor by key. */
static void test_without_memory_nobody_is_chosen(void **state)
{
    (void)state;
    const struct ringbus_addr any = open_all(WORK);
    for (uint64_t key = 0; key < 16; key++) {
        CHECK(ringbus_send(client.bus, &any, key, "", 0, RINGBUS_KEY) == 1);
        CHECK(ringbus_send(client.bus, &any, 0, "", 0, 0) == 1);
    }
    node_close(&first);
    RUN_UNTIL(client.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &client, &second);
    poll_client(16); /* its memory is given back */
    no_memory = true;
    int by_turn = 0;
    int by_key = 0;
    for (uint64_t key = 0; key < 16; key++) {
        by_key += ringbus_send(client.bus, &any, key, "", 0, RINGBUS_KEY) == RINGBUS_E_NO_MEMORY;
        by_turn += ringbus_send(client.bus, &any, 0, "", 0, 0) == RINGBUS_E_NO_MEMORY;
    }
    const char *text = ringbus_errmsg(client.bus);
    no_memory = false;
    assert_int_equal(by_turn, 16);
    assert_int_equal(by_key, 16);
    assert_non_null(strstr(text, "choice"));
    CHECK(ringbus_send(client.bus, &any, 0, "", 0, 0) == 1);
    close_all();
}

/* A limit that lets everything pass: the message takes another way, to the same instance. */
static void test_a_limit_takes_no_turns(void **state)
{
    (void)state;
    const struct ringbus_addr any = open_all(TURN);
    for (unsigned i = 0; i < 20; i++) {
        CHECK(ringbus_send(client.bus, &any, 0, "", 0, 0) == 1);
    }
    RUN_UNTIL(first.messages + second.messages == 20, NODE_MS, &client, &first, &second);
    assert_int_equal(first.messages, 10);
    close_all();
}

/* Whatever a message says of itself, the limit is for it. */
static void test_a_limit_is_for_attributes_too(void **state)
{
    (void)state;
    const struct ringbus_addr any = open_all(TIGHT);
    const struct ringbus_part part = {.data = "", .size = 0};
    const struct ringbus_message_options options = {.struct_size = sizeof options, .method = 3};
    for (unsigned i = 0; i < 3; i++) {
        CHECK(ringbus_send_with(client.bus, &any, &part, 1, &options) == 1);
    }
    assert_int_equal(ringbus_send_with(client.bus, &any, &part, 1, &options), RINGBUS_E_LIMITED);
    assert_int_equal(ringbus_send(client.bus, &any, 0, "", 0, 0), RINGBUS_E_LIMITED);
    assert_int_equal(node_stats(&client).limited, 2);
    close_all();
}

/* A daemon that knows nothing of the one before counts its changes from the beginning. */
static void test_policy_is_that_of_the_new_daemon(void **state)
{
    (void)state;
    const struct ringbus_addr any = open_all(WORK);
    for (unsigned i = 0; i < 10; i++) {
        CHECK(ringbus_send(client.bus, &any, 0, "", 0, 0) == 1);
    }
    CHECK(cluster_stop(&cluster) == 0);
    RUN_UNTIL(client.events[RINGBUS_EVENT_DAEMON_LOST] == 1 &&
                  first.events[RINGBUS_EVENT_DAEMON_LOST] == 1 &&
                  second.events[RINGBUS_EVENT_DAEMON_LOST] == 1,
              NODE_MS, &client, &first, &second);
    CHECK(cluster_configure(&cluster, config_after) == 0);
    CHECK(cluster_start(&cluster) == 0);
    RUN_UNTIL(client.events[RINGBUS_EVENT_DAEMON_BACK] == 1 &&
                  first.events[RINGBUS_EVENT_DAEMON_BACK] == 1 &&
                  second.events[RINGBUS_EVENT_DAEMON_BACK] == 1,
              NODE_MS, &client, &first, &second);
    RUN_UNTIL(ringbus_send(client.bus, &any, 0, "", 0, 0) == RINGBUS_E_LIMITED, NODE_MS, &client,
              &first, &second);
    close_all();
}

/* A link for whose limits there was no memory gets them with the next tick that has it. */
static void test_limits_of_a_receiver_come_with_memory(void **state)
{
    (void)state;
    (void)open_all(GATED);
    struct rbi_end *end = NULL;
    for (unsigned i = 0; i < first.bus->end_count; i++) {
        end = first.bus->ends[i]->loop ? end : first.bus->ends[i];
    }
    CHECK(end != NULL);
    RUN_UNTIL(end->gate_limits != NULL, NODE_MS, &client, &first, &second);
    free(end->gate_limits);
    end->gate_limits = NULL;
    no_memory = true;
    rbi_gate_attach(first.bus, end);
    no_memory = false;
    CHECK(end->gate_limits == NULL);
    RUN_UNTIL(end->gate_limits != NULL && end->gated, NODE_MS, &client, &first, &second);
    close_all();
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
        cmocka_unit_test_setup_teardown(test_no_choice_outlives_its_links, setup, teardown),
        cmocka_unit_test_setup_teardown(test_without_memory_nobody_is_chosen, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_limit_takes_no_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_limit_is_for_attributes_too, setup, teardown),
        cmocka_unit_test_setup_teardown(test_policy_is_that_of_the_new_daemon, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limits_of_a_receiver_come_with_memory, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
