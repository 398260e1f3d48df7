/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_DRAIN_H
#define RINGBUS_LIBCLIENT_DRAIN_H
/*
 * libclient/drain.h - leaving in order: how far this endpoint is.
 */
#include "bus/record.h"
#include "bus/wire.h"

struct rbi_end;
struct ringbus;

struct rbi_drain {
    bool asked;      /* by the application: ringbus_drain(), ringbus_close() */
    bool ordered;    /* by the operator, through the daemon */
    bool closing;    /* inside ringbus_close(): there is no way back */
    bool marked;     /* all that came was dispatched; the marks of the links are set */
    bool told;       /* the daemon has had the last report */
    uint64_t number; /* of this drain among those of the handle; 0: none so far */
    uint64_t since_ns;
    uint64_t next_look_ns;
    uint64_t reported_ns;
    enum rbi_drain_step step;
    uint32_t left; /* links or requests that keep it at this step */
    enum rbi_drain_step reported_step;
    uint32_t reported_left;
};

/** ringbus_close() begins to drain, or goes on with a drain that was done once. */
void rbi_drain_close(struct ringbus *bus);
/** DRAIN_ORDER of the daemon. */
void rbi_drain_order(struct ringbus *bus, const struct rbi_wire_drain_order *body);
/** A link has become usable, or a peer uses it (again): it is told if we drain. */
void rbi_drain_greet(struct ringbus *bus, struct rbi_end *end);
/** A DRAIN record. Untrusted. */
void rbi_drain_record(struct ringbus *bus, struct rbi_end *end, const struct rbi_record *record);
/** Looks how far we are, when that is due. @return when to look again */
uint64_t rbi_drain_tick(struct ringbus *bus, uint64_t now_ns);
/** A new daemon knows nothing of the order: it is told how far we are. */
void rbi_drain_resend(struct ringbus *bus);

#endif
