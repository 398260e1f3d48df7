/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_MAP_H
#define RINGBUS_DAEMON_MAP_H
/*
 * daemon/map.h - 64-bit key to pointer, over ck_ht. The keys 0 and UINT64_MAX are
 * refused, the table uses them itself. One thread.
 */
#include "shm/base.h"

#include <ck_ht.h>

struct rbi_map {
    ck_ht_t table;
    bool ready;
};

RBI_MUST_CHECK int rbi_map_init(struct rbi_map *map);
/** Accepts a zeroed map. The values are the caller's. */
void rbi_map_deinit(struct rbi_map *map);
/** NULL when absent. */
void *rbi_map_get(struct rbi_map *map, uint64_t key);
/** @retval 0; -EEXIST; -EINVAL a key that cannot be kept; -ENOMEM */
RBI_MUST_CHECK int rbi_map_put(struct rbi_map *map, uint64_t key, void *value);
/** The value that was there, or NULL. */
void *rbi_map_remove(struct rbi_map *map, uint64_t key);
uint64_t rbi_map_count(struct rbi_map *map);
/** Walks all values in no order; the map must not change meanwhile. @p cursor starts zeroed. */
void *rbi_map_next(struct rbi_map *map, ck_ht_iterator_t *cursor);

#endif
