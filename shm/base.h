/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_SHM_BASE_H
#define RINGBUS_SHM_BASE_H
/*
 * shm/base.h - the few words that every file of ringbus uses: attributes,
 * assertions for our own broken invariants, checked arithmetic, clean-up.
 * No I/O, no state.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RBI_MUST_CHECK        __attribute__((warn_unused_result))
#define RBI_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define RBI_COLD              __attribute__((cold, noinline))
#define RBI_NOINLINE          __attribute__((noinline))
#define RBI_ALIGNED(n)        __attribute__((aligned(n)))
#define RBI_LIKELY(x)         __builtin_expect(!!(x), 1)
#define RBI_UNLIKELY(x)       __builtin_expect(!!(x), 0)

/** Size of a cache line; records, and fields with different writers, are kept this far apart. */
#define RBI_LINE 64U
/** Page size that every layout assumes; checked against the kernel's once, at open. */
#define RBI_PAGE 4096U

#define RBI_ARRAY_SIZE(a)                   (sizeof(a) / sizeof((a)[0]))
#define RBI_CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/**
 * Stops the process: for invariants of our own only, never for what a peer, a
 * user or the kernel did. Stays in release builds.
 */
#define RBI_ASSERT(x)                                                                              \
    do {                                                                                           \
        if (RBI_UNLIKELY(!(x))) {                                                                  \
            rbi_assert_failed(#x, __FILE__, __LINE__);                                             \
        }                                                                                          \
    } while (0)

__attribute__((noreturn)) RBI_COLD void
rbi_assert_failed(const char *what, const char *file, int line);

/* Clean-up of locals in cold code: the value is freed on every way out unless stolen. */
#define RBI_CLEANUP(fn) __attribute__((cleanup(fn)))
#define RBI_STEAL(p)                                                                               \
    (__extension__({                                                                               \
        __typeof__(*(p)) v_ = *(p);                                                                \
        *(p) = NULL;                                                                               \
        v_;                                                                                        \
    }))

/** Rounds @p n up to a multiple of the power of two @p align; the caller has excluded overflow. */
static inline uint64_t rbi_align_up(uint64_t n, uint64_t align)
{
    return (n + align - 1) & ~(align - 1);
}

/** True for 1, 2, 4, 8, ... */
static inline bool rbi_is_pow2(uint64_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

/** Smallest power of two >= @p n, for 1 <= n <= 2^63. */
static inline uint64_t rbi_pow2_ceil(uint64_t n)
{
    return n <= 1 ? 1 : (uint64_t)1 << (64 - __builtin_clzll(n - 1));
}

static inline uint64_t rbi_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t rbi_max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

#endif
