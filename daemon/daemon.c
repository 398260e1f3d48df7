/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/daemon.h"

#include "daemon/notify.h"
#include "daemon/numa.h"
#include "daemon/reload.h"
#include "daemon/restore.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define UPKEEP_NS (UINT64_C(1) * 1000 * 1000 * 1000)

static int daemon_failed(const char *step, int error)
{
    rbi_log(RBI_LOG_ERROR, "start_failed", "step=%s error=\"%s\"", step, rbi_log_errno(-error));
    return error;
}

/** Descriptors are what a daemon of this kind runs out of first. */
static void daemon_raise_limits(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0) {
            rbi_log(RBI_LOG_WARNING, "limit_not_raised", "limit=RLIMIT_NOFILE error=\"%s\"",
                    rbi_log_errno(errno));
        }
    }
}

/* ---- signals and time ------------------------------------------------------------------ */

static void daemon_stop(struct rbi_daemon *daemon, uint32_t signal_number)
{
    rbi_log(RBI_LOG_INFO, "stopping", "signal=%" PRIu32, signal_number);
    rbi_loop_stop(daemon->loop);
}

static void daemon_signalled(void *context, unsigned events)
{
    struct rbi_daemon *daemon = context;
    struct signalfd_siginfo info;
    ssize_t n = 0;
    (void)events;
    while ((n = read(daemon->signal_fd, &info, sizeof(info))) == (ssize_t)sizeof(info) ||
           (n < 0 && errno == EINTR)) {
        if (n < 0) {
            continue; /* what is left unread may not be told of again */
        }
        if (info.ssi_signo == SIGHUP) {
            rbi_notify("RELOADING=1");
            rbi_reload(daemon);
            rbi_notify("READY=1");
        } else {
            daemon_stop(daemon, info.ssi_signo);
        }
    }
}

static int daemon_watch_signals(struct rbi_daemon *daemon)
{
    sigset_t set;
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    if (sigaction(SIGPIPE, &ignore, NULL) < 0) {
        return -errno;
    }
    const int blocked = pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (blocked != 0) {
        return -blocked;
    }
    daemon->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (daemon->signal_fd < 0) {
        return -errno;
    }
    return rbi_loop_add(daemon->loop, &daemon->signal_source, daemon->signal_fd, RBI_LOOP_IN,
                        daemon_signalled, daemon);
}

static void daemon_upkeep(void *context)
{
    struct rbi_daemon *daemon = context;
    const uint64_t now_ns = rbi_loop_now_ns(daemon->loop);
    rbi_listener_check(daemon);
    rbi_inflight_look(daemon);
    rbi_quota_sweep(&daemon->quota, now_ns);
    rbi_node_store_sync(daemon);
    rbi_registry_linger(daemon);
    rbi_known_sync(daemon);
    rbi_loop_timer_set(daemon->loop, &daemon->upkeep_timer, now_ns + UPKEEP_NS, daemon_upkeep,
                       daemon);
}

static void daemon_watchdog(void *context)
{
    struct rbi_daemon *daemon = context;
    rbi_notify("WATCHDOG=1");
    rbi_loop_timer_set(daemon->loop, &daemon->watchdog_timer,
                       rbi_loop_now_ns(daemon->loop) + daemon->watchdog_ns, daemon_watchdog,
                       daemon);
}

/* ---- life ------------------------------------------------------------------------------ */

static int daemon_init_tables(struct rbi_daemon *daemon)
{
    int result = rbi_quota_init(&daemon->quota, &daemon->config);
    if (result == 0) {
        result = rbi_registry_init(&daemon->registry);
    }
    if (result == 0) {
        result = rbi_watches_init(&daemon->watches);
    }
    if (result == 0) {
        result = rbi_links_init(&daemon->links);
    }
    if (result == 0) {
        result = rbi_relink_init(&daemon->relink);
    }
    if (result == 0) {
        result = rbi_rights_init(&daemon->rights);
    }
    if (result == 0) {
        result = rbi_alarms_init(&daemon->alarms);
    }
    if (result == 0 && getrandom(&daemon->incarnation, sizeof(daemon->incarnation), 0) !=
                           (ssize_t)sizeof(daemon->incarnation)) {
        result = -EIO;
    }
    daemon->incarnation |= 1; /* never 0: that means "of no daemon" */
    return result;
}

/** Everything but the socket: nothing is visible yet. */
static int daemon_init_inside(struct rbi_daemon *daemon)
{
    int result = daemon_init_tables(daemon);
    if (result < 0) {
        return daemon_failed("tables", result);
    }
    result = rbi_publish_init(daemon);
    if (result < 0) {
        return daemon_failed("directory", result);
    }
    result = rbi_loop_new(&daemon->loop, daemon->config.daemon.loop);
    if (result < 0) {
        return daemon_failed("loop", result);
    }
    rbi_worker_init(&daemon->worker, daemon->loop);
    result = daemon_watch_signals(daemon);
    return result < 0 ? daemon_failed("signals", result) : 0;
}

int rbi_daemon_init(struct rbi_daemon *daemon, const struct rbi_daemon_options *options)
{
    char path[RBI_SOCKET_PATH_MAX + 1];
    *daemon = (struct rbi_daemon){.config = options->config,
                                  .config_path = options->config_path,
                                  .listener = RBI_LISTENER_NULL,
                                  .publish = {.segment = RBI_SEGMENT_NULL},
                                  .names = RBI_NAMES_NULL,
                                  .bridge = RBI_BRIDGE_PROCESS_NULL,
                                  .worker = RBI_WORKER_NULL,
                                  .signal_fd = -1};
    rbi_peers_init(&daemon->peers);
    rbi_absences_init(&daemon->absences);
    rbi_tables_init(&daemon->tables);
    rbi_closer_init(&daemon->closer);
    rbi_health_init(&daemon->health);
    rbi_reported_init(&daemon->reported);
    daemon->numa_nodes = rbi_numa_nodes();
    rbi_leases_init(&daemon->leases);
    rbi_dry_desk_init(&daemon->dry);
    rbi_nodes_init(&daemon->nodes);
    rbi_hosts_init(&daemon->hosts);
    rbi_routes_init(&daemon->routes);
    rbi_list_init(&daemon->centre.turns);
    rbi_log_init();
    rbi_log_set_level(daemon->config.daemon.log_level);
    int result = rbi_listener_place(options->socket_path, daemon->config.daemon.socket, path);
    if (result < 0) {
        return result;
    }
    daemon_raise_limits();
    rbi_inflight_init(&daemon->inflight);
    /* First: a manager that counts wrong must not make us take our own descriptors for its. */
    rbi_notify_take_fds();
    rbi_notify_open();
    result = daemon_init_inside(daemon);
    if (result < 0) {
        return result;
    }
    rbi_live_init(daemon, options->governance);
    result = rbi_listener_open(&daemon->listener, path, daemon->config.daemon.socket_mode);
    if (result != RBI_LISTENER_OK) {
        return result;
    }
    rbi_centre_init(daemon);
    daemon->started_ns = rbi_loop_now_ns(daemon->loop);
    rbi_names_open(&daemon->names, path);
    rbi_tokens_load(daemon);
    rbi_restore(daemon);
    rbi_known_open(daemon);
    rbi_nodes_open(daemon);
    rbi_settle_start(daemon);
    result = rbi_listener_start(daemon);
    return result < 0 ? daemon_failed("accept", result) : 0;
}

int rbi_daemon_run(struct rbi_daemon *daemon)
{
    daemon_upkeep(daemon);
    daemon->watchdog_ns = rbi_notify_watchdog_ns();
    if (daemon->watchdog_ns) {
        daemon_watchdog(daemon);
    }
    rbi_log(RBI_LOG_INFO, "ready", "version=%s socket=%s loop=%s config=%s", RINGBUS_VERSION_TEXT,
            daemon->listener.path, rbi_loop_backend(daemon->loop),
            daemon->config_path ? daemon->config_path : "none");
    rbi_notify("READY=1");
    rbi_bridge_process_begin(daemon);
    const int result = rbi_loop_run(daemon->loop);
    return result < 0 ? daemon_failed("wait", result) : 0;
}

/** Says goodbye: the links of the clients go on without us. */
static void daemon_tell_stopping(struct rbi_daemon *daemon)
{
    struct rbi_wire_stopping stopping;
    rbi_text_set(&stopping.text, "ringbusd stops");
    RBI_LIST_EACH(node, spare, &daemon->peers.all)
    {
        struct rbi_peer *peer = RBI_CONTAINER_OF(node, struct rbi_peer, in_peers);
        if (peer->hello && !peer->doomed) {
            rbi_peer_send(peer, RBI_WIRE_STOPPING, &stopping, 0);
        }
    }
}

void rbi_daemon_deinit(struct rbi_daemon *daemon)
{
    rbi_worker_finish(&daemon->worker); /* what was begun is answered */
    daemon->stopping = true;
    rbi_bridge_process_stop(daemon);
    rbi_notify("STOPPING=1");
    rbi_listener_close(&daemon->listener);
    if (daemon->loop) {
        rbi_known_close(daemon);
        daemon_tell_stopping(daemon);
        rbi_peers_deinit(daemon);
        rbi_inflight_deinit(daemon);
        rbi_bridge_process_deinit(daemon);
        rbi_loop_remove(&daemon->signal_source);
        rbi_worker_deinit(&daemon->worker);
    }
    if (daemon->signal_fd >= 0) {
        (void)close(daemon->signal_fd);
    }
    daemon->loop = rbi_loop_free(daemon->loop);
    rbi_publish_deinit(&daemon->publish);
    rbi_relink_deinit(&daemon->relink);
    rbi_leases_deinit(&daemon->leases);
    rbi_alarms_deinit(&daemon->alarms);
    rbi_dry_desk_deinit(&daemon->dry);
    rbi_rights_deinit(&daemon->rights);
    rbi_names_close(&daemon->names);
    rbi_live_deinit(&daemon->live);
    rbi_tokens_deinit(&daemon->tokens);
    rbi_centre_deinit(&daemon->centre);
    rbi_links_deinit(&daemon->links);
    rbi_watches_deinit(&daemon->watches);
    rbi_registry_deinit(&daemon->registry);
    rbi_routes_deinit(&daemon->routes);
    rbi_hosts_deinit(&daemon->hosts);
    rbi_nodes_free_all(&daemon->nodes);
    rbi_quota_deinit(&daemon->quota);
    rbi_closer_deinit(&daemon->closer);
    rbi_notify_close();
}
