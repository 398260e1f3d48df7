/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/contenders/zmq.c - ZeroMQ over ipc: a pair of PAIR sockets, and ROUTER to ROUTER, as
 * services that address each other would use it.
 */
#include "bench/loops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zmq.h>

#define MESSAGE_MAX (1U << 20)

struct zmq_end {
    void *context;
    void *socket;
    bool router;
    unsigned char bytes[MESSAGE_MAX];
};

/* Both sides write and read one frame, so that the first measured message finds all open. */
static int greet(struct bench_end *end, struct zmq_end *z)
{
    char frame[8];
    const char *peer = end->side == 0 ? "1" : "0";
    for (int i = 0; i < 5000; i++) {
        if (z->router && zmq_send(z->socket, peer, 1, ZMQ_SNDMORE) < 0) {
            (void)usleep(1000); /* not connected yet */
            continue;
        }
        (void)zmq_send(z->socket, "hi", 2, 0);
        if (z->router && zmq_recv(z->socket, frame, sizeof frame, 0) < 0) {
            return -1;
        }
        return zmq_recv(z->socket, frame, sizeof frame, 0) == 2 ? 0 : -1;
    }
    return -1;
}

static int open_zmq(struct bench_end *end, int type)
{
    char address[160];
    const int one = 1;
    const int patience = 10000;
    struct zmq_end *z = calloc(1, sizeof *z);
    end->state = z;
    if (z == NULL) {
        return -1;
    }
    z->router = type == ZMQ_ROUTER;
    z->context = zmq_ctx_new();
    z->socket = zmq_socket(z->context, type);
    (void)snprintf(address, sizeof address, "ipc://%s/zmq-%u", end->place->directory,
                   end->place->number);
    (void)zmq_setsockopt(z->socket, ZMQ_RCVTIMEO, &patience, sizeof patience);
    if (z->router) {
        (void)zmq_setsockopt(z->socket, ZMQ_ROUTER_MANDATORY, &one, sizeof one);
        (void)zmq_setsockopt(z->socket, ZMQ_ROUTING_ID, end->side == 0 ? "0" : "1", 1);
        (void)zmq_setsockopt(z->socket, ZMQ_CONNECT_ROUTING_ID, "1", 1);
    }
    const int r = end->side == 1 ? zmq_bind(z->socket, address) : zmq_connect(z->socket, address);
    return r != 0 ? -1 : greet(end, z);
}

static int pair_open(struct bench_end *end)
{
    return open_zmq(end, ZMQ_PAIR);
}

static int router_open(struct bench_end *end)
{
    return open_zmq(end, ZMQ_ROUTER);
}

static void zmq_end_close(struct bench_end *end)
{
    const int none = 0;
    struct zmq_end *z = end->state;
    if (z != NULL) {
        (void)zmq_setsockopt(z->socket, ZMQ_LINGER, &none, sizeof none);
        (void)zmq_close(z->socket);
        (void)zmq_ctx_term(z->context);
        free(z);
    }
}

static int send_zmq(struct bench_end *end, const unsigned char *data, size_t size)
{
    struct zmq_end *z = end->state;
    if (z->router && zmq_send(z->socket, end->side == 0 ? "1" : "0", 1, ZMQ_SNDMORE) < 0) {
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    }
    if (zmq_send(z->socket, data, size, 0) >= 0) {
        return 1;
    }
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

static int poll_zmq(struct bench_end *end, unsigned max)
{
    struct zmq_end *z = end->state;
    unsigned n = 0;
    while (n < max) {
        char from[8];
        const int flags = n > 0 ? ZMQ_DONTWAIT : 0;
        if (z->router && zmq_recv(z->socket, from, sizeof from, flags) < 0) {
            return n > 0 || errno == EAGAIN || errno == EINTR ? (int)n : -1;
        }
        const int got = zmq_recv(z->socket, z->bytes, sizeof z->bytes, z->router ? 0 : flags);
        if (got < 0) {
            return n > 0 || errno == EAGAIN || errno == EINTR ? (int)n : -1;
        }
        bench_take(end, z->bytes, (size_t)got);
        while (end->echo && send_zmq(end, z->bytes, (size_t)got) == 0) {
        }
        n++;
    }
    return (int)n;
}
BENCH_LOOPS(zmq, send_zmq, poll_zmq)

#define ZMQ_CONTENDER(symbol, word, how, open_fn)                                                  \
    const struct bench_contender symbol = {                                                        \
        .name = word,                                                                              \
        .package = "libzmq3-dev",                                                                  \
        .text = how,                                                                               \
        .abilities = BENCH_CAN_SLEEP | BENCH_PRIVATE | BENCH_TRIPS | BENCH_STREAM,                 \
        .size_max = MESSAGE_MAX,                                                                   \
        .open = open_fn,                                                                           \
        .close = zmq_end_close,                                                                    \
        .trips = zmq_trips,                                                                        \
        .stream = zmq_stream,                                                                      \
        .put = zmq_put_loop,                                                                       \
        .take = zmq_take_loop,                                                                     \
    }

ZMQ_CONTENDER(bench_zmq_pair,
              "zmq-pair",
              "ZeroMQ PAIR over ipc, blocking, one I/O thread",
              pair_open);
ZMQ_CONTENDER(bench_zmq_router,
              "zmq-router",
              "ZeroMQ ROUTER to ROUTER over ipc, blocking, one I/O thread",
              router_open);
