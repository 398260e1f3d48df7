/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_ALARMS_H
#define RINGBUS_LIBCLIENT_ALARMS_H
/*
 * libclient/alarms.h - alarms of clusters below the watched prefixes that the application was told
 * of: each fires once and is over once, whatever was told again after events were dropped or the
 * connection was lost.
 */
#include "bus/wire.h"

#include <ringbus/ringbus.h>
#include <stdbool.h>

struct rbi_alarm_sight;
struct ringbus;

struct rbi_alarm_sights {
    struct rbi_alarm_sight **all;
    unsigned count;
    unsigned room;
};

/** What an event tells of an alarm, with the text that it points to. */
struct rbi_alarm_news {
    struct ringbus_alarm alarm;
    char rule[RBI_WIRE_TEXT_MAX + 1];
};

void rbi_alarm_sights_event(struct ringbus *bus, const struct rbi_wire_alarm *body);
/** Another daemon: for that nothing fires yet. */
void rbi_alarm_sights_over(struct ringbus *bus);
/** Some prefix is not watched any more: what lies below that alone is forgotten. */
void rbi_alarm_sights_unwatched(struct ringbus *bus);
void rbi_alarm_sights_deinit(struct rbi_alarm_sights *sights);

#endif
