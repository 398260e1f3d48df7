/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers each request with its own name. worker PATH [MS]: takes MS for each message.
 * On SIGUSR1 it says how many slots of the key space it owns.
 */
#include <ringbus/ringbus.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RANGES_MAX 65536

static struct ringbus *bus;
static volatile sig_atomic_t stop;
static volatile sig_atomic_t asked;
static long each_ms;

static void on_signal(int number)
{
    if (number == SIGUSR1) {
        asked = 1;
    } else {
        stop = 1;
    }
    ringbus_wake(bus);
}

static void on_message(struct ringbus *from, const struct ringbus_message *message, void *user)
{
    const char *name = strrchr(ringbus_self_path(from), '/') + 1;
    const struct timespec work = {.tv_sec = 0, .tv_nsec = each_ms * 1000000};
    (void)user;
    if (each_ms > 0) {
        nanosleep(&work, NULL);
    }
    if (message->kind == RINGBUS_KIND_REQUEST) {
        int r = ringbus_reply(from, &message->reply_to, name, strlen(name), 0);
        if (r < 0) {
            fprintf(stderr, "worker: no answer: %s\n", ringbus_strerror(r));
        }
    }
}

/* What another instance stores or works on is not ours: slots are the units of that. */
static void tell_slots(void)
{
    static struct ringbus_slot_range ranges[RANGES_MAX];
    const int count = ringbus_slots(bus, ranges, RANGES_MAX);
    unsigned sum = 0;
    for (int i = 0; i < count; i++) {
        sum += ranges[i].last - ranges[i].first + 1;
    }
    printf("%s owns %u slots\n", strrchr(ringbus_self_path(bus), '/') + 1, sum);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    if (argc < 2) {
        fprintf(stderr, "usage: worker PATH [MS]\n");
        return 2;
    }
    each_ms = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
    options.path = argv[1];
    options.on_message = on_message;
    options.slots = RINGBUS_SLOTS_REPORT;
    if (ringbus_open(&options, &bus) != 0) {
        fprintf(stderr, "worker: %s\n", ringbus_errmsg(NULL));
        return 1;
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    signal(SIGUSR1, on_signal);
    while (!stop && ringbus_wait(bus, -1) >= 0 && ringbus_poll(bus, 100) >= 0) {
        if (asked) {
            asked = 0;
            tell_slots();
        }
    }
    return ringbus_close(bus, 1000) == 0 ? 0 : 1;
}
