/* SPDX-License-Identifier: Apache-2.0 */
/* bus/wire_drain.c - tables of the messages about draining an instance from outside. */
#include "bus/wire_table.h"

#define RBI_WIRE_OF rbi_wire_drain
RBI_WIRE_TABLE(drain);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_drain_order
RBI_WIRE_TABLE(drain_order);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_drain_report
RBI_WIRE_TABLE(drain_report);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_drain_state
RBI_WIRE_TABLE(drain_state);
#undef RBI_WIRE_OF
