/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RINGBUS_ON_DOWN_REDELIVER: what an instance that ends did not consume goes to another, in the
 * order of each key, once; and what cannot go is given back.
 */
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

static void take_numbered(struct node *node, const struct ringbus_message *message)
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

static void take_back(struct node *node, const struct ringbus_event *event)
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

static void reset(void)
{
    bus_shared_reset();
    memset(sent, 0, sizeof sent);
    memset(got, 0, sizeof got);
    memset(&given_back_to, 0, sizeof given_back_to);
    given_back = given_back_seen = flagged = 0;
    answers = false;
}

static uint64_t sum(const uint64_t *of)
{
    uint64_t all = 0;
    for (unsigned i = 0; i < KEYS; i++) {
        all += of[i];
    }
    return all;
}

/* ---- the one that ends ---------------------------------------------------------------------- */

static void handle_or_die(struct node *node, const struct ringbus_message *message)
{
    (void)node;
    (void)message;
    if (atomic_fetch_add(&bus_shared[WORD_HANDLED], 1) + 1 ==
        atomic_load(&bus_shared[WORD_DIE_AT])) {
        (void)kill(getpid(), SIGKILL);
    }
}

static void note_given_up(struct node *node, const struct ringbus_event *event)
{
    (void)node;
    if (event->type == RINGBUS_EVENT_DOWN && event->reason == RINGBUS_REASON_GIVEN_UP) {
        atomic_fetch_add(&bus_shared[WORD_GIVEN_UP], 1);
    }
}

/* Becomes READY; reads when told to, and dies in a handler. */
static void be_third(const struct cluster *at, void *context)
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

static pid_t open_all(const struct setting *setting)
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

static void close_all(void)
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

static int send_numbered(uint64_t key, size_t size, unsigned flags)
{
    static unsigned char bytes[20000];
    const struct numbered numbered = {.key = key, .number = sent[key]};
    memcpy(bytes, &numbered, sizeof numbered);
    const int r = ringbus_send(client.bus, &any, key, bytes, size, RINGBUS_KEY | flags);
    sent[key] += r == 1;
    return r;
}

static int request_numbered(uint64_t key, unsigned flags, uint32_t timeout_ms)
{
    const struct numbered numbered = {.key = key, .number = sent[key]};
    const int r = ringbus_request(client.bus, &any, key, &numbered, sizeof numbered,
                                  RINGBUS_KEY | flags, timeout_ms, node_on_result, &client);
    sent[key] += r == 1;
    return r;
}

static bool all_had(void)
{
    return sum(got) == sum(sent);
}

/* ---- what goes on --------------------------------------------------------------------------- */

/* Small, large, in parts, requests, loans: each key in order, to two others. */
static void test_unread_messages_go_to_the_others(void **state)
{
    (void)state;
    const struct setting setting = {.living = 2, .on_down = RINGBUS_ON_DOWN_REDELIVER};
    const pid_t pid = open_all(&setting);
    uint64_t requests = 0;
    answers = true;
    for (unsigned round = 0; round < 6; round++) {
        for (uint64_t key = 0; key < KEYS; key++) {
            if ((round + key) % 16 == 3) {
                (void)send_numbered(key, 12000, 0); /* no matter if no chunk is left */
            } else if ((round + key) % 4 == 1) {
                assert_int_equal(request_numbered(key, 0, 60000), 1);
                requests++;
            } else if ((round + key) % 4 == 2) {
                const struct numbered numbered = {.key = key, .number = sent[key]};
                const struct ringbus_part parts[] = {{&numbered, 3},
                                                     {(const char *)&numbered + 3, 13}};
                assert_int_equal(ringbus_sendv(client.bus, &any, key, parts, 2, RINGBUS_KEY), 1);
                sent[key]++;
            } else {
                assert_int_equal(send_numbered(key, 16 + key, 0), 1);
            }
        }
    }
    child_kill(pid);
    RUN_UNTIL(client.events[RINGBUS_EVENT_DOWN] == 1 && all_had() &&
                  client.replies[RINGBUS_REPLIED] == requests,
              NODE_MS, &client, &workers[0], &workers[1]);
    assert_memory_equal(got, sent, sizeof got);
    assert_int_equal(given_back, 0);
    assert_int_equal(flagged, 0);
    const struct ringbus_stats stats = node_stats(&client);
    assert_true(stats.redelivered > 0 && stats.redelivered < sum(sent));
    assert_int_equal(stats.undelivered, 0);
    assert_int_equal(stats.sent, sum(sent)); /* each counts once */
    assert_int_equal(stats.late_replies, 0);
    RUN_UNTIL(node_pool_used(&client) == 0, NODE_MS, &client, &workers[0], &workers[1]);
    close_all();
}

/* While the rest waits for room nothing new passes it, and the sender is told so. */
static void test_later_messages_do_not_overtake(void **state)
{
    (void)state;
    const struct setting setting = {.living = 1,
                                    .on_down = RINGBUS_ON_DOWN_REDELIVER,
                                    .redeliver_ms = 60000,
                                    .lane_bytes = 8192};
    const pid_t pid = open_all(&setting);
    unsigned full = 0;
    for (uint64_t key = 0; full < 2 * KEYS; key = (key + 1) % KEYS) {
        const int r = send_numbered(key, sizeof(struct numbered), 0);
        assert_true(r == 1 || r == RINGBUS_E_FULL);
        full = r == 1 ? 0 : full + 1; /* both lanes are full now */
    }
    child_kill(pid);
    RUN_UNTIL(client.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &client);
    const uint64_t refused = node_stats(&client).full;
    assert_int_equal(send_numbered(0, sizeof(struct numbered), 0), RINGBUS_E_FULL);
    assert_int_equal(ringbus_send(client.bus, &any, 0, "", 0, 0), RINGBUS_E_FULL);
    assert_int_equal(request_numbered(0, 0, 1000), RINGBUS_E_FULL);
    assert_int_equal(node_stats(&client).full, refused + 3);
    assert_non_null(strstr(ringbus_errmsg(client.bus), "another first"));
    /* Offered again and again, as a sender does that has more. */
    const uint64_t until = sum(sent) + 500;
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    for (uint64_t key = 0; sum(sent) < until; key = (key + 1) % KEYS) {
        const int r = send_numbered(key, sizeof(struct numbered), 0);
        assert_true(r == 1 || r == RINGBUS_E_FULL);
        if (r != 1) {
            assert_true(test_now_ms() < deadline_ms);
            assert_true(ringbus_poll(workers[0].bus, 16) >= 0);
            assert_true(ringbus_wait(client.bus, 1) >= 0);
            assert_true(ringbus_poll(client.bus, 16) >= 0);
        }
    }
    RUN_UNTIL(all_had(), NODE_MS, &client, &workers[0]);
    assert_int_equal(given_back, 0);
    assert_true(node_stats(&client).redelivered > 0);
    close_all();
}

/* Nobody is left: they wait for the next instance, under whatever address. */
static void test_waits_for_an_instance(void **state)
{
    (void)state;
    for (unsigned same = 0; same < 2; same++) {
        const struct setting setting = {.on_down = RINGBUS_ON_DOWN_REDELIVER,
                                        .redeliver_ms = 60000};
        const pid_t pid = open_all(&setting);
        for (unsigned i = 0; i < 100; i++) {
            assert_int_equal(send_numbered(i % KEYS, i % 10 == 3 ? 12000 : 40, 0), 1);
        }
        answers = true;
        assert_int_equal(request_numbered(0, 0, 60000), 1);
        assert_int_equal(request_numbered(1, 0, 100), 1);
        sent[1]--; /* its time will be over */
        child_kill(pid);
        RUN_UNTIL(client.replies[RINGBUS_NOT_SENT] == 1, NODE_MS, &client);
        assert_int_equal(client.reply_error, RINGBUS_E_TIMEOUT);
        assert_int_equal(client.events[RINGBUS_EVENT_DOWN], 1);
        assert_int_equal(given_back, 0);
        assert_int_equal(send_numbered(5, 40, 0), RINGBUS_E_FULL);
        workers[0].on_message = take_numbered;
        node_open(&workers[0], &cluster, same == 1 ? WORKERS "/3" : WORKERS "/1");
        RUN_UNTIL(all_had() && client.replies[RINGBUS_REPLIED] == 1, NODE_MS, &client, &workers[0]);
        assert_int_equal(node_stats(&client).redelivered, 101);
        RUN_UNTIL(send_numbered(5, 40, 0) == 1, NODE_MS, &client, &workers[0]);
        RUN_UNTIL(all_had() && node_pool_used(&client) == 0, NODE_MS, &client, &workers[0]);
        assert_int_equal(given_back, 0);
        close_all();
    }
}

/*
 * What had gone on to a second that ends as well, before all of the first one's had: the first
 * messages of a key are the second's by now, the last ones still the first's.
 */
static void two_end(bool third_first)
{
    static char fourth[] = WORKERS "/4";
    const struct setting setting = {
        .on_down = RINGBUS_ON_DOWN_REDELIVER, .redeliver_ms = 60000, .lane_bytes = 8192};
    const pid_t third = open_all(&setting);
    const pid_t pid = child_start(be_third, &cluster, fourth);
    RUN_UNTIL(client.events[RINGBUS_EVENT_READY] == 2 && atomic_load(&bus_shared[WORD_READY]) == 2,
              NODE_MS, &client);
    /* So many for each as leave room for some of the other's. */
    unsigned count = 0;
    for (uint64_t key = 0; count < 140; key = (key + 1) % KEYS, count++) {
        assert_int_equal(send_numbered(key, sizeof(struct numbered), 0), 1);
    }
    child_kill(third_first ? third : pid);
    RUN_UNTIL(client.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &client);
    const uint64_t moved = node_stats(&client).redelivered;
    assert_true(moved > 0);
    assert_int_equal(send_numbered(0, sizeof(struct numbered), 0),
                     RINGBUS_E_FULL); /* the rest waits */
    child_kill(third_first ? pid : third);
    RUN_UNTIL(client.events[RINGBUS_EVENT_DOWN] == 2, NODE_MS, &client);
    workers[0].on_message = take_numbered;
    node_open(&workers[0], &cluster, WORKERS "/1");
    RUN_UNTIL(all_had(), NODE_MS, &client, &workers[0]);
    assert_memory_equal(got, sent, sizeof got);
    assert_int_equal(given_back, 0);
    assert_int_equal(node_stats(&client).redelivered, moved + count);
    close_all();
}

static void test_two_end_one_after_the_other(void **state)
{
    (void)state;
    two_end(true);
    two_end(false);
}

/*
 * One that is stopped has begun one message at most when it is given up. All others go on, the
 * idempotent and the rest alike; when it wakes it sees none of them, and learns from the DOWN
 * that it was given up.
 */
static void test_a_stopped_one_sees_nothing_that_went_on(void **state)
{
    (void)state;
    const struct setting setting = {
        .living = 1, .on_down = RINGBUS_ON_DOWN_REDELIVER, .ping_ms = 100};
    const pid_t pid = open_all(&setting);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    workers[0].on_message = NULL;
    for (uint64_t key = 0; key < KEYS; key++) {
        const unsigned flags = key % 2 == 0 ? RINGBUS_IDEMPOTENT : 0;
        assert_int_equal(send_numbered(key, sizeof(struct numbered), flags), 1);
    }
    RUN_UNTIL(client.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &client, &workers[0]);
    assert_int_equal(client.reason, RINGBUS_REASON_SILENT);
    assert_true(node_stats(&client).redelivered > 1);
    assert_true(given_back <= 1);
    assert_int_equal(given_back_seen, given_back);
    RUN_UNTIL(workers[0].messages == KEYS - given_back, NODE_MS, &client, &workers[0]);
    atomic_store(&bus_shared[WORD_GO], 1);
    assert_int_equal(kill(pid, SIGCONT), 0);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_GIVEN_UP]) == 1, NODE_MS, &client, &workers[0]);
    /* It comes back under its address, in the same life. */
    RUN_UNTIL(client.events[RINGBUS_EVENT_READY] == 3, NODE_MS, &client, &workers[0]);
    assert_true(atomic_load(&bus_shared[WORD_HANDLED]) <= given_back);
    child_kill(pid);
    close_all();
}

/* Draining waits for what goes on to another as well. */
static void test_close_drains_what_waits(void **state)
{
    (void)state;
    static char fourth[] = WORKERS "/4";
    const struct setting setting = {
        .on_down = RINGBUS_ON_DOWN_REDELIVER, .redeliver_ms = 60000, .lane_bytes = 8192};
    const pid_t third = open_all(&setting);
    const pid_t pid = child_start(be_third, &cluster, fourth);
    RUN_UNTIL(client.events[RINGBUS_EVENT_READY] == 2 && atomic_load(&bus_shared[WORD_READY]) == 2,
              NODE_MS, &client);
    unsigned full = 0;
    for (uint64_t key = 0; full < 2 * KEYS; key = (key + 1) % KEYS) {
        const int r = send_numbered(key, sizeof(struct numbered), 0);
        assert_true(r == 1 || r == RINGBUS_E_FULL);
        full = r == 1 ? 0 : full + 1;
    }
    child_kill(third);
    RUN_UNTIL(client.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &client);
    atomic_store(&bus_shared[WORD_GO], 1);
    assert_int_equal(ringbus_close(client.bus, NODE_MS), 0);
    assert_int_equal(atomic_load(&bus_shared[WORD_HANDLED]), sum(sent));
    assert_int_equal(given_back, 0);
    child_kill(pid);
}

/* ---- what does not -------------------------------------------------------------------------- */

/* Nobody comes in time: given back, and the cluster is free again. */
static void test_gives_back_when_nobody_comes(void **state)
{
    (void)state;
    const struct setting setting = {.on_down = RINGBUS_ON_DOWN_REDELIVER, .redeliver_ms = 50};
    const pid_t pid = open_all(&setting);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(send_numbered(i % KEYS, i % 10 == 3 ? 12000 : 40, 0), 1);
    }
    assert_int_equal(request_numbered(0, 0, 60000), 1);
    child_kill(pid);
    RUN_UNTIL(given_back == 100 && client.replies[RINGBUS_NOT_SENT] == 1, NODE_MS, &client);
    assert_int_equal(client.reply_error, RINGBUS_E_PEER_GONE);
    assert_int_equal(given_back_seen, 0);
    assert_int_equal(given_back_to.instance, RINGBUS_ANY);
    assert_int_equal(given_back_to.cluster, any.cluster);
    assert_int_equal(node_stats(&client).undelivered, 101);
    assert_int_equal(node_stats(&client).redelivered, 0);
    assert_int_equal(send_numbered(5, 40, 0), RINGBUS_E_NO_INSTANCE);
    close_all();
}

/* For one instance, or for all: nobody else's. Without the option nothing goes on. */
static void test_addressed_otherwise_is_given_back(void **state)
{
    (void)state;
    struct setting setting = {.living = 1, .on_down = RINGBUS_ON_DOWN_REDELIVER};
    for (unsigned way = 0; way < 3; way++) {
        setting.on_down = way == 2 ? RINGBUS_ON_DOWN_REPORT : RINGBUS_ON_DOWN_REDELIVER;
        const pid_t pid = open_all(&setting);
        struct ringbus_addr to = any;
        to.instance = way == 0 ? 3 : way == 1 ? RINGBUS_ALL : RINGBUS_ANY;
        const struct numbered numbered = {.key = 0};
        unsigned offered = 0;
        /* Without a key they go to each in turn. */
        for (unsigned i = 0; i < (way == 2 ? 2U : 1U); i++) {
            offered += (unsigned)ringbus_send(client.bus, &to, 0, &numbered, sizeof numbered, 0);
        }
        workers[0].on_message = NULL;
        child_kill(pid);
        RUN_UNTIL(client.events[RINGBUS_EVENT_DOWN] == 1, NODE_MS, &client, &workers[0]);
        assert_int_equal(given_back, 1);
        assert_int_equal(given_back_seen, 0);
        assert_int_equal(given_back_to.instance, to.instance);
        assert_int_equal(given_back_to.incarnation, 0);
        assert_int_equal(node_stats(&client).redelivered, 0);
        RUN_UNTIL(workers[0].messages == offered - 1, NODE_MS, &client, &workers[0]);
        close_all();
    }
}

/* ---- what may have been seen ---------------------------------------------------------------- */

/*
 * Dies in the handler of one message out of many: what it had handled comes nowhere again, that
 * one only if it may be handled twice, the rest goes on. Exactly one is in doubt.
 */
static void die_in_handler(unsigned flags)
{
    const struct setting setting = {.living = 1, .on_down = RINGBUS_ON_DOWN_REDELIVER};
    const pid_t pid = open_all(&setting);
    enum { COUNT = 300, DIE_AT = 100 };
    /* One key, whose owner is the one that dies. */
    uint64_t key = 0;
    for (; key < KEYS; key++) {
        assert_int_equal(send_numbered(key, sizeof(struct numbered), flags), 1);
        for (unsigned i = 0; i < 50 && got[key] == 0; i++) {
            assert_true(ringbus_poll(workers[0].bus, 10) >= 0); /* each lane within a few */
        }
        if (got[key] == 0) {
            break;
        }
    }
    assert_true(key < KEYS);
    for (uint64_t i = 1; i < COUNT; i++) {
        assert_int_equal(send_numbered(key, sizeof(struct numbered), flags), 1);
    }
    /* What the dead one had handled does not come again: the others begin behind it. */
    got[key] = (flags & RINGBUS_IDEMPOTENT) != 0 ? DIE_AT - 1 : DIE_AT;
    atomic_store(&bus_shared[WORD_DIE_AT], DIE_AT);
    atomic_store(&bus_shared[WORD_GO], 1);
    assert_int_equal(child_wait(pid, NODE_MS), 128 + SIGKILL);
    RUN_UNTIL(client.events[RINGBUS_EVENT_DOWN] == 1 && got[key] == COUNT, NODE_MS, &client,
              &workers[0]);
    const bool twice = (flags & RINGBUS_IDEMPOTENT) != 0;
    assert_int_equal(node_stats(&client).redelivered, COUNT - DIE_AT + (twice ? 1 : 0));
    assert_int_equal(given_back, twice ? 0 : 1);
    assert_int_equal(given_back_seen, twice ? 0 : 1);
    assert_int_equal(flagged, twice ? 1 : 0);
    close_all();
}

static void test_the_one_in_the_handler_is_given_back(void **state)
{
    (void)state;
    die_in_handler(0);
}

static void test_idempotent_one_in_the_handler_goes_on(void **state)
{
    (void)state;
    die_in_handler(RINGBUS_IDEMPOTENT);
}

/* A message that ends whoever handles it is tried on two instances, not on all. */
static void test_a_deadly_message_ends_two(void **state)
{
    (void)state;
    static char names[3][40] = {WORKERS "/1", WORKERS "/2", WORKERS "/4"};
    const struct setting setting = {.on_down = RINGBUS_ON_DOWN_REDELIVER, .redeliver_ms = 60000};
    pid_t pids[4];
    pids[3] = open_all(&setting);
    for (unsigned i = 0; i < 3; i++) {
        pids[i] = child_start(be_third, &cluster, names[i]);
    }
    RUN_UNTIL(client.events[RINGBUS_EVENT_READY] == 4 && atomic_load(&bus_shared[WORD_READY]) == 4,
              NODE_MS, &client);
    assert_int_equal(request_numbered(1, RINGBUS_IDEMPOTENT, 60000), 1);
    atomic_store(&bus_shared[WORD_DIE_AT], 1);
    atomic_store(&bus_shared[WORD_GO], 1);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_HANDLED]) == 1, NODE_MS, &client);
    atomic_store(&bus_shared[WORD_DIE_AT], 2);
    RUN_UNTIL(client.replies[RINGBUS_UNKNOWN] == 1, NODE_MS, &client);
    assert_int_equal(client.reply_error, RINGBUS_E_PEER_GONE);
    assert_int_equal(atomic_load(&bus_shared[WORD_HANDLED]), 2);
    assert_int_equal(client.events[RINGBUS_EVENT_DOWN], 2);
    assert_int_equal(node_stats(&client).redelivered, 1);
    for (unsigned i = 0; i < 4; i++) {
        child_kill(pids[i]);
    }
    close_all();
}

/* ---- options -------------------------------------------------------------------------------- */

static void test_options(void **state)
{
    (void)state;
    node_open(&client, &cluster, NULL);
    struct ringbus_target_options options = {.struct_size = sizeof options};
    options.on_down = (enum ringbus_on_down)2;
    assert_int_equal(ringbus_target(client.bus, WORKERS, &options, NULL), RINGBUS_E_ARGUMENT);
    options.on_down = RINGBUS_ON_DOWN_REDELIVER;
    options.redeliver_ms = 60001;
    assert_int_equal(ringbus_target(client.bus, WORKERS, &options, NULL), RINGBUS_E_ARGUMENT);
    options.redeliver_ms = 60000;
    assert_int_equal(ringbus_target(client.bus, WORKERS, &options, NULL), 0);
    /* A caller that does not know them yet. */
    options.struct_size = offsetof(struct ringbus_target_options, on_down);
    options.redeliver_ms = 60001;
    assert_int_equal(ringbus_target(client.bus, WORKERS, &options, NULL), 0);
    options.struct_size--;
    assert_int_equal(ringbus_target(client.bus, WORKERS, &options, NULL), RINGBUS_E_ARGUMENT);
    node_close(&client);
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
        cmocka_unit_test(test_unread_messages_go_to_the_others),
        cmocka_unit_test(test_later_messages_do_not_overtake),
        cmocka_unit_test(test_waits_for_an_instance),
        cmocka_unit_test(test_two_end_one_after_the_other),
        cmocka_unit_test(test_a_stopped_one_sees_nothing_that_went_on),
        cmocka_unit_test(test_close_drains_what_waits),
        cmocka_unit_test(test_gives_back_when_nobody_comes),
        cmocka_unit_test(test_addressed_otherwise_is_given_back),
        cmocka_unit_test(test_the_one_in_the_handler_is_given_back),
        cmocka_unit_test(test_idempotent_one_in_the_handler_goes_on),
        cmocka_unit_test(test_a_deadly_message_ends_two),
        cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
