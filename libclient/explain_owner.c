/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/explain_owner.c - whose a key is: from the table that callers use, which the directory
 * has, or by building it.
 */
#include "libclient/internal.h"

#include <stdlib.h>
#include <string.h>

/* As keyed.c takes them. */
static unsigned members_of(const struct rbi_explain *explain, struct rbi_table_member *members)
{
    unsigned count = 0;
    for (unsigned i = 0; i < explain->result.entry_count; i++) {
        const struct rbi_route_entry *entry = &explain->entries[i];
        if (entry->hash_weight > 0) {
            members[count++] = (struct rbi_table_member){
                .instance = explain->instances[entry->cluster][entry->index].instance,
                .weight = entry->hash_weight};
        }
    }
    for (unsigned i = 0; explain->result.realm == 0 && i < explain->heads[0].absent_count; i++) {
        members[count++] = (struct rbi_table_member){.instance = explain->waited[i].instance,
                                                     .weight = explain->waited[i].weight};
    }
    return rbi_table_sort(members, count);
}

static bool
read_table(struct rbi_explain *explain, uint64_t fingerprint, void *owners, size_t bytes)
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

static int32_t owner_of(struct rbi_explain *explain,
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

const struct rbi_route_entry *rbi_explain_owner(struct rbi_explain *explain, int32_t *instance)
{
    struct rbi_table_shape shape;
    *instance = 0;
    if (!rbi_balance_shape(&explain->policy->balance, &shape)) {
        return NULL; /* nobody owns a key */
    }
    struct rbi_table_member *members =
        malloc((explain->result.entry_count + RBI_DIRECTORY_ABSENT_MAX + 1U) * sizeof *members);
    const unsigned count = members != NULL ? members_of(explain, members) : 0;
    *instance = count > 0 ? owner_of(explain, &shape, members, count) : 0;
    free(members);
    for (unsigned i = 0; *instance != 0 && i < explain->result.entry_count; i++) {
        const struct rbi_route_entry *entry = &explain->entries[i];
        if (entry->hash_weight > 0 &&
            explain->instances[entry->cluster][entry->index].instance == *instance) {
            return entry;
        }
    }
    return NULL;
}
