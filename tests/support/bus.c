/* SPDX-License-Identifier: Apache-2.0 */
#include "support/bus.h"

#include "support/test.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

_Atomic uint64_t *bus_shared;
static pid_t main_pid;

__attribute__((constructor)) static void note_main(void)
{
    main_pid = getpid();
}

_Noreturn void bus_die(const char *file, int line, const char *what)
{
    (void)fprintf(stderr, "%s:%d: [%d] not so: %s\n", file, line, (int)getpid(), what);
    if (getpid() != main_pid) {
        _exit(1);
    }
    _fail(file, line);
    abort(); /* not reached: cmocka has jumped */
}

/* ---- nodes ------------------------------------------------------------------------------ */

static void on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    struct node *node = user;
    (void)bus;
    node->messages++;
    node->bytes += message->size;
    node->from = message->from;
    if (node->on_message) {
        node->on_message(node, message);
    }
}

static void on_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    struct node *node = user;
    (void)bus;
    node->events[event->type]++;
    if (event->type == RINGBUS_EVENT_READY) {
        node->peer = event->addr;
    } else if (event->type == RINGBUS_EVENT_DOWN || event->type == RINGBUS_EVENT_LINK_FAILED) {
        node->reason = event->reason;
        node->error = event->error;
    }
    if (node->on_event) {
        node->on_event(node, event);
    }
}

void node_on_result(struct ringbus *bus, const struct ringbus_result *result, void *context)
{
    struct node *node = context;
    (void)bus;
    node->replies[result->outcome]++;
    node->reply_error = result->error;
}

struct ringbus_options node_options(const struct cluster *cluster, const char *path)
{
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    options.socket = cluster->socket;
    options.path = path;
    return options;
}

int node_try_open(struct node *node, struct ringbus_options *options)
{
    const node_message_fn message = node->on_message;
    const node_event_fn event = node->on_event;
    void *const context = node->context;
    memset(node, 0, sizeof *node);
    node->on_message = message;
    node->on_event = event;
    node->context = context;
    options->on_message = on_message;
    options->on_event = on_event;
    options->user = node;
    return ringbus_open(options, &node->bus);
}

void node_open_with(struct node *node, struct ringbus_options *options)
{
    if (node_try_open(node, options) != 0) {
        bus_die(__FILE__, __LINE__, ringbus_errmsg(NULL));
    }
}

void node_open(struct node *node, const struct cluster *cluster, const char *path)
{
    struct ringbus_options options = node_options(cluster, path);
    node_open_with(node, &options);
}

void node_close(struct node *node)
{
    CHECK(ringbus_close(node->bus, 0) == 0);
    node->bus = NULL;
}

struct ringbus_addr
node_target(struct node *node, const char *path, unsigned ready, struct node *other)
{
    struct ringbus_addr addr;
    const unsigned before = node->events[RINGBUS_EVENT_READY];
    CHECK(ringbus_target(node->bus, path, NULL, &addr) == 0);
    RUN_UNTIL(node->events[RINGBUS_EVENT_READY] >= before + ready, NODE_MS, node, other);
    return addr;
}

void nodes_step(struct node *const *nodes, unsigned count)
{
    int handled = 0;
    for (unsigned i = 0; i < count; i++) {
        if (nodes[i] && nodes[i]->bus) {
            const int n = ringbus_poll(nodes[i]->bus, 1000);
            CHECK(n >= 0);
            handled += n;
            if (n == 0) {
                CHECK(ringbus_wait(nodes[i]->bus, 0) >= 0);
            }
        }
    }
    if (handled == 0) {
        for (unsigned i = 0; i < count; i++) {
            if (nodes[i] && nodes[i]->bus) {
                CHECK(ringbus_wait(nodes[i]->bus, 1) >= 0);
                return;
            }
        }
        test_sleep_ms(1);
    }
}

struct ringbus_stats node_stats(const struct node *node)
{
    struct ringbus_stats stats = {.struct_size = sizeof stats};
    CHECK(ringbus_stats(node->bus, &stats) == 0);
    return stats;
}

uint64_t node_pool_used(const struct node *node)
{
    return node_stats(node).pool_used;
}

/* ---- children ---------------------------------------------------------------------------- */

void bus_shared_reset(void)
{
    const size_t size = BUS_SHARED_COUNT * sizeof *bus_shared;
    if (!bus_shared) {
        void *words = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        CHECK(words != MAP_FAILED);
        bus_shared = words;
    }
    for (unsigned i = 0; i < BUS_SHARED_COUNT; i++) {
        atomic_store(&bus_shared[i], 0);
    }
}

pid_t child_start(void (*body)(const struct cluster *cluster, void *context),
                  const struct cluster *cluster,
                  void *context)
{
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        body(cluster, context);
        _exit(0);
    }
    return pid;
}

int child_wait(pid_t pid, unsigned timeout_ms)
{
    const uint64_t deadline_ms = test_now_ms() + timeout_ms;
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) != pid) {
        if (test_now_ms() > deadline_ms) {
            child_kill(pid);
            return -1;
        }
        test_sleep_ms(1);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void child_kill(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

/* ---- oracles ------------------------------------------------------------------------------ */

unsigned bus_fd_count(void)
{
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");
    CHECK(folder != NULL);
    const struct dirent *entry = NULL;
    while ((entry = readdir(folder)) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
        count += entry->d_name[0] != '.';
    }
    (void)closedir(folder);
    return count - 1; /* the folder's own */
}

unsigned bus_map_count(void)
{
    char line[512];
    unsigned count = 0;
    FILE *file = fopen("/proc/self/maps", "re");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file)) {
        count += strstr(line, "memfd:ringbus") != NULL;
    }
    (void)fclose(file);
    return count;
}

uint64_t bus_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}
