/* SPDX-License-Identifier: Apache-2.0 */
/* bus/wire_alarm.c - tables of the messages about alarms, calls and dry runs. */
#include "bus/wire_table.h"

#define RBI_WIRE_OF rbi_wire_alarm
RBI_WIRE_TABLE(alarm);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_row_alarm
RBI_WIRE_TABLE(row_alarm);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_row_calls
RBI_WIRE_TABLE(row_calls);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_dry_run
RBI_WIRE_TABLE(dry_run);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_row_dry_run
RBI_WIRE_TABLE(row_dry_run);
#undef RBI_WIRE_OF
