/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/blobs.h"

#include "daemon/daemon.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct rbi_blob {
    uint64_t key;
    uint64_t size;
    uint32_t users;
    _Alignas(16) unsigned char bytes[];
};

int rbi_blobs_init(struct rbi_blobs *blobs)
{
    return rbi_map_init(&blobs->by_key);
}

void rbi_blobs_deinit(struct rbi_blobs *blobs)
{
    ck_ht_iterator_t cursor = CK_HT_ITERATOR_INITIALIZER;
    struct rbi_blob *blob = NULL;
    while (blobs->by_key.ready && (blob = rbi_map_next(&blobs->by_key, &cursor)) != NULL) {
        free(blob);
    }
    rbi_map_deinit(&blobs->by_key);
}

int rbi_blob_hold(struct rbi_daemon *daemon, uint64_t key, const void *bytes, uint64_t size)
{
    struct rbi_blobs *blobs = &daemon->publish.blobs;
    struct rbi_blob *blob = rbi_map_get(&blobs->by_key, key);
    if (blob) {
        blob->users++;
        return 0;
    }
    blob = malloc(sizeof(*blob) + size);
    if (!blob) {
        return -ENOMEM;
    }
    *blob = (struct rbi_blob){.key = key, .size = size, .users = 1};
    memcpy(blob->bytes, bytes, size);
    int result = rbi_map_put(&blobs->by_key, key, blob);
    if (result < 0) {
        free(blob);
        return result;
    }
    result = rbi_publish_blob(daemon, key, blob->bytes, size);
    if (result < 0) {
        rbi_blob_release(daemon, key);
    }
    return result;
}

const void *rbi_blob_bytes(struct rbi_daemon *daemon, uint64_t key)
{
    const struct rbi_blob *blob = rbi_map_get(&daemon->publish.blobs.by_key, key);
    return blob ? blob->bytes : NULL;
}

void rbi_blob_release(struct rbi_daemon *daemon, uint64_t key)
{
    struct rbi_blobs *blobs = &daemon->publish.blobs;
    struct rbi_blob *blob = key ? rbi_map_get(&blobs->by_key, key) : NULL;
    if (!blob || --blob->users) {
        return;
    }
    rbi_directory_withdraw(&daemon->publish.writer, key);
    (void)rbi_map_remove(&blobs->by_key, key);
    free(blob);
}

int rbi_blobs_write(struct rbi_blobs *blobs, struct rbi_directory_writer *writer)
{
    ck_ht_iterator_t cursor = CK_HT_ITERATOR_INITIALIZER;
    const struct rbi_blob *blob = NULL;
    while ((blob = rbi_map_next(&blobs->by_key, &cursor)) != NULL) {
        const int result = rbi_directory_publish_blob(writer, blob->key, blob->bytes, blob->size);
        if (result != RBI_PUBLISH_OK) {
            return result;
        }
    }
    return RBI_PUBLISH_OK;
}
