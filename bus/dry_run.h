/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_DRY_RUN_H
#define RINGBUS_BUS_DRY_RUN_H
/*
 * bus/dry_run.h - which of the rules of a policy can be run dry, and by which names what they would
 * have done is counted. Pure.
 */
#include "bus/policy.h"

/** What kind of a rule. Numbers go over the control socket. */
enum rbi_dry_kind {
    RBI_DRY_NONE = 0,
    RBI_DRY_LIMIT = 1, /* messages that it would have refused */
    RBI_DRY_SET = 2,   /* of this and those below: messages to whom it would have taken out */
    RBI_DRY_TAGS = 3,
    RBI_DRY_CANARY = 4,
    RBI_DRY_RULE = 5,
    RBI_DRY_LOCALITY = 6,
    RBI_DRY_KINDS = 7,
};

/** "limit", "set", "tags", "canary", "rule", "locality"; "?". */
const char *rbi_dry_kind_name(uint32_t kind);
/** Whether any stage of the router chain is run dry. */
bool rbi_dry_routes(const struct rbi_policy *policy);
/**
 * Whether a policy has such a rule, and it is run dry.
 * @param id  of a limit, canary or rule; "" of the others, which there is one of
 */
bool rbi_dry_has(const struct rbi_policy *policy, uint32_t kind, const char *id);

#endif
