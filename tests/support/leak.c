/* SPDX-License-Identifier: Apache-2.0 */
#include "support/leak.h"

#include "support/raw.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Mappings of the allocator and of libraries that a loop may add or split. */
#define MAPS_SLACK 4U

/* ---- a process --------------------------------------------------------------------------- */

static FILE *proc_open(pid_t pid, const char *name)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    FILE *file = fopen(path, "re");
    if (!file) {
        (void)fprintf(stderr, "leak: %s: %s\n", path, strerror(errno));
    }
    return file;
}

/* Entries of a folder whose name begins so. @return -1 when it cannot be read */
static int entries(const char *path, const char *prefix, const char *but)
{
    int count = 0;
    DIR *folder = opendir(path);
    if (!folder) {
        return -1;
    }
    const struct dirent *entry = NULL;
    while ((entry = readdir(folder)) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
        const char *name = entry->d_name;
        count += name[0] != '.' && strncmp(name, prefix, strlen(prefix)) == 0 &&
                 (!but || strncmp(name, but, strlen(but)) != 0);
    }
    (void)closedir(folder);
    return count;
}

static int read_maps(struct leak_process *out)
{
    char line[512];
    bool whole = true; /* the last piece ended a line */
    FILE *file = proc_open(out->pid, "maps");
    if (!file) {
        return -1;
    }
    while (fgets(line, sizeof line, file)) {
        out->maps += whole;
        out->memfd_maps += strstr(line, "/memfd:ringbus") != NULL;
        whole = strchr(line, '\n') != NULL;
    }
    (void)fclose(file);
    return 0;
}

static int read_memory(struct leak_process *out)
{
    char line[128];
    FILE *file = proc_open(out->pid, "smaps_rollup");
    if (!file) {
        return -1;
    }
    while (fgets(line, sizeof line, file)) {
        (void)sscanf(line, "Rss: %" SCNu64, &out->rss_kib);
        (void)sscanf(line, "Pss_Shmem: %" SCNu64, &out->shmem_kib);
    }
    (void)fclose(file);
    return 0;
}

int leak_process_read(pid_t pid, struct leak_process *out)
{
    char path[64];
    *out = (struct leak_process){.pid = pid != 0 ? pid : getpid()};
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)out->pid);
    const int fds = entries(path, "", NULL);
    if (fds < 0 || read_maps(out) < 0 || read_memory(out) < 0) {
        return -1;
    }
    /* Without the one that was open for counting. */
    out->fds = (unsigned)fds - (out->pid == getpid() ? 1U : 0U);
    return 0;
}

static bool is_back(const struct leak_process *before, const struct leak_process *now, uint64_t kib)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    /* A sanitizer keeps what was freed; it looks for leaks by itself. */
    (void)kib;
    return now->fds <= before->fds && now->memfd_maps <= before->memfd_maps;
#else
    return now->fds <= before->fds && now->memfd_maps <= before->memfd_maps &&
           now->maps <= before->maps + MAPS_SLACK && now->rss_kib <= before->rss_kib + kib &&
           now->shmem_kib <= before->shmem_kib + kib;
#endif
}

bool leak_process_is_back(const struct leak_process *before, uint64_t slack_kib)
{
    struct leak_process now;
    return leak_process_read(before->pid, &now) == 0 && is_back(before, &now, slack_kib);
}

void leak_process_print(const struct leak_process *before)
{
    struct leak_process now;
    if (leak_process_read(before->pid, &now) == 0) {
        (void)fprintf(stderr,
                      "leak: process %d: descriptors %u, were %u; memfds mapped %u, were %u; "
                      "mappings %u, were %u; resident %" PRIu64 " KiB, was %" PRIu64
                      "; shared %" PRIu64 " KiB, was %" PRIu64 "\n",
                      (int)now.pid, now.fds, before->fds, now.memfd_maps, before->memfd_maps,
                      now.maps, before->maps, now.rss_kib, before->rss_kib, now.shmem_kib,
                      before->shmem_kib);
    }
}

bool leak_process_wait(const struct leak_process *before, uint64_t slack_kib, unsigned timeout_ms)
{
    const uint64_t deadline_ms = test_now_ms() + timeout_ms;
    while (!leak_process_is_back(before, slack_kib)) {
        if (test_now_ms() > deadline_ms) {
            leak_process_print(before);
            return false;
        }
        test_sleep_ms(2);
    }
    return true;
}

/* ---- the daemon -------------------------------------------------------------------------- */

int leak_daemon_read(const struct cluster *cluster, struct leak_daemon *out)
{
    struct leak_process process;
    /* First: our own questions leave a connection that the daemon may not have closed yet. */
    if (leak_process_read(cluster->pid, &process) < 0) {
        return -1;
    }
    *out = (struct leak_daemon){.process = process,
                                .connections = raw_status(cluster->socket, "connections"),
                                .endpoints = raw_status(cluster->socket, "endpoints"),
                                .links = raw_status(cluster->socket, "links"),
                                .watches = raw_status(cluster->socket, "watches")};
    return out->connections != UINT64_MAX && out->endpoints != UINT64_MAX &&
                   out->links != UINT64_MAX && out->watches != UINT64_MAX
               ? 0
               : -1;
}

bool leak_daemon_wait(const struct cluster *cluster,
                      const struct leak_daemon *before,
                      uint64_t slack_kib,
                      unsigned timeout_ms)
{
    const uint64_t deadline_ms = test_now_ms() + timeout_ms;
    for (;;) {
        struct leak_daemon now;
        const bool answered = leak_daemon_read(cluster, &now) == 0;
        if (answered && now.connections <= before->connections &&
            now.endpoints == before->endpoints && now.links == before->links &&
            now.watches == before->watches && is_back(&before->process, &now.process, slack_kib)) {
            return true;
        }
        if (test_now_ms() > deadline_ms) {
            if (answered) {
                (void)fprintf(stderr,
                              "leak: daemon: connections %" PRIu64 ", were %" PRIu64
                              "; endpoints %" PRIu64 ", were %" PRIu64 "; links %" PRIu64
                              ", were %" PRIu64 "; watches %" PRIu64 ", were %" PRIu64 "\n",
                              now.connections, before->connections, now.endpoints,
                              before->endpoints, now.links, before->links, now.watches,
                              before->watches);
            }
            leak_process_print(&before->process);
            return false;
        }
        test_sleep_ms(2);
    }
}

/* ---- the file system --------------------------------------------------------------------- */

int leak_traces_read(struct leak_traces *out)
{
    /* A place that does not exist holds nothing. */
    const int shm = entries("/dev/shm", "", NULL);
    const int run = entries("/run", "ringbus", NULL);
    const int tmp = entries("/tmp", "ringbus", "ringbus-");
    *out = (struct leak_traces){.dev_shm = shm > 0 ? (unsigned)shm : 0,
                                .run = run > 0 ? (unsigned)run : 0,
                                .tmp = tmp > 0 ? (unsigned)tmp : 0};
    return tmp < 0 ? -1 : 0;
}

bool leak_traces_same(const struct leak_traces *before)
{
    struct leak_traces now;
    if (leak_traces_read(&now) == 0 && now.dev_shm <= before->dev_shm && now.run <= before->run &&
        now.tmp <= before->tmp) {
        return true;
    }
    (void)fprintf(
        stderr, "leak: entries in /dev/shm %u, were %u; in /run %u, were %u; in /tmp %u, were %u\n",
        now.dev_shm, before->dev_shm, now.run, before->run, now.tmp, before->tmp);
    return false;
}
