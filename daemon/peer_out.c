/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/code.h"
#include "daemon/daemon.h"
#include "daemon/inflight.h"
#include "daemon/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OUT_FDS_MAX  4U
#define RETRY_NS     (UINT64_C(20) * 1000 * 1000) /* descriptors in flight: nothing tells when */
#define LOG_LIMIT_NS (UINT64_C(10) * 1000 * 1000 * 1000)

/** A frame that waits. */
struct out_frame {
    struct rbi_list in_out;
    size_t size;
    unsigned fd_count;
    int fds[OUT_FDS_MAX]; /* our own duplicates */
    unsigned char bytes[];
};

static void out_frame_free(struct rbi_peer *peer, struct out_frame *frame)
{
    rbi_list_remove(&frame->in_out);
    for (unsigned i = 0; i < frame->fd_count; i++) {
        (void)close(frame->fds[i]);
    }
    peer->out_count--;
    peer->out_fds -= frame->fd_count;
    free(frame);
}

void rbi_peer_out_deinit(struct rbi_peer *peer)
{
    while (!rbi_list_empty(&peer->out)) {
        out_frame_free(peer, RBI_LIST_FIRST(&peer->out, struct out_frame, in_out));
    }
}

/** Keeps a frame for later, with duplicates of its descriptors. */
static int
out_queue(struct rbi_peer *peer, const void *bytes, size_t size, const int *fds, unsigned fd_count)
{
    if (peer->out_fds + fd_count > RBI_PEER_QUEUED_FDS_MAX) {
        return -ENOBUFS;
    }
    struct out_frame *frame = malloc(sizeof(*frame) + size);
    if (!frame) {
        return -ENOMEM;
    }
    frame->size = size;
    frame->fd_count = 0;
    memcpy(frame->bytes, bytes, size);
    rbi_list_push_back(&peer->out, &frame->in_out);
    peer->out_count++;
    for (unsigned i = 0; i < fd_count; i++) {
        const int fd = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
        if (fd < 0) {
            const int error = errno;
            out_frame_free(peer, frame);
            return -error;
        }
        frame->fds[frame->fd_count++] = fd;
        peer->out_fds++;
    }
    return 0;
}

/** Wakes a client that polls without system calls. */
static void out_bump(const struct rbi_peer *peer)
{
    if (peer->endpoint) {
        rbi_publish_bump(peer->daemon, peer->endpoint->slot);
    }
}

static void out_retry(void *context)
{
    rbi_peer_flush(context);
}

/** A send was put off: waits for room, or for the kernel to let more descriptors travel. */
static void out_wait(struct rbi_peer *peer, int result)
{
    if (result == -ETOOMANYREFS) {
        rbi_loop_timer_set(peer->daemon->loop, &peer->retry_timer,
                           rbi_loop_now_ns(peer->daemon->loop) + RETRY_NS, out_retry, peer);
    }
    rbi_peer_update_want(peer);
}

static bool out_put_off(int result)
{
    return result == -EAGAIN || result == -ETOOMANYREFS;
}

static void out_overflow(struct rbi_peer *peer)
{
    struct rbi_daemon *daemon = peer->daemon;
    uint64_t suppressed = 0;
    daemon->counters.queue_overflows++;
    if (rbi_log_limit_pass(&daemon->overflow_limit, rbi_loop_now_ns(daemon->loop), LOG_LIMIT_NS,
                           &suppressed)) {
        rbi_log(RBI_LOG_WARNING, "client_does_not_read",
                "uid=%" PRIu32 " pid=%s queued=%" PRIu32 " suppressed=%" PRIu64, peer->uid,
                rbi_log_pid(&(struct rbi_log_pid){{0}}, peer->pid), peer->out_count, suppressed);
    }
    rbi_peer_doom(peer, "does not read");
}

static size_t out_encode(struct rbi_peer *peer,
                         enum rbi_wire_type type,
                         const void *body,
                         uint32_t reply_to,
                         void *frame)
{
    if (++peer->next_serial == 0) {
        peer->next_serial = 1;
    }
    return rbi_wire_encode(type, body, peer->next_serial, reply_to, frame);
}

int rbi_peer_try_send_with_fds(struct rbi_peer *peer,
                               enum rbi_wire_type type,
                               const void *body,
                               uint32_t reply_to,
                               const int *fds,
                               unsigned fd_count)
{
    unsigned char frame[RBI_WIRE_FRAME_MAX];
    if (peer->doomed || peer->hangup) {
        return -EPIPE;
    }
    if (!rbi_list_empty(&peer->out)) {
        return 1;
    }
    const size_t size = out_encode(peer, type, body, reply_to, frame);
    const int result = rbi_inflight_send(peer, frame, size, fds, fd_count);
    if (out_put_off(result)) {
        out_wait(peer, result);
        return 1;
    }
    if (result < 0) {
        rbi_peer_lose(peer);
        return result;
    }
    out_bump(peer);
    return 0;
}

/** Frames that may wait. The bridge is told of the ways to all hosts at once. */
static uint32_t out_queue_max(const struct rbi_peer *peer)
{
    const bool bridge = peer->daemon->routes.bridge == peer;
    return peer->daemon->config.daemon.send_queue_max + (bridge ? RBI_HOSTS_MAX : 0);
}

int rbi_peer_send_with_fds(struct rbi_peer *peer,
                           enum rbi_wire_type type,
                           const void *body,
                           uint32_t reply_to,
                           const int *fds,
                           unsigned fd_count)
{
    unsigned char frame[RBI_WIRE_FRAME_MAX];
    if (peer->doomed || peer->hangup) {
        return -EPIPE;
    }
    const size_t size = out_encode(peer, type, body, reply_to, frame);
    int result = -EAGAIN;
    if (rbi_list_empty(&peer->out)) {
        result = rbi_inflight_send(peer, frame, size, fds, fd_count);
    }
    if (out_put_off(result)) {
        if (peer->out_count >= out_queue_max(peer)) {
            out_overflow(peer);
            return -ENOBUFS;
        }
        const int queued = out_queue(peer, frame, size, fds, fd_count);
        if (queued < 0) {
            return queued;
        }
        out_wait(peer, result);
    } else if (result < 0) {
        rbi_peer_lose(peer);
        return result;
    }
    out_bump(peer);
    return 0;
}

void rbi_peer_send(struct rbi_peer *peer,
                   enum rbi_wire_type type,
                   const void *body,
                   uint32_t reply_to)
{
    if (rbi_peer_send_with_fds(peer, type, body, reply_to, NULL, 0) < 0 && !peer->hangup) {
        rbi_peer_doom(peer, "cannot be told");
    }
}

/** Events leave a quarter of the queue to what must not be lost. */
static bool out_room_for_event(const struct rbi_peer *peer)
{
    const uint32_t max = peer->daemon->config.daemon.send_queue_max;
    return peer->out_count < max - max / 4;
}

/** Sends what may be dropped when there is no room. */
static void out_event(struct rbi_peer *peer, enum rbi_wire_type type, const void *event)
{
    struct rbi_daemon_counters *counters = &peer->daemon->counters;
    if (peer->events_lost || !out_room_for_event(peer)) {
        peer->events_lost = true;
        counters->events_dropped++;
        return;
    }
    counters->events_sent++;
    rbi_peer_send(peer, type, event, 0);
}

void rbi_peer_send_event(struct rbi_peer *peer, const struct rbi_wire_event *event)
{
    out_event(peer, RBI_WIRE_EVENT, event);
}

void rbi_peer_send_node_event(struct rbi_peer *peer, const struct rbi_wire_node_event *event)
{
    if (rbi_wire_type_protocol(RBI_WIRE_NODE_EVENT) <= peer->protocol) {
        out_event(peer, RBI_WIRE_NODE_EVENT, event);
    }
}

void rbi_peer_send_alarm(struct rbi_peer *peer, const struct rbi_wire_alarm *alarm)
{
    if (rbi_wire_type_protocol(RBI_WIRE_ALARM) <= peer->protocol) {
        out_event(peer, RBI_WIRE_ALARM, alarm);
    }
}

void rbi_peer_send_error(
    struct rbi_peer *peer, uint32_t reply_to, int code, uint64_t link_id, const char *format, ...)
{
    struct rbi_wire_error error = {.code = code, .link_id = link_id};
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(error.text.bytes, sizeof(error.text.bytes), format, args);
    va_end(args);
    error.text.length =
        (uint16_t)rbi_min_u64(length < 0 ? 0 : (uint64_t)length, sizeof(error.text.bytes) - 1);
    rbi_peer_send(peer, RBI_WIRE_ERROR, &error, reply_to);
}

/** The queue has room again: one message stands for all events that were dropped. */
static void out_resync(struct rbi_peer *peer)
{
    const struct rbi_wire_resync resync = {.revision = peer->daemon->registry.revision};
    if (peer->events_lost && rbi_list_empty(&peer->out)) {
        peer->events_lost = false;
        peer->daemon->counters.resyncs++;
        rbi_peer_send(peer, RBI_WIRE_RESYNC, &resync, 0);
        rbi_watch_send_alarms(peer);
    }
}

void rbi_peer_flush(struct rbi_peer *peer)
{
    while (!peer->doomed && !peer->hangup && !rbi_list_empty(&peer->out)) {
        struct out_frame *frame = RBI_LIST_FIRST(&peer->out, struct out_frame, in_out);
        const int result =
            rbi_inflight_send(peer, frame->bytes, frame->size, frame->fds, frame->fd_count);
        if (out_put_off(result)) {
            out_wait(peer, result);
            return;
        }
        if (result < 0) {
            rbi_peer_lose(peer);
            return;
        }
        out_frame_free(peer, frame);
        out_bump(peer);
    }
    if (!peer->doomed && !peer->hangup) {
        out_resync(peer);
        rbi_peer_update_want(peer);
        rbi_query_continue(peer);
    }
}
