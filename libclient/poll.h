/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_POLL_H
#define RINGBUS_LIBCLIENT_POLL_H
/* libclient/poll.h - reading the lanes, and the tick around it. */
#include "bus/record.h"

#include <stdint.h>

struct rbi_end;
struct rbi_view;
struct ringbus;

/* Most messages that one link may deliver before the next has its turn. */
#define RBI_BATCH_MAX 256U
/*
 * Of what it has read a receiver may keep so much to itself from one poll to the next, and an
 * eighth of the lane at most; while it reads on, no more than a quarter.
 */
#define RBI_UNSAID_BYTES UINT64_C(8192)

/** Message view of a record in our own or a peer's lane. 0; -EPROTO */
int rbi_view_fill(struct ringbus *bus,
                  struct rbi_end *end,
                  const struct rbi_record *record,
                  const unsigned char *pool_base,
                  uint64_t pool_bytes,
                  struct rbi_view *view);
/** Tells the sender what we have read, and wakes it if it waits for room. */
void rbi_poll_release(struct ringbus *bus, struct rbi_end *end);
/** The first half of a tick, before the lanes are read: clock, what the daemon has sent. */
void rbi_tick(struct ringbus *bus, uint64_t now_ns);
/** The second half, behind the lanes: what came while we slept counts. Deadlines, judgements. */
void rbi_tick_judge(struct ringbus *bus);
/** For how long we ourselves did not poll: the handler that has just ended, or a sleep before. */
uint32_t rbi_tick_silence_ms(const struct ringbus *bus);
/** The end is to be looked at when its link's state machine, or what it could not send, asks. */
void rbi_tick_follow(struct ringbus *bus, struct rbi_end *end);

#endif
