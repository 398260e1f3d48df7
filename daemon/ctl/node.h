/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_CTL_NODE_H
#define RINGBUS_DAEMON_CTL_NODE_H
/*
 * daemon/ctl/node.h - what the commands of the node tree have in common.
 */
#include "bus/node_path.h"
#include "daemon/ctl/control.h"

/** Checks a path of the node tree. Complains itself. @return exit code */
RBI_MUST_CHECK int rbi_ctl_node_path_check(const struct rbi_ctl_args *args, const char *path);
/**
 * Asks, and complains about any other answer than one of type @p expected.
 * @return exit code
 */
RBI_MUST_CHECK int rbi_ctl_node_ask(struct rbi_ctl_control *control,
                                    const struct rbi_wire_node *body,
                                    unsigned expected,
                                    union rbi_wire_body *answer);
/** Prints a value as text in quotes; what is not printable ASCII as \xNN. */
void rbi_ctl_node_value_print(const unsigned char *bytes, size_t size);

#endif
