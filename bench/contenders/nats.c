/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/contenders/nats.c - NATS: a server of its own on loopback, subscriptions polled
 * synchronously. A round trip is written at once; a stream is left to the flusher.
 */
#include "bench/loops.h"

#include <nats/nats.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct nats_end {
    natsOptions *options;
    natsConnection *connection;
    natsSubscription *subscription;
    char out[32];
    char in[32];
};

/* A port that is free now; the sides find it in the place's memory. */
static int free_port(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof addr;
    int port = -1;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (const struct sockaddr *)&addr, length) == 0 &&
        getsockname(fd, (struct sockaddr *)&addr, &length) == 0) {
        port = ntohs(addr.sin_port);
    }
    (void)close(fd);
    return port;
}

static int server_setup(struct bench_place *place)
{
    char port[16];
    const int number = free_port();
    const char *argv[] = {BENCH_NATS_SERVER, "-a", "127.0.0.1", "-p", port, NULL};
    (void)snprintf(port, sizeof port, "%d", number);
    if (number < 0 || bench_place_memory(place, 4096) != 0) {
        return -1;
    }
    memcpy(place->memory, &number, sizeof number);
    return bench_place_helper(place, argv);
}

static int connect_to(struct nats_end *n, const struct bench_place *place, bool at_once)
{
    char url[64];
    int port = 0;
    memcpy(&port, place->memory, sizeof port);
    (void)snprintf(url, sizeof url, "nats://127.0.0.1:%d", port);
    if (natsOptions_Create(&n->options) != NATS_OK) {
        return -1;
    }
    (void)natsOptions_SetURL(n->options, url);
    (void)natsOptions_SetSendAsap(n->options, at_once);
    for (int i = 0; i < 500; i++) {
        if (natsConnection_Connect(&n->connection, n->options) == NATS_OK) {
            return 0;
        }
        (void)usleep(10000);
    }
    return -1;
}

static int open_side(struct bench_end *end, bool at_once)
{
    struct nats_end *n = calloc(1, sizeof *n);
    natsMsg *message = NULL;
    end->state = n;
    if (n == NULL || connect_to(n, end->place, at_once) != 0) {
        return -1;
    }
    (void)snprintf(n->out, sizeof n->out, "to%d", !end->side);
    (void)snprintf(n->in, sizeof n->in, "to%d", end->side);
    if (natsConnection_SubscribeSync(&n->subscription, n->connection, n->in) != NATS_OK ||
        natsSubscription_SetPendingLimits(n->subscription, -1, -1) != NATS_OK ||
        natsConnection_Flush(n->connection) != NATS_OK) {
        return -1;
    }
    /* The other side has subscribed when what we send to it comes back. */
    for (int i = 0; i < 1000 && message == NULL; i++) {
        (void)natsConnection_Publish(n->connection, n->out, "hi", 2);
        (void)natsConnection_Flush(n->connection);
        (void)natsSubscription_NextMsg(&message, n->subscription, 10);
    }
    if (message == NULL) {
        return -1;
    }
    (void)natsConnection_Publish(n->connection, n->out, "go", 2);
    (void)natsConnection_Flush(n->connection);
    for (;;) { /* greetings that are still under way end with the other side's "go" */
        const bool gone = memcmp(natsMsg_GetData(message), "go", 2) == 0;
        natsMsg_Destroy(message);
        if (gone) {
            return 0;
        }
        if (natsSubscription_NextMsg(&message, n->subscription, 5000) != NATS_OK) {
            return -1;
        }
    }
}

static int open_at_once(struct bench_end *end)
{
    return open_side(end, true);
}

static int open_buffered(struct bench_end *end)
{
    return open_side(end, false);
}

static void close_side(struct bench_end *end)
{
    struct nats_end *n = end->state;
    if (n != NULL) {
        natsSubscription_Destroy(n->subscription);
        natsConnection_Destroy(n->connection);
        natsOptions_Destroy(n->options);
        free(n);
    }
}

static int send_nats(struct bench_end *end, const unsigned char *data, size_t size)
{
    struct nats_end *n = end->state;
    return natsConnection_Publish(n->connection, n->out, data, (int)size) == NATS_OK ? 1 : -1;
}

static int poll_nats(struct bench_end *end, unsigned max)
{
    struct nats_end *n = end->state;
    natsMsg *message = NULL;
    (void)max; /* one at a time is all that there is */
    const natsStatus status = natsSubscription_NextMsg(&message, n->subscription, 1000);
    if (status != NATS_OK) {
        return status == NATS_TIMEOUT ? 0 : -1;
    }
    const unsigned char *data = (const unsigned char *)natsMsg_GetData(message);
    const size_t size = (size_t)natsMsg_GetDataLength(message);
    bench_take(end, data, size);
    const bool broken = end->echo && send_nats(end, data, size) != 1;
    natsMsg_Destroy(message);
    return broken ? -1 : 1;
}
BENCH_LOOPS(nats, send_nats, poll_nats)

const struct bench_contender bench_nats = {
    .name = "nats",
    .package = "libnats-dev",
    .text = "nats-server on loopback, each message written at once, blocking",
    .abilities = BENCH_CAN_SLEEP | BENCH_TRIPS,
    .size_max = 512U << 10,
    .setup = server_setup,
    .open = open_at_once,
    .close = close_side,
    .trips = nats_trips,
};

const struct bench_contender bench_nats_buffered = {
    .name = "nats-buffered",
    .package = "libnats-dev",
    .text = "nats-server on loopback, messages gathered by the client's flusher, blocking",
    .abilities = BENCH_CAN_SLEEP | BENCH_STREAM,
    .size_max = 512U << 10,
    .setup = server_setup,
    .open = open_buffered,
    .close = close_side,
    .stream = nats_stream,
    .put = nats_put_loop,
    .take = nats_take_loop,
};
