/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BROKER_RELAY_H
#define RINGBUS_DAEMON_BROKER_RELAY_H
/*
 * daemon/broker/relay.h - what becomes of a message that comes to a face: it is sent on, or left
 * with its sender for a while, or its sender is told why not. Nothing is dropped without a word.
 */
#include "daemon/broker/face.h"

/** ringbus_message_fn; @p user is the face. */
void rbi_relay_message(struct ringbus *bus, const struct ringbus_message *message, void *user);
/** ringbus_event_fn, the same. */
void rbi_relay_event(struct ringbus *bus, const struct ringbus_event *event, void *user);

#endif
