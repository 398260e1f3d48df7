/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instances of another host as endpoints of this one: an application sees no difference. What lies
 * between the two bridges is done by hand (support/relay.h).
 */
#include "support/relay.h"
#include "support/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SERVICE   "/game/eu/pc/w1/core/far"
#define SERVICE_1 SERVICE "/1"

static struct relay relay;
static struct node alpha; /* anonymous, asks */
static struct node beta;  /* the service */

static void answer(struct node *at, const struct ringbus_message *message)
{
    if (message->reply_to.id != 0) {
        CHECK(ringbus_reply(at->bus, &message->reply_to, message->data, message->size, 0) == 1);
    }
}

/* A service on beta, its proxy on alpha. */
static struct rbi_proxy *begin(const struct rbi_desk_options *options)
{
    struct rbi_proxy *proxy;
    memset(&alpha, 0, sizeof alpha);
    memset(&beta, 0, sizeof beta);
    beta.on_message = answer;
    relay_up(&relay, "{}\n", options);
    node_open(&beta, &relay.host[1].cluster, SERVICE_1);
    const struct rbi_proxy_spec spec = relay_spec(&relay, 0, &beta);
    proxy = relay_proxy(&relay, 0, &spec);
    RELAY_UNTIL(&relay, relay.registered == 1 || relay.refused > 0, NODE_MS, &beta);
    assert_int_equal(relay.code, 0);
    return proxy;
}

static void target(struct node *node)
{
    node_open(node, &relay.host[0].cluster, NULL);
    assert_int_equal(ringbus_target(node->bus, SERVICE, NULL, NULL), 0);
    RELAY_UNTIL(&relay, node->events[RINGBUS_EVENT_READY] == 1, NODE_MS, node, &beta);
}

static void end(void)
{
    node_close(&alpha);
    node_close(&beta);
    relay_down(&relay);
}

static void test_proxy_carries_requests(void **state)
{
    (void)state;
    begin(NULL);
    target(&alpha);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(ringbus_request(alpha.bus, &alpha.peer, 0, &i, sizeof i, 0, 5000,
                                         node_on_result, &alpha),
                         1);
        RELAY_UNTIL(&relay, alpha.replies[RINGBUS_REPLIED] == i + 1, NODE_MS, &alpha, &beta);
    }
    assert_int_equal(beta.messages, 100);
    end();
}

/* ---- messages of all sizes, in order, both ways ---- */

static struct {
    uint64_t next;
    uint64_t bytes;
    unsigned referenced;
} got;

static void fill(unsigned char *data, size_t size, uint64_t number)
{
    uint64_t state = number * 2 + 1;
    for (size_t i = 0; i < size; i += sizeof state) {
        const uint64_t word = bus_random(&state);
        memcpy(data + i, &word, size - i < sizeof word ? size - i : sizeof word);
    }
}

static size_t size_of(uint64_t number)
{
    uint64_t state = number + 77;
    const uint64_t random = bus_random(&state);
    return (size_t)(random % (UINT64_C(1) << (random >> 32) % 18));
}

/* The key is its number; nothing is missing, twice, or of another shape. */
static void take_numbered(struct node *at, const struct ringbus_message *message)
{
    static unsigned char expected[1 << 18];
    (void)at;
    CHECK(message->key == got.next);
    CHECK(message->size == size_of(got.next));
    fill(expected, message->size, got.next);
    CHECK(memcmp(message->data, expected, message->size) == 0);
    got.next++;
    got.bytes += message->size;
    got.referenced += (message->flags & RINGBUS_MESSAGE_REFERENCED) != 0;
}

static bool send_numbered(struct node *from, const struct ringbus_addr *to, uint64_t number)
{
    static unsigned char data[1 << 18];
    const size_t size = size_of(number);
    fill(data, size, number);
    const int r = ringbus_send(from->bus, to, number, data, size, RINGBUS_KEY);
    CHECK(r == 1 || r == RINGBUS_E_FULL || r == RINGBUS_E_NO_CHUNK);
    return r == 1;
}

static void carry(struct node *from, struct node *to, const struct ringbus_addr *addr)
{
    const uint64_t count = 3000 / TEST_SCALE;
    memset(&got, 0, sizeof got);
    to->on_message = take_numbered;
    for (uint64_t i = 0; i < count; i++) {
        RELAY_UNTIL(&relay, send_numbered(from, addr, i), NODE_MS, from, to);
    }
    RELAY_UNTIL(&relay, got.next == count, NODE_MS, from, to);
    assert_true(got.referenced > count / 20);
    RELAY_UNTIL(&relay, node_pool_used(from) == 0, NODE_MS, from, to);
}

static void test_proxy_carries_every_size_both_ways(void **state)
{
    (void)state;
    begin(NULL);
    target(&alpha);
    carry(&alpha, &beta, &alpha.peer);
    struct ringbus_addr self;
    assert_int_equal(ringbus_self(alpha.bus, &self), 0);
    carry(&beta, &alpha, &self);
    struct rbi_desk_figures figures;
    rbi_desk_figures(relay.host[0].desk, &figures);
    assert_int_equal(figures.proxies, 1);
    assert_int_equal(figures.halves, 1);
    assert_true(figures.records_in >= 3000 / TEST_SCALE);
    assert_true(figures.bytes_out >= got.bytes);
    assert_int_equal(figures.bad_peers, 0);
    end();
}

/* Parts, keys and attributes are the sender's and the receiver's business alone. */
static void test_proxy_changes_nothing_of_a_message(void **state)
{
    (void)state;
    begin(NULL);
    target(&alpha);
    const struct ringbus_part parts[] = {{"one", 3}, {"", 0}, {"three", 5}};
    beta.on_message = NULL;
    assert_int_equal(ringbus_sendv(alpha.bus, &alpha.peer, 5, parts, 3, RINGBUS_KEY), 1);
    RELAY_UNTIL(&relay, beta.messages == 1, NODE_MS, &alpha, &beta);
    struct ringbus_addr self;
    assert_int_equal(ringbus_self(alpha.bus, &self), 0);
    assert_memory_equal(&beta.from, &self, sizeof self);
    assert_int_equal(beta.bytes, 8);
    end();
}

/* ---- a receiver that does not read ---- */

static void test_proxy_passes_back_pressure_on(void **state)
{
    (void)state;
    begin(NULL);
    target(&alpha);
    memset(&got, 0, sizeof got);
    beta.on_message = take_numbered;
    uint64_t sent = 0;
    /* Beta's lane, then ours are full: alpha hears of it, and nothing is lost. */
    for (unsigned quiet = 0; quiet < 200;) {
        const bool went = send_numbered(&alpha, &alpha.peer, sent);
        sent += went;
        quiet = went ? 0 : quiet + 1;
        struct node *const only[] = {&alpha};
        (void)relay_poll(only, 1);
        relay_turn(&relay, true);
    }
    assert_int_equal(got.next, 0);
    assert_true(sent > 0);
    RELAY_UNTIL(&relay, got.next == sent, NODE_MS, &alpha, &beta);
    for (uint64_t i = sent; i < sent + 100; i++) {
        RELAY_UNTIL(&relay, send_numbered(&alpha, &alpha.peer, i), NODE_MS, &alpha, &beta);
    }
    RELAY_UNTIL(&relay, got.next == sent + 100, NODE_MS, &alpha, &beta);
    end();
}

/* ---- positions: what the other host acknowledges ---- */

static void test_half_checks_positions_of_others(void **state)
{
    (void)state;
    begin(NULL);
    target(&alpha);
    beta.on_message = NULL;
    struct relay_pair *pair = relay_only(&relay);
    struct rbi_half *half = pair->half[0];
    RELAY_UNTIL(&relay, rbi_half_released(half) == rbi_half_pos(half), NODE_MS, &alpha, &beta);
    relay.ack_held = true;
    static unsigned char data[1000];
    const uint64_t from = rbi_half_pos(half);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(ringbus_send(alpha.bus, &alpha.peer, 0, data, sizeof data, 0), 1);
    }
    RELAY_UNTIL(&relay, beta.messages == 3, NODE_MS, &alpha, &beta);
    const uint64_t step = rbi_half_record_bytes(sizeof data + 8);
    /* A PING may have come as well, behind them. */
    assert_true(rbi_half_pos(half) >= from + 3 * step);
    assert_int_equal(rbi_half_released(half), from);
    assert_int_equal(rbi_half_release(half, from + 64), -EPROTO); /* inside of a record */
    assert_int_equal(rbi_half_release(half, rbi_half_pos(half) + 64), -EPROTO);
    assert_int_equal(rbi_half_release(half, from + step + 1), -EPROTO);
    assert_int_equal(rbi_half_released(half), from);
    assert_int_equal(rbi_half_release(half, from + step), 0);
    assert_int_equal(rbi_half_released(half), from + step);
    assert_int_equal(rbi_half_back(half, from), -EPROTO); /* the peer's again */
    assert_int_equal(rbi_half_back(half, from + step + 64), -EPROTO);
    assert_int_equal(rbi_half_back(half, rbi_half_pos(half) + 64), -EPROTO);
    assert_int_equal(rbi_half_release(half, from), 0);

    /* Two are sent again: whoever takes part in the network drops them by their numbers. */
    assert_int_equal(rbi_half_back(half, from + step), 0);
    RELAY_UNTIL(&relay, beta.messages == 5, NODE_MS, &alpha, &beta);
    relay.ack_held = false;
    assert_int_equal(rbi_half_release(half, rbi_half_pos(half)), 0);
    assert_int_equal(rbi_half_released(half), rbi_half_pos(half));
    end();
}

/* A payload is its sender's again when the record is released, not when it was sent on. */
static void test_half_keeps_payloads_until_release(void **state)
{
    (void)state;
    static unsigned char data[20000];
    begin(NULL);
    target(&alpha);
    beta.on_message = NULL;
    struct rbi_half *half = relay_only(&relay)->half[0];
    relay.ack_held = true;
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(ringbus_send(alpha.bus, &alpha.peer, 0, data, sizeof data, 0), 1);
    }
    RELAY_UNTIL(&relay, beta.messages == 3, NODE_MS, &alpha, &beta);
    for (unsigned i = 0; i < 100; i++) {
        struct node *const nodes[] = {&alpha, &beta};
        (void)relay_poll(nodes, 2);
        relay_turn(&relay, true);
    }
    assert_int_equal(node_pool_used(&alpha), 3);
    relay.ack_held = false;
    assert_int_equal(rbi_half_release(half, rbi_half_pos(half)), 0);
    RELAY_UNTIL(&relay, node_pool_used(&alpha) == 0, NODE_MS, &alpha, &beta);
    end();
}

/* ---- who asks ---- */

/* Both want each other, each on its own host: one link comes of it. */
static void test_proxy_meets_who_asks_it(void **state)
{
    (void)state;
    begin(NULL);
    struct node *const nodes[] = {&alpha, &beta};
    node_open(&alpha, &relay.host[0].cluster, "/game/eu/pc/w1/core/near/1");
    struct rbi_proxy_spec spec = relay_spec(&relay, 1, &alpha);
    (void)relay_proxy(&relay, 1, &spec);
    RELAY_UNTIL(&relay, relay.registered == 2, NODE_MS, &alpha, &beta);
    assert_int_equal(ringbus_target(beta.bus, "/game/eu/pc/w1/core/near", NULL, NULL), 0);
    assert_int_equal(ringbus_target(alpha.bus, SERVICE, NULL, NULL), 0);
    RELAY_UNTIL(&relay,
                alpha.events[RINGBUS_EVENT_READY] >= 1 && beta.events[RINGBUS_EVENT_READY] >= 1,
                NODE_MS, &alpha, &beta);
    beta.on_message = NULL;
    assert_int_equal(ringbus_send(alpha.bus, &alpha.peer, 0, "a", 1, 0), 1);
    assert_int_equal(ringbus_send(beta.bus, &beta.peer, 0, "b", 1, 0), 1);
    RELAY_UNTIL(&relay, beta.messages == 1 && alpha.messages == 1, NODE_MS, &alpha, &beta);
    (void)nodes;
    end();
}

static void test_proxy_of_many_callers(void **state)
{
    (void)state;
    static struct node callers[8];
    begin(NULL);
    memset(callers, 0, sizeof callers);
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(callers); i++) {
        target(&callers[i]);
    }
    struct rbi_desk_figures figures;
    rbi_desk_figures(relay.host[0].desk, &figures);
    assert_int_equal(figures.halves, RBI_ARRAY_SIZE(callers));
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(callers); i++) {
        assert_int_equal(ringbus_request(callers[i].bus, &callers[i].peer, 0, &i, sizeof i, 0, 5000,
                                         node_on_result, &callers[i]),
                         1);
    }
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(callers); i++) {
        RELAY_UNTIL(&relay, callers[i].replies[RINGBUS_REPLIED] == 1, NODE_MS, &callers[i], &beta);
        node_close(&callers[i]);
    }
    node_open(&alpha, &relay.host[0].cluster, NULL);
    end();
}

/* Memory of all pools of this process that have holes, in pages. */
static uint64_t pool_pages(void)
{
    char path[64];
    char name[64];
    static ino_t seen[4096];
    unsigned count = 0;
    uint64_t pages = 0;
    for (int fd = 3; fd < 4096; fd++) {
        struct stat st;
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        const ssize_t n = readlink(path, name, sizeof name - 1);
        name[n > 0 ? n : 0] = '\0';
        if (strncmp(name, "/memfd:ringbus-pool", 19) != 0 || fstat(fd, &st) != 0) {
            continue;
        }
        bool again = (uint64_t)st.st_blocks * 512 >= (uint64_t)st.st_size;
        for (unsigned i = 0; i < count; i++) {
            again |= seen[i] == st.st_ino;
        }
        seen[count++] = st.st_ino;
        pages += again ? 0 : (uint64_t)st.st_blocks * 512 / RBI_PAGE;
    }
    return pages;
}

/* Instances of other hosts are many, and few of them send: they cost two pages each. */
static void test_proxies_by_the_hundred(void **state)
{
    (void)state;
    enum { COUNT = 300 };
    static char paths[COUNT][64];
    static struct rbi_proxy *proxies[COUNT];
    struct rbi_desk_figures figures;
    memset(&alpha, 0, sizeof alpha);
    memset(&beta, 0, sizeof beta);
    relay_up(&relay, "{}\n", NULL);
    for (unsigned i = 0; i < COUNT; i++) {
        (void)snprintf(paths[i], sizeof paths[i], SERVICE "/%u", i + 1);
        const struct rbi_proxy_spec spec = {.path = paths[i],
                                            .incarnation = i + 1,
                                            .host = "beta",
                                            .state = RBI_ENDPOINT_READY,
                                            .weight = 100};
        proxies[i] = relay_proxy(&relay, 0, &spec);
    }
    RELAY_UNTIL(&relay,
                (rbi_desk_figures(relay.host[0].desk, &figures), figures.registered == COUNT),
                NODE_MS, NULL);
    assert_int_equal(pool_pages(), COUNT);
    /* All come back to a new daemon. */
    cluster_kill(&relay.host[0].cluster);
    RELAY_UNTIL(&relay, (rbi_desk_figures(relay.host[0].desk, &figures), figures.registered == 0),
                NODE_MS, NULL);
    assert_int_equal(cluster_start(&relay.host[0].cluster), 0);
    RELAY_UNTIL(&relay,
                (rbi_desk_figures(relay.host[0].desk, &figures), figures.registered == COUNT),
                NODE_MS, NULL);
    for (unsigned i = 0; i < COUNT; i++) {
        assert_true(rbi_proxy_is_registered(proxies[i]));
    }
    relay_down(&relay);
}

/* Large payloads one after the other take the memory of one. */
static void test_proxy_pool_takes_memory_for_what_is_out(void **state)
{
    (void)state;
    static unsigned char data[1 << 20];
    begin(NULL);
    target(&alpha);
    beta.on_message = NULL;
    struct rbi_half *far = relay_only(&relay)->half[1];
    const uint64_t before = pool_pages();
    for (unsigned i = 0; i < 20; i++) {
        RELAY_UNTIL(&relay, ringbus_send(alpha.bus, &alpha.peer, 0, data, sizeof data, 0) == 1,
                    NODE_MS, &alpha, &beta);
        RELAY_UNTIL(&relay, beta.messages == i + 1, NODE_MS, &alpha, &beta);
        struct rbi_half_taken taken;
        RELAY_UNTIL(&relay, (rbi_half_taken(far, &taken), taken.read == taken.written), NODE_MS,
                    &alpha, &beta);
    }
    assert_int_equal(pool_pages() - before, sizeof data / RBI_PAGE);
    end();
}

/* What a local link would carry goes as well, up to a bound that is far off. */
static void test_proxy_carries_one_large_payload(void **state)
{
    (void)state;
    const size_t size = (size_t)20 << 20;
    begin(NULL);
    beta.on_message = NULL;
    struct ringbus_options options = node_options(&relay.host[0].cluster, NULL);
    options.pool[0] = (struct ringbus_pool_class){.chunk_bytes = (uint32_t)size, .count = 1};
    node_open_with(&alpha, &options);
    assert_int_equal(ringbus_target(alpha.bus, SERVICE, NULL, NULL), 0);
    RELAY_UNTIL(&relay, alpha.events[RINGBUS_EVENT_READY] == 1, NODE_MS, &alpha, &beta);
    struct ringbus_loan loan;
    assert_int_equal(ringbus_loan(alpha.bus, size, &loan), 0);
    memset(loan.data, 5, size);
    assert_int_equal(ringbus_send_loan(alpha.bus, &alpha.peer, 0, &loan, size, 0), 1);
    assert_int_equal(ringbus_loan_return(alpha.bus, &loan), 0);
    RELAY_UNTIL(&relay, beta.bytes == size, NODE_MS, &alpha, &beta);
    assert_true(rbi_half_lend_max(relay_only(&relay)->half[1]) >= (UINT64_C(64) << 20));
    end();
}

static void test_desk_new_checks_its_options(void **state)
{
    (void)state;
    struct rbi_desk *desk = NULL;
    struct rbi_loop *loop = NULL;
    assert_int_equal(rbi_loop_new(&loop, RBI_LOOP_EPOLL), 0);
    const struct rbi_desk_options good = {.loop = loop, .socket = "/nowhere"};
    struct rbi_desk_options bad[7];
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(bad); i++) {
        bad[i] = good;
    }
    static char path[RBI_SOCKET_PATH_MAX + 2];
    memset(path, 'x', sizeof path - 1);
    bad[0].socket = path;
    bad[1].socket = NULL;
    bad[2].lane_bytes = 5000;
    bad[3].lane_bytes = RBI_LANE_CAPACITY_MIN / 2;
    bad[4].refs_per_link = 17;
    bad[5].pool_bytes = 4096;
    bad[6].payload_max = (UINT64_C(1) << 30) + 1;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(bad); i++) {
        assert_int_equal(rbi_desk_new(&bad[i], &desk), -EINVAL);
        assert_null(desk);
    }
    assert_int_equal(rbi_desk_new(&good, &desk), 0);
    assert_null(rbi_desk_free(desk));
    rbi_loop_free(loop);
}

/* ---- what the directory says ---- */

static struct ringbus_event last_event;
static unsigned updates;

static void note_update(struct node *node, const struct ringbus_event *event)
{
    (void)node;
    last_event = *event;
    updates++;
}

static void test_proxy_update_and_free_show_in_the_directory(void **state)
{
    (void)state;
    struct rbi_proxy *proxy = begin(NULL);
    node_open(&alpha, &relay.host[0].cluster, NULL);
    alpha.on_event = note_update;
    assert_int_equal(ringbus_watch(alpha.bus, SERVICE), 0);
    RELAY_UNTIL(&relay, alpha.events[RINGBUS_EVENT_ADDED] == 1, NODE_MS, &alpha, &beta);
    struct rbi_proxy_spec spec = relay_spec(&relay, 0, &beta);
    updates = 0;
    assert_int_equal(rbi_proxy_update(proxy, &spec), 0); /* nothing has changed */
    spec.weight = 7;
    assert_int_equal(rbi_proxy_update(proxy, &spec), 0);
    RELAY_UNTIL(&relay, updates > 0, NODE_MS, &alpha, &beta);
    assert_int_equal(updates, 1);
    assert_int_equal(last_event.type, RINGBUS_EVENT_UPDATED);
    spec.host = "gamma";
    assert_int_equal(rbi_proxy_update(proxy, &spec), -EINVAL);
    spec = relay_spec(&relay, 0, &beta);
    spec.incarnation++;
    assert_int_equal(rbi_proxy_update(proxy, &spec), -EINVAL);
    rbi_proxy_free(proxy, RBI_REASON_LEFT);
    RELAY_UNTIL(&relay, alpha.events[RINGBUS_EVENT_REMOVED] == 1, NODE_MS, &alpha, &beta);
    assert_int_equal(last_event.reason, RINGBUS_REASON_LEFT);
    alpha.on_event = NULL;
    end();
}

static void test_proxy_new_refuses_nonsense(void **state)
{
    (void)state;
    struct rbi_proxy *proxy = NULL;
    begin(NULL);
    const struct rbi_proxy_spec good = relay_spec(&relay, 0, &beta);
    struct rbi_proxy_spec bad[5];
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(bad); i++) {
        bad[i] = good;
    }
    bad[0].path = "/game/eu/pc/w1/core/far";
    bad[1].path = NULL;
    bad[2].incarnation = 0;
    bad[3].host = "";
    bad[4].path = "no path";
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(bad); i++) {
        assert_int_equal(rbi_proxy_new(relay.host[0].desk, &bad[i], NULL, &proxy), -EINVAL);
    }
    assert_int_equal(rbi_proxy_new(relay.host[0].desk, &good, NULL, &proxy), -EEXIST);
    assert_null(proxy);
    node_open(&alpha, &relay.host[0].cluster, NULL);
    end();
}

/* A name that a local instance has: refused, asked again, and had when that has left. */
static void test_proxy_waits_for_its_name(void **state)
{
    (void)state;
    static struct node holder;
    memset(&alpha, 0, sizeof alpha);
    memset(&beta, 0, sizeof beta);
    relay_up(&relay, "{}\n", NULL);
    memset(&holder, 0, sizeof holder);
    node_open(&beta, &relay.host[1].cluster, SERVICE_1);
    node_open(&holder, &relay.host[0].cluster, SERVICE_1);
    const struct rbi_proxy_spec spec = relay_spec(&relay, 0, &beta);
    (void)relay_proxy(&relay, 0, &spec);
    RELAY_UNTIL(&relay, relay.refused > 0, NODE_MS, &beta, &holder);
    assert_int_equal(relay.code, RINGBUS_E_IN_USE);
    node_close(&holder);
    RELAY_UNTIL(&relay, relay.registered == 1, NODE_MS, &beta);
    target(&alpha);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_proxy_carries_requests),
        cmocka_unit_test(test_proxy_carries_every_size_both_ways),
        cmocka_unit_test(test_proxy_changes_nothing_of_a_message),
        cmocka_unit_test(test_proxy_passes_back_pressure_on),
        cmocka_unit_test(test_half_checks_positions_of_others),
        cmocka_unit_test(test_half_keeps_payloads_until_release),
        cmocka_unit_test(test_proxy_meets_who_asks_it),
        cmocka_unit_test(test_proxy_of_many_callers),
        cmocka_unit_test(test_proxies_by_the_hundred),
        cmocka_unit_test(test_proxy_pool_takes_memory_for_what_is_out),
        cmocka_unit_test(test_proxy_carries_one_large_payload),
        cmocka_unit_test(test_desk_new_checks_its_options),
        cmocka_unit_test(test_proxy_update_and_free_show_in_the_directory),
        cmocka_unit_test(test_proxy_new_refuses_nonsense),
        cmocka_unit_test(test_proxy_waits_for_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
