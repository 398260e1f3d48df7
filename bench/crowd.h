/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BENCH_CROWD_H
#define RINGBUS_BENCH_CROWD_H
/*
 * bench/crowd.h - many endpoints in a few processes on the second core, on the orders of one
 * endpoint in the process that measures. Each member checks number, size and content of what
 * it receives: first and last word of each payload, every byte while the page says so.
 */
#include "bench/run.h"
#include "bench/watch.h"

#include <ringbus/ringbus.h>
#include <stdatomic.h>

#define BENCH_CROWD_PROCESSES 20U

enum bench_crowd_order {
    BENCH_CROWD_REST = 0, /**< sleep, poll nothing */
    BENCH_CROWD_POLL = 1, /**< poll all in turn */
    BENCH_CROWD_ECHO = 2, /**< the first member polls alone, and answers */
    BENCH_CROWD_SEND = 3, /**< each sends share messages to the measuring endpoint */
    BENCH_CROWD_STOP = 4,
};

/** Shared with the members' processes. */
struct bench_crowd_page {
    _Alignas(128) _Atomic(uint32_t) order;
    _Alignas(128) _Atomic(uint64_t) received;
    _Atomic(uint64_t) errors;
    _Alignas(128) _Atomic(uint32_t) opened;
    _Atomic(uint32_t) obeyed; /* processes that carry out the present order */
    _Atomic(uint32_t) sent;   /* processes that have sent everything */
    _Atomic(bool) whole;      /* compare every byte: in the warm-up */
    bool rising;              /* numbers have gaps, since each member gets a part of them */
    uint64_t share;           /* messages of each member */
    uint64_t share_size;
};

struct bench_crowd {
    const char *cluster; /**< 6th element of the members' path */
    bool own_clusters;   /**< each member a cluster of its own: CLUSTER-N */
    unsigned count;      /**< members */
    unsigned apart;      /**< of them in one process; 0: the default */
    enum ringbus_mode mode;
    uint32_t lane_bytes;    /**< 0: the default */
    bool small_pool;        /**< next to no chunks */
    unsigned process_count; /**< set by start */
    pid_t pids[BENCH_CROWD_PROCESSES];
    struct bench_crowd_page *page;
    struct bench_watch watch; /* of its processes */
};

/** Forks and waits until every member is registered. 0; -1 with a line on stderr. */
int bench_crowd_start(const struct bench_run *run, struct bench_crowd *crowd);
/** Gives an order; returns when all processes carry it out. */
void bench_crowd_order(struct bench_crowd *crowd, enum bench_crowd_order order);
/** -1: a member saw something wrong, or a process failed. */
int bench_crowd_stop(struct bench_crowd *crowd);

/** Options of an endpoint of this run that is not polled between its blocks. */
struct ringbus_options bench_endpoint_options(const struct bench_run *run, enum ringbus_mode mode);
/** Opens with a path "/Bench/local/host/w0/g0/NAME/1", or without one. NULL with a line. */
struct ringbus *bench_endpoint_open(const struct ringbus_options *options, const char *name);
/** Targets "/Bench/local/host/w0/g0/CLUSTER" and polls until so many links are READY. 0; -1. */
int bench_endpoint_link(struct ringbus *bus,
                        const char *cluster,
                        unsigned links,
                        struct ringbus_addr *addr);

/** Targets the instances 1 to @p links of a cluster one by one, a few at a time. 0; -1. */
int bench_endpoint_link_each(struct ringbus *bus, const char *cluster, unsigned links);

/** "near" or "far": where the cores lie now. While no member polls. */
const char *bench_regime(void);
/** The same when it was @p before and still is, else "all". */
const char *bench_regime_still(const char *before);

/** What a payload holds between its number and its check word. */
void bench_crowd_fill(unsigned char *payload, size_t size);
/** Number and check word of a payload, as the members expect them. */
static inline void bench_crowd_stamp(unsigned char *payload, size_t size, uint64_t number)
{
    const uint64_t last = ~number;
    memcpy(payload, &number, sizeof number);
    if (size >= 16) {
        memcpy(payload + size - sizeof last, &last, sizeof last);
    }
}
bool bench_crowd_check(const unsigned char *payload, size_t size, uint64_t number, bool whole);

#endif
