/* SPDX-License-Identifier: Apache-2.0 */
/* watch: changes of instances and nodes below a prefix, as they come. */
#include "daemon/ctl/control.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/node.h"
#include "daemon/ctl/rows.h"
#include "daemon/ctl/session.h"

#include <inttypes.h>
#include <string.h>

#define WATCH_INSTANCES_MAX 1024U

struct watch {
    struct rbi_ctl_session session;
    const struct rbi_ctl_args *args;
    uint64_t events;
};

/* The event says who; the directory, in memory, says how it is now. */
static bool
instance_find(struct ringbus *bus, const struct ringbus_event *event, struct ringbus_instance *out)
{
    static struct ringbus_instance instances[WATCH_INSTANCES_MAX]; /* 300 KiB: not for the stack */
    char cluster[RINGBUS_PATH_MAX + 1];
    snprintf(cluster, sizeof cluster, "%s", event->path);
    char *slash = strrchr(cluster, '/');
    if (slash == NULL) {
        return false;
    }
    *slash = '\0';
    int count = ringbus_instances(bus, cluster, instances, WATCH_INSTANCES_MAX);
    for (int i = 0; i < count && i < (int)WATCH_INSTANCES_MAX; i++) {
        if (instances[i].addr.instance == event->addr.instance) {
            *out = instances[i];
            return true;
        }
    }
    return false;
}

static const char *event_name(enum ringbus_event_type type)
{
    static const char *const names[] = {
        [RINGBUS_EVENT_ADDED] = "ADDED",
        [RINGBUS_EVENT_UPDATED] = "UPDATED",
        [RINGBUS_EVENT_REMOVED] = "REMOVED",
        [RINGBUS_EVENT_RESYNC] = "RESYNC",
        [RINGBUS_EVENT_DAEMON_LOST] = "DAEMON_LOST",
        [RINGBUS_EVENT_DAEMON_BACK] = "DAEMON_BACK",
        [RINGBUS_EVENT_NODE_CREATED] = "NODE_CREATED",
        [RINGBUS_EVENT_NODE_CHANGED] = "NODE_CHANGED",
        [RINGBUS_EVENT_NODE_REMOVED] = "NODE_REMOVED",
        [RINGBUS_EVENT_ALARM_FIRING] = "ALARM_FIRING",
        [RINGBUS_EVENT_ALARM_RESOLVED] = "ALARM_RESOLVED",
    };
    return (size_t)type < RBI_ARRAY_SIZE(names) ? names[type] : NULL;
}

/* Why it is gone: taken away, or its owner ended. */
static const char *node_reason(const struct ringbus_event *event)
{
    return event->reason == RINGBUS_REASON_NONE ? "removed" : rbi_ctl_reason_name(event->reason);
}

static bool is_node(const struct ringbus_event *event)
{
    return event->type >= RINGBUS_EVENT_NODE_CREATED && event->type <= RINGBUS_EVENT_NODE_REMOVED;
}

static void node_json(struct rbi_ctl_json *json, const struct ringbus_event *event)
{
    rbi_ctl_json_text(json, "path", event->path);
    if (event->revision != 0) {
        rbi_ctl_json_u64(json, "revision", event->revision);
    }
    if (event->type == RINGBUS_EVENT_NODE_REMOVED) {
        rbi_ctl_json_text(json, "reason", node_reason(event));
    } else {
        rbi_ctl_json_data(json, event->value, event->value_size);
    }
}

static void node_text(const struct ringbus_event *event)
{
    printf(" %s", event->path);
    if (event->revision != 0) {
        printf(" revision %" PRIu64, event->revision);
    }
    if (event->type == RINGBUS_EVENT_NODE_REMOVED) {
        printf(" %s", node_reason(event));
    } else {
        putchar(' ');
        rbi_ctl_node_value_print(event->value, event->value_size);
    }
}

static void alarm_json(struct rbi_ctl_json *json, const struct ringbus_event *event)
{
    rbi_ctl_json_text(json, "path", event->path);
    rbi_ctl_json_text(json, "rule", event->alarm->rule);
    rbi_ctl_json_text(json, "metric", event->alarm->metric);
    if (event->alarm->known != 0) {
        rbi_ctl_json_real(json, "value", event->alarm->value);
    }
    rbi_ctl_json_text(json, "op", event->alarm->below != 0 ? "<" : ">");
    rbi_ctl_json_real(json, "threshold", event->alarm->threshold);
}

static void alarm_text(const struct ringbus_event *event)
{
    const struct ringbus_alarm *alarm = event->alarm;
    printf(" %s %s %s ", event->path, alarm->rule, alarm->metric);
    if (alarm->known != 0) {
        printf("%.10g", alarm->value);
    } else {
        printf("unknown");
    }
    printf(", threshold %s %.10g", alarm->below != 0 ? "<" : ">", alarm->threshold);
}

static void print_json(const struct ringbus_event *event, const struct ringbus_instance *instance)
{
    struct rbi_ctl_json json;
    rbi_ctl_json_begin(&json, stdout);
    rbi_ctl_json_text(&json, "event", event_name(event->type));
    if (is_node(event)) {
        node_json(&json, event);
    } else if (event->alarm != NULL) {
        alarm_json(&json, event);
    } else if (event->path != NULL && *event->path != '\0') {
        rbi_ctl_json_text(&json, "path", event->path);
        rbi_ctl_json_u64(&json, "incarnation", event->addr.incarnation);
    }
    if (instance != NULL) {
        rbi_ctl_json_text(&json, "state", rbi_ctl_state_name((uint32_t)instance->state));
        rbi_ctl_json_u64(&json, "weight", instance->weight);
    }
    if (event->type == RINGBUS_EVENT_REMOVED) {
        rbi_ctl_json_text(&json, "reason", rbi_ctl_reason_name(event->reason));
    }
    rbi_ctl_json_end(&json);
}

static void print_text(const struct ringbus_event *event, const struct ringbus_instance *instance)
{
    printf("%-8s", event_name(event->type));
    if (is_node(event)) {
        node_text(event);
    } else if (event->alarm != NULL) {
        alarm_text(event);
    } else if (event->path != NULL && *event->path != '\0') {
        printf(" %s", event->path);
    }
    if (instance != NULL) {
        printf(" %s weight %" PRIu32, rbi_ctl_state_name((uint32_t)instance->state),
               instance->weight);
    } else if (event->type == RINGBUS_EVENT_REMOVED) {
        printf(" %s", rbi_ctl_reason_name(event->reason));
    }
    putchar('\n');
}

static bool done(const struct watch *watch)
{
    return (watch->args->given & RBI_CTL_COUNT) != 0 && watch->events >= watch->args->count;
}

static void on_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    struct watch *watch = user;
    struct ringbus_instance instance;
    if (event_name(event->type) == NULL || done(watch)) {
        return;
    }
    bool lookup = event->type == RINGBUS_EVENT_ADDED || event->type == RINGBUS_EVENT_UPDATED;
    bool found = lookup && instance_find(bus, event, &instance);
    watch->events++;
    if (watch->args->json) {
        print_json(event, found ? &instance : NULL);
    } else {
        print_text(event, found ? &instance : NULL);
    }
}

static int watch_until_stopped(struct watch *watch, const char *prefix)
{
    int r = ringbus_watch(watch->session.bus, prefix);
    if (r < 0) {
        return rbi_ctl_fail_bus(watch->args, r, prefix, ringbus_errmsg(watch->session.bus));
    }
    while (!rbi_ctl_stopping() && !done(watch)) {
        r = rbi_ctl_session_step(&watch->session, 1000);
        if (r != RBI_CTL_OK) {
            return r;
        }
        if (fflush(stdout) != 0) {
            return RBI_CTL_OK; /* told at the end */
        }
    }
    return RBI_CTL_OK;
}

int rbi_ctl_watch(const struct rbi_ctl_args *args)
{
    struct watch watch = {.args = args};
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    const char *prefix = args->operand_count == 1 ? args->operands[0] : "/";
    int r = rbi_ctl_node_path_check(args, prefix);
    watch.session.on_event = on_event;
    watch.session.user = &watch;
    if (r == RBI_CTL_OK) {
        r = rbi_ctl_session_open(&watch.session, args, &options);
    }
    if (r == RBI_CTL_OK) {
        r = watch_until_stopped(&watch, prefix);
        (void)rbi_ctl_session_close(&watch.session, 0);
    }
    return r;
}
