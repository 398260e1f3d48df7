/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_PROCESS_BROKER_PROCESS_H
#define RINGBUS_TESTS_PROCESS_BROKER_PROCESS_H
/* A real ringbus-broker, with its file in the folder of a cluster. */
#include "support/bus.h"
#include "support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct broker {
    char config[128];
    char log[128];
    pid_t pid;
};

/* In the child. */
static inline _Noreturn void broker_become(const struct broker *broker)
{
    const int log = open(broker->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log < 0 || dup2(log, STDERR_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0) {
        _exit(126);
    }
    (void)close_range(STDERR_FILENO + 1, ~0U, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)execl(RINGBUS_BROKER_PATH, "ringbus-broker", "--config", broker->config, (char *)NULL);
    _exit(127);
}

static inline void broker_configure(const struct broker *broker, const char *config)
{
    FILE *file = fopen(broker->config, "we");
    CHECK(file != NULL);
    CHECK(fputs(config, file) >= 0);
    CHECK(fclose(file) == 0);
}

/** How often @p text is in its log. */
static inline unsigned broker_log_count(const struct broker *broker, const char *text)
{
    char line[2048];
    unsigned count = 0;
    FILE *file = fopen(broker->log, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        count += strstr(line, text) != NULL;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return count;
}

static inline void broker_log_wait(const struct broker *broker, const char *text, unsigned count)
{
    const uint64_t deadline_ms = test_now_ms() + NODE_MS;
    while (broker_log_count(broker, text) < count) {
        if (test_now_ms() > deadline_ms) {
            bus_die(__FILE__, __LINE__, text);
        }
        test_sleep_ms(2);
    }
}

/** Starts it, and waits until it stands on its sides. */
static inline void broker_start(struct broker *broker,
                                const struct cluster *cluster,
                                const char *name,
                                const char *config)
{
    (void)snprintf(broker->config, sizeof broker->config, "%s/%s.yaml", cluster->folder, name);
    (void)snprintf(broker->log, sizeof broker->log, "%s/%s.log", cluster->folder, name);
    const unsigned before = broker_log_count(broker, "event=broker_ready");
    broker_configure(broker, config);
    broker->pid = fork();
    if (broker->pid == 0) {
        broker_become(broker);
    }
    CHECK(broker->pid > 0);
    broker_log_wait(broker, "event=broker_ready", before + 1);
}

static inline void broker_kill(struct broker *broker)
{
    CHECK(broker->pid > 0); /* 0 would be everybody */
    CHECK(kill(broker->pid, SIGKILL) == 0);
    CHECK(waitpid(broker->pid, NULL, 0) == broker->pid);
    broker->pid = 0;
}

/**
 * The text of a file of configs/, with one text replaced by another; both NULL: none.
 * @return @p out
 */
static inline char *
broker_file(const char *name, const char *replace, const char *by, char *out, size_t size)
{
    char path[512];
    char text[8192];
    (void)snprintf(path, sizeof path, RINGBUS_CONFIGS "/%s", name);
    FILE *file = fopen(path, "re");
    CHECK(file != NULL);
    const size_t got = fread(text, 1, sizeof text - 1, file);
    CHECK(feof(file) != 0);
    (void)fclose(file);
    text[got] = '\0';
    size_t used = 0;
    out[0] = '\0';
    for (char *at = text; *at != '\0';) {
        char *next = replace != NULL ? strstr(at, replace) : NULL;
        const size_t plain = next != NULL ? (size_t)(next - at) : strlen(at);
        const int n =
            snprintf(out + used, size - used, "%.*s%s", (int)plain, at, next != NULL ? by : "");
        CHECK(n >= 0 && (size_t)n < size - used);
        used += (size_t)n;
        at = next != NULL ? next + strlen(replace) : at + plain;
    }
    return out;
}

/** SIGTERM. The nodes are polled until it has ended; with 0. */
static inline void broker_stop(struct broker *broker, struct node *a, struct node *b)
{
    int status = -1;
    CHECK(broker->pid > 0);
    CHECK(kill(broker->pid, SIGTERM) == 0);
    RUN_UNTIL(waitpid(broker->pid, &status, WNOHANG) == broker->pid, NODE_MS, a, b);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    broker->pid = 0;
}

#endif
