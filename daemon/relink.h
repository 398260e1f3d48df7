/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_RELINK_H
#define RINGBUS_DAEMON_RELINK_H
/*
 * daemon/relink.h - links that an earlier daemon has made, as their ends tell of them
 * (RELINK). One end alone proves nothing: what it says is a claim, and a link exists when
 * both have claimed it with the same id, each naming the other in the same life and the
 * other role.
 *
 *   RELINK of one end            RELINK of the other
 *   ------------------> claim ---------------------------> linked (link.h)
 *                         \------> gone: LINK_DOWN or end of the one who claims
 *
 * A claim is never given up for its age: the other end may be stopped in a debugger, and
 * lives. It is bounded by quota.links, charged to quota.bytes and quota.user_links, and
 * gives nothing to the one who claims but a charge; nobody else is told of it.
 */
#include "bus/pidf.h"
#include "bus/wire.h"
#include "daemon/list.h"
#include "daemon/map.h"
#include "daemon/quota.h"

struct rbi_daemon;
struct rbi_endpoint;

/** What a claim costs the one who makes it; zero-initialise. */
struct rbi_claim_charges {
    struct rbi_charge side;
    struct rbi_charge link; /* of a requester */
};

struct rbi_claim {
    struct rbi_endpoint *owner;
    struct rbi_list in_owner;
    uint64_t key;
    uint64_t link_id;
    struct rbi_pidf other;
    uint64_t side_bytes;
    bool limited; /* its end may not send, or get, every method */
    struct rbi_claim_charges charges;
};

struct rbi_relink {
    struct rbi_map claims; /* by what their counterpart will say, hashed with the secret */
    uint64_t secret;
};

RBI_MUST_CHECK int rbi_relink_init(struct rbi_relink *relink);
void rbi_relink_deinit(struct rbi_relink *relink);

/** Gives back what was not taken over. */
void rbi_claim_charges_release(struct rbi_claim_charges *charges);
/**
 * Takes in what one end says of a link.
 * @param charges  taken over on success
 * @retval 0        it waits for the other end
 * @retval 1        the other end had said so: they are linked
 * @retval -EEXIST  it has said so before, or the two have another link
 * @retval -ENOMEM
 */
RBI_MUST_CHECK int rbi_relink_claim(struct rbi_daemon *daemon,
                                    struct rbi_endpoint *endpoint,
                                    const struct rbi_wire_relink *body,
                                    struct rbi_claim_charges *charges);
/** Id of the link that @p endpoint alone says it has with @p other, or 0. */
uint64_t rbi_relink_claimed(const struct rbi_endpoint *endpoint, const struct rbi_endpoint *other);
/** Drops one claim of an endpoint, if there is such. */
void rbi_relink_drop(struct rbi_endpoint *endpoint, uint64_t link_id);
/** Drops all of an endpoint. */
void rbi_relink_clear(struct rbi_endpoint *endpoint);

#endif
