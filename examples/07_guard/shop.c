/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shop NAME: one of the instances of the shop. The one that is called "full" never has room for a
 * delivery, and says so: whoever asked may ask another. A stock-taking keeps it from its messages
 * for a while, and what nobody waits for any more when it comes back is not even looked at.
 */
#include <ringbus/ringbus.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ORDER = 1, PRICES = 2, DELIVERY = 3, STOCK_TAKING = 4, QUESTION = 5 };

static struct ringbus *bus;
static volatile sig_atomic_t stop;
static const char *name;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
    ringbus_wake(bus);
}

static int say(struct ringbus *to, const struct ringbus_message *message, const char *text)
{
    return ringbus_reply(to, &message->reply_to, text, strlen(text), 0);
}

static void on_message(struct ringbus *from, const struct ringbus_message *message, void *user)
{
    const struct timespec stock_taking = {.tv_nsec = 200000000};
    const unsigned method = message->attributes != NULL ? message->attributes->method : 0;
    int r;
    (void)user;
    switch (method) {
    case ORDER:
        r = say(from, message, "taken");
        break;
    case PRICES:
        r = say(from, message, "as of now");
        break;
    case DELIVERY:
        /* Certainly not handled: it is asked again, of another instance. */
        r = strcmp(name, "full") == 0
                ? ringbus_reply_refused(from, &message->reply_to, RINGBUS_E_SHED, 0)
                : say(from, message, "delivered");
        break;
    case STOCK_TAKING:
        (void)nanosleep(&stock_taking, NULL);
        r = say(from, message, "done");
        break;
    default:
        r = say(from, message, "here");
        break;
    }
    if (r < 0) {
        fprintf(stderr, "shop: no answer to %s: %s\n", message->from_path, ringbus_strerror(r));
    }
}

int main(int argc, char **argv)
{
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    struct ringbus_stats stats = {.struct_size = sizeof stats};
    char path[64];
    if (argc != 2) {
        fprintf(stderr, "usage: shop NAME\n");
        return 1;
    }
    name = argv[1];
    (void)snprintf(path, sizeof path, "/Demo/cn/pc/w1/g1/Shop/%s", name);
    options.path = path;
    options.on_message = on_message;
    if (ringbus_open(&options, &bus) != 0) {
        fprintf(stderr, "shop: %s\n", ringbus_errmsg(NULL));
        return 1;
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    while (!stop && ringbus_wait(bus, -1) >= 0 && ringbus_poll(bus, 100) >= 0) {
    }
    if (strcmp(name, "full") != 0 && ringbus_stats(bus, &stats) == 0) {
        printf("too late to be handled: %d\n", (int)stats.expired);
    }
    return ringbus_close(bus, 1000) == 0 ? 0 : 1;
}
