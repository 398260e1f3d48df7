/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a tick costs an endpoint with thousands of links of which none has anything due:
 * compared with looking into each link, in one run.
 */
#include "libclient/internal.h"
#include "support/machine.h"
#include "support/test.h"

#include <stdlib.h>

#define LINKS  4000U
#define ROUNDS 101U
/* Between two ticks the application has used the caches for other things. */
#define CACHE_BYTES (UINT64_C(8) << 20)

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static uint64_t median(uint64_t *values)
{
    qsort(values, ROUNDS, sizeof *values, by_value);
    return values[ROUNDS / 2];
}

/* Handle of which only what a tick touches is there. */
static struct ringbus *make_handle(void)
{
    struct ringbus *bus = calloc(1, sizeof *bus);
    assert_non_null(bus);
    bus->ends = calloc(LINKS, sizeof *bus->ends);
    bus->due = calloc(LINKS, sizeof *bus->due);
    assert_non_null(bus->ends);
    assert_non_null(bus->due);
    bus->control.phase = RBI_CONTROL_ON;
    bus->target_due_ns = RBI_NEVER;
    bus->now_ns = UINT64_C(1000000000);
    for (unsigned i = 0; i < LINKS; i++) {
        struct rbi_end *end = calloc(1, sizeof *end);
        assert_non_null(end);
        end->phase = RBI_END_LINKED;
        rbi_link_init(&end->fsm, bus->now_ns);
        rbi_turn_add(bus, end);
        rbi_tick_follow(bus, end);
    }
    return bus;
}

static void free_handle(struct ringbus *bus)
{
    for (unsigned i = 0; i < LINKS; i++) {
        free(bus->ends[i]);
    }
    free(bus->ends);
    free(bus->due);
    free(bus);
}

static void use_caches(volatile unsigned char *other)
{
    for (uint64_t i = 0; i < CACHE_BYTES; i += RBI_LINE) {
        other[i]++;
    }
}

static void test_idle_links_cost_a_word_each(void **state)
{
    (void)state;
    unsigned char *other = calloc(1, CACHE_BYTES);
    assert_non_null(other);
    struct ringbus *bus = make_handle();
    uint64_t table_ns[ROUNDS];
    uint64_t each_ns[ROUNDS];
    uint64_t next_ns = RBI_NEVER;
    for (unsigned round = 0; round < ROUNDS; round++) {
        bus->now_ns += 1000;
        bus->next_deadline_ns = bus->now_ns; /* something of the handle is due, no link is */
        use_caches(other);
        uint64_t start_ns = machine_now_ns();
        rbi_tick_judge(bus);
        table_ns[round] = machine_now_ns() - start_ns;
        use_caches(other);
        start_ns = machine_now_ns();
        next_ns = RBI_NEVER;
        for (unsigned i = 0; i < LINKS; i++) {
            next_ns = rbi_min_u64(next_ns, rbi_link_deadline_ns(&bus->ends[i]->fsm));
        }
        each_ns[round] = machine_now_ns() - start_ns;
        assert_true(next_ns == bus->next_deadline_ns);
    }
    const uint64_t table = median(table_ns);
    const uint64_t each = median(each_ns);
    print_message("%u links: a tick takes %u ns; looking into each link %u ns, %.1f x\n", LINKS,
                  (unsigned)table, (unsigned)each, (double)each / (double)table);
#if !TEST_SANITIZED
    assert_true(table < 10000);
#endif
    assert_true(table < each);
    free(other);
    free_handle(bus);
}

/* Ends change places while they are looked at; none is missed and none looked at twice. */
static void test_every_end_that_is_due_is_judged_once(void **state)
{
    (void)state;
    struct ringbus *bus = make_handle();
    uint64_t seed = 7;
    for (unsigned i = 0; i < LINKS; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        if (seed >> 40 & 1) {
            /* Leaving: promoted to the front when it is looked at, and never due again. */
            bus->ends[i]->leave_reason = RBI_REASON_BAD_PEER;
            bus->ends[i]->fsm.closed = true;
            bus->due[i] = bus->now_ns;
        } else {
            bus->due[i] = bus->now_ns + 5000 + i;
        }
    }
    bus->next_deadline_ns = bus->now_ns;
    rbi_tick_judge(bus);
    uint64_t least = RBI_NEVER;
    for (unsigned i = 0; i < LINKS; i++) {
        assert_int_equal(bus->ends[i]->position, i);
        assert_true(bus->due[i] > bus->now_ns);
        assert_true((bus->due[i] == RBI_NEVER) == bus->ends[i]->fsm.closed);
        least = rbi_min_u64(least, bus->due[i]);
    }
    assert_true(bus->next_deadline_ns == least);
    /* With a promotion between: the words go with their ends. */
    for (unsigned i = LINKS; i-- > LINKS / 2;) {
        struct rbi_end *end = bus->ends[i];
        const uint64_t due_ns = bus->due[i];
        rbi_turn_promote(bus, end);
        assert_true(bus->due[end->position] == due_ns);
        assert_ptr_equal(bus->ends[end->position], end);
    }
    free_handle(bus);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle_links_cost_a_word_each),
        cmocka_unit_test(test_every_end_that_is_due_is_judged_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
