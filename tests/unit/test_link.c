/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link's state machine: every (state, input) pair, opening, lapsing, and random walks. By time
 * alone: test_link_time.c.
 */
#include "unit/link.h"

/* ---- table ------------------------------------------------------------------------------- */

enum event {
    EV_OPEN,
    EV_REOPEN,
    EV_READY,
    EV_REFUSE,
    EV_ACK,
    EV_NACK,
    EV_PING,
    EV_PONG,
    EV_DATA,
    EV_OLD,
    EV_BYE,
    EV_DEAD,
    EV_CLOSE,
    EV_UNTARGET,
    EV_TICK,
    EV_CUT,
    EV_WAY,
    EV_COUNT
};

static const struct rbi_link_input events[EV_COUNT] = {
    [EV_OPEN] = {.type = RBI_LINK_OPEN, .terms = {1000, 3, 3500}},
    [EV_REOPEN] = {.type = RBI_LINK_OPEN, .terms = {500, 2, 1250}},
    [EV_READY] = {.type = RBI_LINK_READY, .terms = {500, 2, 1250}},
    [EV_REFUSE] = {.type = RBI_LINK_READY, .reason = RBI_REASON_DENIED, .terms = {500, 2, 1250}},
    [EV_ACK] = {.type = RBI_LINK_READY_ACK},
    [EV_NACK] = {.type = RBI_LINK_READY_ACK, .reason = RBI_REASON_NO_RESOURCES},
    [EV_PING] = {.type = RBI_LINK_PING, .id = 42},
    [EV_PONG] = {.type = RBI_LINK_PONG, .id = 42},
    [EV_DATA] = {.type = RBI_LINK_DATA},
    [EV_OLD] = {.type = RBI_LINK_DATA, .given_ns = START + MS}, /* before the last PING */
    [EV_BYE] = {.type = RBI_LINK_DISCONNECT, .reason = RBI_REASON_REPLACED},
    [EV_DEAD] = {.type = RBI_LINK_PEER_DEAD, .reason = RBI_REASON_CRASHED},
    [EV_CLOSE] = {.type = RBI_LINK_CLOSE, .reason = RBI_REASON_BAD_PEER},
    [EV_UNTARGET] = {.type = RBI_LINK_CLOSE, .reason = RBI_REASON_UNTARGETED},
    [EV_TICK] = {.type = RBI_LINK_TICK},
    [EV_CUT] = {.type = RBI_LINK_CUT, .hold = true},
    [EV_WAY] = {.type = RBI_LINK_CUT},
};

/* New state, then actions: READY, ACK, PING, pOng, DISCONNECT, up, down, failed, close, miss,
 * suspect, aLive. */
/* clang-format off */
static const char *const table[EV_COUNT][RBI_ARRAY_SIZE(states)] = {
    /* from:           II        WI        UI        IU         WU         UU        UL
                      UIs       IUs        UUs       XX */
    [EV_OPEN]     = {"WI R",   "WI ",    "UI ",    "WU R",    "WU ",     "UU ",    "UL ",
                     "UIs ",   "WUs R",   "UUs ",   "XX "},
    [EV_REOPEN]   = {"WI R",   "WI R",   "UI R",   "WU R",    "WU R",    "UU R",   "UL R",
                     "UIs R",  "WUs R",   "UUs R",  "XX "},
    [EV_READY]    = {"IU Au",  "WU Au",  "UU A",   "IU A",    "WU A",    "UU A",   "UU A",
                     "UU Al",  "IU Al",   "UU Al",  "XX "},
    [EV_REFUSE]   = {"XX Afc", "WI A",   "UI A",   "XX ADdc", "XX ADdc", "UI A",   "UI A",
                     "UI Al",  "XX ADdc", "UI Al",  "XX "},
    [EV_ACK]      = {"II ",    "UI u",   "UI ",    "IU ",     "UU ",     "UU ",    "UL ",
                     "UI l",   "IU l",    "UU l",   "XX "},
    [EV_NACK]     = {"II ",    "XX Dfc", "XX Ddc", "IU ",     "IU ",     "IU ",    "XX Ddc",
                     "XX Ddc", "IU l",    "IU l",   "XX "},
    [EV_PING]     = {"II ",    "WI ",    "UI ",    "IU O",    "WU O",    "UU O",   "UU O",
                     "UI l",   "IU Ol",   "UU Ol",  "XX "},
    [EV_PONG]     = {"II ",    "WI ",    "UI ",    "IU ",     "WU ",     "UU ",    "UL ",
                     "UI l",   "IU l",    "UU l",   "XX "},
    [EV_DATA]     = {"II ",    "WI ",    "UI ",    "IU ",     "WU ",     "UU ",    "UL ",
                     "UI l",   "IU l",    "UU l",   "XX "},
    [EV_OLD]      = {"II ",    "WI ",    "UI ",    "IU ",     "WU ",     "UU ",    "UL ",
                     "UIs ",   "IU l",    "UUs ",   "XX "},
    [EV_BYE]      = {"XX fc",  "XX fc",  "XX dc",  "XX dc",   "XX dc",   "XX dc",  "XX dc",
                     "XX dc",  "XX dc",   "XX dc",  "XX "},
    [EV_DEAD]     = {"XX fc",  "XX fc",  "XX dc",  "XX dc",   "XX dc",   "XX dc",  "XX dc",
                     "XX dc",  "XX dc",   "XX dc",  "XX "},
    [EV_CLOSE]    = {"XX Dfc", "XX Dfc", "XX Ddc", "XX Ddc",  "XX Ddc",  "XX Ddc", "XX Ddc",
                     "XX Ddc", "XX Ddc",  "XX Ddc", "XX "},
    [EV_UNTARGET] = {"XX Dfc", "XX Dfc", "XX Ddc", "IU ",     "IU ",     "IU ",    "XX Ddc",
                     "XX Ddc", "IUs ",    "IUs ",   "XX "},
    [EV_TICK]     = {"II ",    "WI ",    "UI ",    "IU ",     "WU ",     "UU ",    "UL ",
                     "UIs ",   "IUs ",    "UUs ",   "XX "},
    [EV_CUT]      = {"II ",    "WI ",    "UIs s",  "IUs s",   "WUs s",   "UUs s",  "ULs s",
                     "UIs ",   "IUs ",    "UUs ",   "XX "},
    [EV_WAY]      = {"II ",    "WI ",    "UI ",    "IU ",     "WU ",     "UU ",    "UL ",
                     "UIs ",   "IUs ",    "UUs ",   "XX "}, /* it was not cut */
};

/* clang-format on */

static void test_step_every_pair(void **state)
{
    (void)state;
    for (unsigned e = 0; e < EV_COUNT; e++) {
        for (unsigned s = 0; s < RBI_ARRAY_SIZE(states); s++) {
            struct rbi_link_fsm link;
            char got[32];
            const uint64_t now_ns = make_state(&link, states[s]);
            assert_string_equal(state_name(&link), states[s]);
            step(&link, events[e], now_ns);
            (void)snprintf(got, sizeof got, "%s %s", state_name(&link), action_letters());
            if (strcmp(got, table[e][s]) != 0) {
                print_error("state %s, event %u\n", states[s], e);
            }
            assert_string_equal(got, table[e][s]);
            if (act.todo & RBI_LINK_DO_SEND_PONG) {
                assert_true(act.id == 42);
            }
        }
    }
}

static void test_step_reasons(void **state)
{
    (void)state;
    struct rbi_link_fsm link;
    (void)make_state(&link, "UU");
    feed_reason(&link, RBI_LINK_DISCONNECT, (enum rbi_reason)77, START);
    assert_int_equal(link.reason, RBI_REASON_LEFT);
    (void)make_state(&link, "UU");
    feed_reason(&link, RBI_LINK_DISCONNECT, RBI_REASON_NONE, START);
    assert_int_equal(link.reason, RBI_REASON_LEFT);
    (void)make_state(&link, "UU");
    feed_reason(&link, RBI_LINK_DISCONNECT, RBI_REASON_GIVEN_UP, START);
    assert_int_equal(link.reason, RBI_REASON_GIVEN_UP);
    (void)make_state(&link, "UU");
    feed_reason(&link, RBI_LINK_PEER_DEAD, RBI_REASON_NONE, START);
    assert_int_equal(link.reason, RBI_REASON_CRASHED);
    (void)make_state(&link, "UU");
    feed_reason(&link, RBI_LINK_CLOSE, RBI_REASON_NONE, START);
    assert_int_equal(link.reason, RBI_REASON_LEFT);
    assert_int_equal(act.reason, RBI_REASON_LEFT);
    (void)make_state(&link, "UU");
    feed_reason(&link, RBI_LINK_CLOSE, RBI_REASON_BAD_PEER, START);
    assert_int_equal(link.reason, RBI_REASON_BAD_PEER);
    assert_int_equal(act.reason, RBI_REASON_BAD_PEER);
    (void)make_state(&link, "WI");
    feed_reason(&link, RBI_LINK_READY_ACK, RBI_REASON_DENIED, START);
    assert_int_equal(link.reason, RBI_REASON_DENIED);
    (void)make_state(&link, "II");
    feed_reason(&link, RBI_LINK_READY, RBI_REASON_DENIED, START);
    assert_int_equal(act.reason, RBI_REASON_DENIED);
    assert_int_equal(link.reason, RBI_REASON_DENIED);
}

static void test_ready_again_updates_terms(void **state)
{
    (void)state;
    struct rbi_link_fsm link;
    (void)make_state(&link, "IU");
    assert_int_equal(link.their_terms.dead_after_ms, 3500);
    step(&link, (struct rbi_link_input){.type = RBI_LINK_READY, .terms = terms_b}, START + MS);
    assert_int_equal(act.todo, RBI_LINK_DO_SEND_ACK);
    assert_int_equal(link.their_terms.dead_after_ms, 1250);
    /* A refused one is forgotten: a PING after it has nobody behind it. */
    (void)make_state(&link, "UU");
    feed_reason(&link, RBI_LINK_READY, RBI_REASON_DENIED, START);
    feed(&link, RBI_LINK_PING, START);
    assert_int_equal(act.todo, 0);
    assert_int_equal(link.theirs, RBI_USE_IDLE);
}

static void test_terms(void **state)
{
    (void)state;
    static const struct {
        struct rbi_link_terms terms;
        int result;
    } rows[] = {
        {{1000, 3, 3500}, 0},
        {{10, 1, 20}, 0},
        {{60000, 100, UINT32_MAX}, 0},
        {{0, 3, 3500}, 1},
        {{9, 3, 3500}, 1},
        {{60001, 3, UINT32_MAX}, 1},
        {{UINT32_MAX, 3, UINT32_MAX}, 1},
        {{0x80000000U, 3, UINT32_MAX}, 1},
        {{1000, 0, 3500}, 1},
        {{1000, 101, 3500}, 1},
        {{1000, 3, 1999}, 1},
        {{1000, 3, 2000}, 0},
        {{1000, 3, 0}, 1},
    };
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(rows); i++) {
        assert_int_equal(rbi_link_terms_check(&rows[i].terms), rows[i].result);
    }
    assert_int_equal(rbi_link_dead_after_ms(1000, 3), 3500);
    assert_int_equal(rbi_link_dead_after_ms(1000, 1), 2000);
    assert_int_equal(rbi_link_dead_after_ms(10, 100), 1005);
    assert_int_equal(rbi_link_dead_after_ms(UINT32_MAX, UINT32_MAX), UINT32_MAX);
}

static void test_wait_ack_deadline(void **state)
{
    (void)state;
    struct rbi_link_fsm link;
    (void)make_state(&link, "WI");
    tick_expect(&link, 1000, "");
    tick_expect(&link, 2000, "");
    tick_expect(&link, 3000, "");
    tick_expect(&link, 3499, "");
    tick_expect(&link, 3500, "Dfc");
    assert_int_equal(link.reason, RBI_REASON_SILENT);

    /* At least 2 s, however small dead_after is; records of the peer do not extend it. */
    const struct rbi_link_terms quick = {10, 1, 20};
    rbi_link_init(&link, START);
    step(&link, (struct rbi_link_input){.type = RBI_LINK_OPEN, .terms = quick}, START);
    for (unsigned ms = 10; ms < 2000; ms += 10) {
        feed(&link, RBI_LINK_DATA, START + ms * MS);
        tick_expect(&link, ms, "");
    }
    tick_expect(&link, 2000, "Dfc");

    /* Asleep over the deadline: the peer gets its time again. */
    (void)make_state(&link, "WI");
    tick_expect(&link, 10000, "");
    feed(&link, RBI_LINK_READY_ACK, START + 10001 * MS);
    assert_string_equal(action_letters(), "u");
    (void)make_state(&link, "WI");
    tick_expect(&link, 10000, "");
    for (unsigned ms = 11000; ms < 13500; ms += 500) {
        tick_expect(&link, ms, "");
    }
    tick_expect(&link, 13500, "Dfc");
}

static void test_unused_link_ends(void **state)
{
    (void)state;
    struct rbi_link_fsm link;
    (void)make_state(&link, "II");
    for (unsigned ms = 2000; ms < 10000; ms += 2000) {
        tick_expect(&link, ms, "");
    }
    tick_expect(&link, 10000, "Dfc");
    assert_int_equal(link.reason, RBI_REASON_SILENT);
}

static void test_lapse_and_return(void **state)
{
    (void)state;
    struct rbi_link_fsm link;
    (void)make_state(&link, "UL");
    assert_true(rbi_link_usable(&link));
    feed(&link, RBI_LINK_PING, START + 4500 * MS);
    assert_string_equal(state_name(&link), "UU");
    /* Now my use ends, theirs goes on: no PING is sent, theirs are answered. */
    feed_reason(&link, RBI_LINK_CLOSE, RBI_REASON_UNTARGETED, START + 4600 * MS);
    assert_string_equal(state_name(&link), "IU");
    assert_true(rbi_link_usable(&link));
    for (unsigned ms = 5000; ms < 20000; ms += 1000) {
        tick_expect(&link, ms, "");
        feed(&link, RBI_LINK_PING, START + ms * MS);
        assert_string_equal(action_letters(), "O");
    }
    feed(&link, RBI_LINK_OPEN, START + 20000 * MS);
    assert_string_equal(action_letters(), "R");
    feed(&link, RBI_LINK_READY_ACK, START + 20000 * MS);
    assert_string_equal(state_name(&link), "UU");
    assert_int_equal(act.todo, 0); /* usable all the time: reported once */
}

static void test_simultaneous_open(void **state)
{
    (void)state;
    struct rbi_link_fsm a;
    struct rbi_link_fsm b;
    rbi_link_init(&a, START);
    rbi_link_init(&b, START);
    feed(&a, RBI_LINK_OPEN, START);
    feed(&b, RBI_LINK_OPEN, START);
    feed(&a, RBI_LINK_READY, START);
    assert_string_equal(action_letters(), "Au");
    feed(&b, RBI_LINK_READY, START);
    assert_string_equal(action_letters(), "Au");
    feed(&a, RBI_LINK_READY_ACK, START);
    assert_string_equal(action_letters(), "");
    feed(&b, RBI_LINK_READY_ACK, START);
    assert_string_equal(state_name(&a), "UU");
    assert_string_equal(state_name(&b), "UU");
}

static void test_step_random_walks(void **state)
{
    (void)state;
    uint64_t seed = 12345;
    for (unsigned walk = 0; walk < 3000; walk++) {
        struct rbi_link_fsm link;
        uint64_t now_ns = START;
        bool up = false;
        rbi_link_init(&link, now_ns);
        for (unsigned i = 0; i < 60; i++) {
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            const unsigned event = (unsigned)(seed >> 33) % EV_COUNT;
            const bool was_closed = link.closed;
            now_ns += (seed >> 40) % 3000 * MS;
            step(&link, events[event], now_ns);
            if (was_closed) {
                assert_int_equal(act.todo, 0);
                continue;
            }
            assert_true(link.closed == ((act.todo & RBI_LINK_DO_CLOSE) != 0));
            if (act.todo & RBI_LINK_DO_REPORT_UP) {
                assert_false(up);
                up = true;
            }
            assert_true(((act.todo & RBI_LINK_DO_REPORT_DOWN) != 0) == (link.closed && up));
            assert_true(((act.todo & RBI_LINK_DO_REPORT_FAILED) != 0) == (link.closed && !up));
            assert_true(link.closed || rbi_link_usable(&link) == up);
            /* A tick at its time always moves the deadline: no caller can spin on it. */
            struct rbi_link_fsm copy = link;
            const uint64_t due = rbi_link_deadline_ns(&copy);
            const uint64_t at = due > now_ns ? due : now_ns;
            if (due != UINT64_MAX) {
                feed(&copy, RBI_LINK_TICK, at);
                assert_true(rbi_link_deadline_ns(&copy) > at);
            } else {
                assert_true(link.closed || link.cut);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step_every_pair),           cmocka_unit_test(test_step_reasons),
        cmocka_unit_test(test_ready_again_updates_terms), cmocka_unit_test(test_terms),
        cmocka_unit_test(test_wait_ack_deadline),         cmocka_unit_test(test_unused_link_ends),
        cmocka_unit_test(test_lapse_and_return),          cmocka_unit_test(test_simultaneous_open),
        cmocka_unit_test(test_step_random_walks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
