/* SPDX-License-Identifier: Apache-2.0 */
/* show: everything that is known about the endpoints below a path. */
#include "bus/directory.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/rows.h"
#include "shm/layout.h"

#include <inttypes.h>
#include <string.h>

static const char *const counter_names[] = {
#define COUNTER_NAME(name, text) #name,
    RBI_COUNTERS(COUNTER_NAME)
#undef COUNTER_NAME
};

/* A peer's clock word may be anything: only a time in the past makes an age. */
static bool poll_age(const struct rbi_ctl_page *page, uint64_t *out_ms)
{
    uint64_t now_ms = rbi_ctl_now_ns() / 1000000;
    if (page->poll_tick_ms == 0 || page->poll_tick_ms > now_ms) {
        return false;
    }
    *out_ms = now_ms - page->poll_tick_ms;
    return true;
}

static const char *other_end(const struct rbi_wire_row_link *link, const char *path)
{
    if (strcmp(link->requester.bytes, path) == 0) {
        return link->server.bytes;
    }
    return strcmp(link->server.bytes, path) == 0 ? link->requester.bytes : NULL;
}

static void links_json(struct rbi_ctl_json *json, const struct rbi_ctl_rows *rows, const char *path)
{
    rbi_ctl_json_open(json, "links", '[');
    for (size_t i = 0; i < rows->link_count; i++) {
        const struct rbi_wire_row_link *link = &rows->links[i];
        const char *peer = other_end(link, path);
        if (peer == NULL) {
            continue;
        }
        rbi_ctl_json_open(json, NULL, '{');
        rbi_ctl_json_text(json, "peer", peer);
        rbi_ctl_json_hex(json, "link", link->link_id);
        rbi_ctl_json_bool(json, "requester", strcmp(link->requester.bytes, path) == 0);
        rbi_ctl_json_text(json, "state", link->state == 1 ? "linked" : "introduced");
        rbi_ctl_json_u64(json, "age_ms", link->age_ms);
        rbi_ctl_json_u64(json, "bytes", link->side_bytes);
        rbi_ctl_json_close(json, '}');
    }
    rbi_ctl_json_close(json, ']');
}

static void page_json(struct rbi_ctl_json *json, const struct rbi_ctl_page *page)
{
    uint64_t age_ms = 0;
    if (!page->known) {
        return;
    }
    rbi_ctl_json_bool(json, "asleep", page->asleep);
    rbi_ctl_json_bool(json, "busy_poll", page->busy_poll);
    rbi_ctl_json_bool(json, "debug_hold", page->debug_hold);
    rbi_ctl_json_u64(json, "load_depth", page->load_depth);
    rbi_ctl_json_u64(json, "load_ewma_ns", page->load_ewma_ns);
    if (poll_age(page, &age_ms)) {
        rbi_ctl_json_u64(json, "last_poll_ms", age_ms);
    }
    rbi_ctl_json_open(json, "counters", '{');
    for (unsigned i = 0; i < RBI_COUNTER_COUNT; i++) {
        rbi_ctl_json_u64(json, counter_names[i], page->counters[i]);
    }
    rbi_ctl_json_close(json, '}');
}

static void endpoint_json(const struct rbi_ctl_endpoint *endpoint, const struct rbi_ctl_rows *rows)
{
    const struct rbi_wire_row_endpoint *row = &endpoint->row;
    struct rbi_ctl_json json;
    rbi_ctl_json_begin(&json, stdout);
    rbi_ctl_json_text(&json, "path", row->path.bytes);
    rbi_ctl_json_hex(&json, "cluster", row->cluster);
    rbi_ctl_json_i64(&json, "instance", row->instance);
    rbi_ctl_json_u64(&json, "incarnation", row->incarnation);
    rbi_ctl_json_text(&json, "state", rbi_ctl_state_name(row->state));
    rbi_ctl_json_text(&json, "health", rbi_ctl_health_name(row->health));
    if (row->health == RBI_HEALTH_RAMP) {
        rbi_ctl_json_u64(&json, "ramp", row->ramp);
    }
    rbi_ctl_json_bool(&json, "panic", row->panic != 0);
    rbi_ctl_json_u64(&json, "weight", row->weight);
    if (row->pid != 0) {
        rbi_ctl_json_u64(&json, "pid", row->pid);
    }
    rbi_ctl_json_u64(&json, "uid", row->uid);
    rbi_ctl_json_text(&json, "program", row->program.bytes);
    rbi_ctl_json_u64(&json, "age_ms", row->age_ms);
    rbi_ctl_json_u64(&json, "pool_bytes", row->pool_bytes);
    rbi_ctl_json_text(&json, "set", row->set.bytes);
    rbi_ctl_json_text(&json, "idc", row->idc.bytes);
    rbi_ctl_json_text(&json, "tags", row->tags.bytes);
    rbi_ctl_home_json(&json, row);
    page_json(&json, &endpoint->page);
    links_json(&json, rows, row->path.bytes);
    rbi_ctl_json_end(&json);
}

static void page_text(const struct rbi_ctl_page *page)
{
    uint64_t age_ms = 0;
    if (!page->known) {
        puts("  its page could not be read");
        return;
    }
    printf("  %s, %" PRIu64 " waiting, %" PRIu64 " ns each",
           page->busy_poll ? "polls busily"
           : page->asleep  ? "asleep"
                           : "awake",
           page->load_depth, page->load_ewma_ns);
    if (poll_age(page, &age_ms)) {
        printf(", last poll %" PRIu64 " ms ago", age_ms);
    }
    if (page->debug_hold) {
        printf(", holds for a debugger");
    }
    putchar('\n');
    for (unsigned i = 0; i < RBI_COUNTER_COUNT; i++) {
        if (page->counters[i] != 0) {
            printf("  %-16s %" PRIu64 "\n", counter_names[i], page->counters[i]);
        }
    }
}

/* Nothing to tell of one that is well, as most are. */
static void health_text(const struct rbi_wire_row_endpoint *row)
{
    if (row->health == RBI_HEALTH_RAMP) {
        printf("  ramp: back with %" PRIu32 " %% of its weight\n", row->ramp);
    } else if (row->health != RBI_HEALTH_OK) {
        printf("  %s: its calls failed too often\n", rbi_ctl_health_name(row->health));
    }
    if (row->panic != 0) {
        puts("  panic: the shields of its cluster are ignored");
    }
}

static void endpoint_text(const struct rbi_ctl_endpoint *endpoint, const struct rbi_ctl_rows *rows)
{
    const struct rbi_wire_row_endpoint *row = &endpoint->row;
    char age[16];
    char pid[16];
    rbi_ctl_age_format(row->age_ms, age, sizeof age);
    rbi_ctl_pid_format(row->pid, pid, sizeof pid);
    printf("%s\n  %s, weight %" PRIu32 ", incarnation %" PRIu32 ", pid %s, uid %" PRIu32
           ", age %s\n",
           row->path.bytes, rbi_ctl_state_name(row->state), row->weight, row->incarnation, pid,
           row->uid, age);
    if (row->host.length > 0) {
        printf("  of host %s, via %s, cost %" PRIu32 "%s\n", row->host.bytes,
               row->via.length > 0 ? row->via.bytes : "?", row->cost,
               row->stale != 0 ? ", which cannot be reached" : "");
    }
    printf("  program %s, pool %" PRIu64 " KiB", row->program.length > 0 ? row->program.bytes : "?",
           row->pool_bytes / 1024);
    printf("%s%s%s%s%s%s\n", row->set.length > 0 ? ", set " : "", row->set.bytes,
           row->idc.length > 0 ? ", idc " : "", row->idc.bytes,
           row->tags.length > 0 ? ", tags " : "", row->tags.bytes);
    health_text(row);
    page_text(&endpoint->page);
    for (size_t i = 0; i < rows->link_count; i++) {
        const struct rbi_wire_row_link *link = &rows->links[i];
        const char *peer = other_end(link, row->path.bytes);
        if (peer != NULL) {
            rbi_ctl_age_format(link->age_ms, age, sizeof age);
            printf("  %s %s, %s, age %s, %" PRIu64 " KiB\n",
                   peer == link->server.bytes ? "link to" : "link from", peer,
                   link->state == 1 ? "linked" : "being introduced", age, link->side_bytes / 1024);
        }
    }
}

static int show(const struct rbi_ctl_args *args, struct rbi_ctl_control *control)
{
    struct rbi_ctl_rows rows = {.want_pages = true};
    int r = rbi_ctl_rows_endpoints(&rows, control, args->operands[0]);
    if (r == RBI_CTL_OK && rows.endpoint_count == 0) {
        r = rbi_ctl_fail(args, RBI_CTL_NOT_FOUND, "nothing at or below %s", args->operands[0]);
    }
    if (r == RBI_CTL_OK) {
        r = rbi_ctl_rows_links(&rows, control, args->operands[0]);
    }
    for (size_t i = 0; r == RBI_CTL_OK && i < rows.endpoint_count; i++) {
        if (args->json) {
            endpoint_json(&rows.endpoints[i], &rows);
        } else {
            endpoint_text(&rows.endpoints[i], &rows);
        }
    }
    rbi_ctl_rows_deinit(&rows);
    return r;
}

int rbi_ctl_show(const struct rbi_ctl_args *args)
{
    struct rbi_ctl_control control;
    int r = rbi_ctl_prefix_check(args, args->operands[0]);
    if (r == RBI_CTL_OK) {
        r = rbi_ctl_control_init(&control, args);
    }
    if (r != RBI_CTL_OK) {
        return r;
    }
    r = show(args, &control);
    rbi_ctl_control_deinit(&control);
    return r;
}
