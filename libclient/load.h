/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_LOAD_H
#define RINGBUS_LIBCLIENT_LOAD_H
/*
 * libclient/load.h - tells peers how much we have to do (shm/load.h): twice a tick, nothing for
 * each message.
 */
struct ringbus;

/** A tick, before the lanes are read: tells peers what waits in them. */
void rbi_load_before(struct ringbus *bus);
/** The poll of that tick has taken so many records: how long one takes. */
void rbi_load_after(struct ringbus *bus, unsigned taken);

#endif
