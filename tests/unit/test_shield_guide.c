/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What docs/guide/health.md says of caps and presets is what the code does: its rows are made here,
 * the caps by letting all instances fail, and looked up in it.
 */
#include "support/shield.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define GUIDE_MAX (256U * 1024)

static char *guide;

static int load(void **state)
{
    FILE *file = fopen(HEALTH_GUIDE, "r");
    (void)state;
    guide = calloc(1, GUIDE_MAX);
    if (file == NULL || guide == NULL) {
        return -1;
    }
    const size_t size = fread(guide, 1, GUIDE_MAX - 1, file);
    (void)fclose(file);
    return size > 0 ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    free(guide);
    return 0;
}

static void assert_said(const char *row)
{
    if (strstr(guide, row) == NULL) {
        fail_msg("docs/guide/health.md does not say: %s", row + 1);
    }
}

/* ---- caps -------------------------------------------------------------------------------- */

static unsigned most_shielded(unsigned n, uint32_t max_percent)
{
    static struct shield_bench bench;
    assert_true(shield_begin(&bench, RBI_SHIELD_DEFAULT, n));
    bench.policy.above_median = 0;
    bench.policy.max_percent = max_percent;
    shield_apply(&bench);
    for (unsigned id = 1; id <= n; id++) {
        shield_calls(&bench, (int32_t)id, 0, 10);
    }
    shield_sweep(&bench);
    const unsigned out = shield_out(&bench);
    rbi_shield_deinit(&bench.cluster);
    return out;
}

static void test_caps_are_as_the_guide_says(void **state)
{
    static const uint32_t percents[] = {50, 30, 10, 100};
    (void)state;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(percents); i++) {
        char row[256];
        int length = snprintf(row, sizeof row, "\n| %s%u %% |", i == 0 ? "shielded at most, " : "",
                              percents[i]);
        for (unsigned n = 1; n <= 10; n++) {
            length += snprintf(row + length, sizeof row - (size_t)length, " %u |",
                               most_shielded(n, percents[i]));
        }
        (void)snprintf(row + length, sizeof row - (size_t)length, "\n");
        assert_said(row);
    }
}

/* ---- presets ----------------------------------------------------------------------------- */

typedef int write_cell(char *out, size_t size, const struct rbi_shield_policy *shield);

static int write_windows(char *out, size_t size, const struct rbi_shield_policy *shield)
{
    int length = 0;
    for (uint32_t i = 0; i < shield->window_count; i++) {
        const struct rbi_shield_window *window = &shield->windows[i];
        length += snprintf(out + length, size - (size_t)length, "%s%u s/%u/%u %%%s",
                           i == 0 ? "" : ", ", window->ms / 1000, window->calls, window->percent,
                           window->quiet_below == 20 ? " if quiet" : "");
    }
    return length;
}

static int write_median(char *out, size_t size, const struct rbi_shield_policy *shield)
{
    return snprintf(out, size, "%u", shield->above_median);
}

static int write_consecutive(char *out, size_t size, const struct rbi_shield_policy *shield)
{
    return shield->consecutive_ms != 0 ? snprintf(out, size, "%u in %u s", shield->consecutive,
                                                  shield->consecutive_ms / 1000)
                                       : snprintf(out, size, "%u", shield->consecutive);
}

static int write_deviation(char *out, size_t size, const struct rbi_shield_policy *shield)
{
    if (shield->deviations_x10 == 0) {
        return snprintf(out, size, "0");
    }
    return snprintf(out, size, "%u.%u of %u calls, %u hosts", shield->deviations_x10 / 10,
                    shield->deviations_x10 % 10, shield->deviation_calls, shield->deviation_hosts);
}

static int write_cap(char *out, size_t size, const struct rbi_shield_policy *shield)
{
    return snprintf(out, size, "%u", shield->max_percent);
}

static int write_open(char *out, size_t size, const struct rbi_shield_policy *shield)
{
    const uint32_t min_s = shield->open_min_ms / 1000;
    const uint32_t max_s = shield->open_max_ms / 1000;
    if (min_s == max_s) {
        return snprintf(out, size, "%u s", min_s);
    }
    return shield->open_linear ? snprintf(out, size, "%u s + %u s, %u s", min_s, min_s, max_s)
                               : snprintf(out, size, "%u s x 2, %u s", min_s, max_s);
}

static int write_jitter(char *out, size_t size, const struct rbi_shield_policy *shield)
{
    return snprintf(out, size, "%u", shield->jitter);
}

static int write_close(char *out, size_t size, const struct rbi_shield_policy *shield)
{
    const int length = snprintf(out, size, "%u of %u", shield->close_ok, shield->close_of);
    return shield->close_fails == 0 ? length
                                    : length + snprintf(out + length, size - (size_t)length,
                                                        ", %u may fail", shield->close_fails);
}

static int write_ramp(char *out, size_t size, const struct rbi_shield_policy *shield)
{
    return snprintf(out, size, "%u s", shield->ramp_ms / 1000);
}

static void test_presets_are_as_the_guide_says(void **state)
{
    static const struct {
        const char *name;
        write_cell *write;
    } rows[] = {{"windows", write_windows},
                {"above_median", write_median},
                {"consecutive", write_consecutive},
                {"deviation", write_deviation},
                {"max_percent", write_cap},
                {"open", write_open},
                {"jitter", write_jitter},
                {"close", write_close},
                {"ramp", write_ramp}};
    (void)state;
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(rows); i++) {
        char row[512];
        int length = snprintf(row, sizeof row, "\n| %s |", rows[i].name);
        for (unsigned preset = RBI_SHIELD_DEFAULT; preset <= RBI_SHIELD_FINAGLE; preset++) {
            struct rbi_shield_policy shield;
            rbi_shield_preset(&shield, (enum rbi_shield_preset)preset);
            length += snprintf(row + length, sizeof row - (size_t)length, " ");
            length += rows[i].write(row + length, sizeof row - (size_t)length, &shield);
            length += snprintf(row + length, sizeof row - (size_t)length, " |");
        }
        (void)snprintf(row + length, sizeof row - (size_t)length, "\n");
        assert_said(row);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_caps_are_as_the_guide_says),
        cmocka_unit_test(test_presets_are_as_the_guide_says),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
