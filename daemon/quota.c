/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/quota.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define CONNECT_BURST_FACTOR 10U

int rbi_quota_init(struct rbi_quota *quota, const struct rbi_config *config)
{
    quota->config = config;
    quota->returning = false;
    rbi_quota_follow(quota);
    return rbi_map_init(&quota->users);
}

/* Bytes are the bridge's own memory, which its process pays for. */
#define BRIDGE_BYTES     (UINT64_C(1) << 40)
#define BRIDGE_CONTROL   10000U /* messages a second, of a proxy */
#define BRIDGE_CONTROLS  1000000U
#define BRIDGE_OWN_CONNS 16U /* beside those of its proxies */

void rbi_quota_follow(struct rbi_quota *quota)
{
    const struct rbi_bridge_config *bridge = &quota->config->bridge;
    /* Those that are seen here, and those in whose stead links are asked for: one a stream. */
    const uint32_t proxies = bridge->limits.instances + bridge->limits.streams;
    quota->bridge = quota->config->quota;
    quota->bridge.connections = proxies + BRIDGE_OWN_CONNS;
    quota->bridge.instances = proxies;
    quota->bridge.links = bridge->limits.streams;
    quota->bridge.user_links = bridge->limits.streams;
    quota->bridge.bytes = BRIDGE_BYTES;
    quota->bridge.control_per_s = BRIDGE_CONTROL;
    quota->bridge.user_control_per_s = BRIDGE_CONTROLS;
    quota->bridge.connects_per_s = proxies; /* they come back all at once */
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
    rbi_shares_init(&user->foreign_bytes);
    if (rbi_map_put(&quota->users, quota_key(uid), user) < 0) {
        free(user);
        return NULL;
    }
    return user;
}

const struct rbi_config_limits *rbi_quota_limits(const struct rbi_quota *quota, uint32_t uid)
{
    return uid == RBI_QUOTA_BRIDGE ? &quota->bridge : rbi_config_limits(quota->config, uid);
}

uint64_t rbi_quota_used(struct rbi_quota *quota, uint32_t uid, enum rbi_quota_kind kind)
{
    const struct rbi_quota_user *user = rbi_map_get(&quota->users, quota_key(uid));
    return user ? user->used[kind] : 0;
}

static uint64_t quota_limit(const struct rbi_config_limits *limits, enum rbi_quota_kind kind)
{
    switch (kind) {
    case RBI_QUOTA_CONNECTIONS:
        return limits->connections;
    case RBI_QUOTA_INSTANCES:
        return limits->instances;
    case RBI_QUOTA_BYTES:
        return limits->bytes;
    case RBI_QUOTA_LINKS:
        return limits->user_links;
    case RBI_QUOTA_WATCHES:
        return limits->user_watches;
    case RBI_QUOTA_NODES:
        return limits->nodes;
    case RBI_QUOTA_NODE_BYTES:
        return limits->node_bytes;
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
    static const char *const names[RBI_QUOTA_KINDS] = {
        "connections", "instances", "bytes", "user_links", "user_watches", "nodes", "node_bytes"};
    RBI_ASSERT(kind < RBI_QUOTA_KINDS && amount > 0);
    struct rbi_quota_user *user = quota_user(quota, uid);
    if (!user) {
        return -ENOMEM;
    }
    const uint64_t limit = quota_limit(rbi_quota_limits(quota, uid), kind);
    const uint64_t used = user->used[kind];
    if ((used > limit || amount > limit - used) && uid == RBI_QUOTA_BRIDGE) {
        rbi_text_format(why,
                        "bridge: %s are used up: limit %" PRIu64 ", used %" PRIu64
                        ", asked for %" PRIu64 "; raise bridge.limits",
                        names[kind], limit, used, amount);
        return 1;
    }
    if (used > limit || amount > limit - used) {
        rbi_text_format(why,
                        "uid %" PRIu32 ": quota.%s is used up: limit %" PRIu64 ", used %" PRIu64
                        ", asked for %" PRIu64 "; end some, or raise it for this uid",
                        uid, names[kind], limit, used, amount);
        return 1;
    }
    user->used[kind] += amount;
    *out = (struct rbi_charge){.user = user, .kind = kind, .amount = amount};
    return 0;
}

int rbi_quota_note(struct rbi_quota *quota,
                   uint32_t uid,
                   enum rbi_quota_kind kind,
                   uint64_t amount,
                   struct rbi_charge *out)
{
    struct rbi_quota_user *user = quota_user(quota, uid);
    if (!user) {
        return -ENOMEM;
    }
    user->used[kind] += amount;
    *out = (struct rbi_charge){.user = user, .kind = kind, .amount = amount};
    return 0;
}

int rbi_quota_charge_bytes(struct rbi_quota *quota,
                           uint32_t uid,
                           uint32_t actor,
                           uint64_t amount,
                           struct rbi_charge *out,
                           struct rbi_text *why)
{
    struct rbi_charge charge = {.user = NULL};
    const int result = rbi_quota_charge(quota, uid, RBI_QUOTA_BYTES, amount, &charge, why);
    if (result != 0 || uid == actor) {
        *out = result == 0 ? charge : *out;
        return result;
    }
    struct rbi_shares *shares = &charge.user->foreign_bytes;
    const uint64_t limit = rbi_quota_limits(quota, uid)->bytes;
    const uint64_t remaining = limit - (charge.user->used[RBI_QUOTA_BYTES] - amount);
    if (amount > rbi_shares_room(shares, remaining, actor)) {
        rbi_text_format(why,
                        "uid %" PRIu32 ": its share of quota.bytes of uid %" PRIu32
                        " is used up: limit %" PRIu64 ", used %" PRIu64 ", by uid %" PRIu32
                        " %" PRIu64 ", asked for %" PRIu64 "; the rest is kept for others",
                        actor, uid, limit, limit - remaining, actor, rbi_shares_used(shares, actor),
                        amount);
        rbi_charge_release(&charge);
        return 1;
    }
    charge.share = rbi_share_take(shares, actor, amount);
    if (!charge.share) {
        rbi_charge_release(&charge);
        return -ENOMEM;
    }
    *out = charge;
    return 0;
}

void rbi_charge_cause(struct rbi_charge *charge, uint32_t actor)
{
    RBI_ASSERT(charge->kind == RBI_QUOTA_BYTES && !charge->share);
    if (charge->user && charge->user->uid != actor) {
        charge->share = rbi_share_take(&charge->user->foreign_bytes, actor, charge->amount);
    }
}

void rbi_charge_release(struct rbi_charge *charge)
{
    if (charge->user) {
        RBI_ASSERT(charge->user->used[charge->kind] >= charge->amount);
        charge->user->used[charge->kind] -= charge->amount;
        rbi_share_return(charge->share, charge->amount);
        *charge = (struct rbi_charge){.user = NULL};
    }
}

/* ---- buckets --------------------------------------------------------------------------- */

uint64_t rbi_quota_pace(uint64_t *tat_ns, uint64_t now_ns, uint32_t per_s, uint32_t burst)
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
    const uint32_t per_s = rbi_quota_limits(quota, uid)->connects_per_s;
    struct rbi_quota_user *user = quota_user(quota, uid);
    if (!user) {
        return -ENOMEM;
    }
    /* Everybody at once, as often as a restart: that is no flood, up to what a user may have. */
    if (quota->returning && user->returns < rbi_quota_limits(quota, uid)->connections) {
        user->returns++;
        return 0;
    }
    const uint64_t wait_ns =
        rbi_quota_pace(&user->connect_tat_ns, now_ns, per_s, per_s * CONNECT_BURST_FACTOR);
    if (wait_ns == 0) {
        return 0;
    }
    rbi_text_format(why,
                    "uid %" PRIu32 ": quota.connects is used up: limit %" PRIu32
                    " new connections a second, burst %" PRIu32 "; try again in %" PRIu64 " ms",
                    uid, per_s, per_s * CONNECT_BURST_FACTOR, wait_ns / 1000000 + 1);
    return 1;
}

/** @return ns to wait after a message that has been let in whatever the bucket held */
static uint64_t quota_take_anyway(uint64_t *tat_ns, uint64_t now_ns, uint32_t per_s)
{
    const uint64_t wait_ns = rbi_quota_pace(tat_ns, now_ns, per_s, per_s * 2);
    if (wait_ns) {
        /* It is paid for by waiting for the next token as well. */
        *tat_ns += UINT64_C(1000000000) / per_s;
    }
    return wait_ns;
}

uint64_t rbi_quota_control(const struct rbi_quota *quota,
                           struct rbi_quota_user *user,
                           uint64_t *tat_ns,
                           uint64_t now_ns,
                           struct rbi_text *why)
{
    const struct rbi_config_limits *limits = rbi_quota_limits(quota, user->uid);
    const uint64_t own_ns = quota_take_anyway(tat_ns, now_ns, limits->control_per_s);
    const uint64_t user_ns =
        quota_take_anyway(&user->control_tat_ns, now_ns, limits->user_control_per_s);
    const uint64_t wait_ns = rbi_max_u64(own_ns, user_ns);
    if (wait_ns) {
        const uint32_t per_s =
            own_ns >= user_ns ? limits->control_per_s : limits->user_control_per_s;
        rbi_text_format(why,
                        "uid %" PRIu32 ": quota.%s is used up: limit %" PRIu32
                        " messages a second%s, burst %" PRIu32 "; it is read more slowly",
                        user->uid, own_ns >= user_ns ? "control" : "user_control", per_s,
                        own_ns >= user_ns ? " for each endpoint" : "", per_s * 2);
    }
    return wait_ns;
}

static bool quota_user_idle(const struct rbi_quota_user *user, uint64_t now_ns)
{
    for (unsigned kind = 0; kind < RBI_QUOTA_KINDS; kind++) {
        if (user->used[kind]) {
            return false;
        }
    }
    return user->connect_tat_ns <= now_ns && user->control_tat_ns <= now_ns;
}

void rbi_quota_sweep(struct rbi_quota *quota, uint64_t now_ns)
{
    if (quota->returning) {
        return; /* what a user has used of its returns is not to be forgotten */
    }
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
