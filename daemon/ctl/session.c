/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/ctl/session.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t stopping;
static struct ringbus *volatile signal_bus; /* what the handler wakes */

static void on_signal(int number)
{
    struct ringbus *bus = signal_bus;
    (void)number;
    stopping = 1;
    if (bus != NULL) {
        ringbus_wake(bus);
    }
}

bool rbi_ctl_stopping(void)
{
    return stopping != 0;
}

/* A second signal ends the program at once: the first may be waiting for a receiver. */
static void signals_catch(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = (int)SA_RESETHAND;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

const char *rbi_ctl_reason_name(enum ringbus_reason reason)
{
    static const char *const names[] = {"none",     "left",    "crashed",   "silent",
                                        "bad peer", "refused", "denied",    "replaced",
                                        "given up", "ended",   "resources", "unreachable"};
    return (size_t)reason < RBI_ARRAY_SIZE(names) ? names[reason] : "?";
}

/* True when an event is about the receiver that was asked for. */
static bool about_target(const struct rbi_ctl_session *session, const struct ringbus_event *event)
{
    return event->addr.cluster == session->to.cluster &&
           (session->to.instance == RINGBUS_ANY || event->addr.instance == session->to.instance);
}

static void on_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    struct rbi_ctl_session *session = user;
    bool ours = about_target(session, event);
    if (event->type == RINGBUS_EVENT_UNDELIVERED) {
        session->undelivered++;
    } else if (ours && event->type == RINGBUS_EVENT_READY) {
        session->ready++;
    } else if (ours && event->type == RINGBUS_EVENT_LINK_FAILED) {
        session->link_error = event->error != 0 ? event->error : RINGBUS_E_NOT_READY;
    } else if (ours && event->type == RINGBUS_EVENT_DOWN && session->ready > 0) {
        session->ready--;
        session->lost = true;
        session->lost_reason = event->reason;
    }
    if (session->on_event != NULL) {
        session->on_event(bus, event, session->user);
    }
}

int rbi_ctl_session_open(struct rbi_ctl_session *session,
                         const struct rbi_ctl_args *args,
                         struct ringbus_options *options)
{
    session->args = args;
    options->socket = args->socket;
    options->connect_timeout_ms = args->timeout_ms;
    options->on_event = on_event;
    options->user = session;
    signals_catch();
    int r = ringbus_open(options, &session->bus);
    if (r != 0) {
        session->bus = NULL;
        return rbi_ctl_fail_bus(args, r, "cannot open", ringbus_errmsg(NULL));
    }
    signal_bus = session->bus;
    return RBI_CTL_OK;
}

int rbi_ctl_session_step(struct rbi_ctl_session *session, int timeout_ms)
{
    int r = ringbus_poll(session->bus, 1000);
    if (r == 0 && timeout_ms != 0) {
        r = ringbus_wait(session->bus, timeout_ms);
    }
    if (r < 0) {
        return rbi_ctl_fail_bus(session->args, r, "the bus failed", ringbus_errmsg(session->bus));
    }
    return RBI_CTL_OK;
}

#define INSTANCES_MAX 1024U
static struct ringbus_instance instances[INSTANCES_MAX]; /* too large for the stack */

/* Instances of the cluster that was asked for, into the array above. Their number, or why not. */
static int instances_read(struct rbi_ctl_session *session)
{
    char cluster[RINGBUS_PATH_MAX + 1];
    snprintf(cluster, sizeof cluster, "%s", session->to_path);
    if (session->to.instance != RINGBUS_ANY) {
        *strrchr(cluster, '/') = '\0';
    }
    int count = ringbus_instances(session->bus, cluster, instances, INSTANCES_MAX);
    return count < (int)INSTANCES_MAX ? count : (int)INSTANCES_MAX;
}

/* Nobody became READY in time: is anybody there at all? */
static int not_ready(struct rbi_ctl_session *session)
{
    const struct rbi_ctl_args *args = session->args;
    if (session->link_error != 0) {
        return rbi_ctl_fail_bus(args, session->link_error, session->to_path, NULL);
    }
    const int count = instances_read(session);
    bool there = count > 0 && session->to.instance == RINGBUS_ANY;
    for (int i = 0; i < count; i++) {
        there = there || instances[i].addr.instance == session->to.instance;
    }
    if (count == RINGBUS_E_NO_SERVICE) {
        return rbi_ctl_fail(args, RBI_CTL_NOT_FOUND,
                            "there is no service %s: nobody was ever there", session->to_path);
    }
    if (!there) {
        return rbi_ctl_fail(args, RBI_CTL_NOT_FOUND, "nobody is at %s", session->to_path);
    }
    return rbi_ctl_fail(args, RBI_CTL_TIMEOUT, "%s is there, but was not ready in time",
                        session->to_path);
}

/* A key chooses among the linked ones: the same one each time only when all are linked. */
static bool enough_ready(struct rbi_ctl_session *session)
{
    if (session->ready == 0) {
        return false;
    }
    if (session->to.instance != RINGBUS_ANY || session->args->key == NULL) {
        return true;
    }
    const int count = instances_read(session);
    for (int i = 0; i < count; i++) {
        bool wanted = instances[i].weight > 0 && (instances[i].state == RINGBUS_INSTANCE_READY ||
                                                  instances[i].state == RINGBUS_INSTANCE_BUSY);
        if (wanted && !instances[i].linked) {
            return false;
        }
    }
    return true;
}

int rbi_ctl_session_wait_ready(struct rbi_ctl_session *session)
{
    uint64_t end_ns = rbi_ctl_now_ns() + (uint64_t)session->args->timeout_ms * 1000000;
    while (!enough_ready(session)) {
        uint64_t now_ns = rbi_ctl_now_ns();
        bool denied = session->ready == 0 && session->link_error != 0 &&
                      ringbus_error_kind(session->link_error) == RINGBUS_ERROR_DENIED;
        if (now_ns >= end_ns && session->ready > 0) {
            break; /* those that are not linked by now are as good as gone */
        }
        if (now_ns >= end_ns || denied) {
            return not_ready(session);
        }
        if (stopping) {
            return rbi_ctl_fail(session->args, RBI_CTL_FAILED, "interrupted");
        }
        int r = rbi_ctl_session_step(session, (int)((end_ns - now_ns) / 1000000) + 1);
        if (r != RBI_CTL_OK) {
            return r;
        }
    }
    session->lost = false;
    return RBI_CTL_OK;
}

int rbi_ctl_session_target(struct rbi_ctl_session *session, const char *path)
{
    struct ringbus_target_options options = {.struct_size = sizeof options,
                                             .ping_interval_ms = 10000,
                                             .ping_misses = 100,
                                             .wait_ms = session->wait_ms};
    int r = ringbus_resolve(path, &session->to);
    session->to_path = path;
    if (r == 0) {
        r = ringbus_target(session->bus, path, &options, NULL);
    }
    if (r < 0) {
        return rbi_ctl_fail_bus(session->args, r, path, ringbus_errmsg(session->bus));
    }
    return rbi_ctl_session_wait_ready(session);
}

void rbi_ctl_message_of(const struct rbi_ctl_args *args, struct ringbus_message_options *out)
{
    *out = (struct ringbus_message_options){
        .struct_size = sizeof *out, .tag = args->tag, .method = args->method};
    if (args->key != NULL) {
        out->flags = RINGBUS_KEY;
        out->key = ringbus_key(args->key, strlen(args->key));
    }
    memcpy(out->labels, args->labels, sizeof out->labels);
}

int rbi_ctl_session_close(struct rbi_ctl_session *session, uint32_t drain_ms)
{
    if (session->bus == NULL) {
        return RBI_CTL_OK;
    }
    signal_bus = NULL;
    int r = ringbus_close(session->bus, drain_ms);
    session->bus = NULL;
    if (r < 0 && drain_ms > 0) {
        return rbi_ctl_fail_bus(session->args, r, "not everything was consumed", NULL);
    }
    return RBI_CTL_OK;
}

int rbi_ctl_input_read(const struct rbi_ctl_args *args,
                       size_t max,
                       unsigned char **out,
                       size_t *out_size)
{
    size_t room = (size_t)64 << 10;
    size_t used = 0;
    unsigned char *bytes = malloc(room);
    while (bytes != NULL) {
        ssize_t got = read(STDIN_FILENO, bytes + used, room - used);
        if (got == 0) {
            *out = bytes;
            *out_size = used;
            return RBI_CTL_OK;
        }
        if (got < 0 && errno != EINTR) {
            free(bytes);
            return rbi_ctl_fail(args, RBI_CTL_FAILED, "standard input: %s",
                                strerror(errno)); /* NOLINT(concurrency-mt-unsafe) */
        }
        used += got > 0 ? (size_t)got : 0;
        if (used > max) {
            free(bytes);
            return rbi_ctl_fail(args, RBI_CTL_FAILED, "standard input is longer than %zu bytes",
                                max);
        }
        if (used == room) {
            unsigned char *larger = realloc(bytes, room * 2);
            if (larger == NULL) {
                free(bytes);
            }
            bytes = larger;
            room *= 2;
        }
    }
    return rbi_ctl_fail(args, RBI_CTL_FAILED, "not enough memory");
}

void rbi_ctl_pool_for(struct ringbus_options *options, size_t size)
{
    const struct ringbus_pool_class small = {.chunk_bytes = 64U << 10, .count = 16};
    options->pool[0] = small;
    if (size > small.chunk_bytes) {
        options->pool[1].chunk_bytes = (uint32_t)((size + 63) & ~(size_t)63);
        options->pool[1].count = 1;
    }
}
