/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_SEEN_H
#define RINGBUS_LIBCLIENT_SEEN_H
/*
 * libclient/seen.h - receiver: how far links from other hosts had been read when they ended. What
 * their senders do not know to be read they send again over the next link, with its place in the
 * first (FIRST in bus/record_attributes.h): what was read is dropped then. Part of internal.h:
 * include that.
 *
 * One position a link is enough: what is sent again comes in the order of its places.
 */
#include "bus/pidf.h"
#include "bus/record.h"

struct rbi_attributes;
struct rbi_end;
struct ringbus;

/** Of links that ended; of more, the latest. */
#define RBI_SEEN_MAX 1024U

struct rbi_seen {
    struct rbi_pidf peer;
    uint64_t link_life; /* as the sender counts */
    uint64_t read;      /* position in the sender's lane: all before it was read */
    uint64_t gap_to;    /* what was lost up to there is known to the application */
};

struct rbi_seen_links {
    struct rbi_seen *items; /* the oldest first, from `first` on, around */
    unsigned first;
    unsigned count;
    unsigned room; /* 0, or a power of two */
};

/** A link is read to its end: notes how far, if its sender may send something again. */
void rbi_seen_note(struct ringbus *bus, const struct rbi_end *end);
/**
 * A message with FIRST comes, and will be handled if this says so. @return whether it was read
 * before
 */
bool rbi_seen_before(struct ringbus *bus,
                     const struct rbi_end *end,
                     const struct rbi_attributes *attributes);
/**
 * A GAP came. Corrects how much of it may have been seen.
 * @return whether it is news: it was not told before, and not all of it was read
 */
bool rbi_seen_gap(struct ringbus *bus, const struct rbi_end *end, struct rbi_gap_body *gap);
void rbi_seen_deinit(struct rbi_seen_links *seen);

#endif
