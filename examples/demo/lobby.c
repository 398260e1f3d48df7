/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lobby N: passes each piece of work on to the battle that its key chooses, and the
 * battle's answer back to who asked. What finds no room on the way to the battle is kept,
 * not copied, and tried again in order.
 */
#include "demo.h"

#include <stdio.h>
#include <string.h>

#define WORK_MAX (DEMO_WINDOW * 4)

/* One piece of work, from its request to its answer. */
struct work {
    struct work *next; /* in the free list */
    struct ringbus_reply_to to;
};

struct waiting {
    struct ringbus_kept *kept;
    struct work *work;
};

struct lobby {
    struct ringbus_addr battle;
    struct demo_figures figures;
    struct demo_owing owing;
    struct work works[WORK_MAX];
    struct work *free;
    struct waiting waiting[WORK_MAX]; /* a ring: work that is not with a battle yet */
    unsigned waiting_first;
    unsigned waiting_count;
};

static struct lobby lobby;

static void finish(struct ringbus *bus, struct work *work, const void *data, size_t size)
{
    demo_answer(bus, &lobby.owing, &work->to, data, size);
    work->next = lobby.free;
    lobby.free = work;
}

static void on_battle_reply(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    const struct ringbus_message *message = result->message;
    if (result->outcome == RINGBUS_REPLIED && message->size == DEMO_HASH_BYTES) {
        finish(bus, context, message->data, message->size);
    } else {
        lobby.figures.failures++;
        finish(bus, context, NULL, 0);
    }
}

/* @return 1 passed on, 0 not now, < 0 never */
static int
pass_on(struct ringbus *bus, uint64_t key, const void *data, size_t size, struct work *work)
{
    int r = ringbus_request(bus, &lobby.battle, key, data, size, RINGBUS_KEY, DEMO_TIMEOUT_MS,
                            on_battle_reply, work);
    int nobody = r == RINGBUS_E_NO_SERVICE || r == RINGBUS_E_NO_INSTANCE; /* one may come yet */
    return nobody || ringbus_error_kind(r) == RINGBUS_ERROR_RETRY ? 0 : r;
}

static void work_begin(struct ringbus *bus, const struct ringbus_message *message)
{
    struct work *work = lobby.free;
    if (work == NULL) {
        lobby.figures.failures++;
        demo_answer(bus, &lobby.owing, &message->reply_to, NULL, 0);
        return;
    }
    lobby.free = work->next;
    work->to = message->reply_to;
    lobby.figures.handled++;
    lobby.figures.bytes += message->size;
    int r = 0;
    if (lobby.waiting_count == 0) { /* nothing overtakes what waits */
        r = pass_on(bus, message->key, message->data, message->size, work);
    }
    if (r == 0) {
        struct waiting *waiting =
            &lobby.waiting[(lobby.waiting_first + lobby.waiting_count) % WORK_MAX];
        waiting->work = work;
        r = ringbus_keep(bus, message, &waiting->kept);
        lobby.waiting_count += r == 0;
    }
    if (r < 0) {
        lobby.figures.failures++;
        finish(bus, work, NULL, 0);
    }
}

static void waiting_pass_on(struct ringbus *bus)
{
    while (lobby.waiting_count > 0) {
        struct waiting *waiting = &lobby.waiting[lobby.waiting_first];
        const struct ringbus_kept *kept = waiting->kept;
        int r = pass_on(bus, kept->key, kept->data, kept->size, waiting->work);
        if (r == 0) {
            return;
        }
        if (r < 0) {
            lobby.figures.failures++;
            finish(bus, waiting->work, NULL, 0);
        }
        ringbus_release(bus, waiting->kept);
        lobby.waiting_first = (lobby.waiting_first + 1) % WORK_MAX;
        lobby.waiting_count--;
    }
}

static void on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    (void)user;
    if (message->kind != RINGBUS_KIND_REQUEST) {
        lobby.figures.announcements++;
    } else if ((message->flags & RINGBUS_MESSAGE_KEY) == 0) {
        demo_answer(bus, &lobby.owing, &message->reply_to, &lobby.figures, sizeof lobby.figures);
    } else {
        work_begin(bus, message);
    }
}

static int run(struct ringbus *bus)
{
    int r = ringbus_target(bus, DEMO_BATTLE, NULL, &lobby.battle);
    while (r >= 0 && !demo_left(bus, lobby.owing.count + lobby.waiting_count)) {
        r = ringbus_poll(bus, 64);
        waiting_pass_on(bus);
        demo_pay(bus, &lobby.owing);
        if (r == 0) {
            int owes = lobby.owing.count + lobby.waiting_count > 0;
            r = ringbus_wait(bus, owes ? 1 : demo_stopping() ? 100 : -1);
        }
    }
    return r;
}

int main(int argc, char **argv)
{
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    struct ringbus *bus = NULL;
    char path[RINGBUS_PATH_MAX + 1];
    snprintf(path, sizeof path, "%s/%u", DEMO_LOBBY,
             (unsigned)demo_number(argc, argv, "--instance", 1));
    for (unsigned i = 0; i < WORK_MAX; i++) {
        lobby.works[i].next = lobby.free;
        lobby.free = &lobby.works[i];
    }
    options.path = path;
    options.on_message = on_message;
    demo_pool(&options, (size_t)demo_number(argc, argv, "--largest", DEMO_FILE_MAX));
    if (ringbus_open(&options, &bus) != 0) {
        fprintf(stderr, "%s: %s\n", path, ringbus_errmsg(NULL));
        return 1;
    }
    demo_signals(bus);
    int r = run(bus);
    if (r < 0) {
        fprintf(stderr, "%s: %s\n", path, ringbus_errmsg(bus));
    }
    for (; lobby.waiting_count > 0; lobby.waiting_count--) {
        ringbus_release(bus, lobby.waiting[lobby.waiting_first].kept);
        lobby.waiting_first = (lobby.waiting_first + 1) % WORK_MAX;
    }
    return ringbus_close(bus, 2000) == 0 && r >= 0 ? 0 : 1;
}
