/* SPDX-License-Identifier: Apache-2.0 */
/* Pays out what it is asked for, and notes for whom: not the broker, but who stands behind it. */
#include <ringbus/ringbus.h>
#include <signal.h>
#include <stdio.h>

static volatile sig_atomic_t stopping;

static void on_signal(int number)
{
    (void)number;
    stopping = 1;
}

static void on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    struct ringbus_origin origin;
    char text[RINGBUS_PATH_MAX + 64];
    (void)user;
    if (message->kind != RINGBUS_KIND_REQUEST) {
        return;
    }
    const int known = ringbus_origin(bus, message, &origin);
    const int length =
        snprintf(text, sizeof text, "%.*s coins for %s", (int)message->size,
                 (const char *)message->data, known == 1 ? origin.path : message->from_path);
    (void)ringbus_reply(bus, &message->reply_to, text, (size_t)length, 0);
}

int main(void)
{
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    struct ringbus *bus;
    options.path = "/Demo/cn/pc/w1/g1/Mint/1";
    options.on_message = on_message;
    (void)signal(SIGTERM, on_signal);
    if (ringbus_open(&options, &bus) != 0) {
        fprintf(stderr, "mint: %s\n", ringbus_errmsg(NULL));
        return 1;
    }
    int r = 0;
    while (r >= 0 && !stopping) {
        r = ringbus_poll(bus, 100);
        r = r == 0 ? ringbus_wait(bus, 100) : r;
    }
    return ringbus_close(bus, 1000) < 0 || r < 0 ? 1 : 0;
}
