/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_SHM_ATOMIC_H
#define RINGBUS_SHM_ATOMIC_H
/*
 * shm/atomic.h - the one spelling of every access to memory that two processes
 * share. C11 acquire and release on objects; sequential consistency for the
 * bell's pair only; no standalone fences and no inline assembly, so that
 * ThreadSanitizer understands it and the same sources run under Relacy
 * (tests/model replaces this header).
 *
 * Every acquire or release carries a label with its partner, "R1: pairs with
 * A1"; tests/style/check_orders.sh refuses one without.
 */
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

/** A word that one side writes while the other reads. */
typedef _Atomic(uint64_t) rbi_au64;
/** Half of one, for figures of which there are many. */
typedef _Atomic(uint32_t) rbi_au32;
/** A word that is ordered by some rbi_au64: never read while it is written. */
typedef uint64_t rbi_word;

_Static_assert(sizeof(rbi_au64) == sizeof(uint64_t), "plain 64-bit atomics needed");
_Static_assert(_Alignof(rbi_au64) == sizeof(uint64_t), "plain 64-bit atomics needed");
_Static_assert(sizeof(rbi_au32) == sizeof(uint32_t), "plain 32-bit atomics needed");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "lock-free 64-bit atomics needed");

static inline uint64_t rbi_load_acq(const rbi_au64 *p)
{
    return atomic_load_explicit(p, memory_order_acquire);
}

static inline void rbi_store_rel(rbi_au64 *p, uint64_t v)
{
    atomic_store_explicit(p, v, memory_order_release);
}

/** Sequentially consistent pair, for "publish, then look whether the other sleeps" alone. */
static inline uint64_t rbi_load_seq(const rbi_au64 *p)
{
    return atomic_load_explicit(p, memory_order_seq_cst);
}

static inline void rbi_store_seq(rbi_au64 *p, uint64_t v)
{
    atomic_store_explicit(p, v, memory_order_seq_cst);
}

/** For a word of our own (only this thread writes it), or a hint that nothing depends on. */
static inline uint64_t rbi_load_rlx(const rbi_au64 *p)
{
    return atomic_load_explicit(p, memory_order_relaxed);
}

static inline void rbi_store_rlx(rbi_au64 *p, uint64_t v)
{
    atomic_store_explicit(p, v, memory_order_relaxed);
}

static inline uint32_t rbi_load32_rlx(const rbi_au32 *p)
{
    return atomic_load_explicit(p, memory_order_relaxed);
}

static inline void rbi_store32_rlx(rbi_au32 *p, uint32_t v)
{
    atomic_store_explicit(p, v, memory_order_relaxed);
}

/*
 * The hot half of an asymmetric fence (shm/barrier.h): this store, then this load, in that
 * order for the compiler, which keeps volatile accesses as they are written.
 */
static inline void rbi_store_asym(rbi_au64 *p, uint64_t v)
{
    atomic_store_explicit((volatile rbi_au64 *)p, v, memory_order_relaxed);
}

static inline uint64_t rbi_load_asym(const rbi_au64 *p)
{
    return atomic_load_explicit((const volatile rbi_au64 *)p, memory_order_relaxed);
}

/** One read, never repeated by the compiler: the peer may change the word between two. */
static inline uint64_t rbi_word_get(const rbi_word *p)
{
    return *(const volatile rbi_word *)p;
}

static inline void rbi_word_put(rbi_word *p, uint64_t v)
{
    *p = v;
}

/** The shared word at @p offset bytes of a lane; 8-byte aligned by the caller. */
static inline rbi_au64 *rbi_au64_at(unsigned char *base, uint64_t offset)
{
    return (rbi_au64 *)(void *)(base + offset);
}

static inline const rbi_au64 *rbi_au64_at_const(const unsigned char *base, uint64_t offset)
{
    return (const rbi_au64 *)(const void *)(base + offset);
}

#endif
