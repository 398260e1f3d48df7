/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cluster.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define START_MS 5000U
#define STOP_MS  5000U

uint64_t test_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void test_sleep_ms(unsigned ms)
{
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    (void)nanosleep(&pause, NULL);
}

static int failed(const char *what, const char *about)
{
    (void)fprintf(stderr, "cluster: %s %s: %s\n", what, about, strerror(errno));
    return -1;
}

int cluster_configure(struct cluster *cluster, const char *config)
{
    FILE *file = fopen(cluster->config, "we");
    if (!file) {
        return failed("open", cluster->config);
    }
    const bool written = fputs(config, file) >= 0;
    return fclose(file) == 0 && written ? 0 : failed("write", cluster->config);
}

int cluster_make(struct cluster *cluster, const char *config)
{
    cluster->pid = 0;
    (void)snprintf(cluster->folder, sizeof(cluster->folder), "/tmp/ringbus-test-XXXXXX");
    if (!mkdtemp(cluster->folder) || chmod(cluster->folder, 0755) < 0) {
        return failed("mkdtemp", cluster->folder);
    }
    (void)snprintf(cluster->socket, sizeof(cluster->socket), "%s/bus.sock", cluster->folder);
    (void)snprintf(cluster->config, sizeof(cluster->config), "%s/ringbusd.yaml", cluster->folder);
    (void)snprintf(cluster->log, sizeof(cluster->log), "%s/log", cluster->folder);
    return cluster_configure(cluster, config);
}

/** In the child: becomes the daemon. */
static void become_daemon(struct cluster *cluster, const char *const *arguments)
{
    char *argv[16] = {(char *)(uintptr_t) "ringbusd"};
    const int log = open(cluster->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    for (unsigned i = 0; arguments[i] && i < 14; i++) {
        argv[i + 1] = (char *)(uintptr_t)arguments[i];
    }
    if (log < 0 || dup2(log, STDERR_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0) {
        _exit(126);
    }
    /* Whatever the test, or who started it, has open is not the daemon's. */
    (void)close_range(STDERR_FILENO + 1, ~0U, 0);
    /* No daemon outlives a test that crashes. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (cluster->before_exec) {
        cluster->before_exec(cluster->context);
    }
    (void)execv(RINGBUSD_PATH, argv);
    _exit(127);
}

static pid_t spawn_daemon(struct cluster *cluster, const char *const *arguments)
{
    const pid_t pid = fork();
    if (pid == 0) {
        become_daemon(cluster, arguments);
    }
    return pid;
}

/** Waits for the daemon to end by itself. @return its exit code, or -1 */
static int wait_for_end(pid_t pid, unsigned timeout_ms)
{
    const uint64_t deadline_ms = test_now_ms() + timeout_ms;
    int status = 0;
    while (test_now_ms() < deadline_ms) {
        if (waitpid(pid, &status, WNOHANG) == pid) {
            return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        }
        test_sleep_ms(2);
    }
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    return -1;
}

int cluster_run_daemon(struct cluster *cluster, const char *const *arguments)
{
    const pid_t pid = spawn_daemon(cluster, arguments);
    return pid < 0 ? failed("run", RINGBUSD_PATH) : wait_for_end(pid, STOP_MS);
}

/** Where the daemon says that it is ready, as to a service manager. @return a descriptor, or -1 */
static int open_notify(const struct cluster *cluster)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", cluster->folder);
    (void)unlink(address.sun_path);
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)(const void *)&address, sizeof(address)) < 0 ||
        chmod(address.sun_path, 0666) < 0 || setenv("NOTIFY_SOCKET", address.sun_path, 1) < 0) {
        return failed("notify socket", address.sun_path);
    }
    return fd;
}

/** @return 1 ready, 0 not yet, -1 it has ended */
static int poll_ready(struct cluster *cluster, int notify_fd)
{
    char text[256] = "";
    struct pollfd ready = {.fd = notify_fd, .events = POLLIN};
    if (poll(&ready, 1, 10) == 1 && recv(notify_fd, text, sizeof(text) - 1, 0) > 0 &&
        strstr(text, "READY=1")) {
        return 1;
    }
    if (waitpid(cluster->pid, &cluster->status, WNOHANG) == cluster->pid) {
        cluster->pid = 0;
        (void)fprintf(stderr, "cluster: ringbusd ended with status %x, see %s\n",
                      (unsigned)cluster->status, cluster->log);
        return -1;
    }
    return 0;
}

int cluster_start(struct cluster *cluster)
{
    const char *arguments[] = {"--config", cluster->config, "--socket", cluster->socket, NULL};
    const uint64_t deadline_ms = test_now_ms() + START_MS;
    const int notify_fd = open_notify(cluster);
    if (notify_fd < 0) {
        return -1;
    }
    cluster->pid = spawn_daemon(cluster, arguments);
    int ready = 0;
    while (ready == 0 && test_now_ms() < deadline_ms) {
        ready = poll_ready(cluster, notify_fd);
    }
    (void)close(notify_fd);
    (void)unsetenv("NOTIFY_SOCKET");
    return ready == 1 ? 0 : -1;
}

int cluster_up(struct cluster *cluster, const char *config)
{
    return cluster_make(cluster, config) == 0 ? cluster_start(cluster) : -1;
}

void cluster_kill(struct cluster *cluster)
{
    if (cluster->pid > 0) {
        (void)kill(cluster->pid, SIGKILL);
        (void)waitpid(cluster->pid, NULL, 0);
        cluster->pid = 0;
    }
}

int cluster_stop(struct cluster *cluster)
{
    const pid_t pid = cluster->pid;
    if (pid <= 0) {
        return -1;
    }
    cluster->pid = 0;
    (void)kill(pid, SIGTERM);
    return wait_for_end(pid, STOP_MS);
}

void cluster_down(struct cluster *cluster)
{
    cluster_kill(cluster);
    DIR *folder = opendir(cluster->folder);
    if (folder) {
        const struct dirent *entry = NULL;
        while ((entry = readdir(folder)) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
            if (entry->d_name[0] != '.') {
                (void)unlinkat(dirfd(folder), entry->d_name, 0);
            }
        }
        (void)closedir(folder);
    }
    (void)rmdir(cluster->folder);
}

unsigned cluster_log_count(const struct cluster *cluster, const char *text)
{
    char line[4096];
    unsigned count = 0;
    FILE *file = fopen(cluster->log, "re");
    while (file && fgets(line, sizeof(line), file)) {
        count += strstr(line, text) != NULL;
    }
    if (file) {
        (void)fclose(file);
    }
    return count;
}

bool cluster_log_wait(const struct cluster *cluster, const char *text, unsigned timeout_ms)
{
    const uint64_t deadline_ms = test_now_ms() + timeout_ms;
    while (cluster_log_count(cluster, text) == 0) {
        if (test_now_ms() >= deadline_ms) {
            return false;
        }
        test_sleep_ms(5);
    }
    return true;
}

int cluster_fd_count(const struct cluster *cluster)
{
    char path[64];
    int count = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)cluster->pid);
    DIR *folder = opendir(path);
    if (!folder) {
        return -1;
    }
    const struct dirent *entry = NULL;
    while ((entry = readdir(folder)) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
        count += entry->d_name[0] != '.';
    }
    (void)closedir(folder);
    return count;
}

int cluster_fd_wait(const struct cluster *cluster, int count)
{
    const uint64_t deadline_ms = test_now_ms() + 2000;
    int now = cluster_fd_count(cluster);
    while (now != count && test_now_ms() < deadline_ms) {
        test_sleep_ms(5);
        now = cluster_fd_count(cluster);
    }
    return now;
}

long cluster_cpu_ticks(const struct cluster *cluster)
{
    char path[64];
    char line[1024];
    unsigned long user = 0;
    unsigned long kernel = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)cluster->pid);
    FILE *file = fopen(path, "re");
    if (!file) {
        return -1;
    }
    const char *got = fgets(line, sizeof(line), file);
    (void)fclose(file);
    const char *fields = got ? strrchr(line, ')') : NULL;
    if (!fields || sscanf(fields, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                          &kernel) != 2) {
        return -1;
    }
    return (long)(user + kernel);
}
