/* SPDX-License-Identifier: Apache-2.0 */
/* alarms: rules of the configuration that fire, or are about to. */
#include "bus/alarm.h"
#include "daemon/ctl/control.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/rows.h"

#include <inttypes.h>

/* Room for a value as text. */
#define VALUE_MAX 24U

struct alarms_print {
    const struct rbi_ctl_args *args;
    unsigned shown;
};

static void json_print(const struct rbi_wire_row_alarm *row)
{
    struct rbi_ctl_json json;
    rbi_ctl_json_begin(&json, stdout);
    rbi_ctl_json_text(&json, "rule", row->rule.bytes);
    rbi_ctl_json_text(&json, "path", row->path.bytes);
    rbi_ctl_json_text(&json, "state", rbi_alarm_state_name(row->state));
    rbi_ctl_json_text(&json, "metric", rbi_alarm_metric_name(row->metric));
    if (row->known != 0) {
        rbi_ctl_json_real(&json, "value", (double)row->value / (double)RBI_ALARM_UNIT);
    }
    rbi_ctl_json_text(&json, "op", row->below != 0 ? "<" : ">");
    rbi_ctl_json_real(&json, "threshold", (double)row->threshold / (double)RBI_ALARM_UNIT);
    rbi_ctl_json_u64(&json, "since_ms", row->since_ms);
    if (row->state >= RBI_ALARM_FIRING) {
        rbi_ctl_json_u64(&json, "firing_ms", row->fired_ms);
    }
    rbi_ctl_json_end(&json);
}

static void text_print(const struct rbi_wire_row_alarm *row)
{
    char value[VALUE_MAX] = "-";
    char threshold[VALUE_MAX];
    char since[16] = "-";
    if (row->known != 0) {
        rbi_alarm_format(row->value, value, sizeof value);
    }
    rbi_alarm_format(row->threshold, threshold, sizeof threshold);
    if (row->state != RBI_ALARM_OK) {
        rbi_ctl_age_format(row->state >= RBI_ALARM_FIRING ? row->fired_ms : row->since_ms, since,
                           sizeof since);
    }
    printf("%-8s %-6s %-24s %-14s %12s %s %-12s %s\n", rbi_alarm_state_name(row->state), since,
           row->rule.bytes, rbi_alarm_metric_name(row->metric), value, row->below != 0 ? "<" : ">",
           threshold, row->path.bytes);
}

static int on_row(void *context, unsigned type, const union rbi_wire_body *body, int fd)
{
    struct alarms_print *print = context;
    const struct rbi_wire_row_alarm *row = &body->row_alarm;
    (void)fd;
    if (type != RBI_WIRE_ROW_ALARM ||
        (row->state == RBI_ALARM_OK && (print->args->given & RBI_CTL_ALL) == 0)) {
        return RBI_CTL_OK;
    }
    if (print->args->json) {
        json_print(row);
        return RBI_CTL_OK;
    }
    if (print->shown++ == 0) {
        printf("%-8s %-6s %-24s %-14s %12s %s %-12s %s\n", "STATE", "FOR", "RULE", "METRIC",
               "VALUE", " ", "THRESHOLD", "CLUSTER");
    }
    text_print(row);
    return RBI_CTL_OK;
}

int rbi_ctl_alarms(const struct rbi_ctl_args *args)
{
    struct rbi_ctl_control control;
    struct alarms_print print = {.args = args};
    const char *prefix = NULL;
    int r = rbi_ctl_control_init_below(&control, args, &prefix);
    if (r != RBI_CTL_OK) {
        return r;
    }
    r = rbi_ctl_control_query(&control, RBI_QUERY_ALARMS, prefix, on_row, &print);
    rbi_ctl_control_deinit(&control);
    return r;
}
