/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/ctl/control.h"

#include "bus/pidf.h"
#include "shm/handoff.h"
#include "shm/layout.h"

#include <errno.h>
#include <poll.h>
#include <ringbus/ringbus.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *error_text(int error)
{
    /* This program has one thread. */
    return strerror(error < 0 ? -error : error); /* NOLINT(concurrency-mt-unsafe) */
}

static int lost(const struct rbi_ctl_control *control, const char *why)
{
    return rbi_ctl_fail(control->args, RBI_CTL_NO_DAEMON, "the daemon's connection was lost: %s",
                        why);
}

/* Waits until the socket is ready. @return exit code */
static int wait_for(struct rbi_ctl_control *control, short events)
{
    struct pollfd pollfd = {.fd = control->sock, .events = events};
    for (;;) {
        uint64_t now_ns = rbi_ctl_now_ns();
        if (now_ns >= control->deadline_ns && control->quiet) {
            return RBI_CTL_TIMEOUT;
        }
        if (now_ns >= control->deadline_ns) {
            return rbi_ctl_fail(control->args, RBI_CTL_TIMEOUT,
                                "the daemon did not answer in time");
        }
        uint64_t left_ms = (control->deadline_ns - now_ns) / 1000000 + 1;
        int r = poll(&pollfd, 1, (int)left_ms);
        if (r > 0) {
            return RBI_CTL_OK;
        }
        if (r < 0 && errno != EINTR) {
            return rbi_ctl_fail(control->args, RBI_CTL_FAILED, "poll: %s", error_text(errno));
        }
    }
}

/* @param fd  goes along, and stays the caller's; -1: none */
static int
frame_send_fd(struct rbi_ctl_control *control, enum rbi_wire_type type, const void *body, int fd)
{
    unsigned char frame[RBI_WIRE_FRAME_MAX];
    size_t size = rbi_wire_encode(type, body, ++control->serial, 0, frame);
    for (;;) {
        int r = rbi_handoff_send(control->sock, frame, size, &fd, fd >= 0 ? 1 : 0);
        if (r == 0) {
            return RBI_CTL_OK;
        }
        if (r != -EAGAIN) {
            return lost(control, error_text(r));
        }
        r = wait_for(control, POLLOUT);
        if (r != RBI_CTL_OK) {
            return r;
        }
    }
}

static int frame_send(struct rbi_ctl_control *control, enum rbi_wire_type type, const void *body)
{
    return frame_send_fd(control, type, body, -1);
}

static int packet_receive(struct rbi_ctl_control *control)
{
    size_t room = 0;
    void *data = rbi_wire_stream_room(&control->stream, &room);
    struct rbi_fdlist fds = RBI_FDLIST_NULL;
    ssize_t size = rbi_handoff_recv(control->sock, data, room, &fds);
    if (size > 0) {
        rbi_wire_stream_filled(&control->stream, (size_t)size);
        for (unsigned i = 0; i < fds.count && control->fd_count < RBI_CTL_FDS_MAX; i++) {
            control->fds[control->fd_count++] = rbi_fdlist_steal(&fds, i);
        }
    }
    rbi_fdlist_deinit(&fds);
    if (size > 0) {
        return RBI_CTL_OK;
    }
    if (size == -EAGAIN) {
        return wait_for(control, POLLIN);
    }
    return lost(control, size == 0 ? "it was closed" : error_text((int)size));
}

/* Next message of a type that this program knows. */
static int message_next(struct rbi_ctl_control *control,
                        struct rbi_wire_header *header,
                        union rbi_wire_body *body)
{
    memset(body, 0, sizeof *body);
    for (;;) {
        const void *frame = NULL;
        int r = rbi_wire_stream_next(&control->stream, header, &frame);
        if (r == RBI_WIRE_SHORT) {
            r = packet_receive(control);
            if (r != RBI_CTL_OK) {
                return r;
            }
            continue;
        }
        struct rbi_wire_fault fault = {{0}};
        if (r == RBI_WIRE_DONE) {
            r = rbi_wire_decode(header, frame, body, &fault);
            if (r == 0) {
                return RBI_CTL_OK;
            }
        }
        if (r < 0) {
            return lost(control, fault.text[0] != '\0' ? fault.text : "its bytes make no sense");
        }
    }
}

/* Takes the descriptors of a frame: the first one goes to the caller, who owns it. */
static int fd_take(struct rbi_ctl_control *control, const struct rbi_wire_header *header)
{
    int fd = -1;
    unsigned count = header->fd_count < control->fd_count ? header->fd_count : control->fd_count;
    for (unsigned i = 0; i < count; i++) {
        if (i == 0) {
            fd = control->fds[0];
        } else {
            close(control->fds[i]);
        }
    }
    control->fd_count -= count;
    memmove(control->fds, control->fds + count, control->fd_count * sizeof control->fds[0]);
    return fd;
}

static int error_report(struct rbi_ctl_control *control, const struct rbi_wire_error *error)
{
    return rbi_ctl_fail_bus(control->args, error->code, "the daemon refused", error->text.bytes);
}

static int hello(struct rbi_ctl_control *control)
{
    struct rbi_wire_hello body = {.protocol_min = RBI_WIRE_PROTOCOL_MIN,
                                  .protocol_max = RBI_WIRE_PROTOCOL_MAX,
                                  .fingerprint = rbi_layout_fingerprint(),
                                  .layout_min = RBI_LAYOUT_VERSION_MIN,
                                  .layout_max = RBI_LAYOUT_VERSION};
    rbi_text_format(&body.software, "ringbusctl %s", ringbus_version());
    rbi_text_set(&body.program, "ringbusctl");
    int r = frame_send(control, RBI_WIRE_HELLO, &body);
    while (r == RBI_CTL_OK) {
        struct rbi_wire_header header;
        union rbi_wire_body answer;
        r = message_next(control, &header, &answer);
        if (r != RBI_CTL_OK) {
            break;
        }
        int fd = fd_take(control, &header);
        if (fd >= 0) {
            close(fd); /* the directory: queries say more */
        }
        if (header.type == RBI_WIRE_HELLO_OK) {
            control->protocol = answer.hello_ok.protocol;
            return RBI_CTL_OK;
        }
        if (header.type == RBI_WIRE_ERROR) {
            return error_report(control, &answer.error);
        }
    }
    return r;
}

/* As libringbus looks for the daemon: one place, or the two standard ones. */
static int
connect_anywhere(const struct rbi_ctl_args *args, const char **path, char *buffer, size_t size)
{
    *path = args->socket;
    if (*path == NULL) {
        *path = getenv("RINGBUS_SOCKET"); /* NOLINT(concurrency-mt-unsafe): one thread */
    }
    if (*path != NULL && **path != '\0') {
        return rbi_handoff_connect(*path);
    }
    *path = "/run/ringbus/bus.sock";
    int sock = rbi_handoff_connect(*path);
    const char *runtime = getenv("XDG_RUNTIME_DIR"); /* NOLINT(concurrency-mt-unsafe) */
    if (sock >= 0 || runtime == NULL || *runtime == '\0') {
        return sock;
    }
    snprintf(buffer, size, "%s/ringbus/bus.sock", runtime);
    int second = rbi_handoff_connect(buffer);
    if (second >= 0) {
        *path = buffer;
    }
    return second >= 0 ? second : sock;
}

int rbi_ctl_control_init(struct rbi_ctl_control *control, const struct rbi_ctl_args *args)
{
    char buffer[512];
    const char *path = NULL;
    memset(control, 0, sizeof *control);
    control->args = args;
    control->deadline_ns = rbi_ctl_now_ns() + (uint64_t)args->timeout_ms * 1000000;
    rbi_wire_stream_init(&control->stream);
    control->sock = connect_anywhere(args, &path, buffer, sizeof buffer);
    if (control->sock < 0) {
        int code = control->sock == -EACCES || control->sock == -EPERM ? RBI_CTL_DENIED
                                                                       : RBI_CTL_NO_DAEMON;
        return rbi_ctl_fail(args, code, "no daemon at %s: %s%s", path, error_text(control->sock),
                            code == RBI_CTL_DENIED
                                ? "; its daemon.socket_mode, or the mode of a folder above, keeps "
                                  "this user out"
                                : "");
    }
    int r = hello(control);
    if (r != RBI_CTL_OK) {
        rbi_ctl_control_deinit(control);
    }
    return r;
}

void rbi_ctl_control_deinit(struct rbi_ctl_control *control)
{
    for (unsigned i = 0; i < control->fd_count; i++) {
        close(control->fds[i]);
    }
    control->fd_count = 0;
    if (control->sock >= 0) {
        close(control->sock);
        control->sock = -1;
    }
}

int rbi_ctl_control_query(struct rbi_ctl_control *control,
                          enum rbi_query what,
                          const char *prefix,
                          rbi_ctl_row_fn on_row,
                          void *context)
{
    struct rbi_wire_query query = {.what = what};
    rbi_text_set(&query.prefix, prefix);
    return rbi_ctl_control_rows(control, RBI_WIRE_QUERY, &query, on_row, context);
}

int rbi_ctl_control_rows(struct rbi_ctl_control *control,
                         enum rbi_wire_type type,
                         const void *question,
                         rbi_ctl_row_fn on_row,
                         void *context)
{
    int r = frame_send(control, type, question);
    uint32_t serial = control->serial;
    while (r == RBI_CTL_OK) {
        struct rbi_wire_header header;
        union rbi_wire_body body;
        r = message_next(control, &header, &body);
        if (r != RBI_CTL_OK) {
            break;
        }
        int fd = fd_take(control, &header);
        bool mine = header.reply_to == serial;
        if (mine && header.type == RBI_WIRE_ERROR) {
            r = error_report(control, &body.error);
        } else if (mine && header.type != RBI_WIRE_QUERY_END) {
            r = on_row(context, header.type, &body, fd);
        }
        if (fd >= 0) {
            close(fd);
        }
        if (mine && header.type == RBI_WIRE_QUERY_END) {
            return RBI_CTL_OK;
        }
    }
    return r;
}

int rbi_ctl_control_exchange(struct rbi_ctl_control *control,
                             enum rbi_wire_type type,
                             const void *body,
                             int with_fd,
                             unsigned *answer_type,
                             union rbi_wire_body *answer,
                             int *answer_fd)
{
    int r = frame_send_fd(control, type, body, with_fd);
    const uint32_t serial = control->serial;
    while (r == RBI_CTL_OK) {
        struct rbi_wire_header header;
        r = message_next(control, &header, answer);
        const int fd = r == RBI_CTL_OK ? fd_take(control, &header) : -1;
        const bool mine = r == RBI_CTL_OK && header.reply_to == serial;
        if (fd >= 0 && !(mine && answer_fd)) {
            close(fd);
        }
        if (mine) {
            *answer_type = header.type;
            if (answer_fd) {
                *answer_fd = fd;
            }
            return RBI_CTL_OK;
        }
    }
    return r;
}

int rbi_ctl_control_next(struct rbi_ctl_control *control,
                         enum rbi_wire_type type,
                         uint64_t until_ns,
                         union rbi_wire_body *body)
{
    const uint64_t deadline_ns = control->deadline_ns;
    struct rbi_wire_header header = {.type = 0};
    int r = RBI_CTL_OK;
    control->deadline_ns = until_ns;
    control->quiet = true;
    while (r == RBI_CTL_OK && header.type != type) {
        r = message_next(control, &header, body);
        const int fd = r == RBI_CTL_OK ? fd_take(control, &header) : -1;
        if (fd >= 0) {
            close(fd);
        }
    }
    control->quiet = false;
    control->deadline_ns = deadline_ns;
    return r;
}

int rbi_ctl_control_ask(struct rbi_ctl_control *control,
                        enum rbi_wire_type type,
                        const void *body,
                        rbi_ctl_event_fn on_event,
                        void *context,
                        unsigned *answer_type,
                        union rbi_wire_body *answer)
{
    int r = frame_send(control, type, body);
    const uint32_t serial = control->serial;
    while (r == RBI_CTL_OK) {
        struct rbi_wire_header header;
        r = message_next(control, &header, answer);
        if (r != RBI_CTL_OK) {
            break;
        }
        int fd = fd_take(control, &header);
        if (fd >= 0) {
            close(fd);
        }
        if (header.type == RBI_WIRE_EVENT && on_event != NULL) {
            on_event(context, &answer->event);
        }
        if (header.reply_to == serial) {
            *answer_type = header.type;
            return RBI_CTL_OK;
        }
    }
    return r;
}

int rbi_ctl_prefix_check(const struct rbi_ctl_args *args, const char *prefix)
{
    struct rbi_path_info info;
    if (strcmp(prefix, "/") == 0 || rbi_path_parse(prefix, strlen(prefix), &info) == 0) {
        return RBI_CTL_OK;
    }
    return rbi_ctl_fail(args, RBI_CTL_USAGE, "'%s' is not a path: %s, at byte %u", prefix,
                        rbi_path_error_text(info.error), info.error_offset + 1);
}

int rbi_ctl_control_init_below(struct rbi_ctl_control *control,
                               const struct rbi_ctl_args *args,
                               const char **prefix)
{
    *prefix = args->operand_count == 1 ? args->operands[0] : "/";
    const int r = rbi_ctl_prefix_check(args, *prefix);
    return r == RBI_CTL_OK ? rbi_ctl_control_init(control, args) : r;
}
