/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_CONFIG_BRIDGE_H
#define RINGBUS_BUS_CONFIG_BRIDGE_H
/*
 * bus/config_bridge.h - the section "bridge" of the configuration: its table, and what no single
 * value of it can be checked for. It is of the file alone: what is applied to a daemon that runs
 * cannot join hosts. Internal to bus/config*.c and bus/governance*.c.
 */
#include "bus/config_tree.h"

/** The keys of the section. */
#define RBI_CONFIG_BRIDGE_FIELDS 21U
extern const struct rbi_tree_field rbi_config_bridge_fields[RBI_CONFIG_BRIDGE_FIELDS];

/**
 * Takes what a text says of other hosts; the defaults, not given, where it has no such section.
 * @return false: @p errors has why; @p out is undefined
 */
bool rbi_config_bridge_take(const struct rbi_tree *tree,
                            struct rbi_bridge_config *out,
                            struct rbi_config_errors *errors);
/** Calls for each key with its value; of lists with how many there are. */
void rbi_config_bridge_print(const struct rbi_bridge_config *config,
                             rbi_config_print_fn report,
                             void *context);
/** Calls for each key that differs. */
void rbi_config_bridge_diff(const struct rbi_bridge_config *running,
                            const struct rbi_bridge_config *next,
                            rbi_config_diff_fn report,
                            void *context);

#endif
