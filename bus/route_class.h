/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_ROUTE_CLASS_H
#define RINGBUS_BUS_ROUTE_CLASS_H
/*
 * bus/route_class.h - which class a message is of, for its sender: the rules that match it, and the
 * canary whose share its key is in. Messages of one class and tag have the same candidates, so that
 * these are kept by class and the chain is not run for a message.
 *
 * In the hot path: no division, no call, and one branch where a policy has neither rules nor
 * canaries.
 */
#include "bus/subject.h"

#define RBI_ROUTE_SHARES 10000U

/** What a rule asks of a message: a copy that lies close together. */
struct rbi_route_match {
    uint32_t method_low;
    uint32_t method_span; /* high - low */
    uint64_t key_mask;
    uint64_t key_value;
    uint32_t label_masks[RBI_LABELS_MAX];
    uint32_t label_values[RBI_LABELS_MAX];
};

struct rbi_route_classes {
    uint32_t enabled;    /* bit i: rule i is not off */
    uint32_t rule_count; /* up to the last of these */
    uint32_t canary_count;
    uint32_t below[RBI_CANARIES_MAX]; /* shares up to and with this canary, of 10,000 */
    struct rbi_route_match rules[RBI_RULES_MAX];
};

/**
 * Takes from a policy what the functions below ask. A rule that is off matches nothing, nor does
 * one that is about other callers.
 * @param caller  NULL: nothing is known of it
 */
void rbi_route_classes_init(struct rbi_route_classes *classes,
                            const struct rbi_policy *policy,
                            const struct rbi_subject *caller);

/** Whether every message is of class 0: nothing below need be asked. */
static inline bool rbi_route_classless(const struct rbi_route_classes *classes)
{
    return (classes->rule_count | classes->canary_count) == 0;
}

/**
 * The rules that match a message: bit i for rule i.
 * @param labels  RBI_LABELS_MAX of them; a message without has zeros
 */
static inline uint32_t rbi_route_rules(const struct rbi_route_classes *classes,
                                       uint32_t method,
                                       bool has_key,
                                       uint64_t key,
                                       const uint32_t *labels)
{
    uint32_t matching = 0;
    for (uint32_t i = 0; i < classes->rule_count; i++) {
        const struct rbi_route_match *rule = &classes->rules[i];
        uint64_t differs = (key ^ rule->key_value) & rule->key_mask;
        for (unsigned j = 0; j < RBI_LABELS_MAX; j++) {
            differs |= (labels[j] ^ rule->label_values[j]) & rule->label_masks[j];
        }
        differs |= (uint64_t)(!has_key && rule->key_mask != 0);
        differs |= (uint64_t)(method - rule->method_low > rule->method_span);
        matching |= (uint32_t)(differs == 0) << i;
    }
    return matching & classes->enabled;
}

/** Place of a key among 10,000, the same for ever. Other bits than those of rbi_hrw_slot(). */
static inline uint32_t rbi_route_share(uint64_t key)
{
    uint64_t x = key;
    x ^= x >> 33;
    x *= UINT64_C(0xff51afd7ed558ccd);
    x ^= x >> 33;
    x *= UINT64_C(0xc4ceb9fe1a85ec53);
    x ^= x >> 33;
    return (uint32_t)(((x >> 32) * RBI_ROUTE_SHARES) >> 32);
}

/** A trace as a key of canaries: 0 for none. */
static inline uint64_t rbi_route_trace(const unsigned char *trace_id)
{
    uint64_t halves[2];
    __builtin_memcpy(halves, trace_id, sizeof halves);
    return halves[0] ^ halves[1];
}

/**
 * The canary that an untagged message belongs to, 1 + its index, 0: none.
 * @param key  its key, else its trace; a message that has neither is of none
 */
static inline uint32_t rbi_route_canary(const struct rbi_route_classes *classes, uint64_t key)
{
    const uint32_t share = rbi_route_share(key);
    for (uint32_t i = 0; i < classes->canary_count; i++) {
        if (share < classes->below[i]) {
            return i + 1;
        }
    }
    return 0;
}

#endif
