/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge/door.h"

#include "daemon/bridge/conn_impl.h"
#include "daemon/log.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG     64
#define LOG_NS      UINT64_C(10000000000)
#define NO_FD_PAUSE UINT64_C(100000000)

struct rbi_door {
    struct rbi_conn_terms *terms;
    const struct rbi_conn_ops *ops;
    void *context;
    int fd;
    char address[RBI_BRIDGE_ADDRESS_MAX + 1U];
    struct rbi_loop_source source;
    struct rbi_loop_timer pause_timer;
    /* Who has not yet shown who it is, in the order of their coming. */
    struct rbi_conn *hall[RBI_DOOR_HALL_MAX];
    unsigned hall_count;
    struct rbi_log_limit refused_limit;
    struct rbi_log_limit lost_limit;
};

static void hall_leave(struct rbi_door *door, const struct rbi_conn *conn)
{
    for (unsigned i = 0; i < door->hall_count; i++) {
        if (door->hall[i] == conn) {
            door->hall_count--;
            memmove(&door->hall[i], &door->hall[i + 1], (door->hall_count - i) * sizeof(conn));
            return;
        }
    }
}

static bool door_up(void *context, struct rbi_conn *conn)
{
    hall_leave(context, conn);
    conn->maker = NULL; /* it is its owner's alone */
    return true;
}

static void door_over(void *context, struct rbi_conn *conn, const char *why)
{
    struct rbi_door *door = context;
    uint64_t suppressed = 0;
    hall_leave(door, conn);
    why = why ? why : "too many show who they are at a time, and this one took the longest";
    if (rbi_log_limit_pass(&door->refused_limit, rbi_loop_now_ns(door->terms->loop), LOG_NS,
                           &suppressed)) {
        rbi_log(RBI_LOG_WARNING, "host_refused", "address=%s reason=%s suppressed=%llu",
                rbi_conn_address(conn),
                rbi_log_quote(&(struct rbi_log_text){{0}}, why, strlen(why)),
                (unsigned long long)suppressed);
    }
}

static const struct rbi_conn_maker door_maker = {.up = door_up, .over = door_over};

static void door_open_again(void *context)
{
    struct rbi_door *door = context;
    rbi_loop_want(&door->source, RBI_LOOP_IN);
}

/** Out of descriptors or memory: who waits goes on waiting, and nothing turns in vain. */
static void door_cannot(struct rbi_door *door, int error)
{
    struct rbi_loop *loop = door->terms->loop;
    uint64_t suppressed = 0;
    if (rbi_log_limit_pass(&door->lost_limit, rbi_loop_now_ns(loop), LOG_NS, &suppressed)) {
        rbi_log(RBI_LOG_ERROR, "door_stuck", "address=%s error=\"%s\" suppressed=%llu",
                door->address, rbi_log_errno(error), (unsigned long long)suppressed);
    }
    if (error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS) {
        rbi_loop_want(&door->source, 0);
        rbi_loop_timer_set(loop, &door->pause_timer, rbi_loop_now_ns(loop) + NO_FD_PAUSE,
                           door_open_again, door);
    }
}

static void door_accepted(void *context, int fd)
{
    struct rbi_door *door = context;
    if (fd < 0) {
        if (fd != -ECONNABORTED && fd != -EINTR) {
            door_cannot(door, -fd);
        }
        return;
    }
    if (door->hall_count == RBI_DOOR_HALL_MAX) {
        rbi_conn_cut(door->hall[0], "the hall is full");
    }
    struct rbi_conn *conn = NULL;
    const int result = rbi_conn_make(door->terms, fd, NULL, NULL, &door_maker, door, &conn);
    if (result < 0) {
        if (result != -ENOTCONN) { /* it has left again */
            door_cannot(door, -result);
        }
        return;
    }
    rbi_conn_own(conn, door->ops, door->context);
    door->hall[door->hall_count++] = conn;
}

/* ---- life ------------------------------------------------------------------------------ */

static int socket_listen(const struct rbi_socket_address *address)
{
    const int on = 1;
    const int fd =
        socket(address->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (address->storage.ss_family == AF_INET6) {
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    }
    if (bind(fd, (const struct sockaddr *)&address->storage, address->size) < 0 ||
        listen(fd, BACKLOG) < 0) {
        const int error = errno;
        (void)close(fd);
        return -error;
    }
    return fd;
}

static int door_open(struct rbi_door *door, const char *text)
{
    struct rbi_address parsed;
    struct rbi_socket_address address;
    if (rbi_address_parse(text, &parsed) < 0 || !parsed.numeric) {
        return -EINVAL;
    }
    const int found = rbi_address_find(&parsed, &address, 1);
    if (found < 0) {
        return found;
    }
    door->fd = socket_listen(&address);
    if (door->fd < 0) {
        return door->fd;
    }
    address.size = sizeof(address.storage);
    if (getsockname(door->fd, (struct sockaddr *)&address.storage, &address.size) < 0) {
        return -errno;
    }
    rbi_address_text(&address, door->address);
    return rbi_loop_accept(door->terms->loop, &door->source, door->fd, door_accepted, door);
}

int rbi_door_new(struct rbi_conn_terms *terms,
                 const char *address,
                 const struct rbi_conn_ops *ops,
                 void *context,
                 struct rbi_door **out)
{
    struct rbi_door *door = calloc(1, sizeof(*door));
    if (!door) {
        return -ENOMEM;
    }
    door->terms = terms;
    door->ops = ops;
    door->context = context;
    door->fd = -1;
    const int result = door_open(door, address);
    if (result < 0) {
        rbi_door_free(door);
        return result;
    }
    *out = door;
    return 0;
}

struct rbi_door *rbi_door_free(struct rbi_door *door)
{
    if (!door) {
        return NULL;
    }
    rbi_loop_timer_cancel(door->terms->loop, &door->pause_timer);
    if (door->source.loop) {
        rbi_loop_remove(&door->source);
        /* A poll in the ring holds the socket a little longer: nobody is to connect to it. */
        (void)shutdown(door->fd, SHUT_RDWR);
    }
    if (door->fd >= 0) {
        (void)close(door->fd);
    }
    for (unsigned i = 0; i < door->hall_count; i++) {
        rbi_conn_orphan(door->hall[i]);
    }
    free(door);
    return NULL;
}

const char *rbi_door_address(const struct rbi_door *door)
{
    return door->address;
}
