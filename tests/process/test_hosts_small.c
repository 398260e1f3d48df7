/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Much through little: windows, queues, lanes and pools as small as they can be, payloads from
 * nothing to many times of all that, both ways at once; each byte is checked. In full: 1 GB.
 */
#include "support/hosts.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST (200U * 1024U)
#define SMALL   "  window: 4KiB\n  limits: {queue: 128KiB}"

static struct hosts hosts;

/** One direction. */
struct flow {
    struct node from;
    struct ringbus_addr to;
    uint64_t sent;
    uint64_t sent_bytes;
    uint64_t next;
    uint64_t came_bytes;
    uint64_t wrong;
    unsigned char made[LARGEST];
    unsigned char wanted[LARGEST];
};

static struct flow flows[2];

static bool is_full(void)
{
    return getenv("RINGBUS_TEST_FULL") != NULL; /* NOLINT(concurrency-mt-unsafe) */
}

/* Most fit into a lane; some go by reference, in many frames. */
static size_t size_of(uint64_t number)
{
    uint64_t seed = number;
    const uint64_t random = bus_random(&seed);
    return random % 16 != 0 ? random % 500 : random % 256 != 0 ? random % 20000 : random % LARGEST;
}

static void make(unsigned char *data, size_t size, uint64_t number)
{
    uint64_t seed = ~number;
    for (size_t i = 0; i < size; i += 8) {
        const uint64_t word = bus_random(&seed);
        memcpy(data + i, &word, size - i < 8 ? size - i : 8);
    }
}

static void on_made(struct node *node, const struct ringbus_message *message)
{
    struct flow *in = node == &flows[0].from ? &flows[1] : &flows[0];
    const size_t size = size_of(in->next);
    make(in->wanted, size, in->next);
    in->wrong +=
        message->size != size || (size > 0 && memcmp(message->data, in->wanted, size) != 0);
    in->came_bytes += message->size;
    in->next++;
}

static void send_some(struct flow *flow, uint64_t bytes)
{
    while (flow->sent_bytes < bytes) {
        const size_t size = size_of(flow->sent);
        make(flow->made, size, flow->sent);
        const int result = ringbus_send(flow->from.bus, &flow->to, 0, flow->made, size, 0);
        if (result != 1) {
            CHECK(result == RINGBUS_E_FULL || result == RINGBUS_E_NO_CHUNK);
            return;
        }
        flow->sent++;
        flow->sent_bytes += size;
    }
}

static bool all_came(uint64_t bytes)
{
    send_some(&flows[0], bytes);
    send_some(&flows[1], bytes);
    return flows[0].came_bytes >= bytes && flows[1].came_bytes >= bytes &&
           flows[0].next == flows[0].sent && flows[1].next == flows[1].sent;
}

static void open_node(unsigned i, uint32_t lane_bytes)
{
    char path[64];
    const bool small = lane_bytes == 4096;
    (void)snprintf(path, sizeof path, "/Game/eu/pc/w1/core/side%u/1", i);
    struct ringbus_options options = node_options(&hosts.host[i].cluster, path);
    options.lane_bytes = lane_bytes;
    options.refs_per_link = small ? 16 : 256;
    options.pool[0] = (struct ringbus_pool_class){.chunk_bytes = 20480, .count = small ? 2 : 200};
    options.pool[1] = (struct ringbus_pool_class){.chunk_bytes = LARGEST, .count = small ? 1 : 8};
    flows[i].from.on_message = on_made;
    node_open_with(&flows[i].from, &options);
}

static int teardown(void **state)
{
    (void)state;
    (void)ringbus_close(flows[0].from.bus, 0);
    (void)ringbus_close(flows[1].from.bus, 0);
    hosts_down(&hosts);
    return 0;
}

static void up(const char *bridge, uint32_t lane_bytes)
{
    const struct hosts_options options = {.count = 2, .bridge = bridge};
    struct node *const a = &flows[0].from;
    struct node *const b = &flows[1].from;
    memset(flows, 0, sizeof flows);
    hosts_up(&hosts, &options);
    open_node(0, lane_bytes);
    open_node(1, lane_bytes);
    CHECK(ringbus_target(a->bus, "/Game/eu/pc/w1/core/side1/1", NULL, &flows[0].to) == 0);
    CHECK(ringbus_target(b->bus, "/Game/eu/pc/w1/core/side0/1", NULL, &flows[1].to) == 0);
    RUN_UNTIL(a->events[RINGBUS_EVENT_READY] > 0 && b->events[RINGBUS_EVENT_READY] > 0, NODE_MS, a,
              b);
}

static void check(uint64_t bytes)
{
    struct node *const a = &flows[0].from;
    struct node *const b = &flows[1].from;
    RUN_UNTIL(all_came(bytes), is_full() ? 3000000 : 50000, a, b);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(flows[i].wrong == 0);
        assert_int_equal(flows[i].from.events[RINGBUS_EVENT_DOWN], 0);
        RUN_UNTIL(node_pool_used(&flows[i].from) == 0, NODE_MS, a, b);
        assert_true(hosts_bridge_kib(&hosts, i) < 16384 * TEST_SCALE);
    }
    print_message("%llu and %llu messages, %llu KiB each\n", (unsigned long long)flows[0].sent,
                  (unsigned long long)flows[1].sent, (unsigned long long)(bytes / 1024));
}

static void test_much_goes_through_the_smallest_buffers(void **state)
{
    const uint64_t bytes = is_full() ? UINT64_C(1) << 30 : (UINT64_C(3) << 20) / TEST_SCALE;
    (void)state;
    up(SMALL, 4096);
    check(bytes);
}

/*
 * Senders have larger lanes than a bridge's, and receivers read now and then only: when the way is
 * cut, whole records wait in the bridge, and parts of one.
 */
static void test_what_waits_while_the_way_is_cut_stays_whole(void **state)
{
    const unsigned cuts = is_full() ? 300 : 6;
    uint64_t seed = 3;
    (void)state;
    up("  window: 64KiB", 1U << 20);
    for (unsigned i = 0; i < cuts; i++) {
        struct fault_proxy *proxy = hosts.proxy[0][1];
        struct node *const only = &flows[i % 2].from;
        const uint64_t came = fault_proxy_came(proxy);
        const uint64_t until_ms = test_now_ms() + bus_random(&seed) % 100;
        RUN_UNTIL((send_some(&flows[0], UINT64_MAX), send_some(&flows[1], UINT64_MAX),
                   test_now_ms() >= until_ms),
                  NODE_MS, only);
        fault_proxy_cut(proxy, bus_random(&seed) % 2 == 0);
        RUN_UNTIL(fault_proxy_came(proxy) > came && fault_proxy_there(proxy) == 1, NODE_MS, only);
    }
    check(rbi_max_u64(flows[0].sent_bytes, flows[1].sent_bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_much_goes_through_the_smallest_buffers, teardown),
        cmocka_unit_test_teardown(test_what_waits_while_the_way_is_cut_stays_whole, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
