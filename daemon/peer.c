/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/peer.h"

#include "daemon/centre_turn.h"
#include "daemon/code.h"
#include "daemon/daemon.h"
#include "daemon/endpoint.h"
#include "daemon/farewell.h"
#include "daemon/inflight.h"
#include "daemon/log.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define LOG_LIMIT_NS (UINT64_C(60) * 1000 * 1000 * 1000)

void rbi_peers_init(struct rbi_peers *peers)
{
    *peers = (struct rbi_peers){.count = 0};
    rbi_list_init(&peers->all);
    rbi_list_init(&peers->lost);
    rbi_list_init(&peers->doomed);
}

/* ---- end ------------------------------------------------------------------------------- */

static void peers_reap_task(void *context)
{
    rbi_peers_reap(context);
}

static void peer_stop_io(struct rbi_peer *peer)
{
    struct rbi_loop *loop = peer->daemon->loop;
    rbi_loop_remove(&peer->source);
    rbi_loop_remove(&peer->pid_source);
    rbi_loop_timer_cancel(loop, &peer->handshake_timer);
    rbi_loop_timer_cancel(loop, &peer->frame_timer);
    rbi_loop_timer_cancel(loop, &peer->stall_timer);
    rbi_loop_timer_cancel(loop, &peer->retry_timer);
    rbi_loop_timer_cancel(loop, &peer->token.timer);
    /* At once, and not when the last request of a ring has let go of the socket. */
    (void)shutdown(peer->fd, SHUT_RDWR);
}

void rbi_peer_doom(struct rbi_peer *peer, const char *reason)
{
    if (peer->doomed) {
        return;
    }
    peer->doomed = true;
    peer->doom_reason = reason;
    peer_stop_io(peer);
    rbi_list_remove(&peer->in_doomed);
    rbi_list_push_back(&peer->daemon->peers.doomed, &peer->in_doomed);
    rbi_loop_defer(peer->daemon->loop, &peer->daemon->peers.reap, peers_reap_task, peer->daemon);
}

static void peers_hang_up_task(void *context)
{
    struct rbi_daemon *daemon = context;
    while (!rbi_list_empty(&daemon->peers.lost)) {
        rbi_peer_hang_up(RBI_LIST_FIRST(&daemon->peers.lost, struct rbi_peer, in_doomed),
                         "connection lost");
    }
}

void rbi_peer_lose(struct rbi_peer *peer)
{
    if (peer->doomed || peer->hangup) {
        return;
    }
    peer->hangup = true;
    rbi_list_push_back(&peer->daemon->peers.lost, &peer->in_doomed);
    rbi_loop_defer(peer->daemon->loop, &peer->daemon->peers.hang_up, peers_hang_up_task,
                   peer->daemon);
}

static void peer_log_end(const struct rbi_peer *peer)
{
    const struct rbi_endpoint *endpoint = peer->endpoint;
    if (peer->daemon->stopping) {
        return;
    }
    if (!endpoint) {
        rbi_log(RBI_LOG_DEBUG, "disconnected", "uid=%" PRIu32 " pid=%s why=\"%s\"", peer->uid,
                rbi_log_pid(&(struct rbi_log_pid){{0}}, peer->pid), peer->doom_reason);
        return;
    }
    const bool left = endpoint->state == RBI_ENDPOINT_CLOSED || endpoint->replaced;
    rbi_log(endpoint->cluster ? RBI_LOG_INFO : RBI_LOG_DEBUG, left ? "left" : "died",
            "path=%s incarnation=%" PRIu32 " uid=%" PRIu32 " pid=%s why=\"%s\"",
            endpoint->path.bytes, endpoint->incarnation, peer->uid,
            rbi_log_pid(&(struct rbi_log_pid){{0}}, peer->pid), peer->doom_reason);
    if (!left) {
        peer->daemon->counters.deaths++;
    }
}

static void peer_free(struct rbi_peer *peer)
{
    rbi_list_remove(&peer->in_doomed);
    rbi_list_remove(&peer->in_peers);
    peer->daemon->peers.count--;
    rbi_watch_clear(peer);
    rbi_turn_peer_gone(peer);
    rbi_centre_peer_gone(peer);
    rbi_routes_peer_gone(peer);
    rbi_follow_peer_gone(peer);
    peer->endpoint = rbi_endpoint_free(peer->endpoint);
    rbi_peer_out_deinit(peer);
    rbi_fdlist_deinit(&peer->fds);
    if (peer->pidfd >= 0) {
        (void)close(peer->pidfd);
    }
    rbi_inflight_close(peer, &peer->charge);
    free(peer);
}

/** The next of the doomed that can be freed, or NULL. */
static struct rbi_peer *peers_next_doomed(struct rbi_peers *peers)
{
    RBI_LIST_EACH(node, spare, &peers->doomed)
    {
        struct rbi_peer *peer = RBI_CONTAINER_OF(node, struct rbi_peer, in_doomed);
        if (!peer->handling) {
            return peer;
        }
    }
    return NULL;
}

void rbi_peers_reap(struct rbi_daemon *daemon)
{
    struct rbi_peer *peer = NULL;
    /* Telling the others may doom some of them: they are taken in the same sweep. */
    while ((peer = peers_next_doomed(&daemon->peers)) != NULL) {
        peer_log_end(peer);
        peer_free(peer);
    }
}

void rbi_peers_deinit(struct rbi_daemon *daemon)
{
    /* All fall silent before the first ends: none is told of the end of another. */
    RBI_LIST_EACH(node, spare, &daemon->peers.all)
    {
        rbi_peer_doom(RBI_CONTAINER_OF(node, struct rbi_peer, in_peers), "daemon stops");
    }
    rbi_peers_reap(daemon);
    rbi_loop_undefer(daemon->loop, &daemon->peers.hang_up);
    rbi_loop_undefer(daemon->loop, &daemon->peers.reap);
}

bool rbi_peer_is_gone(const struct rbi_peer *peer)
{
    struct pollfd fds[2] = {{.fd = peer->fd}, {.fd = peer->pidfd, .events = POLLIN}};
    return peer->doomed || peer->hangup ||
           (poll(fds, 2, 0) > 0 && ((fds[0].revents & POLLHUP) || fds[1].revents));
}

void rbi_peer_verify(struct rbi_peer *peer)
{
    if (!peer->doomed && rbi_peer_is_gone(peer)) {
        rbi_peer_hang_up(peer, "connection closed");
    }
}

/* ---- events ---------------------------------------------------------------------------- */

void rbi_peer_update_want(struct rbi_peer *peer)
{
    unsigned want = 0;
    if (!peer->query.active && !peer->stalled && !peer->governing) {
        want |= RBI_LOOP_IN;
    }
    /* While the kernel refuses descriptors the socket is writable all the same. */
    if ((peer->query.active || !rbi_list_empty(&peer->out)) && !peer->retry_timer.heap_idx) {
        want |= RBI_LOOP_OUT;
    }
    rbi_loop_want(&peer->source, want);
}

static void peer_ready(void *context, unsigned events)
{
    struct rbi_peer *peer = context;
    if (events & RBI_LOOP_HUP) {
        rbi_peer_hang_up(peer, "connection lost");
        return;
    }
    if (events & RBI_LOOP_OUT) {
        rbi_peer_flush(peer);
    }
    if ((events & RBI_LOOP_IN) && !peer->doomed) {
        rbi_peer_read(peer);
    }
}

static void peer_process_ended(void *context, unsigned events)
{
    (void)events;
    rbi_peer_hang_up(context, "process ended");
}

static void peer_handshake_late(void *context)
{
    struct rbi_peer *peer = context;
    peer->daemon->counters.handshake_timeouts++;
    rbi_peer_send_error(peer, 0, RBI_CODE_TIMEOUT, 0, "no HELLO within %" PRIu32 " ms",
                        peer->daemon->config.daemon.handshake_timeout_ms);
    rbi_peer_doom(peer, "no HELLO in time");
}

/* ---- beginning ------------------------------------------------------------------------- */

static void
peer_log_refusal(struct rbi_daemon *daemon, const struct ucred *credentials, const char *why)
{
    uint64_t suppressed = 0;
    daemon->counters.connections_refused++;
    if (rbi_log_limit_pass(&daemon->quota_limit, rbi_loop_now_ns(daemon->loop), LOG_LIMIT_NS,
                           &suppressed)) {
        const uint32_t pid = credentials->pid > 0 ? (uint32_t)credentials->pid : 0;
        rbi_log(RBI_LOG_WARNING, "connection_refused",
                "uid=%" PRIu32 " pid=%s why=\"%s\" suppressed=%" PRIu64, credentials->uid,
                rbi_log_pid(&(struct rbi_log_pid){{0}}, pid), why, suppressed);
    }
}

/** Whom a connection is charged to. */
static uint32_t peer_actor(const struct rbi_daemon *daemon, const struct ucred *credentials)
{
    const uint32_t pid = credentials->pid > 0 ? (uint32_t)credentials->pid : 0;
    return rbi_routes_is_bridge(&daemon->routes, credentials->uid, pid) ? RBI_QUOTA_BRIDGE
                                                                        : credentials->uid;
}

static void peer_identify(struct rbi_peer *peer, const struct ucred *credentials)
{
    socklen_t size = sizeof(peer->pidfd);
    peer->uid = credentials->uid;
    peer->gid = credentials->gid;
    peer->actor = peer_actor(peer->daemon, credentials);
    peer->pid = credentials->pid > 0 ? (uint32_t)credentials->pid : 0;
    /* Without it, the end of the connection alone tells of the end of the process: late, when
     * a child has inherited the socket. */
    if (getsockopt(peer->fd, SOL_SOCKET, SO_PEERPIDFD, &peer->pidfd, &size) < 0) {
        peer->pidfd = -1;
        peer->daemon->counters.no_pidfd++;
    }
}

static struct rbi_peer *peer_new(struct rbi_daemon *daemon, int fd)
{
    struct rbi_peer *peer = calloc(1, sizeof(*peer));
    if (!peer) {
        return NULL;
    }
    peer->daemon = daemon;
    peer->fd = fd;
    peer->pidfd = -1;
    peer->connected_ns = rbi_loop_now_ns(daemon->loop);
    rbi_list_init(&peer->in_peers);
    rbi_list_init(&peer->in_doomed);
    rbi_list_init(&peer->watches);
    rbi_list_init(&peer->out);
    rbi_wire_stream_init(&peer->stream);
    return peer;
}

/** Starts to watch; what fails leaves nothing behind. */
static int peer_watch(struct rbi_peer *peer)
{
    struct rbi_loop *loop = peer->daemon->loop;
    const int result = rbi_loop_add(loop, &peer->source, peer->fd, RBI_LOOP_IN, peer_ready, peer);
    if (result < 0) {
        return result;
    }
    if (peer->pidfd >= 0 && rbi_loop_add(loop, &peer->pid_source, peer->pidfd, RBI_LOOP_IN,
                                         peer_process_ended, peer) < 0) {
        (void)close(peer->pidfd);
        peer->pidfd = -1;
        peer->daemon->counters.no_pidfd++;
    }
    return 0;
}

static void peer_enter(struct rbi_daemon *daemon, struct rbi_peer *peer)
{
    const uint64_t timeout_ns = (uint64_t)daemon->config.daemon.handshake_timeout_ms * 1000000;
    rbi_list_push_back(&daemon->peers.all, &peer->in_peers);
    daemon->peers.count++;
    daemon->counters.connections_accepted++;
    rbi_loop_timer_set(daemon->loop, &peer->handshake_timer, peer->connected_ns + timeout_ns,
                       peer_handshake_late, peer);
}

/** Whether this user may have one more. A flood ends here: nothing was made for it yet. */
static int peer_admit(struct rbi_daemon *daemon,
                      int fd,
                      struct ucred *credentials,
                      struct rbi_charge *charge,
                      struct rbi_text *why)
{
    socklen_t size = sizeof(*credentials);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, credentials, &size) < 0) {
        return -errno;
    }
    const uint32_t actor = peer_actor(daemon, credentials);
    const int result = rbi_quota_connect(&daemon->quota, actor, rbi_loop_now_ns(daemon->loop), why);
    return result != 0
               ? result
               : rbi_quota_charge(&daemon->quota, actor, RBI_QUOTA_CONNECTIONS, 1, charge, why);
}

/** @retval 0; 1 refused, @p why says it; -errno */
static int
peer_make(struct rbi_daemon *daemon, int fd, struct ucred *credentials, struct rbi_text *why)
{
    struct rbi_charge charge = {.user = NULL};
    int result = peer_admit(daemon, fd, credentials, &charge, why);
    if (result != 0) {
        return result;
    }
    struct rbi_peer *peer = peer_new(daemon, fd);
    if (!peer) {
        rbi_charge_release(&charge);
        return -ENOMEM;
    }
    peer_identify(peer, credentials);
    result = peer_watch(peer);
    if (result < 0) {
        rbi_charge_release(&charge);
        if (peer->pidfd >= 0) {
            (void)close(peer->pidfd);
        }
        free(peer);
        return result;
    }
    peer->charge = charge;
    peer_enter(daemon, peer);
    return 0;
}

void rbi_peer_accept_consume_fd(struct rbi_daemon *daemon, int fd)
{
    struct rbi_text why = {.length = 0};
    struct ucred credentials = {.pid = 0, .uid = UINT32_MAX}; /* nobody's */
    const int result = peer_make(daemon, fd, &credentials, &why);
    if (result != 0) {
        const char *text = result > 0 ? why.bytes : rbi_log_errno(-result);
        rbi_farewell_refuse(fd, result > 0 ? RBI_CODE_QUOTA : RBI_CODE_NO_MEMORY, text);
        peer_log_refusal(daemon, &credentials, text);
    }
}
