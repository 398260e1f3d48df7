/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_GAP_H
#define RINGBUS_LIBCLIENT_GAP_H
/*
 * libclient/gap.h - what a link to another host has lost for good, told to the receiver, which
 * lives on: first thing on the next link to it. Part of internal.h: include that.
 *
 *   given back to our application -> noted by receiver and link -> next link READY -> GAP record
 *
 * Our application knows already: RINGBUS_EVENT_UNDELIVERED. The receiver has only seen the end of
 * a link, and would take what comes next for all there is.
 */
#include "bus/pidf.h"
#include "bus/record.h"

struct rbi_end;
struct rbi_returned;
struct ringbus;

/** Of links that ended, and whose receivers were not linked again yet. */
#define RBI_GAPS_MAX 1024U

struct rbi_gap {
    struct rbi_pidf peer;
    struct rbi_gap_body body;
};

struct rbi_gaps {
    struct rbi_gap *items; /* the oldest first */
    unsigned count;
    unsigned room;
};

/** One was given back. Counts if the receiver may live, and is to miss it. */
void rbi_gap_note(struct ringbus *bus,
                  const struct rbi_end *end,
                  const struct rbi_returned *returned);
/** The link is over: what it was to tell of earlier ones, and the peer has not read, is kept. */
void rbi_gap_take_back(struct ringbus *bus, struct rbi_end *end);
/** Whether there is something to be told to this life. */
bool rbi_gap_waits(const struct ringbus *bus, const struct rbi_pidf *peer);
/** Tells it over this link to it. @return false: no room for all of it yet */
bool rbi_gap_tell(struct ringbus *bus, struct rbi_end *end);
/** Another life of an address is there: the earlier ones are told nothing any more. */
void rbi_gap_forget_others(struct ringbus *bus, const struct rbi_pidf *peer);
/** A GAP record came. */
void rbi_gap_record(struct ringbus *bus, struct rbi_end *end, const struct rbi_record *record);
void rbi_gaps_deinit(struct rbi_gaps *gaps);

#endif
