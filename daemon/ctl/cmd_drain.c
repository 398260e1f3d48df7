/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drain, undrain: takes an instance out of dispatch and puts it back, through the daemon, which
 * orders it and knows what it reports. Asks again and again, so that nothing has to be kept at
 * the daemon for a tool that may end at any moment.
 */
#include "bus/directory.h"
#include "bus/pidf.h"
#include "daemon/ctl/control.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/rows.h"
#include "daemon/ctl/session.h"

#include <inttypes.h>
#include <ringbus/ringbus.h>
#include <string.h>
#include <time.h>

#define ASK_MS       20
#define PROTOCOL_MIN 2U /* of a daemon that knows DRAIN */

struct drain {
    struct rbi_ctl_control control;
    const struct rbi_ctl_args *args;
    const char *path;
    bool start; /* drain, not undrain */
    uint64_t end_ns;
    uint32_t incarnation;
    struct rbi_wire_drain_state state;
    bool shown; /* a line was printed */
    bool gone;
    uint32_t reason; /* of its end */
};

/* ---- output ------------------------------------------------------------------------------ */

static const char *step_name(const struct rbi_wire_drain_state *state)
{
    static const char *const names[] = {
        [RBI_DRAIN_NONE] = "not draining",
        [RBI_DRAIN_SENDERS] = "senders have not acknowledged",
        [RBI_DRAIN_UNREAD] = "links are not read to their end",
        [RBI_DRAIN_CALLS] = "requests of its own are not answered",
        [RBI_DRAIN_UNTAKEN] = "peers have not read what it sent",
        [RBI_DRAIN_DONE] = "drained",
    };
    if (!state->reported) {
        return "has not answered";
    }
    return state->step < RBI_ARRAY_SIZE(names) ? names[state->step] : "draining";
}

static bool counts(const struct rbi_wire_drain_state *state)
{
    return state->reported && state->step != RBI_DRAIN_NONE && state->step != RBI_DRAIN_DONE;
}

static void show(struct drain *drain)
{
    const struct rbi_wire_drain_state *state = &drain->state;
    drain->shown = true;
    if (drain->args->json) {
        struct rbi_ctl_json json;
        rbi_ctl_json_begin(&json, stdout);
        rbi_ctl_json_text(&json, "path", drain->path);
        rbi_ctl_json_u64(&json, "incarnation", state->incarnation);
        rbi_ctl_json_text(&json, "state", rbi_ctl_state_name(state->state));
        rbi_ctl_json_text(&json, "progress", step_name(state));
        rbi_ctl_json_u64(&json, "left", counts(state) ? state->left : 0);
        rbi_ctl_json_end(&json);
    } else if (counts(state)) {
        printf("%s %s: %" PRIu32 " %s\n", drain->path, rbi_ctl_state_name(state->state),
               state->left, step_name(state));
    } else {
        printf("%s %s: %s\n", drain->path, rbi_ctl_state_name(state->state), step_name(state));
    }
    (void)fflush(stdout); /* told at the end */
}

static int show_gone(const struct drain *drain)
{
    const char *reason = rbi_ctl_reason_name((enum ringbus_reason)drain->reason);
    if (drain->reason != RINGBUS_REASON_LEFT) {
        return rbi_ctl_fail(drain->args, RBI_CTL_FAILED, "%s is gone: %s", drain->path, reason);
    }
    if (drain->args->json) {
        struct rbi_ctl_json json;
        rbi_ctl_json_begin(&json, stdout);
        rbi_ctl_json_text(&json, "path", drain->path);
        rbi_ctl_json_u64(&json, "incarnation", drain->incarnation);
        rbi_ctl_json_text(&json, "state", "CLOSED");
        rbi_ctl_json_text(&json, "progress", "left");
        rbi_ctl_json_u64(&json, "left", 0);
        rbi_ctl_json_end(&json);
    } else {
        printf("%s CLOSED: left\n", drain->path);
    }
    return RBI_CTL_OK;
}

/* ---- asking ------------------------------------------------------------------------------ */

static void on_event(void *context, const struct rbi_wire_event *event)
{
    struct drain *drain = context;
    if (event->change == RBI_CHANGE_REMOVED && event->incarnation == drain->incarnation &&
        strcmp(event->path.bytes, drain->path) == 0) {
        drain->gone = true;
        drain->reason = event->reason;
    }
}

static int ask(struct drain *drain, enum rbi_drain_what what)
{
    struct rbi_wire_drain body = {.what = what, .incarnation = drain->incarnation};
    union rbi_wire_body answer;
    unsigned type = 0;
    rbi_text_set(&body.path, drain->path);
    /* The daemon has its own time for each answer: the last look is not cut short. */
    drain->control.deadline_ns = rbi_ctl_now_ns() + (uint64_t)drain->args->timeout_ms * 1000000;
    int r = rbi_ctl_control_ask(&drain->control, RBI_WIRE_DRAIN, &body, on_event, drain, &type,
                                &answer);
    if (r != RBI_CTL_OK) {
        return r;
    }
    if (type == RBI_WIRE_ERROR && drain->gone) {
        return RBI_CTL_OK;
    }
    if (type == RBI_WIRE_ERROR) {
        return rbi_ctl_fail_bus(drain->args, answer.error.code, "the daemon refused",
                                answer.error.text.bytes);
    }
    if (type != RBI_WIRE_DRAIN_STATE) {
        return rbi_ctl_fail(drain->args, RBI_CTL_FAILED, "the daemon answered something else");
    }
    const struct rbi_wire_drain_state old = drain->state;
    drain->state = answer.drain_state;
    drain->incarnation = drain->state.incarnation;
    if (!drain->shown || old.state != drain->state.state || old.step != drain->state.step ||
        old.reported != drain->state.reported || old.left != drain->state.left) {
        show(drain);
    }
    return RBI_CTL_OK;
}

/* How the instance ends is told to watchers only. */
static int watch(struct drain *drain)
{
    struct rbi_wire_watch body;
    union rbi_wire_body answer;
    unsigned type = 0;
    rbi_text_set(&body.prefix, drain->path);
    int r = rbi_ctl_control_ask(&drain->control, RBI_WIRE_WATCH, &body, NULL, NULL, &type, &answer);
    if (r == RBI_CTL_OK && type == RBI_WIRE_ERROR) {
        r = rbi_ctl_fail_bus(drain->args, answer.error.code, "the daemon refused",
                             answer.error.text.bytes);
    }
    return r;
}

static bool is_done(const struct drain *drain)
{
    if (drain->start) {
        return drain->state.reported && drain->state.step == RBI_DRAIN_DONE;
    }
    return drain->state.state == RBI_ENDPOINT_READY || drain->state.state == RBI_ENDPOINT_BUSY;
}

static int run(struct drain *drain)
{
    const struct timespec pause = {.tv_nsec = ASK_MS * 1000000L};
    drain->end_ns = drain->control.deadline_ns; /* counted from the connecting on */
    int r = watch(drain);
    r = r == RBI_CTL_OK ? ask(drain, drain->start ? RBI_DRAIN_START : RBI_DRAIN_STOP) : r;
    while (r == RBI_CTL_OK && !drain->gone && !is_done(drain)) {
        if (rbi_ctl_now_ns() >= drain->end_ns) {
            return rbi_ctl_fail(drain->args, RBI_CTL_TIMEOUT,
                                drain->start && drain->state.reported
                                    ? "%s is not drained in time; it goes on draining"
                                : drain->start
                                    ? "%s has not answered in time; it is shown as DRAINING all "
                                      "the same, and nothing is dispatched to it"
                                    : "%s is not READY in time: it drains by its own will, or "
                                      "does not react",
                                drain->path);
        }
        (void)nanosleep(&pause, NULL); /* a signal only makes it ask sooner */
        r = ask(drain, RBI_DRAIN_LOOK);
    }
    return r == RBI_CTL_OK && drain->gone ? show_gone(drain) : r;
}

static int instance_check(const struct rbi_ctl_args *args, const char *path)
{
    struct rbi_path_info info;
    int r = rbi_ctl_prefix_check(args, path);
    if (r == RBI_CTL_OK && (rbi_path_parse(path, strlen(path), &info) != 0 ||
                            info.elements != RBI_PATH_INSTANCE_ELEMENTS)) {
        r = rbi_ctl_fail(args, RBI_CTL_USAGE, "'%s' is not an instance: %u elements are needed",
                         path, RBI_PATH_INSTANCE_ELEMENTS);
    }
    return r;
}

static int drain_or_back(const struct rbi_ctl_args *args, bool start)
{
    struct drain drain = {.args = args, .path = args->operands[0], .start = start};
    int r = instance_check(args, drain.path);
    r = r == RBI_CTL_OK ? rbi_ctl_control_init(&drain.control, args) : r;
    if (r != RBI_CTL_OK) {
        return r;
    }
    if (drain.control.protocol < PROTOCOL_MIN) {
        r = rbi_ctl_fail(args, RBI_CTL_FAILED,
                         "the daemon is of an earlier version and cannot do that: start ringbusd "
                         "again, nothing is lost by it");
    } else {
        r = run(&drain);
    }
    rbi_ctl_control_deinit(&drain.control);
    return r;
}

int rbi_ctl_drain(const struct rbi_ctl_args *args)
{
    return drain_or_back(args, true);
}

int rbi_ctl_undrain(const struct rbi_ctl_args *args)
{
    return drain_or_back(args, false);
}
