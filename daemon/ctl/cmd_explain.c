/* SPDX-License-Identifier: Apache-2.0 */
/* explain: where a message of a caller to a cluster may go, and what takes the others out. */
#include "bus/dry_run.h"
#include "daemon/ctl/control.h"
#include "daemon/ctl/explain_rights.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/session.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NO_CALLER "-"

static void json_row(const struct ringbus_explain_row *row)
{
    static const char *const kinds[] = {"", "target", "stage", "out", "would", "in", "owner"};
    struct rbi_ctl_json json;
    rbi_ctl_json_begin(&json, stdout);
    rbi_ctl_json_text(&json, "kind", kinds[row->kind]);
    switch (row->kind) {
    case RINGBUS_EXPLAIN_TARGET:
        rbi_ctl_json_text(&json, "path", row->path);
        rbi_ctl_json_u64(&json, "instances", row->before);
        rbi_ctl_json_u64(&json, "epoch", row->epoch);
        rbi_ctl_json_bool(&json, "panic", row->panic != 0);
        break;
    case RINGBUS_EXPLAIN_STAGE:
        rbi_ctl_json_text(&json, "stage", row->stage);
        rbi_ctl_json_text(&json, "mode", row->mode);
        rbi_ctl_json_u64(&json, "before", row->before);
        rbi_ctl_json_u64(&json, "after", row->after);
        rbi_ctl_json_u64(&json, "would_out", row->would_out);
        rbi_ctl_json_bool(&json, "skipped", row->skipped != 0);
        rbi_ctl_json_bool(&json, "fell_back", row->fell_back != 0);
        rbi_ctl_json_bool(&json, "panic", row->panic != 0);
        break;
    case RINGBUS_EXPLAIN_OUT:
    case RINGBUS_EXPLAIN_WOULD:
        rbi_ctl_json_text(&json, "stage", row->stage);
        rbi_ctl_json_text(&json, "path", row->path);
        rbi_ctl_json_text(&json, "reason", row->reason);
        rbi_ctl_json_text(&json, "rule", row->rule);
        break;
    case RINGBUS_EXPLAIN_IN:
        rbi_ctl_json_text(&json, "path", row->path);
        rbi_ctl_json_u64(&json, "weight", row->weight);
        rbi_ctl_json_u64(&json, "level", row->level);
        rbi_ctl_json_text(&json, "reason", row->reason);
        break;
    case RINGBUS_EXPLAIN_OWNER:
        rbi_ctl_json_text(&json, "path", row->path);
        rbi_ctl_json_text(&json, "reason", row->reason);
        break;
    }
    rbi_ctl_json_end(&json);
}

/* The own business, and those that it may import from: as in bus/policy.h. */
#define TARGETS_MAX 9U

struct targets {
    unsigned count;
    char paths[TARGETS_MAX][RINGBUS_PATH_MAX + 1];
};

static void on_target(void *user, const struct ringbus_explain_row *row)
{
    struct targets *targets = user;
    if (row->kind == RINGBUS_EXPLAIN_TARGET && targets->count < TARGETS_MAX) {
        snprintf(targets->paths[targets->count++], RINGBUS_PATH_MAX + 1, "%s", row->path);
    }
}

static void on_row(void *user, const struct ringbus_explain_row *row)
{
    const bool *json = user;
    if (*json) {
        json_row(row);
    }
}

static void print_denied(const struct rbi_ctl_args *args, const struct rbi_ctl_denied *denied)
{
    for (size_t i = 0; i < denied->count; i++) {
        const struct rbi_ctl_denied_why *why = &denied->whys[i];
        if (args->json) {
            struct rbi_ctl_json json;
            rbi_ctl_json_begin(&json, stdout);
            rbi_ctl_json_text(&json, "kind", "denied");
            rbi_ctl_json_text(&json, "path", why->path);
            rbi_ctl_json_text(&json, "reason", why->why);
            rbi_ctl_json_end(&json);
        } else {
            printf("denied   %s: %s\n", why->path, why->why);
        }
    }
}

/* What dry runs would have done so far, as callers have counted it. */
static int on_dry_run(void *context, unsigned type, const union rbi_wire_body *body, int fd)
{
    const struct rbi_ctl_args *args = *(const struct rbi_ctl_args *const *)context;
    const struct rbi_wire_row_dry_run *row = &body->row_dry_run;
    const char *kind = rbi_dry_kind_name(row->kind);
    (void)fd;
    if (type != RBI_WIRE_ROW_DRY_RUN) {
        return RBI_CTL_OK;
    }
    if (args->json) {
        struct rbi_ctl_json json;
        rbi_ctl_json_begin(&json, stdout);
        rbi_ctl_json_text(&json, "kind", "dry_run");
        rbi_ctl_json_text(&json, "of", kind);
        rbi_ctl_json_text(&json, "rule", row->rule.bytes);
        rbi_ctl_json_u64(&json, "messages", row->count);
        rbi_ctl_json_end(&json);
    } else {
        printf("dry run  %s%s%s: %" PRIu64 " messages so far, of all callers\n", kind,
               row->rule.length > 0 ? " " : "", row->rule.bytes, row->count);
    }
    return RBI_CTL_OK;
}

static int print_dry_runs(const struct rbi_ctl_args *args)
{
    struct rbi_ctl_control control;
    int r = rbi_ctl_control_init(&control, args);
    if (r == RBI_CTL_OK) {
        r = rbi_ctl_control_query(&control, RBI_QUERY_DRY_RUNS, args->operands[1], on_dry_run,
                                  &args);
        rbi_ctl_control_deinit(&control);
    }
    return r;
}

static int
print_text(struct ringbus *bus, const char *target, const struct ringbus_explain_options *options)
{
    int length = ringbus_explain_text(bus, target, options, NULL, 0);
    char *text = length >= 0 ? malloc((size_t)length + 1) : NULL;
    if (text == NULL) {
        return length < 0 ? length : RINGBUS_E_NO_MEMORY;
    }
    length = ringbus_explain_text(bus, target, options, text, (size_t)length + 1);
    if (length >= 0) {
        fputs(text, stdout);
    }
    free(text);
    return length < 0 ? length : 0;
}

/* What is asked, but for rights. */
static void take_args(const struct rbi_ctl_args *args,
                      struct ringbus_message_options *message,
                      struct ringbus_explain_options *options)
{
    const char *caller = args->operands[0];
    rbi_ctl_message_of(args, message);
    *options = (struct ringbus_explain_options){
        .struct_size = sizeof *options,
        .caller = strcmp(caller, NO_CALLER) == 0 ? "" : caller,
        .set = args->set,
        .idc = args->idc,
        .message = message,
    };
}

/* Whom the caller may not reach. */
static int read_rights(const struct rbi_ctl_args *args,
                       struct ringbus *bus,
                       struct rbi_ctl_denied *denied,
                       struct ringbus_explain_options *options)
{
    struct targets targets = {.count = 0};
    const int in = ringbus_explain(bus, args->operands[1], options, on_target, &targets);
    if (in < 0) {
        return rbi_ctl_fail_bus(args, in, "cannot explain", ringbus_errmsg(bus));
    }
    if (options->caller[0] == '\0') {
        return RBI_CTL_OK;
    }
    const int r = rbi_ctl_denied_read(denied, args, bus, options->caller, options->message->method,
                                      targets.paths, targets.count);
    options->denied = denied->addrs;
    options->denied_count = denied->count;
    return r;
}

/* What the daemon alone knows of a caller. Who may not know it goes on without. */
static int read_caller(const struct rbi_ctl_args *args,
                       struct ringbus *bus,
                       struct rbi_ctl_denied *denied,
                       struct rbi_ctl_caller *caller,
                       struct ringbus_explain_options *options)
{
    int r = read_rights(args, bus, denied, options);
    if (r == RBI_CTL_OK && options->caller[0] != '\0') {
        r = rbi_ctl_caller_read(caller, args, options->caller);
        options->subject = r == RBI_CTL_OK ? &caller->subject : NULL;
    }
    return r == RBI_CTL_DENIED ? RBI_CTL_OK : r;
}

static int explain(const struct rbi_ctl_args *args, struct ringbus *bus)
{
    bool json = args->json;
    struct ringbus_message_options message;
    struct ringbus_explain_options options;
    struct rbi_ctl_denied denied = {.count = 0};
    take_args(args, &message, &options);
    struct rbi_ctl_caller caller;
    int r = read_caller(args, bus, &denied, &caller, &options);
    if (r != RBI_CTL_OK) {
        rbi_ctl_denied_deinit(&denied);
        return r;
    }
    const int in = ringbus_explain(bus, args->operands[1], &options, on_row, &json);
    r = in >= 0 && !args->json ? print_text(bus, args->operands[1], &options) : in;
    print_denied(args, &denied);
    rbi_ctl_denied_deinit(&denied);
    if (r < 0) {
        return rbi_ctl_fail_bus(args, r, "cannot explain", ringbus_errmsg(bus));
    }
    r = print_dry_runs(args);
    if (r != RBI_CTL_OK) {
        return r;
    }
    return in > 0 ? RBI_CTL_OK
                  : rbi_ctl_fail(args, RBI_CTL_NOT_FOUND, "nobody could get such a message");
}

int rbi_ctl_explain(const struct rbi_ctl_args *args)
{
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    struct rbi_ctl_session session = {.args = args};
    int r = rbi_ctl_session_open(&session, args, &options);
    if (r != RBI_CTL_OK) {
        return r;
    }
    r = explain(args, session.bus);
    const int closed = rbi_ctl_session_close(&session, 0);
    return rbi_ctl_finish(args, r != RBI_CTL_OK ? r : closed);
}
