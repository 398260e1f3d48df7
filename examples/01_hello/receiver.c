/* SPDX-License-Identifier: Apache-2.0 */
/* Prints every message that is sent to /Demo/cn/pc/w1/g1/Hello/1, until SIGTERM or Ctrl-C. */
/* begin: receiver */
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
    (void)from, (void)user;
    printf("received: %.*s\n", (int)message->size, (const char *)message->data);
}

int main(void)
{
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    options.path = "/Demo/cn/pc/w1/g1/Hello/1";
    options.on_message = on_message;
    if (ringbus_open(&options, &bus) != 0) {
        fprintf(stderr, "receiver: %s\n", ringbus_errmsg(NULL));
        return 1;
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    while (!stop && ringbus_wait(bus, -1) >= 0 && ringbus_poll(bus, 100) >= 0) {
        fflush(stdout);
    }
    return ringbus_close(bus, 1000) == 0 ? 0 : 1;
}
/* end: receiver */
