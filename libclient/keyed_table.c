/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/keyed_table.c - slot tables of a cluster, each once for all who use it. */
#include "libclient/keyed_table.h"

#include "libclient/internal.h"

#include <stdlib.h>

void rbi_keyed_table_drop(struct rbi_keyed_table *table)
{
    if (table != NULL && --table->users == 0) {
        free(table->owners);
        free(table->members);
        free(table);
    }
}

static struct rbi_keyed_table *table_new(uint64_t bytes)
{
    struct rbi_keyed_table *table = calloc(1, sizeof *table);
    if (table == NULL) {
        return NULL;
    }
    table->users = 1;
    table->bytes = bytes;
    table->owners = malloc(bytes);
    if (table->owners == NULL) {
        free(table);
        return NULL;
    }
    return table;
}

/* What another choice of the cluster uses. NULL: none has it */
static struct rbi_keyed_table *find(const struct rbi_cluster *cluster, uint64_t fingerprint)
{
    for (unsigned i = 0; i < cluster->choice_count; i++) {
        struct rbi_keyed_table *shared = cluster->choices[i]->keyed.shared;
        if (shared != NULL && shared->fingerprint == fingerprint) {
            return shared;
        }
    }
    return NULL;
}

/* Untrusted, as all that was read: whoever builds on it takes every owner for a member. */
static bool is_sound(const uint16_t *owners, uint64_t bytes, unsigned count)
{
    bool sound = true;
    for (uint64_t i = 0; i < bytes / sizeof *owners; i++) {
        sound = sound && (owners[i] < count || owners[i] == RBI_TABLE_NONE);
    }
    return sound;
}

/* The daemon has it already. @param spoiled  set where the owners are overwritten in part */
static bool read_table(struct ringbus *bus,
                       struct rbi_keyed_table *table,
                       uint64_t fingerprint,
                       unsigned count,
                       bool *spoiled)
{
    uint64_t size = 0;
    if (!bus->directory_mapped) {
        return false;
    }
    const int r =
        rbi_directory_read_blob(&bus->directory, fingerprint, table->owners, table->bytes, &size);
    const bool whole = r == RBI_DIRECTORY_OK && size == table->bytes &&
                       is_sound(table->owners, table->bytes, count);
    *spoiled = !whole && (r == RBI_DIRECTORY_BUSY || r == RBI_DIRECTORY_OK);
    return whole;
}

/* Brings the owners up to date from the table before. @return false: no memory */
static bool build(struct rbi_keyed_table *table,
                  const struct rbi_table *old,
                  const struct rbi_table_shape *shape,
                  const struct rbi_table_member *members,
                  unsigned count)
{
    struct rbi_table_build work;
    void *scratch =
        malloc(rbi_table_scratch_bytes(shape, count, old != NULL ? old->member_count : 0) + 1);
    if (scratch == NULL) {
        return false;
    }
    rbi_table_build_begin(&work, shape, old, members, count, table->owners, scratch);
    while (!rbi_table_build_step(&work, UINT32_MAX)) {
    }
    free(scratch);
    return true;
}

/* Fills a table, in place where it is the old one. @return false: no memory */
static bool fill(struct ringbus *bus,
                 struct rbi_keyed_table *table,
                 const struct rbi_keyed_table *old,
                 const struct rbi_table_shape *shape,
                 struct rbi_table_member *members,
                 unsigned count)
{
    bool spoiled = false;
    const uint64_t fingerprint = rbi_table_fingerprint(shape, members, count);
    table->self_made = !read_table(bus, table, fingerprint, count, &spoiled);
    if (table->self_made) {
        const bool usable = old != NULL && !(spoiled && old == table);
        if (!build(table, usable ? &old->table : NULL, shape, members, count)) {
            return false;
        }
    }
    free(table->members);
    table->members = members;
    table->fingerprint = fingerprint;
    table->table = (struct rbi_table){
        .shape = *shape, .members = members, .member_count = count, .owners = table->owners};
    return true;
}

struct rbi_keyed_table *rbi_keyed_table_take(struct ringbus *bus,
                                             const struct rbi_cluster *cluster,
                                             struct rbi_keyed_table *old,
                                             const struct rbi_table_shape *shape,
                                             struct rbi_table_member *members,
                                             unsigned count)
{
    const uint64_t bytes = rbi_table_owner_bytes(shape);
    struct rbi_keyed_table *table = find(cluster, rbi_table_fingerprint(shape, members, count));
    if (table != NULL) {
        table->users++;
        rbi_keyed_table_drop(old);
        free(members);
        return table;
    }
    table = old != NULL && old->users == 1 && old->bytes == bytes ? old : table_new(bytes);
    if (table == NULL || !fill(bus, table, old, shape, members, count)) {
        if (table != old) {
            rbi_keyed_table_drop(table);
        }
        rbi_keyed_table_drop(old);
        free(members);
        return NULL;
    }
    if (table != old) {
        rbi_keyed_table_drop(old);
    }
    return table;
}
