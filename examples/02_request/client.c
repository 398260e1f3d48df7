/* SPDX-License-Identifier: Apache-2.0 */
/* Asks four times, one after another, and shows how each request ended. */
#include <ringbus/ringbus.h>
#include <stdio.h>
#include <string.h>

struct client {
    int ready;
    int ended; /* requests whose callback has run */
};

static void on_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    struct client *client = user;
    (void)bus;
    if (event->type == RINGBUS_EVENT_READY) {
        client->ready = 1;
    }
}

static void on_reply(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    struct client *client = context;
    const struct ringbus_message *message = result->message;
    (void)bus;
    client->ended++;
    switch (result->outcome) {
    case RINGBUS_REPLIED:
        printf("replied: %.*s\n", (int)message->size, (const char *)message->data);
        break;
    case RINGBUS_FAILED:
        printf("failed: %.*s\n", message != NULL ? (int)message->size : 0,
               message != NULL ? (const char *)message->data : "");
        break;
    case RINGBUS_UNKNOWN: /* it may have been handled: ask again only if that does no harm */
        printf("unknown: %s\n", ringbus_strerror(result->error));
        break;
    case RINGBUS_NOT_SENT: /* it was certainly not handled: ask again freely */
        printf("not sent: %s\n", ringbus_strerror(result->error));
        break;
    }
}

/* Waits until *flag reaches the value. @return 0, or an error */
static int wait_for(struct ringbus *bus, const int *flag, int value)
{
    while (*flag < value) {
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

int main(void)
{
    static const char *const texts[] = {"ask me", "slow as well", "", "bye"};
    struct client client = {0, 0};
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    struct ringbus_addr capitals;
    struct ringbus *bus;
    options.on_event = on_event;
    options.user = &client;
    if (ringbus_open(&options, &bus) != 0) {
        fprintf(stderr, "client: %s\n", ringbus_errmsg(NULL));
        return 1;
    }
    int r = ringbus_target(bus, "/Demo/cn/pc/w1/g1/Capitals", NULL, &capitals);
    if (r == 0) {
        r = wait_for(bus, &client.ready, 1);
    }
    for (int i = 0; r >= 0 && i < 4; i++) {
        r = ringbus_request(bus, &capitals, 0, texts[i], strlen(texts[i]), 0, 2000, on_reply,
                            &client);
        if (r > 0) {
            r = wait_for(bus, &client.ended, i + 1);
        }
    }
    if (r < 0) {
        fprintf(stderr, "client: %s\n", ringbus_strerror(r));
    }
    ringbus_close(bus, 1000);
    return r < 0 ? 1 : 0;
}
