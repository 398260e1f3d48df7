/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_PROCESS_CLIENT_NODES_H
#define RINGBUS_TESTS_PROCESS_CLIENT_NODES_H
/*
 * Questions about nodes that wait for their answers, and books of what was told: for the tests of
 * nodes through the library.
 */
#include "support/bus.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEASON "/game/eu/meta/season"
#define BATTLE "/game/eu/pc/w1/core/battle"
#define LEADER BATTLE "/meta/leader"

static const char config[] = "rights: {otherwise: allow}\n"
                             "daemon: {return_time: 1s}\n"
                             "clusters: [{match: " BATTLE ", balance: {rehash_delay: 1m}}]\n"
                             "quota: {nodes: 2000, node_bytes: 1MiB, control: 100000}\n";

static struct cluster cluster;

/* ---- answers --------------------------------------------------------------------------------- */

struct answer {
    unsigned count;
    int error;
    uint64_t revision;
    char text[256];
    bool there;
    enum ringbus_node_kind kind;
    uint64_t node_revision;
    char value[RINGBUS_NODE_VALUE_MAX + 1];
    size_t size;
    int ephemeral;
    char creator[RINGBUS_PATH_MAX + 1];
    uint32_t instances;
    size_t child_count;
    int more;
    char children[8][64]; /* the first ones */
    char last[64];
};

static struct answer answer;

static inline void
on_answer(struct ringbus *bus, const struct ringbus_node_result *result, void *context)
{
    struct answer *to = context;
    const struct ringbus_node *node = result->node;
    const unsigned count = to->count + 1;
    (void)bus;
    memset(to, 0, sizeof *to);
    to->count = count;
    to->error = result->error;
    to->revision = result->revision;
    (void)snprintf(to->text, sizeof to->text, "%s", result->text);
    if (node == NULL) {
        return;
    }
    to->there = true;
    to->kind = node->kind;
    to->node_revision = node->revision;
    memcpy(to->value, node->value, node->size);
    to->size = node->size;
    to->ephemeral = node->ephemeral;
    (void)snprintf(to->creator, sizeof to->creator, "%s", node->creator);
    to->instances = node->instances;
    to->child_count = node->child_count;
    to->more = node->more;
    for (size_t i = 0; i < node->child_count; i++) {
        char *name = i < RBI_ARRAY_SIZE(to->children) ? to->children[i] : to->last;
        (void)snprintf(name, sizeof to->last, "%s", node->children[i]);
        CHECK(i == 0 || strcmp(node->children[i - 1], node->children[i]) < 0);
    }
}

static inline int wait_answer(struct node *node, int r)
{
    const unsigned before = answer.count;
    if (r != 0) {
        return r;
    }
    RUN_UNTIL(answer.count == before + 1, 5000, node);
    return answer.error;
}

static inline int create(struct node *node, const char *path, const char *value, unsigned flags)
{
    return wait_answer(node, ringbus_node_create(node->bus, path, value, strlen(value), flags,
                                                 on_answer, &answer));
}

static inline int set(struct node *node, const char *path, const char *value, uint64_t revision)
{
    return wait_answer(node, ringbus_node_set(node->bus, path, value, strlen(value), revision,
                                              on_answer, &answer));
}

static inline int get(struct node *node, const char *path)
{
    return wait_answer(node, ringbus_node_get(node->bus, path, NULL, on_answer, &answer));
}

static inline int drop(struct node *node, const char *path, uint64_t revision)
{
    return wait_answer(node, ringbus_node_remove(node->bus, path, revision, on_answer, &answer));
}

static inline void check_value(struct node *node, const char *path, const char *value)
{
    assert_int_equal(get(node, path), 0);
    assert_string_equal(answer.value, value);
}

/* ---- events ---------------------------------------------------------------------------------- */

struct told {
    unsigned count[3]; /* by NODE_CREATED, _CHANGED, _REMOVED */
    char path[RINGBUS_PATH_MAX + 1];
    char value[RINGBUS_NODE_VALUE_MAX + 1];
    uint64_t revision;
    int error;
    enum ringbus_reason reason;
};

static inline void on_event(struct node *node, const struct ringbus_event *event)
{
    struct told *told = node->context;
    if (event->type < RINGBUS_EVENT_NODE_CREATED || event->type > RINGBUS_EVENT_NODE_REMOVED) {
        return;
    }
    told->count[event->type - RINGBUS_EVENT_NODE_CREATED]++;
    (void)snprintf(told->path, sizeof told->path, "%s", event->path);
    memset(told->value, 0, sizeof told->value);
    if (event->value != NULL) {
        memcpy(told->value, event->value, event->value_size);
    }
    CHECK(event->revision == 0 || event->revision != told->revision);
    told->revision = event->revision;
    told->error = event->error;
    told->reason = event->reason;
}

static inline void
check_told(const struct told *told, unsigned created, unsigned changed, unsigned removed)
{
    assert_int_equal(told->count[0], created);
    assert_int_equal(told->count[1], changed);
    assert_int_equal(told->count[2], removed);
}

static inline void watcher_open(struct node *node, struct told *told, const char *prefix)
{
    *node = (struct node){.on_event = on_event, .context = told};
    memset(told, 0, sizeof *told);
    node_open(node, &cluster, NULL);
    assert_int_equal(ringbus_watch(node->bus, prefix), 0);
}

/* What was asked before has been read, and so have the events in front of the answer. */
static inline void catch_up(struct node *node)
{
    (void)get(node, "/");
}

/* ---- the bus --------------------------------------------------------------------------------- */

static inline int set_up(void **state)
{
    (void)state;
    bus_shared_reset();
    assert_int_equal(cluster_up(&cluster, config), 0);
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

static struct node a;
static struct node b;

static inline void both_open(const char *path_a, const char *path_b)
{
    a = (struct node){.bus = NULL};
    b = (struct node){.bus = NULL};
    node_open(&a, &cluster, path_a);
    node_open(&b, &cluster, path_b);
}

static inline void both_close(void)
{
    node_close(&a);
    node_close(&b);
}

#define NODES_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
