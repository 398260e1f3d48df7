/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An instance that answers all, but late, is shielded where the policy says what late is. Features
 * 2.4 (slow calls). Links that are up before the policy comes, and after, count by it.
 */
#include "libclient/internal.h"
#include "support/bus.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define SERVICE     "/game/eu/pc/w1/core/service"
#define SERVERS     3U
#define LATE        1U   /* the second */
#define LATE_MS     500U /* it answers after */
#define SLOW        "200ms"
#define WAITING     64U
#define CALL_MS     5000U
#define WITH_POLICY "clusters: [{match: '/game/**', shield: {slow: " SLOW "}}]"

static struct cluster cluster;

/** A request that waits for its late answer. */
struct waiting {
    struct ringbus_reply_to to;
    uint64_t due_ms;
};

struct server {
    struct node node;
    struct waiting waiting[WAITING]; /* a ring */
    unsigned begun;
    unsigned answered;
};

static struct server servers[SERVERS];
static struct node caller;
static struct ringbus_addr to;
static unsigned asked[SERVERS];
static unsigned replied[SERVERS];
static bool closing; /* what still waits then ends without an answer */

static void serve(struct node *node, const struct ringbus_message *message)
{
    struct server *server = node->context;
    const bool late = server == &servers[LATE];
    CHECK(server->begun - server->answered < WAITING);
    server->waiting[server->begun++ % WAITING] =
        (struct waiting){.to = message->reply_to, .due_ms = test_now_ms() + (late ? LATE_MS : 0)};
}

static void answer(struct server *server)
{
    while (server->answered != server->begun &&
           server->waiting[server->answered % WAITING].due_ms <= test_now_ms()) {
        const struct waiting *waiting = &server->waiting[server->answered++ % WAITING];
        CHECK(ringbus_reply(server->node.bus, &waiting->to, "ok", 2, 0) == 1);
    }
}

static void on_reply(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    (void)bus;
    CHECK(closing || result->outcome == RINGBUS_REPLIED);
    ++*(unsigned *)context;
}

/** Each instance has ten requests of ours at a time, until @p type has come. */
static void call_until(enum ringbus_event_type type)
{
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    while (caller.events[type] == 0) {
        CHECK(test_now_ms() < deadline_ms);
        for (unsigned i = 0; i < SERVERS; i++) {
            struct ringbus_addr whom = to;
            whom.instance = (int32_t)i + 1;
            while (asked[i] - replied[i] < 10) {
                CHECK(ringbus_request(caller.bus, &whom, 0, "hi", 2, 0, CALL_MS, on_reply,
                                      &replied[i]) == 1);
                asked[i]++;
            }
        }
        struct node *const all[] = {&servers[0].node, &servers[1].node, &servers[2].node, &caller};
        nodes_step(all, sizeof all / sizeof all[0]);
        for (unsigned i = 0; i < SERVERS; i++) {
            answer(&servers[i]);
        }
    }
}

static void open_all(void)
{
    memset(servers, 0, sizeof servers);
    memset(&caller, 0, sizeof caller);
    memset(asked, 0, sizeof asked);
    memset(replied, 0, sizeof replied);
    closing = false;
    for (unsigned i = 0; i < SERVERS; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, SERVICE "/%u", i + 1);
        servers[i].node.on_message = serve;
        servers[i].node.context = &servers[i];
        node_open(&servers[i].node, &cluster, path);
    }
    node_open(&caller, &cluster, NULL);
    CHECK(ringbus_target(caller.bus, SERVICE, NULL, &to) == 0);
    RUN_UNTIL(caller.events[RINGBUS_EVENT_READY] == SERVERS, NODE_MS, &caller, &servers[0].node,
              &servers[1].node, &servers[2].node);
}

static void close_all(void)
{
    closing = true;
    node_close(&caller);
    for (unsigned i = 0; i < SERVERS; i++) {
        node_close(&servers[i].node);
    }
}

static void assert_late_one_is_out(void)
{
    struct rbi_directory_instance all[SERVERS];
    struct rbi_directory_cluster head;
    assert_int_equal(rbi_directory_read(&caller.bus->directory, to.cluster, &head, all, SERVERS),
                     RBI_DIRECTORY_OK);
    for (unsigned i = 0; i < SERVERS; i++) {
        assert_int_equal(all[i].health != RBI_HEALTH_OK, i == LATE);
    }
}

static void test_late_answers_shield_by_the_policy(void **state)
{
    (void)state;
    open_all();
    call_until(RINGBUS_EVENT_SHIELDED);
    assert_late_one_is_out();
    close_all();
}

/* The policy comes while the links are up. */
static void test_policy_that_comes_later_counts(void **state)
{
    (void)state;
    open_all();
    assert_int_equal(cluster_configure(&cluster, WITH_POLICY), 0);
    assert_int_equal(kill(cluster.pid, SIGHUP), 0);
    call_until(RINGBUS_EVENT_SHIELDED);
    assert_late_one_is_out();
    close_all();
}

static int up(void **state)
{
    (void)state;
    return cluster_up(&cluster, WITH_POLICY);
}

static int up_without(void **state)
{
    (void)state;
    return cluster_up(&cluster, "{}");
}

static int down(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_late_answers_shield_by_the_policy, up, down),
        cmocka_unit_test_setup_teardown(test_policy_that_comes_later_counts, up_without, down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
