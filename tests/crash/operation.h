/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_CRASH_OPERATION_H
#define RINGBUS_TESTS_CRASH_OPERATION_H
/*
 * The operations that a victim is killed in. Each is a few calls of the public API between
 * two markers; what happens before the first is preparation at full speed.
 */
#include "crash/message.h"

#define OPERATION_FILL 12U

struct operation;

/** Endpoint of a round that is going to die. */
struct victim {
    struct node node;
    const struct cluster *cluster;
    const struct operation *operation;
    uint32_t round;
    uint32_t next;             /* number of the next message to the partners */
    struct ringbus_addr to;    /* partner, or all of them */
    unsigned ping_interval_ms; /* 0: the default */
    struct ringbus_kept *kept; /* the referenced one of the warm-up, with keeps */
    struct ringbus_claim claim;
    struct ringbus_loan loan;
    unsigned replies;
    bool keeping; /* the handler keeps what it gets */
    unsigned char payload[MESSAGE_MAX];
    unsigned char filling[OPERATION_FILL][MESSAGE_LARGE]; /* more than a lane takes */
};

/** What the partner sends right before the first instruction. */
enum operation_given {
    GIVEN_NOTHING = 0,
    GIVEN_SMALL,
    GIVEN_BATCH,
    GIVEN_REFERENCED,
    GIVEN_REQUEST
};

struct operation {
    const char *name;
    unsigned first_partner; /* PARTNER_AWAKE, PARTNER_ASLEEP */
    unsigned partners;      /* 1, or all from the first on */
    bool cold;              /* no message has gone over the link before */
    bool keeps;             /* the victim keeps the referenced message of the warm-up */
    bool by_calls;          /* rich in system calls: killed at each, and somewhere in between */
    bool unlinked;          /* no link before the operation */
    bool wanted;            /* the partner asks for the victim, not the other way round */
    bool leaves;            /* it may leave in order: LEFT is as good as CRASHED */
    bool blocks;            /* it sleeps until the partner sends, or with fills has read */
    bool fills;             /* it writes until there is no room */
    enum operation_given given;
    void (*before)(struct victim *victim); /* may be NULL */
    void (*run)(struct victim *victim);
};

#define PARTNER_AWAKE  0U /* polls: nobody rings it */
#define PARTNER_ASLEEP 1U /* announces sleep whenever it has nothing to do */
#define PARTNER_COUNT  4U

#define CRASH_PARTNER "/game/eu/pc/w1/core/partner"
#define CRASH_VICTIM  "/game/eu/pc/w1/core/victim/1"

/** NULL behind the last. */
const struct operation *operation_at(unsigned i);
const struct operation *operation_find(const char *name);

/** The victim's message callback. */
void operation_on_message(struct node *node, const struct ringbus_message *message);
/** Opens the victim's endpoint, with its callbacks. @return as ringbus_open() */
int operation_try_open(struct victim *victim);
/** The same; ends the victim when it fails. */
void operation_open(struct victim *victim);
/** Targets the partners. @param ping_interval_ms  0: that of the endpoint */
void operation_target(struct victim *victim,
                      const struct operation *operation,
                      unsigned ping_interval_ms);
/** The same, and polls and sleeps until as many links are READY. */
void operation_link(struct victim *victim, const struct operation *operation);
/** Sends the next numbered message. @return as ringbus_send() */
int operation_send(struct victim *victim, size_t size, unsigned flags);

#endif
