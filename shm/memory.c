/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the process may still take. Linux answers an allocation beyond it by killing
 * somebody, not with an error; so whoever is about to reserve pages asks here first.
 * A control group limits all below it, therefore every level up to the mount counts.
 */
#include "shm/memory.h"

#include "shm/segment.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX 65536U /* mountinfo of a crowded container host; what is beyond is not looked at */

/** One mounted hierarchy that carries the memory controller. */
struct hierarchy {
    bool unified;          /* version 2 */
    char mount[PATH_MAX];  /* where */
    char root[PATH_MAX];   /* which group is shown there */
    char member[PATH_MAX]; /* the process's group, from the hierarchy's root */
};

static int open_below(const char *dir, const char *name)
{
    char path[PATH_MAX];
    const int len = snprintf(path, sizeof path, "%s/%s", dir, name);
    if (len < 0 || (size_t)len >= sizeof path) {
        return -1;
    }
    return open(path, O_RDONLY | O_CLOEXEC);
}

/**
 * Reads DIR/NAME as text; false when it cannot be read. One read: all files here but the
 * table of mounts are made in one piece, and are whole or cut off by @p size.
 */
static bool read_text(const char *dir, const char *name, char *text, size_t size)
{
    const int fd = open_below(dir, name);
    if (fd < 0) {
        return false;
    }
    const ssize_t n = read(fd, text, size - 1);
    (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/** Reads DIR/NAME to its end or to @p size, however small the pieces are. */
static bool read_table(const char *dir, const char *name, char *text, size_t size)
{
    const int fd = open_below(dir, name);
    if (fd < 0) {
        return false;
    }
    size_t used = 0;
    while (used < size - 1) {
        const ssize_t n = read(fd, text + used, size - 1 - used);
        if (n <= 0) {
            break;
        }
        used += (size_t)n;
    }
    (void)close(fd);
    text[used] = '\0';
    return used > 0;
}

/** The number behind @p key at the start of a line, or @p fallback. */
static uint64_t field_u64(const char *text, const char *key, uint64_t fallback)
{
    const size_t len = strlen(key);
    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, key, len) == 0) {
            return strtoull(line + len, NULL, 10);
        }
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return fallback;
}

/** A file with one number; "max" and whatever cannot be read is @p fallback. */
static uint64_t file_u64(const char *dir, const char *name, uint64_t fallback)
{
    char text[64];
    if (!read_text(dir, name, text, sizeof text) || text[0] < '0' || text[0] > '9') {
        return fallback;
    }
    return strtoull(text, NULL, 10);
}

/** What one group leaves: its limit, less what is used and cannot be dropped at once. */
static uint64_t group_left(const char *dir, bool unified)
{
    const uint64_t limit =
        file_u64(dir, unified ? "memory.max" : "memory.limit_in_bytes", UINT64_MAX);
    if (limit >= (uint64_t)INT64_MAX / 2) {
        return UINT64_MAX; /* version 1 writes "no limit" as a huge number */
    }
    const uint64_t used = file_u64(dir, unified ? "memory.current" : "memory.usage_in_bytes", 0);
    char text[8192];
    uint64_t cache = 0;
    if (read_text(dir, "memory.stat", text, sizeof text)) {
        cache = field_u64(text, unified ? "inactive_file " : "total_inactive_file ", 0);
    }
    const uint64_t held = used > cache ? used - cache : 0;
    return limit > held ? limit - held : 0;
}

/** The smallest of what the groups leave from MOUNT/BELOW up to the mount. */
static uint64_t path_left(const char *root, const char *mount, const char *below, bool unified)
{
    char dir[3 * PATH_MAX];
    const int len = snprintf(dir, sizeof dir, "%s%s%s", root, mount, below);
    if (len < 0 || (size_t)len >= sizeof dir) {
        return UINT64_MAX;
    }
    const size_t mount_len = strlen(root) + strlen(mount);
    uint64_t left = UINT64_MAX;
    for (;;) {
        left = rbi_min_u64(left, group_left(dir, unified));
        char *slash = strrchr(dir, '/');
        if (slash == NULL || (size_t)(slash - dir) < mount_len) {
            return left;
        }
        *slash = '\0';
    }
}

/** The smallest of what a hierarchy's groups leave, from the process's own up to the mount. */
static uint64_t hierarchy_left(const struct hierarchy *h, const char *root)
{
    const char *below = h->member;
    const size_t root_len = strcmp(h->root, "/") == 0 ? 0 : strlen(h->root);
    if (strncmp(below, h->root, root_len) == 0) {
        below += root_len; /* a container sees its own group as the mount's root */
    } else {
        below =
            ""; /* outside of what is mounted here: the mount's own limit is all there is to see */
    }
    return path_left(root, h->mount, below, h->unified);
}

/** Finds "memory" in a comma-separated list that ends at @p end. */
static bool has_memory(const char *list, const char *end)
{
    static const char word[] = "memory";
    const size_t len = sizeof word - 1;
    while (list < end) {
        const char *comma = memchr(list, ',', (size_t)(end - list));
        const char *stop = comma == NULL ? end : comma;
        if ((size_t)(stop - list) == len && memcmp(list, word, len) == 0) {
            return true;
        }
        list = stop + 1;
    }
    return false;
}

/** The process's group in a hierarchy; lines are "id:controllers:/path". */
static bool find_member(const char *cgroup, bool unified, char *member, size_t size)
{
    for (const char *line = cgroup; line != NULL && *line != '\0';) {
        const char *next = strchr(line, '\n');
        const char *end = next == NULL ? line + strlen(line) : next;
        const char *list = memchr(line, ':', (size_t)(end - line));
        const char *path = list == NULL ? NULL : memchr(list + 1, ':', (size_t)(end - list - 1));
        if (path != NULL &&
            (unified ? path == list + 1 && *line == '0' : has_memory(list + 1, path))) {
            const size_t len = (size_t)(end - path - 1);
            if (len == 0 || len >= size) {
                return false;
            }
            memcpy(member, path + 1, len);
            member[len] = '\0';
            if (len == 1) {
                member[0] = '\0'; /* "/": nothing below the root */
            }
            return true;
        }
        line = next == NULL ? NULL : next + 1;
    }
    return false;
}

/** Takes one line of mountinfo apart; false unless it carries the memory controller. */
static bool parse_mount(const char *line, struct hierarchy *h)
{
    char type[32];
    char options[1024];
    const char *tail = strstr(line, " - ");
    /* 36 35 98:0 ROOT MOUNT options ... - TYPE source OPTIONS; PATH_MAX is 4096 */
    if (tail == NULL || sscanf(line, "%*s %*s %*s %4095s %4095s", h->root, h->mount) != 2 ||
        sscanf(tail, " - %31s %*s %1023s", type, options) != 2) {
        return false;
    }
    h->unified = strcmp(type, "cgroup2") == 0;
    return h->unified ||
           (strcmp(type, "cgroup") == 0 && has_memory(options, options + strlen(options)));
}

/** Looks for the group below the places where hierarchies are mounted almost everywhere. */
static bool usual_place_left(const char *root, const char *member, bool unified, uint64_t *left)
{
    static const char *const places[] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup",
                                         "/sys/fs/cgroup/unified"};
    for (unsigned i = unified ? 1 : 0; i < (unified ? RBI_ARRAY_SIZE(places) : 1); i++) {
        char path[PATH_MAX];
        const int len = snprintf(path, sizeof path, "%s%s%s/cgroup.procs", root, places[i], member);
        /* Every group has this file; what else may be mounted or linked there does not. */
        if (len > 0 && (size_t)len < sizeof path && access(path, F_OK) == 0) {
            *left = path_left(root, places[i], member, unified);
            return true;
        }
    }
    return false;
}

/** Looks through all mounts: in a container without a namespace of groups, or mounted elsewhere. */
static uint64_t mounts_left(const char *root, const char *cgroup)
{
    uint64_t left = UINT64_MAX;
    char *mounts = malloc(TEXT_MAX);
    struct hierarchy *h = malloc(sizeof *h);
    if (mounts != NULL && h != NULL && read_table(root, "proc/self/mountinfo", mounts, TEXT_MAX)) {
        char *rest = NULL;
        for (char *line = strtok_r(mounts, "\n", &rest); line != NULL;
             line = strtok_r(NULL, "\n", &rest)) {
            if (parse_mount(line, h) &&
                find_member(cgroup, h->unified, h->member, sizeof h->member)) {
                left = rbi_min_u64(left, hierarchy_left(h, root));
            }
        }
    }
    free(h);
    free(mounts);
    return left;
}

static uint64_t groups_left(const char *root)
{
    char cgroup[8192];
    char member[PATH_MAX];
    uint64_t left = UINT64_MAX;
    if (!read_text(root, "proc/self/cgroup", cgroup, sizeof cgroup)) {
        return left;
    }
    /* One hierarchy has the controller: version 1 where a line names it, else version 2. */
    const bool unified = !find_member(cgroup, false, member, sizeof member);
    if (unified && !find_member(cgroup, true, member, sizeof member)) {
        return left;
    }
    if (usual_place_left(root, member, unified, &left)) {
        return left;
    }
    return mounts_left(root, cgroup);
}

uint64_t rbi_memory_available_below(const char *root)
{
    char text[8192];
    uint64_t left = UINT64_MAX;
    if (read_text(root, "proc/meminfo", text, sizeof text)) {
        const uint64_t kib = field_u64(text, "MemAvailable:", UINT64_MAX >> 10);
        left = kib >= UINT64_MAX >> 10 ? UINT64_MAX : kib << 10;
    }
    return rbi_min_u64(left, groups_left(root));
}

uint64_t rbi_memory_available(void)
{
    return rbi_memory_available_below("");
}
