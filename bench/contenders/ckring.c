/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/contenders/ckring.c - Concurrency Kit's ring, one producer and one consumer, slots of
 * 64 bytes in shared memory.
 */
#include "bench/loops.h"

#include <ck_ring.h>
#include <stdlib.h>

#define CK_SLOTS 4096U

struct slot {
    unsigned char bytes[64];
};

struct shared_ring {
    _Alignas(128) struct ck_ring ring;
    _Alignas(128) struct slot slots[CK_SLOTS];
};

/* The generated functions want a pointer to slots; they are used by value here. */
CK_RING_PROTOTYPE(bench, slot)

struct ck_end {
    struct shared_ring *tx;
    struct shared_ring *rx;
};

static int ck_setup(struct bench_place *place)
{
    if (bench_place_memory(place, 2 * sizeof(struct shared_ring)) != 0) {
        return -1;
    }
    struct shared_ring *rings = (struct shared_ring *)(void *)place->memory;
    ck_ring_init(&rings[0].ring, CK_SLOTS);
    ck_ring_init(&rings[1].ring, CK_SLOTS);
    return 0;
}

static int ck_open(struct bench_end *end)
{
    struct shared_ring *rings = (struct shared_ring *)(void *)end->place->memory;
    struct ck_end *ck = calloc(1, sizeof *ck);
    if (ck == NULL) {
        return -1;
    }
    ck->tx = &rings[end->side];
    ck->rx = &rings[!end->side];
    end->state = ck;
    return 0;
}

static void ck_close(struct bench_end *end)
{
    free(end->state);
}

BENCH_INLINE int send_ck(struct bench_end *end, const unsigned char *data, size_t size)
{
    struct shared_ring *tx = ((struct ck_end *)end->state)->tx;
    struct slot slot;
    memcpy(slot.bytes, data, size);
    return CK_RING_ENQUEUE_SPSC(bench, &tx->ring, tx->slots, &slot) ? 1 : 0;
}

BENCH_INLINE int poll_ck(struct bench_end *end, unsigned max)
{
    struct shared_ring *rx = ((struct ck_end *)end->state)->rx;
    struct slot slot;
    unsigned n = 0;
    for (; n < max && CK_RING_DEQUEUE_SPSC(bench, &rx->ring, rx->slots, &slot); n++) {
        bench_take(end, slot.bytes, end->size);
        if (end->echo) {
            (void)send_ck(end, slot.bytes, end->size);
        }
    }
    return (int)n;
}
BENCH_LOOPS(ck, send_ck, poll_ck)

const struct bench_contender bench_ckring = {
    .name = "ck-ring",
    .package = "libck-dev",
    .text = "Concurrency Kit's ring, SPSC, 4096 slots of 64 bytes",
    .abilities = BENCH_CAN_BUSY | BENCH_PRIVATE | BENCH_TRIPS | BENCH_STREAM,
    .size_max = sizeof(struct slot),
    .setup = ck_setup,
    .open = ck_open,
    .close = ck_close,
    .trips = ck_trips,
    .stream = ck_stream,
    .put = ck_put_loop,
    .take = ck_take_loop,
};
