/* SPDX-License-Identifier: Apache-2.0 */
/* Asks more than it may, whom it should not, and too late; and shows what becomes of it. */
#include <ringbus/ringbus.h>
#include <stdio.h>
#include <string.h>

enum { ORDER = 1, PRICES = 2, DELIVERY = 3, STOCK_TAKING = 4, QUESTION = 5 };

struct customer {
    int ready;
    struct ringbus_addr open; /* the instance that is called "open" */
    int asked;
    int ended;
    int replied;
    int limited;
    int mocked;
    int late;
    char text[64]; /* of the last reply of an instance */
};

static void on_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    struct customer *customer = user;
    (void)bus;
    if (event->type == RINGBUS_EVENT_READY) {
        customer->ready++;
        if (strstr(event->path, "/open") != NULL) {
            customer->open = event->addr;
        }
    }
}

static void on_reply(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    struct customer *customer = context;
    const struct ringbus_message *message = result->message;
    (void)bus;
    customer->ended++;
    if (result->outcome != RINGBUS_REPLIED) {
        customer->limited += result->error == RINGBUS_E_LIMITED;
        customer->late += result->error == RINGBUS_E_TIMEOUT;
    } else if ((message->flags & RINGBUS_MESSAGE_MOCKED) != 0) {
        customer->mocked++;
        printf("prices: %.*s, nobody was asked\n", (int)message->size, (const char *)message->data);
    } else {
        customer->replied++;
        (void)snprintf(customer->text, sizeof customer->text, "%.*s", (int)message->size,
                       (const char *)message->data);
    }
}

/* Waits until *count reaches the value. @return 0, or an error */
static int wait_for(struct ringbus *bus, const int *count, int value)
{
    while (*count < value) {
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

static int ask(struct ringbus *bus,
               struct customer *customer,
               const struct ringbus_addr *to,
               unsigned method,
               unsigned timeout_ms)
{
    const struct ringbus_part part = {.data = "", .size = 0};
    const struct ringbus_message_options options = {
        .struct_size = sizeof options, .method = method, .timeout_ms = timeout_ms};
    const int r = ringbus_request_with(bus, to, &part, 1, &options, on_reply, customer);
    if (r == RINGBUS_E_LIMITED) {
        /* The sentence says by which limit, ringbus_retry_after_us() when to try again. */
        customer->limited++;
        return ringbus_retry_after_us(bus) > 0 ? 0 : r;
    }
    customer->asked += r > 0;
    return r < 0 ? r : 0;
}

static int ask_all(struct ringbus *bus, struct customer *customer, const struct ringbus_addr *shop)
{
    int r = 0;
    for (int i = 0; r == 0 && i < 5; i++) {
        r = ask(bus, customer, shop, ORDER, 2000);
    }
    r = r == 0 ? wait_for(bus, &customer->ended, customer->asked) : r;
    printf("orders: %d taken, %d over the limit\n", customer->replied, customer->limited);
    for (int i = 0; r == 0 && i < 2; i++) {
        r = ask(bus, customer, shop, PRICES, 2000);
    }
    r = r == 0 ? wait_for(bus, &customer->ended, customer->asked) : r;
    printf("prices: %s\n", customer->text);
    r = r == 0 ? ask(bus, customer, shop, DELIVERY, 2000) : r;
    r = r == 0 ? wait_for(bus, &customer->ended, customer->asked) : r;
    printf("delivery: %s, whoever was asked first\n", customer->text);
    /* A question behind the stock-taking: its time is over before anybody looks at it. */
    r = r == 0 ? ask(bus, customer, &customer->open, STOCK_TAKING, 2000) : r;
    r = r == 0 ? ask(bus, customer, &customer->open, QUESTION, 50) : r;
    r = r == 0 ? wait_for(bus, &customer->ended, customer->asked) : r;
    printf("questions in vain: %d\n", customer->late);
    return r;
}

int main(void)
{
    static struct customer customer;
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    struct ringbus_addr shop;
    struct ringbus *bus;
    options.on_event = on_event;
    options.user = &customer;
    if (ringbus_open(&options, &bus) != 0) {
        fprintf(stderr, "customer: %s\n", ringbus_errmsg(NULL));
        return 1;
    }
    int r = ringbus_target(bus, "/Demo/cn/pc/w1/g1/Shop", NULL, &shop);
    r = r == 0 ? wait_for(bus, &customer.ready, 2) : r;
    r = r == 0 ? ask_all(bus, &customer, &shop) : r;
    if (r < 0) {
        fprintf(stderr, "customer: %s\n", ringbus_strerror(r));
    }
    ringbus_close(bus, 1000);
    return r < 0 ? 1 : 0;
}
