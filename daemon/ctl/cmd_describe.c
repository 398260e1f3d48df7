/* SPDX-License-Identifier: Apache-2.0 */
/* describe: what the configuration says of a cluster to people. */
#include "daemon/ctl/control.h"
#include "daemon/ctl/json.h"

#include <inttypes.h>
#include <ringbus/ringbus.h>

static void print_json(const struct rbi_ctl_args *args, const struct rbi_wire_description *said)
{
    struct rbi_ctl_json json;
    rbi_ctl_json_begin(&json, stdout);
    rbi_ctl_json_text(&json, "path", args->operands[0]);
    rbi_ctl_json_text(&json, "owner", said->owner.bytes);
    rbi_ctl_json_text(&json, "schema", said->schema.bytes);
    rbi_ctl_json_u64(&json, "qps", said->qps);
    rbi_ctl_json_u64(&json, "p99_us", said->p99_us);
    rbi_ctl_json_hex(&json, "policy", said->policy);
    rbi_ctl_json_end(&json);
}

static void print_text(const struct rbi_wire_description *said)
{
    printf("owner   %s\n", said->owner.length > 0 ? said->owner.bytes : "-");
    printf("schema  %s\n", said->schema.length > 0 ? said->schema.bytes : "-");
    if (said->qps != 0) {
        printf("qps     %" PRIu64 "\n", said->qps);
    }
    if (said->p99_us != 0) {
        printf("p99     %" PRIu32 " us\n", said->p99_us);
    }
    if (said->policy != 0) {
        printf("policy  %016" PRIx64 "\n", said->policy);
    } else {
        printf("policy  default\n");
    }
}

int rbi_ctl_describe(const struct rbi_ctl_args *args)
{
    struct rbi_ctl_control control;
    struct rbi_wire_describe body;
    union rbi_wire_body answer;
    unsigned answered = 0;
    int r = rbi_ctl_prefix_check(args, args->operands[0]);
    r = r == RBI_CTL_OK ? rbi_ctl_control_init(&control, args) : r;
    if (r != RBI_CTL_OK) {
        return r;
    }
    rbi_text_set(&body.path, args->operands[0]);
    r = rbi_ctl_control_exchange(&control, RBI_WIRE_DESCRIBE, &body, -1, &answered, &answer, NULL);
    if (r == RBI_CTL_OK && answered == RBI_WIRE_DESCRIPTION) {
        if (args->json) {
            print_json(args, &answer.description);
        } else {
            print_text(&answer.description);
        }
    } else if (r == RBI_CTL_OK) {
        r = rbi_ctl_fail_bus(
            args, answered == RBI_WIRE_ERROR ? answer.error.code : RINGBUS_E_SYSTEM,
            "the daemon refused", answered == RBI_WIRE_ERROR ? answer.error.text.bytes : NULL);
    }
    rbi_ctl_control_deinit(&control);
    return rbi_ctl_finish(args, r);
}
