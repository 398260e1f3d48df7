/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/contenders/bells.c - bare slots and the two ways of sleeping in the kernel: an eventfd
 * and a futex, rung only when the other side says that it sleeps. The limit of a sleeping
 * round trip.
 */
#include "bench/contenders/slots.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

static int eventfd_setup(struct bench_place *place)
{
    for (unsigned i = 0; i < 2; i++) {
        place->fds[i] = eventfd(0, EFD_CLOEXEC);
        if (place->fds[i] < 0) {
            return -1;
        }
    }
    return slots_setup(place);
}

BENCH_INLINE void ring(struct bench_end *end, bool futex)
{
    struct slots_ring *tx = ((struct slots_end *)end->state)->tx;
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&tx->waiting, memory_order_relaxed) == 0) {
        return;
    }
    atomic_store_explicit(&tx->waiting, 0, memory_order_relaxed);
    if (futex) {
        (void)syscall(SYS_futex, &tx->waiting, FUTEX_WAKE, 1, NULL, NULL, 0);
    } else {
        const uint64_t one = 1;
        (void)!write(end->place->fds[!end->side], &one, sizeof one);
    }
}

BENCH_INLINE void sleep_until_rung(struct bench_end *end, bool futex)
{
    uint64_t sink = 0;
    struct slots_ring *rx = ((struct slots_end *)end->state)->rx;
    if (futex) {
        (void)syscall(SYS_futex, &rx->waiting, FUTEX_WAIT, 1, NULL, NULL, 0);
    } else {
        (void)!read(end->place->fds[end->side], &sink, sizeof sink);
    }
}

BENCH_INLINE int
send_rung(struct bench_end *end, const unsigned char *data, size_t size, bool futex)
{
    const int r = slots_put(end->state, data, size);
    if (r == 1) {
        ring(end, futex);
    } else {
        (void)sched_yield();
    }
    return r;
}

BENCH_INLINE unsigned take_slots(struct bench_end *end, unsigned max, bool futex)
{
    struct slots_end *s = end->state;
    unsigned n = 0;
    for (const unsigned char *data; n < max && (data = slots_peek(s, end->size)) != NULL; n++) {
        bench_take(end, data, end->size);
        if (end->echo) {
            (void)send_rung(end, data, end->size, futex);
        }
    }
    if (n > 0) {
        slots_done(s);
    }
    return n;
}

BENCH_INLINE int poll_rung(struct bench_end *end, unsigned max, bool futex)
{
    struct slots_ring *rx = ((struct slots_end *)end->state)->rx;
    unsigned n = take_slots(end, max, futex);
    if (n > 0) {
        return (int)n;
    }
    atomic_store_explicit(&rx->waiting, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    n = take_slots(end, max, futex);
    if (n == 0) {
        sleep_until_rung(end, futex);
    }
    atomic_store_explicit(&rx->waiting, 0, memory_order_relaxed);
    return (int)n;
}

BENCH_INLINE int send_eventfd(struct bench_end *end, const unsigned char *data, size_t size)
{
    return send_rung(end, data, size, false);
}

BENCH_INLINE int poll_eventfd(struct bench_end *end, unsigned max)
{
    return poll_rung(end, max, false);
}

BENCH_INLINE int send_futex(struct bench_end *end, const unsigned char *data, size_t size)
{
    return send_rung(end, data, size, true);
}

BENCH_INLINE int poll_futex(struct bench_end *end, unsigned max)
{
    return poll_rung(end, max, true);
}
BENCH_LOOPS(eventfd, send_eventfd, poll_eventfd)
BENCH_LOOPS(futex, send_futex, poll_futex)

const struct bench_contender bench_eventfd = {
    .name = "bare-eventfd",
    .package = "",
    .text = "bare slots, eventfd written when the other side sleeps",
    .abilities = BENCH_CAN_SLEEP | BENCH_IS_LIMIT | BENCH_TRIPS | BENCH_STREAM,
    .size_max = SLOTS_BYTES / 2 - 64,
    .setup = eventfd_setup,
    .open = slots_open,
    .close = slots_close,
    .trips = eventfd_trips,
    .stream = eventfd_stream,
    .put = eventfd_put_loop,
    .take = eventfd_take_loop,
};

const struct bench_contender bench_futex = {
    .name = "bare-futex",
    .package = "",
    .text = "bare slots, futex woken when the other side sleeps",
    .abilities = BENCH_CAN_SLEEP | BENCH_IS_LIMIT | BENCH_TRIPS | BENCH_STREAM,
    .size_max = SLOTS_BYTES / 2 - 64,
    .setup = slots_setup,
    .open = slots_open,
    .close = slots_close,
    .trips = futex_trips,
    .stream = futex_stream,
    .put = futex_put_loop,
    .take = futex_take_loop,
};
