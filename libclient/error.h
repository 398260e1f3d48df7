/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_ERROR_H
#define RINGBUS_LIBCLIENT_ERROR_H
/* libclient/error.h - failures, and the sentence that ringbus_errmsg() makes of the last one. */
#include "bus/pidf.h"
#include "shm/base.h"

#include <stdbool.h>
#include <stdint.h>

struct ringbus;

struct rbi_bus_error {
    int code;
    bool formatted;
    struct rbi_pidf peer; /* for the unformatted ones */
    uint64_t value;
    char text[512];
};

/** Notes a failure with a sentence and returns @p code. Cold paths. */
RBI_COLD int rbi_fail(struct ringbus *bus, int code, const char *format, ...) RBI_PRINTF(3, 4);
/** Notes a failure without formatting anything; ringbus_errmsg() makes the sentence. Hot paths. */
int rbi_fail_fast(struct ringbus *bus, int code, const struct rbi_pidf *peer, uint64_t value);
/** Public code for a negative errno of ours, noting the sentence "@p what: strerror". */
RBI_COLD int rbi_fail_errno(struct ringbus *bus, int negative_errno, const char *what);
/** Sentence of the last ringbus_open() that failed in this thread. */
void rbi_open_error_set(const char *text);

#endif
