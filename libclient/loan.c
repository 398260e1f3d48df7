/* SPDX-License-Identifier: Apache-2.0 */
/* libclient/loan.c - building in place: loans (chunks of our own) and claims (room in a lane). */
#include "libclient/send_plain.h"

#include <errno.h>
#include <string.h>

/* ---- loans: opaque[0] = chunk index + 1, opaque[1] = life of the handle ------------------- */

int rbi_loan_check(struct ringbus *bus,
                   const struct ringbus_loan *loan,
                   uint64_t size,
                   uint32_t *chunk)
{
    if (loan == NULL) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT, "loan is NULL");
    }
    if (loan->opaque[0] == 0 || loan->opaque[0] > bus->pool.chunk_count ||
        loan->opaque[1] != bus->life) {
        return rbi_fail(bus, RINGBUS_E_CLOSED, "the loan was returned or is another handle's");
    }
    if (size > loan->size) {
        return rbi_fail(bus, RINGBUS_E_TOO_BIG, "%llu bytes of a loan of %zu",
                        (unsigned long long)size, loan->size);
    }
    *chunk = (uint32_t)(loan->opaque[0] - 1);
    return 0;
}

int ringbus_loan(struct ringbus *bus, size_t size, struct ringbus_loan *out)
{
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    struct rbi_chunk chunk = {.idx = RBI_CHUNK_NONE};
    if (out == NULL) {
        r = rbi_fail(bus, RINGBUS_E_ARGUMENT, "no place for the loan");
    } else {
        r = rbi_send_chunk(bus, NULL, size, &chunk);
    }
    if (r == 0 && out != NULL) {
        memset(out, 0, sizeof *out);
        out->data = chunk.data;
        out->size = size;
        out->opaque[0] = (uint64_t)chunk.idx + 1;
        out->opaque[1] = bus->life;
    }
    rbi_leave(bus);
    return r;
}

int ringbus_loan_return(struct ringbus *bus, struct ringbus_loan *loan)
{
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    uint32_t chunk = RBI_CHUNK_NONE;
    r = rbi_loan_check(bus, loan, 0, &chunk);
    if (r == 0 && loan != NULL) {
        rbi_pool_unref(&bus->pool, chunk);
        bus->returned++;
        memset(loan, 0, sizeof *loan);
    }
    rbi_leave(bus);
    return r;
}

/*
 * ---- claims: opaque = {kind of claim, cluster, instance | incarnation, key, flags, and
 * chunk + 1 or, in a lane, the life of the link}
 */

/* Beside the flags of the caller: it was for any instance; it goes past its key's owner. */
#define CLAIM_FOR_ANY  0x80000000U
#define CLAIM_DIVERTED 0x40000000U

enum { CLAIM_NONE = 0, CLAIM_LANE = 1, CLAIM_CHUNK = 2 };

static void note_claim(struct ringbus_claim *claim,
                       uint64_t kind,
                       const struct rbi_end *end,
                       uint64_t key,
                       unsigned flags,
                       uint64_t where)
{
    claim->opaque[0] = kind;
    claim->opaque[1] = end->peer.cluster;
    claim->opaque[2] = (uint64_t)(uint32_t)end->peer.instance << 32 | end->peer.incarnation;
    claim->opaque[3] = key;
    claim->opaque[4] = flags;
    claim->opaque[5] = where;
}

static int claim_lane(struct ringbus *bus,
                      struct rbi_end *end,
                      uint64_t size,
                      unsigned words,
                      struct ringbus_claim *out)
{
    unsigned char *body = NULL;
    const uint64_t bytes = RBI_RECORD_TAG + 8U * words + size;
    const int r = rbi_send_reserve(bus, end, bytes, &body);
    if (RBI_UNLIKELY(r != 0)) {
        return r;
    }
    end->hindered |= RBI_HINDERED_CLAIM;
    out->data = body + RBI_RECORD_TAG + UINT64_C(8) * words;
    return 0;
}

/* The way has been found; @p more of CLAIM_DIVERTED, and a constant where nothing hinders. */
static inline int claim_from(struct ringbus *bus,
                             struct rbi_end *end,
                             const struct ringbus_addr *to,
                             uint64_t key,
                             uint64_t size,
                             unsigned flags,
                             unsigned more,
                             struct ringbus_claim *out)
{
    struct rbi_chunk chunk = {.idx = 0};
    int r = 0;
    memset(out, 0, sizeof *out);
    if (size <= bus->inline_max) {
        r = claim_lane(bus, end, size, more != 0 ? RBI_DIVERT_CLAIM_WORDS : 0U, out);
    } else {
        r = rbi_send_chunk(bus, end, size, &chunk);
        out->data = r == 0 ? chunk.data : NULL;
    }
    if (r == 0) {
        out->size = size;
        note_claim(out, size <= bus->inline_max ? CLAIM_LANE : CLAIM_CHUNK, end, key,
                   flags | more | (to->instance == RINGBUS_ANY ? CLAIM_FOR_ANY : 0U),
                   size <= bus->inline_max ? end->link_life : (uint64_t)chunk.idx + 1);
    }
    return r;
}

/* Something stands in the plain way: a key whose owner is passed by, rights, limits, a claim. */
static RBI_COLD int claim_hindered(struct ringbus *bus,
                                   struct rbi_end *end,
                                   const struct ringbus_addr *to,
                                   uint64_t key,
                                   uint64_t size,
                                   unsigned flags,
                                   struct ringbus_claim *out)
{
    const bool diverted = (flags & RINGBUS_KEY) != 0 && rbi_divert_take(bus, end, key);
    int r = rbi_send_hindered(bus, end, 0);
    if (r == 0 && (end->hindered & RBI_HINDERED_DELAYED) != 0) {
        r = rbi_delay_refuse(bus, end);
    }
    if (r == 0 && (end->hindered & RBI_HINDERED_LIMIT) != 0) {
        r = rbi_limit_ask(bus, end, 0, size);
    }
    return r != 0 ? r
                  : claim_from(bus, end, to, key, size, flags, diverted ? CLAIM_DIVERTED : 0U, out);
}

static int do_claim(struct ringbus *bus,
                    const struct ringbus_addr *to,
                    uint64_t key,
                    uint64_t size,
                    unsigned flags,
                    struct ringbus_claim *out)
{
    struct rbi_end *end = NULL;
    if (to == NULL || out == NULL) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT, "no address or no place for the claim");
    }
    if ((flags & ~(RINGBUS_KEY | RINGBUS_MORE | RINGBUS_IDEMPOTENT)) != 0) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT, "unknown flags 0x%x", flags);
    }
    if (size > bus->size_max) {
        rbi_count(bus, RBI_COUNTER_too_big, 1);
        return rbi_fail_fast(bus, RINGBUS_E_TOO_BIG, NULL, size);
    }
    const int r = rbi_send_resolve(bus, to, (flags & RINGBUS_KEY) != 0, key, &end);
    if (r != 0) {
        return r;
    }
    if (RBI_UNLIKELY(end->hindered != 0)) {
        return claim_hindered(bus, end, to, key, size, flags, out);
    }
    return claim_from(bus, end, to, key, size, flags, 0, out);
}

int ringbus_claim(struct ringbus *bus,
                  const struct ringbus_addr *to,
                  uint64_t key,
                  size_t size,
                  unsigned flags,
                  struct ringbus_claim *out)
{
    int r = rbi_enter(bus);
    if (RBI_LIKELY(r == 0)) {
        r = do_claim(bus, to, key, size, flags, out);
        rbi_leave(bus);
    }
    return r;
}

/* A link that ended while a claim in its lane was open: kept until the claim ends. */
static RBI_COLD struct rbi_end *claimed_end_of_old(struct ringbus *bus, uint64_t link_life)
{
    for (unsigned i = 0; i < bus->end_count; i++) {
        if (bus->ends[i]->link_life == link_life) {
            return bus->ends[i];
        }
    }
    return NULL;
}

/* The end of a claim, if it still is the very life of the peer that was claimed from. */
static struct rbi_end *claimed_end(struct ringbus *bus, const struct ringbus_claim *claim)
{
    struct rbi_end *end =
        rbi_end_find(bus, claim->opaque[1], (int32_t)(uint32_t)(claim->opaque[2] >> 32));
    if (claim->opaque[0] == CLAIM_LANE) {
        if (end == NULL || end->link_life != claim->opaque[5]) {
            end = claimed_end_of_old(bus, claim->opaque[5]);
        }
        return end != NULL && (end->hindered & RBI_HINDERED_CLAIM) != 0 ? end : NULL;
    }
    return end != NULL && end->peer.incarnation == (uint32_t)claim->opaque[2] ? end : NULL;
}

static void end_claim(struct ringbus *bus, struct rbi_end *end, struct ringbus_claim *claim)
{
    if (claim->opaque[0] == CLAIM_CHUNK) {
        rbi_pool_unref(&bus->pool, (uint32_t)(claim->opaque[5] - 1));
        bus->returned++;
    } else if (end != NULL) {
        end->hindered &= (uint8_t)~RBI_HINDERED_CLAIM;
        if (end->phase == RBI_END_CLOSED) {
            bus->reap_needed = true;
        } else if (end->pending != 0) {
            rbi_end_flush_pending(bus, end);
        }
    }
    memset(claim, 0, sizeof *claim);
}

/* One that goes past its key's owner: the words before the payload say so. */
static RBI_COLD int commit_diverted(struct ringbus *bus,
                                    struct rbi_end *end,
                                    const struct ringbus_claim *claim,
                                    uint64_t size)
{
    const unsigned flags = (unsigned)claim->opaque[4];
    const uint64_t head = RBI_RECORD_TAG + 8U * RBI_DIVERT_CLAIM_WORDS;
    unsigned char *body = (unsigned char *)claim->data - head;
    struct rbi_attributes attributes;
    rbi_divert_say(bus, end, &attributes);
    memcpy(body, &claim->opaque[3], sizeof claim->opaque[3]);
    memset(body + RBI_RECORD_TAG, 0, head - RBI_RECORD_TAG);
    (void)rbi_attributes_encode(&attributes, body + RBI_RECORD_TAG);
    rbi_send_commit(
        bus, end, head + size,
        rbi_record_meta(RBI_RECORD_ONEWAY,
                        RBI_RECORD_KEY | RBI_RECORD_ANY | RBI_RECORD_ATTRIBUTES |
                            ((flags & RINGBUS_IDEMPOTENT) != 0 ? RBI_RECORD_IDEMPOTENT : 0U),
                        RBI_DIVERT_CLAIM_WORDS, 0),
        flags & RINGBUS_MORE);
    rbi_count(bus, RBI_COUNTER_sent, 1);
    rbi_count(bus, RBI_COUNTER_sent_bytes, size);
    rbi_count(bus, RBI_COUNTER_diverted, 1);
    return 1;
}

static int commit_lane(struct ringbus *bus,
                       struct rbi_end *end,
                       const struct ringbus_claim *claim,
                       uint64_t size)
{
    const unsigned flags = (unsigned)claim->opaque[4];
    unsigned char *data = claim->data;
    if (RBI_UNLIKELY((flags & CLAIM_DIVERTED) != 0)) {
        return commit_diverted(bus, end, claim, size);
    }
    memcpy(data - RBI_RECORD_TAG, &claim->opaque[3], sizeof claim->opaque[3]);
    rbi_send_commit(
        bus, end, RBI_RECORD_TAG + size,
        rbi_record_meta(RBI_RECORD_ONEWAY,
                        ((flags & RINGBUS_KEY) != 0 ? RBI_RECORD_KEY : 0U) |
                            ((flags & CLAIM_FOR_ANY) != 0 ? RBI_RECORD_ANY : 0U) |
                            ((flags & RINGBUS_IDEMPOTENT) != 0 ? RBI_RECORD_IDEMPOTENT : 0U),
                        0, 0),
        flags);
    rbi_count(bus, RBI_COUNTER_sent, 1);
    rbi_count(bus, RBI_COUNTER_sent_bytes, size);
    return 1;
}

static int commit_chunk(struct ringbus *bus,
                        struct rbi_end *end,
                        const struct ringbus_claim *claim,
                        uint64_t size)
{
    const unsigned said = (unsigned)claim->opaque[4];
    const unsigned for_any = (said & CLAIM_FOR_ANY) != 0 ? RBI_RECORD_ANY : 0U;
    const bool diverted = (said & CLAIM_DIVERTED) != 0;
    struct rbi_attributes attributes;
    if (diverted) {
        rbi_divert_say(bus, end, &attributes);
    }
    const struct ringbus_part part = {.data = claim->data, .size = size};
    const struct rbi_outgoing out = {.kind = RBI_RECORD_ONEWAY,
                                     .flags = said & ~(CLAIM_FOR_ANY | CLAIM_DIVERTED),
                                     .record_flags = for_any,
                                     .key = claim->opaque[3],
                                     .parts = &part,
                                     .part_count = 1,
                                     .size = size,
                                     .chunk = (uint32_t)(claim->opaque[5] - 1),
                                     .attributes = diverted ? &attributes : NULL};
    const int r = rbi_send_one(bus, end, &out);
    rbi_count(bus, RBI_COUNTER_diverted, r == 0 && diverted ? 1 : 0);
    return r == 0 ? 1 : r;
}

static int do_commit(struct ringbus *bus, struct ringbus_claim *claim, uint64_t size)
{
    int r;
    if (claim == NULL || claim->opaque[0] == CLAIM_NONE) {
        return rbi_fail(bus, RINGBUS_E_CLOSED, "no claim is open here");
    }
    if (size > claim->size) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT, "%llu bytes of a claim of %zu",
                        (unsigned long long)size, claim->size);
    }
    struct rbi_end *end = claimed_end(bus, claim);
    if (end == NULL || !end->usable) {
        r = rbi_fail(bus, RINGBUS_E_PEER_GONE, "the receiver of the claim is gone");
    } else if (claim->opaque[0] == CLAIM_LANE) {
        r = commit_lane(bus, end, claim, size);
    } else {
        r = commit_chunk(bus, end, claim, size);
        if (r == RINGBUS_E_FULL) {
            return r; /* the claim stays open: commit again when there is room */
        }
    }
    if (r == 1 && RBI_UNLIKELY((end->hindered & RBI_HINDERED_LIMIT) != 0)) {
        rbi_limit_taken(bus, end, 0, size);
    }
    end_claim(bus, end, claim);
    return r;
}

int ringbus_commit(struct ringbus *bus, struct ringbus_claim *claim, size_t size)
{
    int r = rbi_enter(bus);
    if (RBI_LIKELY(r == 0)) {
        r = do_commit(bus, claim, size);
        rbi_leave(bus);
    }
    return r;
}

int ringbus_abort(struct ringbus *bus, struct ringbus_claim *claim)
{
    int r = rbi_enter(bus);
    if (r != 0) {
        return r;
    }
    if (claim == NULL || claim->opaque[0] == CLAIM_NONE) {
        r = rbi_fail(bus, RINGBUS_E_CLOSED, "no claim is open here");
    } else {
        end_claim(bus, claimed_end(bus, claim), claim);
    }
    rbi_leave(bus);
    return r;
}

int ringbus_send_loan(struct ringbus *bus,
                      const struct ringbus_addr *to,
                      uint64_t key,
                      const struct ringbus_loan *loan,
                      size_t size,
                      unsigned flags)
{
    int r = rbi_enter(bus);
    if (RBI_UNLIKELY(r != 0)) {
        return r;
    }
    uint32_t chunk = RBI_CHUNK_NONE;
    r = rbi_loan_check(bus, loan, size, &chunk);
    if (r == 0) {
        const struct ringbus_part part = {.data = loan->data, .size = size};
        struct rbi_outgoing out = {.kind = RBI_RECORD_ONEWAY,
                                   .flags = flags,
                                   .key = key,
                                   .parts = &part,
                                   .part_count = 1,
                                   .size = size,
                                   .chunk = chunk};
        r = rbi_send_any(bus, to, &out);
    }
    rbi_leave(bus);
    return r;
}
