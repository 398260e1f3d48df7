/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/cgroup.h"

#include <string.h>

#define PREFIX  "0::"
#define REMOVED " (deleted)"

static bool ends_with(const char *text, size_t length, const char *end)
{
    const size_t tail = strlen(end);
    return length > tail && memcmp(text + length - tail, end, tail) == 0;
}

const char *rbi_cgroup_path(const char *text, size_t text_length, size_t *length)
{
    const char *const end = text + text_length;
    for (const char *line = text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop != NULL ? stop : end;
        const size_t line_length = (size_t)(stop - line);
        const char *path = line + strlen(PREFIX);
        if (line_length > strlen(PREFIX) && memcmp(line, PREFIX, strlen(PREFIX)) == 0 &&
            *path == '/') {
            const size_t path_length = (size_t)(stop - path);
            *length = path_length - (ends_with(path, path_length, REMOVED) ? strlen(REMOVED) : 0);
            return path;
        }
        line = stop < end ? stop + 1 : end;
    }
    return NULL;
}
