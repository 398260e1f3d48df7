/* SPDX-License-Identifier: Apache-2.0 */
/* routes, route: which neighbour leads to each host, and over whom. */
#include "bus/bridge_config.h"
#include "daemon/ctl/control.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/rows.h"

#include <inttypes.h>
#include <string.h>

struct print {
    const struct rbi_ctl_args *args;
    bool one; /* a single way, in one line */
    unsigned shown;
};

/** The hosts on the way, taken apart: a newline stands behind each. */
static const char *path_next(const struct rbi_data *path, size_t *at, size_t *length)
{
    const char *begin = (const char *)&path->bytes[*at];
    const char *end = *at < path->length ? memchr(begin, '\n', path->length - *at) : NULL;
    if (!end) {
        return NULL;
    }
    *length = (size_t)(end - begin);
    *at += *length + 1;
    return rbi_host_name_valid(begin, *length) ? begin : NULL;
}

static void way_json(const struct rbi_wire_row_way *row)
{
    struct rbi_ctl_json json;
    size_t at = 0;
    size_t length = 0;
    rbi_ctl_json_begin(&json, stdout);
    rbi_ctl_json_text(&json, "host", row->host.bytes);
    rbi_ctl_json_text(&json, "next", row->next.bytes);
    rbi_ctl_json_u64(&json, "cost", row->cost);
    rbi_ctl_json_u64(&json, "hops", row->hops);
    rbi_ctl_json_u64(&json, "age_ms", row->age_ms);
    rbi_ctl_json_open(&json, "path", '[');
    for (const char *name = path_next(&row->path, &at, &length); name;
         name = path_next(&row->path, &at, &length)) {
        char text[RBI_HOST_NAME_MAX + 1] = "";
        memcpy(text, name, length);
        rbi_ctl_json_text(&json, NULL, text);
    }
    rbi_ctl_json_close(&json, ']');
    rbi_ctl_json_end(&json);
}

static void path_text(const struct rbi_wire_row_way *row, const char *before)
{
    size_t at = 0;
    size_t length = 0;
    for (const char *name = path_next(&row->path, &at, &length); name;
         name = path_next(&row->path, &at, &length)) {
        printf("%s%.*s", before, (int)length, name);
        before = " -> ";
    }
}

static int on_way(void *context, unsigned type, const union rbi_wire_body *body, int fd)
{
    struct print *print = context;
    const struct rbi_wire_row_way *row = &body->row_way;
    char age[16] = "-";
    (void)fd;
    if (type != RBI_WIRE_ROW_WAY) {
        return RBI_CTL_OK;
    }
    print->shown++;
    if (print->args->json) {
        way_json(row);
        return RBI_CTL_OK;
    }
    if (print->one) {
        printf("%s", print->args->operands[0]);
        path_text(row, " -> ");
        printf("  cost %" PRIu32 ", %" PRIu32 " hop%s\n", row->cost, row->hops,
               row->hops == 1 ? "" : "s");
        return RBI_CTL_OK;
    }
    if (print->shown == 1) {
        printf("%-24s %-24s %8s %5s %6s  %s\n", "HOST", "NEXT", "COST", "HOPS", "FOR", "WAY");
    }
    if (row->age_ms != 0) {
        rbi_ctl_age_format(row->age_ms, age, sizeof age);
    }
    printf("%-24s %-24s %8" PRIu32 " %5" PRIu32 " %6s  ", row->host.bytes, row->next.bytes,
           row->cost, row->hops, age);
    path_text(row, "");
    putchar('\n');
    return RBI_CTL_OK;
}

/** Whether all operands name hosts. Complains itself. @return exit code */
static int names_check(const struct rbi_ctl_args *args)
{
    for (unsigned i = 0; i < args->operand_count; i++) {
        if (!rbi_host_name_valid(args->operands[i], strlen(args->operands[i]))) {
            return rbi_ctl_fail(args, RBI_CTL_USAGE, "'%s' is not the name of a host",
                                args->operands[i]);
        }
    }
    return RBI_CTL_OK;
}

static int ask(struct print *print, const char *question)
{
    struct rbi_ctl_control control;
    int r = rbi_ctl_control_init(&control, print->args);
    if (r != RBI_CTL_OK) {
        return r;
    }
    r = rbi_ctl_control_query(&control, RBI_QUERY_WAYS, question, on_way, print);
    rbi_ctl_control_deinit(&control);
    return r;
}

int rbi_ctl_routes(const struct rbi_ctl_args *args)
{
    struct print print = {.args = args};
    const int r = names_check(args);
    return r == RBI_CTL_OK ? ask(&print, args->operand_count ? args->operands[0] : "") : r;
}

int rbi_ctl_route(const struct rbi_ctl_args *args)
{
    struct print print = {.args = args, .one = true};
    char question[2 * RBI_HOST_NAME_MAX + 2];
    int r = names_check(args);
    if (r != RBI_CTL_OK) {
        return r;
    }
    (void)snprintf(question, sizeof question, "%s %s", args->operands[0], args->operands[1]);
    r = ask(&print, question);
    return r == RBI_CTL_OK && print.shown == 0
               ? rbi_ctl_fail(args, RBI_CTL_NOT_FOUND, "no way leads from %s to %s",
                              args->operands[0], args->operands[1])
               : r;
}
