/* SPDX-License-Identifier: Apache-2.0 */
#include "support/hosts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 20000U

static const char *const names[HOSTS_MAX] = {"alpha", "beta", "gamma", "delta"};
static void (*before_exec)(void);

/* ---- logs ---------------------------------------------------------------------------------- */

typedef void (*line_fn)(const char *line, void *context);

static void each_line(const struct host *host, long from, line_fn on_line, void *context)
{
    char line[2048];
    FILE *file = fopen(host->log, "re");
    if (!file) {
        return;
    }
    (void)fseek(file, from, SEEK_SET);
    while (fgets(line, sizeof line, file) && strchr(line, '\n')) {
        on_line(line, context);
    }
    (void)fclose(file);
}

struct count {
    const char *text;
    unsigned count;
};

static void count_line(const char *line, void *context)
{
    struct count *count = context;
    count->count += strstr(line, count->text) != NULL;
}

unsigned hosts_log_count(const struct hosts *hosts, unsigned index, const char *text)
{
    struct count count = {.text = text};
    each_line(&hosts->host[index], 0, count_line, &count);
    return count.count;
}

struct joined {
    char up[64];
    char cut[64];
    bool now;
};

static void join_line(const char *line, void *context)
{
    struct joined *joined = context;
    if (strstr(line, joined->up)) {
        joined->now = true;
    } else if (strstr(line, joined->cut)) {
        joined->now = false;
    }
}

bool hosts_joined(const struct hosts *hosts, unsigned index, unsigned other)
{
    struct joined joined = {.now = false};
    (void)snprintf(joined.up, sizeof joined.up, "host_up host=%s ", hosts->host[other].name);
    (void)snprintf(joined.cut, sizeof joined.cut, "host_cut host=%s ", hosts->host[other].name);
    each_line(&hosts->host[index], hosts->host[index].log_from, join_line, &joined);
    return joined.now;
}

void hosts_wait_joined(const struct hosts *hosts, unsigned one, unsigned two)
{
    const uint64_t deadline_ms = test_now_ms() + WAIT_MS;
    while (!hosts_joined(hosts, one, two) || !hosts_joined(hosts, two, one)) {
        CHECK(test_now_ms() < deadline_ms);
        test_sleep_ms(2);
    }
}

static void listening_line(const char *line, void *context)
{
    const char *at = strstr(line, "listening address=");
    if (at) {
        (void)sscanf(at, "listening address=%31s", (char *)context);
    }
}

/* ---- bridges -------------------------------------------------------------------------------- */

static void become_bridge(const struct host *host)
{
    const int log = open(host->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log < 0 || dup2(log, STDERR_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0) {
        _exit(126);
    }
    (void)close_range(STDERR_FILENO + 1, ~0U, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (before_exec) {
        before_exec();
    }
    (void)execl(RINGBUS_BRIDGE_PATH, "ringbus-bridge", "--config", host->cluster.config, "--socket",
                host->cluster.socket, "--folder", host->cluster.folder, (char *)NULL);
    _exit(127);
}

static long log_size(const struct host *host)
{
    FILE *file = fopen(host->log, "re");
    long size = 0;
    if (file) {
        (void)fseek(file, 0, SEEK_END);
        size = ftell(file);
        (void)fclose(file);
    }
    return size;
}

void hosts_bridge_start(struct hosts *hosts, unsigned index)
{
    struct host *host = &hosts->host[index];
    const uint64_t deadline_ms = test_now_ms() + WAIT_MS;
    CHECK(host->bridge == 0);
    host->log_from = log_size(host);
    host->address[0] = '\0';
    host->bridge = fork();
    CHECK(host->bridge >= 0);
    if (host->bridge == 0) {
        become_bridge(host);
    }
    while (host->address[0] == '\0') {
        CHECK(waitpid(host->bridge, NULL, WNOHANG) == 0 && test_now_ms() < deadline_ms);
        test_sleep_ms(1);
        each_line(host, host->log_from, listening_line, host->address);
    }
    for (unsigned i = 0; i < hosts->count; i++) {
        if (hosts->proxy[i][index]) {
            fault_proxy_target(hosts->proxy[i][index], host->address);
            fault_proxy_door(hosts->proxy[i][index], FAULT_OPEN);
        }
    }
}

void hosts_bridge_kill(struct hosts *hosts, unsigned index)
{
    struct host *host = &hosts->host[index];
    if (host->bridge > 0) {
        (void)kill(host->bridge, SIGKILL);
        (void)waitpid(host->bridge, NULL, 0);
        host->bridge = 0;
    }
}

int hosts_bridge_stop(struct hosts *hosts, unsigned index)
{
    const pid_t pid = hosts->host[index].bridge;
    hosts->host[index].bridge = 0;
    (void)kill(pid, SIGTERM);
    return child_wait(pid, 10000);
}

/* ---- all ------------------------------------------------------------------------------------ */

static bool dials(const struct hosts_options *options, unsigned from, unsigned to)
{
    const bool near = !options->chain || from + 1 == to || to + 1 == from;
    const bool across = options->diamond && from + to == 3;
    return from != to && near && !across && (options->both || from < to);
}

static void configure(struct hosts *hosts, const struct hosts_options *options, unsigned index)
{
    char text[8192];
    const char *secure = options->secure_of[index];
    const char *rest = options->rest_of[index] ? options->rest_of[index] : options->rest;
    int size = snprintf(text, sizeof text,
                        "%s\nbridge:\n  host: %s\n  listen: [\"127.0.0.1:0\"]\n  start: false\n"
                        "%s\n  export: [\"/**\"]\n%s\n  peers:\n",
                        rest ? rest : "", names[index], secure ? secure : "  insecure: true",
                        options->bridge ? options->bridge : "");
    for (unsigned i = 0; i < hosts->count; i++) {
        const char *address =
            hosts->proxy[index][i] ? fault_proxy_address(hosts->proxy[index][i]) : "";
        if (hosts->proxy[index][i] || hosts->proxy[i][index]) {
            size += snprintf(text + size, sizeof text - (size_t)size,
                             "    - {host: %s, address: \"%s\"}\n", names[i], address);
        }
    }
    CHECK((size_t)size < sizeof text);
    CHECK(cluster_up(&hosts->host[index].cluster, text) == 0);
}

static void name_log(struct host *host)
{
    char folder[sizeof host->cluster.folder]; /* apart: gcc cannot tell that they do not overlap */
    memcpy(folder, host->cluster.folder, sizeof folder);
    (void)snprintf(host->log, sizeof host->log, "%s/bridge.log", folder);
}

void hosts_up(struct hosts *hosts, const struct hosts_options *options)
{
    *hosts = (struct hosts){.count = options->count};
    before_exec = options->before_exec;
    CHECK(options->count >= 1 && options->count <= HOSTS_MAX);
    for (unsigned i = 0; i < options->count * options->count; i++) {
        const unsigned from = i / options->count;
        const unsigned to = i % options->count;
        if (dials(options, from, to)) {
            /* Nobody is there yet: its bridge says where it listens when it runs. */
            hosts->proxy[from][to] = fault_proxy_start("127.0.0.1:1");
            fault_proxy_door(hosts->proxy[from][to], FAULT_CLOSED);
        }
    }
    for (unsigned i = 0; i < options->count; i++) {
        struct host *host = &hosts->host[i];
        host->name = names[i];
        configure(hosts, options, i);
        name_log(host);
    }
    for (unsigned i = 0; i < options->count; i++) {
        hosts_bridge_start(hosts, i);
    }
    for (unsigned i = 0; i < options->count * options->count; i++) {
        if (hosts->proxy[i / options->count][i % options->count]) {
            hosts_wait_joined(hosts, i / options->count, i % options->count);
        }
    }
}

void hosts_down(struct hosts *hosts)
{
    for (unsigned i = 0; i < hosts->count;
         i++) { /* what it has logged is kept if one asks for it */
        hosts_bridge_kill(hosts, i);
        if (getenv("RINGBUS_TEST_KEEP") != NULL) { /* NOLINT(concurrency-mt-unsafe) */
            (void)fprintf(stderr, "kept: %s\n", hosts->host[i].cluster.folder);
            cluster_kill(&hosts->host[i].cluster);
        } else if (hosts->host[i].cluster.folder[0] != '\0') {
            cluster_down(&hosts->host[i].cluster);
        }
    }
    for (unsigned i = 0; i < HOSTS_MAX * HOSTS_MAX; i++) {
        fault_proxy_stop(hosts->proxy[i / HOSTS_MAX][i % HOSTS_MAX]);
    }
    memset(hosts, 0, sizeof *hosts);
}

/* ---- figures --------------------------------------------------------------------------------- */

unsigned hosts_bridge_fds(const struct hosts *hosts, unsigned index)
{
    char path[64];
    unsigned count = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)hosts->host[index].bridge);
    DIR *folder = opendir(path);
    CHECK(folder != NULL);
    const struct dirent *entry = NULL;
    while ((entry = readdir(folder)) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
        count += entry->d_name[0] != '.';
    }
    (void)closedir(folder);
    return count;
}

/* A figure of /proc/PID/status. */
static unsigned long status_of(const struct host *host, const char *name)
{
    char path[64];
    char line[256];
    unsigned long figure = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)host->bridge);
    FILE *file = fopen(path, "re");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) && strncmp(line, name, strlen(name)) != 0) {
    }
    CHECK(sscanf(line + strlen(name), " %lu", &figure) == 1);
    (void)fclose(file);
    return figure;
}

unsigned long hosts_bridge_kib(const struct hosts *hosts, unsigned index)
{
    return status_of(&hosts->host[index], "RssAnon:");
}

unsigned long hosts_bridge_sleeps(const struct hosts *hosts, unsigned index)
{
    return status_of(&hosts->host[index], "voluntary_ctxt_switches:");
}

long hosts_bridge_ticks(const struct hosts *hosts, unsigned index)
{
    struct cluster bridge = {.pid = hosts->host[index].bridge};
    return cluster_cpu_ticks(&bridge);
}

struct body {
    void (*run)(const struct cluster *cluster, void *context);
    void *context;
};

static void run_alone(const struct cluster *cluster, void *context)
{
    const struct body body = *(const struct body *)context;
    (void)close_range(STDERR_FILENO + 1, ~0U, 0);
    body.run(cluster, body.context);
}

pid_t hosts_child_start(void (*body)(const struct cluster *cluster, void *context),
                        const struct cluster *cluster,
                        void *context)
{
    struct body alone = {.run = body, .context = context};
    return child_start(run_alone, cluster, &alone);
}
