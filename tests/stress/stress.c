/* SPDX-License-Identifier: Apache-2.0 */
#include "stress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void stress_fail(const char *what, const char *file, int line)
{
    (void)fprintf(stderr, "%s:%d: failed: %s\n", file, line, what);
    (void)fflush(NULL);
    _Exit(1);
}

void stress_parse(struct stress_options *options, int argc, char **argv)
{
    options->seconds = 2;
    options->seed = stress_now_ns();
    options->senders = 1;
    options->one_core = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--one-core") == 0) {
            options->one_core = true;
        } else if (i + 1 < argc && strcmp(argv[i], "--seconds") == 0) {
            options->seconds = strtod(argv[++i], NULL);
        } else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0) {
            options->seed = strtoull(argv[++i], NULL, 0);
        } else if (i + 1 < argc && strcmp(argv[i], "--senders") == 0) {
            options->senders = (unsigned)strtoul(argv[++i], NULL, 0);
        } else {
            (void)fprintf(stderr, "usage: %s [--seconds N] [--seed N] [--senders N] [--one-core]\n",
                          argv[0]);
            exit(2);
        }
    }
    options->seed |= 1; /* the generator never leaves 0 */
    (void)printf("seed %" PRIu64 "\n", options->seed);
    (void)fflush(stdout);
}

uint64_t stress_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

uint64_t stress_now_ns(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
}

void stress_lane_open(struct stress_lane *lane, uint64_t capacity, uint64_t start_pos)
{
    STRESS_CHECK(rbi_segment_create(&lane->segment, "stress", RBI_SEGMENT_SIDE, RBI_PAGE + capacity,
                                    RBI_PAGE) == 0);
    STRESS_CHECK(rbi_segment_mirror(&lane->segment) == 0);
    unsigned char *base = (unsigned char *)lane->segment.base + RBI_PAGE;
    rbi_lane_rx_init(&lane->rx, base, capacity, &lane->read_pos, start_pos);
    lane->inside = (uint64_t *)calloc(RBI_LANE_INSIDE_WORDS(capacity), sizeof(uint64_t));
    STRESS_CHECK(lane->inside != NULL);
    rbi_lane_tx_init(&lane->tx, base, capacity, &lane->read_pos, start_pos, lane->inside);
}

void stress_lane_close(struct stress_lane *lane)
{
    rbi_segment_deinit(&lane->segment);
    free(lane->inside);
}
