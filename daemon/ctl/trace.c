/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/ctl/trace.h"

#include "bus/record_follow.h"
#include "daemon/ctl/json.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

/* What is told of the reply's last step may come behind the reply itself; much later is never. */
#define LAST_NS UINT64_C(2000000000)

static const char *what_name(const struct rbi_wire_hop *hop)
{
    static const char *const names[] = {"?", "taken", "forwarded", "put"};
    return hop->what < RBI_ARRAY_SIZE(names) ? names[hop->what] : "?";
}

int rbi_ctl_trace_init(struct rbi_ctl_trace *trace,
                       const struct rbi_ctl_args *args,
                       struct ringbus_message_options *options)
{
    struct rbi_wire_follow body = {.trace = {.length = sizeof options->trace_id}};
    union rbi_wire_body answer;
    unsigned type = 0;
    memset(trace, 0, sizeof *trace);
    if (getrandom(options->trace_id, sizeof options->trace_id, 0) !=
        (ssize_t)sizeof options->trace_id) {
        return rbi_ctl_fail(args, RBI_CTL_FAILED, "no random numbers");
    }
    memcpy(body.trace.bytes, options->trace_id, sizeof options->trace_id);
    options->follow = 1;
    int r = rbi_ctl_control_init(&trace->control, args);
    if (r != RBI_CTL_OK) {
        return r;
    }
    r = rbi_ctl_control_ask(&trace->control, RBI_WIRE_FOLLOW, &body, NULL, NULL, &type, &answer);
    if (r == RBI_CTL_OK && type == RBI_WIRE_ERROR) {
        r = rbi_ctl_fail_bus(args, answer.error.code, "cannot follow", answer.error.text.bytes);
    }
    if (r != RBI_CTL_OK) {
        rbi_ctl_control_deinit(&trace->control);
    }
    trace->sent_ns = rbi_ctl_now_ns();
    return r;
}

void rbi_ctl_trace_deinit(struct rbi_ctl_trace *trace)
{
    rbi_ctl_control_deinit(&trace->control);
}

static double us(uint64_t ns)
{
    return (double)ns / 1e3;
}

static void print_json(const struct rbi_ctl_trace *trace, const struct rbi_wire_hop *hop)
{
    struct rbi_ctl_json json;
    rbi_ctl_json_begin(&json, stdout);
    rbi_ctl_json_text(&json, "message", hop->reply != 0 ? "reply" : "request");
    rbi_ctl_json_text(&json, "host", hop->host.bytes);
    rbi_ctl_json_text(&json, "what", what_name(hop));
    rbi_ctl_json_text(&json, "next", hop->next.bytes);
    rbi_ctl_json_real(&json, "age_us", us(hop->age_ns));
    rbi_ctl_json_real(&json, "heard_us",
                      us(hop->heard_ns > trace->sent_ns ? hop->heard_ns - trace->sent_ns : 0));
    rbi_ctl_json_end(&json);
}

static void print_text(const struct rbi_ctl_trace *trace, const struct rbi_wire_hop *hop)
{
    char what[128];
    switch (hop->what) {
    case RBI_HOP_TAKEN:
        (void)snprintf(what, sizeof what, "taken from its sender's lane, goes to %.63s",
                       hop->next.bytes);
        break;
    case RBI_HOP_FORWARD:
        (void)snprintf(what, sizeof what, "handed on to %.63s", hop->next.bytes);
        break;
    default:
        (void)snprintf(what, sizeof what, "put into its receiver's lane");
        break;
    }
    (void)fprintf(stderr, "%10.1f us  %-7s  %-16s  age %10.1f us  %s\n",
                  us(hop->heard_ns > trace->sent_ns ? hop->heard_ns - trace->sent_ns : 0),
                  hop->reply != 0 ? "reply" : "request", hop->host.bytes, us(hop->age_ns), what);
}

static int on_row(void *context, unsigned type, const union rbi_wire_body *body, int fd)
{
    bool *remote = context;
    (void)fd;
    *remote = *remote || (type == RBI_WIRE_ROW_ENDPOINT && body->row_endpoint.host.length != 0);
    return RBI_CTL_OK;
}

/* Whether an instance is on another host, over a connection of its own: hops come on the other. */
static bool is_remote(const struct rbi_ctl_args *args, const char *path)
{
    struct rbi_ctl_control control;
    bool remote = false;
    if (path[0] == '\0' || rbi_ctl_control_init(&control, args) != RBI_CTL_OK) {
        return false;
    }
    const int r = rbi_ctl_control_query(&control, RBI_QUERY_ENDPOINTS, path, on_row, &remote);
    rbi_ctl_control_deinit(&control);
    return r == RBI_CTL_OK && remote;
}

static void say_none(const struct rbi_ctl_trace *trace, bool remote)
{
    if (trace->control.args->json) {
        struct rbi_ctl_json json;
        rbi_ctl_json_begin(&json, stdout);
        rbi_ctl_json_bool(&json, "left_host", remote);
        rbi_ctl_json_end(&json);
    } else {
        (void)fputs(remote ? "no bridge has told of the message\n" : "the message left no host\n",
                    stderr);
    }
}

void rbi_ctl_trace_print(struct rbi_ctl_trace *trace, const char *to, bool answered)
{
    union rbi_wire_body body;
    bool seen = false;
    bool ended = false;
    const bool remote = is_remote(trace->control.args, to);
    const uint64_t until_ns = rbi_ctl_now_ns() + (remote && answered ? LAST_NS : 0);
    while (!ended &&
           rbi_ctl_control_next(&trace->control, RBI_WIRE_HOP, until_ns, &body) == RBI_CTL_OK) {
        if (trace->control.args->json) {
            print_json(trace, &body.hop);
        } else {
            print_text(trace, &body.hop);
        }
        seen = true;
        ended = body.hop.reply != 0 && body.hop.what == RBI_HOP_PUT;
    }
    if (!seen) {
        say_none(trace, remote);
    }
}
