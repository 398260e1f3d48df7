/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_IMPORT_IMPL_H
#define RINGBUS_BUS_IMPORT_IMPL_H
/*
 * bus/import_impl.h - what the parts of bus/import share: import_table.c keeps the entries,
 * import_list.c takes what hosts tell, import_judge.c decides who is gone, import_next.c
 * says what is to be done, import.c is what its user calls.
 */
#include "bus/import.h"

#define NEVER UINT64_MAX

/* ---- import_table.c ---------------------------------------------------------------------- */

/** The entry of a host with these ids that is not GONE, or RBI_IMPORT_NONE. */
uint32_t
rbi_import_lookup(const struct rbi_import *import, uint32_t host, const struct rbi_pidf *pidf);
/** A new one, not listed yet, or RBI_IMPORT_NONE: its host has its share already. */
uint32_t rbi_import_new(struct rbi_import *import, uint32_t host, const struct rbi_remote *remote);
/** Takes it out of its cluster: it is GONE from now on, and its removal is to be told. */
void rbi_import_retire(struct rbi_import *import, uint32_t idx, uint32_t reason);
/** A GONE one, whose removal was told: others with its path may be registered now. */
void rbi_import_release(struct rbi_import *import, uint32_t idx, uint64_t now_ns);
/** Another entry with the same ids that is registered, even if its removal is under way. */
uint32_t rbi_import_holder(const struct rbi_import *import, uint32_t idx);
/** The cluster, or NULL. */
struct rbi_import_cluster *rbi_import_cluster(const struct rbi_import *import, uint64_t id);
/** Something of the entry is to be told. */
void rbi_import_queue(struct rbi_import *import, uint32_t idx);
/** The next of which something is to be told, or RBI_IMPORT_NONE. */
uint32_t rbi_import_unqueue(struct rbi_import *import);

/* ---- import_judge.c ---------------------------------------------------------------------- */

/** State, and whether it is out of sight, from what is known of it and its host. */
void rbi_import_see(struct rbi_import *import, uint32_t idx);
/** Some of a cluster went out of sight: are they too many? @param tell  the list itself said so */
void rbi_import_guard(struct rbi_import *import, uint64_t id, bool tell, uint64_t now_ns);
/** Retires one though its host has not said so: it lists it still, perhaps, and will not again. */
void rbi_import_drop(struct rbi_import *import, uint32_t idx, uint32_t reason);
/** Retires who has both signals, and finds out what is due when. */
void rbi_import_tick(struct rbi_import *import, uint64_t now_ns);
/** Something is due at that time. */
static inline void rbi_import_soon(struct rbi_import *import, uint64_t at_ns)
{
    import->due_ns = rbi_min_u64(import->due_ns, at_ns);
}

/* ---- import.c ---------------------------------------------------------------------------- */

/** Index of a host, or RBI_IMPORT_NONE. */
uint32_t rbi_import_host(const struct rbi_import *import, uint64_t id);
/** Whether the configuration wants it. */
bool rbi_import_wanted(const struct rbi_import *import, const struct rbi_remote *remote);
/** All of a host are seen anew, since something of the host itself has changed. */
void rbi_import_see_host(struct rbi_import *import, uint32_t at, uint64_t now_ns);
/** Its list is to be asked for: at once, or later if that does not help. */
void rbi_import_want_list(struct rbi_import *import, uint32_t at, bool whole, uint64_t now_ns);

#endif
