/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario 31: ten registered clients that stop reading while others come and go. What is
 * kept for them is bounded, they hear once that they have missed something, the daemon's
 * memory does not grow, and nobody else waits longer than before.
 */
#include "bus/record.h"
#include "support/bus.h"
#include "support/loops.h"
#include "support/machine.h"
#include "support/raw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ECHO  "/game/eu/pc/w1/core/echo"
#define DEAF  10U
#define QUEUE 64U

#define ASKS_MAX 10000U

static uint64_t asks_ns[ASKS_MAX];
static unsigned ask_count;

/** One question of a client that reads; notes how long the answer took. */
static void ask(struct raw *raw)
{
    const uint64_t delay_ns =
        machine_run_delay_ns(loops_cluster.pid) + machine_run_delay_ns(getpid());
    const uint64_t begin_ns = machine_now_ns();
    assert_int_equal(raw_set_state(raw, RBI_ENDPOINT_READY), 0);
    const uint64_t took_ns = machine_now_ns() - begin_ns;
    const uint64_t machine_ns =
        machine_run_delay_ns(loops_cluster.pid) + machine_run_delay_ns(getpid()) - delay_ns;
    if (ask_count < ASKS_MAX) {
        asks_ns[ask_count++] = took_ns > machine_ns ? took_ns - machine_ns : 0;
    }
}

static int by_size(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/** @return what nine of ten took at most, in us; forgets them */
static uint64_t asked_us(void)
{
    qsort(asks_ns, ask_count, sizeof asks_ns[0], by_size);
    const uint64_t us = asks_ns[ask_count * 9 / 10] / 1000;
    ask_count = 0;
    return us;
}

/** Somebody joins and leaves: two events. Asks after each eighth. */
static void come_and_go(struct raw *asker, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        struct raw raw;
        assert_int_equal(raw_up(&raw, loops_cluster.socket, ECHO "/77"), 0);
        raw_close(&raw);
        if (i % 8 == 0) {
            ask(asker);
        }
    }
}

static long memory_kb(void)
{
    char path[64];
    char line[256];
    long kb = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)loops_cluster.pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        if (strncmp(line, "VmRSS:", 6) == 0) {
            kb = strtol(line + 6, NULL, 10);
        }
    }
    (void)fclose(file);
    return kb;
}

/** @return events in the socket of one that was deaf, before the one RESYNC that ends them */
static unsigned hear(struct raw *raw)
{
    struct raw_message message;
    unsigned events = 0;
    for (;;) {
        assert_int_equal(raw_receive(raw, &message, RAW_TIMEOUT_MS), 0);
        if (message.header.type == RBI_WIRE_RESYNC) {
            return events;
        }
        /* It may have been told besides that the daemon has settled. */
        events += message.header.type == RBI_WIRE_EVENT;
    }
}

static void test_ten_that_do_not_read(void **state)
{
    struct raw deaf[DEAF];
    struct raw asker;
    char path[64];
    const unsigned rounds = FULL_OR(5000U, 500U);
    assert_int_equal(loops_up(state, "send_queue: 64, log_level: error",
                              "quota: {control: 1000000, user_control: 10000000, "
                              "connects: 1000000}\n"),
                     0);
    assert_int_equal(raw_up(&asker, loops_cluster.socket, ECHO "/1"), 0);
    come_and_go(&asker, 200);
    const uint64_t before_us = asked_us();
    for (unsigned i = 0; i < DEAF; i++) {
        (void)snprintf(path, sizeof(path), "/game/eu/pc/w1/core/deaf/%u", i + 1);
        assert_int_equal(raw_up(&deaf[i], loops_cluster.socket, path), 0);
        assert_int_equal(raw_watch(&deaf[i], RBI_WIRE_WATCH, "/game/eu/pc/w1/core/echo"), 0);
    }
    come_and_go(&asker, rounds);
    const long memory = memory_kb();
    const uint64_t during_us = asked_us();
    come_and_go(&asker, rounds);
    const long grown = memory_kb() - memory;
    print_message("9 of 10 answers within %u us, %u us before; memory %ld KiB, then %ld more\n",
                  (unsigned)during_us, (unsigned)before_us, memory, grown);
    for (unsigned i = 0; i < DEAF; i++) {
        const unsigned events = hear(&deaf[i]);
        assert_in_range(events, QUEUE / 2, 2 * rounds);
        /* It is heard of and hears as ever. */
        assert_int_equal(raw_set_state(&deaf[i], RBI_ENDPOINT_BUSY), 0);
    }
    assert_int_equal(raw_status(loops_cluster.socket, "resyncs"), DEAF);
    assert_true(raw_status(loops_cluster.socket, "events_dropped") > rounds);
    assert_int_equal(raw_status(loops_cluster.socket, "queue_overflows"), 0);
    for (unsigned i = 0; i < DEAF; i++) {
        raw_close(&deaf[i]);
    }
    raw_close(&asker);
    assert_true(during_us <= 2 * before_us + 500);
    assert_true(TEST_SCALE > 1 || grown < 512); /* a sanitizer keeps freed memory */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOPS_BOTH(test_ten_that_do_not_read),
    };
    return cmocka_run_group_tests_name("deaf", tests, NULL, NULL);
}
