/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How links to instances of another host end: whoever dies, leaves or is restarted, both sides
 * learn of it, nothing is lost that had been accepted, and nothing stays behind.
 */
#include "support/raw.h"
#include "support/relay.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define SERVICE   "/game/eu/pc/w1/core/far"
#define SERVICE_1 SERVICE "/1"

static struct relay relay;
static struct node alpha;
static struct node beta;

static struct rbi_proxy *begin(void)
{
    struct rbi_proxy *proxy;
    memset(&alpha, 0, sizeof alpha);
    memset(&beta, 0, sizeof beta);
    relay_up(&relay, "{}\n", NULL);
    node_open(&beta, &relay.host[1].cluster, SERVICE_1);
    const struct rbi_proxy_spec spec = relay_spec(&relay, 0, &beta);
    proxy = relay_proxy(&relay, 0, &spec);
    RELAY_UNTIL(&relay, relay.registered == 1, NODE_MS, &beta);
    return proxy;
}

static void target(struct node *node)
{
    node_open(node, &relay.host[0].cluster, NULL);
    assert_int_equal(ringbus_target(node->bus, SERVICE, NULL, NULL), 0);
    RELAY_UNTIL(&relay, node->events[RINGBUS_EVENT_READY] == 1, NODE_MS, node, &beta);
}

static void end(void)
{
    node_close(&alpha);
    node_close(&beta);
    relay_down(&relay);
}

static bool no_halves(void)
{
    struct rbi_desk_figures figures[2];
    for (unsigned i = 0; i < 2; i++) {
        rbi_desk_figures(relay.host[i].desk, &figures[i]);
    }
    return figures[0].halves + figures[1].halves + figures[0].residues + figures[1].residues == 0;
}

/* ---- in order ---- */

/* What was sent before the end is read before the end. */
static void test_end_of_a_caller_in_order(void **state)
{
    (void)state;
    begin();
    target(&alpha);
    for (unsigned i = 0; i < 50; i++) {
        assert_int_equal(ringbus_send(alpha.bus, &alpha.peer, 0, &i, sizeof i, 0), 1);
    }
    node_close(&alpha);
    RELAY_UNTIL(&relay, beta.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &beta);
    assert_int_equal(beta.messages, 50);
    assert_int_equal(beta.reason, RINGBUS_REASON_LEFT);
    RELAY_UNTIL(&relay, no_halves(), NODE_MS, &beta);
    node_open(&alpha, &relay.host[0].cluster, NULL);
    end();
}

static void test_end_of_a_target(void **state)
{
    (void)state;
    begin();
    target(&alpha);
    assert_int_equal(ringbus_untarget(alpha.bus, SERVICE), 0);
    RELAY_UNTIL(&relay,
                alpha.events[RINGBUS_EVENT_DOWN] == 1 && beta.events[RINGBUS_EVENT_DOWN] == 1,
                NODE_MS, &alpha, &beta);
    assert_int_equal(alpha.reason, RINGBUS_REASON_UNTARGETED);
    RELAY_UNTIL(&relay, no_halves(), NODE_MS, &alpha, &beta);
    /* And once more. */
    assert_int_equal(ringbus_target(alpha.bus, SERVICE, NULL, NULL), 0);
    RELAY_UNTIL(&relay, alpha.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &alpha, &beta);
    assert_int_equal(ringbus_send(alpha.bus, &alpha.peer, 0, "x", 1, 0), 1);
    RELAY_UNTIL(&relay, beta.messages == 1, NODE_MS, &alpha, &beta);
    end();
}

/* The bridge ends a link for a reason of its own. */
static void test_end_by_the_bridge_says_why(void **state)
{
    (void)state;
    static const enum rbi_reason reasons[] = {RBI_REASON_LEFT, RBI_REASON_CRASHED,
                                              RBI_REASON_SILENT, RBI_REASON_NO_RESOURCES};
    begin();
    target(&alpha);
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(reasons); i++) {
        struct relay_pair *pair = relay_only(&relay);
        RELAY_UNTIL(&relay, rbi_half_released(pair->half[0]) == rbi_half_pos(pair->half[0]),
                    NODE_MS, &alpha, &beta);
        struct rbi_half *half = pair->half[0];
        pair->half[0] = NULL;
        rbi_half_end(half, reasons[i]);
        half = pair->half[1];
        pair->half[1] = NULL;
        rbi_half_end(half, reasons[i]);
        relay.pairs = NULL;
        RELAY_UNTIL(&relay,
                    alpha.events[RINGBUS_EVENT_DOWN] == i + 1 &&
                        beta.events[RINGBUS_EVENT_DOWN] == i + 1,
                    NODE_MS, &alpha, &beta);
        assert_int_equal(alpha.reason, reasons[i]);
        assert_int_equal(beta.reason, reasons[i]);
        /* It is in the directory still: the target asks anew. */
        RELAY_UNTIL(&relay, alpha.events[RINGBUS_EVENT_READY] == i + 2, NODE_MS, &alpha, &beta);
        free(pair);
    }
    end();
}

static void test_end_of_a_proxy_is_told_to_its_peers(void **state)
{
    (void)state;
    struct rbi_proxy *proxy = begin();
    target(&alpha);
    relay_only(&relay)->half[0] = NULL; /* freed with it */
    rbi_proxy_free(proxy, RBI_REASON_LEFT);
    RELAY_UNTIL(&relay, alpha.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &alpha, &beta);
    assert_int_equal(alpha.reason, RINGBUS_REASON_LEFT);
    end();
}

/* ---- deaths ---- */

static void caller(const struct cluster *cluster, void *context)
{
    static struct node node;
    (void)context;
    node_open(&node, cluster, NULL);
    CHECK(ringbus_target(node.bus, SERVICE, NULL, NULL) == 0);
    RUN_UNTIL(node.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &node);
    for (unsigned i = 0; i < 20; i++) {
        CHECK(ringbus_send(node.bus, &node.peer, 0, &i, sizeof i, 0) == 1);
    }
    atomic_store(&bus_shared[0], 1);
    for (;;) {
        (void)pause();
    }
}

static void test_death_of_a_caller(void **state)
{
    (void)state;
    bus_shared_reset();
    begin();
    const pid_t pid = child_start(caller, &relay.host[0].cluster, NULL);
    RELAY_UNTIL(&relay, atomic_load(&bus_shared[0]) == 1, NODE_MS, &beta);
    child_kill(pid);
    RELAY_UNTIL(&relay, beta.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &beta);
    assert_int_equal(beta.messages, 20); /* all that it had sent */
    assert_int_equal(beta.reason, RINGBUS_REASON_CRASHED);
    RELAY_UNTIL(&relay, no_halves(), NODE_MS, &beta);
    node_open(&alpha, &relay.host[0].cluster, NULL);
    end();
}

/* It reads what it gets by reference, and dies with that. */
static void keeper(const struct cluster *cluster, void *context)
{
    static struct node node;
    (void)context;
    node_open(&node, cluster, "/game/eu/pc/w1/core/keep/1");
    for (;;) {
        struct node *const nodes[] = {&node};
        nodes_step(nodes, 1);
        atomic_store(&bus_shared[1], node.messages);
        if (atomic_load(&bus_shared[2]) == 1) {
            atomic_store(&bus_shared[2], 2);
            (void)pause();
        }
    }
}

static unsigned char payload[20000];
static uint64_t undelivered;
static uint64_t maybe;

static void count_back(struct node *node, const struct ringbus_event *event)
{
    (void)node;
    if (event->type == RINGBUS_EVENT_UNDELIVERED) {
        undelivered++;
        maybe += event->maybe_seen != 0;
    }
}

/* How far the dead one had come is known to the byte. */
static void test_death_of_a_receiver_says_how_far_it_was(void **state)
{
    (void)state;
    bus_shared_reset();
    begin();
    const pid_t pid = child_start(keeper, &relay.host[1].cluster, NULL);
    assert_int_equal(ringbus_target(beta.bus, "/game/eu/pc/w1/core/keep", NULL, NULL), 0);
    RELAY_UNTIL(&relay, beta.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &beta);
    const struct rbi_proxy_spec spec = {.path = "/game/eu/pc/w1/core/keep/1",
                                        .incarnation = beta.peer.incarnation,
                                        .host = "beta",
                                        .state = RBI_ENDPOINT_READY,
                                        .weight = 100};
    (void)relay_proxy(&relay, 0, &spec);
    RELAY_UNTIL(&relay, relay.registered == 2, NODE_MS, &beta);
    node_open(&alpha, &relay.host[0].cluster, NULL);
    assert_int_equal(ringbus_target(alpha.bus, "/game/eu/pc/w1/core/keep", NULL, NULL), 0);
    RELAY_UNTIL(&relay, alpha.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &alpha, &beta);
    alpha.on_event = count_back;
    undelivered = maybe = 0;
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(ringbus_send(alpha.bus, &alpha.peer, 0, payload, sizeof payload, 0), 1);
    }
    RELAY_UNTIL(&relay, atomic_load(&bus_shared[1]) == 5, NODE_MS, &alpha, &beta);
    struct rbi_half_taken taken;
    struct rbi_half *far = relay_only(&relay)->half[1];
    rbi_half_taken(far, &taken);
    assert_true(taken.believed);
    /* It sleeps, so it has said all. */
    RELAY_UNTIL(&relay, (rbi_half_taken(far, &taken), taken.read == taken.written), NODE_MS, &alpha,
                &beta);
    assert_int_equal(taken.begun, taken.written);
    assert_false(taken.running);

    atomic_store(&bus_shared[2], 1); /* it reads no more */
    RELAY_UNTIL(&relay, atomic_load(&bus_shared[2]) == 2, NODE_MS, &alpha, &beta);
    relay.ack_held = true;
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(ringbus_send(alpha.bus, &alpha.peer, 0, payload, sizeof payload, 0), 1);
    }
    RELAY_UNTIL(&relay, (rbi_half_taken(far, &taken), taken.written - taken.read >= 3 * 64),
                NODE_MS, &alpha, &beta);
    assert_true(taken.written - taken.begun >= 3 * 64);
    child_kill(pid);
    RELAY_UNTIL(&relay, alpha.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &alpha, &beta);
    assert_int_equal(alpha.reason, RINGBUS_REASON_CRASHED);
    /* Not acknowledged to alpha: it gets them back, as what may have been seen. */
    RELAY_UNTIL(&relay, undelivered == 3, NODE_MS, &alpha, &beta);
    assert_int_equal(maybe, 3);
    RELAY_UNTIL(&relay, node_pool_used(&alpha) == 0, NODE_MS, &alpha, &beta);
    alpha.on_event = NULL;
    end();
}

/* What another host says it has not got is certainly not seen; of the rest nobody knows. */
static void test_end_of_the_way_says_what_may_have_been_seen(void **state)
{
    (void)state;
    for (unsigned sure = 0; sure < 2; sure++) {
        begin();
        target(&alpha);
        struct relay_pair *pair = relay_only(&relay);
        struct rbi_half *half = pair->half[0];
        RELAY_UNTIL(&relay, rbi_half_released(half) == rbi_half_pos(half), NODE_MS, &alpha, &beta);
        alpha.on_event = count_back;
        undelivered = maybe = 0;
        relay.ack_held = true;
        const uint64_t from = rbi_half_pos(half);
        for (unsigned i = 0; i < 3; i++) {
            assert_int_equal(ringbus_send(alpha.bus, &alpha.peer, 0, payload, sizeof payload, 0),
                             1);
        }
        RELAY_UNTIL(&relay, beta.messages == 3, NODE_MS, &alpha, &beta);
        if (sure == 1) {
            assert_int_equal(rbi_half_back(half, from), 0);
        }
        relay_pair_over(pair, RBI_REASON_UNREACHABLE);
        RELAY_UNTIL(&relay, alpha.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &alpha, &beta);
        assert_int_equal(alpha.reason, RINGBUS_REASON_UNREACHABLE);
        assert_int_equal(undelivered, 3);
        assert_int_equal(maybe, sure == 1 ? 0 : 3);
        alpha.on_event = NULL;
        end();
    }
}

/* ---- payloads that outlive their link ---- */

static struct ringbus_kept *kept[2];
static unsigned kept_count;

static void keep_first(struct node *node, const struct ringbus_message *message)
{
    if (kept_count < 2) {
        assert_int_equal(ringbus_keep(node->bus, message, &kept[kept_count++]), 0);
    }
}

static bool is_whole(const struct ringbus_kept *what, int value)
{
    const unsigned char *bytes = what->data;
    for (size_t i = 0; i < what->size; i++) {
        if (bytes[i] != value) {
            return false;
        }
    }
    return what->size == sizeof payload;
}

/* The receiver keeps what came over a link that has ended: nothing is written over it. */
static void test_kept_payloads_outlive_their_link(void **state)
{
    (void)state;
    struct rbi_desk_figures figures;
    begin();
    beta.on_message = keep_first;
    kept_count = 0;
    target(&alpha);
    for (unsigned i = 0; i < 2; i++) {
        memset(payload, (int)i + 1, sizeof payload);
        assert_int_equal(ringbus_send(alpha.bus, &alpha.peer, 0, payload, sizeof payload, 0), 1);
    }
    RELAY_UNTIL(&relay, kept_count == 2, NODE_MS, &alpha, &beta);
    assert_int_equal(ringbus_untarget(alpha.bus, SERVICE), 0);
    RELAY_UNTIL(&relay,
                alpha.events[RINGBUS_EVENT_DOWN] == 1 && beta.events[RINGBUS_EVENT_DOWN] == 1,
                NODE_MS, &alpha, &beta);
    RELAY_UNTIL(&relay, (rbi_desk_figures(relay.host[1].desk, &figures), figures.residues == 1),
                NODE_MS, &alpha, &beta);
    assert_int_equal(figures.halves, 0);
    /* More than the pool has chunks of that size. */
    assert_int_equal(ringbus_target(alpha.bus, SERVICE, NULL, NULL), 0);
    RELAY_UNTIL(&relay, alpha.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &alpha, &beta);
    const uint64_t before = beta.messages;
    memset(payload, 0xee, sizeof payload);
    for (unsigned i = 0; i < 200; i++) {
        RELAY_UNTIL(&relay,
                    ringbus_send(alpha.bus, &alpha.peer, 0, payload, sizeof payload, 0) == 1,
                    NODE_MS, &alpha, &beta);
    }
    RELAY_UNTIL(&relay, beta.messages == before + 200, NODE_MS, &alpha, &beta);
    assert_true(is_whole(kept[0], 1) && is_whole(kept[1], 2));
    assert_int_equal(ringbus_release(beta.bus, kept[0]), 0);
    assert_int_equal(ringbus_release(beta.bus, kept[1]), 0);
    RELAY_UNTIL(&relay, (rbi_desk_figures(relay.host[1].desk, &figures), figures.residues == 0),
                NODE_MS, &alpha, &beta);
    end();
}

/*
 * A caller that gives up takes back what was not sent on: it comes back to it as certainly not
 * seen, and is not sent any more.
 */
static void test_records_that_were_taken_back_are_not_sent(void **state)
{
    (void)state;
    begin();
    struct ringbus_options options = node_options(&relay.host[0].cluster, NULL);
    options.ping_interval_ms = 20;
    options.ping_misses = 2;
    alpha.on_event = count_back;
    undelivered = maybe = 0;
    node_open_with(&alpha, &options);
    assert_int_equal(ringbus_target(alpha.bus, SERVICE, NULL, NULL), 0);
    RELAY_UNTIL(&relay, alpha.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &alpha, &beta);
    struct relay_pair *pair = relay_only(&relay);
    struct rbi_half *half = pair->half[0];
    relay.cut = true;
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(ringbus_send(alpha.bus, &alpha.peer, 0, "five", 4, 0), 1);
    }
    RELAY_UNTIL(&relay, alpha.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &alpha, &beta);
    assert_int_equal(alpha.reason, RINGBUS_REASON_SILENT);
    assert_int_equal(undelivered, 5);
    assert_int_equal(maybe, 0);
    const uint64_t before = beta.messages;
    if (relay.pairs == pair && pair->half[0] == half) {
        relay.cut = false;
        rbi_half_hold(half, false);
        RELAY_UNTIL(&relay, relay.withdrawn > 0, NODE_MS, &beta);
    }
    relay.cut = false;
    RELAY_UNTIL(&relay, beta.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &beta);
    assert_int_equal(beta.messages, before);
    alpha.on_event = NULL;
    end();
}

/* ---- the daemon ---- */

static void answer(struct node *at, const struct ringbus_message *message)
{
    if (message->reply_to.id != 0) {
        CHECK(ringbus_reply(at->bus, &message->reply_to, message->data, message->size, 0) == 1);
    }
}

static void ask(unsigned count)
{
    const unsigned from = alpha.replies[RINGBUS_REPLIED];
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(ringbus_request(alpha.bus, &alpha.peer, 0, &i, sizeof i, 0, 20000,
                                         node_on_result, &alpha),
                         1);
        RELAY_UNTIL(&relay, alpha.replies[RINGBUS_REPLIED] == from + i + 1, NODE_MS, &alpha, &beta);
    }
}

/* Both daemons die in turn under traffic and come again: the links never notice. */
static void test_links_outlive_the_daemons(void **state)
{
    (void)state;
    struct rbi_desk_figures figures;
    begin();
    beta.on_message = answer;
    target(&alpha);
    for (unsigned round = 0; round < 2; round++) {
        struct cluster *cluster = &relay.host[round].cluster;
        cluster_kill(cluster);
        ask(50);
        RELAY_UNTIL(&relay,
                    (rbi_desk_figures(relay.host[round].desk, &figures), figures.registered == 0),
                    NODE_MS, &alpha, &beta);
        ask(50);
        assert_int_equal(cluster_start(cluster), 0);
        RELAY_UNTIL(&relay,
                    (rbi_desk_figures(relay.host[round].desk, &figures), figures.registered == 1),
                    NODE_MS, &alpha, &beta);
        ask(50);
    }
    RELAY_UNTIL(&relay,
                alpha.events[RINGBUS_EVENT_DAEMON_BACK] == 1 &&
                    beta.events[RINGBUS_EVENT_DAEMON_BACK] == 1,
                NODE_MS, &alpha, &beta);
    ask(50);
    assert_int_equal(alpha.events[RINGBUS_EVENT_DOWN], 0);
    assert_int_equal(beta.events[RINGBUS_EVENT_DOWN], 0);
    assert_int_equal(relay.downs, 0);
    /* Both new daemons know the link, from both of its ends. */
    for (unsigned i = 0; i < 2; i++) {
        const char *socket = relay.host[i].cluster.socket;
        RELAY_UNTIL(&relay, raw_status(socket, "links") == 1, NODE_MS, &alpha, &beta);
    }
    node_close(&alpha);
    RELAY_UNTIL(&relay, beta.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &beta);
    RELAY_UNTIL(&relay, no_halves(), NODE_MS, &beta);
    node_open(&alpha, &relay.host[0].cluster, NULL);
    end();
}

/* Nothing can be asked while it is away; what was under way has failed, and is asked anew. */
static void test_requests_for_links_end_with_the_daemon(void **state)
{
    (void)state;
    begin();
    node_open(&alpha, &relay.host[0].cluster, NULL);
    relay.cut = true;
    assert_int_equal(ringbus_target(alpha.bus, SERVICE, NULL, NULL), 0);
    for (unsigned i = 0; i < 3; i++) {
        struct node *const nodes[] = {&alpha};
        (void)relay_poll(nodes, 1);
    }
    cluster_kill(&relay.host[0].cluster);
    struct rbi_desk_figures figures;
    RELAY_UNTIL(&relay, (rbi_desk_figures(relay.host[0].desk, &figures), figures.registered == 0),
                NODE_MS, &alpha, &beta);
    struct ringbus_addr service;
    assert_int_equal(ringbus_resolve(SERVICE_1, &service), 0);
    struct rbi_proxy *proxy = rbi_proxy_find(relay.host[0].desk, service.cluster, service.instance);
    struct rbi_half *half = NULL;
    const struct rbi_pidf anybody = {.cluster = 1, .instance = 1};
    assert_non_null(proxy);
    assert_int_equal(rbi_proxy_introduce(proxy, &anybody, 0, NULL, &half), -EAGAIN);
    relay.cut = false;
    assert_int_equal(cluster_start(&relay.host[0].cluster), 0);
    RELAY_UNTIL(&relay, alpha.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &alpha, &beta);
    end();
}

/* ---- no descriptors ---- */

static void insistent_caller(const struct cluster *cluster, void *context)
{
    static struct node node;
    (void)context;
    node_open(&node, cluster, NULL);
    atomic_store(&bus_shared[0], 1);
    while (atomic_load(&bus_shared[0]) == 1) {
        test_sleep_ms(1);
    }
    CHECK(ringbus_target(node.bus, SERVICE, NULL, NULL) == 0);
    while (node.events[RINGBUS_EVENT_READY] == 0) {
        struct node *const nodes[] = {&node};
        nodes_step(nodes, 1);
        if (node.events[RINGBUS_EVENT_LINK_FAILED] > 0) {
            atomic_store(&bus_shared[1], (uint64_t)(int64_t)-node.error);
        }
    }
    CHECK(ringbus_send(node.bus, &node.peer, 0, "x", 1, 0) == 1);
    node_close(&node);
}

static int filler[1024];
static unsigned filler_count;

/* A bridge that can open nothing more refuses links with a reason, and makes them when it can. */
static void test_links_without_descriptors_are_refused_and_asked_again(void **state)
{
    (void)state;
    struct rlimit before;
    bus_shared_reset();
    begin();
    const pid_t pid = child_start(insistent_caller, &relay.host[0].cluster, NULL);
    RELAY_UNTIL(&relay, atomic_load(&bus_shared[0]) == 1, NODE_MS, &beta);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int highest = 0;
    for (int fd = 0; fd < 1024; fd++) {
        highest = fcntl(fd, F_GETFD) >= 0 ? fd : highest;
    }
    struct rlimit low = {.rlim_cur = (rlim_t)highest + 1, .rlim_max = before.rlim_max};
    for (int fd = highest; fd > 0; fd--) { /* not one that is free below it */
        if (fcntl(fd, F_GETFD) < 0) {
            assert_true(dup2(0, fd) == fd);
            filler[filler_count++] = fd;
        }
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    atomic_store(&bus_shared[0], 2);
    RELAY_UNTIL(&relay, atomic_load(&bus_shared[1]) != 0, NODE_MS, &beta);
    assert_int_equal(atomic_load(&bus_shared[1]), -RINGBUS_E_NO_FDS);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    while (filler_count > 0) {
        (void)close(filler[--filler_count]);
    }
    RELAY_UNTIL(&relay, beta.messages == 1, NODE_MS, &beta);
    assert_int_equal(child_wait(pid, NODE_MS), 0);
    RELAY_UNTIL(&relay, no_halves(), NODE_MS, &beta);
    node_open(&alpha, &relay.host[0].cluster, NULL);
    end();
}

/* ---- nothing stays ---- */

static void once(void)
{
    begin();
    target(&alpha);
    beta.on_message = NULL;
    assert_int_equal(ringbus_send(alpha.bus, &alpha.peer, 0, payload, sizeof payload, 0), 1);
    RELAY_UNTIL(&relay, beta.messages == 1, NODE_MS, &alpha, &beta);
    end();
}

static void test_nothing_stays_behind(void **state)
{
    (void)state;
    once();
    const unsigned fds = bus_fd_count();
    const unsigned maps = bus_map_count();
    for (unsigned i = 0; i < 3; i++) {
        once();
    }
    assert_int_equal(bus_fd_count(), fds);
    assert_int_equal(bus_map_count(), maps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_end_of_a_caller_in_order),
        cmocka_unit_test(test_end_of_a_target),
        cmocka_unit_test(test_end_by_the_bridge_says_why),
        cmocka_unit_test(test_end_of_a_proxy_is_told_to_its_peers),
        cmocka_unit_test(test_death_of_a_caller),
        cmocka_unit_test(test_death_of_a_receiver_says_how_far_it_was),
        cmocka_unit_test(test_end_of_the_way_says_what_may_have_been_seen),
        cmocka_unit_test(test_kept_payloads_outlive_their_link),
        cmocka_unit_test(test_records_that_were_taken_back_are_not_sent),
        cmocka_unit_test(test_links_outlive_the_daemons),
        cmocka_unit_test(test_requests_for_links_end_with_the_daemon),
        cmocka_unit_test(test_links_without_descriptors_are_refused_and_asked_again),
        cmocka_unit_test(test_nothing_stays_behind),
    };
    bus_shared_reset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
