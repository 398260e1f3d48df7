/* SPDX-License-Identifier: Apache-2.0 */
#include "shm/layout.h"
#include "tests/support/test.h"

/* Pinned by value: a change of layout has to be meant, and bumps RBI_LAYOUT_VERSION. */
static void test_layout_numbers(void **state)
{
    (void)state;
    assert_int_equal(RBI_LAYOUT_VERSION, 6);
    assert_int_equal(sizeof(struct rbi_segment_header), 64);
    assert_int_equal(sizeof(struct rbi_side), 768);
    assert_int_equal(offsetof(struct rbi_side, read_pos), 128);
    assert_int_equal(offsetof(struct rbi_side, returns_pos), 256);
    assert_int_equal(offsetof(struct rbi_side, want_pos), 384);
    assert_int_equal(sizeof(struct rbi_page), 4096);
    assert_int_equal(offsetof(struct rbi_page, sleep_epoch), 128);
    assert_int_equal(sizeof(struct rbi_pool_head), 320);
    assert_int_equal(sizeof(struct rbi_pool_class), 24);
    assert_int_equal(sizeof(struct rbi_outcomes), 256);
    assert_int_equal(sizeof(struct rbi_outcome), 3648);
    assert_int_equal(offsetof(struct rbi_outcome, latency), 64);
}

/* Two sides that are written by different ends, or at different times, share no line pair. */
static void test_layout_changing_fields_lie_128_bytes_apart(void **state)
{
    (void)state;
    static const size_t offsets[] = {
        offsetof(struct rbi_side, read_pos),  offsetof(struct rbi_side, returns_pos),
        offsetof(struct rbi_side, want_pos),  offsetof(struct rbi_side, written_hint),
        offsetof(struct rbi_side, begun_pos),
    };
    for (size_t i = 0; i < RBI_ARRAY_SIZE(offsets); i++) {
        assert_int_equal(offsets[i] % 128, 0);
    }
}

static void test_layout_fingerprint_is_stable(void **state)
{
    (void)state;
    assert_true(rbi_layout_fingerprint() != 0);
    assert_true(rbi_layout_fingerprint() == rbi_layout_fingerprint());
    assert_int_equal(rbi_layout_version_of(rbi_layout_fingerprint()), RBI_LAYOUT_VERSION_MIN);
    assert_int_equal(rbi_layout_version_of(rbi_layout_fingerprint() + 1), 0);
    assert_int_equal(rbi_layout_version_of(0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout_numbers),
        cmocka_unit_test(test_layout_changing_fields_lie_128_bytes_apart),
        cmocka_unit_test(test_layout_fingerprint_is_stable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
