/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/contenders/bytering.c - the ordinary byte ring: 256 KiB mapped twice in a row, a tail
 * counter, records of 8 bytes and up. No checks, no names, no sleeping.
 */
#include "bench/loops.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define RING_BYTES (256U << 10)

struct counters {
    _Alignas(128) _Atomic(uint64_t) tail;
    _Alignas(128) _Atomic(uint64_t) head;
};

struct ring_end {
    struct counters *tx;
    struct counters *rx;
    unsigned char *tx_bytes;
    const unsigned char *rx_bytes;
    uint64_t tail;
    uint64_t head;
    uint64_t head_seen;
};

/* [page of counters][ring 0][ring 0 again][ring 1][ring 1 again], for either side. */
static int ring_setup(struct bench_place *place)
{
    const int fd = memfd_create("bench-bytering", MFD_CLOEXEC);
    const size_t total = 4096 + 4 * (size_t)RING_BYTES;
    if (fd < 0 || ftruncate(fd, 4096 + 2 * (off_t)RING_BYTES) != 0) {
        return -1;
    }
    place->fds[0] = fd;
    unsigned char *base =
        mmap(NULL, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        return -1;
    }
    place->memory = base;
    place->memory_bytes = total;
    const int prot = PROT_READ | PROT_WRITE;
    const int flags = MAP_SHARED | MAP_FIXED | MAP_POPULATE;
    bool good = mmap(base, 4096, prot, flags, fd, 0) != MAP_FAILED;
    for (unsigned i = 0; i < 4; i++) {
        good = good && mmap(base + 4096 + i * (size_t)RING_BYTES, RING_BYTES, prot, flags, fd,
                            4096 + (off_t)(i / 2) * (off_t)RING_BYTES) != MAP_FAILED;
    }
    return good ? 0 : -1;
}

static int ring_open(struct bench_end *end)
{
    struct ring_end *r = calloc(1, sizeof *r);
    struct counters *counters = (struct counters *)(void *)end->place->memory;
    if (r == NULL) {
        return -1;
    }
    r->tx = &counters[end->side];
    r->rx = &counters[!end->side];
    r->tx_bytes = end->place->memory + 4096 + 2 * (size_t)end->side * RING_BYTES;
    r->rx_bytes = end->place->memory + 4096 + 2 * (size_t)!end->side * RING_BYTES;
    end->state = r;
    return 0;
}

/* As sealed memory is to its reader: what that alone costs. */
static int ring_read_only_open(struct bench_end *end)
{
    unsigned char *theirs = end->place->memory + 4096 + 2 * (size_t)!end->side * RING_BYTES;
    return mprotect(theirs, 2 * (size_t)RING_BYTES, PROT_READ) == 0 ? ring_open(end) : -1;
}

static void ring_close(struct bench_end *end)
{
    free(end->state);
}

BENCH_INLINE int send_bytes(struct bench_end *end, const unsigned char *data, size_t size)
{
    struct ring_end *r = end->state;
    const uint64_t need = 8 + (((uint64_t)size + 7) & ~UINT64_C(7));
    if (r->tail - r->head_seen + need > RING_BYTES) {
        r->head_seen = atomic_load_explicit(&r->tx->head, memory_order_acquire);
        if (r->tail - r->head_seen + need > RING_BYTES) {
            return 0;
        }
    }
    unsigned char *at = r->tx_bytes + r->tail % RING_BYTES;
    const uint64_t length = size;
    memcpy(at, &length, 8);
    memcpy(at + 8, data, size);
    r->tail += need;
    atomic_store_explicit(&r->tx->tail, r->tail, memory_order_release);
    return 1;
}

BENCH_INLINE int poll_bytes(struct bench_end *end, unsigned max)
{
    struct ring_end *r = end->state;
    const uint64_t tail = atomic_load_explicit(&r->rx->tail, memory_order_acquire);
    unsigned n = 0;
    for (; n < max && r->head != tail; n++) {
        const unsigned char *at = r->rx_bytes + r->head % RING_BYTES;
        uint64_t length = 0;
        memcpy(&length, at, 8);
        bench_take(end, at + 8, (size_t)length);
        if (end->echo) {
            while (send_bytes(end, at + 8, (size_t)length) == 0) {
            }
        }
        r->head += 8 + ((length + 7) & ~UINT64_C(7));
    }
    if (n > 0) {
        atomic_store_explicit(&r->rx->head, r->head, memory_order_release);
    }
    return (int)n;
}
BENCH_LOOPS(ring, send_bytes, poll_bytes)

const struct bench_contender bench_bytering = {
    .name = "bare-byte-ring",
    .package = "",
    .text = "256 KiB byte ring, tail counter, no checks",
    .abilities = BENCH_CAN_BUSY | BENCH_IS_LIMIT | BENCH_TRIPS | BENCH_STREAM,
    .size_max = RING_BYTES / 2,
    .setup = ring_setup,
    .open = ring_open,
    .close = ring_close,
    .trips = ring_trips,
    .stream = ring_stream,
    .put = ring_put_loop,
    .take = ring_take_loop,
};

const struct bench_contender bench_bytering_read_only = {
    .name = "bare-byte-ring-ro",
    .package = "",
    .text = "the same, each ring mapped read-only by its reader, as ringbus has it",
    .abilities = BENCH_CAN_BUSY | BENCH_IS_LIMIT | BENCH_TRIPS | BENCH_STREAM,
    .size_max = RING_BYTES / 2,
    .setup = ring_setup,
    .open = ring_read_only_open,
    .close = ring_close,
    .trips = ring_trips,
    .stream = ring_stream,
    .put = ring_put_loop,
    .take = ring_take_loop,
};
