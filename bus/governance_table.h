/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_GOVERNANCE_TABLE_H
#define RINGBUS_BUS_GOVERNANCE_TABLE_H
/*
 * bus/governance_table.h - short forms for the lines of the table in governance_schema.c, and what
 * it shares with governance.c. The macro OF is the structure that the lines fill.
 */
#include "bus/governance.h"

/** What an entry of "clusters" fills: the policy and what stands beside it. */
struct rbi_governance_entry {
    struct rbi_policy policy; /* first: the offsets of the table are of it */
    struct rbi_governance_description description;
    char match[RBI_GLOB_MAX + 1];
};
_Static_assert(offsetof(struct rbi_governance_entry, policy) == 0, "offsets of the table");

/** An entry of "alarms": governance_alarm.c */
extern const struct rbi_tree_field rbi_governance_alarm_item;
/** Whether each alarm of a text fits together: governance_alarm.c */
void rbi_governance_check_alarms(const struct rbi_governance *governance,
                                 struct rbi_config_errors *errors);

/** Starts from the preset, whatever stands before it in the text. */
void rbi_governance_prepare_shield(void *structure, const char *preset, size_t length);

#define DRY_RUN "Only counted and explained, not obeyed."

/* NOLINTBEGIN(bugprone-macro-parentheses): they are initialisers and names of members */
/* clang-format off */
#define RAW(kind_, name_, offset_, min_, max_, default_, text_)                                    \
    {.key = {.name = name_, .type = RBI_CONFIG_TYPE_##kind_, .offset = offset_, .min = min_,       \
             .max = max_, .default_text = default_, .text = text_},                                \
     .kind = RBI_TREE_VALUE}
#define FIELD(kind_, name_, member_, min_, max_, default_, text_)                                  \
    RAW(kind_, name_, offsetof(OF, member_), min_, max_, default_, text_)
#define NEEDED(kind_, name_, member_, min_, max_, text_)                                           \
    {.key = {.name = name_, .type = RBI_CONFIG_TYPE_##kind_, .offset = offsetof(OF, member_),      \
             .min = min_, .max = max_, .text = text_},                                             \
     .kind = RBI_TREE_VALUE, .flags = RBI_TREE_REQUIRED}
#define GIVEN(kind_, name_, member_, min_, max_, default_, choices_, bit_, text_)                  \
    {.key = {.name = name_, .type = RBI_CONFIG_TYPE_##kind_, .offset = offsetof(OF, member_),      \
             .min = min_, .max = max_, .default_text = default_, .choices = choices_,              \
             .text = text_},                                                                       \
     .kind = RBI_TREE_VALUE, .given_bit = bit_, .given_offset = offsetof(OF, given)}
#define CHOICE(name_, member_, choices_, default_, text_)                                          \
    {.key = {.name = name_, .type = RBI_CONFIG_TYPE_CHOICE, .offset = offsetof(OF, member_),       \
             .max = RBI_ARRAY_SIZE(choices_) - 2, .default_text = default_, .choices = choices_,   \
             .text = text_},                                                                       \
     .kind = RBI_TREE_VALUE}
#define FLAG(name_, member_, text_)      CHOICE(name_, member_, flags, "false", text_)
#define FLAG_TRUE(name_, member_, text_) CHOICE(name_, member_, flags, "true", text_)
#define PREPARED(name_, member_, fields_, prepare_, text_)                                         \
    {.key = {.name = name_, .offset = offsetof(OF, member_), .text = text_},                       \
     .kind = RBI_TREE_MAP, .fields = fields_, .field_count = RBI_ARRAY_SIZE(fields_),              \
     .prepare = prepare_}
#define MAP(name_, member_, fields_, text_) PREPARED(name_, member_, fields_, NULL, text_)
#define LIST(name_, member_, count_, max_, flags_, item_, text_)                                   \
    {.key = {.name = name_, .offset = offsetof(OF, member_), .max = max_, .text = text_},          \
     .kind = RBI_TREE_LIST, .flags = flags_, .fields = item_, .field_count = 1,                    \
     .count_offset = offsetof(OF, count_), .item_size = sizeof(((OF *)0)->member_[0])}
#define BITS_OF(name_, member_, max_, item_, flags_, text_)                                        \
    {.key = {.name = name_, .offset = offsetof(OF, member_), .max = max_, .text = text_},          \
     .kind = RBI_TREE_LIST, .flags = RBI_TREE_BITS | (flags_), .fields = item_, .field_count = 1,  \
     .count_offset = RBI_TREE_NO_COUNT, .item_size = sizeof(uint32_t)}
#define BITS(name_, member_, max_, item_, text_) BITS_OF(name_, member_, max_, item_, 0, text_)
#define BITS_NEEDED(name_, member_, max_, item_, text_)                                            \
    BITS_OF(name_, member_, max_, item_, RBI_TREE_REQUIRED, text_)
#define MAP_ITEM(fields_)                                                                          \
    {.key = {.name = NULL}, .kind = RBI_TREE_MAP, .fields = fields_,                               \
     .field_count = RBI_ARRAY_SIZE(fields_)}
#define TEXT_ITEM(kind_, what_, min_, max_)                                                        \
    {.key = {.name = NULL, .type = RBI_CONFIG_TYPE_##kind_, .min = min_, .max = max_,              \
             .text = what_},                                                                       \
     .kind = RBI_TREE_VALUE}
/* clang-format on */
/* NOLINTEND(bugprone-macro-parentheses) */

#endif
