/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Late replies to many threads, from a server that is killed now and then: none ends another
 * request than its own (scenario 50).
 */
#include "process/client_calls.h"

/* ---- many threads, late replies, a server that is killed ------------------------------------ */

#define THREADS      16U
#define THREAD_CALLS 32U /* under way */
#define TIMEOUT_MS   10U
#define DELAY_MIN_MS 5U
#define DELAY_MS     11U /* 5 to 15 */

struct owed {
    struct ringbus_reply_to to;
    uint64_t nonce;
    uint64_t due_ms;
};

static struct {
    struct owed queue[THREADS * 4096U];
    unsigned first;
    unsigned count;
    uint64_t random;
} owed;

#define OWED_MAX (THREADS * 4096U)

static void owe(struct node *node, const struct ringbus_message *message)
{
    (void)node;
    CHECK(owed.count < OWED_MAX);
    struct owed *entry = &owed.queue[(owed.first + owed.count++) % OWED_MAX];
    entry->to = message->reply_to;
    memcpy(&entry->nonce, message->data, sizeof entry->nonce);
    entry->due_ms = test_now_ms() + DELAY_MIN_MS + bus_random(&owed.random) % DELAY_MS;
}

/* In the order in which they came: a later one waits for those before it. */
static void answer_due(struct node *node)
{
    const uint64_t now_ms = test_now_ms();
    while (owed.count > 0 && owed.queue[owed.first].due_ms <= now_ms) {
        const struct owed *entry = &owed.queue[owed.first];
        const int r = ringbus_reply(node->bus, &entry->to, &entry->nonce, sizeof entry->nonce, 0);
        if (r == RINGBUS_E_FULL) {
            return;
        }
        CHECK(r == 1 || r == RINGBUS_E_PEER_GONE);
        atomic_fetch_add(&bus_shared[WORD_ANSWERED], 1);
        owed.first = (owed.first + 1) % OWED_MAX;
        owed.count--;
    }
}

static void serve_late(const struct cluster *at, void *context)
{
    static struct node node = {.on_message = owe};
    (void)context;
    owed.random = test_now_ms() | 1;
    node_open(&node, at, PLACE "late/1");
    atomic_fetch_add(&bus_shared[WORD_UP], 1);
    for (;;) {
        CHECK(ringbus_poll(node.bus, 1000) >= 0);
        answer_due(&node);
        CHECK(ringbus_wait(node.bus, 1) >= 0);
    }
}

struct asker {
    pthread_t thread;
    struct node node;
    uint64_t count;
    uint64_t asked;
    uint64_t ended;
    uint64_t replied;
    uint64_t wrong;
    uint64_t slots; /* at the end: memory for calls */
    bool near_wrap;
};

struct nonce {
    struct asker *asker;
    uint64_t value;
    bool used;
};

static struct asker askers[THREADS];
static struct nonce nonces[THREADS][THREAD_CALLS];

static void on_late(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    struct nonce *nonce = context;
    struct asker *asker = nonce->asker;
    uint64_t got = 0;
    (void)bus;
    asker->wrong += !nonce->used; /* once each */
    nonce->used = false;
    asker->ended++;
    if (result->outcome == RINGBUS_REPLIED) {
        asker->replied++;
        memcpy(&got, result->message->data, sizeof got);
        asker->wrong += got != nonce->value;
    } else {
        asker->wrong += result->outcome == RINGBUS_FAILED;
        asker->wrong += result->error != RINGBUS_E_TIMEOUT && result->error != RINGBUS_E_PEER_GONE;
    }
}

static void ask_some(struct asker *asker, struct nonce *own, const struct ringbus_addr *to)
{
    for (unsigned i = 0; i < THREAD_CALLS && asker->asked < asker->count; i++) {
        if (own[i].used) {
            continue;
        }
        own[i].asker = asker;
        own[i].value = (uint64_t)(asker - askers) << 32 | asker->asked;
        const int r = ringbus_request(asker->node.bus, to, 0, &own[i].value, sizeof own[i].value, 0,
                                      TIMEOUT_MS, on_late, &own[i]);
        if (r != 1) {
            return; /* full, or the server is not there just now */
        }
        own[i].used = true;
        asker->asked++;
        atomic_fetch_add(&bus_shared[WORD_ASKED], 1);
        if (!asker->near_wrap) {
            start_near_the_wrap(asker->node.bus);
            asker->near_wrap = true;
        }
    }
}

static void *ask_many(void *context)
{
    struct asker *asker = context;
    struct nonce *own = nonces[asker - askers];
    struct ringbus_addr to;
    node_open(&asker->node, &cluster, NULL);
    CHECK(ringbus_target(asker->node.bus, PLACE "late", NULL, &to) == 0);
    while (asker->ended < asker->count) {
        ask_some(asker, own, &to);
        CHECK(ringbus_poll(asker->node.bus, 1000) >= 0);
        CHECK(ringbus_wait(asker->node.bus, 1) >= 0);
    }
    asker->slots = asker->node.bus->calls.slot_count;
    asker->wrong += node_stats(&asker->node).replies != asker->replied;
    node_close(&asker->node);
    return NULL;
}

static void test_late_replies_to_many_threads(void **state)
{
    (void)state;
    const bool full = getenv("RINGBUS_TEST_FULL") != NULL; /* NOLINT(concurrency-mt-unsafe) */
    const uint64_t each = (full ? 1000000U : 16000U / TEST_SCALE) / THREADS;
    const uint64_t total = each * THREADS;
    bus_shared_reset();
    memset(askers, 0, sizeof askers);
    memset(nonces, 0, sizeof nonces);
    pid_t pid = child_start(serve_late, &cluster, NULL);
    RUN_UNTIL(atomic_load(&bus_shared[WORD_UP]) == 1, NODE_MS, NULL);
    for (unsigned i = 0; i < THREADS; i++) {
        askers[i].count = each;
        assert_int_equal(pthread_create(&askers[i].thread, NULL, ask_many, &askers[i]), 0);
    }
    /* Killed twice on the way: what was asked of one life is not answered by the next. */
    for (unsigned life = 1; life < 3; life++) {
        while (atomic_load(&bus_shared[WORD_ASKED]) < total * life / 3) {
            test_sleep_ms(1);
        }
        child_kill(pid);
        pid = child_start(serve_late, &cluster, NULL);
    }
    uint64_t replied = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(askers[i].thread, NULL), 0);
        assert_int_equal(askers[i].wrong, 0);
        assert_int_equal(askers[i].ended, each);
        assert_int_equal(askers[i].slots, 64); /* as at first */
        replied += askers[i].replied;
    }
    child_kill(pid);
    assert_true(replied > 0 && replied < total);
    print_message("%llu requests, %llu replied in time\n", (unsigned long long)total,
                  (unsigned long long)replied);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_late_replies_to_many_threads),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
