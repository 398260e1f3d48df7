/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus/wire_link.c - tables of the messages about interest in clusters, introductions, ends of
 * links.
 */
#include "bus/wire_table.h"

#define RBI_WIRE_OF rbi_wire_target
RBI_WIRE_TABLE(target);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_untarget
RBI_WIRE_TABLE(untarget);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_introduce
RBI_WIRE_TABLE(introduce);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_introduced
RBI_WIRE_TABLE(introduced);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_accept
RBI_WIRE_TABLE(accept);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_refuse
RBI_WIRE_TABLE(refuse);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_linked
RBI_WIRE_TABLE(linked);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_link_down
RBI_WIRE_TABLE(link_down);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_relink
RBI_WIRE_TABLE(relink);
#undef RBI_WIRE_OF
