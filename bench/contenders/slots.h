/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BENCH_SLOTS_H
#define RINGBUS_BENCH_SLOTS_H
/*
 * bench/contenders/slots.h - the least that a ring can be: slots of one size, the commit word
 * in the slot, 256 KiB, no checks, no names, no sleeping. What ringbus costs on top of it is
 * the price of everything that ringbus is.
 */
#include "bench/loops.h"

#include <stdatomic.h>

#define SLOTS_BYTES  (256U << 10)
#define SLOTS_COMMIT (UINT64_C(1) << 63) /* no payload number has this bit */

/** One direction in shared memory. */
struct slots_ring {
    _Alignas(128) _Atomic(uint64_t) read;    /* messages taken, by the consumer, once a batch */
    _Alignas(128) _Atomic(uint32_t) waiting; /* the consumer sleeps */
    _Alignas(128) unsigned char bytes[SLOTS_BYTES];
};

/** One end: its producer's and consumer's private state. */
struct slots_end {
    struct slots_ring *tx;
    struct slots_ring *rx;
    size_t size; /* of the payloads that the figures below are for */
    size_t stride;
    uint64_t count; /* slots */
    uint64_t tx_number;
    uint64_t rx_number;
    uint64_t tx_offset;
    uint64_t rx_offset;
    uint64_t read_seen;
};

/* Both ends change the size at a barrier, while the ring is empty. */
static inline void slots_resize(struct slots_end *s, size_t size)
{
    s->size = size;
    s->stride = (size + 8 + 63) / 64 * 64;
    s->count = SLOTS_BYTES / s->stride;
    s->tx_offset = s->rx_offset = 0;
    s->read_seen = atomic_load_explicit(&s->tx->read, memory_order_acquire);
}

BENCH_INLINE _Atomic(uint64_t) *slots_word(struct slots_ring *ring, uint64_t offset)
{
    return (_Atomic(uint64_t) *)(void *)(ring->bytes + offset);
}

BENCH_INLINE uint64_t slots_next(const struct slots_end *s, uint64_t offset)
{
    offset += s->stride;
    return offset + s->stride > SLOTS_BYTES ? 0 : offset;
}

BENCH_INLINE int slots_put(struct slots_end *s, const unsigned char *data, size_t size)
{
    if (s->size != size) {
        slots_resize(s, size);
    }
    if (s->tx_number - s->read_seen >= s->count) {
        s->read_seen = atomic_load_explicit(&s->tx->read, memory_order_acquire);
        if (s->tx_number - s->read_seen >= s->count) {
            return 0;
        }
    }
    memcpy(s->tx->bytes + s->tx_offset + 8, data, size);
    atomic_store_explicit(slots_word(s->tx, s->tx_offset), ++s->tx_number | SLOTS_COMMIT,
                          memory_order_release);
    s->tx_offset = slots_next(s, s->tx_offset);
    return 1;
}

/* The next payload, NULL when there is none; slots_done() after the last of a batch. */
BENCH_INLINE const unsigned char *slots_peek(struct slots_end *s, size_t size)
{
    if (s->size != size) {
        slots_resize(s, size);
    }
    _Atomic(uint64_t) *word = slots_word(s->rx, s->rx_offset);
    if (atomic_load_explicit(word, memory_order_acquire) != ((s->rx_number + 1) | SLOTS_COMMIT)) {
        return NULL;
    }
    const unsigned char *data = s->rx->bytes + s->rx_offset + 8;
    s->rx_number++;
    s->rx_offset = slots_next(s, s->rx_offset);
    return data;
}

BENCH_INLINE void slots_done(struct slots_end *s)
{
    atomic_store_explicit(&s->rx->read, s->rx_number, memory_order_release);
}

int slots_setup(struct bench_place *place);
int slots_open(struct bench_end *end);
void slots_close(struct bench_end *end);

#endif
