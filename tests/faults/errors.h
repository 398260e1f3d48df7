/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_FAULTS_ERRORS_H
#define RINGBUS_TESTS_FAULTS_ERRORS_H
/*
 * Which errors the kernel gives for which system call though its caller made no mistake.
 * Calls that cannot fail so, and those whose failure has already done its work (close, munmap),
 * have none.
 */
#include <stdbool.h>
#include <stdint.h>

/** @return errno number @p pick of the call, 0: it has not so many */
int errors_of(long call, const uint64_t arguments[6], unsigned pick);
/** "sendmsg"; a number for those that have no errors here. @return a static text */
const char *errors_call_name(long call);
/** What every caller has to repeat: nobody above the call may see it. */
bool errors_is_invisible(long call, int error);

#endif
