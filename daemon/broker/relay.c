/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/relay.h"

#include "bus/glob.h"
#include "daemon/broker/call.h"
#include "daemon/broker/caller.h"
#include "daemon/broker/route.h"
#include "daemon/log.h"

#include <string.h>

/* A message that found no room is looked at again so soon; room itself wakes us earlier. */
#define ROOM_US 1000U
/* One whose receiver is not ready. */
#define READY_US     10000U
#define NS_PER_MS    UINT64_C(1000000)
#define LOG_EVERY_NS (UINT64_C(10) * 1000 * NS_PER_MS)
#define DEFER_MAX_US 1000000U
#define US_PER_MS    1000U
#define RETRY_MAX_MS 3600000U

/** Where a message goes on. */
struct way {
    struct rbi_route *route;
    struct ringbus_forwarding how;
};

/* ---- telling its sender --------------------------------------------------------------------- */

static uint32_t method_of(const struct ringbus_message *message)
{
    return message->attributes != NULL ? message->attributes->method : 0;
}

static void log_refused(const struct rbi_face *face,
                        const struct ringbus_message *message,
                        int error,
                        const char *why)
{
    static struct rbi_log_limit limit;
    uint64_t suppressed = 0;
    if (rbi_log_limit_pass(&limit, rbi_broker_now_ns(), LOG_EVERY_NS, &suppressed)) {
        rbi_log(RBI_LOG_WARNING, "broker_refused", "at=%s from=%s error=%s why=%s suppressed=%llu",
                face->path, message->from_path, ringbus_error_name(error),
                rbi_log_quote(&(struct rbi_log_text){{0}}, why, strlen(why)),
                (unsigned long long)suppressed);
    }
}

static void refuse(struct rbi_face *face,
                   const struct ringbus_message *message,
                   int error,
                   uint32_t retry_ms,
                   const char *why)
{
    struct rbi_broker_counters *counters = &face->broker->counters;
    const struct ringbus_ending ending = {.struct_size = sizeof ending,
                                          .outcome = RINGBUS_NOT_SENT,
                                          .error = error,
                                          .retry_after_ms = retry_ms};
    counters->refused++;
    counters->no_route += error == RINGBUS_E_NO_ROUTE;
    log_refused(face, message, error, why);
    const int r = message->kind == RINGBUS_KIND_REQUEST
                      ? ringbus_reply_as(face->bus, &message->reply_to, &ending)
                      : ringbus_refuse(face->bus, &message->from, error, method_of(message));
    if (r == RINGBUS_E_FULL || r == RINGBUS_E_NO_CHUNK) {
        /* It cannot be told either: it waits for room, as it would for its answer. */
        counters->refused--;
        (void)ringbus_defer(face->bus, message, ROOM_US);
    }
}

/* ---- whom ----------------------------------------------------------------------------------- */

static struct rbi_face *side_of(struct rbi_face *face)
{
    return face->route != NULL ? face->route->to : face;
}

static bool is_upstream(const struct rbi_face *face, const char *path)
{
    const size_t length = strlen(path);
    for (uint32_t i = 0; i < face->side->upstream_count; i++) {
        const char *pattern = face->side->upstream[i];
        if (rbi_glob_match(pattern, strlen(pattern), path, length)) {
            return true;
        }
    }
    return false;
}

/* @return 0; a public error: nobody */
static int find_way(struct rbi_face *face, const struct ringbus_message *message, struct way *way)
{
    const struct ringbus_addr none = {.cluster = 0};
    const struct ringbus_addr dest = message->attributes != NULL ? message->attributes->dest : none;
    struct rbi_broker *broker = face->broker;
    way->route = face->route;
    if (dest.cluster != 0 &&
        (face->route == NULL || face->route->outer_addr.cluster != dest.cluster)) {
        way->route = rbi_routes_find(side_of(face), dest.cluster);
    }
    if (way->route == NULL) {
        return RINGBUS_E_NO_SERVICE;
    }
    way->how = (struct ringbus_forwarding){.struct_size = sizeof way->how,
                                           .to = way->route->inner_addr,
                                           .via = broker->via,
                                           .keep_origin = message->attributes != NULL &&
                                                          is_upstream(face, message->from_path),
                                           .timeout_ms = broker->config->request_timeout_ms};
    if (dest.cluster == 0) {
        way->how.to.instance =
            (message->flags & RINGBUS_MESSAGE_BROADCAST) != 0 ? RINGBUS_ALL : RINGBUS_ANY;
    } else if (dest.instance > 0 && way->route->brokers) {
        way->how.dest = way->how.to; /* it is not there, but beyond those that are */
        way->how.dest.instance = dest.instance;
        way->how.dest.incarnation = dest.incarnation;
    } else {
        way->how.to.instance = dest.instance;
        way->how.to.incarnation = dest.instance > 0 ? dest.incarnation : 0;
    }
    return 0;
}

/* ---- requests ------------------------------------------------------------------------------- */

static uint32_t retry_after_ms(const struct ringbus *bus)
{
    const uint64_t us = ringbus_retry_after_us(bus);
    const uint64_t ms = us / US_PER_MS + (us % US_PER_MS != 0);
    return ms < RETRY_MAX_MS ? (uint32_t)ms : RETRY_MAX_MS;
}

static void
relay_request(struct rbi_face *face, const struct ringbus_message *message, struct way *way)
{
    struct rbi_broker *broker = face->broker;
    struct ringbus *beyond = way->route->from->bus;
    struct rbi_caller *caller = rbi_caller_get(face, &message->from);
    if (caller == NULL) {
        refuse(face, message, RINGBUS_E_NO_MEMORY, 0, "no memory to note it");
        return;
    }
    if (caller->calls >= broker->config->requests) {
        refuse(face, message, RINGBUS_E_LIMITED, 1, "its caller has as many requests under way");
        return;
    }
    struct rbi_call *call = rbi_call_new(face, beyond, caller, message);
    if (call == NULL) {
        rbi_caller_settle(broker, caller);
        refuse(face, message, RINGBUS_E_NO_MEMORY, 0, "no memory to note it");
        return;
    }
    way->how.on_reply = rbi_call_on_reply;
    way->how.context = call;
    const int r = ringbus_forward(face->bus, message, beyond, &way->how);
    if (r == 1) {
        broker->counters.requests++;
        return;
    }
    const char *why = ringbus_errmsg(r == RINGBUS_E_NO_ROUTE ? face->bus : beyond);
    rbi_call_free(call);
    refuse(face, message, r, r == RINGBUS_E_LIMITED ? retry_after_ms(beyond) : 0, why);
}

/* ---- one-way messages ----------------------------------------------------------------------- */

/* For how long it is worth leaving it where it is: 0, it never will. */
static uint32_t patience_us(const struct ringbus *beyond, int error)
{
    uint64_t us = 0;
    switch (error) {
    case RINGBUS_E_FULL:
    case RINGBUS_E_NO_CHUNK:
    case RINGBUS_E_BUSY:
        return ROOM_US;
    case RINGBUS_E_LIMITED:
        us = ringbus_retry_after_us(beyond);
        return us < ROOM_US ? ROOM_US : us < DEFER_MAX_US ? (uint32_t)us : DEFER_MAX_US;
    case RINGBUS_E_NOT_READY:
    case RINGBUS_E_RESTARTING:
    case RINGBUS_E_DRAINING:
        return READY_US;
    default:
        return 0;
    }
}

/* Room comes by itself, as to its sender's own lane; who is not ready may never be. */
static bool may_wait(struct rbi_face *face, const struct rbi_caller *caller, int error)
{
    const bool room = error == RINGBUS_E_FULL || error == RINGBUS_E_NO_CHUNK ||
                      error == RINGBUS_E_LIMITED || error == RINGBUS_E_BUSY;
    return room ||
           rbi_broker_now_ns() - caller->held_ns < face->broker->config->hold_ms * NS_PER_MS;
}

/* @return whether it stays with its sender */
static bool defer(struct rbi_face *face,
                  const struct ringbus_message *message,
                  const struct ringbus *beyond,
                  int error)
{
    const uint32_t us = patience_us(beyond, error);
    struct rbi_caller *caller = us > 0 ? rbi_caller_get(face, &message->from) : NULL;
    if (caller == NULL) {
        return false;
    }
    if (caller->held_ns == 0) {
        caller->held_ns = rbi_broker_now_ns();
    }
    if (!may_wait(face, caller, error) || ringbus_defer(face->bus, message, us) != 0) {
        return false;
    }
    face->broker->counters.deferred++;
    return true;
}

static void not_held(struct rbi_face *face, const struct ringbus_message *message)
{
    struct rbi_caller *caller = rbi_caller_find(face, &message->from);
    if (caller != NULL) {
        caller->held_ns = 0;
        rbi_caller_settle(face->broker, caller);
    }
}

static void
relay_oneway(struct rbi_face *face, const struct ringbus_message *message, struct way *way)
{
    struct ringbus *beyond = way->route->from->bus;
    struct ringbus_broadcast report = {.struct_size = sizeof report};
    way->how.report = way->how.to.instance < 0 ? &report : NULL;
    const int r = ringbus_forward(face->bus, message, beyond, &way->how);
    if (r < 0 && defer(face, message, beyond, r)) {
        return;
    }
    not_held(face, message);
    if (r < 0) {
        refuse(face, message, r, 0, ringbus_errmsg(r == RINGBUS_E_NO_ROUTE ? face->bus : beyond));
        return;
    }
    face->broker->counters.forwarded++;
    if (report.full > 0) {
        refuse(face, message, RINGBUS_E_FULL, 0, "some receivers of a broadcast had no room");
    }
}

/* ---- what comes ----------------------------------------------------------------------------- */

void rbi_relay_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    struct rbi_face *face = user;
    struct way way;
    (void)bus;
    const int r = find_way(face, message, &way);
    if (r != 0) {
        refuse(face, message, r, 0, "nothing of that name is shown here");
    } else if (way.route->from->bus == NULL) {
        if (message->kind == RINGBUS_KIND_REQUEST ||
            !defer(face, message, face->bus, RINGBUS_E_NOT_READY)) {
            not_held(face, message);
            refuse(face, message, RINGBUS_E_NOT_READY, 0, "the bus behind it is not reached yet");
        }
    } else if (message->kind == RINGBUS_KIND_REQUEST) {
        way.route->from->active = true;
        relay_request(face, message, &way);
    } else {
        way.route->from->active = true;
        relay_oneway(face, message, &way);
    }
}

/* An instance had not handled it when it ended: who sent it is told, as far as it can be. */
static void undelivered(struct rbi_face *face, const struct ringbus_event *event)
{
    struct rbi_broker *broker = face->broker;
    struct ringbus_origin origin;
    int told = RINGBUS_E_PEER_GONE;
    broker->counters.undelivered++;
    if (ringbus_origin(face->bus, event->message, &origin) == 1) {
        RBI_LIST_EACH(node, spare, &broker->faces)
        {
            const struct rbi_face *other = RBI_CONTAINER_OF(node, struct rbi_face, link);
            if (told != 0 && other->bus != NULL && other != face) {
                told = ringbus_refuse(other->bus, &origin.addr,
                                      event->error != 0 ? event->error : RINGBUS_E_PEER_GONE,
                                      method_of(event->message));
            }
        }
    }
    rbi_log(RBI_LOG_WARNING, "broker_undelivered", "to=%s told=%s", event->path,
            told == 0 ? "yes" : "no");
}

/* A peer is gone, or one of our names is. */
static void went(struct rbi_face *face, const struct ringbus_event *event)
{
    struct ringbus_addr self;
    struct rbi_caller *caller = rbi_caller_find(face, &event->addr);
    if (caller != NULL) {
        caller->held_ns = 0; /* what it had left, if it was not read, went back with it */
        rbi_caller_settle(face->broker, caller);
    }
    if (event->reason == RINGBUS_REASON_REPLACED && ringbus_self(face->bus, &self) == 0 &&
        memcmp(&self, &event->addr, sizeof self) == 0) {
        rbi_log(RBI_LOG_ERROR, "broker_replaced", "path=%s", face->path);
        face->broker->replaced = true;
    }
}

void rbi_relay_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    struct rbi_face *face = user;
    (void)bus;
    switch ((unsigned)event->type) {
    case RINGBUS_EVENT_ADDED:
        rbi_routes_seen(face->broker, face, event->path);
        break;
    case RINGBUS_EVENT_UNDELIVERED:
        undelivered(face, event);
        break;
    case RINGBUS_EVENT_REFUSED:
        face->broker->counters.told_refused += event->count;
        rbi_log(RBI_LOG_WARNING, "broker_dropped_beyond", "by=%s error=%s count=%llu", event->path,
                ringbus_error_name(event->error), (unsigned long long)event->count);
        break;
    case RINGBUS_EVENT_DAEMON_LOST:
        rbi_log(RBI_LOG_WARNING, "broker_daemon_lost", "path=%s", face->path);
        break;
    case RINGBUS_EVENT_DAEMON_BACK:
        rbi_log(RBI_LOG_INFO, "broker_daemon_back", "path=%s", face->path);
        break;
    case RINGBUS_EVENT_DOWN:
        went(face, event);
        break;
    default:
        break;
    }
}
