/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BRIDGE_BRIDGE_H
#define RINGBUS_DAEMON_BRIDGE_BRIDGE_H
/*
 * daemon/bridge/bridge.h - everything that one bridge is. Its parts, each with a file of its own:
 *
 *   desk, proxy, half      what it is on this host: endpoints of others, and their links here
 *   ends                   which of those there are, and who wants them
 *   tunnel                 this host's end of a stream: joins a half and a session
 *   transit                a stream of others that goes through this host
 *   session                one connection to a neighbour that speaks frames
 *   neighbour, fars        whom it may connect to; whom it knows, and the way there
 *   flood                  edges, told to everybody
 *   follow                 messages whose way is told to their sender
 *   station                its word with the daemon of this host
 *   export, import_desk    instances, told to others and heard of
 *
 * One loop, one thread.
 */
#include "bus/bridge_config.h"
#include "daemon/bridge/conn.h"
#include "daemon/bridge/desk.h"
#include "daemon/bridge/follow.h"
#include "daemon/list.h"
#include "daemon/map.h"

struct rbi_directory_view;
struct rbi_door;
struct rbi_export;
struct rbi_import_desk;
struct rbi_station;
struct rbi_tls;

/** What the bridge has done since it runs. */
struct rbi_bridge_counters {
    uint64_t streams_opened;
    uint64_t streams_refused;
    uint64_t streams_lost; /* ended for want of a way, or because a bridge had forgotten them */
    uint64_t resumed;
    uint64_t no_route;
    uint64_t bad_frames;
};

struct rbi_bridge {
    struct rbi_bridge_config config;
    struct rbi_loop *loop;
    const char *socket;   /* of the daemon; lent */
    const char *folder;   /* for what is known of others; lent; NULL: nothing is kept */
    uint64_t self;        /* host id */
    uint64_t incarnation; /* of this life; grows from one to the next on a host */
    bool stopping;
    struct rbi_tls *tls; /* NULL: insecure */
    struct rbi_conn_terms terms;
    struct rbi_door *doors[RBI_BRIDGE_LISTEN_MAX];
    struct rbi_list neighbours; /* struct rbi_neighbour */
    struct rbi_list sessions;   /* struct rbi_session, greeting ones too */
    struct rbi_map hosts;       /* struct rbi_far, by id */
    struct rbi_map tunnels;     /* struct rbi_tunnel, by the hash of the stream's name */
    struct rbi_list touched;    /* tunnels that are to be looked at before the turn ends */
    struct rbi_list unsettled;  /* tunnels with records that their endpoint has not read yet */
    struct rbi_loop_task touched_task;
    struct rbi_loop_timer unsettled_timer;
    uint64_t settle_ns;    /* how soon these are looked at again */
    bool settled_some;     /* one of them has read on since */
    uint64_t stream_count; /* opened here, ever: names them */
    uint32_t tunnel_count;
    uint32_t transit_count;
    uint64_t edges_sequence;
    struct rbi_loop_timer edges_timer;
    struct rbi_loop_timer status_timer;
    struct rbi_loop_timer look_timer;
    struct rbi_loop_timer pump_timer;
    const struct rbi_directory_view *directory; /* of the local daemon; NULL: none yet */
    bool settled;
    struct rbi_desk *desk;
    struct rbi_station *station;
    struct rbi_export *export;
    struct rbi_import_desk *import;
    struct rbi_bridge_counters counters;
    struct rbi_follow follow;
    uint64_t orphan_ns; /* as in the options */
    struct rbi_loop_timer orphan_timer;
};

struct rbi_bridge_options {
    struct rbi_loop *loop;
    const char *socket; /* of the daemon */
    const char *folder; /* for what is known of others, or NULL */
    uint64_t orphan_ns; /* ends after so long without the daemon; 0: never */
};

/**
 * Starts everything. Failures are logged.
 * @param config   copied
 * @param options  what they name is lent
 * @retval 0; -EINVAL the configuration does not work here; -errno
 */
RBI_MUST_CHECK int rbi_bridge_init(struct rbi_bridge *bridge,
                                   const struct rbi_bridge_config *config,
                                   const struct rbi_bridge_options *options);
/** Another configuration: neighbours, globs, certificates, times. */
void rbi_bridge_configure(struct rbi_bridge *bridge, const struct rbi_bridge_config *config);
/** Says BYE to all, in order. */
void rbi_bridge_stop(struct rbi_bridge *bridge);
/** Ends everything; accepts a half-started one. */
void rbi_bridge_deinit(struct rbi_bridge *bridge);

/* bridge_station.c */
RBI_MUST_CHECK int rbi_bridge_station_start(struct rbi_bridge *bridge);
void rbi_bridge_station_stop(struct rbi_bridge *bridge);
/** Other globs: looks at the directory again. */
void rbi_bridge_station_look(struct rbi_bridge *bridge);
void rbi_bridge_station_look_again(void *bridge);
/** Tells other hosts what they lack. */
void rbi_bridge_pump(struct rbi_bridge *bridge);

static inline uint64_t rbi_bridge_now_ns(const struct rbi_bridge *bridge)
{
    return rbi_loop_now_ns(bridge->loop);
}

#endif
