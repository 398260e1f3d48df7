/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_CORE_H
#define RINGBUS_LIBCLIENT_CORE_H
/* libclient/core.h - giving way to a peer that shares our core. */
#include <stdbool.h>
#include <stdint.h>

struct ringbus;

/** Tells peers which core we run on; writes only when that has changed. */
void rbi_core_publish(struct ringbus *bus);
/** A poll found nothing or a send no room: now and then, gives the core to a peer that is on it. */
void rbi_core_idle_turn(struct ringbus *bus);
/** Before sleeping: gives way some times. @return true when something is there */
bool rbi_core_give_way(struct ringbus *bus, uint64_t now_ns);

#endif
