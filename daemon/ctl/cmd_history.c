/* SPDX-License-Identifier: Apache-2.0 */
/* history and rollback: versions of what was applied. */
#include "daemon/ctl/govern.h"
#include "daemon/ctl/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DAY_S UINT64_C(86400)

/**
 * "2026-03-01 12:00:00" of universal time. Years are counted from March on, so that the day of a
 * leap year is the last of its year; 400 of them have 146097 days.
 */
static void print_time(uint64_t when_s, char out[160])
{
    const uint64_t days = when_s / DAY_S + 719468; /* since the 1st of March of the year 0 */
    const uint64_t era = days / 146097;
    const uint64_t day = days % 146097;
    const uint64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    const uint64_t of_year = day - (365 * year + year / 4 - year / 100);
    const uint64_t month = (5 * of_year + 2) / 153; /* 0: March */
    const uint64_t s = when_s % DAY_S;
    (void)snprintf(out, 160,
                   "%04" PRIu64 "-%02" PRIu64 "-%02" PRIu64 " %02" PRIu64 ":%02" PRIu64
                   ":%02" PRIu64,
                   era * 400 + year + (month >= 10), month >= 10 ? month - 9 : month + 3,
                   of_year - (153 * month + 2) / 5 + 1, s / 3600, s / 60 % 60, s % 60);
}

static void print_json(const struct rbi_wire_row_version *row, const char *when)
{
    struct rbi_ctl_json json;
    rbi_ctl_json_begin(&json, stdout);
    rbi_ctl_json_u64(&json, "version", row->version);
    rbi_ctl_json_bool(&json, "current", row->current != 0);
    rbi_ctl_json_text(&json, "when", when);
    rbi_ctl_json_u64(&json, "uid", row->uid);
    rbi_ctl_json_u64(&json, "pid", row->pid);
    rbi_ctl_json_text(&json, "program", row->program.bytes);
    rbi_ctl_json_text(&json, "why", row->why.bytes);
    rbi_ctl_json_u64(&json, "applied_bytes", row->applied_bytes);
    rbi_ctl_json_u64(&json, "edits_bytes", row->edits_bytes);
    rbi_ctl_json_end(&json);
}

static int on_row(void *context, unsigned type, const union rbi_wire_body *body, int fd)
{
    const struct rbi_ctl_args *args = *(const struct rbi_ctl_args *const *)context;
    const struct rbi_wire_row_version *row = &body->row_version;
    char when[160] = "-";
    (void)fd;
    if (type != RBI_WIRE_ROW_VERSION) {
        return RBI_CTL_OK;
    }
    if (row->when_s != 0) {
        print_time(row->when_s, when);
    }
    if (args->json) {
        print_json(row, when);
    } else {
        printf("%c%-6" PRIu64 " %-19s  uid %-6" PRIu32 " %s\n", row->current ? '*' : ' ',
               row->version, when, row->uid, row->why.bytes);
    }
    return RBI_CTL_OK;
}

int rbi_ctl_history(const struct rbi_ctl_args *args)
{
    struct rbi_ctl_control control;
    const struct rbi_wire_history body = {
        .most = (args->given & RBI_CTL_COUNT) ? (uint32_t)rbi_min_u64(args->count, UINT32_MAX) : 0};
    int r = rbi_ctl_control_init(&control, args);
    if (r != RBI_CTL_OK) {
        return r;
    }
    r = rbi_ctl_control_rows(&control, RBI_WIRE_HISTORY, &body, on_row, &args);
    rbi_ctl_control_deinit(&control);
    return rbi_ctl_finish(args, r);
}

int rbi_ctl_rollback(const struct rbi_ctl_args *args)
{
    const char *text = args->operands[0];
    char *end = NULL;
    errno = 0;
    struct rbi_wire_rollback body = {.version = strtoull(text, &end, 10),
                                     .expect = args->expect,
                                     .expected = (args->given & RBI_CTL_EXPECT) != 0};
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || body.version == 0) {
        return rbi_ctl_fail(args, RBI_CTL_USAGE, "'%s' is no version: history shows them", text);
    }
    rbi_ctl_govern_why(args, &body.why);
    return rbi_ctl_govern_change(args, RBI_WIRE_ROLLBACK, &body, -1);
}
