/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/rights.c - orders of ringbusd that are about rights. */
#include "libclient/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

void rbi_rights_denied(struct rbi_member *member, const char *text)
{
    member->denied = true;
    (void)snprintf(member->why, sizeof member->why, "%s", text);
}

const char *rbi_rights_why(const struct rbi_cluster *cluster, int32_t instance)
{
    for (unsigned i = 0; i < cluster->member_count; i++) {
        const struct rbi_member *member = &cluster->members[i];
        if (member->denied && (instance == 0 || member->instance == instance)) {
            return member->why;
        }
    }
    return "";
}

void rbi_rights_revoked(struct ringbus *bus, struct rbi_end *end, const char *text)
{
    struct rbi_cluster *cluster = rbi_cluster_find(bus, end->peer.cluster);
    struct rbi_member *member =
        cluster != NULL ? rbi_member_find(cluster, end->peer.instance) : NULL;
    if (member != NULL && member->wanted) {
        rbi_rights_denied(member, text);
    }
    /* What lies in its lane, and what it still writes there, was not allowed to come. */
    end->read_out = true;
    if (end->phase == RBI_END_LEAVING) {
        end->leave_reason = RBI_REASON_DENIED; /* it was still being read */
    }
    (void)rbi_fail(bus, RINGBUS_E_DENIED, "the link to %s has ended: %s", end->path, text);
    rbi_end_peer_gone(bus, end, RBI_REASON_DENIED);
}

void rbi_rights_changed(struct ringbus *bus)
{
    for (unsigned c = 0; c < bus->cluster_count; c++) {
        struct rbi_cluster *cluster = bus->clusters[c];
        for (unsigned m = 0; m < cluster->member_count; m++) {
            struct rbi_member *member = &cluster->members[m];
            if (!member->denied) {
                continue;
            }
            member->denied = false;
            member->retry_count = 0;
            if (member->wanted && member->end == NULL && member->incarnation != 0) {
                member->retry_ns = bus->now_ns;
                rbi_target_at_most(bus, member->retry_ns);
            }
        }
    }
}

/* ---- methods ------------------------------------------------------------------------------- */

/* Takes what may be, in place of what might before. @return 0; -ENOMEM */
static int take_methods(struct rbi_acl_methods **methods, const struct rbi_text *text)
{
    if (text->length == 0) {
        free(*methods);
        *methods = NULL;
        return 0;
    }
    if (*methods == NULL) {
        *methods = malloc(sizeof **methods);
    }
    if (*methods == NULL) {
        return -ENOMEM;
    }
    (void)rbi_acl_methods_read(text->bytes, *methods);
    return 0;
}

int rbi_rights_methods(struct ringbus *bus,
                       struct rbi_end *end,
                       const struct rbi_text *get,
                       const struct rbi_text *send)
{
    int r = get != NULL ? take_methods(&end->may_get, get) : 0;
    r = r == 0 && send != NULL ? take_methods(&end->may_send, send) : r;
    if (r != 0) {
        return rbi_fail_errno(bus, r, "the rights of a link");
    }
    end->flowing = false; /* the next message finds out whether it may */
    end->hindered &= (uint8_t)~RBI_HINDERED_RIGHTS;
    end->hindered |= end->may_send != NULL ? RBI_HINDERED_RIGHTS : 0U;
    struct rbi_cluster *cluster = rbi_cluster_find(bus, end->peer.cluster);
    if (cluster != NULL && send != NULL) {
        rbi_cluster_changed(bus, cluster); /* whom a choice leaves */
    }
    return 0;
}

void rbi_rights_on_methods(struct ringbus *bus, const struct rbi_wire_methods *body)
{
    struct rbi_end *end = rbi_end_find_link(bus, body->link_id);
    if (end != NULL &&
        rbi_rights_methods(bus, end, (body->what & RBI_METHODS_GET) != 0 ? &body->get : NULL,
                           (body->what & RBI_METHODS_SEND) != 0 ? &body->send : NULL) != 0) {
        rbi_end_starved(bus, end); /* rather none than one on which everything goes */
    }
}

/* By what is known. Untrusted record. */
static bool may_come(const struct rbi_end *end, const struct rbi_record *record)
{
    struct rbi_attributes attributes = {.method = 0};
    if (end->may_get == NULL || record->kind == RBI_RECORD_REP ||
        record->kind == RBI_RECORD_ERROR) {
        return true;
    }
    if ((record->flags & RBI_RECORD_ATTRIBUTES) != 0 &&
        rbi_attributes_decode(record, &attributes) != 0) {
        return true; /* what cannot be read ends the link where it is taken */
    }
    return rbi_acl_methods_have(end->may_get, attributes.method);
}

bool rbi_rights_may_come(struct ringbus *bus, struct rbi_end *end, const struct rbi_record *record)
{
    if (may_come(end, record)) {
        return true;
    }
    /* The daemon tells us before it tells the sender, and its word may lie here unread. */
    rbi_control_input(bus);
    return may_come(end, record);
}

/* ---- whom a choice leaves out for it --------------------------------------------------------- */

bool rbi_rights_bars(const struct rbi_member *member, uint32_t method)
{
    return member->end != NULL && member->end->may_send != NULL &&
           !rbi_acl_methods_have(member->end->may_send, method);
}

/* The first of those that are compared, or NULL. */
struct comparing {
    const struct rbi_end *first;
    bool differs;
};

static bool same_methods(const struct rbi_acl_methods *a, const struct rbi_acl_methods *b)
{
    return a == b || (a != NULL && b != NULL && rbi_acl_methods_equal(a, b));
}

static void compare(struct comparing *comparing, const struct rbi_cluster *cluster)
{
    for (unsigned i = 0; i < cluster->member_count; i++) {
        const struct rbi_end *end = cluster->members[i].end;
        if (end != NULL && comparing->first == NULL) {
            comparing->first = end;
        } else if (end != NULL && !same_methods(end->may_send, comparing->first->may_send)) {
            comparing->differs = true;
        }
    }
}

bool rbi_rights_barring(const struct rbi_cluster *cluster)
{
    struct comparing comparing = {.first = NULL};
    compare(&comparing, cluster);
    for (unsigned i = 0; i < cluster->import_count; i++) {
        compare(&comparing, cluster->imports[i]);
    }
    return comparing.differs;
}

static uint64_t barred_of(const struct rbi_cluster *cluster, uint32_t method, uint64_t hash)
{
    for (unsigned i = 0; i < cluster->member_count; i++) {
        const struct rbi_member *member = &cluster->members[i];
        if (rbi_rights_bars(member, method)) {
            const uint64_t who[3] = {hash, cluster->id, (uint64_t)member->instance};
            hash = XXH3_64bits(who, sizeof who) | 1;
        }
    }
    return hash;
}

uint64_t rbi_rights_barred(const struct rbi_cluster *cluster, uint32_t method)
{
    uint64_t hash = barred_of(cluster, method, 0);
    for (unsigned i = 0; i < cluster->import_count; i++) {
        hash = barred_of(cluster->imports[i], method, hash);
    }
    return hash;
}

int rbi_send_hindered(struct ringbus *bus, struct rbi_end *end, uint64_t method)
{
    if ((end->hindered & RBI_HINDERED_CLAIM) != 0) {
        return rbi_fail(bus, RINGBUS_E_BUSY, "a claim on the lane to %s is open", end->path);
    }
    if ((end->hindered & RBI_HINDERED_BEHIND) != 0) {
        return rbi_relayed_refuse(bus, end);
    }
    if (method != RBI_METHOD_ANSWER && end->may_send != NULL &&
        !rbi_acl_methods_have(end->may_send, (uint32_t)method)) {
        return rbi_fail(bus, RINGBUS_E_DENIED,
                        "no right to send method %" PRIu64
                        " to %s: ringbusctl explain --method %" PRIu64 " names the rule",
                        method, end->path, method);
    }
    return 0;
}

/* ---- the name ------------------------------------------------------------------------------- */

void rbi_rights_replaced(struct ringbus *bus, const struct rbi_wire_replaced *body)
{
    if (bus->closing) {
        return;
    }
    (void)rbi_fail(bus, RINGBUS_E_CLOSED, "%s was taken over by a process of uid %" PRIu32,
                   bus->self_path, body->uid);
    rbi_emit_simple(bus, RINGBUS_EVENT_DOWN, &bus->self, bus->self_path, RBI_REASON_REPLACED,
                    RINGBUS_E_CLOSED);
    bus->closing = true;
    bus->state = RBI_ENDPOINT_CLOSED;
    rbi_store_rlx(&bus->page->state, bus->state);
    rbi_target_introductions_lost(bus);
    for (unsigned i = 0; i < bus->end_count; i++) {
        struct rbi_end *end = bus->ends[i];
        if (!end->loop) {
            end->link_id = 0;     /* the daemon has told the peers */
            end->read_out = true; /* what is in it is for the one who has the name now */
            rbi_end_peer_gone(bus, end, RBI_REASON_REPLACED);
        }
    }
    rbi_control_close(bus);
}
