/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recv: is an instance, prints what comes. Output is gathered and written when there is
 * much of it or when nothing more is waiting.
 */
#include "daemon/ctl/json.h"
#include "daemon/ctl/out.h"
#include "daemon/ctl/session.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define RECV_DRAIN_MS UINT32_C(5000)

struct receiver {
    struct rbi_ctl_session session;
    const struct rbi_ctl_args *args;
    struct rbi_ctl_out out;
    uint64_t messages;
    bool lines;
    bool echo;
};

static const char *kind_name(enum ringbus_kind kind)
{
    return kind == RINGBUS_KIND_REQUEST ? "request" : "oneway";
}

static void print_json(struct ringbus *bus, const struct ringbus_message *message)
{
    struct rbi_ctl_json json;
    struct ringbus_origin origin;
    rbi_ctl_json_begin(&json, stdout);
    rbi_ctl_json_text(&json, "from", message->from_path);
    if (ringbus_origin(bus, message, &origin) == 1) {
        rbi_ctl_json_text(&json, "origin", origin.path);
        rbi_ctl_json_u64(&json, "hops", origin.hops);
    }
    rbi_ctl_json_text(&json, "kind", kind_name(message->kind));
    if ((message->flags & RINGBUS_MESSAGE_KEY) != 0) {
        rbi_ctl_json_hex(&json, "key", message->key);
    }
    rbi_ctl_json_bool(&json, "broadcast", (message->flags & RINGBUS_MESSAGE_BROADCAST) != 0);
    rbi_ctl_json_u64(&json, "size", message->size);
    rbi_ctl_json_data(&json, message->data, message->size);
    rbi_ctl_json_end(&json);
}

static void
answer(struct ringbus *bus, struct receiver *receiver, const struct ringbus_message *message)
{
    const void *data = receiver->echo ? message->data : NULL;
    size_t size = receiver->echo ? message->size : 0;
    int r = ringbus_reply(bus, &message->reply_to, data, size, 0);
    if (r < 0 && r != RINGBUS_E_PEER_GONE) {
        /* Too large for our pool, or its requester reads no answers: it is told why. */
        (void)ringbus_reply_error(bus, &message->reply_to, ringbus_strerror(r));
    }
}

static void on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    struct receiver *receiver = RBI_CONTAINER_OF(user, struct receiver, session);
    receiver->messages++;
    if (receiver->args->json) {
        print_json(bus, message);
    } else {
        rbi_ctl_out_put(&receiver->out, message->data, message->size);
        if (receiver->lines) {
            rbi_ctl_out_put(&receiver->out, "\n", 1);
        }
    }
    if (message->kind == RINGBUS_KIND_REQUEST) {
        answer(bus, receiver, message);
    }
}

/* @return errno of what could not be written, or 0 */
static int flush(struct receiver *receiver)
{
    if (receiver->args->json) {
        return fflush(stdout) != 0 ? errno : 0;
    }
    rbi_ctl_out_flush(&receiver->out);
    return receiver->out.error;
}

static bool done(const struct receiver *receiver)
{
    return (receiver->args->given & RBI_CTL_COUNT) != 0 &&
           receiver->messages >= receiver->args->count;
}

/* No more than is wanted is taken: the rest stays with its senders. */
static int batch(const struct receiver *receiver)
{
    if ((receiver->args->given & RBI_CTL_COUNT) == 0) {
        return 1000;
    }
    return (int)rbi_min_u64(receiver->args->count - receiver->messages, 1000);
}

static int receive(struct receiver *receiver)
{
    struct ringbus *bus = receiver->session.bus;
    int error = 0;
    while (error == 0 && !rbi_ctl_stopping() && !done(receiver)) {
        int r = ringbus_poll(bus, batch(receiver));
        if (r == 0) {
            error = flush(receiver);
            r = error == 0 ? ringbus_wait(bus, 1000) : 0;
        }
        if (r < 0) {
            return rbi_ctl_fail_bus(receiver->args, r, "the bus failed", ringbus_errmsg(bus));
        }
        error = error != 0 ? error : receiver->out.error;
    }
    return RBI_CTL_OK;
}

/* The instance of its own when only the cluster was named. */
static int path_complete(const struct rbi_ctl_args *args, char *path, size_t size)
{
    struct ringbus_addr addr;
    int r = ringbus_resolve(args->operands[0], &addr);
    if (r < 0) {
        return rbi_ctl_fail_bus(args, r, args->operands[0], NULL);
    }
    int length = addr.instance == RINGBUS_ANY
                     ? snprintf(path, size, "%s/%d", args->operands[0], (int)getpid())
                     : snprintf(path, size, "%s", args->operands[0]);
    if (length > (int)RINGBUS_PATH_MAX) {
        return rbi_ctl_fail(args, RBI_CTL_USAGE, "%s: too long with an instance",
                            args->operands[0]);
    }
    return RBI_CTL_OK;
}

static int close_and_report(struct receiver *receiver, int code)
{
    /* What was sent before the end was announced is printed too, unless it was counted out. */
    bool drain = !done(receiver) && receiver->out.error == 0;
    (void)rbi_ctl_session_close(&receiver->session, drain ? RECV_DRAIN_MS : 0);
    int error = flush(receiver);
    if (error != 0) {
        return rbi_ctl_fail(receiver->args, RBI_CTL_FAILED, "standard output: %s",
                            strerror(error)); /* NOLINT(concurrency-mt-unsafe) */
    }
    return code;
}

int rbi_ctl_recv(const struct rbi_ctl_args *args)
{
    char path[RINGBUS_PATH_MAX + 64];
    struct receiver receiver = {.args = args,
                                .lines = (args->given & RBI_CTL_LINES) != 0,
                                .echo = (args->given & RBI_CTL_ECHO) != 0};
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    int r = path_complete(args, path, sizeof path);
    if (r != RBI_CTL_OK) {
        return r;
    }
    if (rbi_ctl_out_init(&receiver.out, STDOUT_FILENO) != 0) {
        return rbi_ctl_fail(args, RBI_CTL_FAILED, "not enough memory");
    }
    options.path = path;
    options.on_message = on_message;
    r = rbi_ctl_session_open(&receiver.session, args, &options);
    if (r == RBI_CTL_OK) {
        r = close_and_report(&receiver, receive(&receiver));
    }
    rbi_ctl_out_deinit(&receiver.out);
    return r;
}
