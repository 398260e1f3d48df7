/* SPDX-License-Identifier: Apache-2.0 */
/* bus/wire_watch.c - tables of the messages about events of the directory. */
#include "bus/wire_table.h"

#define RBI_WIRE_OF rbi_wire_watch
RBI_WIRE_TABLE(watch);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_unwatch
RBI_WIRE_TABLE(unwatch);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_event
RBI_WIRE_TABLE(event);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_resync
RBI_WIRE_TABLE(resync);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_keyed
RBI_WIRE_TABLE(keyed);
#undef RBI_WIRE_OF
