/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_HOSTILE_FLAW_H
#define RINGBUS_TESTS_HOSTILE_FLAW_H
/* What can be wrong with a descriptor that is offered as memory. */
#include "shm/segment.h"

#include <stdint.h>

enum flaw {
    FLAW_NONE,
    FLAW_FILE,
    FLAW_TMPFS_FILE,
    FLAW_PIPE,
    FLAW_DEV_NULL,
    FLAW_DEV_ZERO,
    FLAW_SOCKET,
    FLAW_EVENTFD,
    FLAW_EPOLL,
    FLAW_FOLDER,
    FLAW_PIDFD,
    FLAW_TIMER,
    FLAW_PATH_ONLY,
    FLAW_WRITE_ONLY,
    FLAW_NO_SEALS,
    FLAW_NO_SHRINK,
    FLAW_NO_GROW,
    FLAW_NO_FUTURE_WRITE,
    FLAW_NO_SEAL,
    FLAW_OTHER_SEAL,
    FLAW_HUGE_PAGES,
    FLAW_SHORT,
    FLAW_LONG,
    FLAW_UNEVEN,
    FLAW_EMPTY,
    FLAW_TEBIBYTE,
    FLAW_HOLE,
    FLAW_MAGIC,
    FLAW_VERSION,
    FLAW_KIND_NEXT,
    FLAW_KIND_DIRECTORY,
    FLAW_KIND_0,
    FLAW_FINGERPRINT,
    FLAW_SIZE_FIELD,
    FLAW_COUNT
};

/** A descriptor with this flaw; FLAW_NONE: a segment of @p kind as it should be. Asserts. */
int flaw_make(enum flaw flaw, enum rbi_segment_kind kind, uint64_t bytes);

#endif
