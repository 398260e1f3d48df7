/* SPDX-License-Identifier: Apache-2.0 */
/* Sends one message to whoever is in the cluster /Demo/cn/pc/w1/g1/Hello. */
/* begin: sender */
#include <ringbus/ringbus.h>
#include <stdio.h>

static void on_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    (void)bus;
    if (event->type == RINGBUS_EVENT_READY) {
        *(int *)user = 1;
    }
}

int main(void)
{
    static const char text[] = "hello, ringbus";
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    struct ringbus_addr hello;
    struct ringbus *bus;
    int ready = 0;
    options.on_event = on_event;
    options.user = &ready;
    if (ringbus_open(&options, &bus) != 0) {
        fprintf(stderr, "sender: %s\n", ringbus_errmsg(NULL));
        return 1;
    }
    int r = ringbus_target(bus, "/Demo/cn/pc/w1/g1/Hello", NULL, &hello);
    while (r >= 0 && !ready) {
        r = ringbus_wait(bus, 5000) == 1 ? ringbus_poll(bus, 100) : RINGBUS_E_TIMEOUT;
    }
    if (r >= 0) {
        r = ringbus_send(bus, &hello, 0, text, sizeof text - 1, 0);
    }
    if (r < 0) {
        fprintf(stderr, "sender: %s\n", ringbus_strerror(r));
    }
    /* Waits until the receiver has consumed the message. */
    return ringbus_close(bus, 1000) == 0 && r > 0 ? 0 : 1;
}
/* end: sender */
