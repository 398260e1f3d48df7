/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link's state machine: every (state, input) pair, then time. Scenarios 39 (stopped
 * longer than its bound), 41 (debugger), 43 (whole machine sleeps), 44 (extreme intervals).
 */
#include "bus/link.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define MS    UINT64_C(1000000)
#define START (UINT64_C(5000) * MS)

static const struct rbi_link_terms terms_a = {1000, 3, 3500};
static const struct rbi_link_terms terms_b = {500, 2, 1250};

static struct rbi_link_actions act; /* of the last step */

static void step(struct rbi_link_fsm *link, struct rbi_link_input input, uint64_t now_ns)
{
    memset(&act, 0x5a, sizeof act);
    rbi_link_step(link, &input, now_ns, &act);
}

static void feed(struct rbi_link_fsm *link, enum rbi_link_input_type type, uint64_t now_ns)
{
    step(link, (struct rbi_link_input){.type = type, .id = 42, .terms = terms_a}, now_ns);
}

static void feed_reason(struct rbi_link_fsm *link,
                        enum rbi_link_input_type type,
                        enum rbi_reason reason,
                        uint64_t now_ns)
{
    step(link, (struct rbi_link_input){.type = type, .reason = reason, .id = 42, .terms = terms_a},
         now_ns);
}

/* ---- table ------------------------------------------------------------------------------- */

/* State as two letters, mine and theirs: Idle, Wait, Up, Lapsed; s suspect; XX closed. */
static const char *const states[] = {"II", "WI",  "UI",  "IU",  "WU", "UU",
                                     "UL", "UIs", "IUs", "UUs", "XX"};

/** @return the time at which the state was reached */
static uint64_t make_state(struct rbi_link_fsm *link, const char *name)
{
    uint64_t now_ns = START;
    rbi_link_init(link, START);
    if (name[1] == 'U' || name[1] == 'L') {
        feed(link, RBI_LINK_READY, START);
    }
    if (name[0] == 'W' || name[0] == 'U') {
        feed(link, RBI_LINK_OPEN, START);
    }
    if (name[0] == 'U') {
        feed(link, RBI_LINK_READY_ACK, START);
    }
    if (name[1] == 'L') {
        while (now_ns < START + 4000 * MS) { /* it answers, and sends no PING of its own */
            now_ns += 250 * MS;
            feed(link, RBI_LINK_TICK, now_ns);
            feed(link, RBI_LINK_PONG, now_ns);
        }
    }
    if (name[2] == 's') {
        while (!link->suspect) {
            now_ns += 250 * MS;
            feed(link, RBI_LINK_TICK, now_ns);
        }
    }
    if (name[0] == 'X') {
        feed(link, RBI_LINK_DISCONNECT, START);
    }
    return now_ns;
}

static const char *state_name(const struct rbi_link_fsm *link)
{
    static char name[4];
    if (link->closed) {
        assert_false(link->suspect);
        assert_int_equal(link->mine, RBI_USE_IDLE);
        assert_int_equal(link->theirs, RBI_USE_IDLE);
        return "XX";
    }
    name[0] = "IWU"[link->mine];
    name[1] = "IWU"[link->theirs];
    if (link->mine == RBI_USE_UP && link->theirs == RBI_USE_IDLE &&
        link->their_terms.dead_after_ms != 0) {
        name[1] = 'L';
    }
    name[2] = link->suspect ? 's' : '\0';
    return name;
}

/** Actions as letters, in the order of their bits. */
static const char *action_letters(void)
{
    static char letters[16];
    unsigned n = 0;
    assert_int_equal(act.todo & ~0xfffU, 0);
    for (unsigned bit = 0; bit < 12; bit++) {
        if (act.todo & 1U << bit) {
            letters[n++] = "RAPODudfcmsl"[bit];
        }
    }
    letters[n] = 0;
    return letters;
}

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

/* ---- time -------------------------------------------------------------------------------- */

static void tick_expect(struct rbi_link_fsm *link, uint64_t ms, const char *expected)
{
    feed(link, RBI_LINK_TICK, START + ms * MS);
    if (strcmp(action_letters(), expected) != 0) {
        print_error("at %u ms\n", (unsigned)ms);
    }
    assert_string_equal(action_letters(), expected);
}

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
    tick_expect(&link, 3600, "s"); /* 1850 late: silent for long enough, but an interval more */
    tick_expect(&link, 4599, "");
    tick_expect(&link, 4600, "Ddc");
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
                assert_true(link.closed);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step_every_pair),
        cmocka_unit_test(test_step_reasons),
        cmocka_unit_test(test_ready_again_updates_terms),
        cmocka_unit_test(test_terms),
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
        cmocka_unit_test(test_held_peer_is_never_silent),
        cmocka_unit_test(test_inputs_after_a_sleep_do_not_hide_it),
        cmocka_unit_test(test_quicker_terms_show_a_shorter_sleep),
        cmocka_unit_test(test_new_terms_end_an_excuse),
        cmocka_unit_test(test_theirs_waiting_for_ack_is_judged_too),
        cmocka_unit_test(test_wait_ack_deadline),
        cmocka_unit_test(test_unused_link_ends),
        cmocka_unit_test(test_lapse_and_return),
        cmocka_unit_test(test_simultaneous_open),
        cmocka_unit_test(test_step_random_walks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
