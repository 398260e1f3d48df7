/* SPDX-License-Identifier: Apache-2.0 */
/* bus/wire_hello.c - tables of the messages about greeting, refusals, and the end of the daemon. */
#include "bus/wire_table.h"

#define RBI_WIRE_OF rbi_wire_hello
RBI_WIRE_TABLE(hello);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_hello_ok
RBI_WIRE_TABLE(hello_ok);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_error
RBI_WIRE_TABLE(error);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_ok
RBI_WIRE_TABLE(ok);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_stopping
RBI_WIRE_TABLE(stopping);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_settled
RBI_WIRE_TABLE(settled);
#undef RBI_WIRE_OF
