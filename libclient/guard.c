/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/guard.c - notices two threads inside one handle, in debug builds. (The wrong
 * process after a fork is noticed in every build, by rbi_enter().)
 */
#include "libclient/internal.h"

#ifdef RBI_DEBUG
#include <pthread.h>

int rbi_debug_enter(struct ringbus *bus)
{
    const uint64_t self = (uint64_t)(uintptr_t)pthread_self();
    uint64_t expected = 0;
    if (atomic_compare_exchange_strong(&bus->user_thread, &expected, self) || expected == self) {
        bus->user_depth++;
        return 0;
    }
    return RINGBUS_E_WRONG_THREAD;
}

void rbi_debug_leave(struct ringbus *bus)
{
    RBI_ASSERT(bus->user_depth > 0);
    if (--bus->user_depth == 0) {
        atomic_store(&bus->user_thread, 0);
    }
}
#else
typedef int rbi_guard_is_for_debug_builds; /* a translation unit must not be empty */
#endif
