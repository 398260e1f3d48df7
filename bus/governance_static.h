/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_GOVERNANCE_STATIC_H
#define RINGBUS_BUS_GOVERNANCE_STATIC_H
/*
 * bus/governance_static.h - what of a file a push must not change: items of lists with ids (rules,
 * canaries, limits, degrade, rules of rights) stay as the file says, and a push adds others behind
 * them (features B11). Found in the texts, so that a push is refused whichever clusters are there.
 * Pure, but for memory while it looks.
 */
#include "bus/governance.h"

/** A pushed item with the id of one of the file. */
struct rbi_governance_clash {
    struct rbi_config_place pushed;
    struct rbi_config_place fixed;
    const char *list; /* "limits"; lent by the table */
    char id[RBI_LABEL_MAX + 1];
};

/**
 * Looks for the first item of @p pushed with the id of an item of @p fixed in the same list, where
 * both can be about the same cluster, and which does not say the same.
 * @retval 0 there is none; 1 @p out is set; -ENOMEM
 */
RBI_MUST_CHECK int rbi_governance_clash(const struct rbi_governance *fixed,
                                        const struct rbi_governance *pushed,
                                        struct rbi_governance_clash *out);

#endif
