/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each system call and allocation of the library fails in turn, once, at every place
 * where a whole life of two endpoints makes it. The life must end with an error code of
 * ringbus_open() or complete, within seconds; nothing may be left of it.
 *
 * The functions are replaced by definitions of the same name in this program. Only
 * calls between inject_begin() and inject_end() count.
 */
#undef _FORTIFY_SOURCE /* its inline forms would stand in the way of ours */

#include "support/bus.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/vfs.h>
#include <unistd.h>

#if TEST_SCALE == 1
#define WITH_ALLOCATIONS 1
#endif

/* ---- what fails ------------------------------------------------------------------------------ */

#define FUNCTIONS(X)                                                                               \
    X(memfd_create, EMFILE)                                                                        \
    X(fallocate, ENOSPC)                                                                           \
    X(fallocate, EINTR)                                                                            \
    X(mmap, ENOMEM)                                                                                \
    X(mremap, ENOMEM)                                                                              \
    X(madvise, ENOMEM)                                                                             \
    X(fcntl, EMFILE)                                                                               \
    X(fstat, EPERM)                                                                                \
    X(fstatfs, EPERM)                                                                              \
    X(socket, EMFILE)                                                                              \
    X(connect, EPERM)                                                                              \
    X(connect, EAGAIN)                                                                             \
    X(sendmsg, ENOMEM)                                                                             \
    X(sendmsg, ETOOMANYREFS)                                                                       \
    X(sendmsg, EINTR)                                                                              \
    X(sendmsg, EPIPE)                                                                              \
    X(recvmsg, ENOMEM)                                                                             \
    X(recvmsg, EINTR)                                                                              \
    X(epoll_create1, EMFILE)                                                                       \
    X(epoll_ctl, ENOSPC)                                                                           \
    X(epoll_wait, EINTR)                                                                           \
    X(poll, EINTR)                                                                                 \
    X(eventfd, EMFILE)                                                                             \
    X(timerfd_create, EMFILE)                                                                      \
    X(timerfd_settime, EPERM)                                                                      \
    X(socketpair, EMFILE)                                                                          \
    X(getrandom, EAGAIN)                                                                           \
    X(malloc, ENOMEM)                                                                              \
    X(calloc, ENOMEM)                                                                              \
    X(realloc, ENOMEM)                                                                             \
    X(posix_memalign, ENOMEM)

static struct {
    bool on;
    const char *function;
    int error;
    unsigned nth; /* the call that fails */
    unsigned calls;
} inject;

static bool fails(const char *function)
{
    if (!inject.on || strcmp(function, inject.function) != 0 || ++inject.calls != inject.nth) {
        return false;
    }
    errno = inject.error;
    return true;
}

static void inject_begin(const char *function, int error, unsigned nth)
{
    inject.function = function;
    inject.error = error;
    inject.nth = nth;
    inject.calls = 0;
    inject.on = true;
}

/* @return whether the call came */
static bool inject_end(void)
{
    inject.on = false;
    return inject.calls >= inject.nth;
}

#define EXPORT __attribute__((visibility("default")))

EXPORT int memfd_create(const char *name, unsigned flags)
{
    return fails("memfd_create") ? -1 : (int)syscall(SYS_memfd_create, name, flags);
}

EXPORT int fallocate(int fd, int mode, off_t offset, off_t size)
{
    return fails("fallocate") ? -1 : (int)syscall(SYS_fallocate, fd, mode, offset, size);
}

EXPORT void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (fails("mmap")) {
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
}

EXPORT void *mremap(void *at, size_t old_size, size_t new_size, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    void *to = (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void *) : NULL;
    va_end(arguments);
    if (fails("mremap")) {
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mremap, at, old_size, new_size, flags, to);
}

EXPORT int madvise(void *at, size_t size, int advice)
{
    return fails("madvise") ? -1 : (int)syscall(SYS_madvise, at, size, advice);
}

EXPORT int fcntl(int fd, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    return fails("fcntl") ? -1 : (int)syscall(SYS_fcntl, fd, command, argument);
}

EXPORT int fstat(int fd, struct stat *out)
{
    return fails("fstat") ? -1 : (int)syscall(SYS_fstat, fd, out);
}

EXPORT int fstatfs(int fd, struct statfs *out)
{
    return fails("fstatfs") ? -1 : (int)syscall(SYS_fstatfs, fd, out);
}

EXPORT int socket(int domain, int type, int protocol)
{
    return fails("socket") ? -1 : (int)syscall(SYS_socket, domain, type, protocol);
}

EXPORT int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t size)
{
    return fails("connect") ? -1 : (int)syscall(SYS_connect, fd, address.__sockaddr__, size);
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    return fails("sendmsg") ? -1 : (ssize_t)syscall(SYS_sendmsg, fd, message, flags);
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    return fails("recvmsg") ? -1 : (ssize_t)syscall(SYS_recvmsg, fd, message, flags);
}

EXPORT int epoll_create1(int flags)
{
    return fails("epoll_create1") ? -1 : (int)syscall(SYS_epoll_create1, flags);
}

EXPORT int epoll_ctl(int set, int operation, int fd, struct epoll_event *event)
{
    return fails("epoll_ctl") ? -1 : (int)syscall(SYS_epoll_ctl, set, operation, fd, event);
}

EXPORT int epoll_wait(int set, struct epoll_event *events, int count, int timeout_ms)
{
    return fails("epoll_wait") ? -1 : (int)syscall(SYS_epoll_wait, set, events, count, timeout_ms);
}

EXPORT int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    return fails("poll") ? -1 : (int)syscall(SYS_poll, fds, count, timeout_ms);
}

EXPORT int eventfd(unsigned count, int flags)
{
    return fails("eventfd") ? -1 : (int)syscall(SYS_eventfd2, count, flags);
}

EXPORT int timerfd_create(clockid_t clock, int flags)
{
    return fails("timerfd_create") ? -1 : (int)syscall(SYS_timerfd_create, clock, flags);
}

EXPORT int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old)
{
    return fails("timerfd_settime") ? -1 : (int)syscall(SYS_timerfd_settime, fd, flags, new, old);
}

EXPORT int socketpair(int domain, int type, int protocol, int fds[2])
{
    return fails("socketpair") ? -1 : (int)syscall(SYS_socketpair, domain, type, protocol, fds);
}

EXPORT ssize_t getrandom(void *out, size_t size, unsigned flags)
{
    return fails("getrandom") ? -1 : (ssize_t)syscall(SYS_getrandom, out, size, flags);
}

#ifdef WITH_ALLOCATIONS
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

EXPORT void *malloc(size_t size)
{
    return fails("malloc") ? NULL : __libc_malloc(size);
}

EXPORT void *calloc(size_t count, size_t size)
{
    return fails("calloc") ? NULL : __libc_calloc(count, size);
}

EXPORT void *realloc(void *old, size_t size)
{
    return fails("realloc") ? NULL : __libc_realloc(old, size);
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t size)
{
    if (fails("posix_memalign")) {
        return ENOMEM;
    }
    *out = __libc_memalign(alignment, size);
    return *out ? 0 : ENOMEM;
}
#endif

/* ---- the life -------------------------------------------------------------------------------- */

#define PEER   "/game/eu/pc/w1/core/peer"
#define PEER_1 PEER "/1"
#define NOTE   "/game/eu/meta/note"

#define LIFE_MS 8000U

static struct cluster cluster;

struct end {
    struct ringbus *bus;
    unsigned ready;
    unsigned down;
    unsigned added;
    unsigned created;
    unsigned removed;
    unsigned lost; /* events that there was no memory for, and so it was told */
    unsigned returned;
    unsigned answers;
    int answer;
    uint64_t messages;
    uint64_t kept;
    unsigned replied;
    unsigned not_replied;
    bool damaged;
};

static struct end server;
static struct end client;
static struct ringbus_addr to;
static unsigned char payload[20000];
static uint64_t deadline_ms;
static const char *stage;

static bool out_of_time(void)
{
    return test_now_ms() > deadline_ms;
}

static void on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    struct end *end = user;
    struct ringbus_kept *kept = NULL;
    end->messages++;
    end->damaged |= message->size > 0 && memcmp(message->data, payload, message->size) != 0;
    if (message->kind == RINGBUS_KIND_REQUEST) {
        (void)ringbus_reply(bus, &message->reply_to, payload, 100, 0);
    } else if (ringbus_keep(bus, message, &kept) == 0) {
        end->kept++;
        end->damaged |= kept->size != message->size;
        end->damaged |= ringbus_release(bus, kept) != 0;
    }
}

static void on_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    struct end *end = user;
    (void)bus;
    end->ready += event->type == RINGBUS_EVENT_READY;
    end->down += event->type == RINGBUS_EVENT_DOWN;
    end->added += event->type == RINGBUS_EVENT_ADDED && strcmp(event->path, PEER_1) == 0;
    end->returned += event->type == RINGBUS_EVENT_UNDELIVERED;
    end->created += event->type == RINGBUS_EVENT_NODE_CREATED;
    end->removed += event->type == RINGBUS_EVENT_NODE_REMOVED;
    end->lost += event->type == RINGBUS_EVENT_RESYNC && event->error == RINGBUS_E_NO_MEMORY;
}

static void on_node(struct ringbus *bus, const struct ringbus_node_result *result, void *context)
{
    struct end *end = context;
    (void)bus;
    end->answer = result->error;
    end->answers++;
}

static void on_reply(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    struct end *end = context;
    (void)bus;
    if (result->outcome == RINGBUS_REPLIED) {
        end->replied++;
    } else {
        end->not_replied++;
    }
}

static int open_end(struct end *end, const char *path)
{
    struct ringbus_options options = node_options(&cluster, path);
    const struct ringbus_pool_class pool[] = {{32768, 4}};
    memset(end, 0, sizeof *end);
    memcpy(options.pool, pool, sizeof pool);
    options.lane_bytes = 4096;
    options.connect_timeout_ms = 2000;
    options.on_message = on_message;
    options.on_event = on_event;
    options.user = end;
    return ringbus_open(&options, &end->bus);
}

/* @return 0, or the error of a call that may only wait */
static int step(void)
{
    int r = ringbus_poll(server.bus, 100);
    r = r < 0 ? r : ringbus_poll(client.bus, 100);
    r = r < 0 ? r : ringbus_wait(server.bus, 0);
    r = r < 0 ? r : ringbus_wait(client.bus, 1);
    return r < 0 ? r : 0;
}

/* Repeats a call that a failure may have hit, until it works. */
#define INSIST(call, good)                                                                         \
    for (int r_ = (call); !(good)(r_); r_ = (call)) {                                              \
        if (r_ >= 0 || out_of_time()) {                                                            \
            (void)fprintf(stderr, "%s: %d %s\n", #call, r_, ringbus_errmsg(client.bus));           \
            return -1;                                                                             \
        }                                                                                          \
        (void)step();                                                                              \
    }

static int zero(int r)
{
    return r == 0;
}

static int one(int r)
{
    return r == 1;
}

static int any(int r)
{
    return r >= 0;
}

#define UNTIL(condition)                                                                           \
    while (!(condition)) {                                                                         \
        if (out_of_time()) {                                                                       \
            (void)fprintf(stderr, "never: %s (%s)\n", #condition, ringbus_errmsg(client.bus));     \
            return -1;                                                                             \
        }                                                                                          \
        (void)step();                                                                              \
    }

static int exchange(void)
{
    const struct ringbus_part parts[] = {{payload, 5}, {payload + 5, 10}};
    struct ringbus_addr dispatch = to;
    struct ringbus_addr self;
    const uint64_t before = server.messages + client.returned;
    const uint64_t before_self = client.messages;
    const unsigned before_replies = client.replied + client.not_replied;
    INSIST(ringbus_send(client.bus, &to, 0, payload, 50, 0), one)
    INSIST(ringbus_send(client.bus, &to, 0, payload, sizeof payload, 0), one)
    INSIST(ringbus_sendv(client.bus, &to, 0, parts, 2, 0), one)
    dispatch.instance = RINGBUS_ANY;
    dispatch.incarnation = 0;
    INSIST(ringbus_send(client.bus, &dispatch, 77, payload, 60, RINGBUS_KEY), one)
    /* Losing the daemon can cost a link, and that gives back what was on its way. */
    UNTIL(server.messages + client.returned >= before + 4)
    INSIST(ringbus_request(client.bus, &to, 0, payload, 70, 0, 3000, on_reply, &client), one)
    UNTIL(client.replied + client.not_replied > before_replies)
    INSIST(ringbus_self(client.bus, &self), zero)
    INSIST(ringbus_send(client.bus, &self, 0, payload, 80, 0), one)
    UNTIL(client.messages > before_self)
    return 0;
}

/* The descriptor alone tells when a request that nobody answers is over. */
static int time_out(void)
{
    struct pollfd wait = {.events = POLLIN};
    const unsigned before = client.not_replied;
    const uint64_t late_ms = test_now_ms() + 700; /* the next PING comes later */
    INSIST(ringbus_fd(client.bus), any)
    wait.fd = ringbus_fd(client.bus);
    INSIST(ringbus_request(client.bus, &to, 0, payload, 70, 0, 20, on_reply, &client), one)
    while (client.not_replied == before) {
        if (test_now_ms() > late_ms) {
            return -1;
        }
        if (poll(&wait, 1, 1000) == 1) {
            (void)ringbus_poll(client.bus, 100);
        }
    }
    return 0;
}

/* Whoever watches is told of a node that comes and goes, once each, or that something was lost. */
static int note(void)
{
    const unsigned answers = server.answers;
    do {
        const unsigned before = server.answers;
        INSIST(ringbus_node_create(server.bus, NOTE, "a", 1, 0, on_node, &server), zero)
        UNTIL(server.answers > before)
    } while (server.answer != 0 && server.answer != RINGBUS_E_IN_USE);
    UNTIL(client.created > 0 || client.lost > 0)
    do {
        const unsigned before = server.answers;
        INSIST(ringbus_node_remove(server.bus, NOTE, 0, on_node, &server), zero)
        UNTIL(server.answers > before)
    } while (server.answer != 0 && server.answer != RINGBUS_E_NO_SERVICE);
    UNTIL(client.removed > 0 || client.lost > 0)
    return server.answers > answers && client.created <= 1 && client.removed <= 1 ? 0 : -1;
}

static int live(void)
{
    stage = "target";
    INSIST(ringbus_target(client.bus, PEER, NULL, &to), zero)
    to.instance = 1;
    INSIST(ringbus_watch(client.bus, "/game"), zero)
    UNTIL(client.ready > 0 && (client.added > 0 || client.lost > 0))
    stage = "note";
    if (note() != 0) {
        return -1;
    }
    stage = "exchange";
    if (exchange() != 0) {
        return -1;
    }
    stage = "descriptor";
    if (time_out() != 0 || exchange() != 0) {
        return -1;
    }
    stage = "instances";
    struct ringbus_instance list[4];
    const int r = ringbus_instances(client.bus, PEER, list, 4);
    if (r != 1 && ringbus_instances(client.bus, PEER, list, 4) > 1) {
        return -1;
    }
    stage = "untarget";
    INSIST(ringbus_untarget(client.bus, PEER), zero)
    UNTIL(client.down > 0 && server.down > 0)
    return 0;
}

/* One life, with a failure in it. @return what is wrong with it, or NULL */
static const char *life(int *open_error)
{
    const char *wrong = NULL;
    *open_error = 0;
    deadline_ms = test_now_ms() + LIFE_MS;
    stage = "open";
    int r = open_end(&server, PEER_1);
    if (r == 0) {
        r = open_end(&client, NULL);
        if (r == 0) {
            wrong = live() != 0 ? stage : NULL;
            r = ringbus_close(client.bus, 50);
            wrong = r != 0 && r != RINGBUS_E_TIMEOUT ? "close" : wrong;
            r = 0;
        }
        const int closed = ringbus_close(server.bus, 0);
        wrong = closed != 0 ? "close of the server" : wrong;
    }
    if (r != 0) {
        *open_error = r;
        wrong = ringbus_error_kind(r) == RINGBUS_ERROR_NONE ||
                        ringbus_error_kind(r) == RINGBUS_ERROR_USAGE ||
                        ringbus_error_kind(r) == RINGBUS_ERROR_INTERNAL
                    ? "code of open"
                    : wrong;
    }
    if (wrong == NULL && (server.damaged || client.damaged)) {
        wrong = "payload";
    }
    return wrong;
}

/* Every place of one function. */
static void fail_everywhere(const char *function, int error)
{
    const unsigned fds = bus_fd_count();
    const unsigned maps = bus_map_count();
    unsigned refused = 0;
    unsigned nth = 1;
    /* Sanitized lives are slow: the places are sampled. */
    const unsigned stride = TEST_SCALE == 1 ? 1 : 3;
    for (;; nth += stride) {
        int open_error = 0;
        inject_begin(function, error, nth);
        const char *wrong = life(&open_error);
        const bool came = inject_end();
        refused += open_error != 0;
        if (wrong != NULL || bus_fd_count() != fds || bus_map_count() != maps) {
            print_error("%s failed with %s at call %u: %s, %d descriptors and %d mappings more\n",
                        function, strerrorname_np(error), nth, wrong ? wrong : "left over",
                        (int)(bus_fd_count() - fds), (int)(bus_map_count() - maps));
            fail();
        }
        if (!came) {
            assert_int_equal(open_error, 0); /* nothing has failed: nothing may be refused */
            break;
        }
        assert_true(nth < 2000);
    }
    print_message("%-16s %-12s %u places, %u refused at open\n", function, strerrorname_np(error),
                  nth - 1, refused);
}

static void test_each_call_fails_in_turn(void **state)
{
    (void)state;
    int open_error = 0;
    for (unsigned i = 0; i < sizeof payload; i++) {
        payload[i] = (unsigned char)(i * 13);
    }
    inject_begin("nothing", 0, 1);
    assert_null(life(&open_error));
    assert_false(inject_end());
    assert_int_equal(open_error, 0);
    assert_int_equal(client.replied, 2);
#define EACH(function, error) fail_everywhere(#function, error);
    FUNCTIONS(EACH)
#undef EACH
}

static int setup(void **state)
{
    (void)state;
    if (cluster_up(&cluster, "quota: {connects: 100000}\n") != 0) {
        return -1;
    }
    /* That a daemon has settled makes everybody look at all of it, and hides what was lost. */
    return cluster_log_wait(&cluster, "event=settled", 20000) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    const int r = cluster_stop(&cluster); /* it has lived through all of this */
    cluster_down(&cluster);
    return r;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_call_fails_in_turn),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
