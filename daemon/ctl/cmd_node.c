/* SPDX-License-Identifier: Apache-2.0 */
/* create, set, rm: changes of the node tree. */
#include "daemon/ctl/control.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/node.h"
#include "daemon/ctl/session.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PROTOCOL_MIN 2U /* of a daemon that knows NODE */

int rbi_ctl_node_ask(struct rbi_ctl_control *control,
                     const struct rbi_wire_node *body,
                     unsigned expected,
                     union rbi_wire_body *answer)
{
    unsigned type = 0;
    if (control->protocol < PROTOCOL_MIN) {
        return rbi_ctl_fail(control->args, RBI_CTL_FAILED,
                            "the daemon is of an earlier version and has no nodes: start ringbusd "
                            "again, nothing is lost by it");
    }
    const int r = rbi_ctl_control_ask(control, RBI_WIRE_NODE, body, NULL, NULL, &type, answer);
    if (r == RBI_CTL_OK && type == RBI_WIRE_ERROR) {
        return rbi_ctl_fail_bus(control->args, answer->error.code, "the daemon refused",
                                answer->error.text.bytes);
    }
    if (r == RBI_CTL_OK && type != expected) {
        return rbi_ctl_fail(control->args, RBI_CTL_FAILED, "the daemon answered something else");
    }
    return r;
}

/* The operand, or standard input when it is "-". Complains itself. @return exit code */
static int value_take(const struct rbi_ctl_args *args, struct rbi_data *out)
{
    unsigned char *input = NULL;
    const char *text = args->operand_count > 1 ? args->operands[1] : "";
    const void *bytes = text;
    size_t size = strlen(text);
    if (strcmp(text, "-") == 0) {
        const int r = rbi_ctl_input_read(args, RBI_WIRE_DATA_MAX + 1, &input, &size);
        if (r != RBI_CTL_OK) {
            return r;
        }
        bytes = input;
    }
    int r = RBI_CTL_OK;
    if (size > RBI_WIRE_DATA_MAX) {
        r = rbi_ctl_fail(args, RBI_CTL_USAGE, "the value is larger than %u bytes",
                         RBI_WIRE_DATA_MAX);
    } else {
        out->length = (uint16_t)size;
        memcpy(out->bytes, bytes, size);
    }
    free(input);
    return r;
}

static void done(const struct rbi_ctl_args *args, const char *what, uint64_t revision)
{
    if (args->json) {
        struct rbi_ctl_json json;
        rbi_ctl_json_begin(&json, stdout);
        rbi_ctl_json_text(&json, "path", args->operands[0]);
        rbi_ctl_json_text(&json, "result", what);
        if (revision != 0) {
            rbi_ctl_json_u64(&json, "revision", revision);
        }
        rbi_ctl_json_end(&json);
    } else if (revision != 0) {
        printf("%s: %s, revision %" PRIu64 "\n", args->operands[0], what, revision);
    } else {
        printf("%s: %s\n", args->operands[0], what);
    }
}

static int change(const struct rbi_ctl_args *args, enum rbi_node_what what, const char *result)
{
    struct rbi_wire_node body = {.what = (uint32_t)what, .revision = args->revision};
    struct rbi_ctl_control control;
    union rbi_wire_body answer = {.ok = {.value = 0}};
    int r = rbi_ctl_node_path_check(args, args->operands[0]);
    r = r == RBI_CTL_OK && what != RBI_NODE_REMOVE ? value_take(args, &body.value) : r;
    r = r == RBI_CTL_OK ? rbi_ctl_control_init(&control, args) : r;
    if (r != RBI_CTL_OK) {
        return r;
    }
    rbi_text_set(&body.path, args->operands[0]);
    r = rbi_ctl_node_ask(&control, &body, RBI_WIRE_OK, &answer);
    if (r == RBI_CTL_OK) {
        done(args, result, answer.ok.value);
    }
    rbi_ctl_control_deinit(&control);
    return r;
}

int rbi_ctl_create(const struct rbi_ctl_args *args)
{
    return change(args, RBI_NODE_CREATE, "created");
}

int rbi_ctl_set(const struct rbi_ctl_args *args)
{
    return change(args, RBI_NODE_SET, "set");
}

int rbi_ctl_rm(const struct rbi_ctl_args *args)
{
    return change(args, RBI_NODE_REMOVE, "removed");
}
