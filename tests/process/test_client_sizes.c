/* SPDX-License-Identifier: Apache-2.0 */
/* Scenario 21: sizes at, below and over each limit, for every way of sending. */
#include "support/bus.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SINK   "/game/eu/pc/w1/core/sink"
#define SINK_1 SINK "/1"

#define CHUNK_MAX 65536U

static struct cluster cluster;
static struct node sender;
static struct node sink;
static struct ringbus_addr to;
static unsigned char *pattern; /* CHUNK_MAX + 4096 bytes */

static const struct {
    uint32_t lane_bytes;
    uint32_t inline_max; /* as it turns out */
} shapes[] = {{4096, 512}, {0, 8192}};

/* What the sink expects next. */
static struct {
    size_t size;
    unsigned part_count;
    size_t part_sizes[RINGBUS_PARTS_MAX];
    uint64_t wrong;
} expect;

static bool equals(const struct ringbus_message *message)
{
    const unsigned char *at = message->data;
    if (message->size != expect.size || (expect.size > 0 && memcmp(at, pattern, expect.size))) {
        return false;
    }
    if (message->part_count != expect.part_count) {
        return false;
    }
    for (unsigned i = 0; i < message->part_count; i++) {
        if (message->parts[i].size != expect.part_sizes[i] || message->parts[i].data != at) {
            return false;
        }
        at += message->parts[i].size;
    }
    return true;
}

/* Checks, and sends requests back whole: the reply has the same size. */
static void on_message(struct node *node, const struct ringbus_message *message)
{
    expect.wrong += !equals(message);
    if (message->kind == RINGBUS_KIND_REQUEST) {
        CHECK(ringbus_reply(node->bus, &message->reply_to, message->data, message->size, 0) == 1);
    }
}

static struct {
    unsigned count;
    bool equal;
} reply;

static void on_reply(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    (void)bus;
    (void)context;
    reply.count++;
    reply.equal = result->outcome == RINGBUS_REPLIED && result->message->size == expect.size &&
                  (expect.size == 0 || memcmp(result->message->data, pattern, expect.size) == 0);
}

static void open_pair(uint32_t lane_bytes)
{
    struct ringbus_options options = node_options(&cluster, SINK_1);
    const struct ringbus_pool_class pool[] = {{4096, 4}, {CHUNK_MAX, 2}};
    options.lane_bytes = lane_bytes;
    memcpy(options.pool, pool, sizeof pool);
    sink.on_message = on_message;
    node_open_with(&sink, &options);
    options.path = NULL;
    node_open_with(&sender, &options);
    node_target(&sender, SINK, 1, &sink);
    to = sender.peer;
    memset(&expect, 0, sizeof expect);
    assert_int_equal(ringbus_size_max(sender.bus), CHUNK_MAX);
}

/* Nothing is left of whatever was sent or refused. */
static void close_pair(void)
{
    RUN_UNTIL(node_pool_used(&sender) == 0, NODE_MS, &sender, &sink);
    RUN_UNTIL(node_pool_used(&sink) == 0, NODE_MS, &sender, &sink);
    assert_int_equal(expect.wrong, 0);
    node_close(&sender);
    node_close(&sink);
}

static void expect_one_part(size_t size)
{
    expect.size = size;
    expect.part_count = 1;
    expect.part_sizes[0] = size;
}

static void expect_delivery(void)
{
    const uint64_t before = sink.messages;
    RUN_UNTIL(sink.messages > before, NODE_MS, &sink, &sender);
    assert_int_equal(sink.messages, before + 1);
    assert_int_equal(expect.wrong, 0);
}

/* Refused with the limit in the sentence; the next message arrives alone and intact. */
static void expect_refusal(int r)
{
    char limit[32];
    const uint64_t before = node_stats(&sender).too_big;
    assert_int_equal(r, RINGBUS_E_TOO_BIG);
    (void)snprintf(limit, sizeof limit, "%u", CHUNK_MAX);
    assert_non_null(strstr(ringbus_errmsg(sender.bus), limit));
    assert_true(before > 0);
    expect_one_part(3);
    assert_int_equal(ringbus_send(sender.bus, &to, 0, pattern, 3, 0), 1);
    expect_delivery();
}

static size_t size_of(unsigned i, uint32_t inline_max, bool *refused)
{
    const size_t sizes[] = {0,
                            1,
                            inline_max - 1,
                            inline_max,
                            inline_max + 1,
                            4095,
                            4096,
                            4097,
                            CHUNK_MAX - 1,
                            CHUNK_MAX,
                            CHUNK_MAX + 1,
                            (size_t)1 << 31,
                            (size_t)1 << 32,
                            SIZE_MAX - 7,
                            SIZE_MAX};
    if (i >= sizeof sizes / sizeof sizes[0]) {
        return SIZE_MAX / 2;
    }
    *refused = sizes[i] > CHUNK_MAX;
    return sizes[i];
}
#define SIZES 15U

static void test_send(void **state)
{
    (void)state;
    for (unsigned s = 0; s < 2; s++) {
        open_pair(shapes[s].lane_bytes);
        for (unsigned i = 0; i < SIZES; i++) {
            bool refused = false;
            const size_t size = size_of(i, shapes[s].inline_max, &refused);
            expect_one_part(size);
            const int r = ringbus_send(sender.bus, &to, 0, pattern, size, 0);
            if (refused) {
                expect_refusal(r);
            } else {
                assert_int_equal(r, 1);
                expect_delivery();
            }
        }
        close_pair();
    }
}

static int send_split(size_t size, unsigned parts)
{
    struct ringbus_part part[RINGBUS_PARTS_MAX];
    size_t left = size;
    for (unsigned i = 0; i < parts; i++) {
        /* Every third is empty, the last takes what is left. */
        const size_t now = i == parts - 1 ? left : i % 3 == 1 ? 0 : left / 2;
        part[i].data = now > 0 ? pattern + (size - left) : NULL;
        part[i].size = now;
        expect.part_sizes[i] = now;
        left -= now;
    }
    expect.size = size;
    expect.part_count = parts;
    return ringbus_sendv(sender.bus, &to, 7, part, parts, RINGBUS_KEY);
}

static void test_sendv(void **state)
{
    (void)state;
    for (unsigned s = 0; s < 2; s++) {
        open_pair(shapes[s].lane_bytes);
        for (unsigned i = 0; i < SIZES; i++) {
            bool refused = false;
            const size_t size = size_of(i, shapes[s].inline_max, &refused);
            for (unsigned parts = 1; !refused && parts <= RINGBUS_PARTS_MAX; parts++) {
                assert_int_equal(send_split(size, parts), 1);
                expect_delivery();
            }
        }
        const struct ringbus_part over[] = {{pattern, SIZE_MAX}, {pattern, 2}};
        const struct ringbus_part sum[] = {{pattern, CHUNK_MAX}, {pattern, 1}};
        const struct ringbus_part wrong[] = {{pattern, 1}, {NULL, 1}};
        expect_refusal(ringbus_sendv(sender.bus, &to, 0, over, 2, 0));
        expect_refusal(ringbus_sendv(sender.bus, &to, 0, sum, 2, 0));
        assert_int_equal(ringbus_sendv(sender.bus, &to, 0, wrong, 2, 0), RINGBUS_E_ARGUMENT);
        assert_int_equal(ringbus_sendv(sender.bus, &to, 0, wrong, 0, 0), RINGBUS_E_ARGUMENT);
        assert_int_equal(ringbus_sendv(sender.bus, &to, 0, NULL, 1, 0), RINGBUS_E_ARGUMENT);
        assert_int_equal(ringbus_sendv(sender.bus, &to, 0, wrong, RINGBUS_PARTS_MAX + 1, 0),
                         RINGBUS_E_ARGUMENT);
        close_pair();
    }
}

static void test_claim(void **state)
{
    (void)state;
    for (unsigned s = 0; s < 2; s++) {
        open_pair(shapes[s].lane_bytes);
        for (unsigned i = 0; i < SIZES; i++) {
            bool refused = false;
            const size_t size = size_of(i, shapes[s].inline_max, &refused);
            const size_t lengths[] = {size, size / 2, 0};
            struct ringbus_claim claim;
            if (refused) {
                expect_refusal(ringbus_claim(sender.bus, &to, 0, size, 0, &claim));
                continue;
            }
            for (unsigned k = 0; k < 3; k++) {
                assert_int_equal(ringbus_claim(sender.bus, &to, 0, size, 0, &claim), 0);
                assert_int_equal(claim.size, size);
                assert_int_equal((uintptr_t)claim.data % 16, 0);
                memset(claim.data, 0xee, size);
                memcpy(claim.data, pattern, lengths[k]);
                assert_int_equal(ringbus_commit(sender.bus, &claim, size + 1), RINGBUS_E_ARGUMENT);
                expect_one_part(lengths[k]);
                assert_int_equal(ringbus_commit(sender.bus, &claim, lengths[k]), 1);
                assert_int_equal(ringbus_commit(sender.bus, &claim, 0), RINGBUS_E_CLOSED);
                expect_delivery();
            }
            /* What was given back is as if it had never been. */
            assert_int_equal(ringbus_claim(sender.bus, &to, 0, size, 0, &claim), 0);
            memset(claim.data, 0xee, size);
            assert_int_equal(ringbus_abort(sender.bus, &claim), 0);
            expect_one_part(5);
            assert_int_equal(ringbus_send(sender.bus, &to, 0, pattern, 5, 0), 1);
            expect_delivery();
        }
        close_pair();
    }
}

static void test_loan(void **state)
{
    (void)state;
    for (unsigned s = 0; s < 2; s++) {
        open_pair(shapes[s].lane_bytes);
        for (unsigned i = 0; i < SIZES; i++) {
            bool refused = false;
            const size_t size = size_of(i, shapes[s].inline_max, &refused);
            struct ringbus_loan loan;
            const int r = ringbus_loan(sender.bus, size, &loan);
            if (refused) {
                expect_refusal(r);
                continue;
            }
            assert_int_equal(r, 0);
            assert_int_equal((uintptr_t)loan.data % 64, 0);
            memcpy(loan.data, pattern, size);
            assert_int_equal(ringbus_send_loan(sender.bus, &to, 0, &loan, size + 1, 0),
                             RINGBUS_E_TOO_BIG);
            for (unsigned k = 0; k < 2; k++) {
                expect_one_part(k == 0 ? size : size / 2);
                assert_int_equal(ringbus_send_loan(sender.bus, &to, 0, &loan, expect.size, 0), 1);
                expect_delivery();
            }
            assert_int_equal(ringbus_loan_return(sender.bus, &loan), 0);
            assert_int_equal(ringbus_loan_return(sender.bus, &loan), RINGBUS_E_CLOSED);
            assert_int_equal(ringbus_send_loan(sender.bus, &to, 0, &loan, 0, 0), RINGBUS_E_CLOSED);
        }
        close_pair();
    }
}

static void test_request_and_reply(void **state)
{
    (void)state;
    struct ringbus_reply_to wrong = {.peer = to, .id = 1};
    for (unsigned s = 0; s < 2; s++) {
        open_pair(shapes[s].lane_bytes);
        for (unsigned i = 0; i < SIZES; i++) {
            bool refused = false;
            const size_t size = size_of(i, shapes[s].inline_max, &refused);
            const unsigned before = reply.count;
            expect_one_part(size);
            const int r = ringbus_request(sender.bus, &to, 3, pattern, size,
                                          i % 2 ? RINGBUS_KEY : 0, 5000, on_reply, NULL);
            if (refused) {
                expect_refusal(r);
                wrong.peer = to;
                expect_one_part(size);
                expect_refusal(ringbus_reply(sender.bus, &wrong, pattern, size, 0));
                assert_int_equal(reply.count, before);
                continue;
            }
            assert_int_equal(r, 1);
            RUN_UNTIL(reply.count > before, NODE_MS, &sink, &sender);
            assert_true(reply.equal);
        }
        close_pair();
    }
}

/* Inline as far as a lane allows, in as many parts as there may be: full, then room again. */
static void test_largest_inline_record_wakes_after_full(void **state)
{
    (void)state;
    struct ringbus_options options = node_options(&cluster, SINK_1);
    struct ringbus *none = NULL;
    options.lane_bytes = 4096;
    options.inline_max = 4096;
    assert_int_equal(ringbus_open(&options, &none), RINGBUS_E_ARGUMENT);
    const char *most = strstr(ringbus_errmsg(NULL), "at most ");
    assert_non_null(most);
    options.inline_max = (uint32_t)strtoul(most + 8, NULL, 10);
    sink.on_message = on_message;
    node_open_with(&sink, &options);
    options.path = NULL;
    node_open_with(&sender, &options);
    node_target(&sender, SINK, 1, &sink);
    to = sender.peer;
    memset(&expect, 0, sizeof expect);
    for (unsigned parts = 1; parts <= RINGBUS_PARTS_MAX; parts += 15) {
        for (unsigned round = 0; round < 20; round++) {
            /* Alone it always fits: whatever was there is read before the next is due. */
            const uint64_t before = sink.messages;
            uint64_t sent = 0;
            int r = 1;
            while (r == 1) {
                r = send_split(options.inline_max, parts);
                sent += r == 1;
            }
            assert_int_equal(r, RINGBUS_E_FULL);
            assert_true(sent > 0);
            assert_int_equal(ringbus_wait(sender.bus, 0), 0);
            RUN_UNTIL(sink.messages == before + sent, NODE_MS, &sink);
            assert_int_equal(ringbus_wait(sender.bus, 1000), 1);
        }
    }
    close_pair();
}

static int setup(void **state)
{
    (void)state;
    pattern = malloc(CHUNK_MAX + 4096);
    if (!pattern) {
        return -1;
    }
    for (unsigned i = 0; i < CHUNK_MAX + 4096; i++) {
        pattern[i] = (unsigned char)(i * 31 + (i >> 8) + 1);
    }
    return cluster_up(&cluster, "{}\n");
}

static int teardown(void **state)
{
    (void)state;
    free(pattern);
    cluster_down(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_send),
        cmocka_unit_test(test_sendv),
        cmocka_unit_test(test_claim),
        cmocka_unit_test(test_loan),
        cmocka_unit_test(test_request_and_reply),
        cmocka_unit_test(test_largest_inline_record_wakes_after_full),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
