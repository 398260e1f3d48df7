/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/instructions/group.h"

#include <stdio.h>
#include <time.h>

#define PREFIX     "/Test/local/host/w0/g0/"
#define PATIENCE_S 120
#define BATCH      1024

static void on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    struct group *group = user;
    group->received++;
    if (message->kind == RINGBUS_KIND_REQUEST) {
        group->errors +=
            ringbus_reply(bus, &message->reply_to, message->data, message->size, 0) != 1;
    }
}

static int open_server(struct group *group, const char *socket, unsigned i)
{
    char path[RINGBUS_PATH_MAX + 1];
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    (void)snprintf(path, sizeof path, PREFIX "%s/%u", group->cluster, i + 1);
    options.socket = socket;
    options.path = path;
    options.mode = group->mode;
    options.lane_bytes = group->lane_bytes;
    options.pool[0].chunk_bytes = 64; /* replies are small */
    options.pool[0].count = 1;
    options.on_message = on_message;
    options.user = group;
    if (ringbus_open(&options, &group->servers[i]) != 0) {
        (void)fprintf(stderr, "instructions: open %s: %s\n", path, ringbus_errmsg(NULL));
        return -1;
    }
    return 0;
}

static int open_client(struct group *group, const char *socket)
{
    char path[RINGBUS_PATH_MAX + 1];
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    options.socket = socket;
    options.mode = group->mode;
    options.lane_bytes = group->lane_bytes;
    options.ping_interval_ms = 60000; /* none while the links come up, however slowly */
    (void)snprintf(path, sizeof path, PREFIX "%s", group->cluster);
    if (ringbus_open(&options, &group->client) != 0) {
        (void)fprintf(stderr, "instructions: open: %s\n", ringbus_errmsg(NULL));
        return -1;
    }
    if (ringbus_target(group->client, path, NULL, &group->any) != 0) {
        (void)fprintf(stderr, "instructions: target %s: %s\n", path, ringbus_errmsg(group->client));
        return -1;
    }
    group->first = group->any;
    group->first.instance = 1;
    return 0;
}

static uint64_t links(const struct ringbus *bus)
{
    struct ringbus_stats stats = {.struct_size = sizeof stats};
    return ringbus_stats(bus, &stats) == 0 ? stats.links : 0;
}

static void step(struct ringbus *bus)
{
    (void)ringbus_wait(bus, 0);
    (void)ringbus_poll(bus, BATCH);
}

/* Both sides of each link: the last READY_ACK has been read when the servers have theirs. */
static uint64_t step_all(struct group *group)
{
    uint64_t up = 0;
    step(group->client);
    for (unsigned i = 0; i < group->count; i++) {
        step(group->servers[i]);
        up += links(group->servers[i]);
    }
    return up + links(group->client);
}

int group_open(struct group *group, const char *socket)
{
    for (unsigned i = 0; i < group->count; i++) {
        if (open_server(group, socket, i) != 0) {
            return -1;
        }
    }
    if (open_client(group, socket) != 0) {
        return -1;
    }
    const time_t end = time(NULL) + PATIENCE_S;
    while (step_all(group) != UINT64_C(2) * group->count) {
        if (time(NULL) > end) {
            (void)fprintf(stderr, "instructions: %llu of %u links to %s: %s\n",
                          (unsigned long long)links(group->client), group->count, group->cluster,
                          ringbus_errmsg(group->client));
            return -1;
        }
    }
    return 0;
}

void group_settle(struct group *group)
{
    /* A tick may be 1,024 polls away; a PING takes one of its sender, of its receiver, and back. */
    for (unsigned i = 0; i < 4 * 1024; i++) {
        (void)ringbus_poll(group->client, BATCH);
        for (unsigned k = 0; k < group->count; k++) {
            (void)ringbus_poll(group->servers[k], BATCH);
        }
    }
}

int group_drain(struct group *group)
{
    /* Nobody else writes: a round that brings nothing means that there is nothing. */
    for (uint64_t before = ~group->received;
         group->received != group->sent && before != group->received;) {
        before = group->received;
        for (unsigned i = 0; i < group->count; i++) {
            (void)ringbus_poll(group->servers[i], BATCH);
        }
    }
    if (group->received != group->sent || group->errors != 0) {
        (void)fprintf(stderr, "instructions: %s: %llu of %llu messages came, %llu calls failed\n",
                      group->cluster, (unsigned long long)group->received,
                      (unsigned long long)group->sent, (unsigned long long)group->errors);
        return -1;
    }
    return 0;
}

void group_close(struct group *group)
{
    (void)ringbus_close(group->client, 0);
    for (unsigned i = 0; i < group->count; i++) {
        (void)ringbus_close(group->servers[i], 0);
    }
}
