/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_COPY_H
#define RINGBUS_LIBCLIENT_COPY_H
/*
 * libclient/copy.h - a one-way message that is kept by value, to be sent later (failback.h,
 * delay.h) or given back to the application.
 */
#include "bus/record_attributes.h"

#include <ringbus/ringbus.h>

struct rbi_outgoing;
struct ringbus;

struct rbi_copy {
    struct rbi_copy *next;  /* of whoever keeps it */
    uint64_t due_ns;        /* the same */
    struct ringbus_addr to; /* as it was sent */
    uint64_t key;
    unsigned flags; /* RINGBUS_*, without MORE */
    unsigned record_flags;
    bool attributed;
    struct rbi_attributes attributes; /* with attributed; its origin lies behind the payload */
    unsigned part_count;
    uint64_t part_sizes[RINGBUS_PARTS_MAX];
    uint64_t size;
    unsigned char payload[];
};

/** Copies a message with all that is said of it. NULL: no memory. To be freed with free() */
struct rbi_copy *rbi_copy_new(const struct ringbus_addr *to, const struct rbi_outgoing *out);
/** What to send: @p out points into @p copy and to @p parts, RINGBUS_PARTS_MAX of them. */
void rbi_copy_outgoing(const struct rbi_copy *copy,
                       struct ringbus_part *parts,
                       struct rbi_outgoing *out);
/** Whether its deadline is over. */
bool rbi_copy_expired(const struct rbi_copy *copy, uint64_t now_ns);
/**
 * Tells the application that it was not sent (UNDELIVERED). In poll and close only.
 * @param addr  whom it was for, as far as that is known
 */
void rbi_copy_give_back(struct ringbus *bus,
                        const struct rbi_copy *copy,
                        const struct ringbus_addr *addr,
                        const char *path,
                        int error);

#endif
