/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_DEADLINE_H
#define RINGBUS_LIBCLIENT_DEADLINE_H
/* libclient/deadline.h - when a handle is to be looked at next. */
#include "libclient/end.h"
#include "libclient/handle.h"

/** An external loop waits on our descriptor: makes its timer follow the next deadline. */
void rbi_wait_rearm(struct ringbus *bus);
/** An external loop waits on our descriptor: makes it readable, so that it polls. */
void rbi_wait_nudge(struct ringbus *bus);
/** Moves the handle's next deadline forward to at most @p deadline_ns. For what is in no table. */
static inline void rbi_deadline_at_most(struct ringbus *bus, uint64_t deadline_ns)
{
    if (deadline_ns < bus->next_deadline_ns) {
        bus->next_deadline_ns = deadline_ns;
        if (RBI_UNLIKELY(bus->external_loop && !bus->polling)) {
            rbi_wait_rearm(bus);
        }
    }
}

/** The same for the introductions of members. */
static inline void rbi_target_at_most(struct ringbus *bus, uint64_t deadline_ns)
{
    bus->target_due_ns = rbi_min_u64(bus->target_due_ns, deadline_ns);
    rbi_deadline_at_most(bus, deadline_ns);
}
/** The same for one end, which is in the table. */
static inline void rbi_due_at_most(struct ringbus *bus, const struct rbi_end *end, uint64_t due_ns)
{
    bus->due[end->position] = rbi_min_u64(bus->due[end->position], due_ns);
    rbi_deadline_at_most(bus, due_ns);
}

#endif
