/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_DIAL_H
#define RINGBUS_DAEMON_BRIDGE_DIAL_H
/*
 * daemon/bridge/dial.h - keeps a neighbour dialled: connects, and again whenever the connection has
 * ended or could not be made, after a back-off with full jitter that grows from
 * RBI_DIAL_STEP_MIN_NS to RBI_DIAL_STEP_MAX_NS. So it connects within one such step after a
 * listener is there.
 *
 * A connection whose certificates are about to expire is made anew before they do: the second one
 * comes up while the first still lasts, and the owner replaces the one by the other.
 */
#include "daemon/bridge/conn.h"

struct rbi_dial;

#define RBI_DIAL_STEP_MIN_NS UINT64_C(50000000)
#define RBI_DIAL_STEP_MAX_NS UINT64_C(1000000000)

enum rbi_dial_state {
    RBI_DIAL_PAUSED,
    RBI_DIAL_WAITING,   /* for the next attempt */
    RBI_DIAL_TRYING,    /* looks the name up, connects, shakes hands */
    RBI_DIAL_CONNECTED, /* up() was called, the end has not come */
};

struct rbi_dial_report {
    enum rbi_dial_state state;
    uint32_t failures;               /* in a row, since the last success */
    uint64_t attempts;               /* ever */
    char why[RBI_CONN_WHY_MAX + 1U]; /* the last failure or end; "" = none */
};

/**
 * Begins to dial, in a later turn.
 * @param terms    kept by the caller
 * @param host     name that the certificate of the peer must have; copied
 * @param address  "10.0.0.2:7740", "[fd00::2]:7740" or "beta.example:7740" (looked up at each
 *                 attempt, beside the loop); copied
 * @param ops      of the connections, with @p context, until rbi_conn_own()
 * @retval -EINVAL  no such address can be
 * @retval -ENOMEM
 */
RBI_MUST_CHECK int rbi_dial_new(struct rbi_conn_terms *terms,
                                const char *host,
                                const char *address,
                                const struct rbi_conn_ops *ops,
                                void *context,
                                struct rbi_dial **out);
/** Ends dialling. A connection that is up stays its owner's. @return NULL. Accepts NULL. */
struct rbi_dial *rbi_dial_free(struct rbi_dial *dial);
/**
 * Another address, as after a reload: the next attempt goes there, at once if none is up. A
 * connection that is up stays until its owner ends it.
 * @retval -EINVAL  no such address can be; the old one stays
 */
RBI_MUST_CHECK int rbi_dial_move(struct rbi_dial *dial, const char *address);
/** Stops making connections, as while the neighbour has dialled us; one that is up stays. */
void rbi_dial_pause(struct rbi_dial *dial);
/** Dials on, at once. */
void rbi_dial_resume(struct rbi_dial *dial);
void rbi_dial_report(const struct rbi_dial *dial, struct rbi_dial_report *out);

#endif
