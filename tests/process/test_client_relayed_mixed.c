/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster with instances on two hosts: who of them gets a message, by place, by key, by a cut of
 * the way, and to all (features 2.9, 2.12, scenario 113).
 */
#include "support/relay.h"
#include "support/test.h"

#include <string.h>

#define SERVICE "/game/eu/pc/w1/core/mixed"
#define KEYS    64U

enum { ALPHA, BETA };

static struct relay relay;
static struct node worker[2]; /* by host */
static struct node client[2]; /* likewise */
static struct rbi_proxy *proxy[2];
static struct ringbus_addr any;

static uint64_t key_at[2][KEYS]; /* by host of the worker: messages of that key */
static uint64_t back;

static void take(struct node *node, const struct ringbus_message *message)
{
    if ((message->flags & RINGBUS_MESSAGE_KEY) != 0) {
        key_at[node == &worker[ALPHA] ? ALPHA : BETA][message->key % KEYS]++;
    }
    if (message->kind == RINGBUS_KIND_REQUEST) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, NULL, 0, 0) == 1);
    }
}

static void note_back(struct node *node, const struct ringbus_event *event)
{
    (void)node;
    back += event->type == RINGBUS_EVENT_UNDELIVERED;
}

#define MEET(condition)                                                                            \
    RELAY_UNTIL(&relay, condition, NODE_MS, &client[ALPHA], &worker[ALPHA], &worker[BETA],         \
                client[BETA].bus != NULL ? &client[BETA] : NULL)

static void open_client(unsigned host, const struct ringbus_target_options *options)
{
    client[host].on_event = note_back;
    node_open(&client[host], &relay.host[host].cluster, NULL);
    assert_int_equal(ringbus_target(client[host].bus, SERVICE, options, &any), 0);
    MEET(client[host].events[RINGBUS_EVENT_READY] == 2);
}

static void begin(const char *config, const struct ringbus_target_options *options)
{
    memset(worker, 0, sizeof worker);
    memset(client, 0, sizeof client);
    memset(key_at, 0, sizeof key_at);
    back = 0;
    relay_up(&relay, config, NULL);
    for (unsigned i = 0; i < 2; i++) {
        worker[i].on_message = take;
        node_open(&worker[i], &relay.host[i].cluster, i == ALPHA ? SERVICE "/1" : SERVICE "/2");
    }
    for (unsigned i = 0; i < 2; i++) {
        const struct rbi_proxy_spec spec = relay_spec(&relay, i, &worker[1 - i]);
        proxy[i] = relay_proxy(&relay, i, &spec);
    }
    RELAY_UNTIL(&relay, relay.registered == 2, NODE_MS, &worker[ALPHA], &worker[BETA]);
    open_client(ALPHA, options);
}

static void finish(void)
{
    for (unsigned i = 0; i < 2; i++) {
        if (client[i].bus != NULL) {
            node_close(&client[i]);
        }
        if (worker[i].bus != NULL) {
            node_close(&worker[i]);
        }
    }
    relay_down(&relay);
}

static void send_any(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(ringbus_send(client[ALPHA].bus, &any, 0, &i, sizeof i, 0), 1);
    }
}

/* ---- who ------------------------------------------------------------------------------------ */

/* The own host first; the other one when nobody is left here. */
static void test_own_host_comes_first(void **state)
{
    (void)state;
    begin("{}\n", NULL);
    send_any(50);
    MEET(worker[ALPHA].messages == 50);
    assert_int_equal(worker[BETA].messages, 0);
    node_close(&worker[ALPHA]);
    worker[ALPHA].bus = NULL;
    RELAY_UNTIL(&relay, client[ALPHA].events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &client[ALPHA],
                &worker[BETA]);
    send_any(50);
    RELAY_UNTIL(&relay, worker[BETA].messages == 50, NODE_MS, &client[ALPHA], &worker[BETA]);
    finish();
}

/* A key has the same owner, whichever host it is sent from. */
static void test_keys_have_one_owner_on_all_hosts(void **state)
{
    (void)state;
    begin("{}\n", NULL);
    open_client(BETA, NULL);
    for (unsigned host = 0; host < 2; host++) {
        for (uint64_t key = 0; key < KEYS; key++) {
            assert_int_equal(
                ringbus_send(client[host].bus, &any, key, &key, sizeof key, RINGBUS_KEY), 1);
        }
    }
    MEET(worker[ALPHA].messages + worker[BETA].messages == (uint64_t)2 * KEYS);
    for (unsigned key = 0; key < KEYS; key++) {
        assert_true(key_at[ALPHA][key] == 2 ? key_at[BETA][key] == 0
                                            : key_at[ALPHA][key] == 0 && key_at[BETA][key] == 2);
    }
    assert_true(worker[ALPHA].messages > 0 && worker[BETA].messages > 0);
    finish();
}

static struct rbi_half *half_to(unsigned host, const struct node *node)
{
    struct ringbus_addr self;
    assert_int_equal(ringbus_self(node->bus, &self), 0);
    return rbi_proxy_half(proxy[host], self.cluster, self.instance);
}

static void put_hold(bool on)
{
    unsigned char body[8 + RBI_CONTROL_BODY_MAX] = {0};
    const struct rbi_hold_body hold = {.on = on ? 1 : 0};
    const uint64_t size = 8 + rbi_hold_encode(&hold, body + 8);
    assert_int_equal(rbi_half_put(half_to(ALPHA, &client[ALPHA]),
                                  rbi_record_meta(RBI_RECORD_HOLD, 0, 0, 0), body, size),
                     RBI_LANE_OK);
}

/* While the way is cut, keys stay with their owner, and what has none goes elsewhere. */
static void test_who_is_cut_off_gets_only_its_keys(void **state)
{
    (void)state;
    begin("clusters: [{match: \"/**\", locality: {mode: off}, balance: {keyless: rr}}]\n", NULL);
    send_any(20);
    MEET(worker[ALPHA].messages == 10 && worker[BETA].messages == 10);
    relay.cut = true;
    put_hold(true);
    MEET(client[ALPHA].events[RINGBUS_EVENT_SUSPECT] == 1);
    send_any(20);
    for (uint64_t key = 0; key < KEYS; key++) {
        assert_int_equal(ringbus_send(client[ALPHA].bus, &any, key, &key, sizeof key, RINGBUS_KEY),
                         1);
    }
    MEET(worker[ALPHA].messages >= 30);
    put_hold(false);
    MEET(client[ALPHA].events[RINGBUS_EVENT_ALIVE] == 1);
    relay_go_on(&relay);
    MEET(worker[ALPHA].messages + worker[BETA].messages == 40 + KEYS);
    uint64_t keys = 0;
    for (unsigned key = 0; key < KEYS; key++) {
        keys += key_at[BETA][key];
    }
    assert_true(keys > 0 && keys < KEYS);
    assert_int_equal(worker[BETA].messages, 10 + keys);
    finish();
}

/* ---- to all --------------------------------------------------------------------------------- */

static size_t broadcast(struct ringbus_delivery *each)
{
    struct ringbus_addr all = any;
    all.instance = RINGBUS_ALL;
    const struct ringbus_part part = {"to all", 6};
    struct ringbus_broadcast result = {.struct_size = sizeof result, .each = each, .each_max = 2};
    assert_true(ringbus_broadcast(client[ALPHA].bus, &all, &part, 1, NULL, &result) >= 0);
    return result.count;
}

/* Each has it once, and what became of it at each is told. */
static void test_broadcast_reaches_each_once(void **state)
{
    (void)state;
    struct ringbus_delivery each[2];
    begin("{}\n", NULL);
    for (unsigned i = 1; i <= 20; i++) {
        assert_int_equal(broadcast(each), 2);
        assert_true(each[0].error == 0 && each[1].error == 0);
        assert_int_equal(each[0].instance.instance, 1);
        assert_int_equal(each[1].instance.instance, 2);
        MEET(worker[ALPHA].messages == i && worker[BETA].messages == i);
    }
    /* One that is out of reach is said to be. */
    rbi_proxy_free(proxy[ALPHA], RBI_REASON_UNREACHABLE);
    proxy[ALPHA] = NULL;
    MEET(client[ALPHA].events[RINGBUS_EVENT_DOWN] == 1);
    assert_int_equal(client[ALPHA].reason, RINGBUS_REASON_UNREACHABLE);
    const size_t count = broadcast(each);
    assert_int_equal(each[0].error, 0);
    assert_true(count == 1 || each[1].error == RINGBUS_E_UNREACHABLE);
    MEET(worker[ALPHA].messages == 21);
    assert_int_equal(worker[BETA].messages, 20);
    finish();
}

/* ---- what a lost link leaves ----------------------------------------------------------------- */

/*
 * What had not left goes to the other host at once, and what may have been seen waits for its life
 * alone: the cluster takes new messages meanwhile.
 */
static void test_only_what_may_have_been_seen_waits(void **state)
{
    (void)state;
    const struct ringbus_target_options redeliver = {.struct_size = sizeof redeliver,
                                                     .on_down = RINGBUS_ON_DOWN_REDELIVER,
                                                     .redeliver_ms = 60000};
    begin("clusters: [{match: \"/**\", locality: {mode: off}, balance: {keyless: rr}}]\n",
          &redeliver);
    relay.ack_held = true;
    send_any(10);
    MEET(worker[ALPHA].messages == 5 && worker[BETA].messages == 5);
    relay.cut = true;
    send_any(10);
    MEET(worker[ALPHA].messages == 10);
    struct rbi_half *half = half_to(ALPHA, &client[ALPHA]);
    relay_pair_over(rbi_half_context(half), RBI_REASON_UNREACHABLE);
    rbi_proxy_free(proxy[ALPHA], RBI_REASON_UNREACHABLE);
    MEET(client[ALPHA].events[RINGBUS_EVENT_DOWN] == 1 && worker[ALPHA].messages == 15);
    send_any(10);
    MEET(worker[ALPHA].messages == 25);
    assert_int_equal(node_stats(&client[ALPHA]).redelivered, 5);
    relay.cut = relay.ack_held = false;
    const struct rbi_proxy_spec spec = relay_spec(&relay, ALPHA, &worker[BETA]);
    proxy[ALPHA] = relay_proxy(&relay, ALPHA, &spec);
    MEET(node_stats(&worker[BETA]).duplicates == 5);
    assert_int_equal(worker[BETA].messages, 5);
    assert_int_equal(back, 0);
    MEET(node_stats(&client[ALPHA]).redelivered == 10);
    send_any(10);
    MEET(worker[ALPHA].messages == 30 && worker[BETA].messages == 10);
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_host_comes_first),
        cmocka_unit_test(test_keys_have_one_owner_on_all_hosts),
        cmocka_unit_test(test_who_is_cut_off_gets_only_its_keys),
        cmocka_unit_test(test_broadcast_reaches_each_once),
        cmocka_unit_test(test_only_what_may_have_been_seen_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
