/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DIRECTORY_H
#define RINGBUS_DIRECTORY_H
/* ringbus/directory.h - who is there, and which keys are whose. */
#include <ringbus/address.h>
#include <ringbus/base.h>
#include <ringbus/event.h>

#ifdef __cplusplus
extern "C" {
#endif

/** State of an instance in the directory. */
enum ringbus_instance_state {
    RINGBUS_INSTANCE_STARTING = 0,
    RINGBUS_INSTANCE_READY = 1,
    RINGBUS_INSTANCE_BUSY = 2,
    RINGBUS_INSTANCE_DRAINING = 3,
};

struct ringbus_instance {
    struct ringbus_addr addr;
    char path[RINGBUS_PATH_MAX + 1];
    enum ringbus_instance_state state;
    uint32_t weight;
    int linked; /**< 1: its link with this endpoint is READY */
};

/**
 * Instances of a cluster, from the directory in shared memory. No system call, works while
 * the daemon is down.
 *
 * @param path  6 elements
 * @param out   room for @p max entries; may be NULL when @p max is 0
 * @return number of instances there are (may be more than @p max), or
 * @retval RINGBUS_E_NO_SERVICE the cluster was never seen
 */
RINGBUS_API int
ringbus_instances(struct ringbus *bus, const char *path, struct ringbus_instance *out, size_t max);

/**
 * The slots that this instance owns, as told last. Needs the option slots.
 * @param out  room for @p max ranges, ascending; may be NULL when @p max is 0
 * @return number of ranges there are (may be more than @p max): 0 also before the first snapshot
 * @retval RINGBUS_E_ARGUMENT opened without the option slots
 * Cost: no system call; a pass over the table.
 */
RINGBUS_API int ringbus_slots(struct ringbus *bus, struct ringbus_slot_range *out, size_t max);
/**
 * Whether this instance owns a key. Needs the option slots.
 * @retval 1 it does; 0 another does, or nobody
 * @retval RINGBUS_E_NOT_READY no snapshot of its cluster is known yet
 * @retval RINGBUS_E_ARGUMENT  opened without the option slots
 * Cost: no system call; a few loads.
 */
RINGBUS_API int ringbus_owns(struct ringbus *bus, uint64_t key);

/**
 * Reports ADDED, UPDATED and REMOVED for every instance below a prefix, starting with an
 * ADDED for each present one. What changed while the daemon was away is reported once it is
 * back and others have had time to come back too (daemon.return_time, 2 s by default): REMOVED
 * for who has died, REMOVED and then ADDED for who was restarted, ADDED for who is new, and
 * nothing for who lived on. Instances below several watched prefixes are reported once. Nodes at
 * and below it are reported alike: NODE_CREATED, NODE_CHANGED, NODE_REMOVED, one event a change.
 * @param prefix  "/", 1 to 7 elements, or the path of a node
 * @retval 0  also while the daemon is away
 * @retval RINGBUS_E_PATH, RINGBUS_E_NO_MEMORY
 * Cost: a message to the daemon; then a message of it for each change.
 */
RINGBUS_API int ringbus_watch(struct ringbus *bus, const char *prefix);
/** Ends it. @retval 0; RINGBUS_E_PATH; RINGBUS_E_NOT_TARGET it is not watched */
RINGBUS_API int ringbus_unwatch(struct ringbus *bus, const char *prefix);

#ifdef __cplusplus
}
#endif

#endif
