/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/deal.c - whom keys are dealt to: what the router chain says if those who died just now
 * are still counted (bus/route_keyed.h). Which of them are linked is asked later (keyed.c).
 */
#include "bus/route_keyed.h"
#include "libclient/internal.h"

#include <stdlib.h>

static bool reserve(struct rbi_keyed *keyed, unsigned count)
{
    if (count <= keyed->share_room) {
        return true;
    }
    struct rbi_keyed_share *shares = realloc(keyed->shares, count * sizeof *shares);
    if (shares == NULL) {
        return false;
    }
    keyed->shares = shares;
    keyed->share_room = count;
    return true;
}

static bool take(struct rbi_keyed *keyed,
                 const struct rbi_route_input *input,
                 struct rbi_cluster *const *clusters,
                 const struct rbi_route_entry *entries,
                 const struct rbi_route_result *result)
{
    keyed->share_count = 0;
    keyed->realm = clusters[result->realm];
    if (!reserve(keyed, result->keyed_count)) {
        return false;
    }
    for (unsigned i = 0; i < result->entry_count; i++) {
        const struct rbi_route_entry *entry = &entries[i];
        const int32_t instance = input->clusters[entry->cluster].instances[entry->index].instance;
        if (entry->hash_weight > 0 && rbi_choice_targets(clusters[entry->cluster], instance)) {
            keyed->shares[keyed->share_count++] =
                (struct rbi_keyed_share){.instance = instance,
                                         .weight = entry->hash_weight,
                                         .healthy = entry->healthy,
                                         .absent = rbi_route_is_absent(input, entry)};
        }
    }
    return true;
}

bool rbi_keyed_deal(struct rbi_choice *choice,
                    const struct rbi_route_input *input,
                    struct rbi_cluster *const *clusters)
{
    struct rbi_keyed *keyed = &choice->keyed;
    keyed->shields_ignored = choice->result.shields_ignored;
    if (rbi_route_absent(input) == 0) {
        return take(keyed, input, clusters, choice->entries, &choice->result);
    }
    struct rbi_route_result result;
    struct rbi_route_entry *entries = malloc(rbi_route_keyed_room(input) * sizeof *entries);
    if (entries == NULL) {
        return false;
    }
    rbi_route_keyed_run(input, entries, &result);
    /* It has no memory of levels that were left: of one cluster the other run knows better. */
    if (result.realm != choice->result.realm) {
        keyed->shields_ignored = result.shields_ignored;
    }
    choice->result.keyed_emptied = result.keyed_emptied;
    const bool whole = take(keyed, input, clusters, entries, &result);
    free(entries);
    return whole;
}
