/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_LOOKUP_H
#define RINGBUS_DAEMON_BRIDGE_LOOKUP_H
/*
 * daemon/bridge/lookup.h - addresses of a name, looked up beside the loop: a name server that does
 * not answer takes its time from nobody but the one who asks. The thread outlives who asked, if
 * need be, and frees what is left.
 */
#include "daemon/bridge/address.h"
#include "daemon/loop.h"

#define RBI_LOOKUP_MAX 4U

struct rbi_lookup;

/** @param count  as rbi_address_find() returned; the lookup is gone when the callee returns */
typedef void (*rbi_lookup_fn)(void *context, const struct rbi_socket_address *found, int count);

/** Starts. @retval 0: @p done will be called, not from here; -errno */
RBI_MUST_CHECK int rbi_lookup_start(struct rbi_loop *loop,
                                    const struct rbi_address *address,
                                    rbi_lookup_fn done,
                                    void *context,
                                    struct rbi_lookup **out);
/** Is no longer interested. Accepts NULL. @return NULL */
struct rbi_lookup *rbi_lookup_forget(struct rbi_lookup *lookup);

#endif
