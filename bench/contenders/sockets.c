/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/contenders/sockets.c - Unix stream and seqpacket sockets, and TCP over loopback: a round
 * trip without Nagle's delay, a stream with it, where it gathers small messages.
 */
#include "bench/contenders/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define PACKET_MAX (64U << 10)

static int unix_setup(struct bench_place *place)
{
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, place->fds);
}

static int packet_setup(struct bench_place *place)
{
    const int room = 1 << 20;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, place->fds) != 0) {
        return -1;
    }
    for (unsigned i = 0; i < 2; i++) {
        (void)setsockopt(place->fds[i], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    }
    return 0;
}

int stream_tcp_setup(struct bench_place *place)
{
    const int one = 1;
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof addr;
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    place->fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || place->fds[0] < 0 ||
        bind(listener, (const struct sockaddr *)&addr, length) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&addr, &length) != 0 ||
        connect(place->fds[0], (const struct sockaddr *)&addr, length) != 0) {
        (void)close(listener);
        return -1;
    }
    place->fds[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    (void)close(listener);
    for (unsigned i = 0; i < 2; i++) {
        (void)setsockopt(place->fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    return place->fds[1] < 0 ? -1 : 0;
}

static int socket_open(struct bench_end *end)
{
    const int fd = end->place->fds[end->side];
    return stream_open(end, fd, fd);
}

/* ---- seqpacket: the socket keeps the borders ------------------------------------------------- */

static int packet_open(struct bench_end *end)
{
    const int fd = end->place->fds[end->side];
    end->state = malloc(PACKET_MAX);
    if (!end->sleep) {
        (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    }
    return end->state == NULL ? -1 : 0;
}

static void packet_close(struct bench_end *end)
{
    free(end->state);
}

static int packet_send(struct bench_end *end, const unsigned char *data, size_t size)
{
    if (send(end->place->fds[end->side], data, size, MSG_NOSIGNAL) == (ssize_t)size) {
        return 1;
    }
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

static int packet_poll(struct bench_end *end, unsigned max)
{
    unsigned n = 0;
    while (n < max) {
        /* Having one, do not wait for the next. */
        const ssize_t got =
            recv(end->place->fds[end->side], end->state, PACKET_MAX, n > 0 ? MSG_DONTWAIT : 0);
        if (got <= 0) {
            return n > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)) ? (int)n : -1;
        }
        bench_take(end, end->state, (size_t)got);
        while (end->echo && packet_send(end, end->state, (size_t)got) == 0) {
        }
        n++;
    }
    return (int)n;
}

BENCH_LOOPS(stream, stream_send, stream_poll)
BENCH_LOOPS(packet, packet_send, packet_poll)

static void tcp_gather(const struct bench_end *end, bool gather)
{
    const int at_once = !gather;
    (void)setsockopt(end->place->fds[end->side], IPPROTO_TCP, TCP_NODELAY, &at_once,
                     sizeof at_once);
}

/* What is gathered when the last has been sent leaves as soon as gathering is off. */
static void tcp_put_loop(struct bench_end *end, const struct bench_loop *loop)
{
    tcp_gather(end, true);
    stream_put_loop(end, loop);
    tcp_gather(end, false);
}

static double tcp_stream(struct bench_end *end, const struct bench_loop *loop)
{
    const uint64_t start = bench_now_ns();
    if (end->side == 0) {
        tcp_put_loop(end, loop);
    } else {
        stream_take_loop(end, loop);
    }
    return (double)(bench_now_ns() - start) / (double)loop->count;
}

#define STREAM_CONTENDER(symbol, word, how, setup_fn, loops)                                       \
    const struct bench_contender symbol = {                                                        \
        .name = word,                                                                              \
        .package = "",                                                                             \
        .text = how,                                                                               \
        .abilities =                                                                               \
            BENCH_CAN_BUSY | BENCH_CAN_SLEEP | BENCH_PRIVATE | BENCH_TRIPS | BENCH_STREAM,         \
        .size_max = 1U << 20,                                                                      \
        .setup = setup_fn,                                                                         \
        .open = socket_open,                                                                       \
        .close = stream_close,                                                                     \
        .trips = stream_trips,                                                                     \
        .stream = loops##_stream,                                                                  \
        .put = loops##_put_loop,                                                                   \
        .take = stream_take_loop,                                                                  \
    }

STREAM_CONTENDER(bench_unix_stream,
                 "unix-stream",
                 "Unix stream socket; non-blocking when busy",
                 unix_setup,
                 stream);
STREAM_CONTENDER(bench_tcp,
                 "tcp",
                 "TCP over loopback; TCP_NODELAY in round trips; non-blocking when busy",
                 stream_tcp_setup,
                 tcp);

const struct bench_contender bench_unix_packet = {
    .name = "unix-seqpacket",
    .package = "",
    .text = "Unix seqpacket socket, 1 MiB buffer; non-blocking when busy",
    .abilities = BENCH_CAN_BUSY | BENCH_CAN_SLEEP | BENCH_PRIVATE | BENCH_TRIPS | BENCH_STREAM,
    .size_max = PACKET_MAX,
    .setup = packet_setup,
    .open = packet_open,
    .close = packet_close,
    .trips = packet_trips,
    .stream = packet_stream,
    .put = packet_put_loop,
    .take = packet_take_loop,
};
