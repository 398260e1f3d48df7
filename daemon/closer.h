/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_CLOSER_H
#define RINGBUS_DAEMON_CLOSER_H
/*
 * daemon/closer.h - closes what takes long to close. Whoever closes the last descriptor of a
 * dead client's pool frees its pages, some 15 ms for 100 MiB: meanwhile nobody else would be
 * told of that death, or of anything. A thread does it, the only one beside the loop; it
 * knows of nothing but the numbers that it closes, and starts with the first large one.
 */
#include "shm/base.h"

#include <pthread.h>

#define RBI_CLOSER_QUEUE 64U

struct rbi_closer {
    pthread_t thread;
    bool running;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    bool stopping;
    int fds[RBI_CLOSER_QUEUE];
    uint64_t bytes[RBI_CLOSER_QUEUE];
    unsigned first;
    unsigned count;
    uint64_t pending_bytes; /* queued or being closed */
};

void rbi_closer_init(struct rbi_closer *closer);
/** Closes what is queued and ends the thread. Accepts a zeroed one. */
void rbi_closer_deinit(struct rbi_closer *closer);
/**
 * Closes a descriptor, now or soon.
 * @param bytes  of the memory behind it: small ones are closed at once; so is what is too much
 *               to wait for, or clients could die faster than their memory is freed
 */
void rbi_closer_close(struct rbi_closer *closer, int fd, uint64_t bytes);

#endif
