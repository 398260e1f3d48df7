/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/contenders/lines.c - the machine's limits of a round trip: a counter that goes there
 * and one that comes back, on two cache lines or on one; and one copy each way into a fixed
 * buffer with its counter in the line before.
 */
#include "bench/loops.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

struct lines {
    _Alignas(128) _Atomic(uint64_t) ping;
    _Alignas(128) _Atomic(uint64_t) pong;
};

struct buffer {
    _Alignas(4096) _Atomic(uint64_t) number; /* whole pages: they can be made read-only */
    _Alignas(64) unsigned char bytes[1U << 20];
};

/* The word that this side writes and the one that it waits for. */
struct words {
    _Atomic(uint64_t) *out;
    _Atomic(uint64_t) *in;
    unsigned char *bytes_out;
    const unsigned char *bytes_in;
    uint64_t sent;
    uint64_t seen;
};

static int lines_setup(struct bench_place *place)
{
    return bench_place_memory(place, sizeof(struct lines));
}

static int copy_setup(struct bench_place *place)
{
    return bench_place_memory(place, 2 * sizeof(struct buffer));
}

static int copy_open(struct bench_end *end)
{
    struct buffer *buffers = (struct buffer *)(void *)end->place->memory;
    struct words *w = calloc(1, sizeof *w);
    if (w == NULL) {
        return -1;
    }
    w->out = &buffers[end->side].number;
    w->in = &buffers[!end->side].number;
    w->bytes_out = buffers[end->side].bytes;
    w->bytes_in = buffers[!end->side].bytes;
    end->state = w;
    return 0;
}

/* As sealed memory is to its reader: what that alone costs. */
static int copy_read_only_open(struct bench_end *end)
{
    struct buffer *buffers = (struct buffer *)(void *)end->place->memory;
    return mprotect(&buffers[!end->side], sizeof buffers[0], PROT_READ) == 0 ? copy_open(end) : -1;
}

static int lines_open_on(struct bench_end *end, bool two)
{
    struct lines *lines = (struct lines *)(void *)end->place->memory;
    struct words *w = calloc(1, sizeof *w);
    if (w == NULL) {
        return -1;
    }
    w->out = two && end->side == 1 ? &lines->pong : &lines->ping;
    w->in = two && end->side == 0 ? &lines->pong : &lines->ping;
    w->sent = end->side == 0 ? 0 : 1;
    end->state = w;
    return 0;
}

static int two_open(struct bench_end *end)
{
    return lines_open_on(end, true);
}

static int one_open(struct bench_end *end)
{
    return lines_open_on(end, false);
}

static void lines_close(struct bench_end *end)
{
    free(end->state);
}

/* Side 0 writes odd words, side 1 the even ones behind them. */
static double lines_trips(struct bench_end *end, const struct bench_loop *loop)
{
    struct words *w = end->state;
    const uint64_t start = bench_now_ns();
    for (uint64_t i = 0; i < loop->count; i++, w->sent += 2) {
        if (end->side == 0) {
            atomic_store_explicit(w->out, w->sent + 1, memory_order_release);
            while (atomic_load_explicit(w->in, memory_order_acquire) != w->sent + 2) {
            }
        } else {
            while (atomic_load_explicit(w->in, memory_order_acquire) != w->sent) {
            }
            atomic_store_explicit(w->out, w->sent + 1, memory_order_release);
        }
    }
    return (double)(bench_now_ns() - start) / (double)loop->count;
}

BENCH_INLINE int send_copy(struct bench_end *end, const unsigned char *data, size_t size)
{
    struct words *w = end->state;
    memcpy(w->bytes_out, data, size);
    atomic_store_explicit(w->out, ++w->sent, memory_order_release);
    return 1;
}

BENCH_INLINE int poll_copy(struct bench_end *end, unsigned max)
{
    struct words *w = end->state;
    (void)max;
    if (atomic_load_explicit(w->in, memory_order_acquire) == w->seen) {
        return 0;
    }
    w->seen++;
    bench_take(end, w->bytes_in, end->size);
    if (end->echo) {
        (void)send_copy(end, w->bytes_in, end->size);
    }
    return 1;
}

static double copy_trips(struct bench_end *end, const struct bench_loop *loop)
{
    return bench_loop_trips(end, loop, send_copy, poll_copy);
}

const struct bench_contender bench_two_lines = {
    .name = "limit-two-lines",
    .package = "",
    .text = "two counters on two cache lines: no message can be faster",
    .abilities = BENCH_CAN_BUSY | BENCH_IS_LIMIT | BENCH_TRIPS,
    .size_max = 8,
    .setup = lines_setup,
    .open = two_open,
    .close = lines_close,
    .trips = lines_trips,
};

const struct bench_contender bench_one_line = {
    .name = "limit-one-line",
    .package = "",
    .text = "one counter on one cache line, both sides write it",
    .abilities = BENCH_CAN_BUSY | BENCH_IS_LIMIT | BENCH_TRIPS,
    .size_max = 8,
    .setup = lines_setup,
    .open = one_open,
    .close = lines_close,
    .trips = lines_trips,
};

const struct bench_contender bench_copy = {
    .name = "limit-copy",
    .package = "",
    .text = "one copy each way into one fixed buffer",
    .abilities = BENCH_CAN_BUSY | BENCH_IS_LIMIT | BENCH_TRIPS,
    .size_max = 1U << 20,
    .setup = copy_setup,
    .open = copy_open,
    .close = lines_close,
    .trips = copy_trips,
};

const struct bench_contender bench_copy_read_only = {
    .name = "limit-copy-ro",
    .package = "",
    .text = "the same, each buffer mapped read-only by its reader, as ringbus has it",
    .abilities = BENCH_CAN_BUSY | BENCH_IS_LIMIT | BENCH_TRIPS,
    .size_max = 1U << 20,
    .setup = copy_setup,
    .open = copy_read_only_open,
    .close = lines_close,
    .trips = copy_trips,
};
