/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclient/control.c - the connection to ringbusd: connecting with back-off and full
 * jitter, frames out (queued when the socket is full) and in. What the frames mean is in
 * control_frames.c.
 *
 *   OFF --connect--> HELLO --HELLO_OK--> REGISTER --REGISTERED--> ON
 *    ^                                                             |
 *    +----------------- lost, or refused for now -----------------+
 */
#include "libclient/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RETRY_FIRST_MS 50U
#define RETRY_MAX_MS   1000U
#define OUT_FRAMES_MAX 65536U
/* Each may map a link: what comes from the daemon in a burst must not keep the lanes waiting. */
#define PACKETS_PER_INPUT 32U

/* ---- out ------------------------------------------------------------------------------- */

static void free_frame(struct rbi_out_frame *frame)
{
    for (unsigned i = 0; i < frame->fd_count; i++) {
        (void)close(frame->fds[i]);
    }
    free(frame);
}

static void drop_queue(struct rbi_control *control)
{
    while (control->out_first != NULL) {
        struct rbi_out_frame *frame = control->out_first;
        control->out_first = frame->next;
        free_frame(frame);
    }
    control->out_last = &control->out_first;
    control->out_count = 0;
}

static int
queue_frame(struct ringbus *bus, const void *bytes, size_t size, const int *fds, unsigned fd_count)
{
    struct rbi_control *control = &bus->control;
    if (control->out_count >= OUT_FRAMES_MAX) {
        return -ENOBUFS;
    }
    struct rbi_out_frame *frame = malloc(sizeof *frame + size);
    if (frame == NULL) {
        return -ENOMEM;
    }
    frame->next = NULL;
    frame->size = (uint32_t)size;
    frame->fd_count = 0;
    memcpy(frame->bytes, bytes, size);
    for (unsigned i = 0; i < fd_count; i++) {
        const int copy = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
        if (copy < 0) {
            const int r = -errno;
            free_frame(frame);
            return r;
        }
        frame->fds[frame->fd_count++] = copy;
    }
    *control->out_last = frame;
    control->out_last = &frame->next;
    control->out_count++;
    return 0;
}

static bool is_transient(int r)
{
    return r == -EAGAIN || r == -ETOOMANYREFS || r == -ENOBUFS;
}

/*
 * A frame that waits. While we come in, also one that nobody takes any more: the daemon has
 * refused us and said why, and that is read before the end of the connection is.
 */
static bool is_deferred(const struct rbi_control *control, int r)
{
    return is_transient(r) || (r == -EPIPE && (control->phase == RBI_CONTROL_HELLO ||
                                               control->phase == RBI_CONTROL_REGISTER));
}

void rbi_control_flush(struct ringbus *bus)
{
    struct rbi_control *control = &bus->control;
    while (control->sock >= 0 && control->out_first != NULL) {
        struct rbi_out_frame *frame = control->out_first;
        const int r =
            rbi_handoff_send(control->sock, frame->bytes, frame->size, frame->fds, frame->fd_count);
        if (is_deferred(control, r)) {
            break;
        }
        if (r < 0) {
            rbi_control_lost(bus, strerrordesc_np(-r));
            return;
        }
        control->out_first = frame->next;
        if (control->out_first == NULL) {
            control->out_last = &control->out_first;
        }
        control->out_count--;
        free_frame(frame);
    }
    const bool want_write = control->out_first != NULL;
    if (control->sock >= 0 && want_write != control->write_armed) {
        control->write_armed = want_write;
        (void)rbi_epoll_modify(bus, control->sock, RBI_EPOLL_CONTROL, want_write);
    }
}

uint32_t rbi_control_send(struct ringbus *bus,
                          enum rbi_wire_type type,
                          const void *body,
                          const int *fds,
                          unsigned fd_count)
{
    struct rbi_control *control = &bus->control;
    unsigned char frame[RBI_WIRE_FRAME_MAX];
    const bool greets = type == RBI_WIRE_HELLO || type == RBI_WIRE_REGISTER;
    if (control->sock < 0 || (control->phase != RBI_CONTROL_ON && !greets)) {
        return 0; /* a daemon takes nothing else before REGISTERED, and then is told everything */
    }
    if (!greets && rbi_wire_type_protocol(type) > control->protocol) {
        return 0; /* an older one would take it for an offence */
    }
    if (++control->serial == 0) {
        control->serial = 1;
    }
    const uint32_t serial = control->serial;
    const size_t size = rbi_wire_encode(type, body, serial, 0, frame);
    int r = -EAGAIN;
    if (control->out_first == NULL) {
        r = rbi_handoff_send(control->sock, frame, size, fds, fd_count);
    }
    if (is_deferred(control, r)) {
        r = queue_frame(bus, frame, size, fds, fd_count);
        if (r == 0) {
            rbi_control_flush(bus);
            return control->sock >= 0 ? serial : 0;
        }
    }
    if (r < 0) {
        rbi_control_lost(bus, strerrordesc_np(-r));
        return 0;
    }
    return serial;
}

/* ---- in -------------------------------------------------------------------------------- */

static void handle_frames(struct ringbus *bus)
{
    struct rbi_control *control = &bus->control;
    /* To the last whole frame, or the stream has no room for the next packet. */
    while (control->sock >= 0) {
        struct rbi_wire_header header;
        const void *frame = NULL;
        int r = rbi_wire_stream_next(&control->stream, &header, &frame);
        if (r == RBI_WIRE_SHORT) {
            break;
        }
        if (r < 0) {
            rbi_control_lost(bus, "the daemon's frames cannot be read");
            return;
        }
        union rbi_wire_body body;
        struct rbi_wire_fault fault;
        r = rbi_wire_decode(&header, frame, &body, &fault);
        if (r < 0) {
            rbi_control_lost(bus, fault.text);
            return;
        }
        if (r == 0) {
            rbi_control_frame(bus, &header, &body, &control->fds);
        }
        /* What a frame did not take is not for the next one. */
        rbi_fdlist_deinit(&control->fds);
    }
}

/* Descriptors come with the first byte of their frame; those of a frame in pieces wait for it. */
static bool take_fds(struct rbi_control *control, struct rbi_fdlist *fds)
{
    if (fds->count == 0 && !fds->truncated) {
        return true;
    }
    if (control->fds.count > 0) {
        rbi_fdlist_deinit(fds);
        return false;
    }
    control->fds = *fds;
    return true;
}

void rbi_control_input(struct ringbus *bus)
{
    struct rbi_control *control = &bus->control;
    for (unsigned i = 0; i < PACKETS_PER_INPUT && control->sock >= 0; i++) {
        size_t room = 0;
        struct rbi_fdlist fds = RBI_FDLIST_NULL;
        void *data = rbi_wire_stream_room(&control->stream, &room);
        const ssize_t n = rbi_handoff_recv(control->sock, data, room, &fds);
        if (n == -EAGAIN) {
            break;
        }
        if (n <= 0) {
            rbi_control_lost(bus, n == 0 ? "the daemon closed the connection"
                                         : strerrordesc_np((int)-n));
            return;
        }
        rbi_wire_stream_filled(&control->stream, (size_t)n);
        if (!take_fds(control, &fds)) {
            rbi_control_lost(bus, "descriptors in the middle of a frame");
            return;
        }
        handle_frames(bus);
        if (i + 1 == PACKETS_PER_INPUT) {
            control->attention_seen--; /* there may be more: look again with the next tick */
            bus->tick_countdown = 1;
        }
    }
}

/* ---- life ------------------------------------------------------------------------------ */

static void schedule_retry(struct ringbus *bus)
{
    struct rbi_control *control = &bus->control;
    uint64_t ceiling_ms = (uint64_t)RETRY_FIRST_MS << rbi_min_u64(control->retry_count, 8);
    ceiling_ms = rbi_min_u64(ceiling_ms, RETRY_MAX_MS);
    control->retry_count++;
    /* Full jitter: a thousand clients of a restarted daemon must not come at once. */
    control->retry_ns =
        rbi_now_ns() + rbi_random_below(bus, ceiling_ms * RBI_NS_PER_MS) + RBI_NS_PER_MS;
    rbi_deadline_at_most(bus, control->retry_ns);
}

static void disconnect(struct ringbus *bus)
{
    struct rbi_control *control = &bus->control;
    if (control->sock >= 0) {
        rbi_epoll_remove(bus, control->sock);
        (void)close(control->sock);
        control->sock = -1;
    }
    control->phase = RBI_CONTROL_OFF;
    control->write_armed = false;
    drop_queue(control);
    rbi_fdlist_deinit(&control->fds);
    rbi_wire_stream_init(&control->stream);
}

void rbi_control_lost(struct ringbus *bus, const char *why)
{
    struct rbi_control *control = &bus->control;
    const bool was_on = control->phase == RBI_CONTROL_ON;
    if (control->sock < 0) {
        return;
    }
    disconnect(bus);
    (void)rbi_fail(bus, RINGBUS_E_NO_DAEMON, "lost ringbusd at %s: %s", bus->socket_path, why);
    /* Whom this daemon had not named yet, the next one may: that has a time of its own. */
    bus->sweep_ns = RBI_NEVER;
    rbi_nodes_lost(bus);
    if (control->ever_on && !bus->closing) {
        rbi_target_introductions_lost(bus);
        schedule_retry(bus);
    }
    if (was_on) {
        rbi_count(bus, RBI_COUNTER_daemon_lost, 1);
        /* Reported by the next poll, whoever noticed it. */
        if (bus->daemon_back_pending) {
            bus->daemon_back_pending = false; /* for the application it was never back */
        } else {
            bus->daemon_lost_pending = true;
        }
        rbi_wait_nudge(bus);
    }
}

static int try_connect(struct ringbus *bus)
{
    struct rbi_control *control = &bus->control;
    const int sock = rbi_handoff_connect(bus->socket_path);
    if (sock < 0) {
        return sock;
    }
    const int r = rbi_epoll_add(bus, sock, RBI_EPOLL_CONTROL, false);
    if (r < 0) {
        (void)close(sock);
        return r;
    }
    control->sock = sock;
    control->phase = RBI_CONTROL_HELLO;
    control->deadline_ns = rbi_now_ns() + RBI_HANDSHAKE_NS;
    rbi_control_hello(bus);
    return 0;
}

uint64_t rbi_control_deadline_ns(const struct ringbus *bus)
{
    const struct rbi_control *control = &bus->control;
    switch (control->phase) {
    case RBI_CONTROL_OFF:
        return control->ever_on && !bus->closing ? control->retry_ns : RBI_NEVER;
    case RBI_CONTROL_HELLO:
    case RBI_CONTROL_REGISTER:
        return control->deadline_ns;
    case RBI_CONTROL_ON:
        break;
    }
    return RBI_NEVER;
}

void rbi_control_tick(struct ringbus *bus, uint64_t now_ns)
{
    struct rbi_control *control = &bus->control;
    if (rbi_control_deadline_ns(bus) > now_ns) {
        return;
    }
    if (control->phase == RBI_CONTROL_OFF) {
        if (try_connect(bus) < 0) {
            schedule_retry(bus);
        }
    } else if (now_ns - control->deadline_ns > RBI_HANDSHAKE_NS / 2) {
        /* We did not run, and perhaps neither did the daemon. */
        control->deadline_ns = now_ns + RBI_HANDSHAKE_NS;
    } else {
        rbi_control_lost(bus, "no answer from the daemon in time");
    }
}

static int open_failed(struct ringbus *bus, int r)
{
    if (r == -ENAMETOOLONG) {
        return rbi_fail(bus, RINGBUS_E_ARGUMENT, "socket path is longer than %u bytes",
                        RBI_SOCKET_PATH_MAX);
    }
    if (r == -EMFILE || r == -ENFILE || r == -ENOMEM) {
        return rbi_fail_errno(bus, r, "connecting to ringbusd");
    }
    return rbi_fail(bus, r == -EACCES ? RINGBUS_E_DENIED : RINGBUS_E_NO_DAEMON,
                    "ringbusd cannot be reached at %s: %s", bus->socket_path, strerrordesc_np(-r));
}

int rbi_control_connect(struct ringbus *bus, uint64_t deadline_ns)
{
    int r = try_connect(bus);
    while (r == -EAGAIN && rbi_now_ns() < deadline_ns) {
        (void)poll(NULL, 0, 1); /* its backlog is full: many start at once */
        r = try_connect(bus);
    }
    return r < 0 ? open_failed(bus, r) : 0;
}

int rbi_control_register(struct ringbus *bus, uint64_t deadline_ns, uint32_t timeout_ms)
{
    struct rbi_control *control = &bus->control;
    bus->error.code = 0;
    for (;;) {
        rbi_control_flush(bus);
        rbi_control_input(bus);
        if (control->phase == RBI_CONTROL_ON) {
            return 0;
        }
        if (control->phase == RBI_CONTROL_OFF) {
            return bus->error.code != 0 ? bus->error.code : RINGBUS_E_NO_DAEMON;
        }
        const uint64_t now_ns = rbi_now_ns();
        if (now_ns >= deadline_ns) {
            disconnect(bus);
            return rbi_fail(bus, RINGBUS_E_TIMEOUT, "ringbusd at %s did not answer within %u ms",
                            bus->socket_path, timeout_ms);
        }
        struct pollfd wait = {.fd = control->sock,
                              .events = (short)(POLLIN | (control->write_armed ? POLLOUT : 0))};
        (void)poll(&wait, 1, (int)((deadline_ns - now_ns) / RBI_NS_PER_MS) + 1);
    }
}

void rbi_control_close(struct ringbus *bus)
{
    disconnect(bus);
}
