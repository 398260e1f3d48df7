/* SPDX-License-Identifier: Apache-2.0 */
/* bus/wire_query.c - tables of the messages about rows for tools. */
#include "bus/wire_table.h"

#define RBI_WIRE_OF rbi_wire_query
RBI_WIRE_TABLE(query);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_row_endpoint
RBI_WIRE_TABLE(row_endpoint);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_row_link
RBI_WIRE_TABLE(row_link);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_row_status
RBI_WIRE_TABLE(row_status);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_query_end
RBI_WIRE_TABLE(query_end);
#undef RBI_WIRE_OF
