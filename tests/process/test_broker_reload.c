/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a broker is read again at SIGHUP (scenario 128): all of it or nothing, under load and
 * without losing a message; what is not shown any more ends in order. And its start: wrong files,
 * daemons that are not there yet.
 */
#include "broker_process.h"

#define AREA    "/game/eu/pc/w1/"
#define TIMEOUT 10000U

static struct cluster cluster;
static struct broker broker;
static struct node gate, one, two;

static void serve(struct node *node, const struct ringbus_message *message)
{
    CHECK(ringbus_reply(node->bus, &message->reply_to, message->data, message->size, 0) == 1);
}

static const char *file(const char *exports)
{
    static char config[2048];
    (void)snprintf(config, sizeof config,
                   "sides:\n"
                   "  - {name: bus, socket: %s, path: " AREA "edge/broker/b1}\n"
                   "exports:\n%s",
                   cluster.socket, exports);
    return config;
}

#define ONE  "  - {id: one, from: bus, to: bus, match: " AREA "inner/one, as: " AREA "shown/one}\n"
#define TWO  "  - {id: two, from: bus, to: bus, match: " AREA "inner/two, as: " AREA "shown/two}\n"
#define STAR "  - {id: all, from: bus, to: bus, match: " AREA "inner/*, as: " AREA "seen/*}\n"

static unsigned reloads(void)
{
    return broker_log_count(&broker, "event=broker_reload");
}

/* Requests to @p to go on all the time, and none is lost. */
static void reload(const char *config, const char *event, const struct ringbus_addr *to)
{
    const unsigned before = reloads();
    unsigned answered = gate.replies[RINGBUS_REPLIED];
    broker_configure(&broker, config);
    CHECK(kill(broker.pid, SIGHUP) == 0);
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    while (reloads() == before) {
        CHECK(test_now_ms() < deadline_ms);
        CHECK(ringbus_request(gate.bus, to, 0, "x", 1, 0, TIMEOUT, node_on_result, &gate) == 1);
        answered++;
        RUN_UNTIL(gate.replies[RINGBUS_REPLIED] == answered, NODE_MS, &gate, &one, &two);
    }
    assert_int_equal(broker_log_count(&broker, event), before + 1);
}

static void ask(const char *path)
{
    const unsigned before = gate.replies[RINGBUS_REPLIED];
    struct ringbus_addr to;
    CHECK(ringbus_target(gate.bus, path, NULL, &to) == 0);
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    while (gate.replies[RINGBUS_REPLIED] == before) {
        CHECK(test_now_ms() < deadline_ms);
        const unsigned failed = gate.replies[RINGBUS_NOT_SENT];
        if (ringbus_request(gate.bus, &to, 0, "x", 1, 0, TIMEOUT, node_on_result, &gate) == 1) {
            RUN_UNTIL(gate.replies[RINGBUS_REPLIED] > before ||
                          gate.replies[RINGBUS_NOT_SENT] > failed,
                      NODE_MS, &gate, &one, &two);
        }
        nodes_step((struct node *const[]){&gate, &one, &two}, 3);
    }
}

static void wait_gone(const char *path)
{
    RUN_UNTIL(ringbus_instances(gate.bus, path, NULL, 0) <= 0, NODE_MS, &gate, &one, &two);
}

static void test_changes(void **state)
{
    (void)state;
    struct ringbus_addr to;
    one.on_message = two.on_message = serve;
    node_open(&one, &cluster, AREA "inner/one/1");
    node_open(&two, &cluster, AREA "inner/two/1");
    node_open(&gate, &cluster, AREA "gate/gate/1");
    broker_start(&broker, &cluster, "broker", file(ONE));
    ask(AREA "shown/one");
    CHECK(ringbus_resolve(AREA "shown/one", &to) == 0);
    assert_true(ringbus_instances(gate.bus, AREA "shown/two", NULL, 0) <= 0);

    /* One more; the first goes on. */
    reload(file(ONE TWO), "event=broker_reloaded ", &to);
    ask(AREA "shown/two");
    /* By a star, of who is there already. */
    reload(file(ONE TWO STAR), "event=broker_reloaded ", &to);
    ask(AREA "seen/one");
    ask(AREA "seen/two");
    /* The second is shown no more, the others are; what it stood for is still needed. */
    reload(file(ONE STAR), "event=broker_reloaded ", &to);
    wait_gone(AREA "shown/two");
    ask(AREA "seen/two");
    /* And back, under the same name. */
    reload(file(TWO ONE), "event=broker_reloaded ", &to);
    wait_gone(AREA "seen/one");
    wait_gone(AREA "seen/two");
    ask(AREA "shown/two");
    /* What nobody needs is no target any more. */
    reload(file(ONE), "event=broker_reloaded ", &to);
    wait_gone(AREA "shown/two");
    RUN_UNTIL(node_stats(&two).links == 0, NODE_MS, &gate, &one, &two);
    node_close(&gate);
    node_close(&one);
    node_close(&two);
    broker_kill(&broker);
}

/* Wrong, half, or about what a broker cannot change while it runs: all stays as it was. */
static void test_what_is_not_taken(void **state)
{
    (void)state;
    static const char *const wrong[] = {"exports: [", "", "sides: []\n", NULL};
    struct ringbus_addr to;
    one.on_message = serve;
    node_open(&one, &cluster, AREA "inner/one/1");
    node_open(&two, &cluster, AREA "inner/two/1");
    node_open(&gate, &cluster, AREA "gate/gate/1");
    broker_start(&broker, &cluster, "broker2", file(ONE));
    ask(AREA "shown/one");
    CHECK(ringbus_resolve(AREA "shown/one", &to) == 0);
    for (unsigned i = 0; wrong[i] != NULL; i++) {
        reload(wrong[i], "event=broker_reload_failed ", &to);
    }
    char other[2048];
    (void)snprintf(other, sizeof other, "%s", file(ONE TWO));
    char *name = strstr(other, "broker/b1");
    CHECK(name != NULL);
    name[8] = '2';
    reload(other, "event=broker_reload_failed ", &to);
    assert_int_equal(broker_log_count(&broker, "why=sides"), 1);
    assert_true(ringbus_instances(gate.bus, AREA "shown/two", NULL, 0) <= 0);
    /* A hundred of them at once. */
    broker_configure(&broker, file(ONE TWO));
    for (unsigned i = 0; i < 100; i++) {
        CHECK(kill(broker.pid, SIGHUP) == 0);
    }
    two.on_message = serve;
    ask(AREA "shown/two");
    ask(AREA "shown/one");
    node_close(&gate);
    node_close(&one);
    node_close(&two);
    broker_kill(&broker);
}

static int run_broker(const char *const *arguments)
{
    const pid_t pid = fork();
    if (pid == 0) {
        const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        (void)dup2(null, STDOUT_FILENO);
        (void)dup2(null, STDERR_FILENO);
        (void)execv(RINGBUS_BROKER_PATH, (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    return child_wait(pid, NODE_MS);
}

static void test_start(void **state)
{
    (void)state;
    char path[128];
    (void)snprintf(path, sizeof path, "%s/start.yaml", cluster.folder);
    const struct broker at = {.pid = 0};
    struct broker file_of = at;
    (void)snprintf(file_of.config, sizeof file_of.config, "%s", path);
    broker_configure(&file_of, file(ONE));
    assert_int_equal(run_broker((const char *[]){"b", "--config", path, "--check", NULL}), 0);
    broker_configure(&file_of, file("  - {id: one}\n"));
    assert_int_equal(run_broker((const char *[]){"b", "--config", path, "--check", NULL}), 1);
    assert_int_equal(run_broker((const char *[]){"b", "--config", path, NULL}), 1);
    assert_int_equal(run_broker((const char *[]){"b", "--config", "/nowhere", NULL}), 1);
    assert_int_equal(run_broker((const char *[]){"b", NULL}), 2);
    assert_int_equal(run_broker((const char *[]){"b", "--unknown", NULL}), 2);
    assert_int_equal(run_broker((const char *[]){"b", "--version", NULL}), 0);
    assert_int_equal(run_broker((const char *[]){"b", "--help", NULL}), 0);
}

/* The daemon of a side comes later than the broker. */
static void test_daemon_that_comes_later(void **state)
{
    (void)state;
    CHECK(cluster_stop(&cluster) == 0);
    (void)snprintf(broker.config, sizeof broker.config, "%s/later.yaml", cluster.folder);
    (void)snprintf(broker.log, sizeof broker.log, "%s/later.log", cluster.folder);
    broker_configure(&broker, file(ONE));
    broker.pid = fork();
    if (broker.pid == 0) {
        broker_become(&broker);
    }
    CHECK(broker.pid > 0);
    broker_log_wait(&broker, "event=broker_not_open", 1);
    CHECK(cluster_start(&cluster) == 0);
    broker_log_wait(&broker, "event=broker_ready", 1);
    one.on_message = serve;
    node_open(&one, &cluster, AREA "inner/one/1");
    node_open(&two, &cluster, NULL);
    node_open(&gate, &cluster, NULL);
    ask(AREA "shown/one");
    node_close(&gate);
    node_close(&two);
    node_close(&one);
    broker_stop(&broker, NULL, NULL);
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
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_what_is_not_taken),
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_daemon_that_comes_later),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
