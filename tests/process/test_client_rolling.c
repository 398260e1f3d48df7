/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 60: three instances under 10,000 requests a second are restarted one after another.
 * Every request is answered, every message handled once, whoever asked for the restart: SIGTERM,
 * or an operator who drains and may then even kill.
 */
#include "support/bus.h"
#include "support/leak.h"
#include "support/machine.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PEER        "/game/eu/pc/w1/core/peer"
#define SERVERS     3U
#define CLIENTS     2U
#define NUMBERS_MAX (UINT64_C(1) << 23) /* of each client */
#define OPS_PER_S   UINT64_C(8000)      /* of each client: 3 of 4 are requests */
#define WINDOW      400U                /* requests under way of a client; lanes hold more */
#define DRAIN_MS    20000U

enum {
    WORD_STOP = 0,
    WORD_LOADED = 1, /* clients that are up */
    WORD_READY = 10, /* of each client: links that became READY so far */
    WORD_SENT = 20,  /* of each client */
    WORD_ASKED = 30, /* of each client: requests among those */
    WORD_LIVES = 40, /* of each server: messages that its present life has handled */
};

static struct cluster cluster;
/* How often each number was handled; and answered, for requests. */
static _Atomic uint8_t *handled[CLIENTS];
static uint8_t *answered[CLIENTS];

static void *share(size_t size)
{
    void *memory =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

struct work {
    uint64_t client;
    uint64_t number;
};

/* ---- a server ---------------------------------------------------------------------------- */

static struct ringbus *server_bus;
static volatile sig_atomic_t server_stop;

static void on_term(int signal)
{
    (void)signal;
    server_stop = 1;
    (void)ringbus_wake(server_bus);
}

static void serve(struct node *node, const struct ringbus_message *message)
{
    struct work work;
    CHECK(message->size == sizeof work);
    memcpy(&work, message->data, sizeof work);
    CHECK(work.client < CLIENTS && work.number < NUMBERS_MAX);
    handled[work.client][work.number]++;
    bus_shared[WORD_LIVES + *(const unsigned *)node->context]++;
    if (message->kind == RINGBUS_KIND_REQUEST) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, &work, sizeof work, 0) == 1);
    }
}

static void server(const struct cluster *at, void *context)
{
    char path[64];
    struct node node = {.on_message = serve, .context = context};
    const struct sigaction action = {.sa_handler = on_term};
    (void)snprintf(path, sizeof path, PEER "/%u", *(const unsigned *)context + 1);
    CHECK(sigaction(SIGTERM, &action, NULL) == 0);
    node_open(&node, at, path);
    server_bus = node.bus;
    while (!server_stop) {
        CHECK(ringbus_poll(node.bus, 64) >= 0);
        CHECK(ringbus_wait(node.bus, -1) >= 0);
    }
    CHECK(ringbus_close(node.bus, DRAIN_MS) == 0);
}

/* ---- a client ---------------------------------------------------------------------------- */

struct client {
    struct node node;
    struct ringbus_addr any;
    uint64_t id;
    uint64_t next; /* number of the next message */
    unsigned pending;
};

static struct client client;

static void on_answer(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    struct work work;
    (void)bus;
    (void)context;
    if (result->outcome != RINGBUS_REPLIED) {
        (void)fprintf(stderr, "request ended with outcome %d, %s\n", (int)result->outcome,
                      ringbus_error_name(result->error));
    }
    CHECK(result->outcome == RINGBUS_REPLIED && result->message->size == sizeof work);
    memcpy(&work, result->message->data, sizeof work);
    CHECK(work.client == client.id && work.number < client.next);
    answered[client.id][work.number]++;
    client.pending--;
}

static void on_client_event(struct node *node, const struct ringbus_event *event)
{
    (void)node;
    CHECK(event->type != RINGBUS_EVENT_UNDELIVERED);
    if (event->type == RINGBUS_EVENT_READY) {
        bus_shared[WORD_READY + client.id]++;
    }
}

/* @return whether it was sent; not when its lane is full */
static bool send_one(void)
{
    const struct work work = {client.id, client.next};
    const bool keyed = client.next % 8 == 1;
    const unsigned flags = keyed ? RINGBUS_KEY : 0U;
    const uint64_t key = keyed ? client.next : 0;
    const bool request = client.next % 4 != 3;
    const int r = request
                      ? ringbus_request(client.node.bus, &client.any, key, &work, sizeof work,
                                        flags, 60000, on_answer, NULL)
                      : ringbus_send(client.node.bus, &client.any, key, &work, sizeof work, flags);
    if (r == RINGBUS_E_FULL) {
        return false;
    }
    if (r != 1) {
        bus_die(__FILE__, __LINE__, ringbus_errmsg(client.node.bus));
    }
    client.pending += request;
    client.next++;
    bus_shared[WORD_ASKED + client.id] += request;
    bus_shared[WORD_SENT + client.id] = client.next;
    return true;
}

static void load(const struct cluster *at, void *context)
{
    client.id = *(const unsigned *)context;
    client.node.on_event = on_client_event;
    node_open(&client.node, at, NULL);
    client.any = node_target(&client.node, PEER, SERVERS, NULL);
    bus_shared[WORD_LOADED]++;
    const uint64_t start_ns = machine_now_ns();
    while (bus_shared[WORD_STOP] == 0) {
        const uint64_t due = (machine_now_ns() - start_ns) * OPS_PER_S / UINT64_C(1000000000);
        while (client.next < due && client.pending < WINDOW && client.next < NUMBERS_MAX) {
            if (!send_one()) {
                break;
            }
        }
        CHECK(ringbus_poll(client.node.bus, 256) >= 0);
        CHECK(ringbus_wait(client.node.bus, 1) >= 0);
    }
    RUN_UNTIL(client.pending == 0, NODE_MS, &client.node);
    CHECK(ringbus_close(client.node.bus, NODE_MS) == 0);
}

/* ---- the operator ------------------------------------------------------------------------ */

static unsigned numbers[SERVERS] = {0, 1, 2};
static pid_t servers[SERVERS];

static void ctl(const struct cluster *at, void *context)
{
    char *const *arguments = context;
    (void)at;
    (void)execv(RINGBUSCTL_PATH, arguments);
    _exit(127);
}

static int run_ctl(const char *command, unsigned index)
{
    char path[64];
    (void)snprintf(path, sizeof path, PEER "/%u", index + 1);
    char *const arguments[] = {(char *)(uintptr_t) "ringbusctl",
                               (char *)(uintptr_t)command,
                               (char *)(uintptr_t) "--timeout",
                               (char *)(uintptr_t) "20s",
                               (char *)(uintptr_t) "--socket",
                               cluster.socket,
                               path,
                               NULL};
    return child_wait(child_start(ctl, &cluster, (void *)(uintptr_t)arguments), 30000);
}

static void until(unsigned word, uint64_t value)
{
    const uint64_t deadline_ms = test_now_ms() + 20000;
    while (bus_shared[word] < value) {
        assert_true(test_now_ms() < deadline_ms);
        test_sleep_ms(1);
    }
}

static void stop_by_signal(unsigned index)
{
    assert_int_equal(kill(servers[index], SIGTERM), 0);
    assert_int_equal(child_wait(servers[index], 30000), 0);
}

/* What is drained has nothing left to lose. */
static void stop_by_operator(unsigned index)
{
    assert_int_equal(run_ctl("drain", index), 0);
    child_kill(servers[index]);
}

static void restart(unsigned index, void (*stop)(unsigned index))
{
    uint64_t ready[CLIENTS];
    for (unsigned i = 0; i < CLIENTS; i++) {
        ready[i] = bus_shared[WORD_READY + i];
    }
    stop(index);
    bus_shared[WORD_LIVES + index] = 0;
    servers[index] = child_start(server, &cluster, &numbers[index]);
    for (unsigned i = 0; i < CLIENTS; i++) {
        until(WORD_READY + i, ready[i] + 1);
    }
    until(WORD_LIVES + index, FULL_OR(1000U, 200U)); /* it is dispatched to */
}

static void roll(unsigned rounds, void (*stop)(unsigned index))
{
    pid_t clients[CLIENTS];
    uint64_t asked = 0;
    bus_shared_reset();
    for (unsigned i = 0; i < CLIENTS; i++) {
        handled[i] = share(NUMBERS_MAX);
        answered[i] = share(NUMBERS_MAX);
    }
    for (unsigned i = 0; i < SERVERS; i++) {
        servers[i] = child_start(server, &cluster, &numbers[i]);
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        clients[i] = child_start(load, &cluster, &numbers[i]);
    }
    until(WORD_LOADED, CLIENTS);
    const uint64_t start_ms = test_now_ms();
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < SERVERS; i++) {
            restart(i, stop);
        }
    }
    const uint64_t ms = test_now_ms() - start_ms;
    bus_shared[WORD_STOP] = 1;
    for (unsigned i = 0; i < CLIENTS; i++) {
        assert_int_equal(child_wait(clients[i], 30000), 0);
    }
    for (unsigned i = 0; i < SERVERS; i++) {
        stop_by_signal(i);
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        asked += bus_shared[WORD_ASKED + i];
        assert_true(bus_shared[WORD_SENT + i] < NUMBERS_MAX);
        for (uint64_t n = 0; n < bus_shared[WORD_SENT + i]; n++) {
            assert_int_equal(handled[i][n], 1);
            assert_int_equal(answered[i][n], n % 4 != 3);
        }
        assert_int_equal(munmap((void *)(uintptr_t)handled[i], NUMBERS_MAX), 0);
        assert_int_equal(munmap(answered[i], NUMBERS_MAX), 0);
    }
    (void)printf("%u restarts in %llu ms, %llu requests, %llu a second\n", rounds * SERVERS,
                 (unsigned long long)ms, (unsigned long long)asked,
                 (unsigned long long)(asked * 1000 / (ms + 1)));
    if (machine_full()) {
        assert_true(asked * 1000 / (ms + 1) >= 10000);
    }
}

static void test_restart_by_signal(void **state)
{
    struct leak_daemon before;
    (void)state;
    roll(1, stop_by_signal); /* the daemon's tables have their size */
    assert_int_equal(leak_daemon_read(&cluster, &before), 0);
    roll(FULL_OR(20U, 3U), stop_by_signal);
    assert_true(leak_daemon_wait(&cluster, &before, LEAK_SLACK_KIB, NODE_MS));
}

static void test_restart_by_operator(void **state)
{
    (void)state;
    roll(FULL_OR(20U, 2U), stop_by_operator);
}

/* Not a restart: an instance is taken out, and put back as it is. */
static void put_back(unsigned index)
{
    assert_int_equal(run_ctl("drain", index), 0);
    const uint64_t seen = bus_shared[WORD_LIVES + index];
    for (unsigned i = 0; i < CLIENTS; i++) {
        until(WORD_SENT + i, bus_shared[WORD_SENT + i] + 100);
    }
    assert_int_equal(bus_shared[WORD_LIVES + index], seen); /* nothing was dispatched to it */
    assert_int_equal(run_ctl("undrain", index), 0);
    stop_by_signal(index);
}

static void test_take_out_and_put_back(void **state)
{
    (void)state;
    roll(1, put_back);
}

static int setup(void **state)
{
    (void)state;
    return cluster_up(&cluster, "quota: {connects: 100000}\n");
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
        cmocka_unit_test(test_restart_by_signal),
        cmocka_unit_test(test_restart_by_operator),
        cmocka_unit_test(test_take_out_and_put_back),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
