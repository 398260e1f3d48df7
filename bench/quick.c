/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/quick.c - the figures that matter most, in under a minute: round trip and one way
 * of 48 bytes against the machine's own limit, time to open and to introduce, system calls
 * while busy, and 10^8 messages of which none may be lost or out of order.
 */
#include "bench/harness.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKS_MAX  400
#define ROUNDS      20000U
#define BURST       400000U
#define PAYLOAD     48U
#define PATH_SERVER "/Bench/local/host/w0/g0/Echo/1"
#define PATH_CLIENT "/Bench/local/host/w0/g0/Load/1"

struct plan {
    unsigned blocks;
    uint64_t total; /* messages of the long run */
    bool json;
};

struct side {
    struct bench_shared *shared;
    struct ringbus *bus;
    struct ringbus_addr peer;
    bool echo;
    uint64_t expected; /* next sequence number */
    uint64_t received;
};

/* ---- both sides ----------------------------------------------------------------------------- */

static void on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    struct side *side = user;
    uint64_t sequence = 0;
    memcpy(&sequence, message->data, sizeof sequence);
    if (message->size != PAYLOAD || sequence != side->expected) {
        atomic_fetch_add_explicit(&side->shared->errors, 1, memory_order_relaxed);
        side->expected = sequence;
    }
    side->expected++;
    side->received++;
    if (side->echo) {
        (void)ringbus_send(bus, &side->peer, 0, message->data, message->size, 0);
    }
}

static void on_event(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    struct side *side = user;
    (void)bus;
    if (event->type == RINGBUS_EVENT_READY) {
        side->peer = event->addr;
    }
}

static double round_trips(struct side *side, int which)
{
    unsigned char payload[PAYLOAD] = {0};
    bench_barrier(side->shared, which);
    side->expected = 0;
    side->received = 0;
    side->echo = which == 1;
    const uint64_t start = bench_now_ns();
    if (which == 0) {
        for (uint64_t i = 0; i < ROUNDS; i++) {
            memcpy(payload, &i, sizeof i);
            (void)ringbus_send(side->bus, &side->peer, 0, payload, sizeof payload, 0);
            while (side->received == i) {
                (void)ringbus_poll(side->bus, 1);
            }
        }
    } else {
        while (side->received < ROUNDS) {
            (void)ringbus_poll(side->bus, 1);
        }
    }
    const double ns = (double)(bench_now_ns() - start) / ROUNDS;
    bench_barrier(side->shared, which);
    return ns;
}

/* @return million messages a second */
static double one_way(struct side *side, int which, uint64_t count)
{
    unsigned char payload[PAYLOAD] = {0};
    bench_barrier(side->shared, which);
    side->expected = 0;
    side->received = 0;
    side->echo = false;
    const uint64_t start = bench_now_ns();
    if (which == 0) {
        for (uint64_t i = 0; i < count;) {
            memcpy(payload, &i, sizeof i);
            if (ringbus_send(side->bus, &side->peer, 0, payload, sizeof payload, 0) == 1) {
                i++;
            }
        }
    } else {
        while (side->received < count) {
            (void)ringbus_poll(side->bus, 1024);
        }
    }
    bench_barrier(side->shared, which);
    return (double)count * 1e3 / (double)(bench_now_ns() - start);
}

static int
serve(const struct bench_daemon *daemon, struct bench_shared *shared, const struct plan *plan)
{
    struct side side = {.shared = shared};
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    bench_pin(1);
    options.path = PATH_SERVER;
    options.mode = RINGBUS_MODE_BUSY;
    options.on_message = on_message;
    options.on_event = on_event;
    options.user = &side;
    side.bus = bench_open(daemon, &options, NULL, NULL);
    if (side.bus == NULL) {
        atomic_store(&shared->errors, UINT64_MAX);
        return 1;
    }
    while (side.peer.cluster == 0) {
        (void)ringbus_poll(side.bus, 64);
    }
    for (unsigned i = 0; i < plan->blocks; i++) {
        (void)bench_limit(shared, 1, ROUNDS);
        (void)round_trips(&side, 1);
        (void)one_way(&side, 1, BURST);
    }
    (void)one_way(&side, 1, plan->total);
    atomic_store(&shared->received, side.received);
    (void)ringbus_close(side.bus, 0);
    return 0;
}

/* ---- figures --------------------------------------------------------------------------------- */

struct results {
    double limit[BLOCKS_MAX];
    double trip[BLOCKS_MAX];
    double rate[BLOCKS_MAX];
    unsigned count;
    double total_rate;
    double open_us;
    double introduce_us;
};

static void say_regime(const struct results *all, bool near, bool json)
{
    double limit[BLOCKS_MAX];
    double trip[BLOCKS_MAX];
    double ratio[BLOCKS_MAX];
    double rate[BLOCKS_MAX];
    unsigned n = 0;
    const char *name = near ? "near" : "far";
    for (unsigned i = 0; i < all->count; i++) {
        if ((all->limit[i] <= RBI_LINES_NEAR_NS_MAX) == near) {
            limit[n] = all->limit[i];
            trip[n] = all->trip[i];
            ratio[n] = all->trip[i] / all->limit[i];
            rate[n] = all->rate[i];
            n++;
        }
    }
    if (n == 0) {
        return;
    }
    const double r = bench_median(ratio, n);
    const double m = bench_median(rate, n);
    if (json) {
        (void)printf("{\"regime\":\"%s\",\"blocks\":%u,\"limit_ns\":%.1f,\"round_trip_ns\":%.1f,"
                     "\"ratio\":%.3f,"
                     "\"ratio_p10\":%.3f,\"ratio_p90\":%.3f,\"one_way_mps\":%.2f}\n",
                     name, n, bench_median(limit, n), bench_median(trip, n), r, ratio[n / 10],
                     ratio[n * 9 / 10], m);
        return;
    }
    (void)printf("%-4s %3u blocks  limit %6.1f ns  round trip 48 B %6.1f ns  ratio %.2f "
                 "(%.2f-%.2f)  bar 1.50 %s\n",
                 name, n, bench_median(limit, n), bench_median(trip, n), r, ratio[n / 10],
                 ratio[n * 9 / 10], r <= 1.5 ? "PASS" : "SHORT");
    (void)printf("%-4s %3u blocks  one way 48 B %6.1f M/s%s\n", name, n, m,
                 !near       ? ""
                 : m >= 30.0 ? "  bar 30 PASS"
                             : "  bar 30 SHORT");
}

static double measure_open(const struct bench_daemon *daemon)
{
    double times[21];
    unsigned n = 0;
    for (unsigned i = 0; i < 21; i++) {
        struct ringbus_options options = RINGBUS_OPTIONS_INIT;
        struct ringbus *bus = NULL;
        options.socket = daemon->socket;
        const uint64_t start = bench_now_ns();
        if (ringbus_open(&options, &bus) != 0) {
            (void)fprintf(stderr, "bench: %s\n", ringbus_errmsg(NULL));
            continue;
        }
        times[n++] = (double)(bench_now_ns() - start) / 1e3;
        (void)ringbus_close(bus, 0);
    }
    return bench_median(times, n);
}

static void ready_at(struct ringbus *bus, const struct ringbus_event *event, void *user)
{
    (void)bus;
    if (event->type == RINGBUS_EVENT_READY) {
        *(uint64_t *)user = bench_now_ns();
    }
}

/* Two endpoints in one thread: what the wire, the daemon and the mappings cost, nobody sleeping. */
static double measure_introduce(const struct bench_daemon *daemon)
{
    double times[11];
    unsigned n = 0;
    for (unsigned i = 0; i < 11; i++) {
        uint64_t ready = 0;
        struct ringbus_options options = RINGBUS_OPTIONS_INIT;
        options.path = "/Bench/local/host/w0/g0/Intro/1";
        struct ringbus *server = bench_open(daemon, &options, NULL, NULL);
        options.path = NULL;
        options.on_event = ready_at;
        options.user = &ready;
        struct ringbus *client = bench_open(daemon, &options, NULL, NULL);
        const uint64_t start = bench_now_ns();
        if (server != NULL && client != NULL &&
            ringbus_target(client, "/Bench/local/host/w0/g0/Intro", NULL, NULL) == 0) {
            while (ready == 0 && bench_now_ns() - start < UINT64_C(2000000000)) {
                (void)ringbus_wait(server, 0);
                (void)ringbus_poll(server, 16);
                (void)ringbus_wait(client, 0);
                (void)ringbus_poll(client, 16);
            }
            if (ready != 0) {
                times[n++] = (double)(ready - start) / 1e3;
            }
        }
        (void)ringbus_close(client, 0);
        (void)ringbus_close(server, 0);
    }
    return bench_median(times, n);
}

static int
drive(const struct bench_daemon *daemon, struct bench_shared *shared, const struct plan *plan)
{
    static struct results all;
    struct side side = {.shared = shared};
    struct ringbus_options options = RINGBUS_OPTIONS_INIT;
    bench_pin(0);
    options.path = PATH_CLIENT;
    options.mode = RINGBUS_MODE_BUSY;
    options.on_message = on_message;
    options.on_event = on_event;
    options.user = &side;
    side.bus = bench_open(daemon, &options, PATH_SERVER, &side.peer);
    if (side.bus == NULL) {
        return 1;
    }
    for (unsigned i = 0; i < plan->blocks; i++) {
        all.limit[i] = bench_limit(shared, 0, ROUNDS);
        all.trip[i] = round_trips(&side, 0);
        all.rate[i] = one_way(&side, 0, BURST);
        all.count++;
    }
    all.total_rate = one_way(&side, 0, plan->total);
    (void)ringbus_close(side.bus, 0);
    say_regime(&all, true, plan->json);
    say_regime(&all, false, plan->json);
    const uint64_t errors = atomic_load(&shared->errors);
    if (plan->json) {
        (void)printf("{\"messages\":%llu,\"lost_or_reordered\":%llu,\"one_way_mps\":%.2f}\n",
                     (unsigned long long)plan->total, (unsigned long long)errors, all.total_rate);
    } else {
        (void)printf("%llu messages of 48 B in order, %llu lost or reordered, %.1f M/s\n",
                     (unsigned long long)plan->total, (unsigned long long)errors, all.total_rate);
    }
    return errors == 0 ? 0 : 1;
}

static void usage(void)
{
    (void)fprintf(stderr, "usage: bench_quick --ringbusd PROGRAM [--quick] [--smoke] [--blocks N] "
                          "[--messages N] [--json]\n");
}

static int run(const char *program, const struct plan *plan)
{
    struct bench_daemon daemon = {0};
    struct bench_shared *shared = bench_shared_new();
    if (shared == NULL || bench_daemon_start(&daemon, program) != 0) {
        return 1;
    }
    const double open_us = measure_open(&daemon);
    const double introduce_us = measure_introduce(&daemon);
    const pid_t child = fork();
    if (child == 0) {
        _exit(serve(&daemon, shared, plan));
    }
    int r = drive(&daemon, shared, plan);
    int status = 0;
    if (r != 0 && child > 0) {
        (void)kill(child, SIGKILL);
    }
    (void)waitpid(child, &status, 0);
    if (plan->json) {
        (void)printf("{\"open_us\":%.0f,\"introduce_us\":%.0f}\n", open_us, introduce_us);
    } else {
        (void)printf("open %.0f us  bar 2000 %s\n", open_us, open_us <= 2000 ? "PASS" : "SHORT");
        (void)printf("introduce until READY %.0f us  bar 2000 %s\n", introduce_us,
                     introduce_us <= 2000 ? "PASS" : "SHORT");
    }
    bench_daemon_stop(&daemon);
    return r != 0 || status != 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"ringbusd", required_argument, NULL, 'd'},
                                            {"quick", no_argument, NULL, 'q'},
                                            {"smoke", no_argument, NULL, 's'},
                                            {"blocks", required_argument, NULL, 'b'},
                                            {"messages", required_argument, NULL, 'm'},
                                            {"json", no_argument, NULL, 'j'},
                                            {NULL, 0, NULL, 0}};
    struct plan plan = {.blocks = 100, .total = 100000000};
    const char *program = NULL;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'd':
            program = optarg;
            break;
        case 'q':
            break;
        case 's':
            plan.blocks = 3;
            plan.total = 1000000;
            break;
        case 'b':
            plan.blocks = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'm':
            plan.total = strtoull(optarg, NULL, 10);
            break;
        case 'j':
            plan.json = true;
            break;
        default:
            usage();
            return 2;
        }
    }
    if (program == NULL || plan.blocks == 0 || plan.blocks > BLOCKS_MAX || plan.total == 0) {
        usage();
        return 2;
    }
    return run(program, &plan);
}
