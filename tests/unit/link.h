/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_UNIT_LINK_H
#define RINGBUS_TESTS_UNIT_LINK_H
/* States of a link by name, and what a step of it asks for, as letters. */
#include "bus/link.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define MS    UINT64_C(1000000)
#define START (UINT64_C(5000) * MS)

static const struct rbi_link_terms terms_a = {1000, 3, 3500};
static const struct rbi_link_terms terms_b = {500, 2, 1250};
static struct rbi_link_actions act; /* of the last step */

static inline void step(struct rbi_link_fsm *link, struct rbi_link_input input, uint64_t now_ns)
{
    memset(&act, 0x5a, sizeof act);
    rbi_link_step(link, &input, now_ns, &act);
}

static inline void feed(struct rbi_link_fsm *link, enum rbi_link_input_type type, uint64_t now_ns)
{
    step(link, (struct rbi_link_input){.type = type, .id = 42, .terms = terms_a}, now_ns);
}

static inline void feed_reason(struct rbi_link_fsm *link,
                               enum rbi_link_input_type type,
                               enum rbi_reason reason,
                               uint64_t now_ns)
{
    step(link, (struct rbi_link_input){.type = type, .reason = reason, .id = 42, .terms = terms_a},
         now_ns);
}

/* State as two letters, mine and theirs: Idle, Wait, Up, Lapsed; s suspect; XX closed. */
static const char *const states[] = {"II", "WI",  "UI",  "IU",  "WU", "UU",
                                     "UL", "UIs", "IUs", "UUs", "XX"};

/** @return the time at which the state was reached */
static inline uint64_t make_state(struct rbi_link_fsm *link, const char *name)
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

static inline void tick_expect(struct rbi_link_fsm *link, uint64_t ms, const char *expected)
{
    feed(link, RBI_LINK_TICK, START + ms * MS);
    if (strcmp(action_letters(), expected) != 0) {
        print_error("at %u ms\n", (unsigned)ms);
    }
    assert_string_equal(action_letters(), expected);
}

#endif
