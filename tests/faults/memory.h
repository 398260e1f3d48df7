/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_FAULTS_MEMORY_H
#define RINGBUS_TESTS_FAULTS_MEMORY_H
/*
 * Fails the N-th allocation of a program. memory.c is linked into it, then it sets
 * memory_of_process itself; or is preloaded, and finds what it is told in a file that it maps,
 * named by MEMORY_VARIABLE.
 */
#include <stdatomic.h>
#include <stdbool.h>

#define MEMORY_VARIABLE "RINGBUS_TEST_MEMORY"

struct memory {
    _Atomic bool armed;
    _Atomic unsigned n;
    _Atomic unsigned calls; /* counted since it was armed */
};

/** NULL: nothing fails. */
extern struct memory *memory_of_process;

#endif
