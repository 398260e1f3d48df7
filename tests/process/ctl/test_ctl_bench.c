/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of ringbusctl bench that need no bus: what it takes for right, and for quiet. */
#include "daemon/ctl/bench.h"
#include "support/test.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SIZE 200U

struct bench {
    struct rbi_ctl_args args;
    struct rbi_bench_plan plan;
    struct rbi_bench_page *page;
    struct rbi_bench_side side;
};

static void bench_init(struct bench *bench)
{
    memset(bench, 0, sizeof *bench);
    bench->args.sizes[0] = SIZE;
    bench->args.size_count = 1;
    bench->plan.args = &bench->args;
    bench->page =
        mmap(NULL, sizeof *bench->page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(bench->page, MAP_FAILED);
    bench->side.plan = &bench->plan;
    bench->side.page = bench->page;
    bench->side.number = 1;
    bench->side.size = SIZE;
    bench->side.expected = 1000;
    assert_int_equal(rbi_bench_pattern_init(&bench->side), 0);
}

static void bench_deinit(struct bench *bench)
{
    free(bench->side.pattern);
    munmap(bench->page, sizeof *bench->page);
}

/* A message as its sender makes it: a piece of the pattern, its number at both ends. */
static void message_make(const struct bench *bench, uint64_t number, unsigned char *data)
{
    const uint64_t last = ~number;
    memcpy(data, bench->side.pattern + number % 16 * 64, SIZE);
    memcpy(data, &number, sizeof number);
    memcpy(data + SIZE - sizeof last, &last, sizeof last);
}

static void receive(struct bench *bench, const unsigned char *data, size_t size)
{
    const struct ringbus_message message = {.data = data, .size = size};
    rbi_bench_on_message(NULL, &message, &bench->side);
}

static void test_right_messages_are_counted(void **state)
{
    struct bench bench;
    unsigned char data[SIZE];
    (void)state;
    bench_init(&bench);
    for (uint64_t i = 0; i < 40; i++) {
        message_make(&bench, 1000 + i, data);
        receive(&bench, data, SIZE);
    }
    assert_int_equal(bench.side.received, 40);
    assert_int_equal(bench.page->fail_code, 0);
    assert_int_equal(bench.page->lines.stop, 0);
    bench_deinit(&bench);
}

/* @p flip: the byte that arrives changed, or SIZE for none */
static void assert_wrong(uint64_t number, size_t size, size_t flip, const char *what)
{
    struct bench bench;
    unsigned char data[SIZE + 1] = {0};
    bench_init(&bench);
    message_make(&bench, number, data);
    data[flip] ^= 1;
    receive(&bench, data, size);
    assert_int_equal(bench.side.received, 0);
    assert_int_equal(bench.page->lines.stop, 1);
    assert_int_equal(bench.page->fail_code, RBI_CTL_FAILED);
    assert_non_null(strstr(bench.page->fail_text, what));
    bench_deinit(&bench);
}

static void test_wrong_messages_fail_the_run(void **state)
{
    (void)state;
    assert_wrong(1001, SIZE, SIZE, "lost, twice or out of order"); /* one is missing */
    assert_wrong(999, SIZE, SIZE, "lost, twice or out of order");  /* one came twice */
    assert_wrong(1000, SIZE - 1, SIZE, "wrong size");
    assert_wrong(1000, SIZE + 1, SIZE, "wrong size");
    assert_wrong(1000, 0, SIZE, "wrong size");
    for (size_t i = 8; i < SIZE; i++) {
        assert_wrong(1000, SIZE, i, "wrong content");
    }
}

/* The middle of an older message under the right number, as a receiver would see a torn one. */
static void test_old_content_is_wrong(void **state)
{
    struct bench bench;
    unsigned char data[SIZE];
    unsigned char old[SIZE];
    (void)state;
    bench_init(&bench);
    message_make(&bench, 1000, data);
    message_make(&bench, 999, old);
    memcpy(data + 8, old + 8, SIZE - 16);
    receive(&bench, data, SIZE);
    assert_int_equal(bench.page->fail_code, RBI_CTL_FAILED);
    bench_deinit(&bench);
}

static void test_first_failure_is_kept(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    rbi_bench_fail_bus(bench.page, RINGBUS_E_QUOTA, "/A", "quota.links is used up");
    rbi_bench_fail(bench.page, RBI_CTL_FAILED, "the link ended");
    assert_int_equal(bench.page->fail_code, RBI_CTL_DENIED);
    assert_string_equal(bench.page->fail_text, "/A: quota.links is used up (RINGBUS_E_QUOTA)");
    bench_deinit(&bench);
}

static void test_failure_after_the_end_is_none(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    bench.page->lines.stop = 1;
    rbi_bench_fail(bench.page, RBI_CTL_FAILED, "the link ended");
    assert_int_equal(bench.page->fail_code, RBI_CTL_OK);
    assert_string_equal(bench.page->fail_text, "");
    bench_deinit(&bench);
}

static void test_load_between(void **state)
{
    /* 2 cores for 5 s of 100 ticks: 1000 ticks, 700 of them busy, 20 stolen; ours were 6 s. */
    const struct rbi_bench_load before = {.known = true, .all = 500, .busy = 100, .steal = 3};
    const struct rbi_bench_load after = {.known = true, .all = 1500, .busy = 800, .steal = 23};
    const struct rbi_bench_load unknown = {0};
    struct rbi_bench_quiet quiet;
    (void)state;
    quiet = rbi_bench_load_between(&before, &after, UINT64_C(6000000000));
    assert_true(quiet.known);
    assert_float_equal(quiet.steal_percent, 2.0, 1e-9);
    assert_float_equal(quiet.others_percent, 10.0, 1e-9);
    quiet = rbi_bench_load_between(&before, &after, UINT64_C(8000000000));
    assert_float_equal(quiet.others_percent, 0.0, 1e-9); /* rounding of ticks */
    assert_false(rbi_bench_load_between(&unknown, &after, 0).known);
    assert_false(rbi_bench_load_between(&before, &unknown, 0).known);
    assert_false(rbi_bench_load_between(&after, &after, 0).known);
}

static void test_load_read(void **state)
{
    int cpus[2] = {-1, -1};
    const struct rbi_ctl_args args = {0};
    struct rbi_bench_load load;
    cpu_set_t set;
    (void)state;
    assert_int_equal(rbi_bench_cpus(&args, cpus), RBI_CTL_OK);
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    assert_true(CPU_ISSET((size_t)cpus[0], &set));
    assert_true(CPU_ISSET((size_t)cpus[1], &set));
    assert_true(cpus[0] != cpus[1] || CPU_COUNT(&set) == 1);
    rbi_bench_load_read(cpus, &load);
    assert_true(load.known);
    assert_true(load.all >= load.busy + load.steal);
    cpus[1] = 1023;
    rbi_bench_load_read(cpus, &load);
    assert_false(load.known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_messages_are_counted),
        cmocka_unit_test(test_wrong_messages_fail_the_run),
        cmocka_unit_test(test_old_content_is_wrong),
        cmocka_unit_test(test_first_failure_is_kept),
        cmocka_unit_test(test_failure_after_the_end_is_none),
        cmocka_unit_test(test_load_between),
        cmocka_unit_test(test_load_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
