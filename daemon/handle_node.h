/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_HANDLE_NODE_H
#define RINGBUS_DAEMON_HANDLE_NODE_H
/*
 * daemon/handle_node.h - what NODE asks for: changes are in handle_node.c, looks in
 * handle_node_get.c.
 */
#include "bus/node_path.h"
#include "daemon/request.h"

/** Answers GET: what is there, and as many of its children as a message holds. */
void rbi_node_get(const struct rbi_request *request, const struct rbi_node_path *parsed);
/** Answers SCAN: so many nodes at and below a path, each as an event, and how to go on. */
void rbi_node_scan(const struct rbi_request *request);

#endif
