/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_HOSTILE_ATTACK_H
#define RINGBUS_TESTS_HOSTILE_ATTACK_H
/*
 * One hostile peer on one stage, and what came of what it did. Main thread only: these
 * assert.
 */
#include "hostile/peer.h"
#include "hostile/victim.h"
#include "support/test.h"

#define BODY_MAX       (PEER_LANE_CAPACITY - RBI_LINE * 9U - 8U) /* as shm/lane.h says */
#define HUNG           (-1)
#define FINE           0
#define EXTREMES_COUNT 19U

extern struct stage stage;
extern struct peer peer;
extern const uint64_t extremes[EXTREMES_COUNT];

/** Stage and peer; the second fails when somebody stands still, leaks, or lost a message. */
int attack_setup(void **state);
int attack_teardown(void **state);

/** The same dice each time. */
uint64_t roll(void);
/** One of the extremes, or a little more. */
uint64_t roll_extreme(void);

/** A fresh link that is READY. */
void relink(void);
/** Whether the daemon says that our link is over. @return its reason, or -1 */
int down_told(void);
/** What came of it. @return FINE the PING was answered; HUNG; else the reason of the end */
int verdict(bool ping);
void expect_verdict(int expected, const char *what, uint64_t value);

#endif
