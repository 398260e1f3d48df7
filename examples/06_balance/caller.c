/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks a cluster many times, and says who has answered how often.
 *   caller CLUSTER INSTANCES keys FILE   asks with 1000 keys, writes "key instance" lines to FILE
 *   caller CLUSTER INSTANCES any         asks 400 times without a key
 */
#include <inttypes.h>
#include <ringbus/ringbus.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS       1000
#define ANY        400
#define UNDER_WAY  16 /* requests at once: whoever is slow has several that wait */
#define NAMES_MAX  10
#define TIMEOUT_MS 10000

struct caller {
    int ready;
    int ended;
    int failed;
    int answered[NAMES_MAX]; /* by the digit that a name ends in */
    char names[NAMES_MAX][64];
    int who[KEYS];
};

struct question {
    struct caller *caller;
    int number;
};

static void on_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    struct caller *caller = user;
    (void)bus;
    caller->ready += event->type == RINGBUS_EVENT_READY;
}

static void on_reply(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    const struct question *question = context;
    struct caller *caller = question->caller;
    (void)bus;
    caller->ended++;
    if (result->outcome != RINGBUS_REPLIED) {
        caller->failed++;
        return;
    }
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)result->message->size,
             (const char *)result->message->data);
    const int digit = (name[strlen(name) - 1] - '0') % NAMES_MAX;
    caller->answered[digit]++;
    snprintf(caller->names[digit], sizeof caller->names[digit], "%s", name);
    if (question->number < KEYS) {
        caller->who[question->number] = digit;
    }
}

/* Polls until *value reaches the goal. @return 0, or an error */
static int run_until(struct ringbus *bus, const int *value, int goal)
{
    while (*value < goal) {
        int r = ringbus_wait(bus, TIMEOUT_MS);
        if (r == 0) {
            return RINGBUS_E_TIMEOUT;
        }
        if (r > 0) {
            r = ringbus_poll(bus, 100);
        }
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int ask(struct ringbus *bus, const struct ringbus_addr *to, struct caller *caller, int keyed)
{
    static struct question questions[KEYS];
    const int count = keyed ? KEYS : ANY;
    int r = 0;
    for (int i = 0; i < count && r >= 0; i++) {
        questions[i] = (struct question){caller, i};
        char text[32];
        const int length = snprintf(text, sizeof text, "player-%d", i);
        const uint64_t key = keyed ? ringbus_key(text, (size_t)length) : 0;
        r = ringbus_request(bus, to, key, text, (size_t)length, keyed ? RINGBUS_KEY : 0, TIMEOUT_MS,
                            on_reply, &questions[i]);
        if (r >= 0) {
            r = run_until(bus, &caller->ended, i + 2 - UNDER_WAY);
        }
    }
    return r < 0 ? r : run_until(bus, &caller->ended, count);
}

static int report(const struct caller *caller, const char *file)
{
    for (int i = 0; i < NAMES_MAX; i++) {
        if (caller->answered[i] > 0 && file == NULL) {
            printf("%s %d\n", caller->names[i], caller->answered[i]);
        }
    }
    FILE *out = file != NULL ? fopen(file, "w") : NULL;
    for (int i = 0; out != NULL && i < KEYS; i++) {
        fprintf(out, "player-%d %s\n", i, caller->names[caller->who[i]]);
    }
    return out != NULL ? fclose(out) : file != NULL ? -1 : 0;
}

int main(int argc, char **argv)
{
    static struct caller caller;
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    struct ringbus_addr cluster;
    struct ringbus *bus;
    if (argc < 4) {
        fprintf(stderr, "usage: caller CLUSTER INSTANCES keys FILE | any\n");
        return 2;
    }
    const char *file = argc > 4 ? argv[4] : NULL;
    options.on_event = on_event;
    options.user = &caller;
    if (ringbus_open(&options, &bus) != 0) {
        fprintf(stderr, "caller: %s\n", ringbus_errmsg(NULL));
        return 1;
    }
    int r = ringbus_target(bus, argv[1], NULL, &cluster);
    if (r == 0) {
        r = run_until(bus, &caller.ready, (int)strtol(argv[2], NULL, 10));
    }
    if (r >= 0) {
        r = ask(bus, &cluster, &caller, strcmp(argv[3], "keys") == 0);
    }
    if (r < 0 || caller.failed > 0) {
        fprintf(stderr, "caller: %d failed: %s\n", caller.failed, ringbus_errmsg(bus));
    }
    ringbus_close(bus, 1000);
    return r < 0 || caller.failed > 0 || report(&caller, file) != 0 ? 1 : 0;
}
