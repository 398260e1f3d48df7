/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_FLOOD_H
#define RINGBUS_DAEMON_BRIDGE_FLOOD_H
/*
 * daemon/bridge/flood.h - where each host leads to. A bridge tells its neighbours its edges with a
 * number that grows; they tell theirs what is newer than what they knew, so it reaches everybody
 * once, whatever the loops. The daemon hears the same.
 */
#include "daemon/bridge/session.h"

struct rbi_far;

/** Our edges may have changed: told soon, and at once when one has come or gone. */
void rbi_flood_look(struct rbi_bridge *bridge);
/** EDGES came. */
void rbi_flood_on_edges(struct rbi_session *session, const struct rbi_frame_edges *edges);
/** A neighbour has come: it hears of everybody. */
void rbi_flood_greet(struct rbi_session *session);
/** The daemon has come back: it hears of everybody. */
void rbi_flood_tell_daemon(struct rbi_bridge *bridge);

#endif
