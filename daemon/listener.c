/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/listener.h"

#include "daemon/code.h"
#include "daemon/daemon.h"
#include "daemon/farewell.h"
#include "daemon/lock.h"
#include "daemon/notify.h"
#include "daemon/probe.h"
#include "daemon/socket_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Who floods us must not make others wait behind many connections that are only refused: of
 * these a few hundred take milliseconds. Who finds no place tries again a millisecond later. */
#define BACKLOG         256
#define PAUSE_NS        (UINT64_C(100) * 1000 * 1000)
#define SHED_MAX        256U
#define SHED_LOG_NS     (UINT64_C(60) * 1000 * 1000 * 1000)
#define LOST_LOG_NS     (UINT64_C(60) * 1000 * 1000 * 1000)
#define STANDARD_FOLDER "/run/ringbus"

/* ---- where ----------------------------------------------------------------------------- */

static int listener_log(const char *path, const char *what, int error)
{
    rbi_log(RBI_LOG_ERROR, "socket_failed", "path=%s step=%s error=\"%s\"", path, what,
            rbi_log_errno(-error));
    return error;
}

/** Standard place of the socket, or NULL. @p room holds it. */
static const char *listener_standard_place(char *room, size_t size)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR"); /* NOLINT(concurrency-mt-unsafe) */
    const char *folder = STANDARD_FOLDER;
    char user_folder[256];
    if (geteuid() != 0) {
        if (!runtime || !*runtime ||
            snprintf(user_folder, sizeof(user_folder), "%s/ringbus", runtime) >=
                (int)sizeof(user_folder)) {
            return NULL;
        }
        folder = user_folder;
    }
    if (snprintf(room, size, "%s/bus.sock", folder) >= (int)size) {
        return NULL;
    }
    /* Only a standard place is made; a folder that somebody named is there or is a mistake. */
    if (strlen(room) <= RBI_SOCKET_PATH_MAX && mkdir(folder, 0755) < 0 && errno != EEXIST) {
        (void)listener_log(folder, "mkdir", -errno);
    }
    return room;
}

int rbi_listener_place(const char *option,
                       const char *configured,
                       char path[RBI_SOCKET_PATH_MAX + 1])
{
    char standard[300];
    const char *from_environment = getenv("RINGBUS_SOCKET"); /* NOLINT(concurrency-mt-unsafe) */
    const char *place = option && *option                       ? option
                        : configured && *configured             ? configured
                        : from_environment && *from_environment ? from_environment
                                                                : NULL;
    if (!place) {
        place = listener_standard_place(standard, sizeof(standard));
    }
    if (!place) {
        rbi_log(
            RBI_LOG_ERROR, "no_socket_place",
            "why=\"neither --socket, daemon.socket, RINGBUS_SOCKET nor XDG_RUNTIME_DIR is set\"");
        return -EINVAL;
    }
    if (strlen(place) > RBI_SOCKET_PATH_MAX) {
        rbi_log(RBI_LOG_ERROR, "socket_path_too_long",
                "length=%zu limit=%u path=%.300s why=\"the kernel takes at most %u bytes\"",
                strlen(place), RBI_SOCKET_PATH_MAX, place, RBI_SOCKET_PATH_MAX);
        return -ENAMETOOLONG;
    }
    (void)strncpy(path, place, RBI_SOCKET_PATH_MAX + 1);
    return 0;
}

/* ---- binding --------------------------------------------------------------------------- */

/** Removes a socket that nobody listens at. The lock is held. @retval RBI_LISTENER_*; -errno */
static int listener_clear_place(const char *path)
{
    struct stat found;
    if (lstat(path, &found) < 0) {
        return errno == ENOENT ? RBI_LISTENER_OK : listener_log(path, "lstat", -errno);
    }
    if (!S_ISSOCK(found.st_mode)) {
        return listener_log(path, "something that is no socket is in the way", -EEXIST);
    }
    /* The lock alone is not proof: somebody may have deleted its file under a living daemon. */
    if (rbi_probe_alive(path)) {
        return RBI_LISTENER_RUNNING;
    }
    if (unlink(path) < 0 && errno != ENOENT) {
        return listener_log(path, "unlink", -errno);
    }
    return RBI_LISTENER_OK;
}

static int listener_bind(struct rbi_listener *listener)
{
    struct stat made;
    const char *step = NULL;
    const int fd = rbi_socket_file_listen(listener->path, (mode_t)listener->mode, BACKLOG, &step);
    if (fd < 0) {
        return listener_log(listener->path, step, fd);
    }
    if (lstat(listener->path, &made) < 0) {
        const int failed = -errno;
        (void)close(fd);
        return listener_log(listener->path, "lstat", failed);
    }
    listener->fd = fd;
    listener->inode = made.st_ino;
    listener->device = made.st_dev;
    return RBI_LISTENER_OK;
}

/** Takes over the socket of a service manager, if it handed one over. @return whether it did */
static int listener_take_over(struct rbi_listener *listener)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t size = sizeof(address);
    int type = 0;
    socklen_t type_size = sizeof(type);
    int listens = 0;
    socklen_t listens_size = sizeof(listens);
    const int fd = rbi_notify_listen_fd();
    if (fd < 0) {
        return 0;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) < 0 || type != SOCK_SEQPACKET ||
        getsockname(fd, (struct sockaddr *)(void *)&address, &size) < 0 ||
        address.sun_family != AF_UNIX) {
        return listener_log("LISTEN_FDS", "not a SOCK_SEQPACKET Unix socket", -EINVAL);
    }
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &listens_size) < 0 || !listens) {
        return listener_log("LISTEN_FDS", "not a listening socket", -EINVAL);
    }
    if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0) {
        return listener_log("LISTEN_FDS", "fcntl", -errno);
    }
    listener->fd = fd;
    listener->handed_over = true;
    const size_t length = strnlen(address.sun_path, RBI_SOCKET_PATH_MAX);
    memcpy(listener->path, address.sun_path, length);
    listener->path[length] = '\0';
    return 1;
}

int rbi_listener_open(struct rbi_listener *listener, const char *path, uint32_t mode)
{
    const int taken = listener_take_over(listener);
    if (taken != 0) {
        return taken < 0 ? taken : RBI_LISTENER_OK;
    }
    (void)strncpy(listener->path, path, sizeof(listener->path) - 1);
    listener->mode = mode;
    int result = rbi_lock_take(listener->path, &listener->lock_fd);
    if (result == RBI_LOCK_TAKEN) {
        result = listener_clear_place(listener->path);
    } else if (result == RBI_LOCK_HELD) {
        result = RBI_LISTENER_RUNNING;
    } else {
        return listener_log(listener->path, "lock", result);
    }
    if (result == RBI_LISTENER_RUNNING) {
        rbi_log(RBI_LOG_ERROR, "already_running", "path=%s why=\"already running\"",
                listener->path);
    }
    return result == RBI_LISTENER_OK ? listener_bind(listener) : result;
}

/* ---- accepting ------------------------------------------------------------------------- */

static void listener_take_reserve(struct rbi_listener *listener)
{
    if (listener->reserve_fd < 0) {
        listener->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
}

/** Gives the reserved descriptor to one waiting client after the other, to tell it no. */
static void listener_shed(struct rbi_listener *listener)
{
    for (unsigned i = 0; i < SHED_MAX && listener->reserve_fd >= 0; i++) {
        (void)close(listener->reserve_fd);
        listener->reserve_fd = -1;
        const int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            listener->refused_no_fds++;
            rbi_farewell_refuse(fd, RBI_CODE_NO_FDS,
                                "the daemon is out of file descriptors: raise its LimitNOFILE");
        }
        listener_take_reserve(listener);
        if (fd < 0) {
            break;
        }
    }
}

static void listener_resume(void *context)
{
    struct rbi_daemon *daemon = context;
    listener_take_reserve(&daemon->listener);
    rbi_loop_want(&daemon->listener.source, RBI_LOOP_IN);
}

/** Out of descriptors: refuses who waits, and looks again a little later instead of spinning. */
static void listener_starve(struct rbi_daemon *daemon, int error)
{
    struct rbi_listener *listener = &daemon->listener;
    const uint64_t now_ns = rbi_loop_now_ns(daemon->loop);
    uint64_t suppressed = 0;
    listener_shed(listener);
    rbi_loop_want(&listener->source, 0);
    rbi_loop_timer_set(daemon->loop, &listener->pause_timer, now_ns + PAUSE_NS, listener_resume,
                       daemon);
    if (rbi_log_limit_pass(&listener->fd_limit, now_ns, SHED_LOG_NS, &suppressed)) {
        rbi_log(RBI_LOG_WARNING, "cannot_accept",
                "error=\"%s\" refused=%" PRIu64 " suppressed=%" PRIu64, rbi_log_errno(-error),
                listener->refused_no_fds, suppressed);
    }
}

static void listener_accepted(void *context, int result)
{
    struct rbi_daemon *daemon = context;
    if (result >= 0) {
        rbi_peer_accept_consume_fd(daemon, result);
    } else if (result != -ECONNABORTED && result != -EAGAIN && result != -EINTR) {
        listener_starve(daemon, result);
    }
}

int rbi_listener_start(struct rbi_daemon *daemon)
{
    listener_take_reserve(&daemon->listener);
    return rbi_loop_accept(daemon->loop, &daemon->listener.source, daemon->listener.fd,
                           listener_accepted, daemon);
}

/* ---- staying reachable ----------------------------------------------------------------- */

static bool listener_file_is_ours(const struct rbi_listener *listener)
{
    struct stat found;
    return lstat(listener->path, &found) == 0 && found.st_ino == listener->inode &&
           found.st_dev == listener->device;
}

/** Binds again; the old socket has no name any more and goes. @retval as rbi_listener_open() */
static int listener_rebind(struct rbi_daemon *daemon)
{
    struct rbi_listener *listener = &daemon->listener;
    const int old_fd = listener->fd;
    int result = rbi_lock_renew(listener->path, &listener->lock_fd);
    if (result == RBI_LOCK_TAKEN) {
        result = listener_clear_place(listener->path);
    } else if (result == RBI_LOCK_HELD) {
        result = RBI_LISTENER_RUNNING;
    }
    if (result != RBI_LISTENER_OK) {
        return result;
    }
    result = listener_bind(listener);
    if (result != RBI_LISTENER_OK) {
        return result;
    }
    rbi_loop_remove(&listener->source);
    (void)close(old_fd);
    return rbi_listener_start(daemon);
}

void rbi_listener_check(struct rbi_daemon *daemon)
{
    struct rbi_listener *listener = &daemon->listener;
    uint64_t suppressed = 0;
    if (listener->handed_over) {
        return;
    }
    if (listener_file_is_ours(listener)) {
        /* Without its lock file a second daemon could start unseen. */
        if (rbi_lock_renew(listener->path, &listener->lock_fd) < 0) {
            rbi_log(RBI_LOG_DEBUG, "lock_lost", "path=%s", listener->path);
        }
        return;
    }
    const int result = listener_rebind(daemon);
    if (result == RBI_LISTENER_OK) {
        rbi_log(RBI_LOG_WARNING, "socket_bound_again",
                "path=%s why=\"the socket file was removed or replaced\"", listener->path);
    } else if (rbi_log_limit_pass(&listener->lost_limit, rbi_loop_now_ns(daemon->loop), LOST_LOG_NS,
                                  &suppressed)) {
        rbi_log(RBI_LOG_ERROR, "socket_lost",
                "path=%s why=\"%s\" effect=\"connected clients go on, new ones cannot join\"",
                listener->path,
                result == RBI_LISTENER_RUNNING ? "another daemon has taken the place"
                                               : rbi_log_errno(-result));
    }
}

void rbi_listener_close(struct rbi_listener *listener)
{
    rbi_loop_remove(&listener->source);
    if (listener->fd >= 0) {
        if (!listener->handed_over && listener_file_is_ours(listener)) {
            (void)unlink(listener->path);
        }
        (void)close(listener->fd);
        listener->fd = -1;
    }
    if (listener->reserve_fd >= 0) {
        (void)close(listener->reserve_fd);
        listener->reserve_fd = -1;
    }
    /* The lock file stays: removing it would let two hold locks on different files of one name. */
    if (listener->lock_fd >= 0) {
        (void)close(listener->lock_fd);
        listener->lock_fd = -1;
    }
}
