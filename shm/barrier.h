/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_SHM_BARRIER_H
#define RINGBUS_SHM_BARRIER_H
/*
 * shm/barrier.h - the expensive half of an asymmetric fence, for what happens once in a
 * link's life. One side, on the hot path, stores a word and then loads another, held in order
 * against its compiler alone (rbi_store_asym()); the other side stores its word, makes the
 * kernel fence every processor that runs a process which has joined, and then loads: as if
 * both had fenced.
 */
#include "shm/base.h"

/**
 * From now on rbi_barrier_everywhere() covers this process, its later threads included. The
 * first time costs a process that has threads already some 15 ms; any other, nothing.
 * @return false: the kernel or a filter refuses
 */
bool rbi_barrier_join(void);

/**
 * A full fence in every running thread of every process that has joined.
 * @return false: it was not made
 */
bool rbi_barrier_everywhere(void);

#endif
