/* SPDX-License-Identifier: Apache-2.0 */
#include "crash/holding.h"

#include "support/bus.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static uint64_t count_entries(const char *path)
{
    uint64_t count = 0;
    DIR *folder = opendir(path);
    CHECK(folder != NULL);
    const struct dirent *entry = NULL;
    while ((entry = readdir(folder)) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
        count += entry->d_name[0] != '.';
    }
    (void)closedir(folder);
    return count;
}

static const char *const kind_names[HOLDING_KINDS] = {"directory", "page", "pool", "side"};

/** @return the kind of a line that begins a mapping; HOLDING_KINDS: none of ours */
static unsigned kind_of(const char *line)
{
    const char *name = strstr(line, "/memfd:ringbus-");
    unsigned kind = 0;
    while (kind < HOLDING_KINDS && (!name || !strstr(name, kind_names[kind]))) {
        kind++;
    }
    return kind;
}

/* The kernel's own sum (RssShmem) is an estimate; the page tables are not. */
static void take_resident(pid_t pid, uint64_t *out)
{
    char path[64];
    char line[512];
    uint64_t kib = 0;
    unsigned kind = HOLDING_KINDS;
    memset(out, 0, HOLDING_KINDS * sizeof *out);
    (void)snprintf(path, sizeof path, "/proc/%d/smaps", (int)pid);
    FILE *file = fopen(path, "re");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file)) {
        if (!isupper((unsigned char)line[0])) {
            kind = kind_of(line);
        } else if (kind < HOLDING_KINDS && sscanf(line, "Rss: %" SCNu64, &kib) == 1) {
            out[kind] += kib;
        }
    }
    (void)fclose(file);
}

void holding_take(const struct cluster *cluster, struct holding *out)
{
    CHECK(leak_daemon_read(cluster, &out->daemon) == 0);
    CHECK(leak_process_read(0, &out->own) == 0);
    take_resident(getpid(), out->own_kib);
    take_resident(cluster->pid, out->daemon_kib);
    out->folder = count_entries(cluster->folder);
}

bool holding_own_equal(const struct holding *before)
{
    return bus_fd_count() == before->own.fds && bus_map_count() == before->own.memfd_maps;
}

bool holding_counts_equal(const struct holding *before, const struct holding *after)
{
    struct holding counts = *after;
    memcpy(counts.own_kib, before->own_kib, sizeof counts.own_kib);
    memcpy(counts.daemon_kib, before->daemon_kib, sizeof counts.daemon_kib);
    return holding_equal(before, &counts, false);
}

static bool is_equal(const char *what, const char *kind, uint64_t before, uint64_t after, bool say)
{
    if (before != after && say) {
        (void)fprintf(stderr, "crash: %s%s: %" PRIu64 " before, %" PRIu64 " after\n", what, kind,
                      before, after);
    }
    return before == after;
}

bool holding_equal(const struct holding *before, const struct holding *after, bool say)
{
    const struct {
        const char *name;
        uint64_t before;
        uint64_t after;
    } figures[] = {
        {"descriptors of the partners", before->own.fds, after->own.fds},
        {"mappings of the partners", before->own.memfd_maps, after->own.memfd_maps},
        {"descriptors of the daemon", before->daemon.process.fds, after->daemon.process.fds},
        {"mappings of the daemon", before->daemon.process.memfd_maps,
         after->daemon.process.memfd_maps},
        {"connections", before->daemon.connections, after->daemon.connections},
        {"endpoints", before->daemon.endpoints, after->daemon.endpoints},
        {"links", before->daemon.links, after->daemon.links},
        {"watches", before->daemon.watches, after->daemon.watches},
        {"entries of the daemon's folder", before->folder, after->folder},
    };
    bool equal = true;
    for (unsigned i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        equal &= is_equal(figures[i].name, "", figures[i].before, figures[i].after, say);
    }
    for (unsigned kind = 0; kind < HOLDING_KINDS; kind++) {
        equal &= is_equal("resident KiB of the daemon, ", kind_names[kind],
                          before->daemon_kib[kind], after->daemon_kib[kind], say);
        /* What the daemon has written in its directory is there; which of it a client has mapped
         * is up to where the kernel maps neighbours of a page that was looked at. */
        equal &= kind == HOLDING_DIRECTORY ||
                 is_equal("resident KiB of the partners, ", kind_names[kind], before->own_kib[kind],
                          after->own_kib[kind], say);
    }
    return equal;
}
