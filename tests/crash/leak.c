/* SPDX-License-Identifier: Apache-2.0 */
#include "crash/leak.h"

#include "support/bus.h"
#include "support/raw.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Entries of a folder whose name begins so; 0 when there is no such folder. */
static uint64_t entries(const char *path, const char *prefix)
{
    uint64_t count = 0;
    DIR *folder = opendir(path);
    const struct dirent *entry = NULL;
    while (folder && (entry = readdir(folder)) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
        count += entry->d_name[0] != '.' && strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    }
    if (folder) {
        (void)closedir(folder);
    }
    return count;
}

static uint64_t maps_of(pid_t pid)
{
    char path[64];
    char line[512];
    uint64_t count = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "re");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file)) {
        count += strstr(line, "memfd:ringbus") != NULL;
    }
    (void)fclose(file);
    return count;
}

static uint64_t shmem_of(pid_t pid)
{
    char path[64];
    char line[256];
    uint64_t kib = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) && sscanf(line, "RssShmem: %" SCNu64, &kib) != 1) {
    }
    (void)fclose(file);
    return kib;
}

void leak_take(const struct cluster *cluster, struct leak *out)
{
    out->connections = raw_status(cluster->socket, "connections");
    out->endpoints = raw_status(cluster->socket, "endpoints");
    out->links = raw_status(cluster->socket, "links");
    out->watches = raw_status(cluster->socket, "watches");
    out->daemon_fds = (uint64_t)cluster_fd_count(cluster);
    out->daemon_maps = maps_of(cluster->pid);
    out->daemon_shmem = shmem_of(cluster->pid);
    out->own_fds = bus_fd_count();
    out->own_maps = bus_map_count();
    out->own_shmem = shmem_of(getpid());
    out->shm_entries = entries("/dev/shm", "ringbus");
    out->folder_entries = entries(cluster->folder, "");
}

bool leak_own_equal(const struct leak *before)
{
    return bus_fd_count() == before->own_fds && bus_map_count() == before->own_maps;
}

bool leak_equal(const struct leak *before, const struct leak *after, bool say)
{
    const struct {
        const char *name;
        uint64_t before;
        uint64_t after;
    } figures[] = {
        {"descriptors of the partners", before->own_fds, after->own_fds},
        {"mappings of the partners", before->own_maps, after->own_maps},
        {"KiB of shared memory mapped by the partners", before->own_shmem, after->own_shmem},
        {"descriptors of the daemon", before->daemon_fds, after->daemon_fds},
        {"mappings of the daemon", before->daemon_maps, after->daemon_maps},
        {"KiB of shared memory mapped by the daemon", before->daemon_shmem, after->daemon_shmem},
        {"connections", before->connections, after->connections},
        {"endpoints", before->endpoints, after->endpoints},
        {"links", before->links, after->links},
        {"watches", before->watches, after->watches},
        {"entries of /dev/shm", before->shm_entries, after->shm_entries},
        {"entries of the daemon's folder", before->folder_entries, after->folder_entries},
    };
    bool equal = true;
    for (unsigned i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        if (figures[i].before != figures[i].after) {
            equal = false;
            if (say) {
                (void)printf("crash: leak: %s: %" PRIu64 " before, %" PRIu64 " after\n",
                             figures[i].name, figures[i].before, figures[i].after);
            }
        }
    }
    return equal;
}
