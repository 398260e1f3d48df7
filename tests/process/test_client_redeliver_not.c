/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redelivery (on_down): what is reported and does not go on, what may have been seen by a handler,
 * and the options.
 */
#include "process/client_redeliver.h"

/* ---- what does not -------------------------------------------------------------------------- */

/* Nobody comes in time: given back, and the cluster is free again. */
static void test_gives_back_when_nobody_comes(void **state)
{
    (void)state;
    const struct setting setting = {.on_down = RINGBUS_ON_DOWN_REDELIVER, .redeliver_ms = 50};
    const pid_t pid = open_all(&setting);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(send_numbered(i % KEYS, i % 10 == 3 ? 12000 : 40, 0), 1);
    }
    assert_int_equal(request_numbered(0, 0, 60000), 1);
    child_kill(pid);
    RUN_UNTIL(given_back == 100 && client.replies[RINGBUS_NOT_SENT] == 1, NODE_MS, &client);
    assert_int_equal(client.reply_error, RINGBUS_E_PEER_GONE);
    assert_int_equal(given_back_seen, 0);
    assert_int_equal(given_back_to.instance, RINGBUS_ANY);
    assert_int_equal(given_back_to.cluster, any.cluster);
    assert_int_equal(node_stats(&client).undelivered, 101);
    assert_int_equal(node_stats(&client).redelivered, 0);
    assert_int_equal(send_numbered(5, 40, 0), RINGBUS_E_NO_INSTANCE);
    close_all();
}

/* For one instance, or for all: nobody else's. Without the option nothing goes on. */
static void test_addressed_otherwise_is_given_back(void **state)
{
    (void)state;
    struct setting setting = {.living = 1, .on_down = RINGBUS_ON_DOWN_REDELIVER};
    for (unsigned way = 0; way < 3; way++) {
        setting.on_down = way == 2 ? RINGBUS_ON_DOWN_REPORT : RINGBUS_ON_DOWN_REDELIVER;
        const pid_t pid = open_all(&setting);
        struct ringbus_addr to = any;
        to.instance = way == 0 ? 3 : way == 1 ? RINGBUS_ALL : RINGBUS_ANY;
        const struct numbered numbered = {.key = 0};
        unsigned offered = 0;
        /* Without a key they go to each in turn. */
        for (unsigned i = 0; i < (way == 2 ? 2U : 1U); i++) {
            offered += (unsigned)ringbus_send(client.bus, &to, 0, &numbered, sizeof numbered, 0);
        }
        workers[0].on_message = NULL;
        child_kill(pid);
        RUN_UNTIL(client.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &client, &workers[0]);
        assert_int_equal(given_back, 1);
        assert_int_equal(given_back_seen, 0);
        assert_int_equal(given_back_to.instance, to.instance);
        assert_int_equal(given_back_to.incarnation, 0);
        assert_int_equal(node_stats(&client).redelivered, 0);
        RUN_UNTIL(workers[0].messages == offered - 1, NODE_MS, &client, &workers[0]);
        close_all();
    }
}

/* ---- what may have been seen ---------------------------------------------------------------- */

/*
 * Dies in the handler of one message out of many: what it had handled comes nowhere again, that
 * one only if it may be handled twice, the rest goes on. Exactly one is in doubt.
 */
static void die_in_handler(unsigned flags)
{
    const struct setting setting = {.living = 1, .on_down = RINGBUS_ON_DOWN_REDELIVER};
    const pid_t pid = open_all(&setting);
    enum { COUNT = 300, DIE_AT = 100 };
    /* One key, whose owner is the one that dies. */
    uint64_t key = 0;
    for (; key < KEYS; key++) {
        assert_int_equal(send_numbered(key, sizeof(struct numbered), flags), 1);
        for (unsigned i = 0; i < 50 && got[key] == 0; i++) {
            assert_true(ringbus_poll(workers[0].bus, 10) >= 0); /* each lane within a few */
        }
        if (got[key] == 0) {
            break;
        }
    }
    assert_true(key < KEYS);
    for (uint64_t i = 1; i < COUNT; i++) {
        assert_int_equal(send_numbered(key, sizeof(struct numbered), flags), 1);
    }
    /* What the dead one had handled does not come again: the others begin behind it. */
    got[key] = (flags & RINGBUS_IDEMPOTENT) != 0 ? DIE_AT - 1 : DIE_AT;
    atomic_store(&bus_shared[WORD_DIE_AT], DIE_AT);
    atomic_store(&bus_shared[WORD_GO], 1);
    assert_int_equal(child_wait(pid, NODE_MS), 128 + SIGKILL);
    RUN_UNTIL(client.events[RINGBUS_EVENT_DOWN] == 1 && got[key] == COUNT, NODE_MS, &client,
              &workers[0]);
    const bool twice = (flags & RINGBUS_IDEMPOTENT) != 0;
    assert_int_equal(node_stats(&client).redelivered, COUNT - DIE_AT + (twice ? 1 : 0));
    assert_int_equal(given_back, twice ? 0 : 1);
    assert_int_equal(given_back_seen, twice ? 0 : 1);
    assert_int_equal(flagged, twice ? 1 : 0);
    close_all();
}

static void test_the_one_in_the_handler_is_given_back(void **state)
{
    (void)state;
    die_in_handler(0);
}

static void test_idempotent_one_in_the_handler_goes_on(void **state)
{
    (void)state;
    die_in_handler(RINGBUS_IDEMPOTENT);
}

/* A message that ends whoever handles it is tried on two instances, not on all. */
static void test_a_deadly_message_ends_two(void **state)
{
    (void)state;
    static char names[3][40] = {WORKERS "/1", WORKERS "/2", WORKERS "/4"};
    const struct setting setting = {.on_down = RINGBUS_ON_DOWN_REDELIVER, .redeliver_ms = 60000};
    pid_t pids[4];
    pids[3] = open_all(&setting);
    for (unsigned i = 0; i < 3; i++) {
        pids[i] = child_start(be_third, &cluster, names[i]);
    }
    RUN_UNTIL(client.events[RINGBUS_EVENT_READY] == 4 && atomic_load(&bus_shared[WORD_READY]) == 4,
              NODE_MS, &client);
    assert_int_equal(request_numbered(1, RINGBUS_IDEMPOTENT, 60000), 1);
    atomic_store(&bus_shared[WORD_DIE_AT], 1);
    atomic_store(&bus_shared[WORD_GO], 1);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_HANDLED]) == 1, NODE_MS, &client);
    atomic_store(&bus_shared[WORD_DIE_AT], 2);
    RUN_UNTIL(client.replies[RINGBUS_UNKNOWN] == 1, NODE_MS, &client);
    assert_int_equal(client.reply_error, RINGBUS_E_PEER_GONE);
    assert_int_equal(atomic_load(&bus_shared[WORD_HANDLED]), 2);
    assert_int_equal(client.events[RINGBUS_EVENT_DOWN], 2);
    assert_int_equal(node_stats(&client).redelivered, 1);
    for (unsigned i = 0; i < 4; i++) {
        child_kill(pids[i]);
    }
    close_all();
}

/* ---- options -------------------------------------------------------------------------------- */

static void test_options(void **state)
{
    (void)state;
    node_open(&client, &cluster, NULL);
    struct ringbus_target_options options = {.struct_size = sizeof options};
    options.on_down = (enum ringbus_on_down)2;
    assert_int_equal(ringbus_target(client.bus, WORKERS, &options, NULL), RINGBUS_E_ARGUMENT);
    options.on_down = RINGBUS_ON_DOWN_REDELIVER;
    options.redeliver_ms = 60001;
    assert_int_equal(ringbus_target(client.bus, WORKERS, &options, NULL), RINGBUS_E_ARGUMENT);
    options.redeliver_ms = 60000;
    assert_int_equal(ringbus_target(client.bus, WORKERS, &options, NULL), 0);
    /* A caller that does not know them yet. */
    options.struct_size = offsetof(struct ringbus_target_options, on_down);
    options.redeliver_ms = 60001;
    assert_int_equal(ringbus_target(client.bus, WORKERS, &options, NULL), 0);
    options.struct_size--;
    assert_int_equal(ringbus_target(client.bus, WORKERS, &options, NULL), RINGBUS_E_ARGUMENT);
    node_close(&client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gives_back_when_nobody_comes),
        cmocka_unit_test(test_addressed_otherwise_is_given_back),
        cmocka_unit_test(test_the_one_in_the_handler_is_given_back),
        cmocka_unit_test(test_idempotent_one_in_the_handler_goes_on),
        cmocka_unit_test(test_a_deadly_message_ends_two),
        cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
