/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_FAULTS_MEMORY_H
#define RINGBUS_TESTS_FAULTS_MEMORY_H
/*
 * What a program preloaded with memory.c is told, in a file that it maps: to fail its N-th
 * allocation. The file is named by MEMORY_VARIABLE.
 */
#include <stdatomic.h>
#include <stdbool.h>

#define MEMORY_VARIABLE "RINGBUS_TEST_MEMORY"

struct memory {
    _Atomic bool armed;
    _Atomic unsigned n;
    _Atomic unsigned calls; /* counted since it was armed */
};

#endif
