/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_CRASH_PARTNER_H
#define RINGBUS_TESTS_CRASH_PARTNER_H
/*
 * The endpoints that live on: partners of the victim, who count what becomes of every
 * message from and to it, and a witness whose own link to the first partner carries a steady
 * flow through all rounds.
 *
 * All in the driver's thread: while a victim stands between two instructions, nothing here
 * moves but what the driver asks for.
 */
#include "crash/operation.h"

struct partner {
    struct node node;
    unsigned at;
    struct ringbus_addr victim; /* of the last READY */
    bool linked;
    unsigned lives; /* READY in this round */
    unsigned downs;
    enum ringbus_reason reasons[2]; /* of the DOWNs */
    uint32_t got;                   /* messages of the first life: 0 to got - 1, in order */
    uint32_t back;                  /* number of the last message of the second life, + 1 */
    uint32_t sent;                  /* messages to the victim: 0 to sent - 1 */
    /* Of those, by number. */
    uint64_t returned; /* UNDELIVERED */
    uint64_t maybe;    /* of the returned: its handler may have run */
    uint64_t requests;
    uint64_t replied;
    uint64_t unknown;
    uint64_t not_sent;
};

extern struct partner partners[PARTNER_COUNT];

/** Opens all; @p dead_soon: whoever stands still is given up after some ten milliseconds. */
void partners_open(const struct cluster *cluster);
void partners_close(void);
/** Around the rounds of an operation: the partner asks for the victim, or no more. */
void partners_want(const struct operation *operation, bool on);
/** Forgets the last round. */
void partners_round(const struct operation *operation, uint32_t round);
/** Polls each once; the witness sends. @return whether anything came */
bool partners_step(void);
/** The same, and sleeps up to a millisecond when nothing came. */
void partners_run(void);
/** Until nothing is under way between partners and witness. */
void partners_settle(void);
/** Sends what the operation is to find. */
void partners_give(const struct operation *operation, enum operation_given given);
/** Whether any partner has a link with the victim. */
bool partners_linked(void);
/** Ends partners_run() at once; async-signal-safe. */
void partners_wake(void);
/** Messages of the witness that have arrived. */
uint64_t partners_witnessed(void);

#endif
