/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_UNDELIVERED_H
#define RINGBUS_LIBCLIENT_UNDELIVERED_H
/*
 * libclient/undelivered.h - what a receiver that is gone had not consumed of our lane.
 */
#include "bus/record.h"
#include "bus/record_attributes.h"

#include <ringbus/ringbus.h>

struct rbi_end;
struct ringbus;

/** Message view of a record in our own or a peer's lane. */
struct rbi_view {
    struct ringbus_message message;
    struct ringbus_part parts[RINGBUS_PARTS_MAX];
    struct rbi_end *end;
    uint64_t slot; /* of a referenced payload */
    bool referenced;
    bool kept;       /* the slot is given back by ringbus_release() */
    bool own;        /* a view of our own lane (UNDELIVERED): there is nothing to give back */
    bool deferrable; /* its handler may leave it in the lane, and has done so: deferred */
    bool deferred;
    /* Both with message.attributes only, else undefined. */
    struct rbi_attributes attributes;
    struct ringbus_attributes shown;
};

/** How far a receiver had come when it ended. */
struct rbi_unread {
    uint64_t first; /* position up to which it said that it had consumed */
    uint64_t more;  /* bytes from there on that it had consumed, too */
    uint64_t on;    /* relayed: bytes from there on that the bridge had sent on: maybe seen */
    bool begun;     /* it was in the handler of the record that follows */
    bool over;      /* nothing goes on to others any more */
    bool doubtful;  /* it may live and read on: nothing is certainly unseen */
    uint64_t *last; /* for each slot, position + 1 of its last use; NULL: no memory for it */
};

/** One message of ours that it had not consumed. */
struct rbi_returned {
    struct rbi_record record;
    struct rbi_view view;
    bool maybe_seen;
    uint64_t position;
    uint64_t next; /* position behind it */
};

/** What waits for another receiver, or for another link, in the lane of a closed end. */
struct rbi_again {
    struct rbi_unread unread;
    bool any;          /* something waits that may go to any instance */
    bool same;         /* something waits for the same life */
    uint64_t position; /* the first of them that may go to any */
    uint64_t same_position;
    uint64_t deadline_ns;
    uint64_t number; /* of its end: the later one goes first */
};

/** Lane of a leaving end is empty: give back what was not read, report, close. In poll only. */
void rbi_end_finish_leaving(struct ringbus *bus, struct rbi_end *end);
/** It never became usable, and nothing is left that could say otherwise. */
void rbi_end_report_failed(struct ringbus *bus, struct rbi_end *end);
/** The first message from @p position on that was not consumed. @return whether there is one */
bool rbi_unread_next(struct ringbus *bus,
                     struct rbi_end *end,
                     const struct rbi_unread *unread,
                     uint64_t position,
                     struct rbi_returned *out);
/** Tells the application of one: an event, or the end of a request. In poll only. */
void rbi_give_back(struct ringbus *bus, struct rbi_end *end, struct rbi_returned *returned);

#endif
