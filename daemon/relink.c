/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/relink.h"

#include "daemon/daemon.h"
#include "daemon/endpoint.h"
#include "daemon/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

int rbi_relink_init(struct rbi_relink *relink)
{
    *relink = (struct rbi_relink){.secret = 0};
    /* Secret, so that nobody can make claims that fall upon those of others. */
    if (getrandom(&relink->secret, sizeof(relink->secret), 0) != (ssize_t)sizeof(relink->secret)) {
        return -EIO;
    }
    return rbi_map_init(&relink->claims);
}

void rbi_relink_deinit(struct rbi_relink *relink)
{
    RBI_ASSERT(!relink->claims.ready || rbi_map_count(&relink->claims) == 0);
    rbi_map_deinit(&relink->claims);
}

/** What a statement of @p speaker about @p other comes to, hashed. */
static uint64_t relink_key(const struct rbi_relink *relink,
                           uint64_t link_id,
                           const struct rbi_pidf *speaker,
                           const struct rbi_pidf *other,
                           bool requester)
{
    const struct {
        uint64_t link_id;
        struct rbi_pidf speaker;
        struct rbi_pidf other;
        uint64_t requester;
    } statement = {
        .link_id = link_id, .speaker = *speaker, .other = *other, .requester = requester};
    _Static_assert(sizeof(statement) == 48, "without padding, which would be hashed");
    const uint64_t key = XXH3_64bits_withSeed(&statement, sizeof(statement), relink->secret);
    return key == 0 || key == UINT64_MAX ? 1 : key;
}

static struct rbi_pidf relink_pidf(const struct rbi_endpoint *endpoint)
{
    return (struct rbi_pidf){.cluster = endpoint->cluster_id,
                             .instance = endpoint->instance,
                             .incarnation = endpoint->incarnation};
}

void rbi_claim_charges_release(struct rbi_claim_charges *charges)
{
    rbi_charge_release(&charges->side);
    rbi_charge_release(&charges->link);
}

static void claim_free(struct rbi_claim *claim)
{
    (void)rbi_map_remove(&claim->owner->daemon->relink.claims, claim->key);
    rbi_list_remove(&claim->in_owner);
    claim->owner->claim_count--;
    rbi_claim_charges_release(&claim->charges);
    free(claim);
}

static int claim_new(struct rbi_endpoint *endpoint,
                     const struct rbi_wire_relink *body,
                     uint64_t key,
                     struct rbi_claim_charges *charges)
{
    struct rbi_claim *claim = calloc(1, sizeof(*claim));
    if (!claim) {
        return -ENOMEM;
    }
    const int result = rbi_map_put(&endpoint->daemon->relink.claims, key, claim);
    if (result < 0) {
        free(claim);
        return result;
    }
    claim->owner = endpoint;
    claim->key = key;
    claim->link_id = body->link_id;
    claim->other = (struct rbi_pidf){
        .cluster = body->cluster, .instance = body->instance, .incarnation = body->incarnation};
    claim->side_bytes = body->side_bytes;
    claim->limited = body->limited != 0;
    claim->charges = *charges;
    *charges = (struct rbi_claim_charges){.side = {.user = NULL}};
    rbi_list_push_back(&endpoint->claims, &claim->in_owner);
    endpoint->claim_count++;
    return 0;
}

/**
 * The link takes over what both have paid. It exists whatever the fair share is by now: what
 * one user has at another's server is noted again, and not asked for.
 */
static void relink_take_charges(struct rbi_link *link,
                                struct rbi_claim_charges *requester,
                                struct rbi_claim_charges *server)
{
    const uint32_t actor = link->requester->peer->actor;
    if (link->server->peer->actor != actor) {
        link->charges.place = rbi_share_take(&link->server->foreign_links, actor, 1);
        rbi_charge_cause(&server->side, actor);
    }
    link->charges.link = requester->link;
    link->charges.sides[0] = requester->side;
    link->charges.sides[1] = server->side;
    *requester = *server = (struct rbi_claim_charges){.side = {.user = NULL}};
}

/** Both have said so: makes the link of the claim and the statement that meets it. */
static int relink_pair(struct rbi_claim *claim,
                       struct rbi_endpoint *endpoint,
                       const struct rbi_wire_relink *body,
                       struct rbi_claim_charges *charges)
{
    struct rbi_endpoint *requester = body->requester ? endpoint : claim->owner;
    struct rbi_endpoint *server = body->requester ? claim->owner : endpoint;
    const unsigned mine = body->requester ? 0 : 1;
    struct rbi_link *link = NULL;
    const int result = rbi_link_restore(endpoint->daemon, requester, server, body->link_id, &link);
    if (result < 0) {
        return result;
    }
    link->side_bytes[mine] = body->side_bytes;
    link->side_bytes[!mine] = claim->side_bytes;
    link->methods_told = body->limited || claim->limited ? UINT64_MAX : 0; /* what, is not known */
    relink_take_charges(link, body->requester ? charges : &claim->charges,
                        body->requester ? &claim->charges : charges);
    claim_free(claim);
    endpoint->daemon->counters.links_restored++;
    rbi_rights_recheck_link(link); /* the rules may have changed while there was no daemon */
    return 1;
}

int rbi_relink_claim(struct rbi_daemon *daemon,
                     struct rbi_endpoint *endpoint,
                     const struct rbi_wire_relink *body,
                     struct rbi_claim_charges *charges)
{
    const struct rbi_pidf self = relink_pidf(endpoint);
    const struct rbi_pidf other = {
        .cluster = body->cluster, .instance = body->instance, .incarnation = body->incarnation};
    const bool requester = body->requester != 0;
    if (rbi_link_find(daemon, body->link_id)) {
        return -EEXIST;
    }
    struct rbi_claim *claim =
        rbi_map_get(&daemon->relink.claims,
                    relink_key(&daemon->relink, body->link_id, &other, &self, !requester));
    if (claim) {
        return relink_pair(claim, endpoint, body, charges);
    }
    return claim_new(endpoint, body,
                     relink_key(&daemon->relink, body->link_id, &self, &other, requester), charges);
}

uint64_t rbi_relink_claimed(const struct rbi_endpoint *endpoint, const struct rbi_endpoint *other)
{
    RBI_LIST_EACH(node, spare, &endpoint->claims)
    {
        const struct rbi_claim *claim = RBI_CONTAINER_OF(node, struct rbi_claim, in_owner);
        if (claim->other.cluster == other->cluster_id && claim->other.instance == other->instance &&
            claim->other.incarnation == other->incarnation) {
            return claim->link_id;
        }
    }
    return 0;
}

void rbi_relink_drop(struct rbi_endpoint *endpoint, uint64_t link_id)
{
    RBI_LIST_EACH(node, spare, &endpoint->claims)
    {
        struct rbi_claim *claim = RBI_CONTAINER_OF(node, struct rbi_claim, in_owner);
        if (claim->link_id == link_id) {
            claim_free(claim);
            return;
        }
    }
}

void rbi_relink_clear(struct rbi_endpoint *endpoint)
{
    while (!rbi_list_empty(&endpoint->claims)) {
        claim_free(RBI_LIST_FIRST(&endpoint->claims, struct rbi_claim, in_owner));
    }
}
