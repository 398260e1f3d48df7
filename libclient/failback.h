/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_FAILBACK_H
#define RINGBUS_LIBCLIENT_FAILBACK_H
/*
 * libclient/failback.h - RINGBUS_RETRY_FAILBACK: messages that could not be sent are kept, bounded
 * for each cluster, and sent later in their order.
 */
#include "bus/record_attributes.h"

#include <ringbus/ringbus.h>

struct rbi_cluster;
struct rbi_outgoing;

struct rbi_copy;

/** Of all clusters, in the order in which they were to be sent. */
struct rbi_kept_messages {
    struct rbi_copy *first;
    struct rbi_copy *last;
    uint64_t due_ns;
    uint64_t pass; /* number of the looks through all of them */
};

/** Whether what cannot be sent to it is kept. */
bool rbi_failback_wanted(const struct rbi_cluster *cluster);
/** Sends, or keeps behind what is kept. 0 kept; else as ringbus_send() */
int rbi_failback_send(struct ringbus *bus,
                      struct rbi_cluster *cluster,
                      const struct ringbus_addr *to,
                      struct rbi_outgoing *out,
                      struct rbi_attributes *attributes);
/** A link has become usable: the next tick tries all. */
void rbi_failback_link_up(struct ringbus *bus);
/** Tries those that are kept. In poll only. @return when to look again */
uint64_t rbi_failback_tick(struct ringbus *bus, uint64_t now_ns);
/** Gives all of them back. */
void rbi_failback_end_all(struct ringbus *bus, int error);
void rbi_failback_deinit(struct ringbus *bus);

#endif
