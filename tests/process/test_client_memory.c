/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios 69 and 71: services in memory cgroups of their own. What a group has no room for
 * is refused at open, with numbers, and nobody is killed for it; the pages of a pool are
 * its owner's, so that a receiver with little memory reads a large one.
 */
#include "support/bus.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PEER   "/game/eu/pc/w1/core/peer"
#define PEER_1 PEER "/1"
#define MIB    (UINT64_C(1) << 20)

#define CHUNKS 64U
#define ROUNDS 5U

static struct cluster cluster;

/* ---- groups -------------------------------------------------------------------------------- */

/* The two versions call the same things by other names. */
static const struct version {
    const char *root;
    const char *limit;
    const char *used;
    const char *events; /* has a line "oom_kill N" */
} versions[] = {
    {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "memory.oom_control"},
    {"/sys/fs/cgroup", "memory.max", "memory.current", "memory.events"},
};

struct group {
    const struct version *version;
    char folder[96];
};

static struct group groups[2];

static bool group_write(const struct group *group, const char *name, uint64_t value)
{
    char path[192];
    char text[32];
    (void)snprintf(path, sizeof path, "%s/%s", group->folder, name);
    const int length = snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    const bool done = fd >= 0 && write(fd, text, (size_t)length) == length;
    return (fd < 0 || close(fd) == 0) && done;
}

static void group_read(const struct group *group, const char *name, char *text, size_t size)
{
    char path[192];
    (void)snprintf(path, sizeof path, "%s/%s", group->folder, name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd >= 0 ? read(fd, text, size - 1) : 0;
    text[length > 0 ? length : 0] = '\0';
    if (fd >= 0) {
        (void)close(fd);
    }
}

static uint64_t group_used(const struct group *group)
{
    char text[64];
    group_read(group, group->version->used, text, sizeof text);
    return strtoull(text, NULL, 10);
}

static uint64_t group_kills(const struct group *group)
{
    char text[512];
    group_read(group, group->version->events, text, sizeof text);
    const char *line = strstr(text, "oom_kill ");
    return line != NULL ? strtoull(line + 9, NULL, 10) : 0;
}

/** Makes a group with so much memory. Skips the test where that is not permitted. */
static void group_make(struct group *group, const char *name, uint64_t limit)
{
    for (unsigned i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        group->version = &versions[i];
        (void)snprintf(group->folder, sizeof group->folder, "%s/ringbus-test-%d-%s",
                       versions[i].root, (int)getpid(), name);
        if (mkdir(group->folder, 0755) != 0) {
            continue;
        }
        if (group_write(group, versions[i].limit, limit)) {
            return;
        }
        (void)rmdir(group->folder);
    }
    print_message("skipped: no right to make a memory cgroup\n");
    skip();
}

static void group_enter(const struct group *group)
{
    CHECK(group_write(group, "cgroup.procs", (uint64_t)getpid()));
}

static void group_remove(struct group *group)
{
    /* Those who were in it may be on their way out still. */
    RUN_UNTIL(rmdir(group->folder) == 0 || errno != EBUSY, NODE_MS, NULL);
    group->folder[0] = '\0';
}

/* ---- a pool larger than the group ---------------------------------------------------------- */

static void open_too_much(const struct cluster *at, void *context)
{
    struct ringbus_options options = node_options(at, PEER_1);
    struct ringbus *bus = NULL;
    unsigned long long needed = 0;
    unsigned long long available = 0;
    group_enter(context);
    const unsigned fds = bus_fd_count();
    options.pool[0] = (struct ringbus_pool_class){1 << 20, 64};
    for (unsigned i = 0; i < 10; i++) {
        CHECK(ringbus_open(&options, &bus) == RINGBUS_E_NO_MEMORY);
        CHECK(sscanf(ringbus_errmsg(NULL), "the pool needs %llu bytes, %llu are available", &needed,
                     &available) == 2);
        CHECK(needed >= 64 * MIB && needed < 66 * MIB && available <= 32 * MIB);
    }
    CHECK(bus_fd_count() == fds && bus_map_count() == 0);
    /* A smaller one works, to its last byte. */
    struct node node = {0};
    options.pool[0].count = 8;
    node_open_with(&node, &options);
    struct ringbus_loan loans[8];
    for (unsigned i = 0; i < 8; i++) {
        CHECK(ringbus_loan(node.bus, 1 << 20, &loans[i]) == 0);
        memset(loans[i].data, 0x5a, 1 << 20);
    }
    for (unsigned i = 0; i < 8; i++) {
        CHECK(ringbus_loan_return(node.bus, &loans[i]) == 0);
    }
    node_close(&node);
}

/* Scenario 69. */
static void test_pool_larger_than_the_group(void **state)
{
    struct group *group = &groups[0];
    (void)state;
    if (TEST_SCALE > 1) {
        skip(); /* a sanitizer has its own idea of memory */
    }
    group_make(group, "small", 32 * MIB);
    const int ended = child_wait(child_start(open_too_much, &cluster, group), 20000);
    const uint64_t kills = group_kills(group);
    group_remove(group);
    assert_int_equal(ended, 0);
    assert_int_equal(kills, 0);
}

/* ---- a receiver with less memory than the pool --------------------------------------------- */

static void read_all(struct node *node, const struct ringbus_message *message)
{
    const unsigned char *bytes = message->data;
    (void)node;
    CHECK(message->size == MIB);
    for (size_t i = 0; i < message->size; i += 512) {
        CHECK(bytes[i] == bytes[0]);
    }
}

static void be_reader(const struct cluster *at, void *context)
{
    static struct node node = {.on_message = read_all};
    struct ringbus_options options = node_options(at, PEER_1);
    group_enter(context);
    options.pool[0] = (struct ringbus_pool_class){64, 16};
    node_open_with(&node, &options);
    while (atomic_load(&bus_shared[1]) == 0) {
        struct node *const nodes[] = {&node};
        nodes_step(nodes, 1);
        atomic_store(&bus_shared[0], node.messages);
    }
    node_close(&node);
}

static void be_writer(const struct cluster *at, void *context)
{
    static struct node node;
    static struct ringbus_loan loans[CHUNKS];
    struct ringbus_options options = node_options(at, NULL);
    group_enter(context);
    options.pool[0] = (struct ringbus_pool_class){1 << 20, CHUNKS};
    node_open_with(&node, &options);
    node_target(&node, PEER, 1, NULL);
    for (unsigned round = 0; round < ROUNDS; round++) {
        /* All chunks at once, so that each page of the pool is written, and read. */
        for (unsigned i = 0; i < CHUNKS; i++) {
            RUN_UNTIL(ringbus_loan(node.bus, MIB, &loans[i]) == 0, NODE_MS, &node);
            memset(loans[i].data, (int)(round + i), MIB);
        }
        for (unsigned i = 0; i < CHUNKS; i++) {
            RUN_UNTIL(ringbus_send_loan(node.bus, &node.peer, 0, &loans[i], MIB, 0) == 1, NODE_MS,
                      &node);
            CHECK(ringbus_loan_return(node.bus, &loans[i]) == 0);
        }
    }
    RUN_UNTIL(atomic_load(&bus_shared[0]) == ROUNDS * CHUNKS, NODE_MS, &node);
    atomic_store(&bus_shared[2], 1);
    RUN_UNTIL(atomic_load(&bus_shared[1]) == 1, NODE_MS, &node);
    node_close(&node);
}

/* Scenario 71. */
static void test_the_sender_pays(void **state)
{
    struct group *reader = &groups[0];
    struct group *writer = &groups[1];
    (void)state;
    if (TEST_SCALE > 1) {
        skip();
    }
    bus_shared_reset();
    group_make(reader, "reader", 8 * MIB);
    group_make(writer, "writer", 160 * MIB);
    const pid_t pids[2] = {child_start(be_reader, &cluster, reader),
                           child_start(be_writer, &cluster, writer)};
    RUN_UNTIL(atomic_load(&bus_shared[2]) == 1, 30000, NULL);
    const uint64_t paid[2] = {group_used(reader), group_used(writer)};
    atomic_store(&bus_shared[1], 1);
    const int ended[2] = {child_wait(pids[0], NODE_MS), child_wait(pids[1], NODE_MS)};
    const uint64_t kills = group_kills(reader) + group_kills(writer);
    group_remove(reader);
    group_remove(writer);
    print_message("the reader has paid %u KiB, the writer %u KiB\n", (unsigned)(paid[0] >> 10),
                  (unsigned)(paid[1] >> 10));
    assert_int_equal(ended[0], 0);
    assert_int_equal(ended[1], 0);
    assert_int_equal(kills, 0);
    assert_true(paid[1] >= CHUNKS * MIB);
    assert_true(paid[0] < 8 * MIB);
}

static int setup(void **state)
{
    (void)state;
    return cluster_up(&cluster, "{}\n");
}

static int teardown(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        (void)rmdir(groups[i].folder); /* of a test that failed */
    }
    cluster_down(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool_larger_than_the_group),
        cmocka_unit_test(test_the_sender_pays),
    };
    return cmocka_run_group_tests_name("memory", tests, setup, teardown);
}
