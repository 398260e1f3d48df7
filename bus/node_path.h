/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_NODE_PATH_H
#define RINGBUS_BUS_NODE_PATH_H
/*
 * bus/node_path.h - paths of the node tree. What lies in it is named by one path each: prefixes,
 * clusters and instances as bus/pidf.h says, and nodes that users make, below the reserved
 * element "meta":
 *
 *   /game/eu/meta/season                        of a prefix of 1 to 5 elements
 *   /game/eu/pc/w1/core/battle/meta/leader/old  of a cluster; 1 to 4 elements of its own
 *
 * So no cluster or instance has an element "meta" (bus/pidf.c refuses it), no node has two, and
 * no text is the name of two things. Pure; any thread.
 */
#include "bus/pidf.h"

#define RBI_NODE_OWN_ELEMENTS 4U

enum rbi_node_kind {
    RBI_NODE_PREFIX = 0,   /* 0 to 5 elements: there while something is below it */
    RBI_NODE_CLUSTER = 1,  /* 6 */
    RBI_NODE_INSTANCE = 2, /* 7 */
    RBI_NODE_META = 3,     /* ends with "meta": there while a node is below it */
    RBI_NODE_USER = 4,     /* below it */
};

struct rbi_node_path {
    enum rbi_path_error error;
    unsigned error_offset; /* byte at which the error was found */
    enum rbi_node_kind kind;
    unsigned length;
    unsigned parent_length; /* bytes of the path one element shorter; 1: "/" */
    unsigned meta_length;   /* bytes as far as "meta", it included; 0: there is none */
};

/**
 * Checks a path of the node tree. Untrusted input: @p text need not be terminated.
 * @retval 0  canonical; @p out is filled
 * @retval 1  not one; error and error_offset say why and where
 */
RBI_MUST_CHECK int rbi_node_path_parse(const char *text, size_t length, struct rbi_node_path *out);

/**
 * First element of a canonical path below a canonical prefix, neither of which is checked.
 * @param length  of the element
 * @return offset in @p path; 0: it is not below the prefix
 */
size_t rbi_node_path_below(
    const char *path, size_t path_length, const char *prefix, size_t prefix_length, size_t *length);

#endif
