/* SPDX-License-Identifier: Apache-2.0 */
/* call: standard input as a request; prints its reply. */
#include "daemon/ctl/json.h"
#include "daemon/ctl/out.h"
#include "daemon/ctl/session.h"
#include "daemon/ctl/trace.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALL_MAX    ((size_t)64 << 20)
#define WAIT_MAX_MS 60000U /* of struct ringbus_target_options */

struct call {
    struct rbi_ctl_session session;
    const struct rbi_ctl_args *args;
    bool ended;
    bool answered;
    int code;
    struct rbi_ctl_trace trace;
    char peer[RINGBUS_PATH_MAX + 1]; /* who has answered, or was to */
};

static const char *outcome_name(enum ringbus_outcome outcome)
{
    static const char *const names[] = {"replied", "failed", "unknown", "not sent"};
    return (size_t)outcome < RBI_ARRAY_SIZE(names) ? names[outcome] : "?";
}

static void print_json(struct ringbus *bus, const struct ringbus_result *result)
{
    struct rbi_ctl_json json;
    char peer[RINGBUS_PATH_MAX + 1] = "";
    (void)ringbus_format(bus, &result->peer, peer, sizeof peer);
    rbi_ctl_json_begin(&json, stdout);
    rbi_ctl_json_text(&json, "outcome", outcome_name(result->outcome));
    rbi_ctl_json_text(&json, "peer", peer);
    rbi_ctl_json_real(&json, "elapsed_us", (double)result->elapsed_ns / 1e3);
    if (result->error != 0) {
        rbi_ctl_json_text(&json, "error", ringbus_error_name(result->error));
    }
    if (result->message != NULL) {
        rbi_ctl_json_u64(&json, "size", result->message->size);
        rbi_ctl_json_data(&json, result->message->data, result->message->size);
    }
    rbi_ctl_json_end(&json);
}

static int print_text(const struct call *call, const struct ringbus_message *message)
{
    struct rbi_ctl_out out;
    if (rbi_ctl_out_init(&out, STDOUT_FILENO) != 0) {
        return rbi_ctl_fail(call->args, RBI_CTL_FAILED, "not enough memory");
    }
    rbi_ctl_out_put(&out, message->data, message->size);
    rbi_ctl_out_flush(&out);
    int error = out.error;
    rbi_ctl_out_deinit(&out);
    if (error != 0) {
        return rbi_ctl_fail(call->args, RBI_CTL_FAILED, "standard output: %s",
                            strerror(error)); /* NOLINT(concurrency-mt-unsafe) */
    }
    return RBI_CTL_OK;
}

/* The handler's own words, cut: they come from somebody else. */
static int failed(const struct call *call, const struct ringbus_result *result)
{
    const struct ringbus_message *message = result->message;
    int size = message != NULL && message->size < 512 ? (int)message->size
               : message != NULL                      ? 512
                                                      : 0;
    return rbi_ctl_fail(call->args, RBI_CTL_FAILED, "%s: %.*s%s(%s)", call->session.to_path, size,
                        size > 0 ? (const char *)message->data : "", size > 0 ? " " : "",
                        ringbus_error_name(result->error));
}

static void on_reply(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    struct call *call = context;
    call->ended = true;
    call->answered = result->outcome == RINGBUS_REPLIED || result->outcome == RINGBUS_FAILED;
    (void)ringbus_format(bus, &result->peer, call->peer, sizeof call->peer);
    if (call->args->json) {
        print_json(bus, result);
        call->code =
            result->outcome == RINGBUS_REPLIED ? RBI_CTL_OK : rbi_ctl_exit_of(result->error);
        if (result->outcome != RINGBUS_REPLIED && call->code == RBI_CTL_OK) {
            call->code = RBI_CTL_FAILED;
        }
    } else if (result->outcome == RINGBUS_REPLIED) {
        call->code = print_text(call, result->message);
    } else if (result->outcome == RINGBUS_FAILED) {
        call->code = failed(call, result);
    } else {
        call->code = rbi_ctl_fail_bus(call->args, result->error, call->session.to_path,
                                      result->outcome == RINGBUS_NOT_SENT
                                          ? "not sent"
                                          : "no answer; whether it was handled is not known");
    }
}

static int send_and_wait(struct call *call,
                         const struct ringbus_part *part,
                         const struct ringbus_message_options *options)
{
    int r = ringbus_request_with(call->session.bus, &call->session.to, part, 1, options, on_reply,
                                 call);
    if (r < 0) {
        return rbi_ctl_fail_bus(call->args, r, "not sent", ringbus_errmsg(call->session.bus));
    }
    while (!call->ended && !rbi_ctl_stopping()) {
        r = rbi_ctl_session_step(&call->session, 1000);
        if (r != RBI_CTL_OK) {
            return r;
        }
    }
    return call->ended ? call->code : rbi_ctl_fail(call->args, RBI_CTL_FAILED, "interrupted");
}

/* The same, and says where it came by. */
static int send_and_follow(struct call *call,
                           const struct ringbus_part *part,
                           struct ringbus_message_options *options)
{
    int r = rbi_ctl_trace_init(&call->trace, call->args, options);
    if (r != RBI_CTL_OK) {
        return r;
    }
    r = send_and_wait(call, part, options);
    (void)fflush(stdout);
    rbi_ctl_trace_print(&call->trace, call->peer, call->answered);
    rbi_ctl_trace_deinit(&call->trace);
    return r;
}

static int request(struct call *call, const unsigned char *data, size_t size)
{
    const struct ringbus_part part = {.data = data, .size = size};
    struct ringbus_message_options options;
    rbi_ctl_message_of(call->args, &options);
    options.timeout_ms = call->args->timeout_ms;
    /* One instance is linked then, which need not be the one that the tag or the key says. */
    call->session.wait_ms =
        call->args->timeout_ms < WAIT_MAX_MS ? call->args->timeout_ms : WAIT_MAX_MS;
    int r = rbi_ctl_session_target(&call->session, call->args->operands[0]);
    if (r != RBI_CTL_OK) {
        return r;
    }
    return (call->args->given & RBI_CTL_TRACE) != 0 ? send_and_follow(call, &part, &options)
                                                    : send_and_wait(call, &part, &options);
}

int rbi_ctl_call(const struct rbi_ctl_args *args)
{
    struct call call = {.args = args};
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    unsigned char *data = NULL;
    size_t size = 0;
    int r = rbi_ctl_input_read(args, CALL_MAX, &data, &size);
    if (r != RBI_CTL_OK) {
        return r;
    }
    rbi_ctl_pool_for(&options, size);
    r = rbi_ctl_session_open(&call.session, args, &options);
    if (r == RBI_CTL_OK) {
        r = request(&call, data, size);
        call.ended = true;
        (void)rbi_ctl_session_close(&call.session, 0);
    }
    free(data);
    return r;
}
