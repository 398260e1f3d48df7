/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 121: services that live shortly, each with a name of its own. What the daemon keeps of
 * them, and the series that a monitoring system gets, do not grow with how many there have been.
 */
#include "support/cluster.h"
#include "support/machine.h"
#include "support/raw.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVICES FULL_OR(10000U, 4000U)
#define FILLING  1500U /* after so many everything is kept that is kept at all */
#define INSTANCE "/game/eu/pc/w1/core/lasting/1"

static struct cluster cluster;

/** Kilobytes of memory that the daemon has. */
static unsigned long rss_kb(void)
{
    char path[64];
    char line[128];
    unsigned long kb = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)cluster.pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "VmRSS:", 6) == 0) {
            kb = strtoul(line + 6, NULL, 10);
        }
    }
    (void)fclose(file);
    assert_true(kb > 0);
    return kb;
}

/** Lines of "ringbusctl metrics". @param hits  those with @p text, or NULL */
static unsigned metrics(const char *text, unsigned *hits)
{
    char command[256];
    char line[1024];
    unsigned lines = 0;
    unsigned found = 0;
    (void)snprintf(command, sizeof command, RINGBUSCTL_PATH " metrics --socket %s", cluster.socket);
    FILE *out = popen(command, "r"); /* NOLINT(cert-env33-c): our own words */
    assert_non_null(out);
    while (fgets(line, sizeof line, out) != NULL) {
        assert_non_null(strchr(line, '\n')); /* whole: no line is long */
        lines++;
        found += text != NULL && strstr(line, text) != NULL;
    }
    assert_int_equal(pclose(out), 0);
    if (hits != NULL) {
        *hits = found;
    }
    return lines;
}

/* Half of them in clusters of their own, half as instances of one. */
static void live_shortly(unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        struct raw raw;
        char path[80];
        (void)snprintf(
            path, sizeof path,
            i % 2 == 0 ? "/game/eu/pc/w1/core/short%u/1" : "/game/eu/pc/w1/core/short/%u", i);
        assert_int_equal(raw_up(&raw, cluster.socket, path), 0);
        raw_close(&raw);
    }
}

static void wait_gone(void)
{
    const uint64_t deadline_ms = test_now_ms() + 5000;
    while (raw_status(cluster.socket, "endpoints") > 1) {
        assert_true(test_now_ms() < deadline_ms);
        test_sleep_ms(10);
    }
}

static void test_services_that_live_shortly_leave_nothing(void **state)
{
    (void)state;
    struct raw lasting;
    unsigned hits = 0;
    assert_int_equal(raw_up(&lasting, cluster.socket, INSTANCE), 0);
    /* The first fill what is kept of those that were: clusters, slots that wait, free lists. */
    live_shortly(0, FILLING);
    wait_gone();
    const unsigned lines = metrics(INSTANCE, &hits);
    const unsigned long kb = rss_kb();
    const uint64_t clusters = raw_status(cluster.socket, "clusters");
    const uint64_t directory = raw_status(cluster.socket, "directory_bytes");
    assert_true(hits > 10);
    live_shortly(FILLING, SERVICES);
    wait_gone();
    print_message("%u services: %u lines, %llu clusters, %lu KiB and %lu before\n", SERVICES, lines,
                  (unsigned long long)raw_status(cluster.socket, "clusters"), rss_kb(), kb);
    assert_int_equal(metrics("short", &hits), lines);
    assert_int_equal(hits, 0);
    assert_int_equal(raw_status(cluster.socket, "directory_bytes"), directory);
    assert_true(raw_status(cluster.socket, "clusters") <= clusters + 1);
    if (!TEST_SANITIZED) { /* which keeps what is freed for a while */
        assert_true(rss_kb() <= kb + 256);
    }
    raw_close(&lasting);
}

static int up(void **state)
{
    (void)state;
    return cluster_up(&cluster, "daemon: {log_level: error}\n"
                                "quota: {connects: 1000000, user_control: 1000000}\n");
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
        cmocka_unit_test(test_services_that_live_shortly_leave_nothing),
    };
    return cmocka_run_group_tests(tests, up, down);
}
