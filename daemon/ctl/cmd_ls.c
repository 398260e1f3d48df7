/* SPDX-License-Identifier: Apache-2.0 */
/* ls: one line for each endpoint. */
#include "bus/label.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/rows.h"

#include <inttypes.h>
#include <string.h>

static void json_print(const struct rbi_wire_row_endpoint *row)
{
    struct rbi_ctl_json json;
    rbi_ctl_json_begin(&json, stdout);
    rbi_ctl_json_text(&json, "path", row->path.bytes);
    rbi_ctl_json_hex(&json, "cluster", row->cluster);
    rbi_ctl_json_i64(&json, "instance", row->instance);
    rbi_ctl_json_u64(&json, "incarnation", row->incarnation);
    rbi_ctl_json_text(&json, "state", rbi_ctl_state_name(row->state));
    rbi_ctl_json_text(&json, "health", rbi_ctl_health_name(row->health));
    rbi_ctl_json_u64(&json, "weight", row->weight);
    rbi_ctl_json_u64(&json, "links", row->links);
    if (row->pid != 0) {
        rbi_ctl_json_u64(&json, "pid", row->pid);
    }
    rbi_ctl_json_u64(&json, "uid", row->uid);
    rbi_ctl_json_u64(&json, "age_ms", row->age_ms);
    rbi_ctl_json_text(&json, "program", row->program.bytes);
    rbi_ctl_home_json(&json, row);
    rbi_ctl_json_end(&json);
}

static void text_print(const struct rbi_wire_row_endpoint *row)
{
    char age[16];
    char pid[16];
    char home[RBI_CTL_HOME_MAX];
    rbi_ctl_age_format(row->age_ms, age, sizeof age);
    rbi_ctl_pid_format(row->pid, pid, sizeof pid);
    printf("%-48s %-8s %-8s %6" PRIu32 " %5" PRIu32 " %8s %6s %s\n", row->path.bytes,
           rbi_ctl_state_name(row->state), rbi_ctl_health_name(row->health), row->weight,
           row->links, pid, age, rbi_ctl_home_text(row, home, sizeof home));
}

/* "group" is all of a group. */
static bool is_at(const char *idc, const char *wanted)
{
    const size_t length = strlen(wanted);
    return strncmp(idc, wanted, length) == 0 && (idc[length] == '\0' || idc[length] == '/');
}

static bool is_wanted(const struct rbi_ctl_args *args, const struct rbi_wire_row_endpoint *row)
{
    if ((args->given & RBI_CTL_ALL) == 0 &&
        (rbi_ctl_path_anonymous(row->path.bytes) || row->hidden != 0)) {
        return false;
    }
    return (args->set == NULL || strcmp(row->set.bytes, args->set) == 0) &&
           (args->idc == NULL || is_at(row->idc.bytes, args->idc)) &&
           (args->tag == NULL || rbi_label_has_tag(row->tags.bytes, args->tag)) &&
           (args->state == NULL || strcmp(rbi_ctl_state_name(row->state), args->state) == 0 ||
            strcmp(rbi_ctl_health_name(row->health), args->state) == 0);
}

static int rows_print(const struct rbi_ctl_args *args, const struct rbi_ctl_rows *rows)
{
    size_t shown = 0;
    for (size_t i = 0; i < rows->endpoint_count; i++) {
        const struct rbi_wire_row_endpoint *row = &rows->endpoints[i].row;
        if (!is_wanted(args, row)) {
            continue;
        }
        if (args->json) {
            json_print(row);
        } else {
            if (shown == 0) {
                printf("%-48s %-8s %-8s %6s %5s %8s %6s %s\n", "PATH", "STATE", "HEALTH", "WEIGHT",
                       "LINKS", "PID", "AGE", "PROGRAM");
            }
            text_print(row);
        }
        shown++;
    }
    if (shown == 0 && args->operand_count == 1) {
        return rbi_ctl_fail(args, RBI_CTL_NOT_FOUND, "nothing at or below %s", args->operands[0]);
    }
    return RBI_CTL_OK;
}

int rbi_ctl_ls(const struct rbi_ctl_args *args)
{
    struct rbi_ctl_control control;
    struct rbi_ctl_rows rows = {.want_pages = false};
    const char *prefix = NULL;
    int r = rbi_ctl_control_init_below(&control, args, &prefix);
    if (r != RBI_CTL_OK) {
        return r;
    }
    r = rbi_ctl_rows_endpoints(&rows, &control, prefix);
    if (r == RBI_CTL_OK) {
        r = rows_print(args, &rows);
    }
    rbi_ctl_rows_deinit(&rows);
    rbi_ctl_control_deinit(&control);
    return r;
}
