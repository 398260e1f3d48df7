/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fault_pair.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Bytes of one direction that have come and are not passed on. */
#define UNDER_WAY (4U * 1024U * 1024U)
#define CHUNK     16384U

uint64_t fault_now_ns(void)
{
    struct timespec now;
    RBI_ASSERT(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/** Non-blocking; its outcome shows at the first read. */
static int connect_to(const struct sockaddr_in *address)
{
    const int on = 1;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    RBI_ASSERT(fd >= 0);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 &&
        errno != EINPROGRESS) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static void close_as(int fd, bool reset)
{
    const struct linger linger = {.l_onoff = 1, .l_linger = 0};
    if (fd < 0) {
        return;
    }
    if (reset) {
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    }
    (void)close(fd);
}

/* ---- pairs ----------------------------------------------------------------------------- */

static void pipe_empty(struct pipe *pipe)
{
    while (pipe->first) {
        struct chunk *chunk = pipe->first;
        pipe->first = chunk->next;
        free(chunk);
    }
    pipe->last = &pipe->first;
    pipe->size = 0;
}

void fault_pair_end(struct fault_world *world, struct pair *pair, bool reset)
{
    if (pair->there) {
        close_as(pair->pipes[0].from, reset);
        close_as(pair->pipes[0].to, reset);
        close_as(pair->silent, reset);
        pipe_empty(&pair->pipes[0]);
        pipe_empty(&pair->pipes[1]);
        pair->there = false;
        atomic_fetch_sub(&world->there, 1);
    }
}

static void pair_connect(struct fault_world *world, struct pair *pair)
{
    const int fd = connect_to(&world->faults.target);
    pair->held = false;
    if (fd < 0) {
        fault_pair_end(world, pair, true);
        return;
    }
    pair->pipes[0].to = fd;
    pair->pipes[1].from = fd;
    if (world->faults.door == FAULT_TWICE) {
        pair->silent = connect_to(&world->faults.target);
    }
}

void fault_pair_begin(struct fault_world *world, int fd)
{
    const int on = 1;
    struct pair *pair = world->pairs;
    while (pair->there) {
        pair++;
        RBI_ASSERT(pair < world->pairs + FAULT_PAIRS);
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    *pair = (struct pair){.there = true, .silent = -1};
    pair->pipes[0] = (struct pipe){.from = fd, .to = -1};
    pair->pipes[1] = (struct pipe){.from = -1, .to = fd};
    pair->pipes[0].last = &pair->pipes[0].first;
    pair->pipes[1].last = &pair->pipes[1].first;
    atomic_fetch_add(&world->came, 1);
    atomic_fetch_add(&world->there, 1);
    if (world->faults.door == FAULT_HOLD) {
        pair->held = true;
    } else if (world->faults.door != FAULT_DEAF) {
        pair_connect(world, pair);
    }
}

/* ---- bytes ----------------------------------------------------------------------------- */

static bool passes(int result)
{
    return result < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOTCONN);
}

static bool pipe_reads(const struct fault_world *world, const struct pipe *pipe, unsigned way)
{
    return pipe->from >= 0 && !pipe->ended && !(world->faults.stalled & way) &&
           pipe->size < UNDER_WAY;
}

/** @return false: an error ends the connection */
static bool pipe_read(struct fault_world *world, struct pipe *pipe, unsigned way)
{
    while (pipe_reads(world, pipe, way)) {
        struct chunk *chunk = malloc(sizeof(*chunk));
        RBI_ASSERT(chunk);
        const ssize_t got = recv(pipe->from, chunk->bytes, CHUNK, MSG_DONTWAIT);
        if (got <= 0 || (world->faults.swallowed & way)) {
            free(chunk);
            if (got > 0) {
                continue;
            }
            pipe->ended = got == 0;
            return got == 0 || passes((int)got);
        }
        chunk->next = NULL;
        chunk->begin = 0;
        chunk->end = (unsigned)got;
        chunk->due_ns = fault_now_ns() + (world->faults.delayed & way ? world->faults.delay_ns : 0);
        *pipe->last = chunk;
        pipe->last = &chunk->next;
        pipe->size += chunk->end;
    }
    return true;
}

/** Bytes of the first chunk that may go now. */
static unsigned
pipe_may_pass(const struct fault_world *world, const struct pipe *pipe, unsigned way)
{
    const struct chunk *chunk = pipe->first;
    if (!chunk || pipe->to < 0 || (world->faults.stalled & way) || chunk->due_ns > fault_now_ns()) {
        return 0;
    }
    uint64_t size = chunk->end - chunk->begin;
    if (world->faults.piece) {
        size = rbi_min_u64(size, world->faults.piece);
    }
    return (unsigned)rbi_min_u64(size, world->faults.cut_at[way - 1] -
                                           atomic_load(&world->passed[way - 1]));
}

/** Whether the byte behind which it ends has passed; once. */
static bool is_cut(struct fault_world *world, unsigned way)
{
    if (atomic_load(&world->passed[way - 1]) < world->faults.cut_at[way - 1]) {
        return false;
    }
    world->faults.cut_at[way - 1] = FAULT_NEVER;
    return true;
}

static void pipe_drop_first(struct pipe *pipe)
{
    struct chunk *chunk = pipe->first;
    pipe->first = chunk->next;
    if (!pipe->first) {
        pipe->last = &pipe->first;
    }
    free(chunk);
}

/** @return false: the connection is over */
static bool pipe_write(struct fault_world *world, struct pipe *pipe, unsigned way)
{
    unsigned size = 0;
    if (pipe->first && is_cut(world, way)) {
        return false; /* it had passed before this was asked for */
    }
    while ((size = pipe_may_pass(world, pipe, way)) > 0) {
        struct chunk *chunk = pipe->first;
        const ssize_t sent =
            send(pipe->to, chunk->bytes + chunk->begin, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0) {
            return passes(-1);
        }
        atomic_fetch_add(&world->passed[way - 1], (uint64_t)sent);
        chunk->begin += (unsigned)sent;
        pipe->size -= (unsigned)sent;
        if (chunk->begin == chunk->end) {
            pipe_drop_first(pipe);
        }
        if (is_cut(world, way)) {
            return false;
        }
    }
    if (pipe->ended && !pipe->first && !pipe->told && pipe->to >= 0) {
        pipe->told = true;
        (void)shutdown(pipe->to, SHUT_WR);
    }
    return true;
}

void fault_pair_turn(struct fault_world *world, struct pair *pair)
{
    for (unsigned i = 0; i < 2; i++) {
        struct pipe *pipe = &pair->pipes[i];
        if (!pipe_read(world, pipe, i + 1) || !pipe_write(world, pipe, i + 1)) {
            fault_pair_end(world, pair, world->faults.cut_reset);
            return;
        }
    }
    if (pair->pipes[0].told && (pair->pipes[1].told || pair->pipes[0].to < 0)) {
        fault_pair_end(world, pair, false);
    }
}

void fault_pairs_release(struct fault_world *world)
{
    for (unsigned i = FAULT_PAIRS; i-- > 0;) {
        if (world->pairs[i].there && world->pairs[i].held) {
            pair_connect(world, &world->pairs[i]);
        }
    }
}

unsigned fault_pair_watch(const struct fault_world *world,
                          const struct pair *pair,
                          struct pollfd *fds,
                          uint64_t *due)
{
    short want[2] = {0, 0}; /* of who connected, of the target */
    for (unsigned i = 0; i < 2; i++) {
        const struct pipe *pipe = &pair->pipes[i];
        if (pipe_reads(world, pipe, i + 1)) {
            want[i] = (short)(want[i] | POLLIN);
        }
        if (!pipe->first || (world->faults.stalled & (i + 1))) {
            continue;
        }
        if (pipe->first->due_ns > fault_now_ns()) {
            *due = rbi_min_u64(*due, pipe->first->due_ns);
        } else {
            want[1 - i] = (short)(want[1 - i] | POLLOUT);
        }
    }
    unsigned count = 0;
    const int ends[2] = {pair->pipes[0].from, pair->pipes[0].to};
    for (unsigned i = 0; i < 2; i++) {
        if (ends[i] >= 0 && want[i]) {
            fds[count++] = (struct pollfd){.fd = ends[i], .events = want[i]};
        }
    }
    return count;
}
