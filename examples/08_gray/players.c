/* SPDX-License-Identifier: Apache-2.0 */
/*
 * players INSTANCES [TAG]: a thousand players, each of whom asks the shop twice, with the player's
 * number as key. Prints how many were served by which releases, of the shop and of the stock behind
 * it; and how many saw two releases, which would be a mistake.
 */
#include <ringbus/ringbus.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAYERS   1000U
#define ANSWERS   8U
#define UNDER_WAY 32U /* a lane holds more */

struct answer {
    char text[32];
    unsigned count;
};

struct player {
    struct players *all;
    char first[32]; /* what the first answer said */
};

struct players {
    struct player each[PLAYERS];
    struct answer answers[ANSWERS];
    unsigned ready;
    unsigned asked;
    unsigned ended;
    unsigned of_two; /* releases */
    unsigned failed;
    int error; /* of the last that failed */
};

static void on_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    struct players *all = user;
    (void)bus;
    all->ready += event->type == RINGBUS_EVENT_READY;
}

static void count(struct players *all, const char *text)
{
    for (unsigned i = 0; i < ANSWERS; i++) {
        struct answer *answer = &all->answers[i];
        if (answer->count == 0 || strcmp(answer->text, text) == 0) {
            (void)snprintf(answer->text, sizeof answer->text, "%s", text);
            answer->count++;
            return;
        }
    }
}

static void on_reply(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    struct player *player = context;
    struct players *all = player->all;
    char text[32];
    (void)bus;
    all->ended++;
    if (result->outcome != RINGBUS_REPLIED) {
        all->failed++;
        all->error = result->error;
        return;
    }
    (void)snprintf(text, sizeof text, "%.*s", (int)result->message->size,
                   (const char *)result->message->data);
    if (player->first[0] == '\0') {
        (void)snprintf(player->first, sizeof player->first, "%s", text);
        count(all, text);
    } else {
        all->of_two += strcmp(player->first, text) != 0;
    }
}

static int
ask(struct ringbus *bus, struct players *all, const struct ringbus_addr *shop, const char *tag)
{
    const struct ringbus_part part = {.data = "", .size = 0};
    const unsigned number = all->asked % PLAYERS;
    const struct ringbus_message_options options = {.struct_size = sizeof options,
                                                    .flags = RINGBUS_KEY,
                                                    .key = number,
                                                    .tag = tag,
                                                    .timeout_ms = 2000};
    const int r = ringbus_request_with(bus, shop, &part, 1, &options, on_reply, &all->each[number]);
    all->asked += r > 0;
    return r;
}

/* Waits until *count is that much. @return 0, or an error */
static int wait_for(struct ringbus *bus, const unsigned *now, unsigned wanted)
{
    while (*now < wanted) {
        int r = ringbus_wait(bus, 5000);
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

static int by_text(const void *left, const void *right)
{
    return strcmp(((const struct answer *)left)->text, ((const struct answer *)right)->text);
}

static void print(struct players *all)
{
    unsigned used = 0;
    while (used < ANSWERS && all->answers[used].count > 0) {
        used++;
    }
    qsort(all->answers, used, sizeof all->answers[0], by_text);
    for (unsigned i = 0; i < used; i++) {
        printf("  %u players by %s\n", all->answers[i].count, all->answers[i].text);
    }
    if (all->of_two > 0) {
        printf("  %u players saw two releases\n", all->of_two);
    }
    if (all->failed > 0) {
        printf("  %u requests failed: %s\n", all->failed, ringbus_strerror(all->error));
    }
}

int main(int argc, char **argv)
{
    static struct players all;
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    struct ringbus_addr shop;
    struct ringbus *bus;
    if (argc < 2) {
        fprintf(stderr, "usage: players INSTANCES [TAG]\n");
        return 1;
    }
    options.on_event = on_event;
    options.user = &all;
    if (ringbus_open(&options, &bus) != 0) {
        fprintf(stderr, "players: %s\n", ringbus_errmsg(NULL));
        return 1;
    }
    for (unsigned i = 0; i < PLAYERS; i++) {
        all.each[i].all = &all;
    }
    int r = ringbus_target(bus, "/Demo/cn/pc/w1/g1/Shop", NULL, &shop);
    r = r == 0 ? wait_for(bus, &all.ready, (unsigned)strtoul(argv[1], NULL, 10)) : r;
    while (r >= 0 && all.asked < 2 * PLAYERS) {
        r = ask(bus, &all, &shop, argc > 2 ? argv[2] : NULL);
        r = r > 0 && all.asked >= UNDER_WAY ? wait_for(bus, &all.ended, all.asked - UNDER_WAY + 1)
                                            : r;
    }
    r = r >= 0 ? wait_for(bus, &all.ended, all.asked) : r;
    print(&all);
    if (r < 0) {
        fprintf(stderr, "players: %s\n", ringbus_strerror(r));
    }
    ringbus_close(bus, 1000);
    return r < 0 || all.failed > 0 ? 1 : 0;
}
