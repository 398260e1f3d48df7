/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_HOSTILE_VICTIM_H
#define RINGBUS_TESTS_HOSTILE_VICTIM_H
/*
 * Whom the hostile peer attacks: a receiver that uses the public library in a process of
 * its own, and an honest sender in another that must not notice. Both are told what to do,
 * and say what they saw, in one piece of memory that they share with the test.
 */
#include "support/cluster.h"

#include <stdatomic.h>

#define VICTIM_CLUSTER "/bad/eu/pc/w1/core/victim"
#define VICTIM_PATH    VICTIM_CLUSTER "/1"
#define HOSTILE        "/bad/eu/pc/w1/core/hostile"
#define HOSTILE_PATH   HOSTILE "/7"
#define HONEST_PATH    "/bad/eu/pc/w1/core/honest/1"

/* Racing with oneself is what some tests are for; ThreadSanitizer would be right to object. */
#if defined(__SANITIZE_THREAD__)
#define RACES_FORBIDDEN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RACES_FORBIDDEN 1
#endif
#endif
#ifndef RACES_FORBIDDEN
#define RACES_FORBIDDEN 0
#endif

struct scene {
    /* Orders. */
    _Atomic unsigned stop_honest;
    _Atomic unsigned stop_victim;
    _Atomic unsigned pause_honest_us; /* between two messages */
    _Atomic unsigned talk;            /* messages to each READY hostile peer between two polls */
    _Atomic unsigned target_hostile;  /* the victim targets HOSTILE */
    _Atomic unsigned slow_us;         /* the victim's handler takes that long */
    _Atomic unsigned count_request;   /* raised: count descriptors and mappings */
    /* What the victim saw. */
    _Atomic unsigned ready;
    _Atomic uint64_t heartbeat;
    _Atomic uint64_t instance; /* its cluster id and instance */
    _Atomic uint64_t cluster;
    _Atomic uint64_t honest_received;
    _Atomic uint64_t honest_wrong; /* lost, doubled or out of order */
    _Atomic uint64_t hostile_received;
    _Atomic uint64_t broken_views; /* messages that are not what the API promises */
    _Atomic uint64_t talked;       /* messages accepted for hostile peers */
    _Atomic uint64_t talk_full;
    _Atomic uint64_t ups; /* of hostile peers */
    _Atomic uint64_t downs;
    _Atomic uint64_t last_down; /* reason */
    _Atomic uint64_t failed;    /* LINK_FAILED of hostile peers */
    _Atomic uint64_t last_failed;
    _Atomic int64_t last_failed_error;
    _Atomic uint64_t undelivered;
    _Atomic uint64_t honest_downs;
    _Atomic uint64_t bad_peer; /* counters of the library */
    _Atomic uint64_t links_closed;
    _Atomic uint64_t links;
    _Atomic uint64_t pool_used;
    _Atomic uint64_t waits; /* returns of ringbus_wait() */
    _Atomic unsigned counted;
    _Atomic uint64_t fds;
    _Atomic uint64_t maps; /* of memfds */
    /* What the honest one saw. */
    _Atomic uint64_t honest_sent;
    _Atomic uint64_t honest_trouble;
    _Atomic unsigned honest_done;
};

struct stage {
    struct cluster cluster;
    struct scene *scene;
    pid_t victim;
    pid_t honest;
    uint64_t fds; /* of the victim, and of the daemon, with nothing but the honest link */
    uint64_t maps;
    int daemon_fds;
};

/** Daemon, victim, honest sender; counts what they hold. 0 or -1. */
int stage_up(struct stage *stage);
/** Lets the honest one finish, compares, ends everything. @return 0; -1 something was lost, or a
 * process did not end with 0 (a sanitizer's report, a leak, a crash) */
int stage_down(struct stage *stage);
/** Whether victim and honest sender still make progress. */
bool stage_alive(struct stage *stage);
/** Waits until the victim and the daemon hold what they held at the beginning. */
bool stage_clean(struct stage *stage);
/** Waits until *@p value differs from @p old. */
bool stage_changes(const _Atomic uint64_t *value, uint64_t old, unsigned timeout_ms);
/** CPU time of a process in clock ticks. */
long stage_cpu_ticks(pid_t pid);

#endif
