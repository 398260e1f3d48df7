/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_STATION_H
#define RINGBUS_DAEMON_BRIDGE_STATION_H
/*
 * daemon/bridge/station.h - the bridge's own word with the daemon of its host, over a connection
 * that registers nobody (uplink.h): it says that it is the bridge, watches what is exported, hears
 * of ways, and tells of hosts and edges. While the daemon is away the directory that it has left
 * stays mapped, and nothing is told; then all is told anew.
 *
 * Threads: the loop's. No call waits.
 */
#include "bus/bridge_config.h"
#include "bus/directory.h"
#include "bus/frame.h"
#include "bus/record.h"
#include "bus/wire.h"
#include "daemon/loop.h"

struct rbi_station;

/** All are set. Called from the loop only, never from inside a call of the station. */
struct rbi_station_events {
    /** The daemon has taken us: edges and hosts are to be told. */
    void (*on_joined)(void *context);
    /** It is away. Ways stay as they were. */
    void (*on_lost)(void *context);
    /** The neighbour that leads to a host; "" none does. */
    void (*on_way)(void *context, const char *host, const char *next, uint32_t cost, uint32_t hops);
    /**
     * Something may have changed below what is watched, or the directory is another one. Comes
     * once for many changes.
     * @param settled  false: the daemon is new, and not all have come back to it
     */
    void (*on_directory)(void *context, const struct rbi_directory_view *view, bool settled);
    /** An instance has gone, for this reason. Before the on_directory() that goes with it. */
    void (*on_removed)(void *context, const struct rbi_pidf *instance, enum rbi_reason reason);
    /** An operator says that who is out of sight is gone. @param host "" all; @param prefix too */
    void (*on_confirm)(void *context, const char *host, const char *prefix);
};

/**
 * Connects in a later turn, and whenever it is lost.
 * @param socket       of the daemon; lent
 * @param config       names the host, the globs that are exported and limits.instances; lent, as
 *                     long as the station or until rbi_station_configure()
 * @param incarnation  of this bridge
 * @retval 0; -ENOMEM
 */
RBI_MUST_CHECK int rbi_station_new(struct rbi_loop *loop,
                                   const char *socket,
                                   const struct rbi_bridge_config *config,
                                   uint64_t incarnation,
                                   const struct rbi_station_events *events,
                                   void *context,
                                   struct rbi_station **out);
/** Accepts NULL. */
void rbi_station_free(struct rbi_station *station);
/** Other globs are watched; on_directory() follows. */
void rbi_station_configure(struct rbi_station *station, const struct rbi_bridge_config *config);
/** on_directory() is to come in 10 ms, though nothing is known to have changed. */
void rbi_station_look(struct rbi_station *station);
bool rbi_station_is_joined(const struct rbi_station *station);

/** All edges of one origin, EDGES to the daemon, in as many messages as it takes. */
void rbi_station_edges(struct rbi_station *station, const struct rbi_frame_edges *edges);
/** What is known of one host. */
void rbi_station_host(struct rbi_station *station, const struct rbi_wire_host *host);
/** Where a message that is followed has come by; for who follows it. */
void rbi_station_hop(struct rbi_station *station, const struct rbi_wire_hop *hop);

#endif
