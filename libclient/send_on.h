/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_SEND_ON_H
#define RINGBUS_LIBCLIENT_SEND_ON_H
/*
 * libclient/send_on.h - one message that its receiver did not consume, or may not have: to whom it
 * may go on, and sending it there. In which order, and for how long it is tried: redeliver.c. Part
 * of internal.h: include that.
 */
#include <stdbool.h>

struct rbi_end;
struct rbi_returned;
struct ringbus;

enum rbi_send_on {
    RBI_SEND_ON_NOBODY = 0, /* it is given back */
    RBI_SEND_ON_ANY = 1,    /* to any instance of the cluster, as a new one */
    /*
     * Relayed links, to the life that may have had it, and no other: that one lives on, and knows
     * how far it had read (seen.h).
     */
    RBI_SEND_ON_SAME = 2,
};

enum rbi_send_on rbi_send_on_whom(const struct rbi_end *end, const struct rbi_returned *returned);
/** @return true when it has gone on, or nobody waits for it any more; false: not now */
bool rbi_send_on_to_any(struct ringbus *bus,
                        struct rbi_end *end,
                        const struct rbi_returned *returned);
/** The same, over @p to, which leads to the life that @p end led to. */
bool rbi_send_on_to_same(struct ringbus *bus,
                         struct rbi_end *end,
                         struct rbi_end *to,
                         const struct rbi_returned *returned);
/** The link to the life that an ended one led to, when it can be used; NULL: there is none. */
struct rbi_end *rbi_send_on_same_life(struct ringbus *bus, const struct rbi_end *end);

#endif
