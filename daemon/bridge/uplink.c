/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/uplink.h"

#include "daemon/log.h"
#include "shm/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define NS_PER_MS      UINT64_C(1000000)
#define RETRY_FIRST_MS UINT64_C(50)
#define RETRY_MAX_MS   UINT64_C(1000)
/* For the daemon to answer HELLO once connected. */
#define HELLO_NS       (UINT64_C(5000) * NS_PER_MS)
#define OUT_FRAMES_MAX 65536U
/* Others have their turn in between. */
#define PACKETS_PER_TURN 32U

struct rbi_uplink_frame {
    struct rbi_uplink_frame *next;
    uint32_t size;
    unsigned fd_count;
    int fds[RBI_HANDOFF_FDS_MAX]; /* owned duplicates */
    unsigned char bytes[];
};

static void retry(void *context);

/* ---- life ---------------------------------------------------------------------------------- */

void rbi_uplink_init(struct rbi_uplink *uplink,
                     struct rbi_loop *loop,
                     const char *path,
                     const char *program,
                     const struct rbi_uplink_events *events)
{
    memset(uplink, 0, sizeof *uplink);
    uplink->loop = loop;
    uplink->path = path;
    uplink->program = program;
    uplink->events = events;
    uplink->sock = -1;
    uplink->out_last = &uplink->out_first;
}

static void free_frame(struct rbi_uplink_frame *frame)
{
    for (unsigned i = 0; i < frame->fd_count; i++) {
        (void)close(frame->fds[i]);
    }
    free(frame);
}

static void disconnect(struct rbi_uplink *uplink)
{
    rbi_loop_timer_cancel(uplink->loop, &uplink->timer);
    rbi_loop_remove(&uplink->source);
    if (uplink->sock >= 0) {
        (void)close(uplink->sock);
    }
    uplink->sock = -1;
    uplink->on = false;
    while (uplink->out_first != NULL) {
        struct rbi_uplink_frame *frame = uplink->out_first;
        uplink->out_first = frame->next;
        free_frame(frame);
    }
    uplink->out_last = &uplink->out_first;
    uplink->out_count = 0;
    rbi_fdlist_deinit(&uplink->fds);
    rbi_wire_stream_init(&uplink->stream);
}

void rbi_uplink_deinit(struct rbi_uplink *uplink)
{
    if (uplink->loop == NULL) {
        return; /* zeroed */
    }
    disconnect(uplink);
    if (uplink->watchman != NULL) {
        *uplink->watchman = true;
        uplink->watchman = NULL;
    }
}

void rbi_uplink_start(struct rbi_uplink *uplink)
{
    rbi_loop_timer_set(uplink->loop, &uplink->timer, rbi_loop_now_ns(uplink->loop), retry, uplink);
}

/** Full jitter: all proxies of a host must not come at once to a daemon that was started anew. */
static void retry_later(struct rbi_uplink *uplink)
{
    const uint64_t most_ms =
        rbi_min_u64(RETRY_FIRST_MS << rbi_min_u64(uplink->tries, 8), RETRY_MAX_MS);
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random) {
        random = (uint64_t)(uintptr_t)uplink >> 6;
    }
    uplink->tries++;
    rbi_loop_timer_set(uplink->loop, &uplink->timer,
                       rbi_loop_now_ns(uplink->loop) + NS_PER_MS + random % (most_ms * NS_PER_MS),
                       retry, uplink);
}

void rbi_uplink_drop(struct rbi_uplink *uplink, const char *why)
{
    const bool was_on = uplink->on;
    if (uplink->sock < 0) {
        return;
    }
    disconnect(uplink);
    retry_later(uplink);
    if (was_on) {
        uplink->events->on_lost(uplink, why);
    }
}

/* ---- out ----------------------------------------------------------------------------------- */

static int queue_frame(
    struct rbi_uplink *uplink, const void *bytes, size_t size, const int *fds, unsigned fd_count)
{
    if (uplink->out_count >= OUT_FRAMES_MAX) {
        return -ENOBUFS;
    }
    struct rbi_uplink_frame *frame = malloc(sizeof *frame + size);
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
    *uplink->out_last = frame;
    uplink->out_last = &frame->next;
    uplink->out_count++;
    return 0;
}

/** A frame that waits; one that nobody takes any more, too: what was said before is read first. */
static bool is_deferred(const struct rbi_uplink *uplink, int r)
{
    return r == -EAGAIN || r == -ETOOMANYREFS || r == -ENOBUFS || (r == -EPIPE && !uplink->on);
}

static void want(struct rbi_uplink *uplink)
{
    rbi_loop_want(&uplink->source, RBI_LOOP_IN | (uplink->out_first != NULL ? RBI_LOOP_OUT : 0U));
}

static void flush(struct rbi_uplink *uplink)
{
    while (uplink->sock >= 0 && uplink->out_first != NULL) {
        struct rbi_uplink_frame *frame = uplink->out_first;
        const int r =
            rbi_handoff_send(uplink->sock, frame->bytes, frame->size, frame->fds, frame->fd_count);
        if (is_deferred(uplink, r)) {
            break;
        }
        if (r < 0) {
            rbi_uplink_drop(uplink, rbi_log_errno(-r));
            return;
        }
        uplink->out_first = frame->next;
        if (uplink->out_first == NULL) {
            uplink->out_last = &uplink->out_first;
        }
        uplink->out_count--;
        free_frame(frame);
    }
    want(uplink);
}

/** @return serial; 0: lost */
static uint32_t send_any(struct rbi_uplink *uplink,
                         enum rbi_wire_type type,
                         const void *body,
                         const int *fds,
                         unsigned fd_count)
{
    unsigned char frame[RBI_WIRE_FRAME_MAX];
    if (++uplink->serial == 0) {
        uplink->serial = 1;
    }
    const uint32_t serial = uplink->serial;
    const size_t size = rbi_wire_encode(type, body, serial, 0, frame);
    int r = -EAGAIN;
    if (uplink->out_first == NULL) {
        r = rbi_handoff_send(uplink->sock, frame, size, fds, fd_count);
    }
    if (is_deferred(uplink, r)) {
        r = queue_frame(uplink, frame, size, fds, fd_count);
        want(uplink);
    }
    if (r < 0) {
        rbi_uplink_drop(uplink, rbi_log_errno(-r));
        return 0;
    }
    return serial;
}

uint32_t rbi_uplink_send(struct rbi_uplink *uplink,
                         enum rbi_wire_type type,
                         const void *body,
                         const int *fds,
                         unsigned fd_count)
{
    if (!uplink->on || rbi_wire_type_protocol(type) > uplink->protocol) {
        return 0;
    }
    return send_any(uplink, type, body, fds, fd_count);
}

static void say_hello(struct rbi_uplink *uplink)
{
    struct rbi_wire_hello hello = {.protocol_min = RBI_WIRE_PROTOCOL_MIN,
                                   .protocol_max = RBI_WIRE_PROTOCOL_MAX,
                                   .fingerprint = rbi_layout_fingerprint(),
                                   .layout_min = RBI_LAYOUT_VERSION_MIN,
                                   .layout_max = RBI_LAYOUT_VERSION};
    rbi_text_format(&hello.software, "ringbus-bridge %s", RINGBUS_VERSION_TEXT);
    rbi_text_set(&hello.program, uplink->program);
    (void)send_any(uplink, RBI_WIRE_HELLO, &hello, NULL, 0);
}

/* ---- in ------------------------------------------------------------------------------------ */

static void on_hello_ok(struct rbi_uplink *uplink, const struct rbi_wire_hello_ok *body)
{
    if (uplink->on) {
        uplink->events->on_hello(uplink, body, &uplink->fds); /* a larger directory takes over */
        return;
    }
    rbi_loop_timer_cancel(uplink->loop, &uplink->timer);
    uplink->protocol = (uint32_t)rbi_min_u64(body->protocol, RBI_WIRE_PROTOCOL_MAX);
    uplink->on = true;
    uplink->events->on_hello(uplink, body, &uplink->fds);
}

static void handle(struct rbi_uplink *uplink,
                   const struct rbi_wire_header *header,
                   const union rbi_wire_body *body)
{
    if (header->type == RBI_WIRE_HELLO_OK) {
        on_hello_ok(uplink, &body->hello_ok);
    } else if (uplink->on) {
        uplink->events->on_frame(uplink, header, body, &uplink->fds);
    } else if (header->type == RBI_WIRE_ERROR) {
        rbi_uplink_drop(uplink, "HELLO was refused");
    }
}

/** Next whole frame. @return whether there was one, and the uplink is still there and connected */
static bool handle_next(struct rbi_uplink *uplink, const bool *gone)
{
    struct rbi_wire_header header;
    const void *frame = NULL;
    int r = rbi_wire_stream_next(&uplink->stream, &header, &frame);
    if (r == RBI_WIRE_SHORT) {
        return false;
    }
    union rbi_wire_body body;
    struct rbi_wire_fault fault;
    if (r == RBI_WIRE_DONE) {
        r = rbi_wire_decode(&header, frame, &body, &fault);
    }
    if (r < 0) {
        rbi_uplink_drop(uplink, "the daemon's frames cannot be read");
        return false;
    }
    if (r == 0) {
        handle(uplink, &header, &body);
    }
    if (*gone || uplink->sock < 0) {
        return false;
    }
    rbi_fdlist_deinit(&uplink->fds); /* what a frame did not take is not for the next one */
    return true;
}

/** Descriptors come with the first byte of their frame; those of one in pieces wait for it. */
static bool take_fds(struct rbi_uplink *uplink, struct rbi_fdlist *fds)
{
    if (fds->count == 0 && !fds->truncated) {
        return true;
    }
    if (uplink->fds.count > 0) {
        rbi_fdlist_deinit(fds);
        return false;
    }
    uplink->fds = *fds;
    return true;
}

static void input(struct rbi_uplink *uplink)
{
    bool gone = false;
    for (unsigned i = 0; i < PACKETS_PER_TURN && uplink->sock >= 0; i++) {
        size_t room = 0;
        struct rbi_fdlist fds = RBI_FDLIST_NULL;
        void *data = rbi_wire_stream_room(&uplink->stream, &room);
        const ssize_t n = rbi_handoff_recv(uplink->sock, data, room, &fds);
        if (n == -EAGAIN) {
            return;
        }
        if (n <= 0) {
            rbi_uplink_drop(uplink,
                            n == 0 ? "the daemon closed the connection" : rbi_log_errno((int)-n));
            return;
        }
        rbi_wire_stream_filled(&uplink->stream, (size_t)n);
        if (!take_fds(uplink, &fds)) {
            rbi_uplink_drop(uplink, "descriptors in the middle of a frame");
            return;
        }
        uplink->watchman = &gone;
        while (handle_next(uplink, &gone)) {
        }
        if (gone) {
            return;
        }
        uplink->watchman = NULL;
    }
    rbi_loop_again(&uplink->source);
}

static void ready(void *context, unsigned events)
{
    struct rbi_uplink *uplink = context;
    if ((events & RBI_LOOP_OUT) != 0) {
        bool gone = false;
        uplink->watchman = &gone;
        flush(uplink);
        if (gone) {
            return;
        }
        uplink->watchman = NULL;
    }
    if ((events & (RBI_LOOP_IN | RBI_LOOP_HUP)) != 0) {
        input(uplink);
    }
}

/* ---- connecting ---------------------------------------------------------------------------- */

static void hello_late(void *context)
{
    rbi_uplink_drop(context, "HELLO was not answered");
}

static void retry(void *context)
{
    struct rbi_uplink *uplink = context;
    const int sock = rbi_handoff_connect(uplink->path);
    if (sock < 0) {
        retry_later(uplink);
        return;
    }
    if (rbi_loop_add(uplink->loop, &uplink->source, sock, RBI_LOOP_IN, ready, uplink) < 0) {
        (void)close(sock);
        retry_later(uplink);
        return;
    }
    uplink->sock = sock;
    rbi_loop_timer_set(uplink->loop, &uplink->timer, rbi_loop_now_ns(uplink->loop) + HELLO_NS,
                       hello_late, uplink);
    say_hello(uplink);
}
