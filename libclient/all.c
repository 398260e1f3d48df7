/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/all.c - balance.mode all: what is sent to any instance goes to all that the stages
 * leave; and the list of those, for who wants to speak to each (ringbus_candidates()).
 */
#include "libclient/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool rbi_all_wanted(struct ringbus *bus, const struct ringbus_addr *to)
{
    const struct rbi_cluster *cluster =
        to->instance == RINGBUS_ANY ? rbi_cluster_find(bus, to->cluster) : NULL;
    return cluster != NULL && rbi_hooks_mode(cluster) == RBI_BALANCE_ALL;
}

/* Of the addresses of their links one may be loop or not usable: the sends look themselves. */
int rbi_all_send(struct ringbus *bus,
                 const struct ringbus_addr *to,
                 struct rbi_outgoing *out,
                 const struct rbi_pick *pick)
{
    struct rbi_routed routed;
    struct rbi_cluster *cluster = rbi_cluster_find(bus, to->cluster);
    struct rbi_choice *choice =
        cluster != NULL ? rbi_cluster_choice_for(bus, cluster, pick, &routed) : NULL;
    if (choice != NULL && choice->ready_count > 0) {
        return rbi_send_to_all(bus, choice->ready, choice->ready_count, out);
    }
    if (choice == NULL && cluster != NULL && routed.end != NULL) {
        return rbi_send_to_all(bus, &routed.end, 1, out);
    }
    return rbi_send_no_peer(bus, to);
}

/* ---- candidates ----------------------------------------------------------------------------- */

/* Whom the stages leave of one of the clusters, as if there was no other. */
static int list_one(struct rbi_explain *explain,
                    unsigned at,
                    struct ringbus_instance *out,
                    size_t max,
                    size_t *count)
{
    const int r = rbi_explain_run(explain, at, 1);
    for (unsigned i = 0; r == 0 && i < explain->result.entry_count; i++) {
        const struct rbi_route_entry *entry = &explain->entries[i];
        if (entry->weight == 0) {
            continue;
        }
        if (*count < max) {
            rbi_instance_fill(explain->bus, &explain->heads[at],
                              &explain->instances[at][entry->index], &out[*count]);
        }
        (*count)++;
    }
    return r;
}

static int list(struct rbi_explain *explain, struct ringbus_instance *out, size_t max)
{
    size_t count = 0;
    int r = 0;
    explain->policy->realm.mode = RBI_STAGE_OFF;
    for (unsigned at = 0; r == 0 && at < explain->cluster_count; at++) {
        r = list_one(explain, at, out, max, &count);
    }
    return r != 0 ? r : (int)rbi_min_u64(count, INT32_MAX);
}

int ringbus_candidates(struct ringbus *bus,
                       const char *target,
                       const struct ringbus_message_options *message,
                       struct ringbus_instance *out,
                       size_t max)
{
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    const struct ringbus_explain_options options = {.struct_size = sizeof options,
                                                    .message = message};
    struct rbi_explain *explain = calloc(1, sizeof *explain);
    if (explain == NULL) {
        r = rbi_fail(bus, RINGBUS_E_NO_MEMORY, "not enough memory to list candidates");
    } else if (target == NULL || (out == NULL && max > 0)) {
        r = rbi_fail(bus, RINGBUS_E_ARGUMENT, "no target, or no room for %zu instances", max);
    } else {
        explain->bus = bus;
        r = rbi_explain_read(explain, target, &options);
        r = r == 0 ? list(explain, out, max) : r;
    }
    rbi_leave(bus);
    if (explain != NULL) {
        rbi_explain_free(explain);
    }
    return r;
}
