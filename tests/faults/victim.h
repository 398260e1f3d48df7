/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_FAULTS_VICTIM_H
#define RINGBUS_TESTS_FAULTS_VICTIM_H
/*
 * The endpoint whose system calls are refused, and the operations that it is tried with. Each
 * can be repeated after it failed, until what it is for has happened.
 */
#include "support/cluster.h"

#include <ringbus/ringbus.h>
#include <stdbool.h>
#include <stddef.h>

#define PARTNER   "/game/eu/pc/w1/core/partner"
#define PARTNER_1 PARTNER "/1"
#define VICTIM    "/game/eu/pc/w1/core/victim"
#define VICTIM_1  VICTIM "/1"

/** For whatever ought to happen within milliseconds, or a second where it is tried again. */
#define VICTIM_MS 5000U

/* Words of bus_shared. */
enum {
    SHARED_ROUNDS = 0,     /* counted by the victim: it makes progress */
    SHARED_RESTART = 1,    /* the victim wants the daemon restarted; 0 when that is done */
    SHARED_VIOLATIONS = 2, /* rounds that ended wrong */
    SHARED_POINTS = 3,     /* calls that were refused */
    SHARED_ERRORS = 4,     /* of those, how many ended in an error code */
};

struct victim {
    const struct cluster *cluster;
    struct ringbus *bus; /* NULL: not open */
    struct ringbus_addr partner;
    unsigned down;
    unsigned back;
    unsigned messages;
    unsigned replied;
    unsigned not_replied;
    int reply_error; /* of the last that was not replied */
    struct ringbus_kept *kept;
    int keep_error;
    bool wants_to_keep;
    bool asked; /* for a restart */
    bool damaged;
    char error[256];   /* ringbus_errmsg() of the last call that failed */
    const char *never; /* what did not come to be in time */
};

/** What a run may return besides an error of the API. */
#define VICTIM_NEVER (-1000)

struct operation {
    const char *name;
    /** Before anything is refused. */
    int (*setup)(struct victim *victim);
    /** @retval 0; an error of the API; VICTIM_NEVER */
    int (*run)(struct victim *victim);
};

extern const struct operation operations[];
extern const size_t operation_count;

/** Opens, targets the partner and talks to it: each step that is not done yet. */
int victim_talk(struct victim *victim);
/** Closes what is open. */
int victim_close(struct victim *victim);

/** The endpoint at the other end: answers, sends back, targets the victim and greets it. */
void partner_run(const struct cluster *cluster, void *context);

#endif
