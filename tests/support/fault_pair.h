/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_SUPPORT_FAULT_PAIR_H
#define RINGBUS_TESTS_SUPPORT_FAULT_PAIR_H
/*
 * Connections through a fault proxy, and what goes wrong with them. Private to fault_proxy.c and
 * fault_pair.c; of the thread of the proxy, but for the counters.
 */
#include "shm/base.h"
#include "support/fault_proxy.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>

#define FAULT_PAIRS 64U
#define FAULT_NEVER UINT64_MAX

/** Bytes that have come and are to be passed on. */
struct chunk {
    struct chunk *next;
    uint64_t due_ns;
    unsigned begin;
    unsigned end;
    unsigned char bytes[16384];
};

/** One direction. */
struct pipe {
    int from;
    int to;
    struct chunk *first;
    struct chunk **last;
    unsigned size;
    bool ended; /* the writer has; to be passed on behind the bytes */
    bool told;
};

struct pair {
    bool there;
    bool held;            /* not connected to the target yet */
    struct pipe pipes[2]; /* to, back */
    int silent;           /* a second connection to the target; -1 */
};

/** What is to go wrong. */
struct faults {
    struct sockaddr_in target;
    enum fault_door door;
    unsigned stalled;
    unsigned swallowed;
    unsigned delayed;
    uint64_t delay_ns;
    unsigned piece;
    uint64_t cut_at[2]; /* of the bytes passed on; FAULT_NEVER */
    bool cut_reset;
    unsigned cuts_asked;
    unsigned cut_now; /* counts */
};

struct fault_world {
    struct faults faults;
    atomic_uint_fast64_t passed[2];
    atomic_uint_fast64_t came;
    atomic_uint there;
    struct pair pairs[FAULT_PAIRS];
};

uint64_t fault_now_ns(void);
/** Somebody has connected. */
void fault_pair_begin(struct fault_world *world, int fd);
void fault_pair_end(struct fault_world *world, struct pair *pair, bool reset);
/** Passes on what can be. */
void fault_pair_turn(struct fault_world *world, struct pair *pair);
/** Connects those that were held, the last one first. */
void fault_pairs_release(struct fault_world *world);
/** What to wait for. @param due  lowered to when bytes are to be passed on. @return fds set */
unsigned fault_pair_watch(const struct fault_world *world,
                          const struct pair *pair,
                          struct pollfd *fds,
                          uint64_t *due);

#endif
