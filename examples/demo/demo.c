/* SPDX-License-Identifier: Apache-2.0 */
#include "demo.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LEAVE_S 5

static struct ringbus *signal_bus;
static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
    ringbus_wake(signal_bus);
}

void demo_signals(struct ringbus *bus)
{
    signal_bus = bus;
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
}

int demo_stopping(void)
{
    return stop;
}

int demo_left(struct ringbus *bus, unsigned owed)
{
    static time_t deadline;
    if (!stop) {
        return 0;
    }
    if (deadline == 0) {
        deadline = time(NULL) + LEAVE_S;
        ringbus_drain(bus); /* nothing new comes from now on */
    }
    return (ringbus_drained(bus) == 1 && owed == 0) || time(NULL) > deadline;
}

/* @return 1 when the answer is out or nobody wants it any more, 0 when it found no room */
static int answer_try(struct ringbus *bus, const struct demo_owed *owed)
{
    int r = owed->size > 0 ? ringbus_reply(bus, &owed->to, owed->data, owed->size, 0)
                           : ringbus_reply_error(bus, &owed->to, "the battle did not answer");
    return r != RINGBUS_E_FULL && r != RINGBUS_E_NO_CHUNK;
}

void demo_answer(struct ringbus *bus,
                 struct demo_owing *owing,
                 const struct ringbus_reply_to *to,
                 const void *data,
                 size_t size)
{
    struct demo_owed owed = {.to = *to, .size = size};
    if (size > 0) {
        memcpy(owed.data, data, size < sizeof owed.data ? size : sizeof owed.data);
    }
    /* Behind what is owed already, in order; beyond the limit the requester's timeout tells it. */
    if (owing->count > 0 || !answer_try(bus, &owed)) {
        if (owing->count < DEMO_OWED_MAX) {
            owing->items[owing->count++] = owed;
        }
    }
}

void demo_pay(struct ringbus *bus, struct demo_owing *owing)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < owing->count; i++) {
        if (!answer_try(bus, &owing->items[i])) {
            owing->items[kept++] = owing->items[i];
        }
    }
    owing->count = kept;
}

void demo_pool(struct ringbus_options *options, size_t largest)
{
    static const struct ringbus_pool_class classes[] = {
        {16U << 10, 64}, {64U << 10, 64}, {256U << 10, 16}, {1U << 20, 4}};
    unsigned count = 0;
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        options->pool[count++] = classes[i];
        if (largest <= classes[i].chunk_bytes) {
            return;
        }
    }
    options->pool[count].chunk_bytes = (uint32_t)((largest + 63) / 64 * 64);
    options->pool[count].count = 2;
}

uint64_t demo_number(int argc, char **argv, const char *name, uint64_t otherwise)
{
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], name) == 0) {
            char *end = NULL;
            unsigned long long value = strtoull(argv[i + 1], &end, 10);
            if (end == argv[i + 1] || *end != '\0') {
                fprintf(stderr, "demo: %s: not a number: %s\n", name, argv[i + 1]);
                exit(2); /* NOLINT(concurrency-mt-unsafe): one thread */
            }
            return value;
        }
    }
    return otherwise;
}
