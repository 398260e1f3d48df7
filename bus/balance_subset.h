/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_BALANCE_SUBSET_H
#define RINGBUS_BUS_BALANCE_SUBSET_H
/*
 * bus/balance_subset.h - which of many instances a caller links to: those with the highest hash
 * of caller and instance (rendezvous, as gRPC's proposal A68). Callers need not know of each
 * other, spread evenly, and change one of theirs at most when an instance comes or goes.
 * Weights do not count here, or they would count twice, but who has none is left out.
 */
#include "bus/table.h"

/**
 * @param caller  what tells callers apart, such as cluster and instance; equal callers choose alike
 * @param size    how many; 0: all
 * @param chosen  @p member_count entries; indices of the chosen, ascending
 * @return how many: @p size, or all that have a weight if they are fewer.
 * Cost: some 5 ns a member; cold
 */
unsigned rbi_subset_choose(uint64_t caller,
                           const struct rbi_table_member *members,
                           unsigned member_count,
                           unsigned size,
                           uint16_t *chosen);

#endif
