/* SPDX-License-Identifier: Apache-2.0 */
/* soak/offer.c - what a process of the soak sends: to one, to any, to all, in every way. */
#include "govern.h"
#include "me.h"

#include <string.h>

/** What is said of message @p seq. */
static struct ringbus_message_options said_of(uint32_t seq, const struct soak_fate *fate)
{
    static const uint32_t methods[] = {SOAK_METHOD_PLAIN,   SOAK_METHOD_PACED,  SOAK_METHOD_EACH,
                                       SOAK_METHOD_METERED, SOAK_METHOD_SHARED, SOAK_METHOD_MOCKED,
                                       SOAK_METHOD_FRAIL,   SOAK_METHOD_FRAIL};
    struct ringbus_message_options options = {.struct_size = sizeof options,
                                              .key = seq % 16,
                                              .method = methods[any_below(8)],
                                              .labels = {seq, me.index},
                                              .priority = any_below(RINGBUS_PRIORITY_MAX + 1)};
    options.flags = (any_below(2) == 0 ? RINGBUS_KEY : 0) | (fate->twice ? RINGBUS_IDEMPOTENT : 0);
    options.tag = any_below(8) == 0 ? "blue" : NULL;
    options.trace_id[0] = (unsigned char)(any_below(2) * (seq & 0xff));
    if (fate->kind == SOAK_ASKED) {
        options.timeout_ms = 1 + any_below(2000);
        options.try_timeout_ms = any_below(4) == 0 ? 1 + any_below(100) : 0;
    } else {
        options.timeout_ms = fate->expires ? 1 + any_below(200) : 3600000;
    }
    return options;
}

/** Sends a message with attributes. */
static int
send_said(const struct ringbus_addr *to, const void *message, uint32_t size, uint32_t seq)
{
    const struct soak_fate *fate = soak_fate(me.ledger, me.life, seq);
    const struct ringbus_message_options options = said_of(seq, fate);
    const struct ringbus_part parts[] = {{message, size / 2},
                                         {(const char *)message + size / 2, size - size / 2}};
    const struct ringbus_part whole = {message, size};
    const bool split = fate->kind == SOAK_DATED && seq % 2 == 0;
    if (fate->kind == SOAK_ASKED) {
        return ringbus_request_with(me.bus, to, &whole, 1, &options, soak_on_result,
                                    (void *)(uintptr_t)seq);
    }
    return ringbus_send_with(me.bus, to, split ? parts : &whole, split ? 2 : 1, &options);
}

/** Sends a message in one of the ways. @return what send gave */
static int send_as(unsigned way, const struct ringbus_addr *to, uint32_t size, uint32_t seq)
{
    static _Alignas(16) unsigned char message[SIZE_MAX_];
    struct ringbus_claim claim;
    struct ringbus_loan loan;
    int r = 0;
    switch (way) {
    case 0:
        r = ringbus_claim(me.bus, to, 0, size, 0, &claim);
        if (r != 0) {
            return r;
        }
        soak_compose(claim.data, size, seq);
        if (any_below(8) == 0) {
            (void)ringbus_abort(me.bus, &claim);
            return RINGBUS_E_CLOSED;
        }
        return ringbus_commit(me.bus, &claim, size);
    case 1:
        r = ringbus_loan(me.bus, size, &loan);
        if (r != 0) {
            return r;
        }
        soak_compose(loan.data, size, seq);
        r = ringbus_send_loan(me.bus, to, 0, &loan, size, 0);
        (void)ringbus_loan_return(me.bus, &loan);
        return r;
    case 2:
        soak_compose(message, size, seq);
        return ringbus_request(me.bus, to, 0, message, size, 0, 1 + any_below(2000), soak_on_result,
                               (void *)(uintptr_t)seq);
    case 5:
        soak_compose(message, size, seq);
        return send_said(to, message, size, seq);
    case 4:
        soak_compose(message, size, seq);
        return ringbus_send(me.bus, to, seq % 16, message, size,
                            (seq % 4 < 2 ? RINGBUS_KEY : 0) |
                                (seq % 2 == 0 ? RINGBUS_IDEMPOTENT : 0));
    default:
        soak_compose(message, size, seq);
        return ringbus_send(me.bus, to, 0, message, size, any_below(3) == 0 ? RINGBUS_MORE : 0);
    }
}

bool soak_offer(const struct ringbus_addr *to, enum soak_kind kind, unsigned way, uint32_t size)
{
    const uint32_t seq = atomic_load(&me.life->accepted) + 1;
    struct soak_fate *fate = soak_fate(me.ledger, me.life, seq);
    memset(fate, 0, sizeof *fate);
    fate->kind = (uint8_t)kind;
    fate->to_incarnation = to->incarnation;
    fate->to_slot = to->instance > 0 ? (uint8_t)(to->instance - 1) : 0;
    fate->twice = (kind == SOAK_ANY && seq % 2 == 0) ||
                  (kind == SOAK_ASKED && (me.forks || any_below(3) == 0));
    fate->expires = kind == SOAK_DATED && any_below(2) == 0;
    const int r = send_as(way, to, size, seq);
    if (r < 0 || (r == 0 && kind != SOAK_BROADCAST)) {
        const enum ringbus_error_kind error = ringbus_error_kind(r);
        if (error == RINGBUS_ERROR_USAGE || error == RINGBUS_ERROR_INTERNAL) {
            soak_violation(me.ledger, "send: %s", ringbus_errmsg(me.bus));
        }
        atomic_fetch_add(&me.life->refused, 1);
        return false;
    }
    fate->receivers = (uint8_t)r;
    atomic_store(&me.life->accepted, seq);
    return true;
}

static uint32_t any_size(void)
{
    const uint32_t least = (uint32_t)sizeof(struct head);
    switch (any_below(8)) {
    case 0:
        return INLINE_MAX + any_below(SIZE_MAX_ - INLINE_MAX);
    case 1:
        return least + any_below(INLINE_MAX - least);
    default:
        return least + any_below(200);
    }
}

void soak_offer_any(void)
{
    const struct ringbus_addr *to = &me.peers[any_below(me.ledger->slots)];
    const struct ringbus_addr all = {.cluster = me.self.cluster, .instance = RINGBUS_ALL};
    const struct ringbus_addr any = {.cluster = me.self.cluster, .instance = RINGBUS_ANY};
    const unsigned dice = any_below(100);
    if (dice < 6) {
        (void)soak_offer(&all, SOAK_BROADCAST, dice < 3 ? 1 : 3, any_size());
    } else if (dice < 12) {
        (void)soak_offer(&any, SOAK_ANY, 4, any_size());
    } else if (dice < 22) {
        (void)soak_offer(&any, SOAK_ASKED, 5, any_size());
    } else if (to->instance == 0) {
        return;
    } else if (dice < 34) {
        (void)soak_offer(to, SOAK_REQUEST, 2, any_size());
    } else if (dice < 42) {
        (void)soak_offer(to, SOAK_DATED, 5, any_size());
    } else {
        (void)soak_offer(to, SOAK_ONEWAY, dice < 50 ? 0 : dice < 60 ? 1 : 3, any_size());
    }
}
