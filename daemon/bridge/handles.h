/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_HANDLES_H
#define RINGBUS_DAEMON_BRIDGE_HANDLES_H
/*
 * daemon/bridge/handles.h - the numbers that this host has given to streams on one connection, by
 * which the other side names them in frames. A number is a place in a table and a count of how
 * often that place was given: what is freed is given again as late as possible, and a frame that
 * comes late finds nobody.
 */
#include "shm/base.h"

#define RBI_HANDLES_MAX 65536U

struct rbi_handles {
    struct rbi_handle_slot *slots;
    uint32_t count;
    uint32_t room;
    uint32_t first_free; /* slots that were given before, the one freed longest ago first */
    uint32_t last_free;
};

void rbi_handles_init(struct rbi_handles *handles);
/** What they stand for is the caller's. */
void rbi_handles_deinit(struct rbi_handles *handles);
/** @return a handle, not 0; 0: no memory, or RBI_HANDLES_MAX are in use */
uint32_t rbi_handles_give(struct rbi_handles *handles, void *item);
/** Untrusted: what a number stands for, or NULL. Costs two loads. */
void *rbi_handles_get(const struct rbi_handles *handles, uint32_t handle);
/** Accepts 0 and what is no more. */
void rbi_handles_free(struct rbi_handles *handles, uint32_t handle);
/** Any that is in use, to end all; 0: none is. @p item is set */
uint32_t rbi_handles_any(const struct rbi_handles *handles, void **item);

#endif
