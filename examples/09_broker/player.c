/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the bank three times: the first when it is there, the second for too much. */
#include <ringbus/ringbus.h>
#include <stdio.h>
#include <string.h>

static int ended;
static int error;

static void on_reply(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    const struct ringbus_message *message = result->message;
    (void)bus;
    (void)context;
    ended = 1;
    error = result->error;
    if (result->outcome == RINGBUS_NOT_SENT) {
        return; /* the bank is there, and has not reached the mint yet */
    }
    printf("%s: %.*s\n", result->outcome == RINGBUS_REPLIED ? "replied" : "failed",
           message != NULL ? (int)message->size : 0,
           message != NULL ? (const char *)message->data : "");
}

/* @return 0, or an error */
static int ask(struct ringbus *bus, const struct ringbus_addr *bank, const char *coins)
{
    int r = ringbus_request(bus, bank, 0, coins, strlen(coins), 0, 2000, on_reply, NULL);
    ended = 0;
    while (r >= 0 && !ended) {
        r = ringbus_wait(bus, 5000);
        r = r < 0 ? r : ringbus_poll(bus, 100);
    }
    return r < 0 ? r : 0;
}

int main(void)
{
    static const char *const coins[] = {"7", "1000000", "999"};
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    struct ringbus_addr bank;
    struct ringbus *bus;
    options.path = "/Demo/cn/pc/w1/g1/Player/4";
    if (ringbus_open(&options, &bus) != 0) {
        fprintf(stderr, "player: %s\n", ringbus_errmsg(NULL));
        return 1;
    }
    int r = ringbus_target(bus, "/Demo/cn/pc/w1/g1/Bank", NULL, &bank);
    r = r == 0 ? ringbus_wait_ready(bus, "/Demo/cn/pc/w1/g1/Bank", 5000) : r;
    for (int i = 0; r == 0 && i < 3; i++) {
        do {
            r = ask(bus, &bank, coins[i]);
        } while (r == 0 && ringbus_error_kind(error) == RINGBUS_ERROR_RETRY);
    }
    if (r < 0) {
        fprintf(stderr, "player: %s\n", ringbus_errmsg(bus));
    }
    (void)ringbus_close(bus, 1000);
    return r < 0 ? 1 : 0;
}
