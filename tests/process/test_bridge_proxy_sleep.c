/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everybody sleeps whenever there is nothing to do: endpoints and both bridges. Nobody looks by
 * himself, no PING comes: a wake-up that is lost is a test that ends in its timeout.
 */
#include "support/relay.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SERVICE   "/game/eu/pc/w1/core/far"
#define SERVICE_1 SERVICE "/1"
#define LONG_MS   60000U /* no PING before that */

enum { WORD_DONE, WORD_COUNT, WORD_ASKED, WORD_STOP, WORD_LIFE };

static struct relay relay;

/* ---- the service: slow at times, checks the order ---- */

static uint64_t next_number;
static uint64_t service_state = 5;

static void pause_us(uint64_t us)
{
    const struct timespec time = {.tv_nsec = (long)us * 1000};
    (void)nanosleep(&time, NULL);
}

static void spin_ns(uint64_t ns)
{
    struct timespec begin;
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((uint64_t)(now.tv_sec - begin.tv_sec) * 1000000000U + (uint64_t)now.tv_nsec -
                 (uint64_t)begin.tv_nsec <
             ns);
}

static void serve(struct node *at, const struct ringbus_message *message)
{
    if (message->reply_to.id != 0) {
        CHECK(ringbus_reply(at->bus, &message->reply_to, message->data, message->size, 0) == 1);
        atomic_fetch_add(&bus_shared[WORD_ASKED], 1);
        return;
    }
    CHECK(message->key == next_number);
    CHECK(message->size == 0 || *(const unsigned char *)message->data == (message->key & 0xff));
    next_number++;
    atomic_store(&bus_shared[WORD_COUNT], next_number);
    if (bus_random(&service_state) % 256 == 0) {
        pause_us(bus_random(&service_state) % 500);
    }
}

static struct ringbus_options quiet_options(const struct cluster *cluster, const char *path)
{
    struct ringbus_options options = node_options(cluster, path);
    options.ping_interval_ms = LONG_MS;
    options.spin_us = 1; /* sleeps at once */
    return options;
}

static void service(const struct cluster *cluster, void *context)
{
    static struct node node;
    struct ringbus_options options = quiet_options(cluster, SERVICE_1);
    (void)context;
    node.on_message = serve;
    struct ringbus_addr self;
    node_open_with(&node, &options);
    CHECK(ringbus_self(node.bus, &self) == 0);
    atomic_store(&bus_shared[WORD_LIFE], self.incarnation);
    while (atomic_load(&bus_shared[WORD_STOP]) == 0) {
        CHECK(ringbus_wait(node.bus, 200) >= 0); /* for WORD_STOP alone */
        while (ringbus_poll(node.bus, 16) > 0) {
        }
    }
    node_close(&node);
}

/* ---- the caller: bursts that fill the lane, payloads that empty the pool, questions ---- */

static void wait_for_room(struct node *node, int r)
{
    CHECK(r == RINGBUS_E_FULL || r == RINGBUS_E_NO_CHUNK);
    CHECK(ringbus_wait(node->bus, 30000) == 1);
    CHECK(ringbus_poll(node->bus, 64) >= 0);
}

static void send_one(struct node *node, uint64_t number, size_t size)
{
    static unsigned char data[100000];
    data[0] = (unsigned char)number;
    for (;;) {
        const int r = ringbus_send(node->bus, &node->peer, number, data, size, RINGBUS_KEY);
        if (r == 1) {
            return;
        }
        wait_for_room(node, r);
    }
}

static void ask_one(struct node *node)
{
    const unsigned before = node->replies[RINGBUS_REPLIED];
    for (;;) {
        const int r =
            ringbus_request(node->bus, &node->peer, 0, "?", 1, 0, 30000, node_on_result, node);
        if (r == 1) {
            break;
        }
        wait_for_room(node, r);
    }
    while (node->replies[RINGBUS_REPLIED] == before) {
        CHECK(node->replies[RINGBUS_UNKNOWN] + node->replies[RINGBUS_NOT_SENT] == 0);
        CHECK(ringbus_wait(node->bus, 40000) >= 0);
        CHECK(ringbus_poll(node->bus, 64) >= 0);
    }
}

static void caller(const struct cluster *cluster, void *context)
{
    static struct node node;
    struct ringbus_options options = quiet_options(cluster, NULL);
    uint64_t state = (uint64_t)getpid();
    uint64_t number = 0;
    const uint64_t rounds = *(const uint64_t *)context;
    options.pool[0] = (struct ringbus_pool_class){.chunk_bytes = 131072, .count = 3};
    node_open_with(&node, &options);
    CHECK(ringbus_target(node.bus, SERVICE, NULL, NULL) == 0);
    while (node.events[RINGBUS_EVENT_READY] == 0) {
        CHECK(ringbus_wait(node.bus, 30000) >= 0);
        CHECK(ringbus_poll(node.bus, 64) >= 0);
    }
    for (uint64_t round = 0; round < rounds; round++) {
        const uint64_t what = bus_random(&state) % 32;
        if (what < 29) {
            ask_one(&node);
        } else {
            const unsigned count = (unsigned)(bus_random(&state) % (what == 31 ? 12 : 3000));
            for (unsigned i = 0; i < count; i++) {
                send_one(&node, number, what == 31 ? 100000 : 1 + number % 200);
                number++;
            }
        }
        /* Mostly about as long as a proxy waits before it sleeps: into the middle of that. */
        const uint64_t pause_ns = bus_random(&state) % 8 == 0 ? 300000 : 100000;
        spin_ns(bus_random(&state) % pause_ns);
    }
    ask_one(&node); /* behind all that was sent */
    CHECK(atomic_load(&bus_shared[WORD_COUNT]) == number);
    atomic_store(&bus_shared[WORD_DONE], 1);
    node_close(&node);
}

/* @return its exit code; -1: it runs */
static int ended(pid_t pid)
{
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) != pid) {
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void run(enum rbi_config_loop kind)
{
    const uint64_t rounds = (getenv("RINGBUS_TEST_FULL") != NULL ? 40000 : 2000) / TEST_SCALE;
    static uint64_t given;
    given = rounds;
    bus_shared_reset();
    relay_up_on(&relay, kind, "{}\n", NULL);
    const pid_t server = child_start(service, &relay.host[1].cluster, NULL);
    while (atomic_load(&bus_shared[WORD_LIFE]) == 0) {
        test_sleep_ms(1);
    }
    const struct rbi_proxy_spec spec = {.path = SERVICE_1,
                                        .incarnation =
                                            (uint32_t)atomic_load(&bus_shared[WORD_LIFE]),
                                        .host = "beta",
                                        .state = RBI_ENDPOINT_READY,
                                        .weight = 100};
    (void)relay_proxy(&relay, 0, &spec);
    const pid_t client = child_start(caller, &relay.host[0].cluster, &given);
    int status = -1;
    while (atomic_load(&bus_shared[WORD_DONE]) == 0 && (status = ended(client)) < 0) {
        /* It is woken by bells, by daemons and by the death of others alone. */
        assert_int_equal(rbi_loop_turn(relay.loop, UINT64_MAX), 0);
    }
    while (status < 0) {
        relay_turn(&relay, false);
        status = ended(client);
    }
    assert_int_equal(status, 0);
    struct rbi_desk_figures figures;
    rbi_desk_figures(relay.host[0].desk, &figures);
    assert_true(figures.sleeps > rounds / 8); /* else nothing was proved */
    assert_int_equal(figures.bad_peers, 0);
    atomic_store(&bus_shared[WORD_STOP], 1);
    assert_int_equal(child_wait(server, NODE_MS), 0);
    relay_down(&relay);
}

static void test_sleep_loses_no_wake_up_epoll(void **state)
{
    (void)state;
    run(RBI_LOOP_EPOLL);
}

static void test_sleep_loses_no_wake_up_uring(void **state)
{
    (void)state;
    run(RBI_LOOP_AUTO);
}

/* A bridge with nothing to do takes no time. */
static void test_sleep_costs_nothing(void **state)
{
    (void)state;
    bus_shared_reset();
    relay_up(&relay, "{}\n", NULL);
    static struct node beta;
    static struct node alpha;
    memset(&beta, 0, sizeof beta);
    memset(&alpha, 0, sizeof alpha);
    node_open(&beta, &relay.host[1].cluster, SERVICE_1);
    const struct rbi_proxy_spec spec = relay_spec(&relay, 0, &beta);
    (void)relay_proxy(&relay, 0, &spec);
    RELAY_UNTIL(&relay, relay.registered == 1, NODE_MS, &beta);
    node_open(&alpha, &relay.host[0].cluster, NULL);
    assert_int_equal(ringbus_target(alpha.bus, SERVICE, NULL, NULL), 0);
    RELAY_UNTIL(&relay, alpha.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &alpha, &beta);
    /* So many turns until everything sleeps; each would come at once if it did not. */
    unsigned quiet = 0;
    for (unsigned turns = 0; quiet < 3 && turns < 100000; turns++) {
        const uint64_t before_ms = test_now_ms();
        assert_int_equal(rbi_loop_turn(relay.loop, UINT64_C(20000000)), 0);
        quiet = test_now_ms() - before_ms >= 10 ? quiet + 1 : 0;
    }
    assert_int_equal(quiet, 3);
    node_close(&alpha);
    node_close(&beta);
    relay_down(&relay);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sleep_loses_no_wake_up_epoll),
        cmocka_unit_test(test_sleep_loses_no_wake_up_uring),
        cmocka_unit_test(test_sleep_costs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
