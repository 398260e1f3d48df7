/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_SUPPORT_GOVERNANCE_H
#define RINGBUS_TESTS_SUPPORT_GOVERNANCE_H
/* Layers of texts over each other, and the policies that they make. */
#include "bus/governance.h"
#include "support/config.h"

/** Zero is no layer. */
struct layered {
    struct rbi_governance room[RBI_GOVERNANCE_LAYERS_MAX];
    struct rbi_governance_layers layers;
    struct rbi_policy policy; /* the last that was asked for */
    struct rbi_config_errors errors;
};

static inline void layered_clear(struct layered *l)
{
    for (unsigned i = 0; i < RBI_ARRAY_SIZE(l->room); i++) {
        rbi_governance_deinit(&l->room[i]);
    }
    l->layers.count = 0;
}

/** The next layer, above those before. */
static inline void layered_add(struct layered *l, const char *text)
{
    struct rbi_governance *layer = &l->room[l->layers.count];
    config_accepted(rbi_governance_parse(text, strlen(text), layer, &l->errors), text, &l->errors);
    l->layers.items[l->layers.count++] = layer;
}

/** The policy of a cluster: it can be had whole, and is one that callers take. */
static inline const struct rbi_policy *layered_policy(struct layered *l, const char *path)
{
    struct rbi_governance_fault fault;
    if (!rbi_governance_policy(&l->layers, path, strlen(path), &l->policy, &fault)) {
        fail_msg("%s: %s", path, fault.text);
    }
    assert_true(rbi_policy_valid(&l->policy));
    return &l->policy;
}

#endif
