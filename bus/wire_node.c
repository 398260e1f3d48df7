/* SPDX-License-Identifier: Apache-2.0 */
/* bus/wire_node.c - tables of the messages about the node tree. */
#include "bus/wire_table.h"

#define RBI_WIRE_OF rbi_wire_node
RBI_WIRE_TABLE(node);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_node_state
RBI_WIRE_TABLE(node_state);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_node_event
RBI_WIRE_TABLE(node_event);
#undef RBI_WIRE_OF
