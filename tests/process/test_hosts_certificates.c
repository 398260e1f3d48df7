/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 115: two hosts joined by TLS, numbered messages both ways, while certificates are
 * renewed in place, revoked, not renewed, and come back. Each number comes once and in order, no
 * link ends for it; who has no certificate any more is cut off within the time that is promised.
 */
#include "daemon/bridge/tls.h"
#include "support/certs.h"
#include "support/hosts.h"
#include "support/machine.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PER_SECOND 2000U

static struct hosts hosts;
static struct certs_authority *authority;
static char folder[64];
static const char *const names[2] = {"alpha", "beta"};

/** One direction. */
struct flow {
    struct node node; /* who gets it */
    struct ringbus_addr addr;
    uint64_t sent;
    uint64_t next;
    unsigned wrong;
};
static struct flow flows[2]; /* [i]: to host i */
static uint64_t start_ms;
static uint64_t paused_ms; /* in which nothing was due */

/* ---- certificates ---------------------------------------------------------------------- */

static const char *file_of(unsigned host, const char *what)
{
    static char paths[4][96];
    static unsigned next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof(paths[0]), "%s/%s.%s", folder, names[host], what);
    return path;
}

static long issue(unsigned host, long life_s)
{
    return certs_issue(authority, names[host], -60, life_s, file_of(host, "pem"),
                       file_of(host, "key"));
}

/* ---- traffic --------------------------------------------------------------------------- */

static void on_numbered(struct node *node, const struct ringbus_message *message)
{
    struct flow *flow = node->context;
    uint64_t number = 0;
    memcpy(&number, message->data, sizeof(number));
    flow->wrong += number != flow->next;
    flow->next = number + 1;
}

static void send_due(struct flow *flow, struct node *from)
{
    const uint64_t due = (test_now_ms() - start_ms - paused_ms) * PER_SECOND / 1000;
    for (unsigned burst = 0; flow->sent < due && burst < 500; burst++) {
        unsigned char bytes[100] = {0};
        memcpy(bytes, &flow->sent, sizeof(flow->sent));
        const int result = ringbus_send(from->bus, &flow->addr, 0, bytes, sizeof(bytes), 0);
        if (result != 1) {
            CHECK(result == RINGBUS_E_FULL);
            return;
        }
        flow->sent++;
    }
}

static void step(void)
{
    struct node *const nodes[] = {&flows[0].node, &flows[1].node};
    send_due(&flows[0], &flows[1].node);
    send_due(&flows[1], &flows[0].node);
    nodes_step(nodes, 2);
}

static bool all_came(void)
{
    return flows[0].next == flows[0].sent && flows[1].next == flows[1].sent;
}

/** What was sent until now comes, once and in order, and no link has ended. */
static void check_all(void)
{
    const uint64_t from_ms = test_now_ms();
    RUN_UNTIL(all_came(), 60000, &flows[0].node, &flows[1].node);
    paused_ms += test_now_ms() - from_ms;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(flows[i].wrong, 0);
        assert_int_equal(flows[i].node.events[RINGBUS_EVENT_DOWN], 0);
        assert_int_equal(flows[i].node.events[RINGBUS_EVENT_UNDELIVERED], 0);
        assert_int_equal(flows[i].node.events[RINGBUS_EVENT_GAP], 0);
    }
}

static void run_until(time_t end)
{
    while (time(NULL) < end) {
        step();
    }
}

static void run_until_joined(bool joined)
{
    const uint64_t until_ms = test_now_ms() + 20000;
    while (hosts_joined(&hosts, 0, 1) != joined || hosts_joined(&hosts, 1, 0) != joined) {
        step();
        CHECK(test_now_ms() < until_ms);
    }
}

/* ---- hosts ----------------------------------------------------------------------------- */

static void up(long life_s)
{
    char path[128];
    char secure[2][600];
    struct hosts_options options = {.count = 2, .bridge = "  unreachable_after: 60s"};
    (void)snprintf(folder, sizeof(folder), "/tmp/ringbus-certs-XXXXXX");
    CHECK(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/ca.pem", folder);
    authority = certs_authority("authority", path);
    for (unsigned i = 0; i < 2; i++) {
        issue(i, life_s);
        certs_revoke(authority, 0, file_of(i, "crl"));
        (void)snprintf(secure[i], sizeof(secure[i]),
                       "  certificate: %s\n  key: %s\n  ca: %s\n  crl: %s", file_of(i, "pem"),
                       file_of(i, "key"), path, file_of(i, "crl"));
        options.secure_of[i] = secure[i];
    }
    hosts_up(&hosts, &options);
    memset(flows, 0, sizeof(flows));
    for (unsigned i = 0; i < 2; i++) {
        char name[64];
        (void)snprintf(name, sizeof(name), "/Game/eu/pc/w1/core/side%u/1", i);
        flows[i].node = (struct node){.on_message = on_numbered, .context = &flows[i]};
        node_open(&flows[i].node, &hosts.host[i].cluster, name);
    }
    for (unsigned i = 0; i < 2; i++) {
        char name[64];
        (void)snprintf(name, sizeof(name), "/Game/eu/pc/w1/core/side%u/1", i);
        CHECK(ringbus_target(flows[1 - i].node.bus, name, NULL, &flows[i].addr) == 0);
    }
    struct node *const a = &flows[0].node;
    struct node *const b = &flows[1].node;
    RUN_UNTIL(a->events[RINGBUS_EVENT_READY] > 0 && b->events[RINGBUS_EVENT_READY] > 0, NODE_MS, a,
              b);
    start_ms = test_now_ms();
    paused_ms = 0;
}

static int tear_down(void **state)
{
    char command[96];
    (void)state;
    hosts_down(&hosts);
    certs_authority_free(authority);
    authority = NULL;
    (void)snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command); /* NOLINT(concurrency-mt-unsafe) */
}

static void close_nodes(void)
{
    node_close(&flows[0].node);
    node_close(&flows[1].node);
}

static void test_renewal_in_place_loses_nothing(void **state)
{
    (void)state;
    const long life = FULL_OR(20, 6);
    const time_t begin = time(NULL);
    up(life);
    run_until(begin + life / 2);
    issue(0, 3600);
    issue(1, 3600);
    run_until(begin + life + 2); /* those of the beginning are over */
    assert_true(hosts_joined(&hosts, 0, 1) && hosts_joined(&hosts, 1, 0));
    check_all();
    for (unsigned i = 0; i < 2; i++) {
        assert_true(hosts_log_count(&hosts, i, "certificates_loaded") >= 1);
        assert_int_equal(hosts_log_count(&hosts, i, "it was not renewed"), 0);
    }
    assert_true(flows[0].sent > PER_SECOND && flows[1].sent > PER_SECOND);
    close_nodes();
}

static void test_who_is_revoked_or_not_renewed_is_cut_off_and_comes_back(void **state)
{
    (void)state;
    up(3600);
    run_until(time(NULL) + 1);
    /* Revoked at one end: noticed by itself, said why, and refused from then on. */
    certs_revoke(authority, issue(1, 3600) - 1, file_of(0, "crl"));
    (void)remove(file_of(1, "pem")); /* it has no other yet */
    run_until_joined(false);
    run_until(time(NULL) + 1);
    assert_true(hosts_log_count(&hosts, 0, "certificate revoked") >= 1);
    assert_false(hosts_joined(&hosts, 0, 1));
    /* Another one: what waited goes on, nothing is lost, and the same links. */
    const long life = FULL_OR(20, 4);
    const time_t issued = time(NULL);
    issue(1, life);
    run_until_joined(true);
    check_all();
    /* Not renewed: over within the time that is promised. */
    while (hosts_joined(&hosts, 0, 1)) {
        step();
        assert_true(time(NULL) <= issued + life + RBI_TLS_EXPIRY_MS / 1000 + 1);
    }
    assert_true(time(NULL) >= issued + life);
    run_until_joined(false);
    assert_true(hosts_log_count(&hosts, 0, "it was not renewed") +
                    hosts_log_count(&hosts, 1, "it was not renewed") >=
                1);
    issue(1, 3600);
    run_until_joined(true);
    check_all();
    close_nodes();
}

/** "lapse": who has no certificate any more; else renewal. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_renewal_in_place_loses_nothing, tear_down),
    };
    const struct CMUnitTest lapses[] = {
        cmocka_unit_test_teardown(test_who_is_revoked_or_not_renewed_is_cut_off_and_comes_back,
                                  tear_down),
    };
    if (argc > 1 && strcmp(argv[1], "lapse") == 0) {
        return cmocka_run_group_tests(lapses, NULL, NULL);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
