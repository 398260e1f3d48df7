/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_QUOTA_H
#define RINGBUS_DAEMON_QUOTA_H
/*
 * daemon/quota.h - who holds how much. Everything that a client makes the daemon keep
 * carries a charge against a uid, given back when the thing ends; what a client makes the
 * daemon do is paid from buckets of its uid.
 *
 * Who pays: each owner for its memory, a server's end of a link too, for it is the server's
 * memory; but of that a client of another uid can cause a fair share only (share.h). The
 * link itself counts for the uid of its requester.
 */
#include "bus/config.h"
#include "bus/wire.h"
#include "daemon/map.h"
#include "daemon/share.h"

/**
 * Pays for the proxies of other hosts, as if it were a user: what they may hold is what
 * bridge.limits says, and whoever runs the bridge keeps its own. No process has this uid.
 */
#define RBI_QUOTA_BRIDGE UINT32_MAX

enum rbi_quota_kind {
    RBI_QUOTA_CONNECTIONS = 0,
    RBI_QUOTA_INSTANCES = 1,
    RBI_QUOTA_BYTES = 2,
    RBI_QUOTA_LINKS = 3,
    RBI_QUOTA_WATCHES = 4,
    RBI_QUOTA_NODES = 5,
    RBI_QUOTA_NODE_BYTES = 6,
    RBI_QUOTA_KINDS = 7,
};

struct rbi_quota_user {
    uint32_t uid;
    uint64_t used[RBI_QUOTA_KINDS];
    struct rbi_shares foreign_bytes; /* of used[RBI_QUOTA_BYTES]: caused by other users */
    uint32_t returns;                /* connections let in while clients come back */
    uint64_t connect_tat_ns;         /* theoretical arrival time of the next connection */
    uint64_t control_tat_ns;         /* and of the next control message */
};

struct rbi_quota {
    struct rbi_map users;
    bool returning; /* the daemon is new: all clients of the last one come at once (settle.h) */
    const struct rbi_config *config;
    struct rbi_config_limits bridge; /* of RBI_QUOTA_BRIDGE; follow config */
};

/** Zero-initialise; releasing a zeroed or released one does nothing. */
struct rbi_charge {
    struct rbi_quota_user *user;
    enum rbi_quota_kind kind;
    uint64_t amount;
    struct rbi_share *share; /* of the uid that caused it; NULL: its own */
};

/** @param config  lent; read at each call, so that a reload takes effect */
RBI_MUST_CHECK int rbi_quota_init(struct rbi_quota *quota, const struct rbi_config *config);
void rbi_quota_deinit(struct rbi_quota *quota);
/** The configuration has changed. */
void rbi_quota_follow(struct rbi_quota *quota);

/** The limits of a user. Lent until the next reload. */
const struct rbi_config_limits *rbi_quota_limits(const struct rbi_quota *quota, uint32_t uid);

/** What a user holds of a kind. */
uint64_t rbi_quota_used(struct rbi_quota *quota, uint32_t uid, enum rbi_quota_kind kind);

/**
 * Charges @p amount, not 0.
 * @retval 0        charged; @p out must be released
 * @retval 1        refused: @p why names uid, quota, limit, used, and what can be done
 * @retval -ENOMEM
 */
RBI_MUST_CHECK int rbi_quota_charge(struct rbi_quota *quota,
                                    uint32_t uid,
                                    enum rbi_quota_kind kind,
                                    uint64_t amount,
                                    struct rbi_charge *out,
                                    struct rbi_text *why);
/**
 * Charges what exists anyhow, whatever the limit says: it was let in before.
 * @retval 0; -ENOMEM
 */
RBI_MUST_CHECK int rbi_quota_note(struct rbi_quota *quota,
                                  uint32_t uid,
                                  enum rbi_quota_kind kind,
                                  uint64_t amount,
                                  struct rbi_charge *out);
/**
 * Charges bytes of @p uid that @p actor causes: another user's fair share at most.
 * @retval as rbi_quota_charge()
 */
RBI_MUST_CHECK int rbi_quota_charge_bytes(struct rbi_quota *quota,
                                          uint32_t uid,
                                          uint32_t actor,
                                          uint64_t amount,
                                          struct rbi_charge *out,
                                          struct rbi_text *why);
/**
 * Notes that another user has caused a charge of bytes, beyond its share as well: for what
 * exists anyhow. Without memory it stays the owner's alone.
 */
void rbi_charge_cause(struct rbi_charge *charge, uint32_t actor);
void rbi_charge_release(struct rbi_charge *charge);

/** Takes one connection of this uid out of its bucket. @retval 0; 1 refused, as above; -ENOMEM */
RBI_MUST_CHECK int
rbi_quota_connect(struct rbi_quota *quota, uint32_t uid, uint64_t now_ns, struct rbi_text *why);
/**
 * Takes a control message out of the buckets of an endpoint and of its user. Never refused:
 * what comes too early is handled, and what follows has to wait.
 * @param tat_ns  bucket of the endpoint
 * @param why     written when not at once: which quota, and its limit
 * @return ns until the next one may be read, 0: at once
 */
uint64_t rbi_quota_control(const struct rbi_quota *quota,
                           struct rbi_quota_user *user,
                           uint64_t *tat_ns,
                           uint64_t now_ns,
                           struct rbi_text *why);
/** Forgets users who hold nothing and whose buckets are full. Now and then. */
void rbi_quota_sweep(struct rbi_quota *quota, uint64_t now_ns);

/**
 * Generic cell rate algorithm: a token bucket in one word.
 * @param tat_ns    state; 0 = full
 * @param per_s     tokens a second, not 0
 * @param burst     size of the bucket
 * @return 0 when a token was taken, else ns until there is one
 */
uint64_t rbi_quota_pace(uint64_t *tat_ns, uint64_t now_ns, uint32_t per_s, uint32_t burst);

#endif
