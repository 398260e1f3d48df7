/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_SUPPORT_TEST_H
#define RINGBUS_TESTS_SUPPORT_TEST_H
/*
 * cmocka with the headers that it needs, in the order that it needs.
 * Its asserts belong in the main thread of the main process only: a failing one in
 * a thread ends the program without a word, and in a forked child it jumps back
 * into the runner. Threads and children exit(1), the parent asserts on the status.
 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#endif
