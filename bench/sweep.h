/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BENCH_SWEEP_H
#define RINGBUS_BENCH_SWEEP_H
/*
 * bench/sweep.h - the same workload over contenders and sizes, block by block: within a size
 * the pairs take turns, so that all see the same machine.
 */
#include "bench/pair.h"
#include "bench/run.h"

/** What the contenders are compared with; opened in each pair. */
struct bench_base {
    const struct bench_contender *contender;
    enum bench_mode mode;
    uint64_t size_min;   /**< for payloads from here */
    uint64_t size_max;   /**< to here */
    uint64_t fixed_size; /**< the base's own size, 0: the same */
    const char *text;
    const char *only; /**< for this contender alone; NULL: for all without one of their own */
};

struct bench_sweep {
    const char *workload;
    const char *unit; /**< "ns" or "M/s" */
    enum bench_kind kind;
    enum bench_mode mode;
    int cpu[2];
    bool pin_first;        /**< as in bench/pair.h */
    uint64_t gap_ns;       /**< before each round trip */
    const uint64_t *sizes; /**< ends with 0 */
    struct bench_base bases[4];
    unsigned base_count;
    const char *only; /**< names with commas; NULL: all that are able */
    bool limits;      /**< limits take part as contenders, too */
    double seconds;   /**< of all blocks together */
    uint64_t count;   /**< messages a block, 0: as fit */
    unsigned blocks;  /**< 0: as fit */
};

/** Runs it and hands in the figures. 0; -1 when ringbus or a limit failed. */
int bench_sweep(struct bench_run *run, const struct bench_sweep *sweep);

/** "48 B", "64 KiB". */
void bench_size_text(char *out, size_t out_size, uint64_t size);

#endif
