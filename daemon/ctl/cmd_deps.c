/* SPDX-License-Identifier: Apache-2.0 */
/* deps: which cluster calls which, as the links say. */
#include "bus/pidf.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/** One arrow. Paths are lent by the rows, and as long as is said. */
struct edge {
    const char *from;
    const char *to;
    int from_length;
    int to_length;
};

/* Without the instance; those without a path of their own are one caller. */
static int cluster_length(const char *path)
{
    static const char anonymous[] = "/anon";
    const char *slash = strrchr(path, '/');
    if (rbi_ctl_path_anonymous(path)) {
        return (int)sizeof anonymous - 1;
    }
    return slash != NULL && slash != path ? (int)(slash - path) : (int)strlen(path);
}

static int text_compare(const char *a, int a_length, const char *b, int b_length)
{
    const int order = memcmp(a, b, (size_t)(a_length < b_length ? a_length : b_length));
    return order != 0 ? order : a_length - b_length;
}

static int edge_compare(const void *a, const void *b)
{
    const struct edge *left = a;
    const struct edge *right = b;
    const int order = text_compare(left->from, left->from_length, right->from, right->from_length);
    return order != 0 ? order
                      : text_compare(left->to, left->to_length, right->to, right->to_length);
}

static void edge_print(const struct rbi_ctl_args *args, const struct edge *edge, uint64_t links)
{
    char from[RBI_PATH_MAX + 1];
    char to[RBI_PATH_MAX + 1];
    (void)snprintf(from, sizeof from, "%.*s", edge->from_length, edge->from);
    (void)snprintf(to, sizeof to, "%.*s", edge->to_length, edge->to);
    if (args->json) {
        struct rbi_ctl_json json;
        rbi_ctl_json_begin(&json, stdout);
        rbi_ctl_json_text(&json, "from", from);
        rbi_ctl_json_text(&json, "to", to);
        rbi_ctl_json_u64(&json, "links", links);
        rbi_ctl_json_end(&json);
    } else {
        printf("%-40s -> %-40s %6" PRIu64 "\n", from, to, links);
    }
}

static int edges_print(const struct rbi_ctl_args *args, const struct rbi_ctl_rows *rows)
{
    const bool all = (args->given & RBI_CTL_ALL) != 0;
    struct edge *edges = calloc(rows->link_count + 1, sizeof *edges);
    size_t count = 0;
    if (edges == NULL) {
        return rbi_ctl_fail(args, RBI_CTL_FAILED, "no memory for %zu links", rows->link_count);
    }
    for (size_t i = 0; i < rows->link_count; i++) {
        const char *from = rows->links[i].requester.bytes;
        const char *to = rows->links[i].server.bytes;
        if (rows->links[i].state != 0) { /* else it is being introduced */
            edges[count++] =
                (struct edge){.from = from,
                              .to = to,
                              .from_length = all ? (int)strlen(from) : cluster_length(from),
                              .to_length = all ? (int)strlen(to) : cluster_length(to)};
        }
    }
    qsort(edges, count, sizeof *edges, edge_compare);
    if (count > 0 && !args->json) {
        printf("%-40s    %-40s %6s\n", "CALLER", "CALLED", "LINKS");
    }
    for (size_t i = 0, next = 0; i < count; i = next) {
        for (next = i + 1; next < count && edge_compare(&edges[i], &edges[next]) == 0;) {
            next++;
        }
        edge_print(args, &edges[i], next - i);
    }
    free(edges);
    return RBI_CTL_OK;
}

int rbi_ctl_deps(const struct rbi_ctl_args *args)
{
    struct rbi_ctl_control control;
    struct rbi_ctl_rows rows = {.want_pages = false};
    const char *prefix = NULL;
    int r = rbi_ctl_control_init_below(&control, args, &prefix);
    if (r != RBI_CTL_OK) {
        return r;
    }
    r = rbi_ctl_rows_links(&rows, &control, prefix);
    if (r == RBI_CTL_OK) {
        r = edges_print(args, &rows);
    }
    rbi_ctl_rows_deinit(&rows);
    rbi_ctl_control_deinit(&control);
    return r;
}
