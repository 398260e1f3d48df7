/* SPDX-License-Identifier: Apache-2.0 */
/* bus/wire_lease.c - tables of the messages about limits of all callers together. */
#include "bus/wire_table.h"

#define RBI_WIRE_OF rbi_wire_lease
RBI_WIRE_TABLE(lease);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_lease_demand
RBI_WIRE_TABLE(lease_demand);
#undef RBI_WIRE_OF
