/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Endpoints of two hosts that come and go, want each other and do not any more, and send as they
 * like, while the network is cut and heals. What comes on a link comes in order and once, the
 * last word is that all who are there and want each other are linked, and when all have gone
 * nothing of them is left in bridges and daemons.
 */
#include "support/hosts.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ACTORS  8U /* the even ones on alpha */
#define KEEP_MS 60000U

static struct hosts hosts;
static uint64_t seed = 77;

struct actor {
    struct node node;
    char path[64];
    unsigned life;                /* counts its opens */
    uint64_t last_life[ACTORS];   /* of the others, as their messages say */
    uint64_t last_number[ACTORS]; /* and their counts */
    uint64_t sent[ACTORS];
    bool wants[ACTORS];
    unsigned wrong;
};

static struct actor actors[ACTORS];

/** What a message says of itself. */
struct word {
    uint32_t from;
    uint32_t life;
    uint64_t number;
};

static bool is_full(void)
{
    return getenv("RINGBUS_TEST_FULL") != NULL; /* NOLINT(concurrency-mt-unsafe) */
}

static uint64_t below(uint64_t n)
{
    return bus_random(&seed) % n;
}

static void on_word(struct node *node, const struct ringbus_message *message)
{
    struct actor *actor = node->context;
    struct word word;
    CHECK(message->size >= sizeof word);
    memcpy(&word, message->data, sizeof word);
    const bool same = word.life == actor->last_life[word.from];
    actor->wrong += word.life < actor->last_life[word.from] ||
                    (same && word.number <= actor->last_number[word.from]);
    actor->last_life[word.from] = word.life;
    actor->last_number[word.from] = word.number;
}

static void actor_open(unsigned i)
{
    struct actor *actor = &actors[i];
    struct ringbus_options options = node_options(&hosts.host[i % 2].cluster, actor->path);
    memset(actor->last_life, 0, sizeof actor->last_life);
    memset(actor->last_number, 0, sizeof actor->last_number);
    memset(actor->sent, 0, sizeof actor->sent);
    memset(actor->wants, 0, sizeof actor->wants);
    actor->node.on_message = on_word;
    actor->node.context = actor;
    options.lane_bytes = 16384;
    options.pool[0] = (struct ringbus_pool_class){.chunk_bytes = 20480, .count = 8};
    node_open_with(&actor->node, &options);
    actor->life++;
}

static void poll_all(void)
{
    struct node *nodes[ACTORS];
    for (unsigned i = 0; i < ACTORS; i++) {
        nodes[i] = &actors[i].node;
    }
    nodes_step(nodes, ACTORS);
}

static void send_to(unsigned i, unsigned other)
{
    struct actor *actor = &actors[i];
    unsigned char data[20000] = {0};
    struct ringbus_addr to;
    const struct word word = {.from = i, .life = actor->life, .number = actor->sent[other] + 1};
    CHECK(ringbus_resolve(actors[other].path, &to) == 0);
    memcpy(data, &word, sizeof word);
    const size_t size = below(8) == 0 ? 10000 + below(10000) : sizeof word + below(200);
    if (ringbus_send(actor->node.bus, &to, 0, data, size, 0) == 1) {
        actor->sent[other]++;
    }
}

static void act(void)
{
    const unsigned i = (unsigned)below(ACTORS);
    const unsigned other = (unsigned)below(ACTORS);
    struct actor *actor = &actors[i];
    if (actor->node.bus == NULL) {
        if (below(3) == 0) {
            actor_open(i);
        }
        return;
    }
    switch (below(16)) {
    case 0:
        node_close(&actor->node);
        break;
    case 1:
    case 2:
        if (i != other) {
            CHECK(ringbus_target(actor->node.bus, actors[other].path, NULL,
                                 &(struct ringbus_addr){0}) == 0);
            actor->wants[other] = true;
        }
        break;
    case 3:
        if (actor->wants[other]) {
            CHECK(ringbus_untarget(actor->node.bus, actors[other].path) == 0);
            actor->wants[other] = false;
        }
        break;
    default:
        for (unsigned n = 0; n < 10; n++) {
            send_to(i, other);
        }
        break;
    }
}

static void cut_and_heal(void)
{
    struct fault_proxy *proxy = hosts.proxy[0][1];
    switch (below(3)) {
    case 0:
        fault_proxy_cut(proxy, true);
        break;
    case 1:
        fault_proxy_cut_after(proxy, (enum fault_way)(1 + below(2)), below(20000), false);
        break;
    default:
        fault_proxy_door(proxy, FAULT_CLOSED);
        fault_proxy_cut(proxy, false);
        break;
    }
}

static bool linked(unsigned i, unsigned other)
{
    struct ringbus_addr to;
    const uint64_t before = actors[other].last_number[i];
    CHECK(ringbus_resolve(actors[other].path, &to) == 0);
    send_to(i, other);
    poll_all();
    return actors[other].last_life[i] == actors[i].life && actors[other].last_number[i] > before;
}

/* Everybody is there and wants everybody: all are linked in the end. */
static void all_want_all(void)
{
    for (unsigned i = 0; i < ACTORS; i++) {
        if (actors[i].node.bus == NULL) {
            actor_open(i);
        }
    }
    for (unsigned n = 0; n < ACTORS * ACTORS; n++) {
        const unsigned i = n / ACTORS;
        const unsigned other = n % ACTORS;
        if (i != other) {
            CHECK(ringbus_target(actors[i].node.bus, actors[other].path, NULL,
                                 &(struct ringbus_addr){0}) == 0);
        }
    }
    for (unsigned n = 0; n < ACTORS * ACTORS; n++) {
        const uint64_t until_ms = test_now_ms() + KEEP_MS;
        while (n / ACTORS != n % ACTORS && !linked(n / ACTORS, n % ACTORS)) {
            if (test_now_ms() > until_ms) {
                (void)fprintf(stderr, "%s does not reach %s\n", actors[n / ACTORS].path,
                              actors[n % ACTORS].path);
                CHECK(false);
            }
        }
    }
}

static int setup(void **state)
{
    static const struct hosts_options options = {
        .count = 2,
        .bridge = "  unreachable_after: 2s\n  window: 32KiB\n  grace: 1s\n  mass_hold: 1s"};
    (void)state;
    hosts_up(&hosts, &options);
    for (unsigned i = 0; i < ACTORS; i++) {
        (void)snprintf(actors[i].path, sizeof actors[i].path, "/Game/eu/pc/w1/core/actor%u/1", i);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ACTORS; i++) {
        (void)ringbus_close(actors[i].node.bus, 0);
        actors[i].node.bus = NULL;
    }
    hosts_down(&hosts);
    return 0;
}

static void test_all_find_each_other_in_the_end_and_leave_nothing_behind(void **state)
{
    const unsigned rounds = is_full() ? 300 : 12;
    (void)state;
    unsigned fds[2] = {hosts_bridge_fds(&hosts, 0), hosts_bridge_fds(&hosts, 1)};
    int daemons[2] = {cluster_fd_count(&hosts.host[0].cluster),
                      cluster_fd_count(&hosts.host[1].cluster)};
    for (unsigned round = 0; round < rounds; round++) {
        const uint64_t until_ms = test_now_ms() + below(300);
        while (test_now_ms() < until_ms) {
            act();
            poll_all();
        }
        cut_and_heal();
        for (unsigned n = 0; n < 20; n++) {
            act();
            poll_all();
        }
        fault_proxy_door(hosts.proxy[0][1], FAULT_OPEN);
    }
    all_want_all();
    for (unsigned i = 0; i < ACTORS; i++) {
        assert_int_equal(actors[i].wrong, 0);
        node_close(&actors[i].node);
    }
    for (unsigned i = 0; i < 2; i++) {
        const uint64_t until_ms = test_now_ms() + KEEP_MS;
        while (hosts_bridge_fds(&hosts, i) != fds[i] ||
               cluster_fd_count(&hosts.host[i].cluster) != daemons[i]) {
            if (test_now_ms() > until_ms) {
                assert_int_equal(hosts_bridge_fds(&hosts, i), fds[i]);
                assert_int_equal(cluster_fd_count(&hosts.host[i].cluster), daemons[i]);
            }
            test_sleep_ms(5);
        }
        assert_int_equal(hosts_log_count(&hosts, i, "event=stream_broken"), 0);
        assert_int_equal(hosts_log_count(&hosts, i, "level=error"), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_all_find_each_other_in_the_end_and_leave_nothing_behind, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
