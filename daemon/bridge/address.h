/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_ADDRESS_H
#define RINGBUS_DAEMON_BRIDGE_ADDRESS_H
/*
 * daemon/bridge/address.h - "10.0.0.2:7740", "[fd00::2]:7740", "beta.example:7740", for people and
 * for the kernel.
 */
#include "bus/bridge_config.h"

#include <netinet/in.h>
#include <sys/socket.h>

/** A text in its two parts. */
struct rbi_address {
    char node[RBI_BRIDGE_ADDRESS_MAX + 1U]; /* without brackets */
    char port[6];
    bool numeric; /* no name: nothing has to be looked up */
};

struct rbi_socket_address {
    socklen_t size;
    struct sockaddr_storage storage;
};

/** @retval 0; -EINVAL */
RBI_MUST_CHECK int rbi_address_parse(const char *text, struct rbi_address *out);
/**
 * Looks it up: of a name that may take seconds, unless it is numeric.
 * @return how many were found, at most @p max, in the order to try them; -errno
 */
RBI_MUST_CHECK int
rbi_address_find(const struct rbi_address *address, struct rbi_socket_address *out, unsigned max);
/** As text. @param out  of RBI_BRIDGE_ADDRESS_MAX + 1 bytes */
void rbi_address_text(const struct rbi_socket_address *address, char *out);

#endif
