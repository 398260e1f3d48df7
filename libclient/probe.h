/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_PROBE_H
#define RINGBUS_LIBCLIENT_PROBE_H
/*
 * libclient/probe.h - what we do for instances that are shielded: answer the daemon when it asks
 * us, and let one request of ours try another when it asks for that.
 */
#include "bus/wire.h"

struct rbi_attributes;
struct rbi_choosing;
struct rbi_end;
struct ringbus;
struct ringbus_addr;

/** A probe that we were asked to make; token 0: none. */
struct rbi_probe {
    uint64_t token;
    uint64_t cluster;
    int32_t instance;
    uint32_t incarnation;
    uint64_t use_by_ns;
    uint8_t number; /* of our own, not 0: tells it from the one before, whose call may still wait */
};

/** PROBE of the daemon: we live, and poll. */
void rbi_probe_answer(struct ringbus *bus, const struct rbi_wire_probe *body);
/** PROBE_GRANT. Given back at once when there is no link to try, or a probe already. */
void rbi_probe_grant(struct ringbus *bus, const struct rbi_wire_probe_grant *body);
/**
 * A request to any instance goes to the one that is tried, if the stages of its cluster leave that
 * one as soon as it is well, and no key gives it to another: one more that would else be refused as
 * shielded, too. Call while bus->probing, right after the choice.
 * @param said   what was said of the message; NULL: nothing, it was rbi_cluster_pick() that chose
 * @param error  of the choice, or 0 with @p end
 * @return 0, with @p end; @p error
 */
RBI_COLD int rbi_probe_route(struct ringbus *bus,
                             const struct ringbus_addr *to,
                             const struct rbi_choosing *by,
                             struct rbi_attributes *said,
                             int error,
                             struct rbi_end **end);
/** A call over @p end begins, while bus->probing. @return its number if it is the probe, else 0 */
RBI_COLD uint8_t rbi_probe_begin(struct ringbus *bus, const struct rbi_end *end);
/** The call that is the probe of that number has ended, or was not sent. */
RBI_COLD void rbi_probe_over(struct ringbus *bus, uint8_t number, enum rbi_probe_outcome outcome);
/** Gives back one that found no use. @return when to look again */
uint64_t rbi_probe_tick(struct ringbus *bus, uint64_t now_ns);
/** Another daemon: it knows nothing of what the last asked for. */
void rbi_probe_forget(struct ringbus *bus);

#endif
