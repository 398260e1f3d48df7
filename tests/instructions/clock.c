/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/instructions/clock.h"

#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct timespec held_at;
static bool held;
static uint64_t held_readings;

/* A definition in the program goes before the one of the C library, for libringbus too. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (held) {
        held_readings++;
        *now = held_at;
        return 0;
    }
    return (int)syscall(SYS_clock_gettime, clock, now);
}

void clock_hold(void)
{
    /* One instant for all clocks: the coarse one must not run ahead of the other. */
    (void)clock_gettime(CLOCK_MONOTONIC, &held_at);
    held = true;
}

void clock_release(void)
{
    held = false;
}

uint64_t clock_held_readings(void)
{
    return held_readings;
}
