/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon reads of a caller's outcomes, whatever the caller puts there: features 2.4, the
 * host shield sums the pages of callers that may lie.
 */
#include "daemon/code.h"
#include "daemon/outcome.h"
#include "support/cluster.h"
#include "support/raw.h"
#include "support/test.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SERVICE "/game/eu/pc/w1/core/service"
#define SLOTS   128U

static struct cluster cluster;

/* ---- the reader ---------------------------------------------------------------------------- */

struct seen {
    unsigned count;
    struct rbi_outcome_news last;
};

static void see(void *context, const struct rbi_outcome_news *news)
{
    struct seen *seen = context;
    seen->count++;
    seen->last = *news;
}

static struct seen look(struct rbi_outcome_reader *reader, uint64_t now_ns)
{
    struct seen seen = {0};
    rbi_outcome_look(reader, now_ns, see, &seen);
    return seen;
}

static void make(struct rbi_segment *segment, uint32_t slots)
{
    assert_int_equal(
        rbi_segment_create(segment, "test", RBI_SEGMENT_OUTCOMES, rbi_outcomes_bytes(slots), 0), 0);
    ((struct rbi_outcomes *)segment->base)->slot_count = slots;
}

static struct rbi_outcome *slot_of(struct rbi_segment *segment, uint32_t slot)
{
    return &rbi_outcomes_slots(segment->base)[slot];
}

static void bump(struct rbi_segment *segment)
{
    rbi_outcome_add(&((struct rbi_outcomes *)segment->base)->changes, 1);
}

static void test_look_tells_what_has_come_since_the_last(void **state)
{
    (void)state;
    struct rbi_segment segment;
    struct rbi_outcome_reader reader;
    bool has = false;
    make(&segment, SLOTS);
    rbi_outcome_reader_init(&reader);
    assert_int_equal(rbi_outcome_adopt(&reader, segment.fd, segment.size, false), 0);
    assert_int_equal(look(&reader, 1).count, 0);
    rbi_outcome_name(slot_of(&segment, 3), 77, rbi_outcome_who(5, 9));
    rbi_store_rlx(&slot_of(&segment, 3)->ok, 10);
    rbi_store_rlx(&slot_of(&segment, 3)->lost, 2);
    rbi_store_rlx(&slot_of(&segment, 3)->in_a_row, 2);
    assert_int_equal(look(&reader, 2).count, 0); /* nobody said that anything has changed */
    bump(&segment);
    struct seen seen = look(&reader, 3);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.last.cluster, 77);
    assert_int_equal(seen.last.instance, 5);
    assert_int_equal(seen.last.incarnation, 9);
    assert_int_equal(seen.last.ok, 10);
    assert_int_equal(seen.last.failed, 0);
    assert_int_equal(seen.last.lost, 2);
    assert_int_equal(seen.last.in_a_row, 2);
    assert_int_equal(rbi_outcome_active_ns(&reader, 77, rbi_outcome_who(5, 9), &has), 3);
    assert_true(has);
    assert_int_equal(rbi_outcome_active_ns(&reader, 77, rbi_outcome_who(6, 9), &has), 3);
    assert_false(has);
    rbi_store_rlx(&slot_of(&segment, 3)->failed, 4);
    bump(&segment);
    seen = look(&reader, 4);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.last.ok, 0);
    assert_int_equal(seen.last.failed, 4);
    assert_int_equal(look(&reader, 5).count, 0);
    rbi_outcome_reader_deinit(&reader);
    rbi_segment_deinit(&segment);
}

static void test_look_takes_nothing_of_another_name(void **state)
{
    (void)state;
    struct rbi_segment segment;
    struct rbi_outcome_reader reader;
    make(&segment, SLOTS);
    rbi_outcome_reader_init(&reader);
    rbi_outcome_name(slot_of(&segment, 1), 77, rbi_outcome_who(5, 9));
    rbi_store_rlx(&slot_of(&segment, 1)->lost, 1000);
    bump(&segment);
    assert_int_equal(rbi_outcome_adopt(&reader, segment.fd, segment.size, false), 0);
    assert_int_equal(look(&reader, 1).count, 0); /* from before this daemon */
    rbi_store_rlx(&slot_of(&segment, 1)->lost, 2000);
    rbi_outcome_name(slot_of(&segment, 1), 77, rbi_outcome_who(6, 9));
    bump(&segment);
    assert_int_equal(look(&reader, 2).count, 0); /* whose they are cannot be told */
    rbi_store_rlx(&slot_of(&segment, 1)->lost, 2001);
    bump(&segment);
    const struct seen seen = look(&reader, 3);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.last.instance, 6);
    assert_int_equal(seen.last.lost, 1);
    rbi_outcome_reader_deinit(&reader);
    rbi_segment_deinit(&segment);
}

/* One that was there all the time has counted nothing before it was told of. */
static void test_look_takes_what_a_fresh_one_has_counted(void **state)
{
    (void)state;
    struct rbi_segment segment;
    struct rbi_outcome_reader reader;
    make(&segment, SLOTS);
    rbi_outcome_reader_init(&reader);
    rbi_outcome_name(slot_of(&segment, 1), 77, rbi_outcome_who(5, 9));
    rbi_store_rlx(&slot_of(&segment, 1)->lost, 3);
    bump(&segment);
    assert_int_equal(rbi_outcome_adopt(&reader, segment.fd, segment.size, true), 0);
    assert_int_equal(look(&reader, 1).last.lost, 3);
    rbi_outcome_reader_deinit(&reader);
    rbi_segment_deinit(&segment);
}

static void test_look_bounds_what_a_liar_says(void **state)
{
    (void)state;
    struct rbi_segment segment;
    struct rbi_outcome_reader reader;
    make(&segment, SLOTS);
    rbi_outcome_reader_init(&reader);
    rbi_outcome_name(slot_of(&segment, 1), 77, rbi_outcome_who(5, 9));
    rbi_store_rlx(&slot_of(&segment, 1)->ok, 100);
    bump(&segment);
    assert_int_equal(rbi_outcome_adopt(&reader, segment.fd, segment.size, false), 0);
    (void)look(&reader, 1);
    rbi_store_rlx(&slot_of(&segment, 1)->ok, 50); /* back */
    bump(&segment);
    assert_int_equal(look(&reader, 2).count, 0);
    rbi_store_rlx(&slot_of(&segment, 1)->lost, UINT64_MAX);
    rbi_store_rlx(&slot_of(&segment, 1)->in_a_row, UINT64_MAX);
    bump(&segment);
    const struct seen seen = look(&reader, 3);
    assert_int_equal(seen.last.lost, UINT32_MAX);
    assert_int_equal(seen.last.in_a_row, UINT32_MAX);
    rbi_store_rlx(&slot_of(&segment, 0)->who, 1); /* that one is nobody's */
    rbi_store_rlx(&slot_of(&segment, 0)->ok, 7);
    bump(&segment);
    assert_int_equal(look(&reader, 4).count, 0);
    rbi_outcome_reader_deinit(&reader);
    rbi_segment_deinit(&segment);
}

static void test_adopt_larger_goes_on_and_refuses_what_cannot_be(void **state)
{
    (void)state;
    struct rbi_segment segment;
    struct rbi_segment larger;
    struct rbi_segment wrong;
    struct rbi_outcome_reader reader;
    make(&segment, SLOTS);
    make(&larger, 2 * SLOTS);
    make(&wrong, SLOTS);
    ((struct rbi_outcomes *)wrong.base)->slot_count = SLOTS + 2;
    rbi_outcome_reader_init(&reader);
    assert_int_equal(rbi_outcome_adopt(&reader, wrong.fd, wrong.size, false), -EPROTO);
    assert_int_equal(rbi_outcome_adopt(&reader, segment.fd, 2 * segment.size, false), -EFBIG);
    assert_null(reader.segment.base);
    assert_int_equal(rbi_outcome_adopt(&reader, segment.fd, segment.size, false), 0);
    rbi_outcome_name(slot_of(&segment, 1), 77, rbi_outcome_who(5, 9));
    rbi_store_rlx(&slot_of(&segment, 1)->ok, 8);
    bump(&segment);
    assert_int_equal(look(&reader, 1).last.ok, 8);
    rbi_outcome_name(slot_of(&larger, 1), 77, rbi_outcome_who(5, 9));
    rbi_store_rlx(&slot_of(&larger, 1)->ok, 9);
    rbi_outcome_name(slot_of(&larger, 100), 77, rbi_outcome_who(6, 9));
    rbi_store_rlx(&slot_of(&larger, 100)->ok, 1);
    assert_int_equal(rbi_outcome_adopt(&reader, larger.fd, larger.size, false), 0);
    const struct seen seen = look(&reader, 2); /* though `changes` says nothing */
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.last.instance, 6);
    assert_int_equal(rbi_outcome_adopt(&reader, segment.fd, segment.size, false),
                     -EPROTO); /* smaller */
    rbi_outcome_reader_deinit(&reader);
    rbi_segment_deinit(&segment);
    rbi_segment_deinit(&larger);
    rbi_segment_deinit(&wrong);
}

/* Features J4: what ended before the slot was given back is of who had it. */
static void test_look_takes_the_last_words(void **state)
{
    (void)state;
    struct rbi_segment segment;
    struct rbi_outcome_reader reader;
    make(&segment, SLOTS);
    struct rbi_outcome *slot = slot_of(&segment, 2);
    rbi_outcome_reader_init(&reader);
    assert_int_equal(rbi_outcome_adopt(&reader, segment.fd, segment.size, true), 0);
    rbi_outcome_name(slot, 77, rbi_outcome_who(5, 9));
    rbi_store_rlx(&slot->lost, 2);
    rbi_store_rlx(&slot->in_a_row, 2);
    bump(&segment);
    assert_int_equal(look(&reader, 1).last.lost, 2);
    rbi_store_rlx(&slot->lost, 5);
    rbi_outcome_name(slot, 0, 0);
    bump(&segment);
    const struct seen seen = look(&reader, 2);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.last.cluster, 77);
    assert_int_equal(seen.last.instance, 5);
    assert_int_equal(seen.last.incarnation, 9);
    assert_int_equal(seen.last.lost, 3);
    assert_int_equal(seen.last.in_a_row, 5);
    rbi_outcome_name(slot, 77, rbi_outcome_who(6, 9));
    bump(&segment);
    assert_int_equal(look(&reader, 3).count, 0); /* and nothing of it the next one's */
    rbi_outcome_reader_deinit(&reader);
    rbi_segment_deinit(&segment);
}

/** How many calls of one time came in a slot since this was last asked. */
static uint32_t timed(struct rbi_outcome_reader *reader, uint32_t slot, uint32_t bucket)
{
    static struct rbi_histogram_growth growth;
    (void)look(reader, 1);
    assert_int_equal(rbi_outcome_latency(reader, slot, &growth), 0);
    return growth.counts[bucket];
}

/* Features J4: how long calls took is nobody else's, and nothing from before this daemon. */
static void test_latency_tells_what_has_come_under_this_name(void **state)
{
    (void)state;
    struct rbi_segment segment;
    struct rbi_outcome_reader reader;
    make(&segment, SLOTS);
    struct rbi_outcome *slot = slot_of(&segment, 1);
    rbi_outcome_reader_init(&reader);
    rbi_outcome_name(slot, 77, rbi_outcome_who(5, 9));
    rbi_outcome_timed(slot, 30);
    assert_int_equal(rbi_outcome_adopt(&reader, segment.fd, segment.size, false), 0);
    bump(&segment);
    assert_int_equal(timed(&reader, 1, 30), 0); /* from before this daemon */
    rbi_outcome_timed(slot, 30);
    rbi_outcome_timed(slot, 30);
    bump(&segment);
    assert_int_equal(timed(&reader, 1, 30), 2);
    assert_int_equal(timed(&reader, 1, 30), 0);
    rbi_outcome_timed(slot, 30);
    rbi_outcome_name(slot, 0, 0);
    bump(&segment);
    assert_int_equal(look(&reader, 2).count, 0); /* no call has ended by that */
    rbi_outcome_clear(slot);
    rbi_outcome_timed(slot, 40);
    rbi_outcome_name(slot, 77, rbi_outcome_who(6, 9));
    bump(&segment);
    assert_int_equal(timed(&reader, 1, 40), 1); /* all that the new name has */
    assert_int_equal(timed(&reader, 1, 30), 0);
    rbi_outcome_reader_deinit(&reader);
    rbi_segment_deinit(&segment);
}

/* Idle callers cost a load each: a thousand of them less than half a percent of a core. */
#define IDLE_CALLERS 1000U
#define SWEEP_NS     UINT64_C(250000000)

static uint64_t cpu_ns(void)
{
    struct timespec now;
    assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void test_idle_callers_cost_next_to_nothing(void **state)
{
    (void)state;
    static struct rbi_segment segments[IDLE_CALLERS];
    static struct rbi_outcome_reader readers[IDLE_CALLERS];
    uint64_t least_ns = UINT64_MAX;
    for (unsigned i = 0; i < IDLE_CALLERS; i++) {
        make(&segments[i], SLOTS);
        rbi_outcome_reader_init(&readers[i]);
        assert_int_equal(rbi_outcome_adopt(&readers[i], segments[i].fd, segments[i].size, false),
                         0);
        rbi_segment_close_fd(&segments[i]);
        (void)look(&readers[i], 1);
    }
    for (unsigned round = 0; round < 5; round++) {
        const uint64_t begin_ns = cpu_ns();
        for (unsigned i = 0; i < IDLE_CALLERS; i++) {
            assert_int_equal(look(&readers[i], 2).count, 0);
        }
        const uint64_t took_ns = cpu_ns() - begin_ns;
        least_ns = took_ns < least_ns ? took_ns : least_ns;
    }
    print_message("a sweep over %u idle callers: %llu us\n", IDLE_CALLERS,
                  (unsigned long long)(least_ns / 1000));
    assert_true(least_ns < SWEEP_NS / 200);
    for (unsigned i = 0; i < IDLE_CALLERS; i++) {
        rbi_outcome_reader_deinit(&readers[i]);
        rbi_segment_deinit(&segments[i]);
    }
}

/* ---- the daemon ------------------------------------------------------------------------------ */

/** Names an instance in slot 1 and reports one lost call to it. */
static void blame(struct rbi_segment *segment, const struct raw *whom, uint32_t incarnation)
{
    rbi_outcome_name(slot_of(segment, 1), whom->registered.cluster,
                     rbi_outcome_who(whom->registered.instance, incarnation));
    bump(segment);
    test_sleep_ms(400); /* seen under this name before anything is counted */
    rbi_outcome_add(&slot_of(segment, 1)->lost, 1);
    bump(segment);
}

static void wait_lost(uint64_t count)
{
    const uint64_t deadline_ms = test_now_ms() + 5000;
    while (raw_status(cluster.socket, "calls_lost") != count) {
        assert_true(test_now_ms() < deadline_ms);
        test_sleep_ms(20);
    }
}

static void test_only_who_is_linked_may_blame(void **state)
{
    (void)state;
    struct raw server;
    struct raw caller;
    struct raw stranger;
    struct rbi_segment own[2];
    assert_int_equal(raw_up(&server, cluster.socket, SERVICE "/1"), 0);
    assert_int_equal(raw_up(&caller, cluster.socket, ""), 0);
    assert_int_equal(raw_up(&stranger, cluster.socket, ""), 0);
    assert_int_equal(raw_link(&caller, &server, NULL), 0);
    make(&own[0], SLOTS);
    make(&own[1], SLOTS);
    const struct rbi_wire_outcomes body = {.bytes = own[0].size};
    assert_int_equal(raw_send(&stranger, RBI_WIRE_OUTCOMES, &body, &own[1].fd, 1), 0);
    assert_int_equal(raw_send(&caller, RBI_WIRE_OUTCOMES, &body, &own[0].fd, 1), 0);
    blame(&own[1], &server, server.registered.incarnation);
    blame(&own[0], &server, server.registered.incarnation + 1);
    blame(&own[0], &server, server.registered.incarnation);
    wait_lost(1);
    rbi_outcome_add(&slot_of(&own[0], 1)->lost, 1);
    bump(&own[0]);
    wait_lost(2); /* what the others said was read by now as well */
    raw_close(&server);
    raw_close(&caller);
    raw_close(&stranger);
    rbi_segment_deinit(&own[0]);
    rbi_segment_deinit(&own[1]);
}

static void test_outcomes_of_no_possible_size_are_refused(void **state)
{
    (void)state;
    struct raw caller;
    struct rbi_segment own;
    assert_int_equal(raw_up(&caller, cluster.socket, ""), 0);
    make(&own, SLOTS);
    const uint64_t sizes[] = {0, RBI_PAGE - 1, rbi_outcomes_bytes(RBI_OUTCOME_SLOTS_MAX) + 1,
                              UINT64_MAX};
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const struct rbi_wire_outcomes body = {.bytes = sizes[i]};
        assert_int_equal(raw_send(&caller, RBI_WIRE_OUTCOMES, &body, &own.fd, 1), 0);
        assert_int_equal(raw_expect_error(&caller), -31); /* ARGUMENT */
    }
    const struct rbi_wire_outcomes other = {.bytes = 2 * own.size};
    assert_int_equal(raw_send(&caller, RBI_WIRE_OUTCOMES, &other, &own.fd, 1), 0);
    assert_int_equal(raw_expect_error(&caller), -50); /* BAD_PEER: of another size than it says */
    const struct rbi_wire_outcomes page = {.bytes = caller.page.size};
    assert_int_equal(raw_send(&caller, RBI_WIRE_OUTCOMES, &page, &caller.page.fd, 1), 0);
    assert_int_equal(raw_expect_error(&caller), -50); /* of another kind */
    raw_close(&caller);
    rbi_segment_deinit(&own);
}

/** The code of the ERROR that a caller has been sent, or 0. */
static int refusal(struct raw *caller)
{
    const struct rbi_wire_query query = {.what = RBI_QUERY_STATUS};
    struct raw_message message;
    int code = 0;
    assert_int_equal(raw_send(caller, RBI_WIRE_QUERY, &query, NULL, 0), 0);
    do {
        assert_int_equal(raw_receive(caller, &message, RAW_TIMEOUT_MS), 0);
        code = message.header.type == RBI_WIRE_ERROR ? message.body.error.code : code;
        raw_message_deinit(&message);
    } while (message.header.type != RBI_WIRE_QUERY_END);
    return code;
}

/* They cost the daemon a look four times a second: no more of them than there may be links. */
static void test_outcomes_are_no_more_than_links_need(void **state)
{
    (void)state;
    struct raw caller;
    struct rbi_segment own;
    const uint32_t links = 1024; /* quota.links, as shipped */
    const uint32_t slots[] = {4 * links + 2 * RBI_OUTCOME_SLOTS_MIN + 2, 2 * links};
    assert_int_equal(raw_up(&caller, cluster.socket, ""), 0);
    for (unsigned i = 0; i < 2; i++) {
        make(&own, slots[i]);
        const struct rbi_wire_outcomes body = {.bytes = own.size};
        assert_int_equal(raw_send(&caller, RBI_WIRE_OUTCOMES, &body, &own.fd, 1), 0);
        assert_int_equal(refusal(&caller), i == 0 ? RBI_CODE_QUOTA : 0);
        rbi_segment_deinit(&own);
    }
    raw_close(&caller);
}

static int up(void **state)
{
    (void)state;
    return cluster_up(&cluster, "{}");
}

static int down(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_look_tells_what_has_come_since_the_last),
        cmocka_unit_test(test_look_takes_nothing_of_another_name),
        cmocka_unit_test(test_look_takes_what_a_fresh_one_has_counted),
        cmocka_unit_test(test_look_bounds_what_a_liar_says),
        cmocka_unit_test(test_look_takes_the_last_words),
        cmocka_unit_test(test_latency_tells_what_has_come_under_this_name),
        cmocka_unit_test(test_adopt_larger_goes_on_and_refuses_what_cannot_be),
        cmocka_unit_test(test_idle_callers_cost_next_to_nothing),
        cmocka_unit_test(test_only_who_is_linked_may_blame),
        cmocka_unit_test(test_outcomes_of_no_possible_size_are_refused),
        cmocka_unit_test(test_outcomes_are_no_more_than_links_need),
    };
    return cmocka_run_group_tests(tests, up, down);
}
