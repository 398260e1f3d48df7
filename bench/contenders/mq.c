/* SPDX-License-Identifier: Apache-2.0 */
/* bench/contenders/mq.c - POSIX message queues, unlinked as soon as they are open. */
#include "bench/loops.h"

#include <errno.h>
#include <mqueue.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MQ_MESSAGE_MAX 8192

static int mq_make(struct bench_place *place, unsigned way, long messages)
{
    char name[64];
    struct mq_attr attr = {.mq_maxmsg = messages, .mq_msgsize = MQ_MESSAGE_MAX};
    (void)snprintf(name, sizeof name, "/ringbus-bench-%d-%u-%u", (int)getpid(), place->number, way);
    place->fds[way] = mq_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600, &attr);
    if (place->fds[way] >= 0) {
        (void)mq_unlink(name);
    }
    return place->fds[way];
}

static int mq_setup(struct bench_place *place)
{
    for (unsigned way = 0; way < 2; way++) {
        /* As many as the user may have; 10 is what the kernel grants everybody. */
        if (mq_make(place, way, 40) < 0 && mq_make(place, way, 10) < 0) {
            return -1;
        }
    }
    return 0;
}

static int mq_side_open(struct bench_end *end)
{
    end->state = malloc(MQ_MESSAGE_MAX);
    return end->state == NULL ? -1 : 0;
}

static void mq_side_close(struct bench_end *end)
{
    free(end->state);
}

/* A time long past makes the two calls non-blocking for this side alone. */
static const struct timespec past;

static int send_mq(struct bench_end *end, const unsigned char *data, size_t size)
{
    const int fd = end->place->fds[end->side];
    const int r = end->sleep ? mq_send(fd, (const char *)data, size, 0)
                             : mq_timedsend(fd, (const char *)data, size, 0, &past);
    return r == 0 ? 1 : errno == ETIMEDOUT || errno == EINTR ? 0 : -1;
}

static int poll_mq(struct bench_end *end, unsigned max)
{
    const int fd = end->place->fds[!end->side];
    unsigned n = 0;
    while (n < max) {
        const ssize_t got = end->sleep && n == 0
                                ? mq_receive(fd, end->state, MQ_MESSAGE_MAX, NULL)
                                : mq_timedreceive(fd, end->state, MQ_MESSAGE_MAX, NULL, &past);
        if (got < 0) {
            return n > 0 || errno == ETIMEDOUT || errno == EINTR ? (int)n : -1;
        }
        bench_take(end, end->state, (size_t)got);
        while (end->echo && send_mq(end, end->state, (size_t)got) == 0) {
        }
        n++;
    }
    return (int)n;
}
BENCH_LOOPS(mq, send_mq, poll_mq)

const struct bench_contender bench_mq = {
    .name = "posix-mq",
    .package = "",
    .text = "POSIX message queue, 40 messages (10 where that is refused)",
    .abilities = BENCH_CAN_BUSY | BENCH_CAN_SLEEP | BENCH_PRIVATE | BENCH_TRIPS | BENCH_STREAM,
    .size_max = MQ_MESSAGE_MAX,
    .setup = mq_setup,
    .open = mq_side_open,
    .close = mq_side_close,
    .trips = mq_trips,
    .stream = mq_stream,
    .put = mq_put_loop,
    .take = mq_take_loop,
};
