/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_ADDRESS_H
#define RINGBUS_LIBCLIENT_ADDRESS_H
/* libclient/address.h - addresses, inside and outside. */
#include "bus/pidf.h"

#include <ck_hs.h>
#include <ringbus/ringbus.h>
#include <stddef.h>
#include <string.h>

struct ringbus;

/** Set of pointers to struct rbi_pidf, by cluster and instance. 0; -ENOMEM */
int rbi_address_set_init(ck_hs_t *set);

/** Parses a path of @p elements_min to @p elements_max elements. 0; a public error (noted) */
int rbi_address_path(struct ringbus *bus,
                     const char *path,
                     unsigned elements_min,
                     unsigned elements_max,
                     struct rbi_path_info *info);

/* By value: what is read as another type than it was written as need not be there yet. */
static inline struct ringbus_addr rbi_addr(const struct rbi_pidf *pidf)
{
    struct ringbus_addr addr;
    memcpy(&addr, pidf, sizeof addr);
    return addr;
}
_Static_assert(sizeof(struct ringbus_addr) == sizeof(struct rbi_pidf), "same layout");
_Static_assert(offsetof(struct ringbus_addr, instance) == offsetof(struct rbi_pidf, instance),
               "same layout");

#endif
