/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_PROCESS_CLIENT_CALLS_H
#define RINGBUS_TESTS_PROCESS_CLIENT_CALLS_H
/* One daemon for requests of many to many. */
#include "libclient/internal.h"
#include "support/bus.h"
#include "support/test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACE "/game/eu/pc/w1/core/"

static struct cluster cluster;

enum { WORD_ASKED, WORD_ANSWERED, WORD_UP };

/* As after half a year of requests: from here on each slot passes over the end of its numbers. */
static inline void start_near_the_wrap(struct ringbus *bus)
{
    for (uint32_t slot = 0; slot < bus->calls.slot_count; slot++) {
        if (bus->calls.slots[slot].on_reply == NULL) {
            bus->calls.slots[slot].generation = RBI_CALL_GENERATION_MAX - slot % 4;
        }
    }
}

static inline int setup(void **state)
{
    (void)state;
    return cluster_up(&cluster, "{}\n");
}

static inline int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

#endif
