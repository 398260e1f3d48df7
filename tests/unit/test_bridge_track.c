/* SPDX-License-Identifier: Apache-2.0 */
/* Where records began that were sent on, and what they named, held against a plain list. */
#include "daemon/bridge/track.h"
#include "support/test.h"

#include <errno.h>
#include <string.h>

#define LANE  UINT64_C(16384)
#define SLOTS 16U

static uint64_t dice = 7;

static uint64_t roll(uint64_t below)
{
    dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (dice >> 33) % below;
}

/* What is there: begins in order. */
static struct {
    uint64_t pos[LANE / RBI_LINE];
    bool slot[LANE / RBI_LINE];
    unsigned count;
    unsigned slots;
} list;

static void drop_front(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        list.slots -= list.slot[i];
    }
    memmove(list.pos, list.pos + count, (list.count - count) * sizeof list.pos[0]);
    memmove(list.slot, list.slot + count, (list.count - count) * sizeof list.slot[0]);
    list.count -= count;
}

static void check_all(const struct rbi_track *track, uint64_t from, uint64_t end)
{
    unsigned at = 0;
    for (uint64_t pos = from; pos < end; pos += RBI_LINE) {
        const bool begins = at < list.count && list.pos[at] == pos;
        assert_int_equal(rbi_track_is_begin(track, pos, end), begins);
        assert_false(rbi_track_is_begin(track, pos + 8, end));
        at += begins;
    }
    assert_int_equal(at, list.count);
    assert_true(rbi_track_is_begin(track, end, end));
}

static void begin_some(struct rbi_track *track, uint64_t trail, uint64_t *pos)
{
    for (uint64_t n = roll(20); n > 0; n--) {
        const uint64_t bytes = (1 + roll(roll(8) == 0 ? 100 : 4)) * RBI_LINE;
        if (*pos + bytes - trail > LANE) {
            return;
        }
        rbi_track_begin(track, *pos);
        list.pos[list.count] = *pos;
        list.slot[list.count] = roll(4) == 0;
        if (list.slot[list.count]) {
            const bool fits = list.slots < SLOTS;
            assert_int_equal(rbi_track_put_slot(track, *pos, (uint32_t)(*pos / RBI_LINE)),
                             fits ? 0 : -ENOBUFS);
            list.slot[list.count] = fits;
            list.slots += fits;
        }
        list.count++;
        *pos += bytes;
    }
}

static void release_some(struct rbi_track *track, uint64_t *trail, uint64_t pos)
{
    const unsigned count = (unsigned)roll(list.count + 1);
    const uint64_t to = count < list.count ? list.pos[count] : pos;
    uint32_t slot = 0;
    for (unsigned i = 0; i < count; i++) {
        if (list.slot[i]) {
            assert_true(rbi_track_take_slot(track, to, &slot));
            assert_int_equal(slot, list.pos[i] / RBI_LINE);
        }
    }
    assert_false(rbi_track_take_slot(track, to, &slot));
    rbi_track_forget(track, *trail, to);
    drop_front(count);
    *trail = to;
}

static void step_back(struct rbi_track *track, uint64_t *pos)
{
    const unsigned keep = (unsigned)roll(list.count + 1);
    if (keep == list.count) {
        return;
    }
    const uint64_t to = list.pos[keep];
    rbi_track_drop_slots(track, to);
    rbi_track_forget(track, to, *pos);
    for (unsigned i = keep; i < list.count; i++) {
        list.slots -= list.slot[i];
    }
    list.count = keep;
    *pos = to;
}

static void walk(uint64_t start)
{
    struct rbi_track track;
    uint64_t trail = start;
    uint64_t pos = start;
    memset(&list, 0, sizeof list);
    assert_int_equal(rbi_track_init(&track, LANE, SLOTS), 0);
    for (unsigned i = 0; i < 5000; i++) {
        begin_some(&track, trail, &pos);
        if (roll(3) == 0) {
            step_back(&track, &pos);
        }
        check_all(&track, trail, pos);
        release_some(&track, &trail, pos);
        check_all(&track, trail, pos);
    }
    rbi_track_deinit(&track);
}

static void test_track_agrees_with_a_list(void **state)
{
    (void)state;
    walk(0);
    walk(LANE * 5 + 192);
}

static void test_track_of_the_smallest_lane(void **state)
{
    (void)state;
    struct rbi_track track;
    assert_int_equal(rbi_track_init(&track, RBI_LINE * 2, SLOTS), 0);
    for (uint64_t pos = 0; pos < UINT64_C(100) * RBI_LINE; pos += RBI_LINE) {
        rbi_track_begin(&track, pos);
        assert_true(rbi_track_is_begin(&track, pos, pos + RBI_LINE));
        rbi_track_forget(&track, pos, pos + RBI_LINE);
        assert_false(rbi_track_is_begin(&track, pos, pos + RBI_LINE));
    }
    rbi_track_deinit(&track);
    memset(&track, 0, sizeof track);
    rbi_track_deinit(&track);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_track_agrees_with_a_list),
        cmocka_unit_test(test_track_of_the_smallest_lane),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
