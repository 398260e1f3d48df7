/* SPDX-License-Identifier: Apache-2.0 */
/* hosts, bridge: the other hosts that are known, and what passes between them and this one. */
#include "bus/bridge_config.h"
#include "daemon/ctl/control.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/rows.h"

#include <inttypes.h>
#include <string.h>

static const char *state_name(uint32_t state)
{
    static const char *const names[] = {"gone", "down", "connecting", "up", "reachable", "refused"};
    return state < RBI_ARRAY_SIZE(names) ? names[state] : "?";
}

/** "85us", "1.2ms"; "-" when it is not known. */
static void time_format(uint64_t ns, char *out, size_t size)
{
    if (ns == 0) {
        (void)snprintf(out, size, "-");
    } else if (ns < 1000000) {
        (void)snprintf(out, size, "%" PRIu64 "us", (ns + 500) / 1000);
    } else {
        (void)snprintf(out, size, "%" PRIu64 ".%" PRIu64 "ms", ns / 1000000, ns / 100000 % 10);
    }
}

static const char *secure_name(uint8_t secure)
{
    static const char *const names[] = {"none", "tls", "ktls"};
    return secure < RBI_ARRAY_SIZE(names) ? names[secure] : "?";
}

static void host_json(const struct rbi_wire_row_host *row)
{
    struct rbi_ctl_json json;
    rbi_ctl_json_begin(&json, stdout);
    rbi_ctl_json_text(&json, "host", row->name.bytes);
    rbi_ctl_json_u64(&json, "number", row->number);
    rbi_ctl_json_text(&json, "state", state_name(row->state));
    rbi_ctl_json_bool(&json, "peer", row->peer != 0);
    rbi_ctl_json_text(&json, "via", row->via.bytes);
    rbi_ctl_json_text(&json, "address", row->address.bytes);
    rbi_ctl_json_text(&json, "security", secure_name(row->secure));
    rbi_ctl_json_u64(&json, "cost", row->cost);
    rbi_ctl_json_u64(&json, "state_ms", row->connected_ms);
    rbi_ctl_json_u64(&json, "rtt_ns", row->rtt_ns);
    rbi_ctl_json_u64(&json, "instances", row->instances);
    rbi_ctl_json_u64(&json, "unconfirmed", row->unconfirmed);
    rbi_ctl_json_bool(&json, "mass_held", row->mass_held != 0);
    rbi_ctl_json_u64(&json, "streams", row->streams);
    rbi_ctl_json_u64(&json, "held", row->held);
    rbi_ctl_json_u64(&json, "connects", row->connects);
    rbi_ctl_json_u64(&json, "sent_frames", row->sent_frames);
    rbi_ctl_json_u64(&json, "sent_bytes", row->sent_bytes);
    rbi_ctl_json_u64(&json, "received_frames", row->received_frames);
    rbi_ctl_json_u64(&json, "received_bytes", row->received_bytes);
    rbi_ctl_json_u64(&json, "resends", row->resends);
    rbi_ctl_json_u64(&json, "duplicates", row->duplicates);
    rbi_ctl_json_u64(&json, "forwarded", row->forwarded);
    rbi_ctl_json_u64(&json, "queue_bytes", row->queue_bytes);
    rbi_ctl_json_hex(&json, "incarnation", row->incarnation);
    rbi_ctl_json_text(&json, "software", row->software.bytes);
    rbi_ctl_json_text(&json, "why", row->why.bytes);
    rbi_ctl_json_end(&json);
}

struct print {
    const struct rbi_ctl_args *args;
    unsigned shown;
};

/* ---- hosts ---------------------------------------------------------------------------------- */

static int on_host(void *context, unsigned type, const union rbi_wire_body *body, int fd)
{
    struct print *print = context;
    const struct rbi_wire_row_host *row = &body->row_host;
    char since[16] = "-";
    char rtt[24];
    (void)fd;
    if (type != RBI_WIRE_ROW_HOST) {
        return RBI_CTL_OK;
    }
    if (print->args->json) {
        host_json(row);
        return RBI_CTL_OK;
    }
    if (print->shown++ == 0) {
        printf("%-24s %-10s %-6s %-16s %8s %8s %9s %7s %s\n", "HOST", "STATE", "FOR", "VIA", "COST",
               "RTT", "INSTANCES", "STREAMS", "WHY");
    }
    if (row->connected_ms > 0) {
        rbi_ctl_age_format(row->connected_ms, since, sizeof since);
    }
    time_format(row->rtt_ns, rtt, sizeof rtt);
    printf("%-24s %-10s %-6s %-16s %8" PRIu32 " %8s %9" PRIu32 " %7" PRIu32 " %s\n",
           row->name.bytes, state_name(row->state), since, row->via.length ? row->via.bytes : "-",
           row->cost, rtt, row->instances, row->streams,
           row->state == RBI_HOST_UP || row->state == RBI_HOST_REACHABLE ? "" : row->why.bytes);
    return RBI_CTL_OK;
}

int rbi_ctl_hosts(const struct rbi_ctl_args *args)
{
    struct rbi_ctl_control control;
    struct print print = {.args = args};
    int r = rbi_ctl_control_init(&control, args);
    if (r != RBI_CTL_OK) {
        return r;
    }
    r = rbi_ctl_control_query(&control, RBI_QUERY_HOSTS, "", on_host, &print);
    rbi_ctl_control_deinit(&control);
    return r;
}

/* ---- bridge --------------------------------------------------------------------------------- */

/** Of the figures of the daemon those that are about the bridge. */
static int on_status(void *context, unsigned type, const union rbi_wire_body *body, int fd)
{
    static const char prefix[] = "bridge_";
    struct rbi_ctl_json *json = context;
    const struct rbi_wire_row_status *row = &body->row_status;
    (void)fd;
    if (type != RBI_WIRE_ROW_STATUS || strncmp(row->name.bytes, prefix, sizeof prefix - 1) != 0) {
        return RBI_CTL_OK;
    }
    const char *name = row->name.bytes + sizeof prefix - 1;
    if (json && row->text.length > 0) {
        rbi_ctl_json_text(json, name, row->text.bytes);
    } else if (json) {
        rbi_ctl_json_u64(json, name, row->value);
    } else if (row->text.length > 0) {
        printf("%-14s %s\n", name, row->text.bytes);
    } else {
        printf("%-14s %" PRIu64 "\n", name, row->value);
    }
    return RBI_CTL_OK;
}

/** What passes between a neighbour and this host. */
static int on_peer(void *context, unsigned type, const union rbi_wire_body *body, int fd)
{
    struct print *print = context;
    const struct rbi_wire_row_host *row = &body->row_host;
    char rtt[24];
    (void)fd;
    if (type != RBI_WIRE_ROW_HOST || row->peer == 0) {
        return RBI_CTL_OK;
    }
    if (print->args->json) {
        host_json(row);
        return RBI_CTL_OK;
    }
    if (print->shown++ == 0) {
        printf("\n%-24s %-10s %-8s %8s %12s %14s %12s %14s %8s %8s %9s %8s\n", "PEER", "STATE",
               "SECURITY", "RTT", "SENT", "BYTES", "RECEIVED", "BYTES", "RESENDS", "DOUBLES",
               "FORWARDED", "QUEUE");
    }
    time_format(row->rtt_ns, rtt, sizeof rtt);
    printf("%-24s %-10s %-8s %8s %12" PRIu64 " %14" PRIu64 " %12" PRIu64 " %14" PRIu64 " %8" PRIu64
           " %8" PRIu64 " %9" PRIu64 " %8" PRIu64 "\n",
           row->name.bytes, state_name(row->state), secure_name(row->secure), rtt, row->sent_frames,
           row->sent_bytes, row->received_frames, row->received_bytes, row->resends,
           row->duplicates, row->forwarded, row->queue_bytes);
    return RBI_CTL_OK;
}

static int status(const struct rbi_ctl_args *args, struct rbi_ctl_control *control)
{
    struct print print = {.args = args};
    struct rbi_ctl_json json;
    if (args->json) {
        rbi_ctl_json_begin(&json, stdout);
    }
    int r =
        rbi_ctl_control_query(control, RBI_QUERY_STATUS, "", on_status, args->json ? &json : NULL);
    if (args->json) {
        rbi_ctl_json_end(&json);
    }
    return r == RBI_CTL_OK ? rbi_ctl_control_query(control, RBI_QUERY_HOSTS, "", on_peer, &print)
                           : r;
}

static int confirm(const struct rbi_ctl_args *args, struct rbi_ctl_control *control)
{
    struct rbi_wire_confirm body = {.host = {.length = 0}};
    union rbi_wire_body answer;
    unsigned type = 0;
    rbi_text_set(&body.host, args->operand_count == 2 ? args->operands[1] : "");
    const int r = rbi_ctl_control_ask(control, RBI_WIRE_CONFIRM, &body, NULL, NULL, &type, &answer);
    if (r != RBI_CTL_OK) {
        return r;
    }
    if (type == RBI_WIRE_ERROR) {
        return rbi_ctl_fail_bus(args, answer.error.code, "the daemon refused",
                                answer.error.text.bytes);
    }
    if (args->json) {
        struct rbi_ctl_json json;
        rbi_ctl_json_begin(&json, stdout);
        rbi_ctl_json_u64(&json, "confirmed", answer.ok.value);
        rbi_ctl_json_end(&json);
    } else {
        printf("%" PRIu64 " instances that are out of sight are gone\n", answer.ok.value);
    }
    return RBI_CTL_OK;
}

int rbi_ctl_bridge(const struct rbi_ctl_args *args)
{
    struct rbi_ctl_control control;
    const bool confirms = strcmp(args->operands[0], "confirm") == 0;
    if (!confirms && (strcmp(args->operands[0], "status") != 0 || args->operand_count != 1)) {
        return rbi_ctl_fail(args, RBI_CTL_USAGE, "bridge status, or bridge confirm [HOST]");
    }
    if (args->operand_count == 2 &&
        !rbi_host_name_valid(args->operands[1], strlen(args->operands[1]))) {
        return rbi_ctl_fail(args, RBI_CTL_USAGE, "'%s' is not the name of a host",
                            args->operands[1]);
    }
    int r = rbi_ctl_control_init(&control, args);
    if (r != RBI_CTL_OK) {
        return r;
    }
    r = confirms ? confirm(args, &control) : status(args, &control);
    rbi_ctl_control_deinit(&control);
    return r;
}
