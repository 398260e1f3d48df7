/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/face.h"

#include "daemon/broker/call.h"
#include "daemon/broker/relay.h"
#include "daemon/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define BATCH      64
#define CONNECT_MS 1000U
/* Between two tries to open: doubled up to the most. */
#define RETRY_MIN_NS (UINT64_C(50) * 1000000)
#define RETRY_MAX_NS (UINT64_C(2) * 1000000000)

struct rbi_face *
rbi_face_new(struct rbi_broker *broker, const struct rbi_broker_side *side, const char *path)
{
    struct rbi_face *face = calloc(1, sizeof *face);
    if (face == NULL) {
        return NULL;
    }
    face->broker = broker;
    face->side = side;
    face->fd = -1;
    face->number = ++broker->last_face;
    (void)snprintf(face->path, sizeof face->path, "%s", path);
    rbi_list_init(&face->waiting);
    if (rbi_map_init(&face->names) != 0) {
        free(face);
        return NULL;
    }
    rbi_list_push_back(&broker->faces, &face->link);
    broker->again = true;
    return face;
}

void rbi_face_close(struct rbi_face *face)
{
    if (face->bus == NULL) {
        return;
    }
    rbi_calls_drop(face);
    (void)epoll_ctl(face->broker->epoll, EPOLL_CTL_DEL, face->fd, NULL);
    (void)ringbus_close(face->bus, 0);
    face->bus = NULL;
}

void rbi_face_free(struct rbi_face *face)
{
    rbi_face_close(face);
    rbi_list_remove(&face->link);
    rbi_map_deinit(&face->names);
    free(face);
}

/* @return whether it could be read, or none is needed */
static bool read_token(const struct rbi_broker_side *side, char *token, size_t size)
{
    token[0] = '\0';
    if (side->token[0] == '\0') {
        return true;
    }
    FILE *file = fopen(side->token, "re");
    const bool got = file != NULL && fgets(token, (int)size, file) != NULL;
    if (file != NULL) {
        (void)fclose(file);
    }
    token[strcspn(token, "\r\n")] = '\0';
    return got;
}

static int open_bus(struct rbi_face *face)
{
    char token[RBI_CONFIG_STRING_MAX + 1];
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    if (!read_token(face->side, token, sizeof token)) {
        rbi_log(RBI_LOG_WARNING, "broker_token", "path=%s file=%s", face->path, face->side->token);
        return RINGBUS_E_DENIED;
    }
    options.socket = face->side->socket[0] != '\0' ? face->side->socket : NULL;
    options.path = face->path;
    options.token = token[0] != '\0' ? token : NULL;
    options.lane_bytes = face->broker->config->lane_bytes;
    for (uint32_t i = 0; i < face->broker->config->pool_count; i++) {
        const struct rbi_broker_chunks *chunks = &face->broker->config->pool[i];
        options.pool[i] = (struct ringbus_pool_class){.chunk_bytes = (uint32_t)chunks->bytes,
                                                      .count = chunks->count};
    }
    options.connect_timeout_ms = CONNECT_MS;
    options.on_message = rbi_relay_message;
    options.on_event = rbi_relay_event;
    options.user = face;
    options.broker = 1;
    const int r = ringbus_open(&options, &face->bus);
    explicit_bzero(token, sizeof token);
    return r;
}

/* 0; a public error */
static int watch_fd(struct rbi_face *face)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = face};
    face->fd = ringbus_fd(face->bus);
    if (face->fd >= 0 && epoll_ctl(face->broker->epoll, EPOLL_CTL_ADD, face->fd, &event) == 0) {
        return 0;
    }
    (void)ringbus_close(face->bus, 0);
    face->bus = NULL;
    return RINGBUS_E_NO_FDS;
}

bool rbi_face_open(struct rbi_face *face, uint64_t now_ns)
{
    if (face->bus != NULL || now_ns < face->retry_ns) {
        return face->bus != NULL;
    }
    int r = open_bus(face);
    r = r == 0 ? watch_fd(face) : r;
    if (r == 0) {
        face->tries = 0;
        face->active = true;
        rbi_log(RBI_LOG_INFO, "broker_open", "path=%s", face->path);
        return true;
    }
    if (face->tries == 0) {
        const char *why = ringbus_errmsg(NULL);
        rbi_log(RBI_LOG_WARNING, "broker_not_open", "path=%s error=%s why=%s", face->path,
                ringbus_error_name(r),
                rbi_log_quote(&(struct rbi_log_text){{0}}, why, strlen(why)));
    }
    const uint64_t wait_ns = face->tries < 6 ? RETRY_MIN_NS << face->tries : RETRY_MAX_NS;
    face->retry_ns = now_ns + (wait_ns < RETRY_MAX_NS ? wait_ns : RETRY_MAX_NS);
    face->tries++;
    return false;
}

int rbi_face_poll(struct rbi_face *face)
{
    face->active = false; /* unless a callback, of another one as well, uses it meanwhile */
    const int went = rbi_calls_step(face);
    const int r = ringbus_poll(face->bus, BATCH);
    const int handled = (r > 0 ? r : 0) + went;
    face->active = face->active || handled > 0;
    return handled;
}
