/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_DAEMON_H
#define RINGBUS_DAEMON_DAEMON_H
/*
 * daemon/daemon.h - ringbusd as a whole: owns everything, starts and stops it. One
 * thread, but for closing what is large (closer.h) and waiting for a disk (worker.h). It
 * names, admits, introduces and watches; it is never on the data path.
 */
#include "bus/config.h"
#include "daemon/alarms.h"
#include "daemon/bridge_process.h"
#include "daemon/centre.h"
#include "daemon/closer.h"
#include "daemon/dry_run.h"
#include "daemon/follow.h"
#include "daemon/governance.h"
#include "daemon/health.h"
#include "daemon/hosts.h"
#include "daemon/known.h"
#include "daemon/lease.h"
#include "daemon/link.h"
#include "daemon/listener.h"
#include "daemon/names.h"
#include "daemon/nodes.h"
#include "daemon/origin.h"
#include "daemon/peer.h"
#include "daemon/publish.h"
#include "daemon/quota.h"
#include "daemon/registry.h"
#include "daemon/relink.h"
#include "daemon/rights.h"
#include "daemon/routes.h"
#include "daemon/settle.h"
#include "daemon/tokens.h"
#include "daemon/watch.h"
#include "daemon/worker.h"

#ifndef RINGBUS_VERSION_TEXT
#define RINGBUS_VERSION_TEXT "0.1.0"
#endif

/** What happened since the start; shown by QUERY status. */
#define RBI_DAEMON_COUNTERS(X)                                                                     \
    X(connections_accepted)                                                                        \
    X(connections_refused)                                                                         \
    X(handshake_timeouts)                                                                          \
    X(frame_timeouts)                                                                              \
    X(bad_frames)                                                                                  \
    X(registrations)                                                                               \
    X(registrations_refused)                                                                       \
    X(deaths)                                                                                      \
    X(introductions)                                                                               \
    X(introductions_failed)                                                                        \
    X(links_restored)                                                                              \
    X(events_sent)                                                                                 \
    X(events_dropped)                                                                              \
    X(resyncs)                                                                                     \
    X(queue_overflows)                                                                             \
    X(control_stalls)                                                                              \
    X(quota_refusals)                                                                              \
    X(denied)                                                                                      \
    X(links_revoked)                                                                               \
    X(names_taken_over)                                                                            \
    X(host_conflicts)                                                                              \
    X(inflight_waits)                                                                              \
    X(no_pidfd)                                                                                    \
    X(no_fds)                                                                                      \
    X(reloads)                                                                                     \
    X(reloads_failed)                                                                              \
    X(calls_ok)                                                                                    \
    X(calls_failed)                                                                                \
    X(calls_lost)                                                                                  \
    X(shields)                                                                                     \
    X(probes)

struct rbi_daemon_counters {
#define RBI_DAEMON_COUNTER(name) uint64_t name;
    RBI_DAEMON_COUNTERS(RBI_DAEMON_COUNTER)
#undef RBI_DAEMON_COUNTER
};

struct rbi_daemon_options {
    const char *config_path; /* NULL: defaults */
    const char *socket_path; /* NULL: as configured */
    struct rbi_config config;
    struct rbi_governance *governance; /* of the file; taken; NULL: nothing */
};

struct rbi_daemon {
    struct rbi_config config;
    const char *config_path;
    struct rbi_loop *loop;
    uint64_t incarnation; /* random, one each start */
    uint64_t started_ns;
    bool restored; /* the directory has what the last daemon left (restore.h) */
    bool stopping;
    struct rbi_listener listener;
    struct rbi_quota quota;
    struct rbi_inflight inflight;
    struct rbi_peers peers;
    struct rbi_registry registry;
    struct rbi_nodes nodes;
    struct rbi_publish publish;
    struct rbi_watches watches;
    struct rbi_absences absences;
    struct rbi_tables tables;
    struct rbi_links links;
    struct rbi_relink relink;
    struct rbi_rights rights;
    struct rbi_names names;
    struct rbi_known known;
    struct rbi_live live;
    struct rbi_tokens tokens;
    struct rbi_centre centre;
    struct rbi_settle settle;
    struct rbi_hosts hosts;
    struct rbi_routes routes;
    struct rbi_followers followers;
    struct rbi_bridge_process bridge;
    struct rbi_health_desk health;
    struct rbi_reported_desk reported;
    uint32_t numa_nodes; /* of the host */
    struct rbi_alarm_desk alarms;
    struct rbi_dry_desk dry;
    struct rbi_lease_desk leases;
    struct rbi_closer closer;
    struct rbi_worker worker;
    struct rbi_daemon_counters counters;
    struct rbi_log_limit bad_frame_limit;
    struct rbi_log_limit overflow_limit;
    struct rbi_log_limit quota_limit;
    struct rbi_log_limit refusal_limit;
    struct rbi_log_limit conflict_limit;
    struct rbi_log_limit slowed_limit;
    int signal_fd;
    struct rbi_loop_source signal_source;
    struct rbi_loop_timer upkeep_timer;
    struct rbi_loop_timer watchdog_timer;
    uint64_t watchdog_ns;
};

/**
 * Starts everything. Failures are logged.
 * @param options  config_path is lent for the life of the daemon
 * @retval 0; RBI_LISTENER_RUNNING another one runs; -errno
 */
RBI_MUST_CHECK int rbi_daemon_init(struct rbi_daemon *daemon,
                                   const struct rbi_daemon_options *options);
/** Serves until it is told to stop. @retval 0; -errno */
RBI_MUST_CHECK int rbi_daemon_run(struct rbi_daemon *daemon);
/** Tells the clients and ends everything. Accepts a half-started one. */
void rbi_daemon_deinit(struct rbi_daemon *daemon);

#endif
