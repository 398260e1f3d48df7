/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BENCH_LOOPS_H
#define RINGBUS_BENCH_LOOPS_H
/*
 * bench/loops.h - the timed loops, the same for every contender. They are inlined into its
 * file together with its send and poll.
 *
 *   send(end, data, size): 1 sent, 0 no room now (busy), < 0 broken
 *   poll(end, max): takes up to max messages, bench_take() for each, and answers each when
 *   end->echo is set; returns how many, 0 nothing there, < 0 broken. In sleep mode it waits.
 */
#include "bench/bench.h"
#include "measure/quantiles.h"

#include <string.h>

#define BENCH_INLINE static inline __attribute__((always_inline))

typedef int (*bench_send_fn)(struct bench_end *end, const unsigned char *data, size_t size);
typedef int (*bench_poll_fn)(struct bench_end *end, unsigned max);

/** Puts the number of a message into its payload. */
BENCH_INLINE void bench_stamp(unsigned char *payload, size_t size, uint64_t number)
{
    const uint64_t last = ~number;
    memcpy(payload, &number, sizeof number);
    if (size >= 16) {
        memcpy(payload + size - sizeof last, &last, sizeof last);
    }
}

/** Checks a received payload and moves on. */
BENCH_INLINE void bench_take(struct bench_end *end, const void *data, size_t size)
{
    uint64_t number = 0;
    uint64_t last = 0;
    const unsigned char *bytes = (const unsigned char *)data;
    if (end->copy != NULL && !end->echo) {
        memcpy(end->copy, data, size <= end->size ? size : end->size);
        bytes = end->copy;
        __asm__ volatile("" : : "r"(bytes) : "memory"); /* the copy happens */
    }
    memcpy(&number, bytes, sizeof number);
    last = ~number;
    if (size >= 16) {
        memcpy(&last, bytes + size - sizeof last, sizeof last);
    }
    if (size != end->size || number != end->expected || last != ~number) {
        end->errors++;
        end->expected = number;
    }
    end->expected++;
    end->received++;
    if (__builtin_expect(end->whole, 0)) {
        bench_compare(end, bytes, size);
    }
}

/** The same for a payload that stays untouched: its number came beside it. */
BENCH_INLINE void bench_take_number(struct bench_end *end, uint64_t number, size_t size)
{
    if (size != end->size || number != end->expected) {
        end->errors++;
        end->expected = number;
    }
    end->expected++;
    end->received++;
}

BENCH_INLINE void bench_loop_start(struct bench_end *end, const struct bench_loop *loop)
{
    end->size = loop->size;
    end->last = loop->count - 1;
    end->expected = 0;
    end->received = 0;
}

/** Sends one message, however often it must be tried; false: broken. */
BENCH_INLINE bool bench_send_surely(struct bench_end *end,
                                    unsigned char *payload,
                                    uint64_t size,
                                    uint64_t number,
                                    bench_send_fn send,
                                    bench_poll_fn poll)
{
    bench_stamp(payload, size, number);
    for (unsigned tries = 0;; tries++) {
        const int r = send(end, payload, size);
        if (__builtin_expect(r == 1, 1)) {
            return true;
        }
        if (r < 0) {
            end->errors++;
            return false;
        }
        bench_pause();
        if (poll != NULL && !end->sleep && tries % 1024 == 1023) {
            (void)poll(end, 1);
        }
    }
}

BENCH_INLINE bool bench_poll_surely(struct bench_end *end, unsigned max, bench_poll_fn poll)
{
    const int r = poll(end, max);
    if (__builtin_expect(r < 0, 0)) {
        end->errors++;
        return false;
    }
    return true;
}

static inline uint64_t bench_idle_until(uint64_t then)
{
    uint64_t now = bench_now_ns();
    while (now < then) {
        bench_pause();
        now = bench_now_ns();
    }
    return now;
}

BENCH_INLINE double bench_loop_trips(struct bench_end *end,
                                     const struct bench_loop *loop,
                                     bench_send_fn send,
                                     bench_poll_fn poll)
{
    unsigned char *payload = end->pattern;
    unsigned char *copy = end->copy;
    bench_loop_start(end, loop);
    end->echo = end->side == 1;
    end->copy = NULL; /* one copy each way: the echo's is the second */
    const uint64_t start = bench_now_ns();
    uint64_t before = start;
    uint64_t paused = 0;
    if (end->side == 1) {
        while (end->received < loop->count && bench_poll_surely(end, 1, poll)) {
        }
    } else {
        for (uint64_t i = 0; i < loop->count; i++) {
            if (loop->gap_ns != 0) {
                const uint64_t from = bench_now_ns();
                before = bench_idle_until(from + loop->gap_ns);
                paused += before - from;
            }
            if (!bench_send_surely(end, payload, loop->size, i, send, NULL)) {
                break;
            }
            while (end->received == i && bench_poll_surely(end, 1, poll)) {
            }
            if (loop->histogram != NULL) {
                const uint64_t now = bench_now_ns();
                loop->histogram[rbi_histogram_index(now - before)]++;
                before = now;
            }
        }
    }
    const uint64_t end_ns = bench_now_ns() - paused;
    end->errors += end->received != loop->count ? 1U : 0U;
    end->echo = false;
    end->copy = copy;
    return (double)(end_ns - start) / (double)loop->count;
}

BENCH_INLINE void bench_loop_put(struct bench_end *end,
                                 const struct bench_loop *loop,
                                 bench_send_fn send,
                                 bench_poll_fn poll)
{
    bench_loop_start(end, loop);
    for (uint64_t i = 0; i < loop->count; i++) {
        if (!bench_send_surely(end, end->pattern, loop->size, i, send, poll)) {
            return;
        }
    }
}

BENCH_INLINE void
bench_loop_take(struct bench_end *end, const struct bench_loop *loop, bench_poll_fn poll)
{
    bench_loop_start(end, loop);
    while (end->received < loop->count) {
        const int r = poll(end, 256);
        if (__builtin_expect(r < 0, 0)) {
            break;
        }
        /* Looking again at once would take the line away from the producer that writes it. */
        for (unsigned i = 0; r == 0 && !end->sleep && i < 64; i++) {
            bench_pause();
        }
    }
    end->errors += end->received != loop->count ? 1U : 0U;
}

BENCH_INLINE double bench_loop_stream(struct bench_end *end,
                                      const struct bench_loop *loop,
                                      bench_send_fn send,
                                      bench_poll_fn poll)
{
    const uint64_t start = bench_now_ns();
    if (end->side == 0) {
        bench_loop_put(end, loop, send, poll);
    } else {
        bench_loop_take(end, loop, poll);
    }
    return (double)(bench_now_ns() - start) / (double)loop->count;
}

/** Defines the four functions of a contender from its send and poll. */
#define BENCH_LOOPS(name, send, poll)                                                              \
    static double name##_trips(struct bench_end *end, const struct bench_loop *loop)               \
    {                                                                                              \
        return bench_loop_trips(end, loop, send, poll);                                            \
    }                                                                                              \
    static double name##_stream(struct bench_end *end, const struct bench_loop *loop)              \
    {                                                                                              \
        return bench_loop_stream(end, loop, send, poll);                                           \
    }                                                                                              \
    static void name##_put_loop(struct bench_end *end, const struct bench_loop *loop)              \
    {                                                                                              \
        bench_loop_put(end, loop, send, poll);                                                     \
    }                                                                                              \
    static void name##_take_loop(struct bench_end *end, const struct bench_loop *loop)             \
    {                                                                                              \
        bench_loop_take(end, loop, poll);                                                          \
    }

#endif
