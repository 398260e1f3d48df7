/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/quota.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define CONNECT_BURST_FACTOR 10U

int rbi_quota_init(struct rbi_quota *quota, const struct rbi_config *config)
{
    quota->config = config;
    return rbi_map_init(&quota->users);
}

void rbi_quota_deinit(struct rbi_quota *quota)
{
    ck_ht_iterator_t cursor = CK_HT_ITERATOR_INITIALIZER;
    struct rbi_quota_user *user = NULL;
    if (!quota->users.ready) {
        return;
    }
    while ((user = rbi_map_next(&quota->users, &cursor)) != NULL) {
        free(user);
    }
    rbi_map_deinit(&quota->users);
}

static uint64_t quota_key(uint32_t uid)
{
    return (uint64_t)uid + 1; /* the map keeps no 0 */
}

static struct rbi_quota_user *quota_user(struct rbi_quota *quota, uint32_t uid)
{
    struct rbi_quota_user *user = rbi_map_get(&quota->users, quota_key(uid));
    if (user) {
        return user;
    }
    user = calloc(1, sizeof(*user));
    if (!user) {
        return NULL;
    }
    user->uid = uid;
    if (rbi_map_put(&quota->users, quota_key(uid), user) < 0) {
        free(user);
        return NULL;
    }
    return user;
}

static uint64_t quota_limit(const struct rbi_quota *quota, enum rbi_quota_kind kind)
{
    switch (kind) {
    case RBI_QUOTA_CONNECTIONS:
        return quota->config->quota.connections;
    case RBI_QUOTA_INSTANCES:
        return quota->config->quota.instances;
    case RBI_QUOTA_BYTES:
        return quota->config->quota.bytes;
    case RBI_QUOTA_KINDS:
        break;
    }
    return 0;
}

int rbi_quota_charge(struct rbi_quota *quota,
                     uint32_t uid,
                     enum rbi_quota_kind kind,
                     uint64_t amount,
                     struct rbi_charge *out,
                     struct rbi_text *why)
{
    static const char *const names[RBI_QUOTA_KINDS] = {"quota.connections", "quota.instances",
                                                       "quota.bytes"};
    RBI_ASSERT(kind < RBI_QUOTA_KINDS);
    struct rbi_quota_user *user = quota_user(quota, uid);
    if (!user) {
        return -ENOMEM;
    }
    const uint64_t limit = quota_limit(quota, kind);
    const uint64_t used = user->used[kind];
    if (used > limit || amount > limit - used) {
        rbi_text_format(why,
                        "uid %" PRIu32 ": %s is used up: limit %" PRIu64 ", used %" PRIu64
                        ", asked for %" PRIu64,
                        uid, names[kind], limit, used, amount);
        return 1;
    }
    user->used[kind] += amount;
    *out = (struct rbi_charge){.user = user, .kind = kind, .amount = amount};
    return 0;
}

void rbi_charge_release(struct rbi_charge *charge)
{
    if (charge->user) {
        RBI_ASSERT(charge->user->used[charge->kind] >= charge->amount);
        charge->user->used[charge->kind] -= charge->amount;
        charge->user = NULL;
    }
}

uint64_t rbi_gcra_take(uint64_t *tat_ns, uint64_t now_ns, uint32_t per_s, uint32_t burst)
{
    const uint64_t step_ns = UINT64_C(1000000000) / per_s;
    const uint64_t tat = rbi_max_u64(*tat_ns, now_ns);
    const uint64_t room_ns = step_ns * (burst ? burst - 1 : 0);
    if (tat - now_ns > room_ns) {
        return tat - now_ns - room_ns;
    }
    *tat_ns = tat + step_ns;
    return 0;
}

int rbi_quota_connect(struct rbi_quota *quota, uint32_t uid, uint64_t now_ns, struct rbi_text *why)
{
    const uint32_t per_s = quota->config->quota.connects_per_s;
    struct rbi_quota_user *user = quota_user(quota, uid);
    if (!user) {
        return -ENOMEM;
    }
    if (rbi_gcra_take(&user->connect_tat_ns, now_ns, per_s, per_s * CONNECT_BURST_FACTOR) == 0) {
        return 0;
    }
    rbi_text_format(why,
                    "uid %" PRIu32 ": quota.connects is used up: limit %" PRIu32
                    " new connections a second, burst %" PRIu32,
                    uid, per_s, per_s * CONNECT_BURST_FACTOR);
    return 1;
}

static bool quota_user_idle(const struct rbi_quota_user *user, uint64_t now_ns)
{
    for (unsigned kind = 0; kind < RBI_QUOTA_KINDS; kind++) {
        if (user->used[kind]) {
            return false;
        }
    }
    return user->connect_tat_ns <= now_ns;
}

void rbi_quota_sweep(struct rbi_quota *quota, uint64_t now_ns)
{
    /* The map must not change while it is walked: one batch of idle users a sweep. */
    struct rbi_quota_user *idle[64];
    unsigned count = 0;
    ck_ht_iterator_t cursor = CK_HT_ITERATOR_INITIALIZER;
    struct rbi_quota_user *user = NULL;
    while (count < RBI_ARRAY_SIZE(idle) && (user = rbi_map_next(&quota->users, &cursor)) != NULL) {
        if (quota_user_idle(user, now_ns)) {
            idle[count++] = user;
        }
    }
    for (unsigned i = 0; i < count; i++) {
        (void)rbi_map_remove(&quota->users, quota_key(idle[i]->uid));
        free(idle[i]);
    }
}
