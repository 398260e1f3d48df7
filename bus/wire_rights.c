/* SPDX-License-Identifier: Apache-2.0 */
/* bus/wire_rights.c - tables of the messages about rights. */
#include "bus/wire_table.h"

#define RBI_WIRE_OF rbi_wire_methods
RBI_WIRE_TABLE(methods);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_replaced
RBI_WIRE_TABLE(replaced);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_rights
RBI_WIRE_TABLE(rights);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_may_link
RBI_WIRE_TABLE(may_link);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_who
RBI_WIRE_TABLE(who);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_who_is
RBI_WIRE_TABLE(who_is);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_verdict
RBI_WIRE_TABLE(verdict);
#undef RBI_WIRE_OF
