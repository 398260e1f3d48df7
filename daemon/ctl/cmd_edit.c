/* SPDX-License-Identifier: Apache-2.0 */
/* isolate, stage, weight, move, limit, mock: single changes of what holds. */
#include "bus/pidf.h"
#include "daemon/ctl/govern.h"

#include <string.h>

static struct rbi_wire_edit edit_of(const struct rbi_ctl_args *args, uint32_t what)
{
    struct rbi_wire_edit body = {
        .what = what, .expect = args->expect, .expected = (args->given & RBI_CTL_EXPECT) != 0};
    rbi_text_set(&body.target, args->operands[0]);
    rbi_ctl_govern_why(args, &body.why);
    return body;
}

static int send(const struct rbi_ctl_args *args, const struct rbi_wire_edit *body)
{
    return rbi_ctl_govern_change(args, RBI_WIRE_EDIT, body, -1);
}

/* @return exit code */
static int instance_check(const struct rbi_ctl_args *args)
{
    const char *path = args->operands[0];
    struct rbi_path_info info;
    int r = rbi_ctl_prefix_check(args, path);
    if (r == RBI_CTL_OK && (rbi_path_parse(path, strlen(path), &info) != 0 ||
                            info.elements != RBI_PATH_INSTANCE_ELEMENTS)) {
        r = rbi_ctl_fail(args, RBI_CTL_USAGE, "'%s' is not an instance: %u elements are needed",
                         path, RBI_PATH_INSTANCE_ELEMENTS);
    }
    return r;
}

/* A key that is true, or with --off is not. */
static int flag(const struct rbi_ctl_args *args, const char *key)
{
    const bool off = (args->given & RBI_CTL_OFF) != 0;
    const int r = instance_check(args);
    if (r != RBI_CTL_OK) {
        return r;
    }
    struct rbi_wire_edit body = edit_of(args, off ? RBI_EDIT_RESET : RBI_EDIT_SET);
    rbi_text_set(&body.key1, key);
    rbi_text_set(&body.value1, off ? "false" : "true");
    return send(args, &body);
}

int rbi_ctl_isolate(const struct rbi_ctl_args *args)
{
    return flag(args, "isolated");
}

int rbi_ctl_stage(const struct rbi_ctl_args *args)
{
    return flag(args, "staged");
}

int rbi_ctl_weight(const struct rbi_ctl_args *args)
{
    const char *weight = args->operands[1];
    const bool own = strcmp(weight, "own") == 0;
    const int r = instance_check(args);
    if (r != RBI_CTL_OK) {
        return r;
    }
    struct rbi_wire_edit body = edit_of(args, own ? RBI_EDIT_RESET : RBI_EDIT_SET);
    rbi_text_set(&body.key1, "weight");
    rbi_text_set(&body.value1, own ? "" : weight);
    return send(args, &body);
}

int rbi_ctl_move(const struct rbi_ctl_args *args)
{
    const bool off = (args->given & RBI_CTL_OFF) != 0;
    const bool to = (args->given & (RBI_CTL_SET | RBI_CTL_IDC | RBI_CTL_TAGS)) != 0;
    const int r = instance_check(args);
    if (r != RBI_CTL_OK) {
        return r;
    }
    if (off == to) {
        return rbi_ctl_fail(args, RBI_CTL_USAGE,
                            "move needs --off, or any of --set, --idc, --tags");
    }
    struct rbi_wire_edit body = edit_of(args, off ? RBI_EDIT_RESET : RBI_EDIT_SET);
    if (off || (args->given & RBI_CTL_SET)) {
        rbi_text_set(&body.key1, "set");
        rbi_text_set(&body.value1, off ? "" : args->set);
    }
    if (off || (args->given & RBI_CTL_IDC)) {
        rbi_text_set(&body.key2, "idc");
        rbi_text_set(&body.value2, off ? "" : args->idc);
    }
    if (off || (args->given & RBI_CTL_TAGS)) {
        rbi_text_set(&body.key3, "tags");
        rbi_text_set(&body.value3, off ? "" : args->tags);
    }
    return send(args, &body);
}

int rbi_ctl_limit(const struct rbi_ctl_args *args)
{
    const char *rate = args->operands[2];
    const char *burst = strchr(rate, '/');
    const bool off = strcmp(rate, "off") == 0;
    struct rbi_wire_edit body = edit_of(args, off ? RBI_EDIT_RESET : RBI_EDIT_SET);
    rbi_text_set(&body.list, "limits");
    rbi_text_set(&body.id, args->operands[1]);
    if (!off) {
        rbi_text_set(&body.key1, "rate");
        rbi_text_format(&body.value1, "%.*s", (int)(burst ? burst - rate : (long)strlen(rate)),
                        rate);
    }
    if (burst && !off) {
        rbi_text_set(&body.key2, "burst");
        rbi_text_set(&body.value2, burst + 1);
    }
    return send(args, &body);
}

int rbi_ctl_mock(const struct rbi_ctl_args *args)
{
    const bool on = strcmp(args->operands[2], "on") == 0;
    if (!on && strcmp(args->operands[2], "off") != 0) {
        return rbi_ctl_fail(args, RBI_CTL_USAGE, "'%s': expected on or off", args->operands[2]);
    }
    struct rbi_wire_edit body = edit_of(args, RBI_EDIT_MOCK);
    rbi_text_set(&body.id, args->operands[1]);
    rbi_text_set(&body.value1, on ? "true" : "false");
    return send(args, &body);
}
