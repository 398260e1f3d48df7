/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_LINK_H
#define RINGBUS_DAEMON_LINK_H
/*
 * daemon/link.h - an introduced pair of endpoints, as the daemon knows it: from the
 * INTRODUCE of the requester until either end leaves or says that it is over. At most
 * one for each pair. The daemon keeps no descriptor of it.
 *
 *   INTRODUCE            ACCEPT
 *   ---------> introducing ------> linked ------> gone: LINK_DOWN, death of an end
 *                   \---------------------------> gone: REFUSE, timeout, LINK_DOWN, death
 */
#include "bus/record.h"
#include "daemon/list.h"
#include "daemon/loop.h"
#include "daemon/map.h"
#include "daemon/quota.h"
#include "daemon/rights.h"

struct rbi_daemon;
struct rbi_endpoint;

/** What a link costs whom; zero-initialise. */
struct rbi_link_charges {
    struct rbi_charge link;     /* one link of the requester's user */
    struct rbi_share *place;    /* of that user at the server; NULL: both are of one user */
    struct rbi_charge sides[2]; /* requester's, server's */
};

struct rbi_link {
    struct rbi_daemon *daemon;
    uint64_t id;     /* of an earlier daemon when its ends have told it again (relink.h) */
    uint64_t number; /* order of arrival; never reused */
    uint64_t pair;
    struct rbi_endpoint *requester;
    struct rbi_endpoint *server;
    struct rbi_list in_links;
    struct rbi_list in_requester;
    struct rbi_list in_server;
    bool linked;
    uint32_t serial; /* of the INTRODUCE that waits for its answer */
    uint64_t side_bytes[2];
    struct rbi_link_charges charges;
    struct rbi_link_rights rights;
    uint64_t methods_told; /* what its ends know of the right to send (rights.h), hashed */
    uint64_t created_ns;
    struct rbi_loop_timer timer;
};

struct rbi_links {
    struct rbi_map by_id;
    struct rbi_map by_pair;
    struct rbi_list all; /* by number */
    uint32_t count;
    uint64_t next_number;
};

RBI_MUST_CHECK int rbi_links_init(struct rbi_links *links);
void rbi_links_deinit(struct rbi_links *links);

struct rbi_link *rbi_link_find(struct rbi_daemon *daemon, uint64_t id);
struct rbi_link *rbi_link_find_pair(struct rbi_daemon *daemon,
                                    const struct rbi_endpoint *a,
                                    const struct rbi_endpoint *b);
/** Link in state introducing; its timer runs. @retval 0; -ENOMEM; -EIO no random number */
RBI_MUST_CHECK int rbi_link_new(struct rbi_daemon *daemon,
                                struct rbi_endpoint *requester,
                                struct rbi_endpoint *server,
                                uint32_t serial,
                                struct rbi_link **out);
/**
 * Link in state linked that an earlier daemon has made, under its id.
 * @retval 0; -EEXIST there is one of this id or of this pair; -ENOMEM
 */
RBI_MUST_CHECK int rbi_link_restore(struct rbi_daemon *daemon,
                                    struct rbi_endpoint *requester,
                                    struct rbi_endpoint *server,
                                    uint64_t id,
                                    struct rbi_link **out);
/** Gives everything back; accepts a zeroed one. */
void rbi_link_charges_release(struct rbi_link_charges *charges);
/** Forgets a link; nobody is told. Returns NULL. */
struct rbi_link *rbi_link_free(struct rbi_link *link);
/** The server has accepted. */
void rbi_link_set_linked(struct rbi_link *link);
/**
 * Ends a link and tells the ends, except @p silent (may be NULL): a requester that still
 * waits gets ERROR with @p code and @p text, everybody else LINK_DOWN with @p reason.
 */
void rbi_link_end(struct rbi_link *link,
                  const struct rbi_endpoint *silent,
                  enum rbi_reason reason,
                  int code,
                  const char *text);
/** Ends all links of an endpoint that is going. */
void rbi_link_endpoint_gone(struct rbi_endpoint *endpoint, enum rbi_reason reason);

#endif
