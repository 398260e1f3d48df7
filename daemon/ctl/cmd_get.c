/* SPDX-License-Identifier: Apache-2.0 */
/* get: what is at a path of the node tree, and right below it. */
#include "daemon/ctl/json.h"
#include "daemon/ctl/node.h"

#include <inttypes.h>
#include <ringbus/ringbus.h>
#include <string.h>

int rbi_ctl_node_path_check(const struct rbi_ctl_args *args, const char *path)
{
    struct rbi_node_path parsed;
    if (rbi_node_path_parse(path, strlen(path), &parsed) == 0) {
        return RBI_CTL_OK;
    }
    return rbi_ctl_fail(args, RBI_CTL_USAGE, "'%s' is not a path: %s, at byte %u", path,
                        rbi_path_error_text(parsed.error), parsed.error_offset + 1);
}

void rbi_ctl_node_value_print(const unsigned char *bytes, size_t size)
{
    putchar('"');
    for (size_t i = 0; i < size; i++) {
        const bool plain =
            bytes[i] >= 0x20 && bytes[i] < 0x7f && bytes[i] != '"' && bytes[i] != '\\';
        if (plain) {
            putchar(bytes[i]);
        } else {
            printf("\\x%02x", bytes[i]);
        }
    }
    putchar('"');
}

static const char *kind_name(uint32_t kind)
{
    static const char *const names[] = {[RBI_NODE_PREFIX] = "prefix",
                                        [RBI_NODE_CLUSTER] = "cluster",
                                        [RBI_NODE_INSTANCE] = "instance",
                                        [RBI_NODE_META] = "meta",
                                        [RBI_NODE_USER] = "node"};
    return kind < RBI_ARRAY_SIZE(names) ? names[kind] : "?";
}

static void print_head(const struct rbi_ctl_args *args, const struct rbi_wire_node_state *state)
{
    printf("path      %s\nkind      %s\n", args->operands[0], kind_name(state->kind));
    if (state->kind == RBI_NODE_USER) {
        printf("revision  %" PRIu64 "\nephemeral %s\n", state->revision,
               (state->flags & RBI_NODE_EPHEMERAL) != 0 ? "yes" : "no");
        printf("value     ");
        rbi_ctl_node_value_print(state->value.bytes, state->value.length);
        putchar('\n');
    }
    if (state->kind == RBI_NODE_USER || state->kind == RBI_NODE_INSTANCE) {
        printf("creator   %s, uid %" PRIu32 "\n", state->creator.bytes, state->uid);
    }
    if (state->kind == RBI_NODE_CLUSTER) {
        printf("instances %" PRIu32 "\n", state->instances);
    }
}

static void head_json(const struct rbi_ctl_args *args,
                      struct rbi_ctl_json *json,
                      const struct rbi_wire_node_state *state)
{
    rbi_ctl_json_begin(json, stdout);
    rbi_ctl_json_text(json, "path", args->operands[0]);
    rbi_ctl_json_text(json, "kind", kind_name(state->kind));
    if (state->kind == RBI_NODE_USER) {
        rbi_ctl_json_u64(json, "revision", state->revision);
        rbi_ctl_json_bool(json, "ephemeral", (state->flags & RBI_NODE_EPHEMERAL) != 0);
        rbi_ctl_json_data(json, state->value.bytes, state->value.length);
    }
    if (state->kind == RBI_NODE_USER || state->kind == RBI_NODE_INSTANCE) {
        rbi_ctl_json_text(json, "creator", state->creator.bytes);
        rbi_ctl_json_u64(json, "uid", state->uid);
    }
    if (state->kind == RBI_NODE_CLUSTER) {
        rbi_ctl_json_u64(json, "instances", state->instances);
    }
    rbi_ctl_json_open(json, "children", '[');
}

/* Prints the names of one answer. @p last: the last of them. @return how many */
static unsigned
print_names(const struct rbi_data *names, struct rbi_ctl_json *json, struct rbi_text *last)
{
    unsigned count = 0;
    size_t at = 0;
    while (at < names->length) {
        char name[RBI_PATH_ELEMENT_MAX + 1];
        const unsigned char *end = memchr(names->bytes + at, '\n', names->length - at);
        const size_t length = end != NULL ? (size_t)(end - names->bytes) - at : sizeof name;
        if (length >= sizeof name) {
            break; /* not of a daemon of ours */
        }
        memcpy(name, names->bytes + at, length);
        name[length] = '\0';
        rbi_text_set(last, name);
        if (json != NULL) {
            rbi_ctl_json_text(json, NULL, name);
        } else {
            printf("  %s\n", name);
        }
        at += length + 1;
        count++;
    }
    return count;
}

static int get(const struct rbi_ctl_args *args, struct rbi_ctl_control *control)
{
    struct rbi_wire_node body = {.what = RBI_NODE_GET};
    struct rbi_ctl_json json;
    union rbi_wire_body answer;
    rbi_text_set(&body.path, args->operands[0]);
    int r = rbi_ctl_node_ask(control, &body, RBI_WIRE_NODE_STATE, &answer);
    if (r != RBI_CTL_OK) {
        return r;
    }
    const bool empty =
        answer.node_state.kind == RBI_NODE_CLUSTER && answer.node_state.instances == 0;
    if (args->json) {
        head_json(args, &json, &answer.node_state);
    } else {
        print_head(args, &answer.node_state);
    }
    while (print_names(&answer.node_state.names, args->json ? &json : NULL, &body.after) != 0 &&
           answer.node_state.more != 0) {
        r = rbi_ctl_node_ask(control, &body, RBI_WIRE_NODE_STATE, &answer);
        if (r != RBI_CTL_OK) {
            break;
        }
    }
    if (args->json) {
        rbi_ctl_json_close(&json, ']');
        rbi_ctl_json_end(&json);
    }
    if (r == RBI_CTL_OK && empty) {
        r = rbi_ctl_fail_bus(args, RINGBUS_E_NO_INSTANCE, args->operands[0],
                             "nobody is there now; who targets it waits");
    }
    return r;
}

int rbi_ctl_get(const struct rbi_ctl_args *args)
{
    struct rbi_ctl_control control;
    int r = rbi_ctl_node_path_check(args, args->operands[0]);
    r = r == RBI_CTL_OK ? rbi_ctl_control_init(&control, args) : r;
    if (r == RBI_CTL_OK) {
        r = get(args, &control);
        rbi_ctl_control_deinit(&control);
    }
    return r;
}
