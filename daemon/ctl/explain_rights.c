/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/ctl/explain_rights.h"

#include "daemon/ctl/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INSTANCES_MAX 1024

void rbi_ctl_denied_deinit(struct rbi_ctl_denied *denied)
{
    free(denied->addrs);
    free(denied->whys);
}

static bool
add(struct rbi_ctl_denied *denied, const struct ringbus_instance *instance, const char *why)
{
    if (denied->count == denied->room) {
        const size_t room = denied->room * 2 + 16;
        struct ringbus_addr *addrs = realloc(denied->addrs, room * sizeof *addrs);
        denied->addrs = addrs != NULL ? addrs : denied->addrs;
        struct rbi_ctl_denied_why *whys = realloc(denied->whys, room * sizeof *whys);
        denied->whys = whys != NULL ? whys : denied->whys;
        if (addrs == NULL || whys == NULL) {
            return false;
        }
        denied->room = room;
    }
    denied->addrs[denied->count] = instance->addr;
    snprintf(denied->whys[denied->count].path, RINGBUS_PATH_MAX + 1, "%s", instance->path);
    snprintf(denied->whys[denied->count].why, sizeof denied->whys->why, "%s", why);
    denied->count++;
    return true;
}

static int ask(struct rbi_ctl_denied *denied,
               struct rbi_ctl_control *control,
               const char *caller,
               uint32_t method,
               const struct ringbus_instance *instance)
{
    struct rbi_wire_may_link body;
    union rbi_wire_body answer;
    unsigned type = 0;
    memset(&body, 0, sizeof body);
    rbi_text_set(&body.from, caller);
    rbi_text_set(&body.to, instance->path);
    body.method = method;
    const int r =
        rbi_ctl_control_ask(control, RBI_WIRE_MAY_LINK, &body, NULL, NULL, &type, &answer);
    if (r != RBI_CTL_OK) {
        return r;
    }
    if (type == RBI_WIRE_ERROR) {
        /* One that has just left is nobody's to be denied. */
        return answer.error.code == RINGBUS_E_NO_INSTANCE
                   ? RBI_CTL_OK
                   : rbi_ctl_fail_bus(control->args, answer.error.code, "the daemon refused",
                                      answer.error.text.bytes);
    }
    if (type != RBI_WIRE_VERDICT) {
        return rbi_ctl_fail(control->args, RBI_CTL_FAILED, "the daemon answered something else");
    }
    if (answer.verdict.allowed == 0 && !add(denied, instance, answer.verdict.why.bytes)) {
        return rbi_ctl_fail(control->args, RBI_CTL_FAILED, "not enough memory");
    }
    return RBI_CTL_OK;
}

int rbi_ctl_denied_read(struct rbi_ctl_denied *denied,
                        const struct rbi_ctl_args *args,
                        struct ringbus *bus,
                        const char *caller,
                        uint32_t method,
                        char (*clusters)[RINGBUS_PATH_MAX + 1],
                        unsigned count)
{
    struct rbi_ctl_control control;
    struct ringbus_instance *instances = calloc(INSTANCES_MAX, sizeof *instances);
    if (instances == NULL) {
        return rbi_ctl_fail(args, RBI_CTL_FAILED, "not enough memory");
    }
    int r = rbi_ctl_control_init(&control, args);
    if (r != RBI_CTL_OK) {
        free(instances);
        return r;
    }
    for (unsigned i = 0; r == RBI_CTL_OK && i < count; i++) {
        const int found = ringbus_instances(bus, clusters[i], instances, INSTANCES_MAX);
        for (int j = 0; r == RBI_CTL_OK && j < found && j < INSTANCES_MAX; j++) {
            r = ask(denied, &control, caller, method, &instances[j]);
        }
    }
    rbi_ctl_control_deinit(&control);
    free(instances);
    return r;
}

static void take_caller(struct rbi_ctl_caller *out, const struct rbi_wire_who_is *who)
{
    (void)snprintf(out->program, sizeof out->program, "%s", who->program.bytes);
    (void)snprintf(out->cgroup, sizeof out->cgroup, "%s", who->cgroup.bytes);
    out->subject = (struct ringbus_subject){
        .uid = who->uid, .gid = who->gid, .program = out->program, .cgroup = out->cgroup};
}

int rbi_ctl_caller_read(struct rbi_ctl_caller *out,
                        const struct rbi_ctl_args *args,
                        const char *caller)
{
    struct rbi_ctl_control control;
    struct rbi_wire_who body = {.path = {.length = 0}};
    union rbi_wire_body answer;
    unsigned type = 0;
    int r = rbi_ctl_control_init(&control, args);
    if (r != RBI_CTL_OK) {
        return r;
    }
    rbi_text_set(&body.path, caller);
    r = rbi_ctl_control_ask(&control, RBI_WIRE_WHO, &body, NULL, NULL, &type, &answer);
    if (r == RBI_CTL_OK && type == RBI_WIRE_ERROR) {
        r = rbi_ctl_fail_bus(args, answer.error.code, "the daemon refused",
                             answer.error.text.bytes);
    } else if (r == RBI_CTL_OK && type != RBI_WIRE_WHO_IS) {
        r = rbi_ctl_fail(args, RBI_CTL_FAILED, "the daemon answered something else");
    } else if (r == RBI_CTL_OK) {
        take_caller(out, &answer.who_is);
    }
    rbi_ctl_control_deinit(&control);
    return r;
}
