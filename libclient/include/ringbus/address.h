/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_ADDRESS_H
#define RINGBUS_ADDRESS_H
/* ringbus/address.h - paths, addresses and keys. */
#include <ringbus/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/** instance: any one of the cluster, as its policy says: with a key its owner, else by load. */
#define RINGBUS_ANY 0
/** instance: every instance of the cluster (any negative value means the same). */
#define RINGBUS_ALL (-1)

/** PIDF, the address: 16 bytes, copied freely. */
struct ringbus_addr {
    uint64_t cluster;     /**< XXH3-64 of the cluster path; 0 is the local daemon */
    int32_t instance;     /**< > 0 that one, 0 any, < 0 all */
    uint32_t incarnation; /**< 0 any life of the instance, else only that one */
};

/** Longest path in bytes, without the terminator. */
#define RINGBUS_PATH_MAX 255

/**
 * Turns a path of 6 or 7 elements into an address. Pure; any thread.
 *
 * A cluster path gives instance RINGBUS_ANY. An element has 1 to 63 bytes of
 * [A-Za-z0-9_.-] and is neither "." nor "..".
 * @retval 0; RINGBUS_E_PATH; RINGBUS_E_ARGUMENT a NULL
 */
RINGBUS_API int ringbus_resolve(const char *path, struct ringbus_addr *out);

/**
 * Readable path of an address, as far as this handle knows it (its targets, its links,
 * the directory); otherwise "#CLUSTER/INSTANCE" in hexadecimal and decimal.
 *
 * @param buffer  at least RINGBUS_PATH_MAX + 1 bytes
 * @return length of the text, or an error
 */
RINGBUS_API int
ringbus_format(struct ringbus *bus, const struct ringbus_addr *addr, char *buffer, size_t size);

/** Key of a string or structure, for the keyed forms of send: XXH3-64. Pure. */
RINGBUS_API uint64_t ringbus_key(const void *data, size_t size);

#ifdef __cplusplus
}
#endif

#endif
