/* SPDX-License-Identifier: Apache-2.0 */
/* bus/wire_endpoint.c - tables of the messages about registration and state of an endpoint. */
#include "bus/wire_table.h"

#define RBI_WIRE_OF rbi_wire_registration
RBI_WIRE_TABLE(registration);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_registered
RBI_WIRE_TABLE(registered);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_set_state
RBI_WIRE_TABLE(set_state);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_proxy
RBI_WIRE_TABLE(proxy);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_place
RBI_WIRE_TABLE(place);
#undef RBI_WIRE_OF
