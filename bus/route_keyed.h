/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_ROUTE_KEYED_H
#define RINGBUS_BUS_ROUTE_KEYED_H
/*
 * bus/route_keyed.h - whom the keys of a caller are dealt to: those whom the router chain gives a
 * hash_weight, if it is run as though those who died just now were still there. So the slots of
 * one that died wait for it where it had some, and for nobody else: an instance of another set, a
 * canary or one that was isolated leaves the keys of those whom it did not serve alone.
 *
 * Where nobody is absent this is the plain run of the chain.
 */
#include "bus/route.h"

/** How many are absent, of all clusters. 0: rbi_route_run() says the same. */
unsigned rbi_route_absent(const struct rbi_route_input *input);
/** Room that @p entries of rbi_route_keyed_run() must have: with those who are absent. */
unsigned rbi_route_keyed_room(const struct rbi_route_input *input);
/**
 * Runs the chain with those who are absent; it remembers nothing. The bits and lists of a cluster
 * (invisible, filtered, nodes) cover them, too.
 * @param entries  rbi_route_keyed_room() of them; rbi_route_is_absent() tells who of them is
 */
void rbi_route_keyed_run(const struct rbi_route_input *input,
                         struct rbi_route_entry *entries,
                         struct rbi_route_result *result);
/** Whether an entry of rbi_route_keyed_run() is of one who is absent. */
bool rbi_route_is_absent(const struct rbi_route_input *input, const struct rbi_route_entry *entry);

#endif
