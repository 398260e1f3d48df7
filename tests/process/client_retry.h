/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_PROCESS_CLIENT_RETRY_H
#define RINGBUS_TESTS_PROCESS_CLIENT_RETRY_H
/* Workers that do as they are told, and a client that asks them. */
#include "libclient/internal.h"
#include "support/bus.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WORKERS     "/game/eu/pc/w1/core/worker"
#define WORKERS_MAX 12U

static struct cluster cluster;
static struct node client;
static struct ringbus_addr any;
static const struct ringbus_part part = {"abc", 3};

/* ---- workers that do as they are told ----------------------------------------------------- */

enum doing {
    DO_ANSWER,
    DO_SHED,
    DO_FAIL,
    DO_NOTHING,
    DO_NOT_OWNER,
    DO_LIMIT,
    DO_NOTHING_THEN_SHED
};

static unsigned turn; /* of NOTHING_THEN_SHED, over all workers */

struct worker {
    struct node node;
    enum doing doing;
    unsigned asked;
    bool diverted;
};

static struct worker workers[WORKERS_MAX];
static unsigned worker_count;

static inline void work(struct node *node, const struct ringbus_message *message)
{
    struct worker *worker = node->context;
    const struct ringbus_reply_to *to = &message->reply_to;
    worker->asked++;
    worker->diverted = (message->flags & RINGBUS_MESSAGE_DIVERTED) != 0;
    CHECK(message->kind == RINGBUS_KIND_REQUEST && message->size == 3);
    CHECK(message->attributes != NULL && memcmp(message->data, "abc", 3) == 0);
    switch (worker->doing) {
    case DO_ANSWER:
        CHECK(ringbus_reply(node->bus, to, "yes", 3, 0) == 1);
        break;
    case DO_SHED:
        CHECK(ringbus_reply_refused(node->bus, to, RINGBUS_E_SHED, 0) == 1);
        break;
    case DO_LIMIT:
        CHECK(ringbus_reply_refused(node->bus, to, RINGBUS_E_LIMITED, 70) == 1);
        break;
    case DO_FAIL:
        CHECK(ringbus_reply_error(node->bus, to, "no") == 1);
        break;
    case DO_NOT_OWNER:
        CHECK(ringbus_drain(node->bus) == 0); /* its keys are another's from here on */
        CHECK(ringbus_reply_refused(node->bus, to, RINGBUS_E_NOT_OWNER, 0) == 1);
        break;
    case DO_NOTHING_THEN_SHED:
        if (turn++ > 0) {
            CHECK(ringbus_reply_refused(node->bus, to, RINGBUS_E_SHED, 0) == 1);
        }
        break;
    case DO_NOTHING:
        break;
    }
}

static inline void step_all(void)
{
    struct node *nodes[WORKERS_MAX + 1] = {&client};
    for (unsigned i = 0; i < worker_count; i++) {
        nodes[i + 1] = &workers[i].node;
    }
    nodes_step(nodes, worker_count + 1);
}

#define UNTIL(condition)                                                                           \
    do {                                                                                           \
        const uint64_t deadline_ms_ = test_now_ms() + NODE_MS;                                     \
        while (!(condition)) {                                                                     \
            CHECK(test_now_ms() < deadline_ms_);                                                   \
            step_all();                                                                            \
        }                                                                                          \
    } while (0)

static inline void open_all(unsigned count, enum ringbus_retry retry, uint32_t tries)
{
    worker_count = count;
    node_open(&client, &cluster, NULL);
    const struct ringbus_target_options options = {
        .struct_size = sizeof options, .retry = retry, .retry_tries = tries};
    assert_int_equal(ringbus_target(client.bus, WORKERS, &options, &any), 0);
    for (unsigned i = 0; i < count; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, WORKERS "/%u", i + 1);
        memset(&workers[i], 0, sizeof workers[i]);
        workers[i].node.on_message = work;
        workers[i].node.context = &workers[i];
        node_open(&workers[i].node, &cluster, path);
    }
    UNTIL(client.events[RINGBUS_EVENT_READY] == count);
}

static inline void close_all(void)
{
    node_close(&client);
    for (unsigned i = 0; i < worker_count; i++) {
        node_close(&workers[i].node);
    }
}

static inline unsigned asked_in_all(void)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < worker_count; i++) {
        sum += workers[i].asked;
    }
    return sum;
}

/* ---- one request -------------------------------------------------------------------------- */

static struct ringbus_result last;
static unsigned ended;
static bool mocked;
static size_t reply_size;

static inline void note(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    (void)bus;
    (void)context;
    last = *result;
    mocked = result->message != NULL && (result->message->flags & RINGBUS_MESSAGE_MOCKED) != 0;
    reply_size = result->message != NULL ? result->message->size : 0;
    ended++;
}

static inline struct ringbus_message_options ordinary(void)
{
    return (struct ringbus_message_options){.struct_size = sizeof(struct ringbus_message_options),
                                            .timeout_ms = 60000};
}

static inline int begin_with(const struct ringbus_message_options *options)
{
    return ringbus_request_with(client.bus, &any, &part, 1, options, note, NULL);
}

static inline void ask_with(const struct ringbus_message_options *options)
{
    const unsigned before = ended;
    assert_int_equal(begin_with(options), 1);
    assert_int_equal(ended, before); /* never from within the call */
    UNTIL(ended == before + 1);
}

static inline void ask(void)
{
    const struct ringbus_message_options options = ordinary();
    ask_with(&options);
}

static inline void all_do(enum doing doing)
{
    for (unsigned i = 0; i < worker_count; i++) {
        workers[i].doing = doing;
    }
}

static inline int setup(void **state)
{
    (void)state;
    /* In turn: the one that refuses is quick about it, and would draw more than its budget. */
    return cluster_up(&cluster, "clusters:\n"
                                "  - {match: \"/**\", balance: {keyless: rr}}\n");
}

static inline int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

#endif
