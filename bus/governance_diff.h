/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_GOVERNANCE_DIFF_H
#define RINGBUS_BUS_GOVERNANCE_DIFF_H
/*
 * bus/governance_diff.h - what is said by one text of bus/governance.h and not by another, value
 * by value, whatever their order and layout. Pure, but for its memory.
 */
#include "bus/governance.h"

/**
 * @param name  as "clusters[/a/b/c/d/e/f].limits[each].rate": items by pattern or id, or by place
 * @param old_value  as written; NULL: not there
 * @param new_value  the same
 */
typedef void (*rbi_governance_diff_fn)(void *context,
                                       const char *name,
                                       const char *old_value,
                                       const char *new_value);
/** Calls back in order of names. @return how often; -ENOMEM */
RBI_MUST_CHECK int rbi_governance_diff(const struct rbi_governance *old,
                                       const struct rbi_governance *next,
                                       rbi_governance_diff_fn report,
                                       void *context);

#endif
