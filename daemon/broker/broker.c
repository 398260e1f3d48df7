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
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0) {
        return -errno;
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

static int poll_faces(struct rbi_broker *broker)
{
    int handled = 0;
    RBI_LIST_EACH(node, spare, &broker->faces)
    {
        struct rbi_face *face = RBI_CONTAINER_OF(node, struct rbi_face, link);
        if (face->bus != NULL) {
            handled += rbi_face_poll(face);
        }
    }
    return handled;
}

static void ready_once(bool *said)
{
    if (!*said) {
        *said = true;
        rbi_log(RBI_LOG_INFO, "broker_ready", "pid=%d", (int)getpid());
        rbi_notify("READY=1");
    }
}

int rbi_broker_run(struct rbi_broker *broker)
{
    struct epoll_event events[16];
    bool said = false;
    uint64_t busy_ns = 0;
    while (!broker->leaving || !has_left(broker)) {
        if (broker->again && !broker->leaving) {
            broker->again = open_faces(broker);
            if (!broker->again) {
                ready_once(&said);
            }
        }
        const int handled = poll_faces(broker);
        const uint64_t spin_ns = broker->config->spin_us * UINT64_C(1000);
        const uint64_t now_ns = handled > 0 || spin_ns > 0 ? rbi_broker_now_ns() : 0;
        busy_ns = handled > 0 ? now_ns : busy_ns;
        const bool spinning = handled > 0 || (spin_ns > 0 && now_ns - busy_ns < spin_ns);
        const int wait_ms = spinning ? 0 : broker->again || broker->leaving ? LOOK_MS : -1;
        if (spinning && (now_ns & 63U) != 0) {
            continue; /* signals are looked at now and then */
        }
        const int n = epoll_wait(broker->epoll, events, RBI_ARRAY_SIZE(events), wait_ms);
        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr == broker) {
                take_signals(broker);
            }
        }
    }
    tell_counters(broker);
    return 0;
}
