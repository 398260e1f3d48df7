/* SPDX-License-Identifier: Apache-2.0 */
/* bus/route_keyed.c - the router chain for keys: with those who died just now. */
#include "bus/route_keyed.h"

#include <string.h>

unsigned rbi_route_absent(const struct rbi_route_input *input)
{
    unsigned count = 0;
    for (unsigned i = 0; i < input->cluster_count; i++) {
        count += input->clusters[i].absent_count;
    }
    return count;
}

unsigned rbi_route_keyed_room(const struct rbi_route_input *input)
{
    return rbi_route_room(input) + rbi_route_absent(input);
}

void rbi_route_keyed_run(const struct rbi_route_input *input,
                         struct rbi_route_entry *entries,
                         struct rbi_route_result *result)
{
    struct rbi_route_cluster clusters[1 + RBI_REALMS_MAX];
    struct rbi_route_input whole = *input;
    RBI_ASSERT(input->cluster_count <= RBI_ARRAY_SIZE(clusters));
    memcpy(clusters, input->clusters, input->cluster_count * sizeof clusters[0]);
    for (unsigned i = 0; i < input->cluster_count; i++) {
        clusters[i].count += clusters[i].absent_count;
    }
    whole.clusters = clusters;
    rbi_route_run(&whole, NULL, entries, result);
}

bool rbi_route_is_absent(const struct rbi_route_input *input, const struct rbi_route_entry *entry)
{
    return entry->index >= input->clusters[entry->cluster].count;
}
