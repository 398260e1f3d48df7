/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool port_valid(const char *text)
{
    const size_t length = strlen(text);
    return length >= 1 && length <= 5 && strspn(text, "0123456789") == length &&
           strtoul(text, NULL, 10) <= 65535;
}

/** Where the node ends, which "[...]" may be around. NULL: it is none */
static const char *node_end(const char *text)
{
    if (text[0] == '[') {
        const char *close = strchr(text, ']');
        return close && close[1] == ':' ? close + 1 : NULL;
    }
    const char *colon = strrchr(text, ':');
    return colon && memchr(text, ':', (size_t)(colon - text)) == NULL ? colon : NULL;
}

int rbi_address_parse(const char *text, struct rbi_address *out)
{
    const char *colon = node_end(text);
    if (!colon || !port_valid(colon + 1)) {
        return -EINVAL;
    }
    const bool brackets = text[0] == '[';
    const char *node = text + brackets;
    const size_t length = (size_t)(colon - node) - brackets;
    if (length == 0 || length > RBI_BRIDGE_ADDRESS_MAX) {
        return -EINVAL;
    }
    struct rbi_address address = {0};
    memcpy(address.node, node, length);
    memcpy(address.port, colon + 1, strlen(colon + 1));
    unsigned char binary[sizeof(struct in6_addr)];
    const bool six = inet_pton(AF_INET6, address.node, binary) == 1 || strchr(address.node, '%');
    if (brackets != six) {
        return -EINVAL;
    }
    address.numeric = six || inet_pton(AF_INET, address.node, binary) == 1;
    *out = address;
    return 0;
}

/** What getaddrinfo() says, as an errno value. */
static int find_error(int result)
{
    switch (result) {
    case EAI_SYSTEM:
        return errno ? -errno : -EIO;
    case EAI_MEMORY:
        return -ENOMEM;
    case EAI_AGAIN:
        return -EAGAIN;
    default:
        return -EHOSTUNREACH;
    }
}

int rbi_address_find(const struct rbi_address *address,
                     struct rbi_socket_address *out,
                     unsigned max)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags =
                                       AI_NUMERICSERV | (address->numeric ? AI_NUMERICHOST : 0)};
    struct addrinfo *list = NULL;
    const int result = getaddrinfo(address->node, address->port, &hints, &list);
    if (result != 0) {
        return find_error(result);
    }
    unsigned count = 0;
    for (const struct addrinfo *at = list; at && count < max; at = at->ai_next) {
        if (at->ai_addrlen <= sizeof(out->storage)) {
            out[count].size = at->ai_addrlen;
            memcpy(&out[count].storage, at->ai_addr, at->ai_addrlen);
            count++;
        }
    }
    freeaddrinfo(list);
    return count ? (int)count : -EHOSTUNREACH;
}

void rbi_address_text(const struct rbi_socket_address *address, char *out)
{
    char node[INET6_ADDRSTRLEN + 20];
    char port[6];
    const struct sockaddr *raw = (const struct sockaddr *)&address->storage;
    if (getnameinfo(raw, address->size, node, sizeof(node), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        (void)snprintf(out, RBI_BRIDGE_ADDRESS_MAX + 1U, "unknown");
        return;
    }
    const bool six = raw->sa_family == AF_INET6;
    (void)snprintf(out, RBI_BRIDGE_ADDRESS_MAX + 1U, six ? "[%s]:%s" : "%s:%s", node, port);
}
