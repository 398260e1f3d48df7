/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_CTL_BENCH_H
#define RINGBUS_DAEMON_CTL_BENCH_H
/*
 * daemon/ctl/bench.h - inside of ringbusctl bench. Two sides, each a pinned process with one
 * endpoint at a time, do what side 0 orders and write their figures into a page that they
 * share with the parent, which sleeps, watches over them and reports.
 *
 * The machine may change under a run (a virtual core moves, somebody else wants the core), so
 * single figures mean nothing. All is measured in blocks of a few milliseconds, each beside
 * the limit of that moment, and ratios are taken within a block. Blocks are sorted by regime:
 * near or far, as the two lines say.
 */
#include "daemon/ctl/ctl.h"
#include "measure/lines.h"
#include "measure/quantiles.h"

#include <ringbus/ringbus.h>
#include <stdatomic.h>

#define RBI_BENCH_BLOCKS_MAX 2048U
#define RBI_BENCH_OPENS      11U
/* Most round trips with a gap, or rows of others, in one job. */
#define RBI_BENCH_SAMPLES_MAX 1024U
/* Leaves room for "/", an instance and the terminator. */
#define RBI_BENCH_CLUSTER_SIZE (RINGBUS_PATH_MAX + 1 - 12)
/* One after the sizes: requests, of the first size. */
#define RBI_BENCH_SERIES_MAX (RBI_CTL_SIZES_MAX + 1)

enum rbi_bench_mode {
    RBI_BENCH_BUSY = 0,  /* both sides poll */
    RBI_BENCH_SLEEP = 1, /* both sides sleep in the kernel whenever there is nothing */
    RBI_BENCH_MODES = 2,
};

enum rbi_bench_regime {
    RBI_BENCH_NEAR = 0,     /* the cores share a cache */
    RBI_BENCH_FAR = 1,      /* they do not */
    RBI_BENCH_TOGETHER = 2, /* both sides on one core */
    RBI_BENCH_REGIMES = 3,
};

/** What is to be measured; the same in all three processes. */
struct rbi_bench_plan {
    const struct rbi_ctl_args *args;
    char cluster[RBI_BENCH_CLUSTER_SIZE]; /* of the two endpoints; the process id names each */
    int cpus[2];
    bool together; /* on one core: nothing busy then */
    bool modes[RBI_BENCH_MODES];
};

enum rbi_bench_kind {
    RBI_BENCH_END = 0, /* side 1 closes its endpoint */
    RBI_BENCH_LINES,
    RBI_BENCH_LINES_ASLEEP,
    RBI_BENCH_TRIPS, /* side 1 sends each message back */
    RBI_BENCH_STREAM,
    RBI_BENCH_REQUESTS,
};

/** An order of side 0, written before the sides meet. */
struct rbi_bench_job {
    enum rbi_bench_kind kind;
    uint32_t size;
    uint32_t count;
    uint64_t first;      /* number of its first message: unique in the run */
    uint64_t gap_ns;     /* side 0: before each round trip, not counted: side 1 is to sleep */
    uint32_t *histogram; /* side 0: of each round trip; NULL: they are timed in rows */
};

struct rbi_bench_block {
    enum rbi_bench_regime regime;
    bool disturbed;    /* a side was put off its core */
    double limit_ns;   /* a round trip of the bare machine, busy or asleep as this series is */
    double trip_ns;    /* a round trip or request, median: busy in rows, which spares the clock */
    double message_ns; /* one way; 0 when not measured */
};

struct rbi_bench_series {
    unsigned block_count;
    struct rbi_bench_block blocks[RBI_BENCH_BLOCKS_MAX];
    uint32_t histogram[RBI_BENCH_REGIMES][RBI_HISTOGRAM_WORDS]; /* round trips, each timed */
};

/** Shared by the three processes. Side 0 writes, unless said otherwise. */
struct rbi_bench_page {
    struct rbi_lines lines;
    _Atomic(uint32_t) connected; /* side 0 needs the listener no more */
    int fail_code;               /* by whoever set stop, where that was a failure; else 0 */
    char fail_text[768];
    int pids[2];   /* each side */
    uint64_t next; /* number of the next message */
    struct rbi_bench_job job;
    double ns[2]; /* each side: a message of the last job; of trips, on side 0, the median */
    uint64_t switches[2]; /* each side: put off its core, since it began */
    uint64_t messages[2]; /* each side: received and found right */
    uint64_t bytes[2];
    double open_us[RBI_BENCH_OPENS];
    double introduce_us[RBI_BENCH_OPENS];
    unsigned open_count;
    struct rbi_bench_series series[RBI_BENCH_MODES][RBI_BENCH_SERIES_MAX];
};

/** One side. */
struct rbi_bench_side {
    const struct rbi_bench_plan *plan;
    struct rbi_bench_page *page;
    int number; /* 0 orders and sends, 1 follows and receives */
    struct ringbus *bus;
    struct ringbus_addr peer;
    bool ready;
    bool needed; /* from READY on: the end of the link is a failure */
    bool sleeping;
    bool echo;
    uint32_t size;
    uint64_t expected; /* number of the next message */
    uint64_t received; /* in this job */
    unsigned looks;
    uint64_t progress_ns; /* when something had arrived for the last time, looked at seldom */
    uint64_t progress;
    unsigned char *pattern; /* owned */
};

/** The life of a side, to where it has closed its endpoint. */
void rbi_bench_side_run(const struct rbi_bench_plan *plan, struct rbi_bench_page *page, int number);

/** Stops both sides; notes why, unless they were stopped before: the first reason counts. */
void rbi_bench_fail(struct rbi_bench_page *page, int code, const char *format, ...)
    RBI_PRINTF(3, 4);
/** The same for an enum ringbus_error. */
void rbi_bench_fail_bus(struct rbi_bench_page *page, int error, const char *what, const char *text);
/**
 * Looked for nothing: where this side sleeps, it waits at most @p nap_ms.
 * @retval false  it is time to leave: stopped, or nothing has come for too long
 */
bool rbi_bench_idle(struct rbi_bench_side *side, int nap_ms);
#define RBI_BENCH_NAP_MS 100
/** What a message contains. @retval 0; -ENOMEM */
RBI_MUST_CHECK int rbi_bench_pattern_init(struct rbi_bench_side *side);
/** The message callback of both sides. @p user: the side */
void rbi_bench_on_message(struct ringbus *bus, const struct ringbus_message *message, void *user);
/** Does one job; both sides have met. Nanoseconds a message go to the page. @retval false leave */
bool rbi_bench_job_run(struct rbi_bench_side *side, const struct rbi_bench_job *job);

/** CPU time of two cores, in clock ticks since boot. */
struct rbi_bench_load {
    bool known;
    uint64_t all;
    uint64_t busy; /* somebody ran, we ourselves too */
    uint64_t steal;
};

/** What the machine did beside the measurement, in percent of the two cores' time. */
struct rbi_bench_quiet {
    bool known;
    double steal_percent;
    double others_percent;
};

/** Chooses the cores, or checks those of --cpus. Complains itself. @return exit code */
RBI_MUST_CHECK int rbi_bench_cpus(const struct rbi_ctl_args *args, int cpus[2]);
/** Pins this process. @retval 0; -errno */
RBI_MUST_CHECK int rbi_bench_pin(int cpu);
void rbi_bench_load_read(const int cpus[2], struct rbi_bench_load *out);
/** @p own_ns: CPU time of both sides in between. */
struct rbi_bench_quiet rbi_bench_load_between(const struct rbi_bench_load *before,
                                              const struct rbi_bench_load *after,
                                              uint64_t own_ns);
/** "AMD EPYC 7763 64-Core Processor", or "" when unknown. @retval true  it is a virtual machine */
bool rbi_bench_cpu_name(char *buffer, size_t size);

/** What the daemon says about itself. */
struct rbi_bench_daemon {
    char version[256];
    char socket[256];
    char config[256];
};

/** Prints all figures, as text or JSON. */
void rbi_bench_report(const struct rbi_bench_plan *plan,
                      const struct rbi_bench_page *page,
                      const struct rbi_bench_daemon *daemon,
                      const struct rbi_bench_quiet *quiet);

#endif
