/* SPDX-License-Identifier: Apache-2.0 */
#include "govern.h"

#include "support/bus.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAUSE_MS   400U /* between two commands, at most */
#define INSIST_MS  20000U
#define USAGE_CODE 2 /* of ringbusctl: the command line is wrong */

const char soak_policy[] =
    "clusters:\n"
    "  - match: /soak/**\n"
    "    balance: {slots: 1024, rehash_delay: 500ms, on_shield: failover}\n"
    "    shield:\n"
    "      windows: [{within: 1s, calls: 10, failed: 50%}]\n"
    "      above_median: 10%\n"
    "      max_percent: 40%\n"
    "      open_min: 250ms\n"
    "      open_max: 2s\n"
    "      ramp: 500ms\n"
    "    limits:\n"
    "      - {id: paced, scope: caller, rate: 100, methods: 10..19}\n"
    "      - {id: each, scope: instance, rate: 20, methods: 20..29}\n"
    "      - {id: metered, scope: receiver, rate: 20, max_wait: 5ms, methods: 30..39}\n"
    "      - {id: shared, scope: cluster, rate: 500, methods: 40..59}\n"
    "    degrade:\n"
    "      - {id: news, methods: 50..59, action: mock, on: [no_instance, limited], "
    "mock: " SOAK_MOCK "}\n";

static struct {
    struct soak_ledger *ledger;
    const struct cluster *cluster;
    uint64_t random;
    uint64_t due_ms;
    pid_t pid;      /* of the command that runs; 0: none */
    bool is_killed; /* by us */
    char text[128]; /* of it, for a violation */
    char file[128]; /* with what is applied */
    struct soak_edits edits;
} govern;

static uint32_t any_below(uint32_t bound)
{
    return (uint32_t)(bus_random(&govern.random) % bound);
}

/* ---- one command --------------------------------------------------------------------------- */

static _Noreturn void become(const char *const *words)
{
    const char *line[16] = {RINGBUSCTL_PATH};
    const char *const rest[] = {"--socket", govern.cluster->socket, "--timeout", "2s"};
    unsigned count = 1;
    for (; *words && count < 8; words++) {
        line[count++] = *words;
    }
    memcpy(&line[count], rest, sizeof rest);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    (void)dup2(null, STDOUT_FILENO);
    (void)dup2(null, STDERR_FILENO);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)execv(RINGBUSCTL_PATH, (char *const *)(uintptr_t)line);
    _exit(USAGE_CODE);
}

static void run(const char *const *words)
{
    govern.text[0] = '\0';
    for (unsigned i = 0; words[i]; i++) {
        const size_t length = strlen(govern.text);
        (void)snprintf(govern.text + length, sizeof govern.text - length, "%s ", words[i]);
    }
    const pid_t pid = fork();
    if (pid == 0) {
        become(words);
    }
    govern.pid = pid > 0 ? pid : 0;
    govern.is_killed = false;
}

/** @return its exit code; -1 it runs, was killed, or none has run */
static int ended(void)
{
    int status = 0;
    if (govern.pid == 0 || waitpid(govern.pid, &status, WNOHANG) != govern.pid) {
        return -1;
    }
    govern.pid = 0;
    if (govern.is_killed) {
        govern.edits.killed++;
        return -1;
    }
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : USAGE_CODE;
    if (code == USAGE_CODE) {
        soak_violation(govern.ledger, "ringbusctl %sended with status %x", govern.text,
                       (unsigned)status);
    }
    govern.edits.done += code == 0;
    govern.edits.failed += code != 0;
    return code;
}

/* ---- commands -------------------------------------------------------------------------------- */

/** Another of our processes, by its path. */
static void any_path(char path[128])
{
    (void)snprintf(path, 128, SOAK_CLUSTER "/%u", 1 + any_below(govern.ledger->slots));
}

/** Writes the text that is applied: with @p cut, two may not be linked. */
static void write_text(bool cut)
{
    const unsigned from = 1 + any_below(govern.ledger->slots);
    const unsigned to = 1 + any_below(govern.ledger->slots);
    FILE *file = fopen(govern.file, "we");
    if (!file) {
        return;
    }
    (void)fprintf(file, "instances:\n  " SOAK_CLUSTER "/1: {weight: %u}\n", 1 + any_below(1000));
    if (cut) {
        (void)fprintf(file,
                      "rights:\n  rules:\n    - {id: cut, action: deny, verbs: [connect], "
                      "from: " SOAK_CLUSTER "/%u, to: " SOAK_CLUSTER "/%u}\n",
                      from, to);
    }
    (void)fclose(file);
}

static void run_any(void)
{
    char path[128];
    char number[32];
    any_path(path);
    (void)snprintf(number, sizeof number, "%u", any_below(4) == 0 ? 0 : any_below(1001));
    const char *const off = any_below(3) != 0 ? "--off" : NULL;
    const char *const limits[] = {"paced", "each", "metered", "shared"};
    switch (any_below(10)) {
    case 0:
    case 1:
        run((const char *[]){"weight", path, any_below(3) == 0 ? "own" : number, NULL});
        break;
    case 2:
        run((const char *[]){"isolate", path, off, NULL});
        break;
    case 3:
        run((const char *[]){"stage", path, off, NULL});
        break;
    case 4:
        run(off ? (const char *[]){"move", path, off, NULL}
                : (const char *[]){"move", path, "--tags", "blue", "--idc", "north/a", NULL});
        break;
    case 5:
        (void)snprintf(number, sizeof number, "%u", 1 + any_below(2000));
        run((const char *[]){"limit", SOAK_CLUSTER, limits[any_below(4)],
                             any_below(3) == 0 ? "off" : number, NULL});
        break;
    case 6:
    case 7:
        write_text(any_below(2) == 0);
        run((const char *[]){"apply", govern.file, NULL});
        break;
    case 8:
        run((const char *[]){"unshield", path, NULL});
        break;
    default:
        run((const char *[]){any_below(2) == 0 ? "create" : "set", "/soak/area/meta/note", number,
                             NULL});
        break;
    }
}

void soak_govern_step(uint64_t now_ms)
{
    if (govern.pid != 0) {
        if (ended() < 0 && govern.pid != 0 && any_below(2000) == 0) {
            (void)kill(govern.pid, SIGKILL);
            govern.is_killed = true;
        }
        return;
    }
    if (now_ms >= govern.due_ms) {
        run_any();
        govern.due_ms = now_ms + any_below(PAUSE_MS);
    }
}

void soak_govern_stop(void)
{
    if (govern.pid != 0) {
        (void)kill(govern.pid, SIGKILL);
        (void)waitpid(govern.pid, NULL, 0);
        govern.pid = 0;
    }
}

/** Repeats a command until it is done: the daemon runs, or is about to. */
static void insist(const char *const *words)
{
    const uint64_t deadline_ms = test_now_ms() + INSIST_MS;
    int code = -1;
    while (code != 0 && test_now_ms() < deadline_ms) {
        if (govern.pid == 0) {
            run(words);
        }
        code = ended();
        test_sleep_ms(5);
    }
    if (code != 0) {
        soak_violation(govern.ledger, "ringbusctl %sis in vain: %d", govern.text, code);
    }
}

void soak_govern_undo(void)
{
    soak_govern_stop();
    write_text(false);
    insist((const char *[]){"apply", govern.file, NULL});
}

void soak_govern_init(struct soak_ledger *ledger, const struct cluster *cluster, uint64_t seed)
{
    govern.ledger = ledger;
    govern.cluster = cluster;
    govern.random = seed;
    (void)snprintf(govern.file, sizeof govern.file, "%s/applied.yaml", cluster->folder);
    insist((const char *[]){"create", "/soak/area/meta/note", "0", NULL});
}

struct soak_edits soak_govern_edits(void)
{
    return govern.edits;
}
