/* SPDX-License-Identifier: Apache-2.0 */
/* bus/wire_bridge.c - tables of the messages about other hosts and the ways there. */
#include "bus/wire_table.h"

#define RBI_WIRE_OF rbi_wire_bridge
RBI_WIRE_TABLE(bridge);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_host
RBI_WIRE_TABLE(host);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_edges
RBI_WIRE_TABLE(edges);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_way
RBI_WIRE_TABLE(way);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_row_host
RBI_WIRE_TABLE(row_host);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_row_way
RBI_WIRE_TABLE(row_way);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_confirm
RBI_WIRE_TABLE(confirm);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_hop
RBI_WIRE_TABLE(hop);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_follow
RBI_WIRE_TABLE(follow);
#undef RBI_WIRE_OF
