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

/* 1 under a sanitizer, whichever compiler's: what is slow or large then is not ours. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SANITIZED 1
#elif defined(__has_feature)
#define TEST_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define TEST_SANITIZED 0
#endif

#endif
