/* SPDX-License-Identifier: Apache-2.0 */
/* announcer N: waits for N listeners, tells all of them, then one of them. */
#include <ringbus/ringbus.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void on_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    long *ready = user;
    (void)bus;
    if (event->type == RINGBUS_EVENT_READY) {
        *ready += 1;
    } else if (event->type == RINGBUS_EVENT_DOWN) {
        *ready -= 1;
    }
}

int main(int argc, char **argv)
{
    static const char text[] = "the server restarts at noon";
    static const char secret[] = "but you may stay";
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    struct ringbus_addr listeners;
    struct ringbus *bus;
    long ready = 0;
    long wanted = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
    if (wanted < 1) {
        fputs("usage: announcer N\n", stderr);
        return 2;
    }
    options.on_event = on_event;
    options.user = &ready;
    if (ringbus_open(&options, &bus) != 0) {
        fprintf(stderr, "announcer: %s\n", ringbus_errmsg(NULL));
        return 1;
    }
    int r = ringbus_target(bus, "/Demo/cn/pc/w1/g1/Listener", NULL, &listeners);
    while (r >= 0 && ready < wanted) {
        r = ringbus_wait(bus, 5000) == 1 ? ringbus_poll(bus, 100) : RINGBUS_E_TIMEOUT;
    }
    if (r >= 0) {
        listeners.instance = RINGBUS_ALL;
        r = ringbus_send(bus, &listeners, 0, text, strlen(text), 0);
    }
    if (r >= 0) {
        printf("%d listeners were told\n", r);
        listeners.instance = 2; /* the same address, one instance of it */
        r = ringbus_send(bus, &listeners, 0, secret, strlen(secret), 0);
    }
    if (r < 0) {
        fprintf(stderr, "announcer: %s\n", ringbus_strerror(r));
    }
    return ringbus_close(bus, 1000) == 0 && r > 0 ? 0 : 1;
}
