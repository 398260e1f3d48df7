/* SPDX-License-Identifier: Apache-2.0 */
/* Links to peers of other hosts, while the way there is cut (features 2.13, scenario 111). */
#include "unit/link.h"

static void cut(struct rbi_link_fsm *link, bool on, unsigned ms, const char *expected)
{
    step(link, (struct rbi_link_input){.type = RBI_LINK_CUT, .hold = on}, START + ms * MS);
    assert_string_equal(action_letters(), expected);
}

/* While the way is cut the peer is suspect for as long as that takes, and nothing is sent to it. */
static void test_peer_behind_a_cut_way_is_never_silent(void **state)
{
    (void)state;
    static const char *const names[] = {"UI", "IU", "UU", "UL", "WU"};
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(names); i++) {
        struct rbi_link_fsm link;
        const unsigned began = (unsigned)((make_state(&link, names[i]) - START) / MS);
        assert_string_equal(state_name(&link), names[i]);
        cut(&link, true, began + 100, "s");
        cut(&link, true, began + 110, ""); /* said twice */
        tick_expect(&link, began + 200, "");
        assert_true(rbi_link_deadline_ns(&link) == UINT64_MAX);
        for (unsigned ms = 1000; ms < 60000; ms += 1000) {
            tick_expect(&link, began + ms, "");
        }
        /* What had been given before ends no suspicion. */
        feed(&link, RBI_LINK_DATA, START + (began + 60000) * MS);
        assert_string_equal(action_letters(), "");
        assert_true(link.suspect && rbi_link_usable(&link));
        feed_reason(&link, RBI_LINK_PEER_DEAD, RBI_REASON_UNREACHABLE,
                    START + (began + 61000) * MS);
        assert_string_equal(action_letters(), "dc");
        assert_int_equal(link.reason, RBI_REASON_UNREACHABLE);
    }
}

/* The way is there again: the peer has all its time from then on, and its end is found as ever. */
static void test_counts_begin_anew_behind_a_cut(void **state)
{
    (void)state;
    struct rbi_link_fsm link;
    (void)make_state(&link, "UI");
    tick_expect(&link, 500, "P");
    tick_expect(&link, 1500, "Pms"); /* a miss before the cut is forgotten */
    cut(&link, true, 1600, "");
    for (unsigned ms = 2000; ms <= 20000; ms += 1000) {
        tick_expect(&link, ms, "");
    }
    cut(&link, false, 20100, "l");
    assert_true(rbi_link_deadline_ns(&link) == START + 20600 * MS);
    tick_expect(&link, 20600, "P");
    tick_expect(&link, 21600, "Pms");
    tick_expect(&link, 22600, "Pm");
    tick_expect(&link, 23600, "Ddcm");

    (void)make_state(&link, "IU");
    cut(&link, true, 100, "s");
    cut(&link, false, 30000, "l");
    tick_expect(&link, 31000, "");
    tick_expect(&link, 31750, "s");
    tick_expect(&link, 32750, "");
    tick_expect(&link, 33500, "Ddc"); /* 3.5 s after the way was there */

    /* Before READY is answered, and before anybody wants the link. */
    (void)make_state(&link, "WI");
    cut(&link, true, 100, "");
    tick_expect(&link, 1000, "");
    tick_expect(&link, 60000, "");
    cut(&link, false, 60000, "");
    for (unsigned ms = 61000; ms <= 63000; ms += 1000) {
        tick_expect(&link, ms, "");
    }
    tick_expect(&link, 63500, "Dfc");
    (void)make_state(&link, "II");
    cut(&link, true, 100, "");
    tick_expect(&link, 60000, "");
    cut(&link, false, 60000, "");
    for (unsigned ms = 62000; ms < 70000; ms += 2000) {
        tick_expect(&link, ms, "");
    }
    tick_expect(&link, 70000, "Dfc");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peer_behind_a_cut_way_is_never_silent),
        cmocka_unit_test(test_counts_begin_anew_behind_a_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
