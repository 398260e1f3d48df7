/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_SHM_MEMORY_H
#define RINGBUS_SHM_MEMORY_H
/*
 * shm/memory.h - how rbi_memory_available() finds its answer, for its test. Cold:
 * reads a dozen small files.
 */
#include "shm/base.h"

/**
 * rbi_memory_available() with every path below @p root.
 * @param root  "" in earnest; in tests the root of a tree with proc/ and the control groups
 */
uint64_t rbi_memory_available_below(const char *root);

#endif
