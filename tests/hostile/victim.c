/* SPDX-License-Identifier: Apache-2.0 */
#include "hostile/victim.h"

#include <dirent.h>
#include <limits.h>
#include <ringbus/ringbus.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PEERS_MAX   64U
#define BIG_BYTES   20000U
#define START_MS    10000U
#define FINISH_MS   20000U
#define HONEST_TAIL 3000

struct victim {
    struct scene *scene;
    struct ringbus *bus;
    uint64_t expected; /* next number of the honest sender */
    struct ringbus_addr talk_to[PEERS_MAX];
    unsigned talk_count;
    uint64_t turn;       /* number in each message to a hostile peer */
    uint64_t given_back; /* number in the last one that came back */
};

/* ---- the receiver ------------------------------------------------------------------------ */

static bool is_hostile(const char *path)
{
    return strstr(path, "/hostile/") != NULL;
}

/** Reads all of it, as an application would, and checks what the API promises. @p own: our own. */
static void inspect(struct victim *victim, const struct ringbus_message *message, bool own)
{
    size_t sum = 0;
    unsigned char mix = 0;
    bool right = message->part_count >= 1 && message->part_count <= RINGBUS_PARTS_MAX;
    for (unsigned i = 0; right && i < message->part_count; i++) {
        const struct ringbus_part *part = &message->parts[i];
        right = part->data == (const unsigned char *)message->data + sum &&
                part->size <= message->size - sum;
        for (size_t k = 0; right && k < part->size; k++) {
            mix ^= ((const volatile unsigned char *)part->data)[k];
        }
        sum += part->size;
    }
    if (!right || sum != message->size || is_hostile(message->from_path) == own) {
        victim->scene->broken_views++;
    }
    (void)mix;
}

static void on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    struct victim *victim = user;
    struct scene *scene = victim->scene;
    if (strcmp(message->from_path, HONEST_PATH) == 0) {
        uint64_t number = 0;
        if (message->size == sizeof(number)) {
            memcpy(&number, message->data, sizeof(number));
        }
        if (number != victim->expected) {
            scene->honest_wrong++;
        }
        victim->expected = number + 1;
        scene->honest_received++;
        return;
    }
    scene->hostile_received++;
    inspect(victim, message, false);
    if (message->kind == RINGBUS_KIND_REQUEST) {
        (void)ringbus_reply(bus, &message->reply_to, message->data,
                            message->size < 256 ? message->size : 256, 0);
    }
    if (scene->slow_us != 0) {
        (void)usleep(scene->slow_us);
    }
}

static void forget(struct victim *victim, const struct ringbus_addr *addr)
{
    for (unsigned i = 0; i < victim->talk_count; i++) {
        if (memcmp(&victim->talk_to[i], addr, sizeof(*addr)) == 0) {
            victim->talk_to[i] = victim->talk_to[--victim->talk_count];
            return;
        }
    }
}

/** What comes back is what was sent, in order, each once. */
static void check_given_back(struct victim *victim, const struct ringbus_message *message)
{
    uint64_t number = 0;
    inspect(victim, message, true);
    if (message->kind != RINGBUS_KIND_ONEWAY) {
        return; /* a reply holds what the hostile peer had asked */
    }
    if (message->size >= sizeof(number)) {
        memcpy(&number, message->data, sizeof(number));
    }
    if (number <= victim->given_back) {
        victim->scene->broken_views++;
    }
    victim->given_back = number;
}

static void on_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    struct victim *victim = user;
    struct scene *scene = victim->scene;
    (void)bus;
    if (strcmp(event->path, HONEST_PATH) == 0 && event->type == RINGBUS_EVENT_DOWN) {
        scene->honest_downs++;
    }
    if (!is_hostile(event->path)) {
        return;
    }
    if (event->type == RINGBUS_EVENT_READY) {
        if (victim->talk_count < PEERS_MAX) {
            victim->talk_to[victim->talk_count++] = event->addr;
        }
        scene->ups++;
    } else if (event->type == RINGBUS_EVENT_DOWN) {
        forget(victim, &event->addr);
        scene->last_down = (uint64_t)event->reason;
        scene->downs++;
    } else if (event->type == RINGBUS_EVENT_LINK_FAILED) {
        scene->last_failed = (uint64_t)event->reason;
        scene->last_failed_error = event->error;
        scene->failed++;
    } else if (event->type == RINGBUS_EVENT_UNDELIVERED) {
        check_given_back(victim, event->message);
        scene->undelivered++;
    }
}

/** Small ones, and large ones by reference: both rings are in use. */
static void talk(struct victim *victim)
{
    static unsigned char big[BIG_BYTES];
    const unsigned count = victim->talk_count * victim->scene->talk;
    for (unsigned k = 0; k < count && victim->talk_count > 0; k++) {
        const unsigned i = k % victim->talk_count;
        const size_t size = victim->turn++ % 4 == 0 ? sizeof(big) : 40;
        memcpy(big, &victim->turn, sizeof(victim->turn));
        const int r = ringbus_send(victim->bus, &victim->talk_to[i], 0, big, size, 0);
        if (r == 1) {
            victim->scene->talked++;
        } else if (r == RINGBUS_E_FULL || r == RINGBUS_E_NO_CHUNK) {
            victim->scene->talk_full++;
        }
    }
}

/* Counters of its own calls: made with the first link that it asks for, and kept to its end. */
#define KEPT "memfd:ringbus-outcomes"

static bool is_kept(const char *name)
{
    char path[PATH_MAX];
    char target[64];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%s", name);
    const ssize_t length = readlink(path, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    return strstr(target, KEPT) != NULL;
}

static uint64_t count_fds(void)
{
    uint64_t count = 0;
    const struct dirent *entry = NULL;
    DIR *folder = opendir("/proc/self/fd");
    while (folder != NULL &&
           (entry = readdir(folder)) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
        count += !is_kept(entry->d_name);
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return count;
}

static uint64_t count_maps(void)
{
    char line[512];
    uint64_t count = 0;
    FILE *file = fopen("/proc/self/maps", "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        count += strstr(line, "memfd:") != NULL && strstr(line, KEPT) == NULL;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return count;
}

static void publish(struct victim *victim)
{
    struct scene *scene = victim->scene;
    struct ringbus_stats stats = {.struct_size = sizeof(stats)};
    if (ringbus_stats(victim->bus, &stats) == 0) {
        scene->bad_peer = stats.bad_peer;
        scene->links_closed = stats.links_closed;
        scene->links = stats.links;
        scene->pool_used = stats.pool_used;
    }
    if (scene->counted != scene->count_request) {
        const unsigned request = scene->count_request;
        scene->fds = count_fds();
        scene->maps = count_maps();
        scene->counted = request;
    }
    scene->heartbeat++;
}

static int run_victim(struct scene *scene, const char *socket)
{
    struct victim victim = {.scene = scene};
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    struct ringbus_addr self;
    options.socket = socket;
    options.path = VICTIM_PATH;
    options.lane_bytes = 16384;
    options.on_message = on_message;
    options.on_event = on_event;
    options.user = &victim;
    options.ping_interval_ms = 200;
    if (ringbus_open(&options, &victim.bus) != 0 || ringbus_self(victim.bus, &self) != 0) {
        (void)fprintf(stderr, "victim: %s\n", ringbus_errmsg(NULL));
        return 2;
    }
    scene->cluster = self.cluster;
    scene->instance = (uint64_t)self.instance;
    scene->ready = 1;
    bool targeted = false;
    while (!scene->stop_victim) {
        if (scene->target_hostile && !targeted) {
            targeted = ringbus_target(victim.bus, HOSTILE, NULL, NULL) == 0;
        } else if (!scene->target_hostile && targeted) {
            targeted = ringbus_untarget(victim.bus, HOSTILE) != 0;
        }
        (void)ringbus_wait(victim.bus, scene->talk ? 1 : 20);
        scene->waits++;
        if (ringbus_poll(victim.bus, 64) < 0) {
            return 3;
        }
        if (scene->talk) {
            talk(&victim);
        }
        publish(&victim);
    }
    (void)ringbus_close(victim.bus, 0);
    return 0;
}

/* ---- the honest sender ------------------------------------------------------------------- */

static void on_honest_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    struct scene *scene = user;
    (void)bus;
    if (event->type == RINGBUS_EVENT_DOWN || event->type == RINGBUS_EVENT_UNDELIVERED) {
        scene->honest_trouble++;
    }
}

static int run_honest(struct scene *scene, const char *socket)
{
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    struct ringbus_addr to;
    struct ringbus *bus = NULL;
    uint64_t number = 0;
    options.socket = socket;
    options.path = HONEST_PATH;
    options.on_event = on_honest_event;
    options.user = scene;
    if (ringbus_open(&options, &bus) != 0 || ringbus_target(bus, VICTIM_PATH, NULL, &to) != 0) {
        (void)fprintf(stderr, "honest: %s\n", ringbus_errmsg(NULL));
        return 2;
    }
    while (!scene->stop_honest) {
        const int r = ringbus_send(bus, &to, 0, &number, sizeof(number), 0);
        if (r == 1) {
            number++;
            scene->honest_sent = number;
        } else if (r != RINGBUS_E_FULL && r != RINGBUS_E_NOT_READY && r != RINGBUS_E_NO_SERVICE &&
                   r != RINGBUS_E_NO_INSTANCE) {
            scene->honest_trouble++;
        }
        (void)ringbus_poll(bus, 64);
        if (r != 1) {
            (void)ringbus_wait(bus, 5);
        } else if (scene->pause_honest_us != 0) {
            (void)usleep(scene->pause_honest_us);
        }
    }
    (void)ringbus_close(bus, HONEST_TAIL);
    scene->honest_done = 1;
    return 0;
}

/* ---- the stage --------------------------------------------------------------------------- */

static pid_t
spawn(int (*run)(struct scene *, const char *), struct scene *scene, const char *socket)
{
    (void)fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        exit(run(scene, socket));
    }
    return pid;
}

bool stage_changes(const _Atomic uint64_t *value, uint64_t old, unsigned timeout_ms)
{
    const uint64_t deadline_ms = test_now_ms() + timeout_ms;
    while (*value == old) {
        if (test_now_ms() > deadline_ms) {
            return false;
        }
        (void)usleep(100);
    }
    return true;
}

static bool count_now(struct stage *stage)
{
    struct scene *scene = stage->scene;
    const unsigned request = ++scene->count_request;
    const uint64_t deadline_ms = test_now_ms() + 2000;
    while (scene->counted != request) {
        if (test_now_ms() > deadline_ms) {
            return false;
        }
        (void)usleep(200);
    }
    return true;
}

int stage_up(struct stage *stage)
{
    memset(stage, 0, sizeof(*stage));
    if (cluster_up(&stage->cluster, "daemon: {request_timeout: 500ms}\n"
                                    "quota: {control: 1000000, connects: 1000000}\n") != 0) {
        return -1;
    }
    stage->scene = mmap(NULL, sizeof(*stage->scene), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (stage->scene == MAP_FAILED) {
        return -1;
    }
    stage->scene->pause_honest_us = 200;
    stage->victim = spawn(run_victim, stage->scene, stage->cluster.socket);
    stage->honest = spawn(run_honest, stage->scene, stage->cluster.socket);
    if (!stage_changes(&stage->scene->honest_received, 0, START_MS) || !count_now(stage)) {
        (void)fprintf(stderr, "stage: the honest link does not come up\n");
        return -1;
    }
    stage->fds = stage->scene->fds;
    stage->maps = stage->scene->maps;
    stage->daemon_fds = cluster_fd_count(&stage->cluster);
    return 0;
}

static int reap(pid_t pid, const char *who)
{
    int status = -1;
    const uint64_t deadline_ms = test_now_ms() + FINISH_MS;
    while (waitpid(pid, &status, WNOHANG) != pid) {
        if (test_now_ms() > deadline_ms) {
            (void)kill(pid, SIGKILL);
            (void)waitpid(pid, &status, 0);
            (void)fprintf(stderr, "stage: the %s hangs\n", who);
            return -1;
        }
        test_sleep_ms(2);
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        (void)fprintf(stderr, "stage: the %s ended with status %x\n", who, (unsigned)status);
        return -1;
    }
    return 0;
}

/** What a sanitizer has said of the daemon. @return lines of it */
static unsigned print_reports(const struct cluster *cluster)
{
    char line[1024];
    unsigned count = 0;
    FILE *file = fopen(cluster->log, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        /* The first line of a report, and what follows: ours all begin with a level. */
        count += strstr(line, "Sanitizer") != NULL || strstr(line, "runtime error:") != NULL;
        if (count > 0) {
            (void)fputs(line, stderr);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return count;
}

int stage_down(struct stage *stage)
{
    struct scene *scene = stage->scene;
    int result = 0;
    scene->stop_honest = 1;
    result |= reap(stage->honest, "honest sender");
    const uint64_t deadline_ms = test_now_ms() + 2000;
    while (scene->honest_received != scene->honest_sent && test_now_ms() < deadline_ms) {
        test_sleep_ms(2);
    }
    if (scene->honest_received != scene->honest_sent || scene->honest_wrong != 0 ||
        scene->honest_trouble != 0 || scene->broken_views != 0) {
        (void)fprintf(
            stderr,
            "stage: honest sent %llu, received %llu, wrong %llu, trouble %llu; broken "
            "views %llu\n",
            (unsigned long long)scene->honest_sent, (unsigned long long)scene->honest_received,
            (unsigned long long)scene->honest_wrong, (unsigned long long)scene->honest_trouble,
            (unsigned long long)scene->broken_views);
        result = -1;
    }
    scene->stop_victim = 1;
    result |= reap(stage->victim, "victim");
    if (cluster_stop(&stage->cluster) != 0) {
        (void)fprintf(stderr, "stage: the daemon did not end well\n");
        result = -1;
    }
    if (print_reports(&stage->cluster) != 0) {
        result = -1;
    }
    cluster_down(&stage->cluster);
    (void)munmap(scene, sizeof(*scene));
    return result;
}

bool stage_alive(struct stage *stage)
{
    const uint64_t received = stage->scene->honest_received;
    const uint64_t beat = stage->scene->heartbeat;
    return stage_changes(&stage->scene->heartbeat, beat, 2000) &&
           stage_changes(&stage->scene->honest_received, received, 2000);
}

bool stage_clean(struct stage *stage)
{
    const uint64_t deadline_ms = test_now_ms() + 3000;
    for (;;) {
        const bool counted = count_now(stage);
        const int daemon_fds = cluster_fd_count(&stage->cluster);
        if (counted && stage->scene->fds == stage->fds && stage->scene->maps == stage->maps &&
            daemon_fds == stage->daemon_fds) {
            return true;
        }
        if (test_now_ms() > deadline_ms) {
            (void)fprintf(stderr,
                          "stage: victim has %llu fds (was %llu), %llu maps (was %llu); "
                          "daemon %d fds (was %d)\n",
                          (unsigned long long)stage->scene->fds, (unsigned long long)stage->fds,
                          (unsigned long long)stage->scene->maps, (unsigned long long)stage->maps,
                          daemon_fds, stage->daemon_fds);
            return false;
        }
        test_sleep_ms(5);
    }
}

long stage_cpu_ticks(pid_t pid)
{
    struct cluster as = {.pid = pid};
    return cluster_cpu_ticks(&as);
}
