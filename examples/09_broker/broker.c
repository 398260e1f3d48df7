/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broker in a page: it stands for the cluster Mint under the name Bank, and has a rule of its own
 * between the two: nobody is paid out more than three digits.
 */
#include <ringbus/ringbus.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define LEAVE_MS 5000

static struct ringbus_addr mint;
static struct ringbus_addr self;

/* A request that is under way beyond us. */
struct call {
    struct ringbus_reply_to to;
};

static volatile sig_atomic_t stopping;

static void on_signal(int number)
{
    (void)number;
    stopping = 1;
}

/* It ends for its caller as it has ended for us. */
static void on_reply(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    struct call *call = context;
    const struct ringbus_message *message = result->message;
    const struct ringbus_ending ending = {.struct_size = sizeof ending,
                                          .outcome = result->outcome,
                                          .error = result->error,
                                          .retry_after_ms = result->retry_after_ms,
                                          .parts = message != NULL ? message->parts : NULL,
                                          .part_count = message != NULL ? message->part_count : 0};
    /* A caller whose lane is full does not read: ringbus-broker keeps its answer, we do not. */
    if (ringbus_reply_as(bus, &call->to, &ending) < 0) {
        fprintf(stderr, "broker: %s\n", ringbus_errmsg(bus));
    }
    free(call);
}

static void on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    (void)user;
    if (message->kind != RINGBUS_KIND_REQUEST) {
        (void)ringbus_refuse(bus, &message->from, RINGBUS_E_DENIED, 0);
        return;
    }
    if (message->size > 3) {
        (void)ringbus_reply_error(bus, &message->reply_to, "not without a signature");
        return;
    }
    struct call *call = malloc(sizeof *call);
    if (call == NULL) {
        (void)ringbus_reply_refused(bus, &message->reply_to, RINGBUS_E_SHED, 0);
        return;
    }
    call->to = message->reply_to;
    const struct ringbus_forwarding how = {.struct_size = sizeof how,
                                           .to = mint,
                                           .via = self.cluster,
                                           .timeout_ms = 2000,
                                           .on_reply = on_reply,
                                           .context = call};
    const int r = ringbus_forward(bus, message, bus, &how);
    if (r < 0) {
        const struct ringbus_ending ending = {
            .struct_size = sizeof ending, .outcome = RINGBUS_NOT_SENT, .error = r};
        (void)ringbus_reply_as(bus, &message->reply_to, &ending);
        free(call);
    }
}

int main(void)
{
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    struct ringbus *bus;
    options.path = "/Demo/cn/pc/w1/g1/Bank/1";
    options.broker = 1;
    options.on_message = on_message;
    (void)signal(SIGTERM, on_signal);
    if (ringbus_open(&options, &bus) != 0) {
        fprintf(stderr, "broker: %s\n", ringbus_errmsg(NULL));
        return 1;
    }
    int r = ringbus_self(bus, &self);
    r = r == 0 ? ringbus_target(bus, "/Demo/cn/pc/w1/g1/Mint", NULL, &mint) : r;
    while (r >= 0 && !stopping) {
        r = ringbus_poll(bus, 100);
        r = r == 0 ? ringbus_wait(bus, 100) : r;
    }
    if (r < 0) {
        fprintf(stderr, "broker: %s\n", ringbus_errmsg(bus));
    }
    const int left = ringbus_close(bus, LEAVE_MS);
    return r < 0 || left < 0 ? 1 : 0;
}
