/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_CENTRE_TURN_H
#define RINGBUS_DAEMON_CENTRE_TURN_H
/*
 * daemon/centre_turn.h - one change of the configuration after the other. While one is written
 * down, requests for others wait, in the order they came; each is handled as if it had come when
 * its turn is, so that it sees what the one before has changed. Who waits is read no further: so
 * there is one for each client at most.
 */
#include "daemon/request.h"

/**
 * Keeps a request until its turn, with its descriptors.
 * @return false: it is its turn now
 */
bool rbi_turn_wait(const struct rbi_request *request, rbi_request_fn handle);
/** The client is read no further until rbi_turn_over(). */
void rbi_turn_begin(struct rbi_peer *peer);
/** Its change is done with: the client is read again. */
void rbi_turn_over(struct rbi_peer *peer);
/** Handles those who wait until one of them has a change to be written down. */
void rbi_turn_next(struct rbi_daemon *daemon);
/** A client is going: what it waits for is dropped. */
void rbi_turn_peer_gone(struct rbi_peer *peer);

#endif
