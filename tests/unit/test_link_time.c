/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link's state machine by time. Scenarios 39 (stopped longer than its bound), 41 (debugger), 43
 * (whole machine sleeps), 44 (extreme intervals).
 */
#include "unit/link.h"

/* ---- time -------------------------------------------------------------------------------- */

/* Measured from the last sign of life: (misses + 1/2) intervals, features 6.9, scenario 39. */
static void test_mine_misses(void **state)
{
    (void)state;
    struct rbi_link_fsm link;
    (void)make_state(&link, "UI");
    assert_true(rbi_link_deadline_ns(&link) == START + 500 * MS);
    tick_expect(&link, 499, "");
    tick_expect(&link, 500, "P");
    assert_true(act.id == 1);
    tick_expect(&link, 1000, "");
    tick_expect(&link, 1500, "Pms");
    assert_true(act.id == 2);
    tick_expect(&link, 2500, "Pm");
    assert_true(rbi_link_deadline_ns(&link) == START + 3500 * MS);
    tick_expect(&link, 3499, "");
    tick_expect(&link, 3500, "Ddcm");
    assert_int_equal(link.reason, RBI_REASON_SILENT);
    assert_int_equal(act.reason, RBI_REASON_GIVEN_UP); /* the peer may only have slept */
    assert_true(rbi_link_deadline_ns(&link) == UINT64_MAX);
    tick_expect(&link, 9000, "");
}

/* Whenever a peer that answers at once stops, it is found 3 to 3.5 intervals later. */
static void test_mine_finds_a_stop_in_time(void **state)
{
    (void)state;
    for (unsigned stop_ms = 2000; stop_ms <= 3000; stop_ms++) {
        for (unsigned data = 0; data < 2; data++) {
            struct rbi_link_fsm link;
            uint64_t ms = 0;
            (void)make_state(&link, "UI");
            while (!link.closed) {
                ms++;
                assert_true(ms < 10000);
                if (data != 0 && ms <= stop_ms && ms % 10 == 0) { /* seen late, given then */
                    const uint64_t given_ns = START + ms * MS;
                    step(&link,
                         (struct rbi_link_input){.type = RBI_LINK_DATA, .given_ns = given_ns},
                         given_ns + 5 * MS);
                }
                feed(&link, RBI_LINK_TICK, START + ms * MS);
                if ((act.todo & RBI_LINK_DO_SEND_PING) != 0 && ms <= stop_ms) {
                    feed(&link, RBI_LINK_PONG, START + ms * MS);
                }
            }
            assert_in_range(ms - stop_ms, 3000, 3501);
        }
    }
}

/* While records flow PINGs go out once an interval: they say that I use the link. */
static void test_mine_pings_of_a_busy_link(void **state)
{
    (void)state;
    struct rbi_link_fsm link;
    unsigned pings = 0;
    (void)make_state(&link, "UI");
    for (unsigned ms = 10; ms <= 10000; ms += 10) {
        feed(&link, RBI_LINK_DATA, START + ms * MS);
        feed(&link, RBI_LINK_TICK, START + ms * MS);
        pings += (act.todo & RBI_LINK_DO_SEND_PING) != 0;
    }
    assert_int_equal(pings, 10);
    /* An idle one is asked twice as often. */
    (void)make_state(&link, "UI");
    pings = 0;
    for (unsigned ms = 10; ms <= 10000; ms += 10) {
        feed(&link, RBI_LINK_TICK, START + ms * MS);
        if (act.todo & RBI_LINK_DO_SEND_PING) {
            pings++;
            feed(&link, RBI_LINK_PONG, START + ms * MS);
        }
    }
    assert_int_equal(pings, 20);
}

static void test_mine_first_ping_is_spread(void **state)
{
    (void)state;
    static const struct {
        uint32_t spread;
        unsigned due_ms;
    } rows[] = {{0, 500}, {RBI_LINK_SPREAD / 2, 250}, {RBI_LINK_SPREAD, 0}, {UINT32_MAX, 0}};
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(rows); i++) {
        struct rbi_link_fsm link;
        rbi_link_init(&link, START);
        step(&link,
             (struct rbi_link_input){
                 .type = RBI_LINK_OPEN, .terms = terms_a, .spread = rows[i].spread},
             START);
        feed(&link, RBI_LINK_READY_ACK, START);
        const uint64_t due_ns = rbi_link_deadline_ns(&link);
        assert_in_range(due_ns - START, rows[i].due_ms * MS, rows[i].due_ms * MS + MS / 10);
    }
}

static void test_mine_any_record_counts_as_pong(void **state)
{
    (void)state;
    static const enum rbi_link_input_type life[] = {RBI_LINK_PONG, RBI_LINK_DATA, RBI_LINK_PING,
                                                    RBI_LINK_READY_ACK};
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(life); i++) {
        struct rbi_link_fsm link;
        (void)make_state(&link, "UI");
        tick_expect(&link, 500, "P");
        tick_expect(&link, 1500, "Pms");
        tick_expect(&link, 2500, "Pm");
        feed(&link, life[i], START + 3499 * MS);
        assert_string_equal(action_letters(), "l");
        tick_expect(&link, 3500, "P"); /* an interval after the last, and the count is new */
        tick_expect(&link, 4500, "Pms");
        tick_expect(&link, 5500, "Pm");
        tick_expect(&link, 6500, "Ddcm");
    }
}

static void test_mine_data_before_the_ping_is_no_pong(void **state)
{
    (void)state;
    struct rbi_link_fsm link;
    (void)make_state(&link, "UI");
    tick_expect(&link, 500, "P");
    /* Seen after the PING, given before it. */
    step(&link, (struct rbi_link_input){.type = RBI_LINK_DATA, .given_ns = START + 499 * MS},
         START + 600 * MS);
    tick_expect(&link, 1500, "Pms");
    step(&link, (struct rbi_link_input){.type = RBI_LINK_DATA, .given_ns = START + 1500 * MS},
         START + 2000 * MS);
    assert_string_equal(action_letters(), "l");                    /* not before it: an answer */
    assert_true(rbi_link_deadline_ns(&link) == START + 2000 * MS); /* half a one after that */
}

static void test_mine_suspects_itself(void **state)
{
    (void)state;
    struct rbi_link_fsm link;
    (void)make_state(&link, "UI");
    tick_expect(&link, 500, "P");
    tick_expect(&link, 1500, "Pms");
    tick_expect(&link, 2500, "Pm");
    /* Due at 3500. More than 2 intervals late: no judgement, a new count. */
    tick_expect(&link, 5501, "P");
    tick_expect(&link, 6501, "Pm");
    tick_expect(&link, 7501, "Pm");
    tick_expect(&link, 8501, "Ddcm");

    /* Late by more than a quarter: an interval more, once. */
    (void)make_state(&link, "UI");
    tick_expect(&link, 500, "P");
    tick_expect(&link, 1500, "Pms");
    tick_expect(&link, 2500, "Pm");
    tick_expect(&link, 3751, "Pm");
    tick_expect(&link, 4751, "Ddc");
    (void)make_state(&link, "UI");
    tick_expect(&link, 500, "P");
    tick_expect(&link, 1500, "Pms");
    tick_expect(&link, 2500, "Pm");
    tick_expect(&link, 3751, "Pm");
    tick_expect(&link, 6000, "Ddc"); /* late again */
    (void)make_state(&link, "UI");
    tick_expect(&link, 500, "P");
    tick_expect(&link, 1500, "Pms");
    tick_expect(&link, 2500, "Pm");
    tick_expect(&link, 3750, "Ddcm"); /* late, but not too late */

    /* The judge was stopped for 10 s, once with a count and once without. */
    (void)make_state(&link, "UI");
    tick_expect(&link, 11500, "P");
    (void)make_state(&link, "UI");
    tick_expect(&link, 500, "P");
    tick_expect(&link, 11500, "P");
    feed(&link, RBI_LINK_PONG, START + 11501 * MS);
    tick_expect(&link, 12001, "P");
}

/* Scenario 43: both slept. Not even one miss may be the last when the judge wakes first. */
static void test_mine_one_miss_and_a_sleep(void **state)
{
    (void)state;
    const struct rbi_link_terms once = {1000, 1, 2000};
    for (unsigned ms = 1251; ms <= 3600; ms += 50) {
        struct rbi_link_fsm link;
        rbi_link_init(&link, START);
        step(&link, (struct rbi_link_input){.type = RBI_LINK_OPEN, .terms = once}, START);
        feed(&link, RBI_LINK_READY_ACK, START);
        tick_expect(&link, 500, "P");
        feed(&link, RBI_LINK_TICK, START + (500 + ms) * MS);
        assert_false(link.closed);
        feed(&link, RBI_LINK_TICK, START + (500 + ms + 999) * MS);
        assert_false(link.closed);
        feed(&link, RBI_LINK_TICK, START + (500 + ms + 1000) * MS);
        assert_true(link.closed); /* and not for ever */
    }
}

static void test_theirs_silence(void **state)
{
    (void)state;
    struct rbi_link_fsm link;
    (void)make_state(&link, "IU");
    for (unsigned ms = 1000; ms <= 5000; ms += 1000) { /* any record is life */
        feed(&link, RBI_LINK_DATA, START + ms * MS);
        tick_expect(&link, ms, "");
    }
    tick_expect(&link, 6000, "");
    assert_true(rbi_link_deadline_ns(&link) == START + 6750 * MS);
    tick_expect(&link, 6750, "s"); /* half of dead_after */
    tick_expect(&link, 7750, "");
    assert_true(rbi_link_deadline_ns(&link) == START + 8500 * MS);
    tick_expect(&link, 8499, "");
    tick_expect(&link, 8500, "Ddc");
    assert_int_equal(link.reason, RBI_REASON_SILENT);
    assert_int_equal(act.reason, RBI_REASON_GIVEN_UP);
}

static void test_theirs_suspect_and_back(void **state)
{
    (void)state;
    struct rbi_link_fsm link;
    (void)make_state(&link, "IU");
    for (unsigned round = 0; round < 3; round++) {
        const unsigned base = round * 2000;
        tick_expect(&link, base + 1000, "");
        tick_expect(&link, base + 1750, "s");
        tick_expect(&link, base + 1800, "");
        feed(&link, RBI_LINK_PING, START + (base + 2000) * MS);
        assert_string_equal(action_letters(), "Ol");
        assert_true(rbi_link_usable(&link));
    }
}

static void test_theirs_suspects_itself(void **state)
{
    (void)state;
    struct rbi_link_fsm link;
    (void)make_state(&link, "IU");
    tick_expect(&link, 1000, "");
    tick_expect(&link, 3751, ""); /* due at 1750 */
    tick_expect(&link, 4751, "");
    tick_expect(&link, 5501, "s");
    tick_expect(&link, 6501, "");
    tick_expect(&link, 7251, "Ddc"); /* 3.5 s after the count began anew */

    (void)make_state(&link, "IU");
    tick_expect(&link, 1000, "");
    tick_expect(&link, 3600, "s"); /* 1850 late: that was not the peer's silence */
    tick_expect(&link, 4600, "");
    tick_expect(&link, 5349, "");
    tick_expect(&link, 5350, "Ddc");
}

/*
 * Scenario 43, with a machine that sleeps for less than what makes a judge count anew, and a peer
 * that is given up after little more: it has had no time to say anything.
 */
static void test_theirs_short_sleep_is_no_silence(void **state)
{
    (void)state;
    const struct rbi_link_terms quick = {50, 2, 130};
    struct rbi_link_fsm link;
    rbi_link_init(&link, START);
    step(&link, (struct rbi_link_input){.type = RBI_LINK_READY, .terms = quick}, START);
    tick_expect(&link, 50, "");
    feed(&link, RBI_LINK_DATA, START + 55 * MS);
    tick_expect(&link, 60, "");
    tick_expect(&link, 175, "");  /* both slept from 65 on; due at 110, 65 late */
    tick_expect(&link, 185, "s"); /* silent for 65 of 130 */
    tick_expect(&link, 235, "");
    tick_expect(&link, 250, "Ddc"); /* 130 in which it could have been heard */
}

/* Scenario 41: a peer that may sit in a debugger is suspect for as long as it takes. */
static void test_held_peer_is_never_silent(void **state)
{
    (void)state;
    struct rbi_link_fsm link;
    unsigned pings = 0;
    rbi_link_init(&link, START);
    feed(&link, RBI_LINK_OPEN, START);
    step(&link, (struct rbi_link_input){.type = RBI_LINK_READY_ACK, .hold = true}, START);
    for (unsigned ms = 500; ms < 3600000; ms += 500) {
        feed(&link, RBI_LINK_TICK, START + ms * MS);
        pings += (act.todo & RBI_LINK_DO_SEND_PING) != 0;
        assert_false(link.closed);
        assert_int_equal(act.todo & RBI_LINK_DO_REPORT_SUSPECT,
                         ms == 1500 ? RBI_LINK_DO_REPORT_SUSPECT : 0);
    }
    assert_int_equal(pings, 3); /* its lane is not filled with more */
    assert_true(rbi_link_usable(&link));
    assert_true(rbi_link_deadline_ns(&link) <= START + 3600500 * MS); /* the judge is watched */
    feed(&link, RBI_LINK_PONG, START + 3600000 * MS);
    assert_string_equal(action_letters(), "l");
    tick_expect(&link, 3600500, "P");
    feed_reason(&link, RBI_LINK_PEER_DEAD, RBI_REASON_NONE, START + 3601000 * MS);
    assert_string_equal(action_letters(), "dc"); /* what the kernel says counts at once */

    /* As seen from the other side. */
    rbi_link_init(&link, START);
    step(&link, (struct rbi_link_input){.type = RBI_LINK_READY, .hold = true, .terms = terms_a},
         START);
    for (unsigned ms = 250; ms < 600000; ms += 250) {
        tick_expect(&link, ms, ms == 1750 ? "s" : "");
        assert_true(rbi_link_deadline_ns(&link) > START + ms * MS);
    }
    feed(&link, RBI_LINK_PING, START + 600000 * MS);
    assert_string_equal(action_letters(), "Ol");

    /* The last word counts: it may be taken back. */
    step(&link, (struct rbi_link_input){.type = RBI_LINK_READY, .terms = terms_a},
         START + 600000 * MS);
    for (unsigned ms = 601000; ms < 603500; ms += 250) {
        feed(&link, RBI_LINK_TICK, START + ms * MS);
        assert_false(link.closed);
    }
    tick_expect(&link, 603500, "Ddc");

    /* An introduction is not held: nobody uses that link. */
    rbi_link_init(&link, START);
    feed(&link, RBI_LINK_OPEN, START);
    step(&link,
         (struct rbi_link_input){
             .type = RBI_LINK_READY, .reason = RBI_REASON_DENIED, .hold = true, .terms = terms_a},
         START);
    for (unsigned ms = 1000; ms <= 3000; ms += 500) {
        tick_expect(&link, ms, "");
    }
    tick_expect(&link, 3500, "Dfc");
}

static void test_inputs_after_a_sleep_do_not_hide_it(void **state)
{
    (void)state;
    struct rbi_link_fsm link;
    /* Asleep from 1 s to 9 s; the application acts before the first tick. */
    (void)make_state(&link, "IU");
    tick_expect(&link, 1000, "");
    feed(&link, RBI_LINK_OPEN, START + 9000 * MS);
    tick_expect(&link, 9000, "");
    assert_string_equal(state_name(&link), "WU");
    /* With one miss allowed, a PING of before the sleep must not be that miss. */
    const struct rbi_link_terms once = {1000, 1, 2000};
    (void)make_state(&link, "UI");
    tick_expect(&link, 500, "P");
    step(&link, (struct rbi_link_input){.type = RBI_LINK_OPEN, .terms = once}, START + 9000 * MS);
    tick_expect(&link, 9500, "P");
    tick_expect(&link, 10500, "Ddcm");
}

/* A judge that was asked for each second, and now is for each tenth, sees that it slept 300 ms. */
static void test_quicker_terms_show_a_shorter_sleep(void **state)
{
    (void)state;
    const struct rbi_link_terms quick = {100, 1, 200};
    struct rbi_link_fsm link;
    rbi_link_init(&link, START);
    feed(&link, RBI_LINK_OPEN, START);
    feed(&link, RBI_LINK_READY_ACK, START);
    step(&link, (struct rbi_link_input){.type = RBI_LINK_READY, .terms = quick}, START);
    for (unsigned ms = 50; ms <= 1000; ms += 50) {
        feed(&link, RBI_LINK_TICK, START + ms * MS);
        feed(&link, RBI_LINK_PING, START + ms * MS);
    }
    /* Now the peer is judged by its records, which it was not while I asked. */
    feed_reason(&link, RBI_LINK_CLOSE, RBI_REASON_UNTARGETED, START + 1000 * MS);
    assert_true(rbi_link_deadline_ns(&link) <= START + 1100 * MS);
    tick_expect(&link, 1280, "s"); /* silent for long enough, but 180 late: an interval more */
    tick_expect(&link, 1380, "Ddc");
}

/* The interval more that a late judge gives is of the terms of then: other terms, another count. */
static void test_new_terms_end_an_excuse(void **state)
{
    (void)state;
    const struct rbi_link_terms once = {1000, 1, 2000};
    const struct rbi_link_terms quick = {100, 2, 250};
    struct rbi_link_fsm link;
    rbi_link_init(&link, START);
    step(&link, (struct rbi_link_input){.type = RBI_LINK_OPEN, .terms = once}, START);
    feed(&link, RBI_LINK_READY_ACK, START);
    tick_expect(&link, 500, "P");
    tick_expect(&link, 1900, "Pms"); /* would have been the last, but came 400 ms late */
    step(&link, (struct rbi_link_input){.type = RBI_LINK_OPEN, .terms = quick}, START + 2000 * MS);
    tick_expect(&link, 2050, "P");
    tick_expect(&link, 2150, "Pm");
    tick_expect(&link, 2250, "Ddcm");
}

static void test_theirs_waiting_for_ack_is_judged_too(void **state)
{
    (void)state;
    struct rbi_link_fsm link;
    (void)make_state(&link, "WU");
    tick_expect(&link, 1000, "");
    tick_expect(&link, 1750, "s");
    tick_expect(&link, 2750, "");
    tick_expect(&link, 3500, "Ddc");
    assert_int_equal(link.reason, RBI_REASON_SILENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mine_misses),
        cmocka_unit_test(test_mine_finds_a_stop_in_time),
        cmocka_unit_test(test_mine_pings_of_a_busy_link),
        cmocka_unit_test(test_mine_first_ping_is_spread),
        cmocka_unit_test(test_mine_any_record_counts_as_pong),
        cmocka_unit_test(test_mine_data_before_the_ping_is_no_pong),
        cmocka_unit_test(test_mine_suspects_itself),
        cmocka_unit_test(test_mine_one_miss_and_a_sleep),
        cmocka_unit_test(test_theirs_silence),
        cmocka_unit_test(test_theirs_suspect_and_back),
        cmocka_unit_test(test_theirs_suspects_itself),
        cmocka_unit_test(test_theirs_short_sleep_is_no_silence),
        cmocka_unit_test(test_held_peer_is_never_silent),
        cmocka_unit_test(test_inputs_after_a_sleep_do_not_hide_it),
        cmocka_unit_test(test_quicker_terms_show_a_shorter_sleep),
        cmocka_unit_test(test_new_terms_end_an_excuse),
        cmocka_unit_test(test_theirs_waiting_for_ack_is_judged_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
