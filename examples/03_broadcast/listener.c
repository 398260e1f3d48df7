/* SPDX-License-Identifier: Apache-2.0 */
/* listener N: instance N of /Demo/cn/pc/w1/g1/Listener; prints what it hears. */
#include <ringbus/ringbus.h>
#include <signal.h>
#include <stdio.h>

static struct ringbus *bus;
static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
    ringbus_wake(bus);
}

static void on_message(struct ringbus *from, const struct ringbus_message *message, void *user)
{
    int all = (message->flags & RINGBUS_MESSAGE_BROADCAST) != 0;
    (void)from;
    printf("listener %s: %.*s (%s)\n", (const char *)user, (int)message->size,
           (const char *)message->data, all ? "to all" : "to me alone");
}

int main(int argc, char **argv)
{
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    char path[RINGBUS_PATH_MAX + 1];
    if (argc != 2) {
        fputs("usage: listener N\n", stderr);
        return 2;
    }
    snprintf(path, sizeof path, "/Demo/cn/pc/w1/g1/Listener/%s", argv[1]);
    options.path = path;
    options.on_message = on_message;
    options.user = argv[1];
    if (ringbus_open(&options, &bus) != 0) {
        fprintf(stderr, "listener %s: %s\n", argv[1], ringbus_errmsg(NULL));
        return 1;
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    while (!stop && ringbus_wait(bus, -1) >= 0 && ringbus_poll(bus, 100) >= 0) {
        fflush(stdout);
    }
    return ringbus_close(bus, 1000) == 0 ? 0 : 1;
}
