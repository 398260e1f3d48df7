/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_END_CONTROL_H
#define RINGBUS_LIBCLIENT_END_CONTROL_H
/* libclient/end_control.h - control records of a link (READY, PING, DISCONNECT), and its end. */
#include "bus/link.h"
#include "bus/record.h"

struct rbi_end;
struct ringbus;

/**
 * Writes a control record; it finds room that data leaves free. @return false: there is none, or a
 * claim is open
 */
bool rbi_end_send_control(struct ringbus *bus,
                          struct rbi_end *end,
                          enum rbi_record_kind kind,
                          uint64_t tag,
                          const unsigned char *payload,
                          uint64_t size);
/** Feeds the state machine and carries out what it says. */
void rbi_end_step(struct ringbus *bus, struct rbi_end *end, const struct rbi_link_input *input);
/** A control record came in. */
void rbi_end_control_record(struct ringbus *bus,
                            struct rbi_end *end,
                            const struct rbi_record *record);
/** An unasked PONG: we work, though we do not poll. */
void rbi_end_say_alive(struct ringbus *bus, struct rbi_end *end);
/** Sends control records that found no room before. */
void rbi_end_flush_pending(struct ringbus *bus, struct rbi_end *end);
/** The peer is dead or gone: read its lane to the end, then close. Callable from anywhere. */
void rbi_end_peer_gone(struct ringbus *bus, struct rbi_end *end, enum rbi_reason reason);
/** What the peer sent cannot be mapped, and has not been for a while: ends the link. */
void rbi_end_starved(struct ringbus *bus, struct rbi_end *end);
/** The peer gave us up while we did not run, and has taken back what we had not begun to read. */
RBI_COLD void rbi_end_withdrawn(struct ringbus *bus, struct rbi_end *end);
/** The peer broke the rules. */
void rbi_end_bad_peer(struct ringbus *bus, struct rbi_end *end, const char *what);

#endif
