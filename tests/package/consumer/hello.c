/* SPDX-License-Identifier: Apache-2.0 */
/* The first program of a user: two endpoints, one message. */
#include <ringbus/ringbus.h>
#include <stdio.h>

static int received;

static void on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    (void)bus;
    (void)user;
    received = message->size == 5 && memcmp(message->data, "hello", 5) == 0;
}

static int failed(const char *what, const struct ringbus *bus)
{
    fprintf(stderr, "%s: %s\n", what, ringbus_errmsg(bus));
    return 1;
}

int main(void)
{
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    struct ringbus *receiver = NULL;
    struct ringbus *sender = NULL;
    struct ringbus_addr to;
    int tries = 0;

    options.path = "/demo/local/pc/w1/hello/receiver/1";
    options.on_message = on_message;
    if (ringbus_open(&options, &receiver) != 0) {
        return failed("receiver", NULL);
    }
    if (ringbus_open(NULL, &sender) != 0) {
        return failed("sender", NULL);
    }
    if (ringbus_target(sender, options.path, NULL, &to) != 0) {
        return failed("target", sender);
    }
    while (!received && tries++ < 5000) {
        static int sent;
        if (!sent) {
            sent = ringbus_send(sender, &to, 0, "hello", 5, 0) == 1;
        }
        ringbus_poll(sender, 100);
        ringbus_poll(receiver, 100);
        ringbus_wait(sender, 0);
        ringbus_wait(receiver, 1);
    }
    ringbus_close(sender, 0);
    ringbus_close(receiver, 0);
    return received ? 0 : failed("nothing came", NULL);
}
