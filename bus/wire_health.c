/* SPDX-License-Identifier: Apache-2.0 */
/* bus/wire_health.c - tables of the messages about outcomes of calls, shields and probes. */
#include "bus/wire_table.h"

#define RBI_WIRE_OF rbi_wire_probe
RBI_WIRE_TABLE(probe);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_probe_grant
RBI_WIRE_TABLE(probe_grant);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_probe_result
RBI_WIRE_TABLE(probe_result);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_unshield
RBI_WIRE_TABLE(unshield);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_outcomes
RBI_WIRE_TABLE(outcomes);
#undef RBI_WIRE_OF
