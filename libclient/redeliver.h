/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_REDELIVER_H
#define RINGBUS_LIBCLIENT_REDELIVER_H
/* libclient/redeliver.h - what another instance of the cluster is to get. */
#include "shm/base.h"

#include <stdbool.h>
#include <stdint.h>

struct rbi_cluster;
struct rbi_end;
struct rbi_returned;
struct rbi_unread;
struct ringbus;

/** An end begins to leave: nothing new goes to any of its cluster before what it had goes on. */
void rbi_redeliver_hold(struct ringbus *bus, struct rbi_end *end);
/** Whether a cluster is held by one of its ends. */
bool rbi_redeliver_holds(const struct ringbus *bus, uint64_t cluster);
/** A send to any instance of a held cluster: a public error (noted). */
RBI_COLD int rbi_redeliver_refuse(struct ringbus *bus, const struct rbi_cluster *cluster);
/** Sends one on, or keeps it waiting for that. @return false: it is to be given back. In poll */
bool rbi_redeliver(struct ringbus *bus,
                   struct rbi_end *end,
                   struct rbi_unread *unread,
                   const struct rbi_returned *returned);
/** Tries those again that wait. In poll only. */
void rbi_redeliver_step(struct ringbus *bus);
/** Has the next step made, when something waits. @return when to tick again */
uint64_t rbi_redeliver_tick(struct ringbus *bus);
/** Nothing new is held up any more, unless something waits for any instance. */
void rbi_redeliver_settle(struct ringbus *bus, struct rbi_end *end);
/** Whether something waits that goes over this link first. */
bool rbi_redeliver_waits(const struct ringbus *bus, const struct rbi_end *to);
/** Nothing of this end waits any more: the cluster is free. */
void rbi_redeliver_end(struct ringbus *bus, struct rbi_end *end);

#endif
