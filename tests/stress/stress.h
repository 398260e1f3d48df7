/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_STRESS_STRESS_H
#define RINGBUS_TESTS_STRESS_STRESS_H
/*
 * What the stress programs share: options, a seeded generator, a lane in a mirrored
 * mapping, a check that ends the process from any thread.
 */
#include "shm/lane.h"
#include "shm/segment.h"

#include <stdint.h>

struct stress_options {
    double seconds;
    uint64_t seed;
    unsigned senders;
    bool one_core;
};

/** Reads --seconds N --seed N --senders N --one-core; exits 2 on anything else. Prints the seed. */
void stress_parse(struct stress_options *options, int argc, char **argv);
/** Ends the process with a message: cmocka's asserts belong to the main thread only. */
#define STRESS_CHECK(x)                                                                            \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            stress_fail(#x, __FILE__, __LINE__);                                                   \
        }                                                                                          \
    } while (0)
__attribute__((noreturn)) void stress_fail(const char *what, const char *file, int line);
uint64_t stress_random(uint64_t *state);
uint64_t stress_now_ns(void);

/** A lane with both of its ends; one thread uses tx, another rx. */
struct stress_lane {
    struct rbi_segment segment;
    RBI_ALIGNED(128) rbi_au64 read_pos;
    RBI_ALIGNED(128) struct rbi_lane_tx tx;
    RBI_ALIGNED(128) struct rbi_lane_rx rx;
    uint64_t *inside; /* tx's */
};
void stress_lane_open(struct stress_lane *lane, uint64_t capacity, uint64_t start_pos);
void stress_lane_close(struct stress_lane *lane);

#endif
