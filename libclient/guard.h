/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_GUARD_H
#define RINGBUS_LIBCLIENT_GUARD_H
/* libclient/guard.h - first and last in every public call: wrong process, wrong thread. */
#include "libclient/handle.h"

#define RBI_GUARD_ALIVE UINT64_C(0x72696e6762757331)

/** The handle of a call that promises its user not to change it, for our own bookkeeping. */
static inline struct ringbus *rbi_mutable(const struct ringbus *bus)
{
    union {
        const struct ringbus *lent;
        struct ringbus *own;
    } handle = {.lent = bus};
    return handle.own;
}

/** First thing in every public call: 0, or the error to return. One load in release builds. */
static inline int rbi_enter(const struct ringbus *bus);
static inline void rbi_leave(const struct ringbus *bus);
#ifdef RBI_DEBUG
int rbi_debug_enter(struct ringbus *bus);
void rbi_debug_leave(struct ringbus *bus);
#endif

static inline int rbi_enter(const struct ringbus *bus)
{
    if (RBI_UNLIKELY(bus == NULL)) {
        return RINGBUS_E_ARGUMENT;
    }
    if (RBI_UNLIKELY(rbi_load_rlx(bus->guard) != RBI_GUARD_ALIVE)) {
        return RINGBUS_E_WRONG_PROCESS;
    }
#ifdef RBI_DEBUG
    return rbi_debug_enter(rbi_mutable(bus));
#else
    return 0;
#endif
}

static inline void rbi_leave(const struct ringbus *bus)
{
#ifdef RBI_DEBUG
    rbi_debug_leave(rbi_mutable(bus));
#else
    (void)bus;
#endif
}

#endif
