/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_PROCESS_CLIENT_REDELIVER_H
#define RINGBUS_TESTS_PROCESS_CLIENT_REDELIVER_H
/* Workers that end with messages unread, and a client whose messages go on to the others. */
#include "support/bus.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORKERS "/game/eu/pc/w1/core/worker"
#define KEYS    64U

static struct cluster cluster;
static struct node client;
static struct node workers[2]; /* in this process: those that live on */

enum { WORD_READY, WORD_GO, WORD_HANDLED, WORD_DIE_AT, WORD_GIVEN_UP };

/* ---- messages: key, number within the key, what tells them apart ---------------------------- */

struct numbered {
    uint64_t key;
    uint64_t number;
};

static uint64_t sent[KEYS];
static uint64_t got[KEYS];
static uint64_t given_back;
static uint64_t given_back_seen;
static struct ringbus_addr given_back_to;
static uint64_t flagged; /* messages with RINGBUS_MESSAGE_REDELIVERED */
static bool answers;
static struct ringbus_kept *kept;

static inline void take_numbered(struct node *node, const struct ringbus_message *message)
{
    struct numbered numbered;
    CHECK(message->size >= sizeof numbered);
    memcpy(&numbered, message->data, sizeof numbered);
    CHECK(message->key == numbered.key && numbered.key < KEYS);
    CHECK(numbered.number == got[numbered.key]); /* each once, and in order */
    got[numbered.key]++;
    flagged += (message->flags & RINGBUS_MESSAGE_REDELIVERED) != 0;
    if (message->kind == RINGBUS_KIND_REQUEST && answers) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, &numbered, sizeof numbered, 0) == 1);
    }
}

static inline void take_back(struct node *node, const struct ringbus_event *event)
{
    struct ringbus_addr self;
    if (event->type != RINGBUS_EVENT_UNDELIVERED) {
        return;
    }
    CHECK(ringbus_self(node->bus, &self) == 0);
    CHECK(memcmp(&event->message->from, &self, sizeof self) == 0);
    CHECK(event->error == RINGBUS_E_PEER_GONE);
    given_back++;
    given_back_seen += event->maybe_seen != 0;
    given_back_to = event->to;
    if (kept == NULL) {
        CHECK(ringbus_keep(node->bus, event->message, &kept) == 0);
        CHECK(kept->size == event->message->size &&
              memcmp(kept->data, event->message->data, kept->size) == 0);
    }
}

static inline void reset(void)
{
    bus_shared_reset();
    memset(sent, 0, sizeof sent);
    memset(got, 0, sizeof got);
    memset(&given_back_to, 0, sizeof given_back_to);
    given_back = given_back_seen = flagged = 0;
    answers = false;
}

static inline uint64_t sum(const uint64_t *of)
{
    uint64_t all = 0;
    for (unsigned i = 0; i < KEYS; i++) {
        all += of[i];
    }
    return all;
}

/* ---- the one that ends ---------------------------------------------------------------------- */

static inline void handle_or_die(struct node *node, const struct ringbus_message *message)
{
    (void)node;
    (void)message;
    if (atomic_fetch_add(&bus_shared[WORD_HANDLED], 1) + 1 ==
        atomic_load(&bus_shared[WORD_DIE_AT])) {
        (void)kill(getpid(), SIGKILL);
    }
}

static inline void note_given_up(struct node *node, const struct ringbus_event *event)
{
    (void)node;
    if (event->type == RINGBUS_EVENT_DOWN && event->reason == RINGBUS_REASON_GIVEN_UP) {
        atomic_fetch_add(&bus_shared[WORD_GIVEN_UP], 1);
    }
}

/* Becomes READY; reads when told to, and dies in a handler. */
static inline void be_third(const struct cluster *at, void *context)
{
    static struct node node = {.on_message = handle_or_die, .on_event = note_given_up};
    const char *path = context;
    node_open(&node, at, path);
    RUN_UNTIL(node.events[RINGBUS_EVENT_READY] > 0, NODE_MS, &node);
    atomic_fetch_add(&bus_shared[WORD_READY], 1);
    while (atomic_load(&bus_shared[WORD_GO]) == 0) {
        test_sleep_ms(1);
    }
    for (;;) {
        CHECK(ringbus_poll(node.bus, 1000) >= 0);
        CHECK(ringbus_wait(node.bus, 1000) >= 0);
    }
}

/* ---- a client and its workers --------------------------------------------------------------- */

struct setting {
    unsigned living; /* workers in this process */
    enum ringbus_on_down on_down;
    uint32_t redeliver_ms;
    uint32_t lane_bytes;
    uint32_t ping_ms; /* with a single miss */
};

static struct ringbus_addr any;

static inline pid_t open_all(const struct setting *setting)
{
    reset();
    for (unsigned i = 0; i < setting->living; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, WORKERS "/%u", i + 1);
        workers[i].on_message = take_numbered;
        node_open(&workers[i], &cluster, path);
    }
    static char third[] = WORKERS "/3";
    const pid_t pid = child_start(be_third, &cluster, third);
    struct ringbus_options options = node_options(&cluster, NULL);
    options.lane_bytes = setting->lane_bytes;
    options.refs_per_link = 64;
    client.on_event = take_back;
    node_open_with(&client, &options);
    const struct ringbus_target_options target = {.struct_size = sizeof target,
                                                  .on_down = setting->on_down,
                                                  .redeliver_ms = setting->redeliver_ms,
                                                  .ping_interval_ms = setting->ping_ms,
                                                  .ping_misses = setting->ping_ms != 0 ? 1 : 0};
    assert_int_equal(ringbus_target(client.bus, WORKERS, &target, &any), 0);
    RUN_UNTIL(client.events[RINGBUS_EVENT_READY] == setting->living + 1 &&
                  atomic_load(&bus_shared[WORD_READY]) == 1,
              NODE_MS, &client, &workers[0], &workers[1]);
    return pid;
}

static inline void close_all(void)
{
    if (kept != NULL) {
        assert_int_equal(ringbus_release(client.bus, kept), 0);
        kept = NULL;
    }
    assert_int_equal(node_pool_used(&client), 0);
    node_close(&client);
    for (unsigned i = 0; i < 2; i++) {
        if (workers[i].bus != NULL) {
            node_close(&workers[i]);
        }
    }
    memset(workers, 0, sizeof workers);
}

static inline int send_numbered(uint64_t key, size_t size, unsigned flags)
{
    static unsigned char bytes[20000];
    const struct numbered numbered = {.key = key, .number = sent[key]};
    memcpy(bytes, &numbered, sizeof numbered);
    const int r = ringbus_send(client.bus, &any, key, bytes, size, RINGBUS_KEY | flags);
    sent[key] += r == 1;
    return r;
}

static inline int request_numbered(uint64_t key, unsigned flags, uint32_t timeout_ms)
{
    const struct numbered numbered = {.key = key, .number = sent[key]};
    const int r = ringbus_request(client.bus, &any, key, &numbered, sizeof numbered,
                                  RINGBUS_KEY | flags, timeout_ms, node_on_result, &client);
    sent[key] += r == 1;
    return r;
}

static inline bool all_had(void)
{
    return sum(got) == sum(sent);
}

static inline int setup(void **state)
{
    (void)state;
    return cluster_up(&cluster, "{}\n");
}

static inline int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

#endif
