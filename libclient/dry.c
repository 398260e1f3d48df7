/* SPDX-License-Identifier: Apache-2.0 */
#include "libclient/internal.h"

#include <stdlib.h>
#include <string.h>

#define TELL_NS UINT64_C(1000000000)

void rbi_dry_deinit(struct rbi_dry_counts *counts)
{
    free(counts->all);
    *counts = (struct rbi_dry_counts){.all = NULL};
}

/* NULL: there are too many, or no memory. */
static struct rbi_dry_count *
count_of(struct rbi_dry_counts *counts, uint64_t cluster, uint32_t kind, const char *id)
{
    for (unsigned i = 0; i < counts->count; i++) {
        struct rbi_dry_count *count = &counts->all[i];
        if (count->cluster == cluster && count->kind == kind && strcmp(count->id, id) == 0) {
            return count;
        }
    }
    if (counts->all == NULL) {
        counts->all = calloc(RBI_DRY_MAX, sizeof *counts->all);
    }
    if (counts->all == NULL || counts->count == RBI_DRY_MAX) {
        return NULL;
    }
    struct rbi_dry_count *count = &counts->all[counts->count++];
    *count = (struct rbi_dry_count){.cluster = cluster, .kind = kind};
    memcpy(count->id, id, strnlen(id, RBI_LABEL_MAX));
    return count;
}

void rbi_dry_add(struct ringbus *bus, uint64_t cluster, uint32_t kind, const char *id)
{
    struct rbi_dry_count *count = count_of(&bus->dry, cluster, kind, id);
    if (count != NULL) {
        count->news++;
        if (bus->dry.due_ns == 0) {
            bus->dry.due_ns = bus->now_ns + TELL_NS;
            rbi_deadline_at_most(bus, bus->dry.due_ns);
        }
    }
}

static uint32_t kind_of(const struct rbi_route_entry *entry)
{
    switch (entry->would_stage) {
    case RBI_ROUTE_SET:
        return RBI_DRY_SET;
    case RBI_ROUTE_TAG:
        return entry->would_rule == RBI_ROUTE_NO_RULE ? RBI_DRY_TAGS : RBI_DRY_CANARY;
    case RBI_ROUTE_RULES:
        return RBI_DRY_RULE;
    case RBI_ROUTE_LOCALITY:
        return RBI_DRY_LOCALITY;
    default:
        return RBI_DRY_NONE;
    }
}

void rbi_dry_picked(struct ringbus *bus,
                    const struct rbi_cluster *cluster,
                    const struct rbi_choice *choice,
                    const struct rbi_end *end)
{
    for (unsigned i = 0; i < choice->result.entry_count; i++) {
        const struct rbi_route_entry *entry = &choice->entries[i];
        /* The chain's own number of the instance has given way to its id: collect_ready(). */
        if (entry->index != (uint32_t)end->peer.instance || entry->stage != RBI_ROUTE_IN) {
            continue;
        }
        const uint32_t kind = kind_of(entry);
        if (kind != RBI_DRY_NONE) {
            rbi_dry_add(bus, cluster->id, kind,
                        rbi_route_rule_id(rbi_cluster_policy(cluster),
                                          (enum rbi_route_stage)entry->would_stage,
                                          entry->would_rule));
        }
        return;
    }
}

void rbi_dry_flush(struct ringbus *bus)
{
    struct rbi_dry_counts *counts = &bus->dry;
    for (unsigned i = 0; i < counts->count; i++) {
        struct rbi_dry_count *count = &counts->all[i];
        struct rbi_wire_dry_run body = {
            .cluster = count->cluster, .kind = count->kind, .count = count->news};
        if (count->news != 0) {
            rbi_text_set(&body.rule, count->id);
            if (rbi_control_send(bus, RBI_WIRE_DRY_RUN, &body, NULL, 0) != 0) {
                count->news = 0; /* else the next daemon is told */
            }
        }
    }
}

uint64_t rbi_dry_tick(struct ringbus *bus, uint64_t now_ns)
{
    struct rbi_dry_counts *counts = &bus->dry;
    bool rest = false;
    if (counts->due_ns == 0 || counts->due_ns > now_ns) {
        return counts->due_ns == 0 ? RBI_NEVER : counts->due_ns;
    }
    rbi_dry_flush(bus);
    for (unsigned i = 0; i < counts->count; i++) {
        rest = rest || counts->all[i].news != 0;
    }
    counts->due_ns = rest ? now_ns + TELL_NS : 0;
    return rest ? counts->due_ns : RBI_NEVER;
}
