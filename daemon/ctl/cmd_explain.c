/* SPDX-License-Identifier: Apache-2.0 */
/* explain: where a message of a caller to a cluster may go, and what takes the others out. */
#include "daemon/ctl/json.h"
#include "daemon/ctl/session.h"

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

static void on_row(void *user, const struct ringbus_explain_row *row)
{
    const bool *json = user;
    if (*json) {
        json_row(row);
    }
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

static int explain(const struct rbi_ctl_args *args, struct ringbus *bus)
{
    const char *caller = args->operands[0];
    bool json = args->json;
    struct ringbus_message_options message = {
        .struct_size = sizeof message, .tag = args->tag, .method = args->method};
    const struct ringbus_explain_options options = {
        .struct_size = sizeof options,
        .caller = strcmp(caller, NO_CALLER) == 0 ? "" : caller,
        .set = args->set,
        .idc = args->idc,
        .message = &message,
    };
    if (args->key != NULL) {
        message.flags = RINGBUS_KEY;
        message.key = ringbus_key(args->key, strlen(args->key));
    }
    memcpy(message.labels, args->labels, sizeof message.labels);
    const int in = ringbus_explain(bus, args->operands[1], &options, on_row, &json);
    const int r = in >= 0 && !args->json ? print_text(bus, args->operands[1], &options) : in;
    if (r < 0) {
        return rbi_ctl_fail_bus(args, r, "cannot explain", ringbus_errmsg(bus));
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
