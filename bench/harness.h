/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BENCH_HARNESS_H
#define RINGBUS_BENCH_HARNESS_H
/*
 * bench/harness.h - two pinned processes, a daemon of their own, and blocks of the limit
 * and of ringbus in turn.
 *
 * The machine may move its virtual cores between physical ones at any moment, so single
 * figures mean nothing: each block of ringbus is compared with the block of the limit
 * measured right beside it, and the ratios are sorted by regime.
 */
#include "measure/lines.h"

#include <ringbus/ringbus.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** What two sides share beside the bus. One page. */
struct bench_shared {
    struct rbi_lines lines;
    _Alignas(128) _Atomic(uint64_t) errors;
    _Alignas(128) _Atomic(uint64_t) received;
};

struct bench_daemon {
    char directory[64];
    char socket[100];
    pid_t pid;
};

/** Starts ringbusd on a private socket and waits until it accepts. 0; -1 with a line on stderr. */
int bench_daemon_start(struct bench_daemon *daemon, const char *program);
/** The same with a configuration file; NULL: none. */
int bench_daemon_start_with(struct bench_daemon *daemon, const char *program, const char *config);
/** Ends it and removes its private directory with whatever lies in it. */
void bench_daemon_stop(struct bench_daemon *daemon);

struct bench_shared *bench_shared_new(void);
/** Both sides (@p side 0 or 1) wait here for each other. */
void bench_barrier(struct bench_shared *shared, int side);
/** Round trips of the limit; side 0 returns nanoseconds a round trip, side 1 returns 0. */
double bench_limit(struct bench_shared *shared, int side, unsigned rounds);

uint64_t bench_now_ns(void);
void bench_pin(int cpu);
/** For daemons: in a real-time run (chrt) a pair that polls must not keep them from running. */
void bench_step_ahead(void);
double bench_median(double *values, unsigned count);

/** Opens, targets @p peer (may be NULL) and polls until READY. NULL with a line on stderr. */
struct ringbus *bench_open(const struct bench_daemon *daemon,
                           const struct ringbus_options *options,
                           const char *peer,
                           struct ringbus_addr *addr);
/** The same, polling another handle of this thread meanwhile: the peer's. */
struct ringbus *bench_open_beside(const struct bench_daemon *daemon,
                                  const struct ringbus_options *options,
                                  const char *peer,
                                  struct ringbus_addr *addr,
                                  struct ringbus *beside);

#endif
