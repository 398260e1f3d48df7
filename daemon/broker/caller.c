/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/caller.h"

#include "daemon/broker/face.h"

#include <stdlib.h>
#include <xxhash.h>

/* Of two callers with one key, one in 2^64, each counts the other's: no more than a limit. */
static uint64_t key_of(const struct rbi_face *face, const struct ringbus_addr *peer)
{
    const uint64_t words[3] = {face->number, peer->cluster,
                               (uint64_t)(uint32_t)peer->instance << 32 | peer->incarnation};
    const uint64_t key = XXH3_64bits(words, sizeof words);
    return key == 0 || key == UINT64_MAX ? 1 : key;
}

struct rbi_caller *rbi_caller_find(struct rbi_face *face, const struct ringbus_addr *peer)
{
    return rbi_map_get(&face->broker->callers, key_of(face, peer));
}

struct rbi_caller *rbi_caller_get(struct rbi_face *face, const struct ringbus_addr *peer)
{
    struct rbi_caller *caller = rbi_caller_find(face, peer);
    if (caller != NULL) {
        return caller;
    }
    caller = calloc(1, sizeof *caller);
    if (caller == NULL) {
        return NULL;
    }
    caller->key = key_of(face, peer);
    if (rbi_map_put(&face->broker->callers, caller->key, caller) != 0) {
        free(caller);
        return NULL;
    }
    return caller;
}

void rbi_caller_settle(struct rbi_broker *broker, struct rbi_caller *caller)
{
    if (caller != NULL && caller->calls == 0 && caller->held_ns == 0) {
        (void)rbi_map_remove(&broker->callers, caller->key);
        free(caller);
    }
}

void rbi_callers_deinit(struct rbi_broker *broker)
{
    ck_ht_iterator_t cursor = CK_HT_ITERATOR_INITIALIZER;
    struct rbi_caller *caller = NULL;
    if (!broker->callers.ready) {
        return;
    }
    while ((caller = rbi_map_next(&broker->callers, &cursor)) != NULL) {
        free(caller);
    }
    rbi_map_deinit(&broker->callers);
}
