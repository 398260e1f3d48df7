/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_KEEP_H
#define RINGBUS_KEEP_H
/* ringbus/keep.h - keeping what was received. */
#include <ringbus/address.h>
#include <ringbus/base.h>
#include <ringbus/message.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A message that outlives its callback. */
struct ringbus_kept {
    const void *data;
    size_t size;
    struct ringbus_addr from;
    uint64_t key;
    uint64_t opaque[4];
};
/**
 * Keeps the payload of a message. Referenced payloads are not copied: their chunk stays with
 * this endpoint, and counts against what the sender may have under way, until
 * ringbus_release(); inline ones are copied. Survives the sender's death.
 * @retval 0; RINGBUS_E_NO_MEMORY
 */
RINGBUS_API int
ringbus_keep(struct ringbus *bus, const struct ringbus_message *message, struct ringbus_kept **out);
/** Ends it; @p kept is freed. NULL is accepted. Must come before ringbus_close(). */
RINGBUS_API int ringbus_release(struct ringbus *bus, struct ringbus_kept *kept);

#ifdef __cplusplus
}
#endif

#endif
