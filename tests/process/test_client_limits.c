/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios 69, 72, 79: what the kernel grants, and options out of their range. */
#include "support/bus.h"
#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define PEER   "/game/eu/pc/w1/core/peer"
#define PEER_1 PEER "/1"

static struct cluster cluster;

/* ---- options --------------------------------------------------------------------------------- */

static int open_with(struct ringbus_options *options)
{
    struct ringbus *bus = NULL;
    const int r = ringbus_open(options, &bus);
    if (r == 0) {
        CHECK(ringbus_close(bus, 0) == 0);
    } else {
        CHECK(bus == NULL); /* written on success only */
        CHECK(strlen(ringbus_errmsg(NULL)) > 0);
    }
    return r;
}

static void test_options_out_of_range(void **state)
{
    (void)state;
    char long_text[2000];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    const unsigned fds = bus_fd_count();
    for (unsigned i = 0; i < 24; i++) {
        struct ringbus_options o = node_options(&cluster, NULL);
        int expected = RINGBUS_E_ARGUMENT;
        switch (i) {
        case 0:
            o.struct_size = 0;
            break;
        case 1:
            o.struct_size = 1 << 20;
            break;
        case 2:
            o.lane_bytes = 2048;
            break;
        case 3:
            o.lane_bytes = 5000;
            break;
        case 4:
            o.lane_bytes = 1U << 27;
            break;
        case 5:
            o.inline_max = 65536;
            break;
        case 6:
            o.refs_per_link = 8;
            break;
        case 7:
            o.refs_per_link = 100;
            break;
        case 8:
            o.refs_per_link = 1U << 17;
            break;
        case 9:
            o.pool[0].chunk_bytes = 0;
            o.pool[0].count = 1;
            break;
        case 10:
            o.pool[0].chunk_bytes = UINT32_MAX;
            o.pool[0].count = 1;
            break;
        case 11:
            o.pool[0].chunk_bytes = 64;
            o.pool[0].count = 65537;
            break;
        case 12:
            o.pool[0].chunk_bytes = 128;
            o.pool[0].count = 1;
            o.pool[1].chunk_bytes = 64;
            o.pool[1].count = 1;
            break;
        case 13:
            o.weight = 1001;
            break;
        case 14:
            o.spin_us = 2000000;
            break;
        case 15:
            o.mode = (enum ringbus_mode)7;
            break;
        case 16:
            o.ping_interval_ms = 5;
            break;
        case 17:
            o.ping_interval_ms = 60001;
            break;
        case 18:
            o.ping_misses = 101;
            break;
        case 19:
            o.set = long_text;
            break;
        case 20:
            o.token = long_text;
            break;
        case 21:
            o.path = "/game/eu/pc/w1/core/peer";
            expected = RINGBUS_E_PATH;
            break;
        case 22:
            o.path = long_text;
            expected = RINGBUS_E_PATH;
            break;
        default:
            o.path = "/game/../pc/w1/core/peer/1";
            expected = RINGBUS_E_PATH;
            break;
        }
        assert_int_equal(open_with(&o), expected);
    }
    assert_int_equal(ringbus_open(NULL, NULL), RINGBUS_E_ARGUMENT);
    assert_int_equal(bus_fd_count(), fds);
    assert_int_equal(bus_map_count(), 0);
    /* The extremes that are allowed. */
    struct ringbus_options o = node_options(&cluster, NULL);
    o.lane_bytes = 4096;
    o.refs_per_link = 16;
    o.pool[0].chunk_bytes = 1;
    o.pool[0].count = 1;
    o.weight = RINGBUS_WEIGHT_NONE;
    o.ping_interval_ms = 10;
    o.ping_misses = 100;
    assert_int_equal(open_with(&o), 0);
}

/* Scenario 79: longer than the kernel takes. */
static void test_socket_paths(void **state)
{
    (void)state;
    const size_t lengths[] = {106, 107, 108, 200, 4000};
    for (unsigned i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        char path[4096];
        struct ringbus_options o = node_options(&cluster, NULL);
        memset(path, 'y', sizeof path);
        memcpy(path, "/tmp/", 5);
        path[lengths[i]] = '\0';
        o.socket = path;
        const int r = open_with(&o);
        if (lengths[i] <= 107) {
            assert_int_equal(r, RINGBUS_E_NO_DAEMON);
            assert_non_null(strstr(ringbus_errmsg(NULL), path));
        } else {
            assert_int_equal(r, RINGBUS_E_ARGUMENT);
            assert_non_null(strstr(ringbus_errmsg(NULL), "107"));
        }
    }
    /* One of exactly 107 bytes works: the same socket by a longer way. */
    char path[128];
    struct ringbus_options o = node_options(&cluster, NULL);
    size_t at = (size_t)snprintf(path, sizeof path, "%s/", cluster.folder);
    while (at + strlen("bus.sock") < 107) {
        path[at++] = '/';
    }
    (void)snprintf(path + at, sizeof path - at, "bus.sock");
    assert_int_equal(strlen(path), 107);
    o.socket = path;
    assert_int_equal(open_with(&o), 0);
}

static void test_nobody_listens(void **state)
{
    (void)state;
    char path[128];
    struct ringbus_options o = node_options(&cluster, NULL);
    (void)snprintf(path, sizeof path, "%s/nobody", cluster.folder);
    o.socket = path;
    o.connect_timeout_ms = 200;
    assert_int_equal(open_with(&o), RINGBUS_E_NO_DAEMON);
    const int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
    assert_int_equal(open_with(&o), RINGBUS_E_NO_DAEMON);
    (void)unlink(path);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Scenario 69: refused at open, with what is needed and what there is. */
static void test_pool_larger_than_memory(void **state)
{
    (void)state;
    struct rlimit limit;
    struct ringbus_options o = node_options(&cluster, NULL);
    /* More than the machine has, unless it is very large. */
    for (unsigned i = 0; i < 3; i++) {
        o.pool[i].chunk_bytes = (1U << 30) - (2 - i) * 64;
        o.pool[i].count = 1;
    }
    const uint64_t have = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    if (have < (UINT64_C(3) << 30)) {
        assert_int_equal(open_with(&o), RINGBUS_E_NO_MEMORY);
        assert_non_null(strstr(ringbus_errmsg(NULL), "available"));
    }
    /* A limit of address space. */
    assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
#if TEST_SCALE == 1
    struct rlimit low = limit;
    low.rlim_cur = 100U << 20;
    memset(o.pool, 0, sizeof o.pool);
    o.pool[0].chunk_bytes = 128U << 20;
    o.pool[0].count = 1;
    assert_int_equal(setrlimit(RLIMIT_AS, &low), 0);
    const int r = open_with(&o);
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    assert_int_equal(r, RINGBUS_E_NO_MEMORY);
#endif
    assert_int_equal(bus_map_count(), 0);
}

/* A file size limit would end the process by SIGXFSZ. */
static void test_file_size_limit(void **state)
{
    (void)state;
    struct rlimit limit;
    struct ringbus_options o = node_options(&cluster, NULL);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    struct rlimit low = limit;
    low.rlim_cur = 100000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    const int r = open_with(&o);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_true(r == RINGBUS_E_SYSTEM || r == RINGBUS_E_NO_MEMORY);
}

/* Scenario 72: nothing needs locked memory. */
static void without_locked_memory(const struct cluster *at, void *context)
{
    struct node a = {0};
    struct node b = {0};
    const struct rlimit none = {0, 0};
    (void)context;
    CHECK(setrlimit(RLIMIT_MEMLOCK, &none) == 0);
    node_open(&b, at, PEER_1);
    node_open(&a, at, NULL);
    node_target(&a, PEER, 1, &b);
    CHECK(ringbus_send(a.bus, &a.peer, 0, "x", 1, 0) == 1);
    RUN_UNTIL(b.messages == 1, NODE_MS, &a, &b);
    node_close(&a);
    node_close(&b);
}

static void test_no_locked_memory(void **state)
{
    (void)state;
    assert_int_equal(child_wait(child_start(without_locked_memory, &cluster, NULL), 20000), 0);
}

/* ---- mappings -------------------------------------------------------------------------------- */

#define MAPS_MAX 200000U /* some systems allow more than anybody wants to make */

static void *taken_maps[MAPS_MAX];

/* Takes every mapping that the process may still make. @return how many */
static unsigned take_mappings(void)
{
    unsigned count = 0;
    while (count < MAPS_MAX) {
        /* Neighbours of different protection are not merged. */
        void *page = mmap(NULL, RBI_PAGE, count % 2 == 0 ? PROT_READ : PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) {
            break;
        }
        taken_maps[count++] = page;
    }
    return count;
}

/*
 * An idle link is there, but what its first message needs cannot be mapped: the sender is
 * told at once, the receiver ends the link, and the sender learns what was not delivered.
 */
static void without_mappings(const struct cluster *at, void *context)
{
    struct node a = {0};
    struct node b = {0};
    struct ringbus_loan loan;
    (void)context;
    node_open(&b, at, PEER_1);
    node_open(&a, at, NULL);
    node_target(&a, PEER, 1, &b);
    RUN_UNTIL(b.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &a, &b);
    CHECK(ringbus_send(a.bus, &a.peer, 0, "x", 1, 0) == 1);
    RUN_UNTIL(b.messages == 1, NODE_MS, &a, &b);
    CHECK(ringbus_loan(a.bus, 1, &loan) == 0);
    const unsigned count = take_mappings();
    if (count == MAPS_MAX) {
        exit(77);
    }
    CHECK(ringbus_send(b.bus, &b.peer, 0, "x", 1, 0) == RINGBUS_E_NO_MEMORY);
    CHECK(ringbus_send_loan(a.bus, &a.peer, 0, &loan, 1, 0) == 1);
    RUN_UNTIL(b.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &a, &b);
    CHECK(b.reason == RINGBUS_REASON_NO_RESOURCES && b.messages == 1);
    RUN_UNTIL(a.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &a, &b);
    CHECK(a.reason == RINGBUS_REASON_NO_RESOURCES);
    CHECK(a.events[RINGBUS_EVENT_UNDELIVERED] == 1);
    for (unsigned i = 0; i < count; i++) {
        CHECK(munmap(taken_maps[i], RBI_PAGE) == 0);
    }
    /* As before as soon as there are mappings again. */
    RUN_UNTIL(a.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &a, &b);
    RUN_UNTIL(b.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &a, &b);
    CHECK(ringbus_send_loan(a.bus, &a.peer, 0, &loan, 1, 0) == 1);
    CHECK(ringbus_send(b.bus, &b.peer, 0, "x", 1, 0) == 1);
    RUN_UNTIL(a.messages == 1 && b.messages == 2, NODE_MS, &a, &b);
    node_close(&a);
    node_close(&b);
}

static void test_no_mappings(void **state)
{
    (void)state;
    if (TEST_SCALE > 1) {
        skip(); /* a sanitizer needs mappings of its own */
    }
    const int ended = child_wait(child_start(without_mappings, &cluster, NULL), 30000);
    if (ended == 77) {
        skip();
    }
    assert_int_equal(ended, 0);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static void set_descriptors(unsigned more)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = bus_fd_count() + more;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

static void few_descriptors(const struct cluster *at, void *context)
{
    struct node b = {0};
    struct ringbus_options options = node_options(at, NULL);
    unsigned opened = 0;
    unsigned failed = 0;
    (void)context;
    node_open(&b, at, PEER_1);
    struct rlimit before;
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    const unsigned fds = bus_fd_count();
    for (unsigned more = 0; more < 24; more++) {
        struct ringbus *bus = NULL;
        set_descriptors(more);
        const int r = ringbus_open(&options, &bus);
        CHECK(r == 0 || r == RINGBUS_E_NO_FDS);
        opened += r == 0;
        failed += r != 0;
        if (r == 0) {
            /* Opened with what there is; a link may lack what it needs, and says so. */
            CHECK(ringbus_target(bus, PEER, NULL, NULL) == 0);
            for (unsigned i = 0; i < 50; i++) {
                CHECK(ringbus_poll(bus, 10) >= 0);
                CHECK(ringbus_poll(b.bus, 10) >= 0);
                CHECK(ringbus_wait(bus, 1) >= 0);
                CHECK(ringbus_wait(b.bus, 0) >= 0);
            }
            CHECK(ringbus_close(bus, 0) == 0);
        }
        CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
        RUN_UNTIL(bus_fd_count() == fds, NODE_MS, &b);
    }
    CHECK(opened > 0 && failed > 0);
    /* As before as soon as there are descriptors again. */
    struct node a = {0};
    node_open(&a, at, NULL);
    node_target(&a, PEER, 1, &b);
    node_close(&a);
    node_close(&b);
}

static void test_few_descriptors(void **state)
{
    (void)state;
    assert_int_equal(child_wait(child_start(few_descriptors, &cluster, NULL), 30000), 0);
}

/* Descriptors run out while introducing, and come back: the link is made without our doing. */
static void descriptors_come_back(const struct cluster *at, void *context)
{
    struct node a = {0};
    struct node b = {0};
    struct rlimit before;
    (void)context;
    node_open(&b, at, PEER_1);
    node_open(&a, at, NULL);
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    set_descriptors(1);
    CHECK(ringbus_target(a.bus, PEER, NULL, NULL) == 0);
    RUN_UNTIL(a.events[RINGBUS_EVENT_LINK_FAILED] > 0, NODE_MS, &a, &b);
    CHECK(a.error == RINGBUS_E_NO_FDS && a.reason == RINGBUS_REASON_NO_RESOURCES);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    RUN_UNTIL(a.events[RINGBUS_EVENT_READY] > 0, NODE_MS, &a, &b);
    node_close(&a);
    node_close(&b);
}

static void test_descriptors_come_back(void **state)
{
    (void)state;
    assert_int_equal(child_wait(child_start(descriptors_come_back, &cluster, NULL), 30000), 0);
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
        cmocka_unit_test(test_options_out_of_range),
        cmocka_unit_test(test_socket_paths),
        cmocka_unit_test(test_nobody_listens),
        cmocka_unit_test(test_pool_larger_than_memory),
        cmocka_unit_test(test_file_size_limit),
        cmocka_unit_test(test_no_locked_memory),
        cmocka_unit_test(test_no_mappings),
        cmocka_unit_test(test_few_descriptors),
        cmocka_unit_test(test_descriptors_come_back),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
