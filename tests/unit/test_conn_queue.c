/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waits to be sent to another host: bytes leave once and in order however they are put, taken
 * and held, and no memory is written over while the kernel holds it.
 */
#include "daemon/bridge/conn_queue.h"
#include "support/test.h"

#include <string.h>

#define HOLDS 8U

static struct rbi_conn_queue queue;
static uint64_t put_count; /* bytes, so far */
static uint64_t taken_count;

/** What the kernel holds, and what it has to find there for as long as it does. */
struct held {
    bool there;
    struct rbi_conn_hold hold;
    struct iovec pieces[16];
    uint64_t place;
};
static struct held holds[HOLDS];

static uint32_t random_below(uint32_t n)
{
    static uint64_t seed = 3;
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33) % n;
}

static unsigned char byte_at(uint64_t place)
{
    return (unsigned char)(place ^ place >> 8 ^ place >> 16);
}

static int setup(void **state)
{
    (void)state;
    queue = (struct rbi_conn_queue){0};
    put_count = taken_count = 0;
    memset(holds, 0, sizeof(holds));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rbi_conn_queue_deinit(&queue);
    return 0;
}

static void put(size_t size)
{
    static unsigned char bytes[300000];
    for (size_t i = 0; i < size; i++) {
        bytes[i] = byte_at(put_count + i);
    }
    assert_int_equal(rbi_conn_queue_reserve(&queue, size), 0);
    rbi_conn_queue_put(&queue, bytes, size);
    put_count += size;
}

static size_t check_pieces(const struct iovec *pieces, unsigned count, uint64_t place)
{
    size_t size = 0;
    for (unsigned i = 0; i < count; i++) {
        const unsigned char *bytes = pieces[i].iov_base;
        assert_true(pieces[i].iov_len > 0);
        for (size_t at = 0; at < pieces[i].iov_len; at++) {
            if (bytes[at] != byte_at(place + size + at)) {
                fail_msg("byte %zu of piece %u is wrong", at, i);
            }
        }
        size += pieces[i].iov_len;
    }
    return size;
}

/** Takes some of what is first, as a send does; @p slot: holds it. */
static void take(unsigned max_pieces, unsigned slot)
{
    struct iovec pieces[16];
    const unsigned count = rbi_conn_queue_head(&queue, pieces, max_pieces);
    const size_t size = check_pieces(pieces, count, taken_count);
    if (count == 0) {
        assert_int_equal(queue.size, 0);
        return;
    }
    if (slot < HOLDS && !holds[slot].there) {
        holds[slot].there = true;
        holds[slot].place = taken_count;
        memcpy(holds[slot].pieces, pieces, sizeof(pieces));
        rbi_conn_queue_hold(&queue, count, &holds[slot].hold);
    }
    const size_t part = random_below(4) ? size : 1 + random_below((uint32_t)size);
    rbi_conn_queue_take(&queue, part);
    taken_count += part;
}

static void give_back(unsigned slot)
{
    if (holds[slot].there) {
        (void)check_pieces(holds[slot].pieces, holds[slot].hold.count, holds[slot].place);
        holds[slot].there = false;
        rbi_conn_queue_return(&queue, &holds[slot].hold);
    }
}

static void test_bytes_leave_once_and_in_order(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3000; i++) {
        put(1 + random_below(i % 10 ? 2000 : 300000));
        for (unsigned n = random_below(4); n-- > 0;) {
            take(1 + random_below(16), HOLDS);
        }
        assert_int_equal(queue.size, put_count - taken_count);
    }
    while (queue.size) {
        take(16, HOLDS);
    }
    assert_int_equal(taken_count, put_count);
}

static void test_memory_that_is_held_is_not_written_over(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4000; i++) {
        if (queue.size < 2000000) {
            put(1 + random_below(i % 5 ? 3000 : 200000));
        }
        for (unsigned n = random_below(5); n-- > 0;) {
            take(1 + random_below(16), random_below(HOLDS));
        }
        give_back(random_below(HOLDS));
    }
    for (unsigned i = 0; i < HOLDS; i++) {
        give_back(i);
    }
    assert_int_equal(queue.held_count, 0);
    while (queue.size) {
        take(16, HOLDS);
    }
    assert_int_equal(taken_count, put_count);
}

static void test_a_steady_stream_allocates_nothing(void **state)
{
    (void)state;
    put(100);
    const struct rbi_conn_chunk *first = queue.first;
    take(1, HOLDS);
    while (queue.size) {
        take(1, HOLDS);
    }
    for (unsigned i = 0; i < 1000; i++) {
        put(100);
        while (queue.size) {
            take(16, HOLDS);
        }
        assert_ptr_equal(queue.first, first); /* from its beginning, again and again */
    }
    put(200000);
    while (queue.size) {
        take(16, HOLDS);
    }
    assert_in_range(queue.spare_count, 1, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_bytes_leave_once_and_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_memory_that_is_held_is_not_written_over, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_steady_stream_allocates_nothing, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
