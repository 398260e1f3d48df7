/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RINGBUS_ON_DOWN_REDELIVER: what an instance that ends did not consume goes to another, in the
 * order of each key, once; and what cannot go is given back.
 */
#include "process/client_redeliver.h"

/* ---- what goes on --------------------------------------------------------------------------- */

/* Small, large, in parts, requests, loans: each key in order, to two others. */
static void test_unread_messages_go_to_the_others(void **state)
{
    (void)state;
    const struct setting setting = {.living = 2, .on_down = RINGBUS_ON_DOWN_REDELIVER};
    const pid_t pid = open_all(&setting);
    uint64_t requests = 0;
    answers = true;
    for (unsigned round = 0; round < 6; round++) {
        for (uint64_t key = 0; key < KEYS; key++) {
            if ((round + key) % 16 == 3) {
                (void)send_numbered(key, 12000, 0); /* no matter if no chunk is left */
            } else if ((round + key) % 4 == 1) {
                assert_int_equal(request_numbered(key, 0, 60000), 1);
                requests++;
            } else if ((round + key) % 4 == 2) {
                const struct numbered numbered = {.key = key, .number = sent[key]};
                const struct ringbus_part parts[] = {{&numbered, 3},
                                                     {(const char *)&numbered + 3, 13}};
                assert_int_equal(ringbus_sendv(client.bus, &any, key, parts, 2, RINGBUS_KEY), 1);
                sent[key]++;
            } else {
                assert_int_equal(send_numbered(key, 16 + key, 0), 1);
            }
        }
    }
    child_kill(pid);
    RUN_UNTIL(client.events[RINGBUS_EVENT_DOWN] == 1 && all_had() &&
                  client.replies[RINGBUS_REPLIED] == requests,
              NODE_MS, &client, &workers[0], &workers[1]);
    assert_memory_equal(got, sent, sizeof got);
    assert_int_equal(given_back, 0);
    assert_int_equal(flagged, 0);
    const struct ringbus_stats stats = node_stats(&client);
    assert_true(stats.redelivered > 0 && stats.redelivered < sum(sent));
    assert_int_equal(stats.undelivered, 0);
    assert_int_equal(stats.sent, sum(sent)); /* each counts once */
    assert_int_equal(stats.late_replies, 0);
    RUN_UNTIL(node_pool_used(&client) == 0, NODE_MS, &client, &workers[0], &workers[1]);
    close_all();
}

/* While the rest waits for room nothing new passes it, and the sender is told so. */
static void test_later_messages_do_not_overtake(void **state)
{
    (void)state;
    const struct setting setting = {.living = 1,
                                    .on_down = RINGBUS_ON_DOWN_REDELIVER,
                                    .redeliver_ms = 60000,
                                    .lane_bytes = 8192};
    const pid_t pid = open_all(&setting);
    unsigned full = 0;
    for (uint64_t key = 0; full < 2 * KEYS; key = (key + 1) % KEYS) {
        const int r = send_numbered(key, sizeof(struct numbered), 0);
        assert_true(r == 1 || r == RINGBUS_E_FULL);
        full = r == 1 ? 0 : full + 1; /* both lanes are full now */
    }
    child_kill(pid);
    RUN_UNTIL(client.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &client);
    const uint64_t refused = node_stats(&client).full;
    assert_int_equal(send_numbered(0, sizeof(struct numbered), 0), RINGBUS_E_FULL);
    assert_int_equal(ringbus_send(client.bus, &any, 0, "", 0, 0), RINGBUS_E_FULL);
    assert_int_equal(request_numbered(0, 0, 1000), RINGBUS_E_FULL);
    assert_int_equal(node_stats(&client).full, refused + 3);
    assert_non_null(strstr(ringbus_errmsg(client.bus), "another first"));
    /* Offered again and again, as a sender does that has more. */
    const uint64_t until = sum(sent) + 500;
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    for (uint64_t key = 0; sum(sent) < until; key = (key + 1) % KEYS) {
        const int r = send_numbered(key, sizeof(struct numbered), 0);
        assert_true(r == 1 || r == RINGBUS_E_FULL);
        if (r != 1) {
            assert_true(test_now_ms() < deadline_ms);
            assert_true(ringbus_poll(workers[0].bus, 16) >= 0);
            assert_true(ringbus_wait(client.bus, 1) >= 0);
            assert_true(ringbus_poll(client.bus, 16) >= 0);
        }
    }
    RUN_UNTIL(all_had(), NODE_MS, &client, &workers[0]);
    assert_int_equal(given_back, 0);
    assert_true(node_stats(&client).redelivered > 0);
    close_all();
}

/* Nobody is left: they wait for the next instance, under whatever address. */
static void test_waits_for_an_instance(void **state)
{
    (void)state;
    for (unsigned same = 0; same < 2; same++) {
        const struct setting setting = {.on_down = RINGBUS_ON_DOWN_REDELIVER,
                                        .redeliver_ms = 60000};
        const pid_t pid = open_all(&setting);
        for (unsigned i = 0; i < 100; i++) {
            assert_int_equal(send_numbered(i % KEYS, i % 10 == 3 ? 12000 : 40, 0), 1);
        }
        answers = true;
        assert_int_equal(request_numbered(0, 0, 60000), 1);
        assert_int_equal(request_numbered(1, 0, 100), 1);
        sent[1]--; /* its time will be over */
        child_kill(pid);
        RUN_UNTIL(client.replies[RINGBUS_NOT_SENT] == 1, NODE_MS, &client);
        assert_int_equal(client.reply_error, RINGBUS_E_TIMEOUT);
        assert_int_equal(client.events[RINGBUS_EVENT_DOWN], 1);
        assert_int_equal(given_back, 0);
        assert_int_equal(send_numbered(5, 40, 0), RINGBUS_E_FULL);
        workers[0].on_message = take_numbered;
        node_open(&workers[0], &cluster, same == 1 ? WORKERS "/3" : WORKERS "/1");
        RUN_UNTIL(all_had() && client.replies[RINGBUS_REPLIED] == 1, NODE_MS, &client, &workers[0]);
        assert_int_equal(node_stats(&client).redelivered, 101);
        RUN_UNTIL(send_numbered(5, 40, 0) == 1, NODE_MS, &client, &workers[0]);
        RUN_UNTIL(all_had() && node_pool_used(&client) == 0, NODE_MS, &client, &workers[0]);
        assert_int_equal(given_back, 0);
        close_all();
    }
}

/*
 * What had gone on to a second that ends as well, before all of the first one's had: the first
 * messages of a key are the second's by now, the last ones still the first's.
 */
static void two_end(bool third_first)
{
    static char fourth[] = WORKERS "/4";
    const struct setting setting = {
        .on_down = RINGBUS_ON_DOWN_REDELIVER, .redeliver_ms = 60000, .lane_bytes = 8192};
    const pid_t third = open_all(&setting);
    const pid_t pid = child_start(be_third, &cluster, fourth);
    RUN_UNTIL(client.events[RINGBUS_EVENT_READY] == 2 && atomic_load(&bus_shared[WORD_READY]) == 2,
              NODE_MS, &client);
    /* So many for each as leave room for some of the other's. */
    unsigned count = 0;
    for (uint64_t key = 0; count < 140; key = (key + 1) % KEYS, count++) {
        assert_int_equal(send_numbered(key, sizeof(struct numbered), 0), 1);
    }
    child_kill(third_first ? third : pid);
    RUN_UNTIL(client.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &client);
    const uint64_t moved = node_stats(&client).redelivered;
    assert_true(moved > 0);
    assert_int_equal(send_numbered(0, sizeof(struct numbered), 0),
                     RINGBUS_E_FULL); /* the rest waits */
    child_kill(third_first ? pid : third);
    RUN_UNTIL(client.events[RINGBUS_EVENT_DOWN] == 2, NODE_MS, &client);
    workers[0].on_message = take_numbered;
    node_open(&workers[0], &cluster, WORKERS "/1");
    RUN_UNTIL(all_had(), NODE_MS, &client, &workers[0]);
    assert_memory_equal(got, sent, sizeof got);
    assert_int_equal(given_back, 0);
    assert_int_equal(node_stats(&client).redelivered, moved + count);
    close_all();
}

static void test_two_end_one_after_the_other(void **state)
{
    (void)state;
    two_end(true);
    two_end(false);
}

/*
 * One that is stopped has begun one message at most when it is given up. All others go on, the
 * idempotent and the rest alike; when it wakes it sees none of them, and learns from the DOWN
 * that it was given up.
 */
static void test_a_stopped_one_sees_nothing_that_went_on(void **state)
{
    (void)state;
    const struct setting setting = {
        .living = 1, .on_down = RINGBUS_ON_DOWN_REDELIVER, .ping_ms = 100};
    const pid_t pid = open_all(&setting);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    workers[0].on_message = NULL;
    for (uint64_t key = 0; key < KEYS; key++) {
        const unsigned flags = key % 2 == 0 ? RINGBUS_IDEMPOTENT : 0;
        assert_int_equal(send_numbered(key, sizeof(struct numbered), flags), 1);
    }
    RUN_UNTIL(client.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &client, &workers[0]);
    assert_int_equal(client.reason, RINGBUS_REASON_SILENT);
    assert_true(node_stats(&client).redelivered > 1);
    assert_true(given_back <= 1);
    assert_int_equal(given_back_seen, given_back);
    RUN_UNTIL(workers[0].messages == KEYS - given_back, NODE_MS, &client, &workers[0]);
    atomic_store(&bus_shared[WORD_GO], 1);
    assert_int_equal(kill(pid, SIGCONT), 0);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_GIVEN_UP]) == 1, NODE_MS, &client, &workers[0]);
    /* It comes back under its address, in the same life. */
    RUN_UNTIL(client.events[RINGBUS_EVENT_READY] == 3, NODE_MS, &client, &workers[0]);
    assert_true(atomic_load(&bus_shared[WORD_HANDLED]) <= given_back);
    child_kill(pid);
    close_all();
}

/* Draining waits for what goes on to another as well. */
static void test_close_drains_what_waits(void **state)
{
    (void)state;
    static char fourth[] = WORKERS "/4";
    const struct setting setting = {
        .on_down = RINGBUS_ON_DOWN_REDELIVER, .redeliver_ms = 60000, .lane_bytes = 8192};
    const pid_t third = open_all(&setting);
    const pid_t pid = child_start(be_third, &cluster, fourth);
    RUN_UNTIL(client.events[RINGBUS_EVENT_READY] == 2 && atomic_load(&bus_shared[WORD_READY]) == 2,
              NODE_MS, &client);
    unsigned full = 0;
    for (uint64_t key = 0; full < 2 * KEYS; key = (key + 1) % KEYS) {
        const int r = send_numbered(key, sizeof(struct numbered), 0);
        assert_true(r == 1 || r == RINGBUS_E_FULL);
        full = r == 1 ? 0 : full + 1;
    }
    child_kill(third);
    RUN_UNTIL(client.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &client);
    atomic_store(&bus_shared[WORD_GO], 1);
    assert_int_equal(ringbus_close(client.bus, NODE_MS), 0);
    assert_int_equal(atomic_load(&bus_shared[WORD_HANDLED]), sum(sent));
    assert_int_equal(given_back, 0);
    child_kill(pid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unread_messages_go_to_the_others),
        cmocka_unit_test(test_later_messages_do_not_overtake),
        cmocka_unit_test(test_waits_for_an_instance),
        cmocka_unit_test(test_two_end_one_after_the_other),
        cmocka_unit_test(test_a_stopped_one_sees_nothing_that_went_on),
        cmocka_unit_test(test_close_drains_what_waits),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
