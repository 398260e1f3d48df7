/* SPDX-License-Identifier: Apache-2.0 */
/* battle N: answers each piece of work with its XXH3-128. */
#include "demo.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

struct battle {
    struct demo_figures figures;
    struct demo_owing owing;
};

static void on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    struct battle *battle = user;
    if (message->kind != RINGBUS_KIND_REQUEST) {
        battle->figures.announcements++;
        return;
    }
    if ((message->flags & RINGBUS_MESSAGE_KEY) == 0) {
        demo_answer(bus, &battle->owing, &message->reply_to, &battle->figures,
                    sizeof battle->figures);
        return;
    }
    XXH128_canonical_t hash;
    XXH128_canonicalFromHash(&hash, XXH3_128bits(message->data, message->size));
    battle->figures.handled++;
    battle->figures.bytes += message->size;
    demo_answer(bus, &battle->owing, &message->reply_to, hash.digest, sizeof hash.digest);
}

int main(int argc, char **argv)
{
    static struct battle battle;
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    struct ringbus *bus = NULL;
    char path[RINGBUS_PATH_MAX + 1];
    snprintf(path, sizeof path, "%s/%u", DEMO_BATTLE,
             (unsigned)demo_number(argc, argv, "--instance", 1));
    options.path = path;
    options.on_message = on_message;
    options.user = &battle;
    if (ringbus_open(&options, &bus) != 0) {
        fprintf(stderr, "%s: %s\n", path, ringbus_errmsg(NULL));
        return 1;
    }
    demo_signals(bus);
    int r = 0;
    while (r >= 0 && !demo_left(bus, battle.owing.count)) {
        r = ringbus_poll(bus, 64);
        demo_pay(bus, &battle.owing);
        if (r == 0) {
            r = ringbus_wait(bus, battle.owing.count > 0 ? 1 : demo_stopping() ? 100 : -1);
        }
    }
    if (r < 0) {
        fprintf(stderr, "%s: %s\n", path, ringbus_errmsg(bus));
    }
    return ringbus_close(bus, 2000) == 0 && r >= 0 ? 0 : 1;
}
