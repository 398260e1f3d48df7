/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_SUPPORT_HOSTS_H
#define RINGBUS_TESTS_SUPPORT_HOSTS_H
/*
 * Several hosts on one machine: each has a private directory with a real ringbusd and a real
 * ringbus-bridge, and each connection between two bridges goes through a network of its own that
 * can be broken (support/fault_proxy.h).
 *
 *   endpoints == ringbusd, ringbus-bridge of host 0 --> proxy --> ringbus-bridge of host 1 == ...
 *
 * What cannot be made ends the test. Functions wait for states, never for time.
 */
#include "support/bus.h"
#include "support/fault_proxy.h"

#define HOSTS_MAX 4U

/** A host: index 0 is "alpha", then "beta", "gamma", "delta". */
struct host {
    struct cluster cluster;
    const char *name;
    pid_t bridge;     /* 0: none runs */
    char address[32]; /* at which its bridge listens now */
    char log[96];     /* of all its bridges */
    long log_from;    /* where that of the bridge which runs begins */
};

struct hosts {
    struct host host[HOSTS_MAX];
    unsigned count;
    struct fault_proxy *proxy[HOSTS_MAX][HOSTS_MAX]; /* [who dials][whom], or NULL */
};

/** What is to be made. */
struct hosts_options {
    unsigned count;
    bool both;          /* both of a pair dial, else the lower index */
    bool chain;         /* only those with indexes that follow each other are neighbours */
    bool diamond;       /* of four: 0 and 3 are no neighbours, and neither are 1 and 2 */
    const char *bridge; /* more of the section bridge: lines indented by two; or NULL */
    const char *rest;   /* more of the configuration; or NULL */
    const char *rest_of[HOSTS_MAX]; /* instead, of one host */
    /* Keys of each that say whom it believes, indented by two; NULL: "insecure: true". */
    const char *secure_of[HOSTS_MAX];
    /* Runs in each bridge's process before exec. */
    void (*before_exec)(void);
};

/** Starts all, and waits until the neighbours are joined. */
void hosts_up(struct hosts *hosts, const struct hosts_options *options);
/** Ends what runs, removes the directories. */
void hosts_down(struct hosts *hosts);

/** Starts a bridge and waits until it listens: its neighbours are led to it. */
void hosts_bridge_start(struct hosts *hosts, unsigned index);
void hosts_bridge_kill(struct hosts *hosts, unsigned index);
/** SIGTERM. @return its exit code, or -1 when it did not end by itself within 10 s */
int hosts_bridge_stop(struct hosts *hosts, unsigned index);
/** Whether a bridge has a connection to another now, as its log says. */
bool hosts_joined(const struct hosts *hosts, unsigned index, unsigned other);
/** Waits until both say so. */
void hosts_wait_joined(const struct hosts *hosts, unsigned one, unsigned two);
/** How often the bridges of a host have logged a line with @p text. */
unsigned hosts_log_count(const struct hosts *hosts, unsigned index, const char *text);
/** How a bridge stands: open descriptors; resident memory in KiB without what is shared. */
unsigned hosts_bridge_fds(const struct hosts *hosts, unsigned index);
unsigned long hosts_bridge_kib(const struct hosts *hosts, unsigned index);
/** How often it has slept until now. */
unsigned long hosts_bridge_sleeps(const struct hosts *hosts, unsigned index);
/** CPU time in clock ticks (1/100 s). */
long hosts_bridge_ticks(const struct hosts *hosts, unsigned index);

/**
 * As child_start(), of a child that has none of the descriptors of this process: a connection that
 * the proxy ends ends, whoever was forked meanwhile.
 */
pid_t hosts_child_start(void (*body)(const struct cluster *cluster, void *context),
                        const struct cluster *cluster,
                        void *context);

#endif
