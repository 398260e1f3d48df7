/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/broker.h"

#include "daemon/broker/call.h"
#include "daemon/broker/caller.h"
#include "daemon/broker/face.h"
#include "daemon/broker/route.h"
#include "daemon/log.h"
#include "daemon/notify.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS UINT64_C(1000000)
/* What is not open yet is tried again; what leaves is looked at. */
#define LOOK_MS 50
/* So many turns without asking the kernel. */
#define BUSY_TURNS 8U

uint64_t rbi_broker_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* ---- beginning and end ---------------------------------------------------------------------- */

static int open_signals(struct rbi_broker *broker)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGUSR1);
    (void)sigaddset(&set, SIGHUP);
    const int r = pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (r != 0) {
        return -r;
    }
    broker->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = broker};
    return broker->signals < 0 ||
                   epoll_ctl(broker->epoll, EPOLL_CTL_ADD, broker->signals, &event) != 0
               ? -errno
               : 0;
}

static int make_sides(struct rbi_broker *broker)
{
    struct ringbus_addr first;
    for (uint32_t i = 0; i < broker->config->side_count; i++) {
        const struct rbi_broker_side *side = &broker->config->sides[i];
        broker->sides[i] = rbi_face_new(broker, side, side->path);
        if (broker->sides[i] == NULL) {
            return -ENOMEM;
        }
    }
    if (ringbus_resolve(broker->config->sides[0].path, &first) != 0) {
        return -EINVAL;
    }
    broker->via = first.cluster;
    return 0;
}

int rbi_broker_init(struct rbi_broker *broker, const char *config_path)
{
    memset(broker, 0, sizeof *broker);
    broker->epoll = broker->signals = -1;
    broker->config_path = config_path;
    rbi_list_init(&broker->faces);
    rbi_list_init(&broker->routes);
    broker->config = malloc(sizeof *broker->config);
    if (broker->config == NULL) {
        return -ENOMEM;
    }
    int r = rbi_broker_read(config_path, broker->config);
    if (r != 0) {
        return r;
    }
    broker->epoll = epoll_create1(EPOLL_CLOEXEC);
    r = broker->epoll < 0 ? -errno : open_signals(broker);
    r = r == 0 ? rbi_map_init(&broker->callers) : r;
    r = r == 0 ? make_sides(broker) : r;
    return r == 0 ? rbi_routes_init(broker) : r;
}

static void close_faces(struct rbi_broker *broker, bool portals)
{
    RBI_LIST_EACH(node, spare, &broker->faces)
    {
        struct rbi_face *face = RBI_CONTAINER_OF(node, struct rbi_face, link);
        if ((face->route != NULL) == portals) {
            rbi_face_close(face);
        }
    }
}

void rbi_broker_deinit(struct rbi_broker *broker)
{
    /* What the sides had sent on ends with them, and is answered by the portals. */
    close_faces(broker, false);
    close_faces(broker, true);
    RBI_LIST_EACH(node, spare, &broker->faces)
    {
        rbi_face_free(RBI_CONTAINER_OF(node, struct rbi_face, link));
    }
    rbi_routes_deinit(broker);
    rbi_callers_deinit(broker);
    if (broker->signals >= 0) {
        (void)close(broker->signals);
    }
    if (broker->epoll >= 0) {
        (void)close(broker->epoll);
    }
    free(broker->config);
}

/* ---- leaving -------------------------------------------------------------------------------- */

static void tell_counters(const struct rbi_broker *broker)
{
    char line[RBI_LOG_LINE_MAX];
    size_t used = 0;
    line[0] = '\0';
#define TELL(name, text)                                                                           \
    if (used < sizeof line) {                                                                      \
        used += (size_t)snprintf(line + used, sizeof line - used, "%s" #name "=%llu",              \
                                 used > 0 ? " " : "", (unsigned long long)broker->counters.name);  \
    }
    RBI_BROKER_COUNTERS(TELL)
#undef TELL
    rbi_log(RBI_LOG_INFO, "broker_counters", "%s calls=%u", line, broker->calls);
}

static void leave(struct rbi_broker *broker)
{
    if (broker->leaving) {
        return;
    }
    broker->leaving = true;
    broker->leave_ns = rbi_broker_now_ns();
    rbi_log(RBI_LOG_INFO, "broker_leaving", "calls=%u", broker->calls);
    rbi_notify("STOPPING=1");
    RBI_LIST_EACH(node, spare, &broker->faces)
    {
        struct rbi_face *face = RBI_CONTAINER_OF(node, struct rbi_face, link);
        if (face->bus != NULL) {
            (void)ringbus_drain(face->bus);
        }
    }
}

static bool has_left(const struct rbi_broker *broker)
{
    if (rbi_broker_now_ns() - broker->leave_ns > broker->config->drain_ms * NS_PER_MS) {
        rbi_log(RBI_LOG_WARNING, "broker_left_late", "calls=%u", broker->calls);
        return true;
    }
    if (broker->calls > 0) {
        return false;
    }
    RBI_LIST_EACH(node, spare, &broker->faces)
    {
        const struct rbi_face *face = RBI_CONTAINER_OF(node, struct rbi_face, link);
        if (face->bus != NULL && ringbus_drained(face->bus) != 1) {
            return false;
        }
    }
    return true;
}

/* ---- reading the file again ------------------------------------------------------------------ */

/* Whether they stand where they stood: a side is who the broker is, for as long as it runs. */
static bool same_sides(const struct rbi_broker_config *a, const struct rbi_broker_config *b)
{
    bool same = a->side_count == b->side_count;
    for (uint32_t i = 0; same && i < a->side_count; i++) {
        const struct rbi_broker_side *x = &a->sides[i];
        const struct rbi_broker_side *y = &b->sides[i];
        same = strcmp(x->name, y->name) == 0 && strcmp(x->socket, y->socket) == 0 &&
               strcmp(x->path, y->path) == 0;
    }
    return same;
}

/* All or nothing. What counts when an endpoint is opened counts for those that come. */
static void reload(struct rbi_broker *broker)
{
    struct rbi_broker_config *next = malloc(sizeof *next);
    struct rbi_broker_config *old = broker->config;
    if (next == NULL || broker->leaving || rbi_broker_read(broker->config_path, next) != 0) {
        rbi_log(RBI_LOG_ERROR, "broker_reload_failed", "file=%s why=%s", broker->config_path,
                next == NULL      ? "memory"
                : broker->leaving ? "leaving"
                                  : "file");
        free(next);
        return;
    }
    if (!same_sides(old, next)) {
        rbi_log(RBI_LOG_ERROR, "broker_reload_failed", "file=%s why=sides", broker->config_path);
        free(next);
        return;
    }
    broker->config = next;
    RBI_LIST_EACH(node, spare, &broker->faces)
    {
        struct rbi_face *face = RBI_CONTAINER_OF(node, struct rbi_face, link);
        face->side = &next->sides[face->side - old->sides];
    }
    rbi_routes_follow(broker, old);
    free(old);
    broker->again = broker->dropping = true;
    rbi_log(RBI_LOG_INFO, "broker_reloaded", "exports=%u", next->export_count);
}

/* ---- the loop ------------------------------------------------------------------------------- */

static void take_signals(struct rbi_broker *broker)
{
    struct signalfd_siginfo info;
    while (read(broker->signals, &info, sizeof info) == sizeof info) {
        switch (info.ssi_signo) {
        case SIGUSR1:
            tell_counters(broker);
            break;
        case SIGHUP:
            reload(broker);
            break;
        default:
            leave(broker);
            break;
        }
    }
}

/* Opens what is not open. @return whether something is left to be opened */
static bool open_faces(struct rbi_broker *broker)
{
    const uint64_t now_ns = rbi_broker_now_ns();
    bool left = false;
    /* Portals come behind the sides, and new ones behind all. */
    RBI_LIST_EACH(node, spare, &broker->faces)
    {
        struct rbi_face *face = RBI_CONTAINER_OF(node, struct rbi_face, link);
        if (face->bus != NULL || face->leaving) {
            continue;
        }
        if (!rbi_face_open(face, now_ns)) {
            left = true;
        } else if (face->route == NULL) {
            rbi_routes_side_up(broker, face);
        }
    }
    return left;
}

static bool is_over(const struct rbi_face *face)
{
    const uint64_t drain_ns = face->broker->config->drain_ms * NS_PER_MS;
    return face->calls == 0 && (face->bus == NULL || ringbus_drained(face->bus) == 1 ||
                                rbi_broker_now_ns() - face->leave_ns > drain_ns);
}

/* Frees portals that are shown no more, once what came to them is over. @return whether some are */
static bool drop_portals(struct rbi_broker *broker)
{
    bool left = false;
    RBI_LIST_EACH(node, spare, &broker->faces)
    {
        struct rbi_face *face = RBI_CONTAINER_OF(node, struct rbi_face, link);
        if (face->leaving && face->route != NULL && is_over(face)) {
            struct rbi_route *route = face->route;
            rbi_face_free(face);
            rbi_routes_left(broker, route);
        } else {
            left = left || (face->leaving && face->route != NULL);
        }
    }
    return left;
}

static int poll_faces(struct rbi_broker *broker)
{
    int handled = 0;
    RBI_LIST_EACH(node, spare, &broker->faces)
    {
        struct rbi_face *face = RBI_CONTAINER_OF(node, struct rbi_face, link);
        if (face->bus != NULL && face->active) {
            handled += rbi_face_poll(face);
        }
    }
    return handled;
}

static bool some_active(const struct rbi_broker *broker)
{
    RBI_LIST_EACH(node, spare, &broker->faces)
    {
        const struct rbi_face *face = RBI_CONTAINER_OF(node, struct rbi_face, link);
        if (face->bus != NULL && face->active) {
            return true;
        }
    }
    return false;
}

/* Looks what the kernel says. @param wait_ms  as of epoll_wait(). 0; -errno */
static int look(struct rbi_broker *broker, int wait_ms)
{
    struct epoll_event events[64];
    const int n = epoll_wait(broker->epoll, events, RBI_ARRAY_SIZE(events), wait_ms);
    if (n < 0) {
        return errno == EINTR ? 0 : -errno;
    }
    for (int i = 0; i < n; i++) {
        if (events[i].data.ptr == broker) {
            take_signals(broker);
        } else {
            ((struct rbi_face *)events[i].data.ptr)->active = true;
        }
    }
    return 0;
}

static void ready_once(bool *said)
{
    if (!*said) {
        *said = true;
        rbi_log(RBI_LOG_INFO, "broker_ready", "pid=%d", (int)getpid());
        rbi_notify("READY=1");
    }
}

/* What is not done for messages: opening, closing. */
static void keep_house(struct rbi_broker *broker, bool *said)
{
    if (broker->again && !broker->leaving) {
        broker->again = open_faces(broker);
        if (!broker->again) {
            ready_once(said);
        }
    }
    if (broker->replaced) {
        leave(broker);
    }
    if (broker->dropping) {
        broker->dropping = drop_portals(broker);
    }
}

int rbi_broker_run(struct rbi_broker *broker)
{
    const uint64_t spin_ns = broker->config->spin_us * UINT64_C(1000);
    uint64_t busy_ns = 0; /* when something was last handled */
    unsigned turns = 0;
    bool said = false;
    int r = 0;
    while (r == 0 && (!broker->leaving || !has_left(broker))) {
        keep_house(broker, &said);
        bool busy = poll_faces(broker) > 0 || some_active(broker);
        if (spin_ns > 0) {
            const uint64_t now_ns = rbi_broker_now_ns();
            busy_ns = busy ? now_ns : busy_ns;
            busy = now_ns - busy_ns < spin_ns;
        }
        /* While there is work the kernel is asked now and then, for the signals and the others. */
        if (busy && ++turns % BUSY_TURNS != 0) {
            continue;
        }
        const bool due = broker->again || broker->dropping || broker->leaving;
        r = look(broker, busy ? 0 : due ? LOOK_MS : -1);
    }
    tell_counters(broker);
    return r;
}
