/* SPDX-License-Identifier: Apache-2.0 */
/* bench/contenders/pipe.c - two pipes of 1 MiB (64 KiB where that is refused). */
#include "bench/contenders/stream.h"

#include <fcntl.h>
#include <unistd.h>

static int pipe_setup(struct bench_place *place)
{
    if (pipe2(place->fds, O_CLOEXEC) != 0 || pipe2(place->fds + 2, O_CLOEXEC) != 0) {
        return -1;
    }
    (void)fcntl(place->fds[1], F_SETPIPE_SZ, 1 << 20);
    (void)fcntl(place->fds[3], F_SETPIPE_SZ, 1 << 20);
    return 0;
}

static int pipe_open(struct bench_end *end)
{
    const int *fds = end->place->fds;
    return end->side == 0 ? stream_open(end, fds[2], fds[1]) : stream_open(end, fds[0], fds[3]);
}
BENCH_LOOPS(pipe, stream_send, stream_poll)

const struct bench_contender bench_pipe = {
    .name = "pipe",
    .package = "",
    .text = "two pipes of 1 MiB; non-blocking when busy",
    .abilities = BENCH_CAN_BUSY | BENCH_CAN_SLEEP | BENCH_PRIVATE | BENCH_TRIPS | BENCH_STREAM,
    .size_max = 1U << 20,
    .setup = pipe_setup,
    .open = pipe_open,
    .close = stream_close,
    .trips = pipe_trips,
    .stream = pipe_stream,
    .put = pipe_put_loop,
    .take = pipe_take_loop,
};
