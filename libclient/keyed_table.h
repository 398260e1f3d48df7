/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_KEYED_TABLE_H
#define RINGBUS_LIBCLIENT_KEYED_TABLE_H
/*
 * libclient/keyed_table.h - slot tables of one cluster, shared by its choices: messages of many
 * classes go to the same instances, and a table is a pure function of those. So tags that nobody
 * has, and rules that come to the same, cost neither a build nor a third of a MiB each.
 */
#include "bus/table.h"

struct rbi_cluster;
struct ringbus;

/** A table that some choices of a cluster use. Never changed while it is used by two. */
struct rbi_keyed_table {
    struct rbi_table table; /* borrows from below */
    uint64_t fingerprint;
    unsigned users;
    uint64_t bytes; /* of owners */
    bool self_made; /* the daemon did not have it */
    uint16_t *owners;
    struct rbi_table_member *members;
};

/**
 * The table of these members: one that another choice has, one that the daemon has, or one that is
 * built, from @p old where that helps.
 * @param old      what the caller used until now, or NULL; the reference is taken over
 * @param members  sorted, from malloc; taken over
 * @return with a reference for the caller; NULL: no memory
 */
struct rbi_keyed_table *rbi_keyed_table_take(struct ringbus *bus,
                                             const struct rbi_cluster *cluster,
                                             struct rbi_keyed_table *old,
                                             const struct rbi_table_shape *shape,
                                             struct rbi_table_member *members,
                                             unsigned count);
/** Gives a reference back. Accepts NULL. */
void rbi_keyed_table_drop(struct rbi_keyed_table *table);

#endif
