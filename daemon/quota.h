/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_QUOTA_H
#define RINGBUS_DAEMON_QUOTA_H
/*
 * daemon/quota.h - who holds how much. Everything that a client makes the daemon keep
 * carries a charge against its uid, given back when the thing ends.
 */
#include "bus/config.h"
#include "bus/wire.h"
#include "daemon/map.h"

enum rbi_quota_kind {
    RBI_QUOTA_CONNECTIONS = 0,
    RBI_QUOTA_INSTANCES = 1,
    RBI_QUOTA_BYTES = 2,
    RBI_QUOTA_KINDS = 3,
};

struct rbi_quota_user {
    uint32_t uid;
    uint64_t used[RBI_QUOTA_KINDS];
    uint64_t connect_tat_ns; /* theoretical arrival time of the next connection */
};

struct rbi_quota {
    struct rbi_map users;
    const struct rbi_config *config;
};

/** Zero-initialise; releasing a zeroed or released one does nothing. */
struct rbi_charge {
    struct rbi_quota_user *user;
    enum rbi_quota_kind kind;
    uint64_t amount;
};

/** @param config  lent; read at each call, so that a reload takes effect */
RBI_MUST_CHECK int rbi_quota_init(struct rbi_quota *quota, const struct rbi_config *config);
void rbi_quota_deinit(struct rbi_quota *quota);

/**
 * Charges @p amount.
 * @retval 0        charged; @p out must be released
 * @retval 1        refused: @p why names uid, quota, limit and used
 * @retval -ENOMEM
 */
RBI_MUST_CHECK int rbi_quota_charge(struct rbi_quota *quota,
                                    uint32_t uid,
                                    enum rbi_quota_kind kind,
                                    uint64_t amount,
                                    struct rbi_charge *out,
                                    struct rbi_text *why);
void rbi_charge_release(struct rbi_charge *charge);

/** Takes one connection of this uid out of its bucket. @retval 0; 1 refused, as above; -ENOMEM */
RBI_MUST_CHECK int
rbi_quota_connect(struct rbi_quota *quota, uint32_t uid, uint64_t now_ns, struct rbi_text *why);
/** Forgets users who hold nothing and whose bucket is full. Now and then. */
void rbi_quota_sweep(struct rbi_quota *quota, uint64_t now_ns);

/**
 * Generic cell rate algorithm: a token bucket in one word.
 * @param tat_ns    state; 0 = full
 * @param per_s     tokens a second, not 0
 * @param burst     size of the bucket
 * @return 0 when a token was taken, else ns until there is one
 */
uint64_t rbi_gcra_take(uint64_t *tat_ns, uint64_t now_ns, uint32_t per_s, uint32_t burst);

#endif
