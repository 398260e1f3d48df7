/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_LIMIT_H
#define RINGBUS_LIBCLIENT_LIMIT_H
/*
 * libclient/limit.h - the limits of the clusters that we send to, kept by ourselves before we send.
 *
 * A cluster without limits costs its senders nothing: the bit of the end that says otherwise
 * (RBI_HINDERED_LIMIT) is one of several that are looked at at once. With limits every message
 * takes the long way: asked, sent, and paid for when it was sent.
 *
 * The clock is the coarse one, up to 4 ms old and never ahead; before anything is refused or
 * delayed, the exact one is read. So a refusal is exact, and what passes may be up to 4 ms of
 * the rate early.
 */
#include "bus/lease.h"
#include "bus/limit.h"
#include "bus/wire.h"

#include <ringbus/ringbus.h>

struct rbi_cluster;
struct rbi_end;

/** Limits of one cluster that concern us. Shared by the cluster and its ends. */
struct rbi_limiter {
    uint32_t refs;
    bool quota;       /* some of them are leased: RBI_LIMIT_CLUSTER */
    uint64_t cluster; /* id */
    struct rbi_limits limits;
    struct rbi_limit_words words;
    uint64_t asked_ns;                              /* of the question that was answered last */
    struct rbi_lease_holder leases[RBI_LIMITS_MAX]; /* by position */
};

/**
 * Requests of ours to one cluster that wait for their reply, and how many may. Lives while the
 * cluster, one of its ends or such a request does.
 */
struct rbi_inflight {
    uint32_t refs; /* the cluster, its ends */
    uint32_t count;
    uint32_t most; /* UINT32_MAX: any number */
};

/** Of a handle: what its last refusal said, for ringbus_errmsg(). */
struct rbi_limit_refusal {
    uint64_t retry_us; /* 0: not said, as when too many requests are under way */
    uint64_t wait_ns;  /* a request may wait so long for it; 0: it is refused */
    uint32_t inflight; /* as many are; 0: it was a rate */
    char id[RBI_LABEL_MAX + 1];
};

/**
 * The policy of a cluster has come, or has changed.
 * @param policy  valid; NULL: the defaults
 * @retval 0; -ENOMEM it is as it was, to be tried again
 */
RBI_MUST_CHECK int
rbi_limit_follow(struct ringbus *bus, struct rbi_cluster *cluster, const struct rbi_policy *policy);
/** An end of a cluster that we target is there: it is limited from now on, if the cluster is. */
void rbi_limit_attach(struct rbi_cluster *cluster, struct rbi_end *end, uint64_t now_ns);
/** Nothing is sent over it any more. */
void rbi_limit_detach(struct rbi_end *end);
/** A request over that link begins. @retval 0; RINGBUS_E_LIMITED (noted) as many wait as may */
static inline int
rbi_inflight_begin(struct ringbus *bus, const struct rbi_end *end, struct rbi_inflight *inflight);
RBI_COLD int rbi_inflight_refuse(struct ringbus *bus,
                                 const struct rbi_end *end,
                                 const struct rbi_inflight *inflight);
/** It has ended. */
static inline void rbi_inflight_end(struct rbi_inflight *inflight);
RBI_COLD void rbi_inflight_free(struct rbi_inflight *inflight);
void rbi_inflight_unref(struct rbi_inflight *inflight);

/** It is no more. */
void rbi_limiter_unref(struct rbi_limiter *limiter);

/**
 * Whether a message may go to a limited end. Nothing is taken.
 * @retval 0; RINGBUS_E_LIMITED (noted)
 */
int rbi_limit_ask(struct ringbus *bus, struct rbi_end *end, uint32_t method, uint64_t bytes);
/** It was sent, right after it had been asked for. */
void rbi_limit_taken(struct ringbus *bus, struct rbi_end *end, uint32_t method, uint64_t bytes);

/** LEASE of the daemon. Untrusted. */
void rbi_limit_lease(struct ringbus *bus, const struct rbi_wire_lease *body);
/** Tells the daemon what we want to send, where that is due. @return when to look again */
uint64_t rbi_limit_tick(struct ringbus *bus, uint64_t now_ns);

static inline int
rbi_inflight_begin(struct ringbus *bus, const struct rbi_end *end, struct rbi_inflight *inflight)
{
    if (RBI_LIKELY(inflight != NULL)) {
        if (RBI_UNLIKELY(inflight->count >= inflight->most)) {
            return rbi_inflight_refuse(bus, end, inflight);
        }
        inflight->count++;
    }
    return 0;
}

static inline void rbi_inflight_end(struct rbi_inflight *inflight)
{
    if (RBI_LIKELY(inflight != NULL) && --inflight->count == 0 &&
        RBI_UNLIKELY(inflight->refs == 0)) {
        rbi_inflight_free(inflight);
    }
}

#endif
