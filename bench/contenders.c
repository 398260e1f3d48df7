/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/contenders.c - the list. One more peer: a file in bench/contenders/, a line here and
 * one in bench/CMakeLists.txt.
 */
#include "bench/bench.h"
#include "bench_optional.h" /* from CMake: peers whose packages were there */

#include <string.h>

#define BENCH_CONTENDERS(X)                                                                        \
    X(two_lines)                                                                                   \
    X(one_line)                                                                                    \
    X(copy)                                                                                        \
    X(copy_read_only)                                                                              \
    X(slots)                                                                                       \
    X(bytering)                                                                                    \
    X(bytering_read_only)                                                                          \
    X(eventfd)                                                                                     \
    X(futex)                                                                                       \
    X(ckring)                                                                                      \
    X(pipe)                                                                                        \
    X(unix_stream)                                                                                 \
    X(unix_packet)                                                                                 \
    X(tcp)                                                                                         \
    X(mq)

#define BENCH_OURS(X)                                                                              \
    X(ringbus)                                                                                     \
    X(ringbus_roomy)                                                                               \
    X(ringbus_burst)                                                                               \
    X(ringbus_claim)                                                                               \
    X(ringbus_reference)                                                                           \
    X(ringbus_no_spin)                                                                             \
    X(ringbus_request)                                                                             \
    X(ringbus_hosts)

#define DECLARE(name) extern const struct bench_contender bench_##name;
#define ENTER(name)   &bench_##name,

BENCH_CONTENDERS(DECLARE)
BENCH_OURS(DECLARE)
BENCH_OPTIONAL(DECLARE)

const struct bench_contender *const bench_contenders[] = {
    BENCH_CONTENDERS(ENTER) BENCH_OPTIONAL(ENTER) BENCH_OURS(ENTER) NULL};

const struct bench_contender *bench_contender_find(const char *name)
{
    for (unsigned i = 0; bench_contenders[i] != NULL; i++) {
        if (strcmp(bench_contenders[i]->name, name) == 0) {
            return bench_contenders[i];
        }
    }
    return NULL;
}
