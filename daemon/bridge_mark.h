/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_MARK_H
#define RINGBUS_DAEMON_BRIDGE_MARK_H
/*
 * daemon/bridge_mark.h - which process is the bridge that a daemon has started: "<socket>.child",
 * for the next daemon, which takes it over. A process is named by its number and when it began, so
 * that a later one with that number is never taken for it.
 */
#include "bus/bridge_config.h"

#include <sys/types.h>

struct rbi_bridge_mark {
    pid_t pid;
    uint64_t started; /* in clock ticks since boot */
    /* Of what a bridge cannot change while it runs: rbi_bridge_mark_of(). */
    uint64_t fingerprint;
};

/** Fingerprint of a configuration: other ones need another bridge. Never 0. */
uint64_t rbi_bridge_mark_of(const struct rbi_bridge_config *config);
/** Notes a child; without the note the next daemon starts another. @retval 0; -errno */
int rbi_bridge_mark_write(const char *socket, const struct rbi_bridge_mark *mark);
/** Reads what the daemon before has left. Untrusted. @return whether there is a mark of one */
bool rbi_bridge_mark_read(const char *socket, struct rbi_bridge_mark *out);
void rbi_bridge_mark_remove(const char *socket);

#endif
