/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/map.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#define MAP_CAPACITY_MIN 16U

static void *map_alloc(size_t size)
{
    return malloc(size);
}

static void *map_realloc(void *old, size_t old_size, size_t size, bool may_move)
{
    (void)old_size;
    (void)may_move;
    return realloc(old, size);
}

static void map_release(void *p, size_t size, bool defer)
{
    (void)size;
    (void)defer; /* one thread: nobody can still be reading */
    free(p);
}

static struct ck_malloc map_allocator = {
    .malloc = map_alloc, .realloc = map_realloc, .free = map_release};

int rbi_map_init(struct rbi_map *map)
{
    /* The seed is secret: clients choose paths, and must not choose collisions with them. */
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed)) {
        return -EIO;
    }
    /* WORKLOAD_DELETE: without it removed entries stay as tombstones, and the table only grows. */
    if (!ck_ht_init(&map->table, CK_HT_MODE_DIRECT | CK_HT_WORKLOAD_DELETE, NULL, &map_allocator,
                    MAP_CAPACITY_MIN, seed)) {
        return -ENOMEM;
    }
    map->ready = true;
    return 0;
}

void rbi_map_deinit(struct rbi_map *map)
{
    if (map->ready) {
        ck_ht_destroy(&map->table);
        map->ready = false;
    }
}

static bool map_key_ok(uint64_t key)
{
    return key != CK_HT_KEY_EMPTY && key != CK_HT_KEY_TOMBSTONE;
}

void *rbi_map_get(struct rbi_map *map, uint64_t key)
{
    ck_ht_hash_t hash;
    ck_ht_entry_t entry;
    if (!map_key_ok(key)) {
        return NULL;
    }
    ck_ht_hash_direct(&hash, &map->table, key);
    ck_ht_entry_key_set_direct(&entry, key);
    if (!ck_ht_get_spmc(&map->table, hash, &entry)) {
        return NULL;
    }
    return (void *)ck_ht_entry_value_direct(&entry); /* NOLINT(performance-no-int-to-ptr) */
}

int rbi_map_put(struct rbi_map *map, uint64_t key, void *value)
{
    ck_ht_hash_t hash;
    ck_ht_entry_t entry;
    if (!map_key_ok(key)) {
        return -EINVAL;
    }
    if (rbi_map_get(map, key)) {
        return -EEXIST;
    }
    ck_ht_hash_direct(&hash, &map->table, key);
    ck_ht_entry_set_direct(&entry, hash, key, (uintptr_t)value);
    return ck_ht_put_spmc(&map->table, hash, &entry) ? 0 : -ENOMEM;
}

void *rbi_map_remove(struct rbi_map *map, uint64_t key)
{
    ck_ht_hash_t hash;
    ck_ht_entry_t entry;
    if (!map_key_ok(key)) {
        return NULL;
    }
    ck_ht_hash_direct(&hash, &map->table, key);
    ck_ht_entry_key_set_direct(&entry, key);
    if (!ck_ht_remove_spmc(&map->table, hash, &entry)) {
        return NULL;
    }
    return (void *)ck_ht_entry_value_direct(&entry); /* NOLINT(performance-no-int-to-ptr) */
}

uint64_t rbi_map_count(struct rbi_map *map)
{
    return ck_ht_count(&map->table);
}

void *rbi_map_next(struct rbi_map *map, ck_ht_iterator_t *cursor)
{
    ck_ht_entry_t *entry = NULL;
    if (!ck_ht_next(&map->table, cursor, &entry)) {
        return NULL;
    }
    return (void *)ck_ht_entry_value_direct(entry); /* NOLINT(performance-no-int-to-ptr) */
}
