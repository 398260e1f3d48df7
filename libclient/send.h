/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_SEND_H
#define RINGBUS_LIBCLIENT_SEND_H
/* libclient/send.h - writing a message into the lane of whoever is to get it. */
#include "bus/record.h"
#include "libclient/clock.h"
#include "libclient/end.h"
#include "libclient/handle.h"
#include "shm/pool.h"

#include <ringbus/ringbus.h>
#include <stdbool.h>
#include <stdint.h>

struct rbi_attributes;

/* Longest time that a receiver holds references before its share of the pool is limited. */
#define RBI_HOLDS_NS (50 * RBI_NS_PER_MS)

/** What is to be sent, the same for all ways of sending. */
struct rbi_outgoing {
    enum rbi_record_kind kind;
    unsigned flags; /* RINGBUS_* of the caller */
    uint64_t key;
    uint64_t tag; /* correlation of REQ, REP, ERROR */
    const struct ringbus_part *parts;
    unsigned part_count;
    uint64_t size;                           /* sum of the parts */
    uint32_t chunk;                          /* a chunk that holds it already, or RBI_CHUNK_NONE */
    unsigned record_flags;                   /* RBI_RECORD_* that do not follow from the flags */
    const struct rbi_attributes *attributes; /* NULL: none */
    struct ringbus_broadcast *report;        /* of a broadcast, to be filled; NULL: none */
};

/** Finds who is to get a message: one end. 0 or a public error (noted). */
int rbi_send_resolve(struct ringbus *bus,
                     const struct ringbus_addr *to,
                     bool keyed,
                     uint64_t key,
                     struct rbi_end **out);
/** Place of a peer in bus->recent: instances of one cluster lie side by side. */
static inline unsigned rbi_recent_at(uint64_t cluster, int32_t instance)
{
    return ((unsigned)cluster + (unsigned)instance) & (RBI_RECENT - 1);
}
/**
 * A reserve that failed with @p r, of rbi_lane_reserve(): opens the lane if that was all.
 * Where the body goes, or NULL: bus->error.code says why. No pointer of the caller's to write
 * through: its stack would have to be guarded, message by message.
 */
RBI_COLD unsigned char *
rbi_send_no_room(struct ringbus *bus, struct rbi_end *end, uint64_t body_bytes, int r);
/**
 * Whether a receiver may have one reference more while @p free_count chunks are left. One
 * that has given nothing back for a while gets two thirds of a pool that others need as well.
 */
static inline bool
rbi_send_share_left(const struct ringbus *bus, struct rbi_end *end, uint32_t free_count)
{
    const uint32_t used = rbi_refs_used(&end->refs);
    if (used == 0) {
        end->gave_ns = bus->now_ns;
        return true;
    }
    return used <= 2U * free_count + 1U || bus->end_count <= 1 ||
           bus->now_ns - end->gave_ns < RBI_HOLDS_NS;
}
/** Nobody can take it: says why. A public error (noted). */
RBI_COLD int rbi_send_no_peer(struct ringbus *bus, const struct ringbus_addr *to);
/** Takes in what this peer has given back. 0; RINGBUS_E_BAD_PEER */
int rbi_send_collect_from(struct ringbus *bus, struct rbi_end *end);
/** Copies the parts of a payload one behind the other. */
void rbi_write_parts(unsigned char *to, const struct rbi_outgoing *out);
/** Sum of the parts of a message. 0; RINGBUS_E_ARGUMENT (noted) */
int rbi_send_sum(struct ringbus *bus,
                 const struct ringbus_part *parts,
                 unsigned count,
                 uint64_t *size);
/** Sends to one, to any or to all. @return as ringbus_send() */
int rbi_send_any(struct ringbus *bus, const struct ringbus_addr *to, struct rbi_outgoing *out);
/**
 * Writes one message to all of a cluster that its flags ask for (broadcast.c).
 * @return how many took it
 */
int rbi_send_all(struct ringbus *bus, const struct ringbus_addr *to, struct rbi_outgoing *out);
/** Empties a report that the caller gave. @return false: it has none of ours (noted) */
bool rbi_broadcast_begin(struct ringbus *bus, struct ringbus_broadcast *result);
/** The same to these. */
int rbi_send_to_all(struct ringbus *bus,
                    struct rbi_end *const *ends,
                    unsigned count,
                    struct rbi_outgoing *out);
/** Of rbi_send_new(): a limit lets it pass later; it is kept until then (delay.h). */
#define RBI_SEND_KEPT 1
/** What a send to one receiver returns: how many have it. */
static inline int rbi_sent(int r)
{
    return r == 0 ? 1 : r == RBI_SEND_KEPT ? 0 : r;
}
/**
 * Writes one message to one end, within the limits. 0; RBI_SEND_KEPT, one-way messages only; a
 * public error (noted).
 */
int rbi_send_new(struct ringbus *bus, struct rbi_end *end, const struct rbi_outgoing *out);
/** The same for what no limit is about: answers. */
int rbi_send_one(struct ringbus *bus, struct rbi_end *end, const struct rbi_outgoing *out);
/** The same without counting it as sent: it was. */
int rbi_send_again(struct ringbus *bus, struct rbi_end *end, const struct rbi_outgoing *out);
/** Commits a reserved record and wakes the peer as its mode and the flags ask for. */
void rbi_send_commit(
    struct ringbus *bus, struct rbi_end *end, uint64_t body_bytes, uint32_t meta, unsigned flags);
/** After a commit: wakes the peer if it sleeps, or notes the end for later with RINGBUS_MORE. */
void rbi_send_ring(struct ringbus *bus, struct rbi_end *end);
/** Wakes the receivers of everything sent with RINGBUS_MORE. */
void rbi_send_flush(struct ringbus *bus);
/** A send found the lane full: ringbus_wait() is to wait for it. */
void rbi_send_blocked(struct ringbus *bus, struct rbi_end *end, uint64_t body_bytes);
/** A send found no chunk or slot: ringbus_wait() is to wait for returns. */
void rbi_send_starved(struct ringbus *bus);
/** Takes in returned chunks of all links. */
void rbi_send_collect(struct ringbus *bus);
/**
 * A chunk for @p size bytes, collecting returns when the pool is empty. 0 or public error (noted).
 */
int rbi_send_chunk(struct ringbus *bus, struct rbi_end *end, uint64_t size, struct rbi_chunk *out);

/** Checks a loan and a size within it. 0 or a public error (noted). */
int rbi_loan_check(struct ringbus *bus,
                   const struct ringbus_loan *loan,
                   uint64_t size,
                   uint32_t *chunk);

#endif
