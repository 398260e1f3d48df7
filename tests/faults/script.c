/* SPDX-License-Identifier: Apache-2.0 */
#include "faults/script.h"

#include "support/bus.h"
#include "support/raw.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SERVER   "/game/eu/pc/w1/core/server"
#define SERVER_1 SERVER "/1"
#define NEAR     "/game/eu/pc/w1/core/near"
#define NEAR_1   NEAR "/1"

#define RELOAD_AGAIN_MS 500U

struct end {
    struct ringbus *bus;
    unsigned ready;
    unsigned down;
    unsigned replied;
    unsigned ended; /* requests, whichever way */
};

struct play {
    const struct cluster *cluster;
    struct bystanders *bystanders;
    struct end server;
    struct end client;
    struct ringbus_addr to;
};

/* ---- what comes ------------------------------------------------------------------------------ */

static void on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    (void)user;
    if (message->kind == RINGBUS_KIND_REQUEST) {
        (void)ringbus_reply(bus, &message->reply_to, message->data, message->size, 0);
    }
}

static void on_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    struct end *end = user;
    (void)bus;
    end->ready += event->type == RINGBUS_EVENT_READY;
    end->down += event->type == RINGBUS_EVENT_DOWN;
}

static void on_reply(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    struct end *end = context;
    (void)bus;
    end->replied += result->outcome == RINGBUS_REPLIED;
    end->ended++;
}

static void turn(struct ringbus *bus, int wait_ms)
{
    if (bus != NULL && ringbus_poll(bus, 100) == 0) {
        (void)ringbus_wait(bus, wait_ms);
    }
}

static void turn_all(const struct play *play)
{
    turn(play->bystanders->server, 0);
    turn(play->bystanders->client, 0);
    turn(play->server.bus, 0);
    turn(play->client.bus, 1);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/** Tries until it has happened; an error may come meanwhile, but no bug and no blame. */
#define UNTIL(play, condition)                                                                     \
    for (const uint64_t deadline_ms_ = test_now_ms() + SCRIPT_MS; !(condition);) {                 \
        if (test_now_ms() > deadline_ms_) {                                                        \
            return #condition;                                                                     \
        }                                                                                          \
        turn_all(play);                                                                            \
    }

static bool blamed; /* an error of a kind that no fault of the daemon may have */

static bool worked(const char *call, int r, const struct ringbus *bus)
{
    const enum ringbus_error_kind kind = ringbus_error_kind(r);
    if (r < 0 && (kind == RINGBUS_ERROR_USAGE || kind == RINGBUS_ERROR_INTERNAL)) {
        (void)fprintf(stderr, "%s: %s: %s\n", call, ringbus_error_name(r), ringbus_errmsg(bus));
        blamed = true;
    }
    return r >= 0;
}

#define WORKED(call, bus) worked(#call, call, bus)

static int open_end(struct end *end, const struct cluster *cluster, const char *path)
{
    struct ringbus_options options = node_options(cluster, path);
    const struct ringbus_pool_class pool[] = {{4096, 2}};
    memcpy(options.pool, pool, sizeof pool);
    options.lane_bytes = 4096;
    options.connect_timeout_ms = SCRIPT_MS / 2;
    options.on_message = on_message;
    options.on_event = on_event;
    options.user = end;
    return ringbus_open(&options, &end->bus);
}

static bool ask(struct play *play)
{
    const unsigned replied = play->client.replied;
    const unsigned ended = play->client.ended;
    if (ringbus_request(play->client.bus, &play->to, 0, "?", 1, 0, 1000, on_reply, &play->client) <
        0) {
        return false;
    }
    while (play->client.ended == ended) {
        turn_all(play);
    }
    return play->client.replied > replied;
}

static const char *meet(struct play *play)
{
    UNTIL(play, WORKED(open_end(&play->server, play->cluster, SERVER_1), NULL))
    UNTIL(play, WORKED(open_end(&play->client, play->cluster, NULL), NULL))
    UNTIL(play, WORKED(ringbus_watch(play->client.bus, "/game"), play->client.bus))
    UNTIL(play, WORKED(ringbus_target(play->client.bus, SERVER, NULL, &play->to), play->client.bus))
    UNTIL(play, play->client.ready > 0 && play->server.ready > 0)
    UNTIL(play, ask(play))
    return NULL;
}

static const char *query(struct play *play)
{
    UNTIL(play, raw_status(play->cluster->socket, "endpoints") != UINT64_MAX)
    return NULL;
}

static bool has_reloaded(const struct cluster *cluster, unsigned before, uint64_t *again_ms)
{
    if (cluster_log_count(cluster, "reload") > before) {
        return true; /* or says why not: the old configuration stays */
    }
    if (test_now_ms() >= *again_ms) {
        (void)kill(cluster->pid, SIGHUP);
        *again_ms = test_now_ms() + RELOAD_AGAIN_MS;
    }
    return false;
}

static const char *reload(struct play *play)
{
    const unsigned before = cluster_log_count(play->cluster, "reload");
    uint64_t again_ms = 0;
    UNTIL(play, has_reloaded(play->cluster, before, &again_ms))
    return NULL;
}

/** Memory that the daemon will read, or -1. */
static int seal(const char *text)
{
    const int fd = memfd_create("script", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const ssize_t size = (ssize_t)strlen(text);
    if (fd >= 0 && (pwrite(fd, text, (size_t)size, 0) != size ||
                    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/** Applies a text that changes a policy, a weight and a rule. @return whether it holds */
static bool has_applied(const struct cluster *cluster)
{
    static unsigned times;
    struct raw raw;
    struct raw_message message;
    struct rbi_wire_apply body = {.size = 0};
    char text[256];
    (void)snprintf(text, sizeof text,
                   "clusters: [{match: " SERVER ", retry: {failback_max: %u}}]\n"
                   "instances: {" SERVER_1 ": {weight: %u}}\n"
                   "rights: {rules: [{id: r%u, verbs: [admin], from: /nobody/**}]}\n",
                   times % 9 + 1, times % 9 + 1, times % 9);
    const int fd = seal(text);
    bool applied = false;
    if (fd >= 0 && raw_connect(&raw, cluster->socket) == 0) {
        body.size = (uint32_t)strlen(text);
        if (raw_hello(&raw) == 0 && raw_send(&raw, RBI_WIRE_APPLY, &body, &fd, 1) == 0 &&
            raw_receive(&raw, &message, RAW_TIMEOUT_MS) == 0) {
            applied = message.header.type == RBI_WIRE_APPLIED;
            raw_message_deinit(&message);
        }
        raw_close(&raw);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    times += applied;
    return applied;
}

static const char *apply(struct play *play)
{
    UNTIL(play, has_applied(play->cluster))
    UNTIL(play, ask(play))
    return NULL;
}

static const char *drain(struct play *play)
{
    UNTIL(play, WORKED(ringbus_drain(play->server.bus), play->server.bus))
    UNTIL(play, ringbus_drained(play->server.bus) == 1)
    UNTIL(play, WORKED(ringbus_undrain(play->server.bus), play->server.bus))
    UNTIL(play, ask(play))
    return NULL;
}

static const char *part(struct play *play)
{
    const unsigned down = play->server.down;
    UNTIL(play, WORKED(ringbus_untarget(play->client.bus, SERVER), play->client.bus))
    UNTIL(play, play->client.down > 0 && play->server.down > down)
    return NULL;
}

const char *script_play(const struct cluster *cluster, struct bystanders *bystanders)
{
    struct play play = {.cluster = cluster, .bystanders = bystanders};
    blamed = false;
    const char *missing = meet(&play);
    missing = missing != NULL ? missing : query(&play);
    missing = missing != NULL ? missing : reload(&play);
    missing = missing != NULL ? missing : apply(&play);
    missing = missing != NULL ? missing : drain(&play);
    missing = missing != NULL ? missing : part(&play);
    (void)ringbus_close(play.client.bus, 0);
    (void)ringbus_close(play.server.bus, 0);
    return missing == NULL && blamed ? "an error of the right kind" : missing;
}

/* ---- bystanders ------------------------------------------------------------------------------ */

static void on_near_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    struct bystanders *bystanders = user;
    (void)bus;
    bystanders->links_lost += event->type == RINGBUS_EVENT_DOWN;
}

static void on_near_reply(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    struct bystanders *bystanders = context;
    (void)bus;
    bystanders->answers += result->outcome == RINGBUS_REPLIED;
}

int bystanders_open(struct bystanders *bystanders, const struct cluster *cluster)
{
    struct ringbus_options options = node_options(cluster, NEAR_1);
    memset(bystanders, 0, sizeof *bystanders);
    options.on_message = on_message;
    options.on_event = on_near_event;
    options.user = bystanders;
    int r = ringbus_open(&options, &bystanders->server);
    options.path = NULL;
    r = r != 0 ? r : ringbus_open(&options, &bystanders->client);
    return r != 0 ? r : ringbus_target(bystanders->client, NEAR, NULL, &bystanders->to);
}

bool bystanders_are_well(struct bystanders *bystanders)
{
    const unsigned answers = bystanders->answers;
    const uint64_t deadline_ms = test_now_ms() + SCRIPT_MS;
    bool asked = false;
    while (bystanders->answers == answers && test_now_ms() < deadline_ms) {
        asked = asked || ringbus_request(bystanders->client, &bystanders->to, 0, "?", 1, 0, 3000,
                                         on_near_reply, bystanders) == 1;
        turn(bystanders->server, 0);
        turn(bystanders->client, 1);
    }
    return bystanders->answers > answers && bystanders->links_lost == 0;
}

void bystanders_close(struct bystanders *bystanders)
{
    (void)ringbus_close(bystanders->client, 0);
    (void)ringbus_close(bystanders->server, 0);
    memset(bystanders, 0, sizeof *bystanders);
}
