/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/crowd.h"

#include "bench/harness.h"
#include "bench/pair.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PREFIX        "/Bench/local/host/w0/g0/"
#define OPEN_NS       UINT64_C(60000000000) /* without one more: something is broken */
#define MEMBERS_APART 800U                  /* of one process: descriptors are bounded */

struct member {
    struct ringbus *bus;
    struct ringbus_addr peer;
    struct bench_crowd_page *page;
    uint64_t expected;
    uint64_t received;
    uint64_t sent;
};

struct squad {
    struct bench_crowd *crowd;
    struct member *members;
    unsigned first;
    unsigned count;
};

void bench_crowd_fill(unsigned char *payload, size_t size)
{
    for (size_t k = 0; k * 8 < size; k++) {
        const uint64_t word = bench_pattern_word(k);
        memcpy(payload + k * 8, &word, size - k * 8 < 8 ? size - k * 8 : 8);
    }
}

static bool middle_is_right(const unsigned char *payload, size_t size)
{
    bool right = true;
    for (size_t k = 1; right && k * 8 + 16 <= size; k++) {
        const uint64_t word = bench_pattern_word(k);
        right = memcmp(payload + k * 8, &word, 8) == 0;
    }
    return right;
}

bool bench_crowd_check(const unsigned char *payload, size_t size, uint64_t number, bool whole)
{
    uint64_t got = 0;
    uint64_t last = ~number;
    memcpy(&got, payload, sizeof got);
    if (size >= 16) {
        memcpy(&last, payload + size - sizeof last, sizeof last);
    }
    return got == number && last == ~number && (!whole || middle_is_right(payload, size));
}

/* ---- endpoints ------------------------------------------------------------------------------- */

struct ringbus_options bench_endpoint_options(const struct bench_run *run, enum ringbus_mode mode)
{
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    options.socket = run->bus_socket;
    options.mode = mode;
    options.ping_interval_ms = 60000;
    options.ping_misses = 100;
    return options;
}

struct ringbus *bench_endpoint_open(const struct ringbus_options *options, const char *name)
{
    char path[RINGBUS_PATH_MAX + 1];
    struct ringbus *bus = NULL;
    struct ringbus_options given = *options;
    if (name != NULL) {
        (void)snprintf(path, sizeof path, PREFIX "%s/1", name);
        given.path = path;
    }
    if (ringbus_open(&given, &bus) != 0) {
        (void)fprintf(stderr, "bench: open %s: %s\n", name, ringbus_errmsg(NULL));
        return NULL;
    }
    return bus;
}

static int await_links(struct ringbus *bus, unsigned links)
{
    const struct sched_param normal = {0};
    struct sched_param own;
    struct ringbus_stats stats = {.struct_size = sizeof stats};
    const int policy = sched_getscheduler(0);
    uint64_t before = 0;
    uint64_t end_ns = bench_now_ns() + OPEN_NS;
    /* A real-time spinner would starve the kernel's own threads, which close descriptors. */
    (void)sched_getparam(0, &own);
    (void)sched_setscheduler(0, SCHED_OTHER, &normal);
    do {
        (void)ringbus_wait(bus, 1);
        (void)ringbus_poll(bus, 64);
        (void)ringbus_stats(bus, &stats);
        end_ns = stats.links != before ? bench_now_ns() + OPEN_NS : end_ns;
        before = stats.links;
    } while (stats.links < links && bench_now_ns() < end_ns);
    (void)sched_setscheduler(0, policy, &own);
    if (stats.links < links) {
        (void)fprintf(stderr, "bench: %llu of %u links: %s\n", (unsigned long long)stats.links,
                      links, ringbus_errmsg(bus));
        return -1;
    }
    return 0;
}

int bench_endpoint_link(struct ringbus *bus,
                        const char *cluster,
                        unsigned links,
                        struct ringbus_addr *addr)
{
    char path[RINGBUS_PATH_MAX + 1];
    (void)snprintf(path, sizeof path, PREFIX "%s", cluster);
    if (ringbus_target(bus, path, NULL, addr) != 0) {
        (void)fprintf(stderr, "bench: target %s: %s\n", path, ringbus_errmsg(bus));
        return -1;
    }
    return await_links(bus, links);
}

int bench_endpoint_link_each(struct ringbus *bus, const char *cluster, unsigned links)
{
    char path[RINGBUS_PATH_MAX + 1];
    int r = 0;
    for (unsigned i = 1; r == 0 && i <= links; i++) {
        (void)snprintf(path, sizeof path, PREFIX "%s/%u", cluster, i);
        if (ringbus_target(bus, path, NULL, NULL) != 0) {
            (void)fprintf(stderr, "bench: target %s: %s\n", path, ringbus_errmsg(bus));
            return -1;
        }
        r = i % 50 == 0 || i == links ? await_links(bus, i) : 0;
    }
    return r;
}

const char *bench_regime(void)
{
    double ns = 0;
    struct bench_shared *shared = bench_shared_new();
    if (shared == NULL) {
        return "all";
    }
    (void)fflush(NULL);
    bench_pin(1); /* the child starts there: it would find no room beside a real-time spinner */
    const pid_t pid = fork();
    if (pid == 0) {
        (void)bench_limit(shared, 1, 2000);
        _exit(0);
    }
    bench_pin(0);
    if (pid > 0) {
        ns = bench_limit(shared, 0, 2000);
        (void)waitpid(pid, NULL, 0);
    }
    (void)munmap(shared, 4096);
    return ns <= RBI_LINES_NEAR_NS_MAX ? "near" : "far";
}

const char *bench_regime_still(const char *before)
{
    return strcmp(before, bench_regime()) == 0 ? before : "all";
}

/* ---- members --------------------------------------------------------------------------------- */

static void on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    struct member *member = user;
    uint64_t number = member->expected;
    if (member->page->rising) {
        memcpy(&number, message->data, sizeof number);
    }
    if (number < member->expected ||
        !bench_crowd_check(message->data, message->size, number,
                           atomic_load_explicit(&member->page->whole, memory_order_relaxed))) {
        (void)atomic_fetch_add(&member->page->errors, 1);
        memcpy(&number, message->data, sizeof number);
    }
    member->expected = number + 1;
    member->received++;
    if (atomic_load_explicit(&member->page->order, memory_order_relaxed) == BENCH_CROWD_ECHO) {
        (void)ringbus_send(bus, &member->peer, 0, message->data, message->size, 0);
    }
}

static void on_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    struct member *member = user;
    (void)bus;
    if (event->type == RINGBUS_EVENT_READY) {
        member->peer = event->addr;
    }
}

static int open_members(const struct bench_run *run, struct squad *squad)
{
    const struct bench_crowd *crowd = squad->crowd;
    char path[RINGBUS_PATH_MAX + 1];
    struct ringbus_options options = bench_endpoint_options(run, crowd->mode);
    options.path = path;
    options.lane_bytes = crowd->lane_bytes;
    options.on_message = on_message;
    options.on_event = on_event;
    if (crowd->small_pool) {
        options.pool[0].chunk_bytes = 64;
        options.pool[0].count = 1;
        options.refs_per_link = 16;
    }
    for (unsigned i = 0; i < squad->count; i++) {
        struct member *member = &squad->members[i];
        member->page = crowd->page;
        options.user = member;
        const unsigned number = squad->first + i + 1;
        if (crowd->own_clusters) {
            (void)snprintf(path, sizeof path, PREFIX "%s-%u/1", crowd->cluster, number);
        } else {
            (void)snprintf(path, sizeof path, PREFIX "%s/%u", crowd->cluster, number);
        }
        if (ringbus_open(&options, &member->bus) != 0) {
            (void)fprintf(stderr, "bench: member %u: %s\n", number, ringbus_errmsg(NULL));
            return -1;
        }
        (void)atomic_fetch_add(&crowd->page->opened, 1);
    }
    return 0;
}

static void poll_members(struct squad *squad, unsigned count)
{
    uint64_t received = 0;
    for (unsigned i = 0; i < count; i++) {
        struct member *member = &squad->members[i];
        (void)ringbus_poll(member->bus, 256);
        if (squad->crowd->mode == RINGBUS_MODE_SLEEP) {
            (void)ringbus_wait(member->bus, 0);
        }
        received += member->received;
        member->received = 0;
    }
    if (received > 0) {
        (void)atomic_fetch_add(&squad->crowd->page->received, received);
    }
}

/* Each member once in turn, so that the receiver sees all of them at once. */
static void send_share(struct squad *squad)
{
    struct bench_crowd_page *page = squad->crowd->page;
    unsigned char payload[4096];
    const size_t size = page->share_size;
    bench_crowd_fill(payload, size);
    for (uint64_t n = 0; n < page->share; n++) {
        for (unsigned i = 0; i < squad->count; i++) {
            struct member *member = &squad->members[i];
            bench_crowd_stamp(payload, size, member->sent);
            while (ringbus_send(member->bus, &member->peer, 0, payload, size, 0) ==
                   RINGBUS_E_FULL) {
                bench_pause();
            }
            member->sent++;
        }
    }
    (void)atomic_fetch_add(&page->sent, 1);
}

static void obey(struct squad *squad)
{
    struct bench_crowd_page *page = squad->crowd->page;
    uint32_t seen = UINT32_MAX;
    for (;;) {
        const uint32_t order = atomic_load(&page->order);
        if (order != seen) {
            seen = order;
            (void)atomic_fetch_add(&page->obeyed, 1);
            if (order == BENCH_CROWD_SEND) {
                send_share(squad);
            }
        }
        if (order == BENCH_CROWD_STOP) {
            return;
        }
        const bool idle = order == BENCH_CROWD_ECHO && squad->first != 0;
        if (order == BENCH_CROWD_REST || order == BENCH_CROWD_SEND || idle) {
            (void)syscall(SYS_futex, &page->order, FUTEX_WAIT, order, NULL, NULL, 0);
        } else if (order == BENCH_CROWD_ECHO) {
            poll_members(squad, 1);
        } else {
            poll_members(squad, squad->count);
            if (squad->crowd->process_count > 1) {
                (void)sched_yield(); /* all on one core */
            }
        }
    }
}

static _Noreturn void squad_main(const struct bench_run *run, struct squad *squad)
{
    const struct sched_param normal = {0};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)sched_setscheduler(0, SCHED_OTHER, &normal);
    squad->members = calloc(squad->count, sizeof *squad->members);
    bench_pin(1);
    if (squad->members == NULL || open_members(run, squad) != 0) {
        _exit(3);
    }
    obey(squad);
    for (unsigned i = 0; i < squad->count; i++) {
        (void)ringbus_close(squad->members[i].bus, 0);
    }
    _exit(0);
}

/* ---- the measuring side ---------------------------------------------------------------------- */

static int await_open(struct bench_crowd *crowd)
{
    unsigned opened;
    bench_watch_begin(&crowd->watch);
    while ((opened = atomic_load(&crowd->page->opened)) < crowd->count) {
        for (unsigned i = 0; i < crowd->process_count; i++) {
            if (waitpid(crowd->pids[i], NULL, WNOHANG) == crowd->pids[i]) {
                crowd->pids[i] = 0;
                return -1;
            }
        }
        if (bench_watch_stuck(&crowd->watch, opened)) {
            (void)fprintf(stderr, "bench: %u of %u members opened\n", opened, crowd->count);
            return -1;
        }
        (void)usleep(1000);
    }
    return 0;
}

int bench_crowd_start(const struct bench_run *run, struct bench_crowd *crowd)
{
    void *page =
        mmap(NULL, sizeof *crowd->page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return -1;
    }
    crowd->page = page;
    const unsigned apart = crowd->apart > 0 ? crowd->apart : MEMBERS_APART;
    crowd->process_count = (crowd->count + apart - 1) / apart;
    if (crowd->process_count > BENCH_CROWD_PROCESSES) {
        return -1;
    }
    (void)fflush(NULL);
    bench_watch_init(&crowd->watch);
    for (unsigned i = 0; i < crowd->process_count; i++) {
        struct squad squad = {.crowd = crowd, .first = i * apart};
        const unsigned left = crowd->count - squad.first;
        squad.count = left < apart ? left : apart;
        crowd->pids[i] = fork();
        if (crowd->pids[i] == 0) {
            squad_main(run, &squad);
        }
        bench_watch_add(&crowd->watch, crowd->pids[i]);
    }
    bench_watch_add(&crowd->watch, run->daemon);
    return await_open(crowd);
}

void bench_crowd_order(struct bench_crowd *crowd, enum bench_crowd_order order)
{
    uint32_t obeyed;
    if (atomic_load(&crowd->page->order) == (uint32_t)order) {
        return;
    }
    atomic_store(&crowd->page->obeyed, 0);
    atomic_store(&crowd->page->sent, 0);
    atomic_store(&crowd->page->order, (uint32_t)order);
    (void)syscall(SYS_futex, &crowd->page->order, FUTEX_WAKE, 64, NULL, NULL, 0);
    bench_watch_begin(&crowd->watch);
    while ((obeyed = atomic_load(&crowd->page->obeyed)) < crowd->process_count) {
        if (bench_watch_stuck(&crowd->watch, obeyed)) {
            (void)fprintf(stderr, "bench: %s: does not obey\n", crowd->cluster);
            (void)atomic_fetch_add(&crowd->page->errors, 1);
            return;
        }
        (void)sched_yield();
    }
}

/* Closing thousands of endpoints takes a while, but not for ever. */
static int reap(struct bench_crowd *crowd, pid_t pid)
{
    int status = 0;
    bench_watch_begin(&crowd->watch);
    while (waitpid(pid, &status, WNOHANG) != pid) {
        if (bench_watch_stuck(&crowd->watch, 0)) {
            (void)fprintf(stderr, "bench: a crowd does not end\n");
            (void)kill(pid, SIGKILL);
            (void)waitpid(pid, &status, 0);
            return -1;
        }
        (void)usleep(1000);
    }
    return status == 0 ? 0 : -1;
}

int bench_crowd_stop(struct bench_crowd *crowd)
{
    int r = 0;
    if (crowd->page == NULL) {
        return -1;
    }
    atomic_store(&crowd->page->order, BENCH_CROWD_STOP);
    (void)syscall(SYS_futex, &crowd->page->order, FUTEX_WAKE, 64, NULL, NULL, 0);
    for (unsigned i = 0; i < crowd->process_count; i++) {
        r = crowd->pids[i] <= 0 || reap(crowd, crowd->pids[i]) != 0 ? -1 : r;
    }
    const uint64_t errors = atomic_load(&crowd->page->errors);
    if (errors != 0) {
        (void)fprintf(stderr, "bench: %s: %llu messages lost, reordered or wrong\n", crowd->cluster,
                      (unsigned long long)errors);
        r = -1;
    }
    (void)munmap(crowd->page, sizeof *crowd->page);
    crowd->page = NULL;
    return r;
}
