/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service CLUSTER/INSTANCE RELEASE [NEXT]: answers each request with the name of its release. One
 * that has a NEXT, a cluster behind it, asks that first and answers with both names.
 *
 * It says nothing of tags: the request that it makes inherits the tag of the one at hand, and it
 * is about the same key.
 */
#include <ringbus/ringbus.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define PLACE "/Demo/cn/pc/w1/g1/"

static struct ringbus *bus;
static volatile sig_atomic_t stop;
static const char *release;
static int has_next;
static struct ringbus_addr next;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
    ringbus_wake(bus);
}

static void answer(const struct ringbus_reply_to *to, const char *text, int size)
{
    const int r = ringbus_reply(bus, to, text, (size_t)size, 0);
    if (r < 0) {
        fprintf(stderr, "%s: no answer: %s\n", release, ringbus_strerror(r));
    }
}

static void fail(const struct ringbus_reply_to *to, int error)
{
    const int r = ringbus_reply_error(bus, to, ringbus_strerror(error));
    if (r < 0) {
        fprintf(stderr, "%s: no answer: %s\n", release, ringbus_strerror(r));
    }
}

static void on_next(struct ringbus *from, const struct ringbus_result *result, void *context)
{
    struct ringbus_reply_to *to = context;
    char text[64];
    (void)from;
    if (result->outcome == RINGBUS_REPLIED) {
        const int size = snprintf(text, sizeof text, "%s, %.*s", release,
                                  (int)result->message->size, (const char *)result->message->data);
        answer(to, text, size);
    } else {
        fail(to, result->error);
    }
    free(to);
}

static void on_message(struct ringbus *from, const struct ringbus_message *message, void *user)
{
    char text[32];
    (void)user;
    if (message->kind != RINGBUS_KIND_REQUEST) {
        return;
    }
    if (!has_next) {
        answer(&message->reply_to, text, snprintf(text, sizeof text, "%s", release));
        return;
    }
    const struct ringbus_part part = {.data = "", .size = 0};
    const int keyed = (message->flags & RINGBUS_MESSAGE_KEY) != 0;
    const struct ringbus_message_options options = {.struct_size = sizeof options,
                                                    .flags = keyed ? RINGBUS_KEY : 0,
                                                    .key = message->key,
                                                    .timeout_ms = 2000};
    struct ringbus_reply_to *to = malloc(sizeof *to); /* stays until the answer is there */
    if (to == NULL) {
        fail(&message->reply_to, RINGBUS_E_NO_MEMORY);
        return;
    }
    *to = message->reply_to;
    const int r = ringbus_request_with(from, &next, &part, 1, &options, on_next, to);
    if (r < 0) {
        fail(to, r);
        free(to);
    }
}

int main(int argc, char **argv)
{
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    char path[128];
    if (argc < 3) {
        fprintf(stderr, "usage: service CLUSTER/INSTANCE RELEASE [NEXT]\n");
        return 1;
    }
    release = argv[2];
    (void)snprintf(path, sizeof path, PLACE "%s", argv[1]);
    options.path = path;
    options.on_message = on_message;
    if (ringbus_open(&options, &bus) != 0) {
        fprintf(stderr, "service: %s\n", ringbus_errmsg(NULL));
        return 1;
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    if (argc > 3) {
        (void)snprintf(path, sizeof path, PLACE "%s", argv[3]);
        has_next = ringbus_target(bus, path, NULL, &next) == 0;
        if (!has_next) {
            fprintf(stderr, "service: %s\n", ringbus_errmsg(bus));
            stop = 1;
        }
    }
    while (!stop && ringbus_wait(bus, -1) >= 0 && ringbus_poll(bus, 100) >= 0) {
    }
    return ringbus_close(bus, 1000) == 0 ? 0 : 1;
}
