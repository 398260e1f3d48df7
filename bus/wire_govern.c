/* SPDX-License-Identifier: Apache-2.0 */
/* bus/wire_govern.c - tables of the messages about changes of the configuration while it runs. */
#include "bus/wire_table.h"

#define RBI_WIRE_OF rbi_wire_apply
RBI_WIRE_TABLE(apply);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_applied
RBI_WIRE_TABLE(applied);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_edit
RBI_WIRE_TABLE(edit);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_rollback
RBI_WIRE_TABLE(rollback);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_get_text
RBI_WIRE_TABLE(get_text);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_text
RBI_WIRE_TABLE(text);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_history
RBI_WIRE_TABLE(history);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_row_version
RBI_WIRE_TABLE(row_version);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_describe
RBI_WIRE_TABLE(describe);
#undef RBI_WIRE_OF

#define RBI_WIRE_OF rbi_wire_description
RBI_WIRE_TABLE(description);
#undef RBI_WIRE_OF
