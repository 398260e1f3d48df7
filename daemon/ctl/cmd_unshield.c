/* SPDX-License-Identifier: Apache-2.0 */
/* unshield: has the daemon forget what is held against an instance. */
#include "bus/pidf.h"
#include "daemon/ctl/control.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/session.h"

#include <stdio.h>
#include <string.h>

#define PROTOCOL_MIN 2U /* of a daemon that knows UNSHIELD */

static int answered(const struct rbi_ctl_args *args, unsigned type, const union rbi_wire_body *body)
{
    if (type == RBI_WIRE_ERROR) {
        return rbi_ctl_fail_bus(args, body->error.code, "the daemon refused",
                                body->error.text.bytes);
    }
    if (type != RBI_WIRE_OK) {
        return rbi_ctl_fail(args, RBI_CTL_FAILED, "the daemon answered something else");
    }
    const bool had = body->ok.value != 0;
    if (args->json) {
        struct rbi_ctl_json json;
        rbi_ctl_json_begin(&json, stdout);
        rbi_ctl_json_text(&json, "path", args->operands[0]);
        rbi_ctl_json_text(&json, "result", had ? "cleared" : "nothing held against it");
        rbi_ctl_json_end(&json);
    } else {
        printf("%s: %s\n", args->operands[0], had ? "cleared" : "nothing held against it");
    }
    return RBI_CTL_OK;
}

static int ask(const struct rbi_ctl_args *args, struct rbi_ctl_control *control)
{
    struct rbi_wire_unshield body = {.incarnation = 0};
    union rbi_wire_body answer;
    unsigned type = 0;
    if (control->protocol < PROTOCOL_MIN) {
        return rbi_ctl_fail(args, RBI_CTL_FAILED,
                            "the daemon is of an earlier version and cannot do that: start "
                            "ringbusd again, nothing is lost by it");
    }
    rbi_text_set(&body.path, args->operands[0]);
    const int r =
        rbi_ctl_control_ask(control, RBI_WIRE_UNSHIELD, &body, NULL, NULL, &type, &answer);
    return r == RBI_CTL_OK ? answered(args, type, &answer) : r;
}

int rbi_ctl_unshield(const struct rbi_ctl_args *args)
{
    const char *path = args->operands[0];
    struct rbi_ctl_control control;
    struct rbi_path_info info;
    int r = rbi_ctl_prefix_check(args, path);
    if (r == RBI_CTL_OK && (rbi_path_parse(path, strlen(path), &info) != 0 ||
                            info.elements != RBI_PATH_INSTANCE_ELEMENTS)) {
        r = rbi_ctl_fail(args, RBI_CTL_USAGE, "'%s' is not an instance: %u elements are needed",
                         path, RBI_PATH_INSTANCE_ELEMENTS);
    }
    r = r == RBI_CTL_OK ? rbi_ctl_control_init(&control, args) : r;
    if (r != RBI_CTL_OK) {
        return r;
    }
    r = ask(args, &control);
    rbi_ctl_control_deinit(&control);
    return r;
}
