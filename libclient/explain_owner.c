/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/explain_owner.c - whose a key is: from the table that callers use, which the directory
 * has, or by building it.
 */
#include "bus/route_keyed.h"
#include "libclient/internal.h"

#include <stdlib.h>
#include <string.h>

/* As deal.c takes them. */
static unsigned members_of(const struct rbi_explain *explain,
                           const struct rbi_route_entry *entries,
                           unsigned entry_count,
                           struct rbi_table_member *members)
{
    unsigned count = 0;
    for (unsigned i = 0; i < entry_count; i++) {
        const struct rbi_route_entry *entry = &entries[i];
        if (entry->hash_weight > 0) {
            members[count++] = (struct rbi_table_member){
                .instance = explain->instances[entry->cluster][entry->index].instance,
                .weight = entry->hash_weight};
        }
    }
    return rbi_table_sort(members, count);
}

static bool
read_table(const struct rbi_explain *explain, uint64_t fingerprint, void *owners, size_t bytes)
{
    uint64_t size = 0;
    return rbi_directory_read_blob(&explain->bus->directory, fingerprint, owners, bytes, &size) ==
               RBI_DIRECTORY_OK &&
           size == bytes;
}

static bool build(const struct rbi_table_shape *shape,
                  const struct rbi_table_member *members,
                  unsigned count,
                  uint16_t *owners)
{
    struct rbi_table_build work;
    void *scratch = malloc(rbi_table_scratch_bytes(shape, count, 0) + 1);
    if (scratch == NULL) {
        return false;
    }
    rbi_table_build_begin(&work, shape, NULL, members, count, owners, scratch);
    while (!rbi_table_build_step(&work, UINT32_MAX)) {
    }
    free(scratch);
    return true;
}

static int32_t owner_of(const struct rbi_explain *explain,
                        const struct rbi_table_shape *shape,
                        const struct rbi_table_member *members,
                        unsigned count)
{
    const size_t bytes = rbi_table_owner_bytes(shape);
    const uint64_t fingerprint = rbi_table_fingerprint(shape, members, count);
    uint16_t *owners = malloc(bytes);
    int32_t instance = 0;
    if (owners != NULL &&
        (read_table(explain, fingerprint, owners, bytes) || build(shape, members, count, owners))) {
        const uint32_t slot = rbi_table_slot(explain->message.key, shape->slots);
        const uint16_t owner = rbi_table_owner(owners, shape->slots, 0, slot);
        instance = owner < count ? members[owner].instance : 0;
    }
    free(owners);
    return instance;
}

static int find(const struct rbi_explain *explain,
                const struct rbi_route_input *input,
                struct rbi_route_entry *entries,
                struct rbi_table_member *members,
                struct rbi_explain_owner *owner)
{
    struct rbi_table_shape shape;
    struct rbi_route_result result;
    if (!rbi_balance_shape(&explain->policy->balance, &shape)) {
        return 0; /* nobody owns a key */
    }
    rbi_route_keyed_run(input, entries, &result);
    const unsigned count = members_of(explain, entries, result.entry_count, members);
    const int32_t instance = count > 0 ? owner_of(explain, &shape, members, count) : 0;
    for (unsigned i = 0; instance != 0 && i < result.entry_count; i++) {
        const struct rbi_route_entry *entry = &entries[i];
        if (entry->hash_weight > 0 &&
            explain->instances[entry->cluster][entry->index].instance == instance) {
            owner->entry = *entry;
            owner->absent = rbi_route_is_absent(input, entry);
            return 1;
        }
    }
    return 0;
}

int rbi_explain_owner(const struct rbi_explain *explain, struct rbi_explain_owner *owner)
{
    struct rbi_route_caller caller;
    const struct rbi_route_input input =
        rbi_explain_input(explain, &caller, 0, explain->cluster_count);
    const unsigned room = rbi_route_keyed_room(&input);
    struct rbi_route_entry *entries = malloc((room + 1U) * sizeof *entries);
    struct rbi_table_member *members = malloc((room + 1U) * sizeof *members);
    const int found =
        entries != NULL && members != NULL ? find(explain, &input, entries, members, owner) : 0;
    free(entries);
    free(members);
    return found;
}
