/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shielding under load, all of it real: three instances, callers that ask any of them, the
 * daemon's sweeps. Scenario 90, features 2.4: one that fails 70 % is out within 3 s of
 * virtual time, whatever the share of each caller is, and comes back when it is well.
 */
#include "libclient/internal.h"
#include "support/bus.h"
#include "support/machine.h"
#include "support/raw.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SERVICE  "/game/eu/pc/w1/core/service"
#define SERVERS  3U
#define CALLERS  2U
#define STEP_MS  5U /* between two calls of a caller */
#define SHIELDED 1U /* the second fails */

static struct cluster cluster;

struct server {
    struct node node;
    unsigned fails; /* of ten calls */
    unsigned turn;
    bool silent;
    uint64_t asked;
};

static struct server servers[SERVERS];
static struct node callers[CALLERS];
static struct ringbus_addr to;
static unsigned asked[CALLERS]; /* so many calls were begun */

static void serve(struct node *node, const struct ringbus_message *message)
{
    struct server *server = node->context;
    server->asked++;
    if (message->kind != RINGBUS_KIND_REQUEST || server->silent) {
        return;
    }
    if (server->turn++ % 10 < server->fails) {
        CHECK(ringbus_reply_error(node->bus, &message->reply_to, "broken") == 1);
    } else {
        CHECK(ringbus_reply(node->bus, &message->reply_to, "ok", 2, 0) == 1);
    }
}

static void poll_all(void)
{
    struct node *const all[] = {&servers[0].node, &servers[1].node, &servers[2].node, &callers[0],
                                &callers[1]};
    nodes_step(all, sizeof all / sizeof all[0]);
}

static uint32_t health_of(unsigned server)
{
    struct rbi_directory_instance all[SERVERS];
    struct rbi_directory_cluster head;
    if (rbi_directory_read(&callers[0].bus->directory, to.cluster, &head, all, SERVERS) !=
            RBI_DIRECTORY_OK ||
        head.instance_count != SERVERS) {
        return UINT32_MAX;
    }
    return all[server].health;
}

static unsigned events(enum ringbus_event_type type)
{
    unsigned most = callers[0].events[type];
    for (unsigned i = 1; i < CALLERS; i++) {
        most = callers[i].events[type] < most ? callers[i].events[type] : most;
    }
    return most;
}

static unsigned ended(const struct node *node)
{
    return node->replies[0] + node->replies[1] + node->replies[2] + node->replies[3];
}

/** Each caller asks any of them, one call after the other, until the condition holds. */
#define CALL_UNTIL(condition, ms)                                                                  \
    do {                                                                                           \
        const uint64_t end_ms_ = test_now_ms() + (ms);                                             \
        while (!(condition)) {                                                                     \
            if (test_now_ms() > end_ms_) {                                                         \
                bus_die(__FILE__, __LINE__, "in time: " #condition);                               \
            }                                                                                      \
            call_step(0);                                                                          \
        }                                                                                          \
    } while (0)

/** @param only  instance that is asked; 0: any */
static void call_step(int32_t only)
{
    static uint64_t next_ms;
    poll_all();
    if (test_now_ms() < next_ms) {
        return;
    }
    next_ms = test_now_ms() + STEP_MS;
    for (unsigned i = 0; i < CALLERS; i++) {
        struct ringbus_addr whom = to;
        whom.instance = only;
        if (asked[i] - ended(&callers[i]) > 50) {
            continue; /* one that answers nothing: its calls end in their time */
        }
        const int r =
            ringbus_request(callers[i].bus, &whom, 0, "hi", 2, 0, 100, node_on_result, &callers[i]);
        CHECK(r == 1 || r == RINGBUS_E_FULL);
        asked[i] += r == 1;
    }
}

static void open_all(int errors_count)
{
    memset(servers, 0, sizeof servers);
    memset(callers, 0, sizeof callers);
    memset(asked, 0, sizeof asked);
    for (unsigned i = 0; i < SERVERS; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, SERVICE "/%u", i + 1);
        servers[i].node.on_message = serve;
        servers[i].node.context = &servers[i];
        node_open(&servers[i].node, &cluster, path);
    }
    for (unsigned i = 0; i < CALLERS; i++) {
        const struct ringbus_target_options options = {.struct_size = sizeof options,
                                                       .errors_count = errors_count};
        node_open(&callers[i], &cluster, NULL);
        CHECK(ringbus_target(callers[i].bus, SERVICE, &options, &to) == 0);
    }
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    while (events(RINGBUS_EVENT_READY) < SERVERS) {
        CHECK(test_now_ms() < deadline_ms);
        poll_all();
    }
}

static void close_all(void)
{
    for (unsigned i = 0; i < CALLERS; i++) {
        node_close(&callers[i]);
    }
    for (unsigned i = 0; i < SERVERS; i++) {
        node_close(&servers[i].node);
    }
}

/** Time that we and the daemon were ready to run and had no core. */
static uint64_t run_delay_ms(void)
{
    return (machine_run_delay_ns(getpid()) + machine_run_delay_ns(cluster.pid)) / RBI_NS_PER_MS;
}

static void test_one_that_fails_70_percent_is_shielded_and_comes_back(void **state)
{
    (void)state;
    open_all(1);
    CALL_UNTIL(servers[SHIELDED].asked > 20, NODE_MS);
    servers[SHIELDED].fails = 7;
    const uint64_t begin_ms = test_now_ms();
    const uint64_t waited_ms = run_delay_ms();
    CALL_UNTIL(health_of(SHIELDED) == RBI_HEALTH_OPEN, NODE_MS);
    const uint64_t took_ms = test_now_ms() - begin_ms;
    const uint64_t delay_ms = run_delay_ms() - waited_ms;
    print_message("shielded after %llu ms, %llu of them without a core\n",
                  (unsigned long long)took_ms, (unsigned long long)delay_ms);
    /*
     * 3 s until the window has seen enough, a second in which callers that met a row of failures
     * avoid it by themselves, a sweep, and what a turn of this test takes.
     */
    assert_true(took_ms < 3000 + 1000 + 250 + 500 + delay_ms);
    CALL_UNTIL(events(RINGBUS_EVENT_SHIELDED) == 1, NODE_MS); /* every caller is told */
    assert_int_equal(health_of(0), RBI_HEALTH_OK);
    /* It gets nothing any more, then one probe after the other: the first finds it silent. */
    RUN_UNTIL(ended(&callers[0]) == asked[0] && ended(&callers[1]) == asked[1], NODE_MS,
              &callers[0], &callers[1], &servers[0].node, &servers[1].node, &servers[2].node);
    const uint64_t before = servers[SHIELDED].asked;
    const unsigned others = ended(&callers[0]) + ended(&callers[1]);
    servers[SHIELDED].silent = true;
    CALL_UNTIL(health_of(SHIELDED) == RBI_HEALTH_HALF_OPEN, NODE_MS);
    CALL_UNTIL(health_of(SHIELDED) == RBI_HEALTH_OPEN, NODE_MS);
    print_message("of %u calls %llu went to it\n", ended(&callers[0]) + ended(&callers[1]) - others,
                  (unsigned long long)(servers[SHIELDED].asked - before));
    assert_true(servers[SHIELDED].asked - before <= 5);
    servers[SHIELDED].silent = false;
    servers[SHIELDED].fails = 0;
    CALL_UNTIL(events(RINGBUS_EVENT_UNSHIELDED) == 1, NODE_MS);
    assert_true(raw_status(cluster.socket, "probes") >= 3);
    assert_true(health_of(SHIELDED) == RBI_HEALTH_RAMP || health_of(SHIELDED) == RBI_HEALTH_OK);
    const uint64_t back = servers[SHIELDED].asked;
    CALL_UNTIL(servers[SHIELDED].asked > back + 20, NODE_MS); /* it has its share again */
    assert_int_equal(events(RINGBUS_EVENT_PANIC), 0);
    close_all();
}

static void test_all_that_never_answer_are_panic_and_all_are_asked(void **state)
{
    (void)state;
    open_all(0);
    for (unsigned i = 0; i < SERVERS; i++) {
        servers[i].silent = true;
    }
    CALL_UNTIL(events(RINGBUS_EVENT_PANIC) == 1, NODE_MS);
    uint64_t before[SERVERS];
    for (unsigned i = 0; i < SERVERS; i++) {
        before[i] = servers[i].asked;
    }
    /* call_step() checks that no request is refused */
    CALL_UNTIL(servers[0].asked > before[0] && servers[1].asked > before[1] &&
                   servers[2].asked > before[2],
               NODE_MS);
    close_all();
}

/** Whether a line of the tool's output holds @p text. */
static bool ctl_says(const char *arguments, const char *text)
{
    char command[512];
    char line[512];
    bool said = false;
    (void)snprintf(command, sizeof command, RINGBUSCTL_PATH " %s --socket %s", arguments,
                   cluster.socket);
    FILE *out = popen(command, "r"); /* NOLINT(cert-env33-c): our own words */
    CHECK(out != NULL);
    while (fgets(line, sizeof line, out) != NULL) {
        said = said || strstr(line, text) != NULL;
    }
    return pclose(out) == 0 && said;
}

/* What is made of one-way messages counts like requests. */
static void test_reports_shield_as_requests_do(void **state)
{
    (void)state;
    open_all(0);
    const uint64_t end_ms = test_now_ms() + NODE_MS;
    while (events(RINGBUS_EVENT_SHIELDED) == 0) {
        CHECK(test_now_ms() < end_ms);
        for (unsigned i = 0; i < SERVERS; i++) {
            const struct ringbus_addr whom = {.cluster = to.cluster, .instance = (int32_t)i + 1};
            CHECK(ringbus_report(callers[0].bus, &whom,
                                 i == SHIELDED ? RINGBUS_REPORT_TIMEOUT : RINGBUS_REPORT_OK,
                                 100) == 0);
        }
        poll_all();
        test_sleep_ms(2);
    }
    assert_int_equal(health_of(SHIELDED), RBI_HEALTH_OPEN);
    assert_true(ctl_says("ls " SERVICE "/2", "shielded"));
    assert_true(ctl_says("show " SERVICE "/2", "shielded: its calls failed too often"));
    assert_true(ctl_says("unshield " SERVICE "/2", "cleared"));
    const uint64_t back_ms = test_now_ms() + NODE_MS;
    while (events(RINGBUS_EVENT_UNSHIELDED) == 0) {
        CHECK(test_now_ms() < back_ms);
        poll_all();
    }
    assert_int_equal(health_of(SHIELDED), RBI_HEALTH_OK);
    close_all();
}

/* A new daemon has measured nothing: nobody stays shielded by the word of the last. */
static void test_shields_end_with_the_daemon(void **state)
{
    (void)state;
    open_all(1);
    servers[SHIELDED].fails = 10;
    CALL_UNTIL(events(RINGBUS_EVENT_SHIELDED) == 1, NODE_MS);
    servers[SHIELDED].fails = 0;
    assert_int_equal(cluster_stop(&cluster), 0);
    CALL_UNTIL(events(RINGBUS_EVENT_DAEMON_LOST) == 1, NODE_MS);
    assert_int_equal(cluster_start(&cluster), 0);
    CALL_UNTIL(events(RINGBUS_EVENT_UNSHIELDED) == 1, NODE_MS);
    CALL_UNTIL(health_of(SHIELDED) == RBI_HEALTH_OK, NODE_MS); /* when all are back */
    assert_int_equal(raw_status(cluster.socket, "shields"), 0);
    close_all();
}

static int up(void **state)
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

/* Two programs: each takes some seconds. */
int main(int argc, char **argv)
{
    const struct CMUnitTest one[] = {
        cmocka_unit_test(test_one_that_fails_70_percent_is_shielded_and_comes_back),
    };
    const struct CMUnitTest more[] = {
        cmocka_unit_test(test_all_that_never_answer_are_panic_and_all_are_asked),
        cmocka_unit_test(test_shields_end_with_the_daemon),
        cmocka_unit_test(test_reports_shield_as_requests_do),
    };
    return argc > 1 && strcmp(argv[1], "more") == 0 ? cmocka_run_group_tests(more, up, down)
                                                    : cmocka_run_group_tests(one, up, down);
}
