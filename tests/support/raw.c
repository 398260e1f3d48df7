/* SPDX-License-Identifier: Apache-2.0 */
#include "support/raw.h"

#include "shm/bell.h"
#include "support/cluster.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SIDE_BYTES (3U * RBI_PAGE)
#define POOL_BYTES (4U * RBI_PAGE)

int raw_connect(struct raw *raw, const char *socket)
{
    memset(raw, 0, sizeof(*raw));
    rbi_wire_stream_init(&raw->stream);
    raw->directory = raw->page = raw->pool = raw->side = (struct rbi_segment)RBI_SEGMENT_NULL;
    raw->bell[0] = raw->bell[1] = -1;
    const uint64_t deadline_ms = test_now_ms() + RAW_TIMEOUT_MS;
    raw->fd = rbi_handoff_connect(socket);
    while (raw->fd == -EAGAIN && test_now_ms() < deadline_ms) { /* its backlog is full */
        test_sleep_ms(1);
        raw->fd = rbi_handoff_connect(socket);
    }
    return raw->fd >= 0 ? 0 : -1;
}

static void raw_drop_bell(struct raw *raw)
{
    for (unsigned i = 0; i < 2; i++) {
        if (raw->bell[i] >= 0) {
            (void)close(raw->bell[i]);
        }
        raw->bell[i] = -1;
    }
}

void raw_close(struct raw *raw)
{
    if (raw->fd >= 0) {
        (void)close(raw->fd);
        raw->fd = -1;
    }
    raw_drop_bell(raw);
    rbi_fdlist_deinit(&raw->fds);
    rbi_segment_deinit(&raw->directory);
    rbi_segment_deinit(&raw->page);
    rbi_segment_deinit(&raw->pool);
    rbi_segment_deinit(&raw->side);
}

/** Sends, waiting for room as long as it takes (RAW_TIMEOUT_MS). */
static int raw_send_bytes(int fd, const void *data, size_t size, const int *fds, unsigned fd_count)
{
    for (;;) {
        const int result = rbi_handoff_send(fd, data, size, fds, fd_count);
        struct pollfd room = {.fd = fd, .events = POLLOUT};
        if (result != -EAGAIN) {
            return result == 0 ? 0 : -1;
        }
        if (poll(&room, 1, RAW_TIMEOUT_MS) != 1) {
            return -1;
        }
    }
}

int raw_send(
    struct raw *raw, enum rbi_wire_type type, const void *body, const int *fds, unsigned fd_count)
{
    unsigned char frame[RBI_WIRE_FRAME_MAX];
    const size_t size = rbi_wire_encode(type, body, ++raw->serial, 0, frame);
    return raw_send_bytes(raw->fd, frame, size, fds, fd_count);
}

void raw_message_deinit(struct raw_message *message)
{
    rbi_fdlist_deinit(&message->fds);
}

/** Takes a frame that lies in the stream. @return whether there was one */
static bool raw_take(struct raw *raw, struct raw_message *out)
{
    const void *frame = NULL;
    struct rbi_wire_fault fault;
    if (rbi_wire_stream_next(&raw->stream, &out->header, &frame) != RBI_WIRE_DONE) {
        return false;
    }
    if (rbi_wire_decode(&out->header, frame, &out->body, &fault) != 0) {
        (void)fprintf(stderr, "raw: the daemon sent a bad frame: %s\n", fault.text);
        return false;
    }
    out->fds = (struct rbi_fdlist)RBI_FDLIST_NULL;
    out->fds.truncated = raw->fds.truncated;
    for (unsigned i = 0; i < out->header.fd_count && i < raw->fds.count; i++) {
        out->fds.fds[out->fds.count++] = rbi_fdlist_steal(&raw->fds, i);
    }
    rbi_fdlist_deinit(&raw->fds);
    raw->fds = (struct rbi_fdlist)RBI_FDLIST_NULL;
    return true;
}

int raw_receive(struct raw *raw, struct raw_message *out, unsigned timeout_ms)
{
    const uint64_t deadline_ms = test_now_ms() + timeout_ms;
    for (;;) {
        if (raw_take(raw, out)) {
            return 0;
        }
        const uint64_t now_ms = test_now_ms();
        struct pollfd ready = {.fd = raw->fd, .events = POLLIN};
        const int left_ms = now_ms < deadline_ms ? (int)(deadline_ms - now_ms) : 0;
        if (poll(&ready, 1, left_ms) != 1) {
            return -1;
        }
        size_t room = 0;
        void *at = rbi_wire_stream_room(&raw->stream, &room);
        const ssize_t size = rbi_handoff_recv(raw->fd, at, room, &raw->fds);
        if (size == -EAGAIN) {
            continue;
        }
        if (size <= 0) {
            return 1;
        }
        rbi_wire_stream_filled(&raw->stream, (size_t)size);
    }
}

int raw_expect(struct raw *raw,
               enum rbi_wire_type type,
               struct raw_message *out,
               unsigned timeout_ms)
{
    const uint64_t deadline_ms = test_now_ms() + timeout_ms;
    for (;;) {
        const uint64_t now_ms = test_now_ms();
        const unsigned left_ms = now_ms < deadline_ms ? (unsigned)(deadline_ms - now_ms) : 0;
        const int result = raw_receive(raw, out, left_ms);
        if (result != 0 || out->header.type == type) {
            return result;
        }
        raw_message_deinit(out);
    }
}

int raw_expect_error_text(struct raw *raw, struct rbi_text *text)
{
    struct raw_message message;
    if (raw_expect(raw, RBI_WIRE_ERROR, &message, RAW_TIMEOUT_MS) != 0) {
        return 0;
    }
    if (text) {
        *text = message.body.error.text;
    }
    return message.body.error.code;
}

int raw_expect_error(struct raw *raw)
{
    return raw_expect_error_text(raw, NULL);
}

bool raw_closed(struct raw *raw, unsigned timeout_ms)
{
    const uint64_t deadline_ms = test_now_ms() + timeout_ms;
    struct raw_message message;
    while (test_now_ms() < deadline_ms) {
        const int result = raw_receive(raw, &message, 20);
        if (result == 1) {
            return true;
        }
        if (result == 0) {
            raw_message_deinit(&message);
        }
    }
    return false;
}

bool raw_silent(struct raw *raw, unsigned timeout_ms)
{
    struct raw_message message;
    const int result = raw_receive(raw, &message, timeout_ms);
    if (result == 0) {
        raw_message_deinit(&message);
    }
    return result == -1;
}

int raw_hello(struct raw *raw)
{
    struct raw_message message;
    struct rbi_wire_hello hello = {.protocol_min = RBI_WIRE_PROTOCOL_MIN,
                                   .protocol_max = RBI_WIRE_PROTOCOL_MAX,
                                   .fingerprint = rbi_layout_fingerprint()};
    rbi_text_set(&hello.program, "raw");
    if (raw_send(raw, RBI_WIRE_HELLO, &hello, NULL, 0) < 0 ||
        raw_expect(raw, RBI_WIRE_HELLO_OK, &message, RAW_TIMEOUT_MS) != 0) {
        return -1;
    }
    raw->hello_ok = message.body.hello_ok;
    const int result =
        message.fds.count == 1
            ? rbi_segment_adopt(&raw->directory, message.fds.fds[0], RBI_SEGMENT_DIRECTORY,
                                raw->hello_ok.directory_bytes, raw->hello_ok.directory_bytes)
            : -1;
    raw_message_deinit(&message);
    return result;
}

int raw_send_register(struct raw *raw, const struct rbi_wire_registration *body)
{
    struct rbi_wire_registration full = *body;
    const uint64_t pool_bytes = body->pool_bytes ? body->pool_bytes : POOL_BYTES;
    rbi_segment_deinit(&raw->page);
    rbi_segment_deinit(&raw->pool);
    if (rbi_segment_create(&raw->page, "test-page", RBI_SEGMENT_PAGE, RBI_PAGE, 0) < 0 ||
        rbi_segment_create(&raw->pool, "test-pool", RBI_SEGMENT_POOL, pool_bytes, 0) < 0) {
        return -1;
    }
    const int fds[] = {raw->page.fd, raw->pool.fd};
    full.page_bytes = raw->page.size;
    full.pool_bytes = raw->pool.size;
    return raw_send(raw, RBI_WIRE_REGISTER, &full, fds, 2);
}

int raw_register(struct raw *raw, const char *path, enum rbi_endpoint_state state)
{
    struct raw_message message;
    struct rbi_wire_registration body = {.weight = 100, .state = (uint32_t)state};
    rbi_text_set(&body.path, path);
    if (raw_send_register(raw, &body) < 0 ||
        raw_expect(raw, RBI_WIRE_REGISTERED, &message, RAW_TIMEOUT_MS) != 0) {
        return -1;
    }
    raw->registered = message.body.registered;
    return 0;
}

int raw_up(struct raw *raw, const char *socket, const char *path)
{
    if (raw_connect(raw, socket) < 0) {
        return -1;
    }
    return raw_hello(raw) == 0 ? raw_register(raw, path, RBI_ENDPOINT_READY) : -1;
}

int raw_make_side(struct rbi_segment *side)
{
    rbi_segment_deinit(side);
    return rbi_segment_create(side, "test-side", RBI_SEGMENT_SIDE, SIDE_BYTES, 0);
}

int raw_introduce(struct raw *raw, uint64_t cluster, int32_t instance, uint32_t incarnation)
{
    const struct rbi_wire_introduce body = {.cluster = cluster,
                                            .instance = instance,
                                            .incarnation = incarnation,
                                            .side_bytes = SIDE_BYTES};
    raw_drop_bell(raw);
    if (raw_make_side(&raw->side) < 0 || rbi_bell_pair(raw->bell) < 0) {
        return -1;
    }
    const int fds[] = {raw->side.fd, raw->bell[1]};
    return raw_send(raw, RBI_WIRE_INTRODUCE, &body, fds, 2);
}

int raw_accept(struct raw *raw, uint64_t *link_id)
{
    struct raw_message message;
    struct rbi_segment side = RBI_SEGMENT_NULL;
    if (raw_expect(raw, RBI_WIRE_INTRODUCED, &message, RAW_TIMEOUT_MS) != 0) {
        return -1;
    }
    const struct rbi_wire_accept accept = {.link_id = message.body.introduced.link_id,
                                           .side_bytes = SIDE_BYTES};
    const bool whole = message.fds.count == 4;
    raw_message_deinit(&message);
    if (link_id) {
        *link_id = accept.link_id;
    }
    if (!whole || raw_make_side(&side) < 0) {
        return -1;
    }
    const int result = raw_send(raw, RBI_WIRE_ACCEPT, &accept, &side.fd, 1);
    rbi_segment_deinit(&side);
    return result;
}

int raw_link(struct raw *client, struct raw *server, uint64_t *link_id)
{
    struct raw_message message;
    if (raw_introduce(client, server->registered.cluster, server->registered.instance, 0) < 0 ||
        raw_accept(server, link_id) < 0 ||
        raw_expect(client, RBI_WIRE_LINKED, &message, RAW_TIMEOUT_MS) != 0) {
        return -1;
    }
    const bool whole = message.fds.count == 3;
    raw_message_deinit(&message);
    return whole ? 0 : -1;
}

int raw_set_state(struct raw *raw, enum rbi_endpoint_state state)
{
    struct raw_message message;
    const struct rbi_wire_set_state body = {.state = (uint32_t)state};
    return raw_send(raw, RBI_WIRE_SET_STATE, &body, NULL, 0) == 0 &&
                   raw_expect(raw, RBI_WIRE_OK, &message, RAW_TIMEOUT_MS) == 0
               ? 0
               : -1;
}

int raw_watch(struct raw *raw, enum rbi_wire_type type, const char *path)
{
    struct raw_message message;
    struct rbi_wire_watch body; /* TARGET has the same fields */
    memset(&body, 0, sizeof(body));
    rbi_text_set(&body.prefix, path);
    return raw_send(raw, type, &body, NULL, 0) == 0 &&
                   raw_expect(raw, RBI_WIRE_OK, &message, RAW_TIMEOUT_MS) == 0
               ? 0
               : -1;
}

static int raw_status_row(const char *socket, const char *name, struct rbi_wire_row_status *out)
{
    struct raw raw;
    struct raw_message message;
    const struct rbi_wire_query query = {.what = RBI_QUERY_STATUS};
    int found = -1;
    if (raw_connect(&raw, socket) < 0) {
        return -1;
    }
    if (raw_hello(&raw) == 0 && raw_send(&raw, RBI_WIRE_QUERY, &query, NULL, 0) == 0) {
        /* A daemon that has just begun has news of its own in between. */
        while (raw_receive(&raw, &message, RAW_TIMEOUT_MS) == 0 &&
               message.header.type != RBI_WIRE_QUERY_END) {
            if (message.header.type == RBI_WIRE_ROW_STATUS &&
                strcmp(message.body.row_status.name.bytes, name) == 0) {
                *out = message.body.row_status;
                found = 0;
            }
        }
    }
    raw_close(&raw);
    return found;
}

uint64_t raw_status(const char *socket, const char *name)
{
    struct rbi_wire_row_status row;
    return raw_status_row(socket, name, &row) == 0 ? row.value : UINT64_MAX;
}

int raw_status_text(const char *socket, const char *name, struct rbi_text *out)
{
    struct rbi_wire_row_status row;
    if (raw_status_row(socket, name, &row) < 0) {
        return -1;
    }
    *out = row.text;
    return 0;
}
