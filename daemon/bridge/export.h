/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_EXPORT_H
#define RINGBUS_DAEMON_BRIDGE_EXPORT_H
/*
 * daemon/bridge/export.h - what this host tells others of its own instances. It compares the local
 * daemon's directory with what it told last, numbers the differences, and tells them to each host
 * that has asked. One thread; no I/O of its own.
 *
 * Exported are instances of this host alone, in clusters that the configuration names: nothing that
 * was imported comes back, whatever the globs say. An instance that the operator has isolated or
 * staged is told with weight 0: others reach it by its own path.
 *
 * The log of changes is bounded; who asks for older ones is told everything.
 */
#include "bus/remote.h"
#include "daemon/map.h"

struct rbi_bridge_globs;

#define RBI_EXPORT_LOG_MAX   1024U
#define RBI_EXPORT_HOSTS_MAX 256U
/** Changes of the directory wait so long for more of them. */
#define RBI_EXPORT_DELAY_NS UINT64_C(10000000)
/** Items that a host is told in one turn. */
#define RBI_EXPORT_TURN 64U

/**
 * Sends an item to a host; must not call what is declared here.
 * @retval 0 taken; -ENOBUFS no room now: rbi_export_pump() tries it again; else the host is
 *         forgotten, it asks when it is back
 */
typedef int (*rbi_export_sink_fn)(void *context, uint64_t host, const struct rbi_remote_item *item);

struct rbi_export;

/**
 * @param incarnation  of this bridge, not 0
 * @param globs        clusters that are told of; lent until rbi_export_configure() or the end
 * @retval 0; -ENOMEM
 */
RBI_MUST_CHECK int rbi_export_new(uint64_t incarnation,
                                  const struct rbi_bridge_globs *globs,
                                  rbi_export_sink_fn sink,
                                  void *context,
                                  struct rbi_export **out);
/** Accepts NULL. */
void rbi_export_free(struct rbi_export *export);
/** Other globs, lent likewise; takes effect with the next rbi_export_look(). */
void rbi_export_configure(struct rbi_export *export, const struct rbi_bridge_globs *globs);

/**
 * A removal was announced by the daemon with its reason, which the directory does not keep: used
 * when the next look finds the instance gone. @param reason enum rbi_reason
 */
void rbi_export_removed(struct rbi_export *export, const struct rbi_pidf *who, uint32_t reason);
/**
 * Compares with the directory, and numbers what has changed.
 * @param settled  false: the daemon is new and not all have come back to it: nothing is found gone
 * @retval 0; RBI_DIRECTORY_BUSY: pieces were not to be read, look again soon; -ENOMEM
 */
RBI_MUST_CHECK int
rbi_export_look(struct rbi_export *export, const struct rbi_directory_view *view, bool settled);

/**
 * Whether something was not to be decided by the last look, as the daemon has not said yet why it
 * is gone, or has not settled: to be looked at again in RBI_EXPORT_DELAY_NS, or when it settles.
 */
bool rbi_export_again(const struct rbi_export *export);

/**
 * DIR_ASK of a host. It is told by rbi_export_pump(). Of too many hosts one to which there is no
 * way is forgotten.
 * @retval 0; -ENOSPC; -ENOMEM
 */
RBI_MUST_CHECK int rbi_export_ask(struct rbi_export *export,
                                  uint64_t id,
                                  uint64_t known_incarnation,
                                  uint64_t known_revision);
/**
 * There is no way to a host just now: nothing is told to it, and it is not forgotten. The two ends
 * need not see the same cut: one that has not would not ask again.
 */
void rbi_export_pause(struct rbi_export *export, uint64_t id);
/** There is one again: it is told what has changed, or that nothing has. */
void rbi_export_resume(struct rbi_export *export, uint64_t id);
/** A host has left, and asks when it is back. */
void rbi_export_forget(struct rbi_export *export, uint64_t id);
/** Tells hosts what they lack, RBI_EXPORT_TURN items each. @return whether more would follow now */
bool rbi_export_pump(struct rbi_export *export);

/** Instances that are exported now, the number of the last change, and hosts that are told. */
uint32_t rbi_export_count(const struct rbi_export *export);
uint64_t rbi_export_revision(const struct rbi_export *export);
uint32_t rbi_export_hosts(const struct rbi_export *export);

#endif
