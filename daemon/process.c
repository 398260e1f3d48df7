/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/process.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of /proc/PID/stat, counted from 1; the fields before it are numbers, but for the second. */
#define FIELD_STARTED 22

uint64_t rbi_process_started(uint32_t pid)
{
    char text[1024];
    (void)snprintf(text, sizeof(text), "/proc/%" PRIu32 "/stat", pid);
    const int fd = open(text, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    const ssize_t n = read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    /* The second is the program's own word for itself, in parentheses, which may hold anything. */
    const char *at = strrchr(text, ')');
    if (!at || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X') {
        return 0; /* or it has ended, and nobody has asked for its status yet */
    }
    for (unsigned field = 2; at && field < FIELD_STARTED; field++) {
        at = strchr(at + 1, ' ');
    }
    const uint64_t started = at ? strtoull(at, NULL, 10) : 0;
    return at && started == 0 ? 1 : started;
}
