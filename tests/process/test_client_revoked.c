/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rights change while connected (scenario 120): under full traffic both ends are told within a
 * second, the receiver reads nothing more, sends fail with DENIED; an added right works without a
 * new connection. A sender that ignores the order gains nothing. And a name that is taken over
 * (scenario 100).
 */
#include "bus/record_attributes.h"
#include "hostile/peer.h"
#include "support/bus.h"
#include "support/machine.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define SENDER   "/game/eu/pc/w1/core/gate/1"
#define OTHER    "/game/eu/pc/w1/core/lobby/1"
#define RECEIVER "/game/eu/pc/w1/core/battle/1"
#define SHOP     "/shop/eu/pc/w1/core/till/1"

#define DENY_SENDER                                                                                \
    "    - {id: banned, action: deny, verbs: [connect, send], from: /game/**/gate/*}\n"
#define LET_OTHER_BUY                                                                              \
    "    - {id: buy, verbs: [connect, send], from: /game/**/lobby/*, to: /shop/**}\n"

static struct cluster cluster;
static struct node sender;
static struct node receiver;
static struct node other;
static struct node shop;

static void configure(const char *rules)
{
    char text[1024];
    (void)snprintf(text, sizeof text, "rights:\n  otherwise: realm\n  rules:\n%s",
                   rules[0] != '\0' ? rules : "    []\n");
    CHECK(cluster_configure(&cluster, text) == 0);
    CHECK(kill(cluster.pid, SIGHUP) == 0);
}

static struct ringbus_addr address_of(const struct node *node)
{
    struct ringbus_addr addr;
    CHECK(ringbus_self(node->bus, &addr) == 0);
    return addr;
}

static int setup(void **state)
{
    (void)state;
    memset(&sender, 0, sizeof sender);
    memset(&receiver, 0, sizeof receiver);
    memset(&other, 0, sizeof other);
    memset(&shop, 0, sizeof shop);
    return cluster_up(&cluster, "{}\n");
}

static int teardown(void **state)
{
    (void)state;
    struct node *const nodes[] = {&sender, &receiver, &other, &shop};
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(nodes); i++) {
        if (nodes[i]->bus) {
            node_close(nodes[i]);
        }
    }
    cluster_down(&cluster);
    return 0;
}

/* ---- under traffic ------------------------------------------------------------------------- */

/** As many messages as fit, and as many as come. @return of the last send */
static int pump(const struct ringbus_addr *to)
{
    int r = 1;
    for (unsigned i = 0; i < 64 && r == 1; i++) {
        r = ringbus_send(sender.bus, to, 0, &i, sizeof i, 0);
    }
    CHECK(ringbus_poll(receiver.bus, 256) >= 0);
    CHECK(ringbus_poll(sender.bus, 16) >= 0);
    return r;
}

static void test_revocation_under_traffic(void **state)
{
    struct ringbus_addr shop_addr;
    (void)state;
    node_open(&receiver, &cluster, RECEIVER);
    node_open(&sender, &cluster, SENDER);
    node_open(&other, &cluster, OTHER);
    node_open(&shop, &cluster, SHOP);
    const struct ringbus_addr to = node_target(&sender, RECEIVER, 1, &receiver);
    CHECK(ringbus_target(other.bus, SHOP, NULL, &shop_addr) == 0);
    RUN_UNTIL(other.events[RINGBUS_EVENT_LINK_FAILED] >= 1, NODE_MS, &other, &shop);
    assert_int_equal(other.error, RINGBUS_E_DENIED);
    assert_int_equal(ringbus_send(other.bus, &shop_addr, 0, "x", 1, 0), RINGBUS_E_DENIED);
    assert_non_null(strstr(ringbus_errmsg(other.bus), "by default uid"));
    const uint64_t begin_ms = test_now_ms();
    while (receiver.messages < 100000 / TEST_SCALE) {
        CHECK(pump(&to) == 1 || test_now_ms() - begin_ms < NODE_MS);
    }
    const uint64_t change_ms = test_now_ms();
    const uint64_t delay_ns = machine_run_delay_ns(0) + machine_run_delay_ns(cluster.pid);
    configure(DENY_SENDER LET_OTHER_BUY);
    while (sender.events[RINGBUS_EVENT_DOWN] == 0 || receiver.events[RINGBUS_EVENT_DOWN] == 0) {
        (void)pump(&to);
        CHECK(test_now_ms() - change_ms < NODE_MS);
    }
    const uint64_t waited_ms =
        (machine_run_delay_ns(0) + machine_run_delay_ns(cluster.pid) - delay_ns) / 1000000;
    assert_true(test_now_ms() - change_ms < 1000 + waited_ms);
    assert_int_equal(sender.reason, RINGBUS_REASON_DENIED);
    assert_int_equal(receiver.reason, RINGBUS_REASON_DENIED);
    const uint64_t received = receiver.messages;
    for (unsigned i = 0; i < 200; i++) {
        assert_int_equal(ringbus_send(sender.bus, &to, 0, "x", 1, 0), RINGBUS_E_DENIED);
        CHECK(ringbus_poll(receiver.bus, 256) >= 0);
    }
    assert_int_equal(receiver.messages, received);
    /* The call says by which rule: to the instance, and to any. */
    struct ringbus_addr one = sender.peer;
    one.incarnation = 0;
    assert_non_null(strstr(ringbus_errmsg(sender.bus), "rule banned"));
    assert_int_equal(ringbus_send(sender.bus, &one, 0, "x", 1, 0), RINGBUS_E_DENIED);
    assert_non_null(strstr(ringbus_errmsg(sender.bus), "rule banned"));
    /* The right that was added in the same file, on the connection that there is. */
    RUN_UNTIL(other.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &other, &shop);
    CHECK(ringbus_send(other.bus, &shop_addr, 0, "x", 1, 0) == 1);
    RUN_UNTIL(shop.messages == 1, NODE_MS, &other, &shop);
    /* And back: nobody opens anything anew. */
    configure("");
    RUN_UNTIL(sender.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &sender, &receiver);
    CHECK(ringbus_send(sender.bus, &to, 0, "x", 1, 0) == 1);
    RUN_UNTIL(receiver.messages == received + 1, NODE_MS, &sender, &receiver);
}

/** Nothing vanishes: what was sent arrived, or came back. */
static void test_what_was_not_read_comes_back(void **state)
{
    (void)state;
    node_open(&receiver, &cluster, RECEIVER);
    node_open(&sender, &cluster, SENDER);
    const struct ringbus_addr to = node_target(&sender, RECEIVER, 1, &receiver);
    for (unsigned i = 0; i < 100; i++) {
        CHECK(ringbus_send(sender.bus, &to, 0, &i, sizeof i, 0) == 1);
    }
    CHECK(ringbus_poll(receiver.bus, 40) == 40);
    configure(DENY_SENDER);
    RUN_UNTIL(sender.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &sender);
    assert_int_equal(sender.events[RINGBUS_EVENT_UNDELIVERED] + 40, 100);
    RUN_UNTIL(receiver.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &receiver);
    assert_int_equal(receiver.messages, 40);
}

static struct ringbus_reply_to owed;

static void owe(struct node *node, const struct ringbus_message *message)
{
    (void)node;
    owed = message->reply_to;
}

static void test_requests_end_with_denied(void **state)
{
    (void)state;
    receiver.on_message = owe;
    node_open(&receiver, &cluster, RECEIVER);
    node_open(&sender, &cluster, SENDER);
    const struct ringbus_addr to = node_target(&sender, RECEIVER, 1, &receiver);
    for (unsigned i = 0; i < 2; i++) {
        CHECK(ringbus_request(sender.bus, &to, 0, "x", 1, 0, 60000, node_on_result, &sender) == 1);
    }
    CHECK(ringbus_poll(receiver.bus, 1) == 1); /* one is being handled, one not read */
    configure(DENY_SENDER);
    RUN_UNTIL(sender.replies[RINGBUS_UNKNOWN] + sender.replies[RINGBUS_NOT_SENT] == 2, NODE_MS,
              &sender, &receiver);
    assert_int_equal(sender.reply_error, RINGBUS_E_DENIED);
    RUN_UNTIL(receiver.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &receiver);
    CHECK(ringbus_reply(receiver.bus, &owed, "y", 1, 0) < 0);
    assert_int_equal(ringbus_request(sender.bus, &to, 0, "x", 1, 0, 100, node_on_result, &sender),
                     RINGBUS_E_DENIED);
}

/** A new life of the instance, and a new life of the daemon: the rule holds for both. */
static void test_denied_stays_denied(void **state)
{
    (void)state;
    node_open(&receiver, &cluster, RECEIVER);
    node_open(&sender, &cluster, SENDER);
    const struct ringbus_addr to = node_target(&sender, RECEIVER, 1, &receiver);
    configure(DENY_SENDER);
    RUN_UNTIL(sender.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &sender, &receiver);
    node_close(&receiver);
    memset(&receiver, 0, sizeof receiver);
    node_open(&receiver, &cluster, RECEIVER);
    const unsigned failed = sender.events[RINGBUS_EVENT_LINK_FAILED];
    RUN_UNTIL(sender.events[RINGBUS_EVENT_LINK_FAILED] > failed, NODE_MS, &sender, &receiver);
    assert_int_equal(sender.error, RINGBUS_E_DENIED);
    cluster_kill(&cluster);
    CHECK(cluster_start(&cluster) == 0);
    RUN_UNTIL(sender.events[RINGBUS_EVENT_DAEMON_BACK] == 1 &&
                  receiver.events[RINGBUS_EVENT_DAEMON_BACK] == 1,
              NODE_MS, &sender, &receiver);
    const unsigned again = sender.events[RINGBUS_EVENT_LINK_FAILED];
    RUN_UNTIL(sender.events[RINGBUS_EVENT_LINK_FAILED] > again, NODE_MS, &sender, &receiver);
    assert_int_equal(ringbus_send(sender.bus, &to, 0, "x", 1, 0), RINGBUS_E_DENIED);
    assert_int_equal(sender.events[RINGBUS_EVENT_READY], 1);
}

/* ---- methods ------------------------------------------------------------------------------- */

#define ONLY_METHODS(range)                                                                        \
    "    - {id: few, verbs: [send], from: /game/**/gate/*, methods: " range "}\n"                  \
    "    - {id: rest, action: deny, verbs: [send], from: /game/**/gate/*}\n"

static int send_method(const struct ringbus_addr *to, uint32_t method)
{
    const struct ringbus_part part = {.data = "x", .size = 1};
    struct ringbus_message_options options = {.struct_size = sizeof options};
    options.method = method;
    return ringbus_send_with(sender.bus, to, &part, 1, &options);
}

static void answer(struct node *node, const struct ringbus_message *message)
{
    if (message->reply_to.id != 0) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, "y", 1, 0) == 1);
    }
}

static void test_methods_may_differ(void **state)
{
    struct ringbus_claim claim;
    struct ringbus_loan loan;
    (void)state;
    receiver.on_message = sender.on_message = answer;
    configure(ONLY_METHODS("1..99"));
    CHECK(cluster_log_wait(&cluster, "event=rights_changed", NODE_MS));
    node_open(&receiver, &cluster, RECEIVER);
    node_open(&sender, &cluster, SENDER);
    const struct ringbus_addr to = node_target(&sender, RECEIVER, 1, &receiver);
    assert_int_equal(send_method(&to, 1), 1);
    assert_int_equal(send_method(&to, 99), 1);
    assert_int_equal(send_method(&to, 100), RINGBUS_E_DENIED);
    assert_non_null(strstr(ringbus_errmsg(sender.bus), "method 100"));
    /* Without a method: 0, on each way that there is. */
    assert_int_equal(ringbus_send(sender.bus, &to, 0, "x", 1, 0), RINGBUS_E_DENIED);
    assert_int_equal(ringbus_claim(sender.bus, &to, 0, 8, 0, &claim), RINGBUS_E_DENIED);
    CHECK(ringbus_loan(sender.bus, 100, &loan) == 0);
    assert_int_equal(ringbus_send_loan(sender.bus, &to, 0, &loan, 100, 0), RINGBUS_E_DENIED);
    CHECK(ringbus_loan_return(sender.bus, &loan) == 0);
    assert_int_equal(ringbus_request(sender.bus, &to, 0, "x", 1, 0, 1000, node_on_result, &sender),
                     RINGBUS_E_DENIED);
    RUN_UNTIL(receiver.messages == 2, NODE_MS, &sender, &receiver);
    /* The other way is another right, and answers need none. */
    const struct ringbus_addr back = node_target(&receiver, SENDER, 0, &sender);
    CHECK(ringbus_request(receiver.bus, &back, 0, "x", 1, 0, NODE_MS, node_on_result, &receiver) ==
          1);
    RUN_UNTIL(receiver.replies[RINGBUS_REPLIED] == 1, NODE_MS, &sender, &receiver);
    /* More of them, on the link that there is. */
    configure(ONLY_METHODS("0..200"));
    RUN_UNTIL(send_method(&to, 200) == 1, NODE_MS, &sender, &receiver);
    assert_int_equal(send_method(&to, 201), RINGBUS_E_DENIED);
    CHECK(ringbus_send(sender.bus, &to, 0, "x", 1, 0) == 1);
    /* And all: as if nothing had ever been said. */
    configure("");
    RUN_UNTIL(send_method(&to, 201) == 1, NODE_MS, &sender, &receiver);
    RUN_UNTIL(receiver.messages >= 5, NODE_MS, &sender, &receiver);
    assert_int_equal(sender.events[RINGBUS_EVENT_DOWN], 0);
    assert_int_equal(node_stats(&receiver).denied, 0);
}

/** The link outlives the daemon; so does what may be sent on it. */
static void test_methods_over_a_restart(void **state)
{
    (void)state;
    configure(ONLY_METHODS("1..99"));
    CHECK(cluster_log_wait(&cluster, "event=rights_changed", NODE_MS));
    node_open(&receiver, &cluster, RECEIVER);
    node_open(&sender, &cluster, SENDER);
    const struct ringbus_addr to = node_target(&sender, RECEIVER, 1, &receiver);
    cluster_kill(&cluster);
    assert_int_equal(send_method(&to, 100), RINGBUS_E_DENIED);
    CHECK(cluster_configure(&cluster, "{}\n") == 0);
    CHECK(cluster_start(&cluster) == 0);
    RUN_UNTIL(send_method(&to, 100) == 1, NODE_MS, &sender, &receiver);
    assert_int_equal(sender.events[RINGBUS_EVENT_DOWN], 0);
}

/* ---- a peer that does not obey -------------------------------------------------------------- */

enum word { WORD_UP, WORD_MESSAGES, WORD_DOWN, WORD_POLLS, WORD_STOP, WORD_DENIED };

/** The receiver, in a process of its own. */
static void victim(const struct cluster *where, void *context)
{
    struct node node = {0};
    (void)context;
    node_open(&node, where, RECEIVER);
    atomic_store(&bus_shared[WORD_UP], 1);
    while (atomic_load(&bus_shared[WORD_STOP]) == 0) {
        struct node *const nodes[] = {&node};
        nodes_step(nodes, 1);
        atomic_store(&bus_shared[WORD_MESSAGES], node.messages);
        atomic_store(&bus_shared[WORD_DENIED], node_stats(&node).denied);
        if (node.events[RINGBUS_EVENT_DOWN] != 0) {
            atomic_store(&bus_shared[WORD_DOWN], node.reason);
        }
        atomic_fetch_add(&bus_shared[WORD_POLLS], 1);
    }
    node_close(&node);
}

static void wait_for(enum word word, uint64_t value)
{
    const uint64_t begin_ms = test_now_ms();
    while (atomic_load(&bus_shared[word]) < value) {
        CHECK(test_now_ms() - begin_ms < NODE_MS);
        test_sleep_ms(1);
    }
}

/** It goes on writing into its lane, and rings, whatever it was told. */
static void test_sender_that_ignores_the_order_gains_nothing(void **state)
{
    static struct peer hostile;
    struct ringbus_addr to;
    const unsigned char body[16] = {1};
    const uint32_t oneway = rbi_record_meta(RBI_RECORD_ONEWAY, 0, 0, 0);
    (void)state;
    bus_shared_reset();
    const pid_t pid = child_start(victim, &cluster, NULL);
    wait_for(WORD_UP, 1);
    CHECK(ringbus_resolve(RECEIVER, &to) == 0);
    assert_int_equal(peer_up(&hostile, cluster.socket, SENDER), 0);
    assert_int_equal(peer_link(&hostile, to.cluster, to.instance), 0);
    for (unsigned i = 0; i < 100; i++) {
        peer_put(&hostile, oneway, body, sizeof body);
        assert_true(peer_consumed(&hostile, NODE_MS));
    }
    wait_for(WORD_MESSAGES, 100);
    configure(DENY_SENDER);
    const uint64_t begin_ms = test_now_ms();
    while (atomic_load(&bus_shared[WORD_DOWN]) == 0) {
        peer_put(&hostile, oneway, body, sizeof body);
        (void)peer_consumed(&hostile, 10);
        CHECK(test_now_ms() - begin_ms < NODE_MS);
    }
    assert_int_equal(atomic_load(&bus_shared[WORD_DOWN]), RINGBUS_REASON_DENIED);
    const uint64_t messages = atomic_load(&bus_shared[WORD_MESSAGES]);
    const uint64_t read_pos = rbi_load_acq(&peer_their_side(&hostile)->read_pos);
    for (unsigned i = 0; i < 20; i++) {
        peer_put(&hostile, oneway, body, sizeof body);
    }
    wait_for(WORD_POLLS, atomic_load(&bus_shared[WORD_POLLS]) + 50);
    assert_int_equal(atomic_load(&bus_shared[WORD_MESSAGES]), messages);
    assert_int_equal(rbi_load_acq(&peer_their_side(&hostile)->read_pos), read_pos);
    /* Nor does asking again help, nor claiming that the link was there before. */
    assert_int_equal(peer_introduce(&hostile, to.cluster, to.instance), RINGBUS_E_DENIED);
    atomic_store(&bus_shared[WORD_STOP], 1);
    assert_int_equal(child_wait(pid, NODE_MS), 0);
    peer_down(&hostile);
}

/** Slow: takes one message at a time. */
static void slow_victim(const struct cluster *where, void *context)
{
    struct node node = {0};
    (void)context;
    node_open(&node, where, RECEIVER);
    atomic_store(&bus_shared[WORD_UP], 1);
    while (node.events[RINGBUS_EVENT_DOWN] == 0) {
        CHECK(ringbus_poll(node.bus, 1) >= 0);
        test_sleep_ms(node.messages != 0 ? 2 : 0);
        atomic_store(&bus_shared[WORD_MESSAGES], node.messages);
    }
    atomic_store(&bus_shared[WORD_DOWN], node.reason);
    node_close(&node);
}

/** What lies in the ring when the order is read stays there. */
static void test_what_was_sent_before_is_not_read(void **state)
{
    static struct peer hostile;
    struct ringbus_addr to;
    const unsigned char body[16] = {1};
    const unsigned count = 200;
    (void)state;
    bus_shared_reset();
    const pid_t pid = child_start(slow_victim, &cluster, NULL);
    wait_for(WORD_UP, 1);
    CHECK(ringbus_resolve(RECEIVER, &to) == 0);
    assert_int_equal(peer_up(&hostile, cluster.socket, SENDER), 0);
    assert_int_equal(peer_link(&hostile, to.cluster, to.instance), 0);
    CHECK(kill(pid, SIGSTOP) == 0);
    for (unsigned i = 0; i < count; i++) {
        peer_put(&hostile, rbi_record_meta(RBI_RECORD_ONEWAY, 0, 0, 0), body, sizeof body);
    }
    configure(DENY_SENDER);
    assert_int_equal(peer_await_down(&hostile, NODE_MS), RBI_REASON_DENIED);
    CHECK(kill(pid, SIGCONT) == 0);
    assert_int_equal(child_wait(pid, NODE_MS), 0);
    assert_int_equal(atomic_load(&bus_shared[WORD_DOWN]), RINGBUS_REASON_DENIED);
    assert_true(atomic_load(&bus_shared[WORD_MESSAGES]) < count); /* until it looked */
    peer_down(&hostile);
}

/** What it has no right to send is dropped where it comes, counted, and a request told so. */
static void test_sender_of_other_methods_gains_nothing(void **state)
{
    static struct peer hostile;
    struct ringbus_addr to;
    unsigned char body[256] = {9}; /* number of the request */
    const struct rbi_attributes attributes = {.present = RBI_ATTRIBUTE_METHOD, .method = 7};
    const unsigned words = rbi_attributes_words(&attributes);
    (void)state;
    bus_shared_reset();
    configure(ONLY_METHODS("1..99"));
    CHECK(cluster_log_wait(&cluster, "event=rights_changed", NODE_MS));
    const pid_t pid = child_start(victim, &cluster, NULL);
    wait_for(WORD_UP, 1);
    CHECK(ringbus_resolve(RECEIVER, &to) == 0);
    assert_int_equal(peer_up(&hostile, cluster.socket, SENDER), 0);
    assert_int_equal(peer_link(&hostile, to.cluster, to.instance), 0);
    peer_put(&hostile, rbi_record_meta(RBI_RECORD_ONEWAY, 0, 0, 0), body, 16);
    wait_for(WORD_DENIED, 1);
    peer_put(&hostile, rbi_record_meta(RBI_RECORD_REQ, 0, 0, 0), body, 16);
    assert_int_equal(peer_await(&hostile, RBI_RECORD_ERROR, 9, NODE_MS), 0);
    assert_int_equal(atomic_load(&bus_shared[WORD_MESSAGES]), 0);
    (void)rbi_attributes_encode(&attributes, body + RBI_RECORD_TAG);
    peer_put(&hostile, rbi_record_meta(RBI_RECORD_ONEWAY, RBI_RECORD_ATTRIBUTES, words, 0), body,
             RBI_RECORD_TAG + 8 * words + 1);
    wait_for(WORD_MESSAGES, 1);
    assert_int_equal(atomic_load(&bus_shared[WORD_DENIED]), 2);
    assert_int_equal(atomic_load(&bus_shared[WORD_DOWN]), 0); /* no reason to end the link */
    atomic_store(&bus_shared[WORD_STOP], 1);
    assert_int_equal(child_wait(pid, NODE_MS), 0);
    peer_down(&hostile);
}

/* ---- a name that is taken over ------------------------------------------------------------- */

static void test_taken_over(void **state)
{
    struct node next = {0};
    (void)state;
    node_open(&receiver, &cluster, RECEIVER);
    node_open(&sender, &cluster, SENDER);
    const struct ringbus_addr to = node_target(&sender, RECEIVER, 1, &receiver);
    const struct ringbus_addr self = address_of(&receiver);
    struct ringbus_addr back;
    CHECK(ringbus_target(receiver.bus, SENDER, NULL, &back) == 0); /* over the link that there is */
    CHECK(ringbus_send(sender.bus, &to, 0, "old", 3, 0) == 1);
    RUN_UNTIL(receiver.messages == 1, NODE_MS, &sender, &receiver);
    struct ringbus_options options = node_options(&cluster, RECEIVER);
    assert_int_equal(node_try_open(&next, &options), RINGBUS_E_IN_USE);
    options.takeover = 1;
    node_open_with(&next, &options);
    assert_int_equal(address_of(&next).instance, self.instance);
    RUN_UNTIL(receiver.events[RINGBUS_EVENT_DOWN] == 2, NODE_MS, &receiver);
    assert_int_equal(receiver.reason, RINGBUS_REASON_REPLACED);
    assert_int_equal(receiver.events[RINGBUS_EVENT_DAEMON_LOST], 0);
    assert_int_equal(ringbus_send(receiver.bus, &back, 0, "x", 1, 0), RINGBUS_E_CLOSED);
    assert_int_equal(
        ringbus_request(receiver.bus, &back, 0, "x", 1, 0, 100, node_on_result, &receiver),
        RINGBUS_E_CLOSED);
    /* Its peers go over to the new one. */
    RUN_UNTIL(sender.events[RINGBUS_EVENT_READY] >= 2 && sender.events[RINGBUS_EVENT_DOWN] == 1,
              NODE_MS, &sender, &next, &receiver);
    assert_int_equal(sender.reason, RINGBUS_REASON_REPLACED);
    CHECK(ringbus_send(sender.bus, &to, 0, "new", 3, 0) == 1);
    RUN_UNTIL(next.messages == 1, NODE_MS, &sender, &next, &receiver);
    assert_int_equal(receiver.messages, 1);
    /* The old one stays away, whatever time passes, and can be closed. */
    for (unsigned i = 0; i < 100; i++) {
        struct node *const nodes[] = {&receiver, &next};
        nodes_step(nodes, 2);
    }
    assert_int_equal(next.events[RINGBUS_EVENT_DOWN], 0);
    assert_int_equal(ringbus_close(receiver.bus, 100), 0);
    receiver.bus = NULL;
    node_close(&next);
}

static struct ringbus_kept *kept;

static void keep(struct node *node, const struct ringbus_message *message)
{
    CHECK(ringbus_keep(node->bus, message, &kept) == 0);
}

/** What the application has kept stays readable in the handle that has lost its name. */
static void test_kept_payload_outlives_the_name(void **state)
{
    static unsigned char payload[20000];
    struct node next = {0};
    (void)state;
    memset(payload, 0x5a, sizeof payload);
    receiver.on_message = keep;
    node_open(&receiver, &cluster, RECEIVER);
    node_open(&sender, &cluster, SENDER);
    const struct ringbus_addr to = node_target(&sender, RECEIVER, 1, &receiver);
    CHECK(ringbus_send(sender.bus, &to, 0, payload, sizeof payload, 0) == 1);
    RUN_UNTIL(receiver.messages == 1, NODE_MS, &sender, &receiver);
    struct ringbus_options options = node_options(&cluster, RECEIVER);
    options.takeover = 1;
    node_open_with(&next, &options);
    RUN_UNTIL(receiver.events[RINGBUS_EVENT_DOWN] >= 1 && sender.events[RINGBUS_EVENT_DOWN] == 1,
              NODE_MS, &receiver, &sender, &next);
    for (unsigned i = 0; i < 10; i++) {
        CHECK(ringbus_poll(receiver.bus, 10) >= 0);
    }
    assert_int_equal(kept->size, sizeof payload);
    assert_memory_equal(kept->data, payload, sizeof payload);
    CHECK(ringbus_release(receiver.bus, kept) == 0);
    node_close(&next);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_revocation_under_traffic, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_was_not_read_comes_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_requests_end_with_denied, setup, teardown),
        cmocka_unit_test_setup_teardown(test_denied_stays_denied, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sender_that_ignores_the_order_gains_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_what_was_sent_before_is_not_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_methods_may_differ, setup, teardown),
        cmocka_unit_test_setup_teardown(test_methods_over_a_restart, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sender_of_other_methods_gains_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_taken_over, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kept_payload_outlives_the_name, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
