/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BROKER_CALLER_H
#define RINGBUS_DAEMON_BROKER_CALLER_H
/*
 * daemon/broker/caller.h - what is kept of a peer that sends to a face, while there is something:
 * its requests under way, its answers that found no room, and since when it is kept waiting.
 */
#include "daemon/broker/broker.h"

struct rbi_face;

struct rbi_caller {
    uint64_t key; /* in broker->callers */
    uint32_t calls;
    uint32_t waiting; /* of them, answers without room: those behind them wait as well */
    uint64_t held_ns; /* since when its next message is left with it; 0: it is not */
};

/** The caller, made if it is not there. NULL: no memory */
struct rbi_caller *rbi_caller_get(struct rbi_face *face, const struct ringbus_addr *peer);
/** NULL: nothing is kept of it. */
struct rbi_caller *rbi_caller_find(struct rbi_face *face, const struct ringbus_addr *peer);
/** Forgets it when nothing is left to know. Accepts NULL. */
void rbi_caller_settle(struct rbi_broker *broker, struct rbi_caller *caller);
void rbi_callers_deinit(struct rbi_broker *broker);

#endif
