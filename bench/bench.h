/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BENCH_BENCH_H
#define RINGBUS_BENCH_BENCH_H
/*
 * bench/bench.h - what is compared: contenders. The machine's limits, bare rings, peers and
 * ringbus itself stand behind the same few functions; each is one file in bench/contenders/.
 *
 * A contender connects two processes, side 0 and side 1. bench/loops.h makes the timed loops
 * from its send and poll, which are inlined there, so that the interface costs nothing.
 *
 * Every message is checked by the end that receives it: its number (count and order), its
 * size, and its content (the last word in each, all bytes in the warm-up).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum bench_mode {
    BENCH_BUSY = 0,  /**< both sides poll */
    BENCH_SLEEP = 1, /**< both sides wait in the kernel when there is nothing */
};

/* What a contender can do. */
#define BENCH_CAN_BUSY  0x1U
#define BENCH_CAN_SLEEP 0x2U
#define BENCH_IS_LIMIT  0x4U   /**< bare memory of this machine: nothing may be left out of it */
#define BENCH_REFERENCE 0x8U   /**< the payload is not touched: size and number are checked */
#define BENCH_PRIVATE   0x10U  /**< poll hands out a private copy: none more is taken */
#define BENCH_TRIPS     0x20U  /**< has a round trip */
#define BENCH_STREAM    0x40U  /**< has a one way */
#define BENCH_OWN       0x80U  /**< ringbus: its failure fails the run */
#define BENCH_NAMED     0x100U /**< takes part where a workload names it alone */

struct bench_contender;

/** What both sides of one opened contender share; filled before the fork. */
struct bench_place {
    const struct bench_contender *contender;
    enum bench_mode mode;
    size_t size_max;           /**< largest payload that will be sent */
    unsigned number;           /**< unique in the run, for names */
    char directory[64];        /**< private to the run */
    char bus_socket[108];      /**< ringbusd of the run */
    char side_sockets[2][108]; /**< of each side, when it is another */
    unsigned char *memory;
    size_t memory_bytes;
    int fds[4];
    pid_t helper; /**< the contender's daemon, 0 none */
};

/** One side. */
struct bench_end {
    struct bench_place *place;
    int side;
    int cpu; /**< where this side will run */
    bool sleep;
    bool echo;  /**< answer every message with itself */
    bool whole; /**< compare every byte */
    size_t size;
    uint64_t last; /**< number of the last message of this loop */
    uint64_t expected;
    uint64_t received;
    uint64_t errors;
    unsigned char *copy;    /**< where a lent payload is copied to, as an application would */
    unsigned char *pattern; /**< what a payload of the largest size contains */
    void *state;            /**< the contender's own */
};

struct bench_loop {
    uint64_t size;
    uint64_t count;
    uint64_t gap_ns;     /**< pause before each round trip, not counted: the other side sleeps */
    uint32_t *histogram; /**< of each round trip, or NULL */
};

struct bench_contender {
    const char *name;
    const char *package; /**< Debian package, "" when none is needed */
    const char *text;    /**< how it is used: its best configuration */
    unsigned abilities;
    size_t size_max;
    /** Before the fork, in the parent. 0 or -1 with a line on stderr. May be NULL. */
    int (*setup)(struct bench_place *place);
    /** In each side, both at once; returns when the two can talk. 0 or -1. */
    int (*open)(struct bench_end *end);
    void (*close)(struct bench_end *end);
    /** In the parent, after both sides have ended. May be NULL. */
    void (*teardown)(struct bench_place *place);
    /** Nanoseconds a round trip; side 1 echoes. */
    double (*trips)(struct bench_end *end, const struct bench_loop *loop);
    /** Nanoseconds a message, from side 0 to side 1. */
    double (*stream)(struct bench_end *end, const struct bench_loop *loop);
    /** The two halves of a stream apart, for CPU time: side 0 sends, side 1 takes. */
    void (*put)(struct bench_end *end, const struct bench_loop *loop);
    void (*take)(struct bench_end *end, const struct bench_loop *loop);
};

/** All that were built, limits first, ringbus last; ends with NULL. */
extern const struct bench_contender *const bench_contenders[];
const struct bench_contender *bench_contender_find(const char *name);

/* ---- memory and payloads ------------------------------------------------------------------ */

/** Memory shared by the two sides, zeroed and touched; -1 with a line on stderr. */
int bench_place_memory(struct bench_place *place, size_t bytes);
void bench_place_free(struct bench_place *place);
/** Starts a peer's daemon, output to a file in the private directory. 0; -1. */
int bench_place_helper(struct bench_place *place, const char *const *argv);
void bench_place_helper_stop(struct bench_place *place);

/** Word @p i of a payload pattern. */
static inline uint64_t bench_pattern_word(size_t i)
{
    return ((uint64_t)i + 1) * UINT64_C(0x9e3779b97f4a7c15);
}
/** Counts @p data as wrong when it is; out of line, warm-up only. */
void bench_compare(struct bench_end *end, const unsigned char *data, size_t size);

uint64_t bench_now_ns(void);
uint64_t bench_cpu_ns(void);
void bench_pin(int cpu);
/** For daemons: in a real-time run (chrt) a pair that polls must not keep them from running. */
void bench_step_ahead(void);

static inline void bench_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" : : : "memory");
#endif
}

#ifdef __cplusplus
}
#endif

#endif
