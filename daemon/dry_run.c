/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/dry_run.h"

#include "daemon/daemon.h"
#include "daemon/policy.h"
#include "daemon/request.h"

#include <stdlib.h>
#include <string.h>

void rbi_dry_desk_init(struct rbi_dry_desk *desk)
{
    *desk = (struct rbi_dry_desk){.next_number = 0};
    rbi_list_init(&desk->sums);
}

static void sum_free(struct rbi_dry_sum *sum)
{
    rbi_list_remove(&sum->in_desk);
    free(sum);
}

void rbi_dry_desk_deinit(struct rbi_dry_desk *desk)
{
    while (!rbi_list_empty(&desk->sums)) {
        sum_free(RBI_LIST_FIRST(&desk->sums, struct rbi_dry_sum, in_desk));
    }
}

/** Whether there is such a rule, and it is run dry: callers may say anything. */
static bool is_dry(struct rbi_daemon *daemon, uint64_t cluster, uint32_t kind, const char *rule)
{
    struct rbi_cluster *known = rbi_registry_cluster(&daemon->registry, cluster);
    return known && rbi_dry_has(rbi_daemon_policy(daemon, known), kind, rule);
}

void rbi_dry_desk_update(struct rbi_daemon *daemon)
{
    RBI_LIST_EACH(node, spare, &daemon->dry.sums)
    {
        struct rbi_dry_sum *sum = RBI_CONTAINER_OF(node, struct rbi_dry_sum, in_desk);
        if (!is_dry(daemon, sum->cluster, sum->kind, sum->rule.bytes)) {
            sum_free(sum);
        }
    }
}

static struct rbi_dry_sum *sum_find(const struct rbi_dry_desk *desk,
                                    const struct rbi_wire_dry_run *body)
{
    RBI_LIST_EACH(node, spare, &desk->sums)
    {
        struct rbi_dry_sum *sum = RBI_CONTAINER_OF(node, struct rbi_dry_sum, in_desk);
        if (sum->cluster == body->cluster && sum->kind == body->kind &&
            strcmp(sum->rule.bytes, body->rule.bytes) == 0) {
            return sum;
        }
    }
    return NULL;
}

/** NULL: no memory */
static struct rbi_dry_sum *sum_new(struct rbi_daemon *daemon, const struct rbi_wire_dry_run *body)
{
    struct rbi_dry_sum *sum = calloc(1, sizeof(*sum));
    if (sum) {
        sum->number = ++daemon->dry.next_number;
        sum->cluster = body->cluster;
        sum->kind = body->kind;
        sum->rule = body->rule;
        sum->path = rbi_registry_cluster(&daemon->registry, body->cluster)->path;
        rbi_list_push_back(&daemon->dry.sums, &sum->in_desk);
    }
    return sum;
}

void rbi_handle_dry_run(const struct rbi_request *request)
{
    const struct rbi_wire_dry_run *body = &request->body->dry_run;
    struct rbi_daemon *daemon = request->daemon;
    if (!is_dry(daemon, body->cluster, body->kind, body->rule.bytes)) {
        return; /* it is not any more, or never was: nobody is to be told */
    }
    struct rbi_dry_sum *sum = sum_find(&daemon->dry, body);
    sum = sum ? sum : sum_new(daemon, body);
    if (sum) {
        sum->count += rbi_min_u64(body->count, UINT64_MAX - sum->count);
    }
}
