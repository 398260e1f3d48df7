/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_PROCESS_DAEMON_MANAGER_H
#define RINGBUS_TESTS_PROCESS_DAEMON_MANAGER_H
/* A service manager, played by this program: it hands over sockets, and keeps descriptors. */
#include "bus/directory.h"
#include "bus/record.h"
#include "daemon/code.h"
#include "support/cluster.h"
#include "support/raw.h"
#include "support/test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ECHO     "/game/eu/pc/w1/core/echo"
#define ECHO_1   ECHO "/1"
#define ECHO_2   ECHO "/2"
#define KEPT_MAX 4U
#define START_MS 5000U
#define STORED   "ringbus-directory-"

static struct cluster cluster;

/** What the manager holds. */
static struct {
    int notify;
    int socket;
    struct {
        int fd;
        char name[64];
    } kept[KEPT_MAX];
    unsigned kept_count;
    unsigned ready;
    unsigned stores;        /* times it was given one */
    unsigned counted_extra; /* descriptors that it says it hands over, and does not */
} manager;

/** The numbers of `ctest -C full`, or a sample. */
static inline unsigned full_or(unsigned full, unsigned sample)
{
    return getenv("RINGBUS_TEST_FULL") != NULL ? full : sample; /* NOLINT(concurrency-mt-unsafe) */
}

static inline uint64_t any(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* ---- the manager --------------------------------------------------------------------------- */

static inline void forget(unsigned idx)
{
    (void)close(manager.kept[idx].fd);
    manager.kept[idx] = manager.kept[--manager.kept_count];
}

static inline void keep(int fd, const char *name)
{
    assert_true(manager.kept_count < KEPT_MAX);
    manager.kept[manager.kept_count].fd = fd;
    (void)snprintf(manager.kept[manager.kept_count].name, sizeof manager.kept[0].name, "%s", name);
    manager.kept_count++;
}

static inline void forget_named(const char *name)
{
    for (unsigned i = manager.kept_count; i-- > 0;) {
        if (strcmp(manager.kept[i].name, name) == 0) {
            forget(i);
        }
    }
}

/** Takes one message of the daemon. @return whether there was one within the time */
static inline bool hear(unsigned timeout_ms)
{
    char text[256] = {0};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {.iov_base = text, .iov_len = sizeof text - 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct pollfd wait = {.fd = manager.notify, .events = POLLIN};
    int fd = -1;
    if (poll(&wait, 1, (int)timeout_ms) <= 0) {
        return false;
    }
    assert_true(recvmsg(manager.notify, &message, MSG_CMSG_CLOEXEC) > 0);
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header != NULL && header->cmsg_type == SCM_RIGHTS) {
        memcpy(&fd, CMSG_DATA(header), sizeof fd);
    }
    const char *name = strstr(text, "FDNAME=");
    char first[64] = {0};
    (void)snprintf(first, sizeof first, "%.*s", (int)strcspn(name ? name + 7 : "", "\n"),
                   name ? name + 7 : "");
    if (strstr(text, "FDSTOREREMOVE=1") != NULL) {
        forget_named(first);
    } else if (strstr(text, "FDSTORE=1") != NULL) {
        assert_true(fd >= 0 && first[0] != '\0');
        keep(fd, first);
        manager.stores++;
    }
    manager.ready += strstr(text, "READY=1") != NULL;
    return true;
}

static inline void hear_all(void)
{
    while (hear(0)) {
    }
}

static inline _Noreturn void become_daemon(void)
{
    char text[512];
    const int log = open(cluster.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    (void)dup2(log, STDERR_FILENO);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* Out of the way first: their numbers may be among those that are to be handed over. */
    int fds[1 + KEPT_MAX];
    fds[0] = fcntl(manager.socket, F_DUPFD_CLOEXEC, 100);
    for (unsigned i = 0; i < manager.kept_count; i++) {
        fds[1 + i] = fcntl(manager.kept[i].fd, F_DUPFD_CLOEXEC, 100);
    }
    int length = snprintf(text, sizeof text, "ringbusd.socket");
    for (unsigned i = 0; i <= manager.kept_count; i++) {
        (void)dup2(fds[i], 3 + (int)i);
        if (i > 0) {
            length += snprintf(text + length, sizeof text - (size_t)length, ":%s",
                               manager.kept[i - 1].name);
        }
    }
    (void)setenv("LISTEN_FDNAMES", text, 1);
    (void)snprintf(text, sizeof text, "%u", 1 + manager.kept_count + manager.counted_extra);
    (void)setenv("LISTEN_FDS", text, 1);
    (void)snprintf(text, sizeof text, "%d", (int)getpid());
    (void)setenv("LISTEN_PID", text, 1);
    (void)snprintf(text, sizeof text, "%s/manager", cluster.folder);
    (void)setenv("NOTIFY_SOCKET", text, 1);
    (void)execl(RINGBUSD_PATH, "ringbusd", "--config", cluster.config, (char *)NULL);
    _exit(127);
}

/** Starts the daemon with all that is kept, and waits until it is ready. */
static inline void start(void)
{
    manager.ready = 0;
    cluster.pid = fork();
    assert_true(cluster.pid >= 0);
    if (cluster.pid == 0) {
        become_daemon();
    }
    const uint64_t deadline_ms = test_now_ms() + START_MS;
    while (manager.ready == 0) {
        assert_true(test_now_ms() < deadline_ms);
        (void)hear(10);
    }
}

static inline void manage(const char *config)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memset(&manager, 0, sizeof manager);
    assert_int_equal(cluster_make(&cluster, config), 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/manager", cluster.folder);
    manager.notify = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(manager.notify, (struct sockaddr *)(void *)&address, sizeof address), 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", cluster.socket);
    manager.socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(manager.socket, (struct sockaddr *)(void *)&address, sizeof address), 0);
    assert_int_equal(listen(manager.socket, 64), 0);
    start();
}

static inline int teardown(void **state)
{
    (void)state;
    while (manager.kept_count > 0) {
        forget(0);
    }
    (void)close(manager.notify);
    (void)close(manager.socket);
    cluster_down(&cluster);
    return 0;
}

/* ---- looking in ----------------------------------------------------------------------------- */

struct listing {
    struct rbi_directory_cluster head;
    struct rbi_directory_instance instances[8];
    unsigned count;
    uint64_t revision;
};

static inline void list(const struct raw *raw, struct listing *out)
{
    struct rbi_directory_view view;
    memset(out, 0, sizeof *out);
    assert_int_equal(rbi_directory_view_init(&view, raw->directory.base, raw->directory.size), 0);
    out->revision = rbi_directory_revision(&view);
    if (rbi_directory_read(&view, rbi_cluster_id(ECHO, strlen(ECHO)), &out->head, out->instances,
                           8) == RBI_DIRECTORY_OK) {
        out->count = out->head.instance_count;
    }
}

/** What a client that comes now is given. */
static inline void list_fresh(struct listing *out)
{
    struct raw raw;
    assert_int_equal(raw_connect(&raw, cluster.socket), 0);
    assert_int_equal(raw_hello(&raw), 0);
    list(&raw, out);
    raw_close(&raw);
}

static inline void register_at(struct raw *raw,
                               const char *path,
                               uint32_t weight,
                               enum rbi_endpoint_state state,
                               const struct raw *before)
{
    struct raw_message message;
    struct rbi_wire_registration body = {.state = state, .weight = weight};
    rbi_text_set(&body.path, path);
    if (before != NULL) {
        body.incarnation = before->registered.incarnation;
        body.cookie = before->registered.cookie;
        body.daemon_incarnation = before->hello_ok.daemon_incarnation;
    }
    assert_int_equal(raw_connect(raw, cluster.socket), 0);
    assert_int_equal(raw_hello(raw), 0);
    assert_int_equal(raw_send_register(raw, &body), 0);
    assert_int_equal(raw_expect(raw, RBI_WIRE_REGISTERED, &message, RAW_TIMEOUT_MS), 0);
    raw->registered = message.body.registered;
}

static inline void wait_for_log(const char *text)
{
    assert_true(cluster_log_wait(&cluster, text, START_MS));
}

#endif
