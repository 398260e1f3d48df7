/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BENCH_RUN_H
#define RINGBUS_BENCH_RUN_H
/*
 * bench/run.h - one run of the bench: its options, its workloads, its figures.
 *
 * A workload measures and hands in figures; each is printed at once, beside its bar where
 * there is one, and kept for the JSON lines, RESULTS.md and the plots.
 */
#include "bench/bench.h"

#include <stdio.h>

#if defined(__clang__)
#define BENCH_COMPILER "clang " __clang_version__
#else
#define BENCH_COMPILER "gcc " __VERSION__
#endif
#define BENCH_NAMES_MAX   32U
#define BENCH_FIGURES_MAX 2048U

struct bench_options {
    const char *names[BENCH_NAMES_MAX]; /**< workloads; none: all */
    unsigned name_count;
    bool quick;
    bool smoke;            /**< a few blocks of each, to see that it works */
    double seconds;        /**< a workload, 0: its own */
    const char *peers;     /**< "all", "none", or names with commas */
    const char *json_path; /**< NULL: none */
    const char *results;   /**< folder for RESULTS.md and plots; NULL: none */
    const char *scripts;   /**< folder of count_syscalls.sh; NULL: left out */
    const char *ringbusd;
    const char *config;
    const char *commit;
};

/** A measured figure. */
struct bench_figure {
    const char *workload;
    const char *contender;
    char param[24]; /**< "64 B", "64 links" */
    const char *mode;
    const char *regime; /**< "near", "far", "all" */
    const char *unit;
    double value; /**< median over blocks */
    double value_p10;
    double value_p90;
    const char *base; /**< what ratio refers to, NULL: none */
    double ratio;
    double ratio_p10;
    double ratio_p90;
    double limit_ns;   /**< two-line round trip beside it, 0 none */
    double latency[5]; /**< p50, p90, p99, p99.9, maximum; ns; 0: not taken */
    double cpu_ns[2];  /**< CPU time a message, each side; 0: not taken */
    uint64_t size;     /**< x of the plots: bytes, links, receivers */
    uint64_t messages;
    unsigned blocks;
    unsigned disturbed; /**< blocks left out */
};

struct bench_run {
    struct bench_options options;
    char directory[64];
    char bus_socket[108];
    pid_t daemon;
    FILE *json;
    unsigned pair_number;
    unsigned shorts;   /**< bars that were not met */
    unsigned failures; /**< of ringbus or of a limit: the run fails */
    unsigned peer_failures;
    const char *regime; /**< of the figures of bench_run_value() */
    char machine[96];
    char kernel[96];
    unsigned figure_count;
    struct bench_figure figures[BENCH_FIGURES_MAX];
};

struct bench_workload {
    const char *name;
    const char *text;
    double seconds; /**< of a full run; a quick one takes a fifth */
    bool quick;     /**< part of a quick run */
    /** 0; -1: failed, with a line on stderr. */
    int (*run)(struct bench_run *run, const struct bench_workload *workload);
};

/** In the order in which they run; ends with NULL. */
extern const struct bench_workload *const bench_workloads[];

/** Seconds that a workload may take in this run. */
double bench_run_seconds(const struct bench_run *run, const struct bench_workload *workload);
/** Whether --peers and the modes let this contender take part. */
bool bench_run_wants(const struct bench_run *run, const struct bench_contender *contender);

/** Prints a figure, finds its bar, keeps it. */
void bench_run_figure(struct bench_run *run, const struct bench_figure *figure);
/** Says why a contender has no figures; ringbus and limits make the run fail. */
void bench_run_failed(struct bench_run *run,
                      const char *workload,
                      const struct bench_contender *contender,
                      const char *why);
void bench_run_heading(const struct bench_workload *workload);

/** A figure of one value whose samples the workload took itself. Sorts @p values; @p size is the
 * x of a plot, 0: none. */
void bench_run_value(struct bench_run *run,
                     const char *workload,
                     const char *contender,
                     const char *param,
                     uint64_t size,
                     const char *mode,
                     const char *unit,
                     double *values,
                     unsigned count);

/** RESULTS.md and the data of the plots. */
int bench_report_write(const struct bench_run *run);
void bench_report_json(FILE *out, const struct bench_run *run, const struct bench_figure *figure);

#endif
