/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_UNIT_ROUTE_TABLE_H
#define RINGBUS_TESTS_UNIT_ROUTE_TABLE_H
/*
 * Rows of a truth table as text, made into what the router chain takes.
 *
 *   policy     words: set locality=strict tag=off rule=(id=r,mode=strict,tag=x) keyed ...
 *   caller     words: set=app.south.1 idc=room1/zone host=1 node=0
 *   message    words: tag=v2 rules=01 canary=1
 *   instances  name(attribute,attribute=value,...) ...; a ";" begins the next business
 *   result     names, each with ":percent" where that is to be checked; "-" and the stage that left
 *              nobody in brackets
 */
#include "bus/route.h"

#define ROUTE_TABLE_INSTANCES 32U
#define ROUTE_TABLE_REALMS    4U

struct route_table {
    struct rbi_policy policy;
    bool keyed; /* the result is that for balancers by key */
    struct rbi_route_caller caller;
    struct rbi_route_message message;
    struct rbi_route_cluster clusters[ROUTE_TABLE_REALMS];
    unsigned cluster_count;
    uint64_t now_ns;
    struct rbi_directory_instance instances[ROUTE_TABLE_REALMS][ROUTE_TABLE_INSTANCES];
    uint64_t invisible[ROUTE_TABLE_REALMS];
    char texts[4][64];
    struct rbi_route_entry entries[ROUTE_TABLE_REALMS * ROUTE_TABLE_INSTANCES];
    struct rbi_route_result result;
};

/** What every row of a table has in common. @retval false not understood */
bool route_table_policy(struct route_table *table, const char *policy);
/** One row. @retval false not understood */
bool route_table_row(struct route_table *table,
                     const char *caller,
                     const char *message,
                     const char *instances);
void route_table_run(struct route_table *table, struct rbi_route_memory *memory);
/** The result as a row says it; percents where @p expected has them. */
void route_table_result(const struct route_table *table,
                        const char *expected,
                        char *text,
                        size_t size);

#endif
