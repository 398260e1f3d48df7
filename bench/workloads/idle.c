/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/workloads/idle.c - what costs although nothing happens: polling with many idle links,
 * the memory of a link, the daemon with many idle endpoints, sending on a bus with many
 * services.
 */
#include "bench/crowd.h"
#include "bus/directory.h"
#include "bus/pidf.h"
#include "measure/quantiles.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKS_MAX 200U
#define POLLS      2000U
#define LOOKS      1024U

struct echoed {
    uint64_t expected;
    uint64_t errors;
    bool whole; /* compare every byte */
};

static void on_message(struct ringbus *bus, const struct ringbus_message *message, void *user)
{
    struct echoed *echoed = user;
    (void)bus;
    if (!bench_crowd_check(message->data, message->size, echoed->expected, echoed->whole)) {
        echoed->errors++;
    }
    echoed->expected++;
}

/* ---- polling --------------------------------------------------------------------------------- */

static double empty_polls(struct ringbus *bus)
{
    const uint64_t start = bench_now_ns();
    for (unsigned i = 0; i < POLLS; i++) {
        (void)ringbus_poll(bus, 64);
    }
    return (double)(bench_now_ns() - start) / POLLS;
}

/* With the first member, among all the silent ones. */
static double round_trips(struct bench_crowd *crowd,
                          struct ringbus *bus,
                          const struct ringbus_addr *to,
                          struct echoed *echoed)
{
    unsigned char payload[48];
    const unsigned rounds = 200;
    unsigned looks = 0;
    bench_crowd_fill(payload, sizeof payload);
    bench_watch_begin(&crowd->watch);
    const uint64_t start = bench_now_ns();
    for (unsigned i = 0; i < rounds; i++) {
        const uint64_t number = echoed->expected;
        bench_crowd_stamp(payload, sizeof payload, number);
        if (ringbus_send(bus, to, 0, payload, sizeof payload, 0) != 1) {
            echoed->errors++;
            return 0;
        }
        while (echoed->expected == number) {
            (void)ringbus_poll(bus, 64);
            if (++looks % LOOKS == 0 && bench_watch_stuck(&crowd->watch, number)) {
                echoed->errors++;
                return 0;
            }
        }
    }
    return (double)(bench_now_ns() - start) / rounds;
}

static int poll_with(struct bench_run *run, unsigned links, double seconds)
{
    double ns[BLOCKS_MAX];
    double trip[BLOCKS_MAX];
    char param[24];
    unsigned n = 0;
    struct echoed echoed = {0};
    struct ringbus_addr addr;
    struct bench_crowd crowd = {.cluster = "Idle",
                                .count = links,
                                .mode = RINGBUS_MODE_BUSY,
                                .lane_bytes = 4096,
                                .small_pool = true};
    struct ringbus_options options = bench_endpoint_options(run, RINGBUS_MODE_BUSY);
    options.lane_bytes = 4096;
    options.pool[0].chunk_bytes = 64;
    options.pool[0].count = 1;
    options.refs_per_link = 16;
    options.on_message = on_message;
    options.user = &echoed;
    const char *regime = bench_regime();
    int r = bench_crowd_start(run, &crowd);
    if (r == 0) {
        bench_crowd_order(&crowd, BENCH_CROWD_POLL);
        bench_pin(0);
    }
    struct ringbus *bus = r == 0 ? bench_endpoint_open(&options, NULL) : NULL;
    r = bus != NULL ? bench_endpoint_link_each(bus, crowd.cluster, links) : -1;
    (void)ringbus_resolve("/Bench/local/host/w0/g0/Idle/1", &addr);
    const uint64_t end_ns = bench_now_ns() + (uint64_t)(seconds * 1e9);
    for (unsigned b = 0; r == 0 && n < BLOCKS_MAX && (b < 8 || bench_now_ns() < end_ns); b++) {
        echoed.whole = b < 3;
        atomic_store(&crowd.page->whole, echoed.whole);
        bench_crowd_order(&crowd, BENCH_CROWD_REST);
        ns[n] = empty_polls(bus);
        bench_crowd_order(&crowd, BENCH_CROWD_ECHO);
        trip[n] = round_trips(&crowd, bus, &addr, &echoed);
        n += b >= 3 ? 1U : 0U;
        r = echoed.errors != 0 ? -1 : 0;
    }
    (void)ringbus_close(bus, 0);
    r = bench_crowd_stop(&crowd) != 0 ? -1 : r;
    run->regime = bench_regime_still(regime);
    if (r == 0) {
        (void)snprintf(param, sizeof param, "%u link%s", links, links == 1 ? "" : "s");
        bench_run_value(run, "idle-links", "ringbus", param, links, "busy", "ns", ns, n);
        bench_run_value(run, "idle-links", "round trip", param, links, "busy", "ns", trip, n);
    }
    return r;
}

static int idle_links(struct bench_run *run, const struct bench_workload *workload)
{
    const unsigned all[] = {1, 64, 1000, 4000};
    const unsigned count = run->options.smoke ? 2 : run->options.quick ? 3 : 4;
    int r = 0;
    for (unsigned i = 0; i < count; i++) {
        r = poll_with(run, all[i], bench_run_seconds(run, workload) / count) != 0 ? -1 : r;
    }
    return r;
}

/* ---- memory of a link ------------------------------------------------------------------------ */

struct usage {
    double descriptors;
    double mappings;
    double resident_kib;
};

static double count_entries(const char *folder)
{
    double n = 0;
    DIR *dir = opendir(folder);
    while (dir != NULL && readdir(dir) != NULL) {
        n++;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return n;
}

/* A figure in KiB from one of the kernel's lists of "Key:   N kB"; @p pid 0: of the machine. */
static double proc_kib(pid_t pid, const char *list, const char *key)
{
    char path[64];
    char line[256];
    double kib = 0;
    if (pid > 0) {
        (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, list);
    } else {
        (void)snprintf(path, sizeof path, "/proc/%s", list);
    }
    FILE *in = fopen(path, "r");
    while (in != NULL && fgets(line, sizeof line, in) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0) {
            kib = strtod(line + strlen(key), NULL);
        }
    }
    if (in != NULL) {
        (void)fclose(in);
    }
    return kib;
}

/* Pages that both ends map count half at each: together, what the link really takes. */
static struct usage usage_now(void)
{
    char line[512];
    struct usage usage = {.descriptors = count_entries("/proc/self/fd"),
                          .resident_kib = proc_kib(getpid(), "smaps_rollup", "Pss:")};
    FILE *in = fopen("/proc/self/maps", "r");
    while (in != NULL && fgets(line, sizeof line, in) != NULL) {
        usage.mappings++;
    }
    if (in != NULL) {
        (void)fclose(in);
    }
    return usage;
}

static int link_memory(struct bench_run *run, const struct bench_workload *workload)
{
    const unsigned links = 100;
    struct bench_crowd crowd = {.cluster = "Memory", .count = links, .mode = RINGBUS_MODE_SLEEP};
    const struct ringbus_options options = bench_endpoint_options(run, RINGBUS_MODE_SLEEP);
    int r = bench_crowd_start(run, &crowd);
    bench_crowd_order(&crowd, BENCH_CROWD_POLL);
    struct ringbus *bus = r == 0 ? bench_endpoint_open(&options, NULL) : NULL;
    const struct usage before = usage_now();
    r = bus != NULL ? bench_endpoint_link(bus, crowd.cluster, links, NULL) : -1;
    const struct usage after = usage_now();
    (void)ringbus_close(bus, 0);
    r = bench_crowd_stop(&crowd) != 0 ? -1 : r;
    double descriptors = (after.descriptors - before.descriptors) / links;
    double mappings = (after.mappings - before.mappings) / links;
    double resident = (after.resident_kib - before.resident_kib) / links;
    if (r == 0) {
        bench_run_value(run, workload->name, "ringbus", "descriptors", 0, "busy", "", &descriptors,
                        1);
        bench_run_value(run, workload->name, "ringbus", "mappings", 0, "busy", "", &mappings, 1);
        bench_run_value(run, workload->name, "ringbus", "resident", 0, "busy", "KiB", &resident, 1);
    }
    return r;
}

/* ---- the daemon ------------------------------------------------------------------------------ */

/* Nanoseconds that the daemon has run so far. */
static double daemon_ran_ns(pid_t pid)
{
    char path[64];
    double ns = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/schedstat", (int)pid);
    FILE *in = fopen(path, "r");
    if (in != NULL) {
        if (fscanf(in, "%lf", &ns) != 1) {
            ns = 0;
        }
        (void)fclose(in);
    }
    return ns;
}

static int daemon_idle(struct bench_run *run, const struct bench_workload *workload)
{
    const unsigned endpoints = run->options.smoke ? 50 : 1000;
    const double seconds = run->options.smoke ? 0.5 : run->options.quick ? 2 : 5;
    struct bench_crowd crowd = {.cluster = "Asleep",
                                .count = endpoints,
                                .mode = RINGBUS_MODE_SLEEP,
                                .lane_bytes = 4096,
                                .small_pool = true};
    int r = bench_crowd_start(run, &crowd);
    double percent = 0;
    double mib = 0;
    if (r == 0) {
        (void)usleep(200000); /* what opening left to do is done */
        const double before = daemon_ran_ns(run->daemon);
        (void)usleep((useconds_t)(seconds * 1e6));
        percent = (daemon_ran_ns(run->daemon) - before) / (seconds * 1e7);
        mib = proc_kib(run->daemon, "status", "VmRSS:") / 1024;
    }
    r = bench_crowd_stop(&crowd) != 0 ? -1 : r;
    if (r == 0 && !run->options.smoke) {
        bench_run_value(run, workload->name, "ringbusd", "CPU", 0, "sleep", "%", &percent, 1);
        bench_run_value(run, workload->name, "ringbusd", "memory", 0, "sleep", "MiB", &mib, 1);
    }
    return r;
}

/* ---- many services --------------------------------------------------------------------------- */

/* Nanoseconds a send into a lane that has room, read by nobody meanwhile. */
static int
send_cost(struct bench_crowd *crowd, struct ringbus *bus, const struct ringbus_addr *to, double *ns)
{
    static uint64_t number;
    unsigned char payload[48];
    const uint64_t count = 200;
    uint64_t received = atomic_load(&crowd->page->received);
    const uint64_t before = received;
    unsigned looks = 0;
    bench_crowd_fill(payload, sizeof payload);
    bench_crowd_order(crowd, BENCH_CROWD_REST);
    if (before == 0) {
        number = 0;
    }
    const uint64_t start = bench_now_ns();
    for (uint64_t i = 0; i < count; i++, number++) {
        bench_crowd_stamp(payload, sizeof payload, number);
        if (ringbus_send(bus, to, 0, payload, sizeof payload, 0) != 1) {
            return -1;
        }
    }
    *ns = (double)(bench_now_ns() - start) / (double)count;
    bench_crowd_order(crowd, BENCH_CROWD_POLL);
    bench_watch_begin(&crowd->watch);
    while ((received = atomic_load(&crowd->page->received)) < before + count) {
        bench_pause();
        if (++looks % LOOKS == 0 && bench_watch_stuck(&crowd->watch, received)) {
            return -1;
        }
    }
    return received == before + count ? 0 : -1;
}

static int send_block(struct bench_crowd *crowd,
                      struct ringbus *bus,
                      const struct ringbus_addr *to,
                      double *ns,
                      unsigned n)
{
    int r = 0;
    for (unsigned i = 0; r == 0 && i < n + 5; i++) {
        atomic_store(&crowd->page->whole, i < 5);
        r = send_cost(crowd, bus, to, &ns[i < 5 ? 0 : i - 5]);
    }
    return r;
}

static void say_ratio(
    struct bench_run *run, const char *who, unsigned services, double few, double *many, unsigned n)
{
    struct bench_figure f = {.workload = "services",
                             .contender = who,
                             .mode = "busy",
                             .regime = "all",
                             .unit = "ns",
                             .base = "1 service",
                             .size = services,
                             .blocks = n};
    f.value = rbi_quantile(many, n, 0.5);
    f.value_p10 = rbi_quantile(many, n, 0.1);
    f.value_p90 = rbi_quantile(many, n, 0.9);
    f.ratio = f.value / few;
    f.ratio_p10 = f.value_p10 / few;
    f.ratio_p90 = f.value_p90 / few;
    (void)snprintf(f.param, sizeof f.param, "%u services", services);
    bench_run_figure(run, &f);
}

/* A directory of so many clusters in private memory; how long one look at one of them takes. */
static int directory_looks(uint32_t clusters, double *ns, unsigned n)
{
    const uint64_t size = rbi_directory_size(16, clusters, (uint64_t)clusters * 1024);
    struct rbi_directory_writer writer;
    struct rbi_directory_view view;
    void *memory = aligned_alloc(4096, (size_t)((size + 4095) / 4096 * 4096));
    if (memory == NULL) {
        return -1;
    }
    memset(memory, 0, (size_t)size);
    rbi_directory_writer_init(&writer, memory, size, 16, clusters, 1);
    uint64_t looked = 0;
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < clusters; i++) {
        struct rbi_directory_cluster head = {.epoch = 1, .instance_count = 1};
        struct rbi_directory_instance instance = {
            .instance = 1, .weight = 100, .name_length = 1, .name = "1"};
        head.path_length = (uint32_t)snprintf(head.path, sizeof head.path,
                                              "/Bench/local/host/w0/g0/Service-%u", i);
        head.cluster = ringbus_key(head.path, head.path_length);
        looked = i == clusters / 2 ? head.cluster : looked;
        r = rbi_directory_publish(&writer, &head, &instance);
    }
    r = r == 0 ? rbi_directory_view_init(&view, memory, size) : -1;
    for (unsigned k = 0; r == 0 && k < n; k++) {
        uint64_t sum = 0;
        const uint64_t start = bench_now_ns();
        for (unsigned i = 0; i < 10000; i++) {
            sum += rbi_directory_epoch(&view, looked);
        }
        ns[k] = (double)(bench_now_ns() - start) / 10000;
        r = sum == 10000 ? 0 : -1;
    }
    free(memory);
    return r;
}

/* Of so many services, those that this machine can have for real: an endpoint takes the daemon
 * four descriptors and all together some 80 KiB. */
static unsigned affordable(unsigned wanted)
{
    struct rlimit limit = {0};
    const double free_kib = proc_kib(0, "meminfo", "MemAvailable:");
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    const double by_descriptors = ((double)limit.rlim_cur - 500) / 4;
    const double by_memory = free_kib / 4 / 80;
    const double most = by_descriptors < by_memory ? by_descriptors : by_memory;
    if (most >= wanted) {
        return wanted;
    }
    (void)printf("  %.0f of %u services: this machine has %s for no more\n", most, wanted,
                 by_descriptors < by_memory ? "descriptors (ulimit -Hn)" : "memory");
    return (unsigned)most;
}

static struct bench_crowd others(const char *cluster, unsigned count)
{
    const struct bench_crowd crowd = {.cluster = cluster,
                                      .own_clusters = true,
                                      .count = count,
                                      .apart = count / (BENCH_CROWD_PROCESSES - 1) + 400,
                                      .mode = RINGBUS_MODE_SLEEP,
                                      .lane_bytes = 4096,
                                      .small_pool = true};
    return crowd;
}

struct served {
    struct bench_crowd one; /* the service that is sent to */
    struct ringbus *bus;
    struct ringbus_addr to;
    double few[BLOCKS_MAX];
    double base;
    unsigned n;
};

/* Registers more services and sends to the same one as before. */
static int
send_among(struct bench_run *run, struct served *served, struct bench_crowd *more, unsigned total)
{
    double many[BLOCKS_MAX];
    bench_crowd_order(&served->one, BENCH_CROWD_REST); /* the others need the core */
    int r = bench_crowd_start(run, more);
    r = r == 0 ? send_block(&served->one, served->bus, &served->to, many, served->n) : r;
    bench_crowd_order(&served->one, BENCH_CROWD_REST);
    if (r == 0) {
        say_ratio(run, "ringbus", total, served->base, many, served->n);
    }
    return r;
}

static int real_services(struct bench_run *run, struct served *served)
{
    const unsigned some = run->options.smoke ? 100 : 2000;
    const bool brief = run->options.smoke || run->options.quick;
    const unsigned all = brief ? some : affordable(100000);
    struct bench_crowd rest = others("Other", some - 1);
    struct bench_crowd extra = others("More", all > some ? all - some : 0);
    const struct ringbus_options options = bench_endpoint_options(run, RINGBUS_MODE_BUSY);
    int r = bench_crowd_start(run, &served->one);
    bench_crowd_order(&served->one, BENCH_CROWD_POLL);
    bench_pin(0);
    served->bus = r == 0 ? bench_endpoint_open(&options, NULL) : NULL;
    r = served->bus != NULL ? bench_endpoint_link(served->bus, served->one.cluster, 1, &served->to)
                            : -1;
    served->to.instance = 1;
    r = r == 0 ? send_block(&served->one, served->bus, &served->to, served->few, served->n) : r;
    if (r == 0) {
        served->base = rbi_quantile(served->few, served->n, 0.5);
        say_ratio(run, "ringbus", 1, served->base, served->few, served->n);
        r = send_among(run, served, &rest, some);
    }
    if (r == 0 && extra.count > 0) {
        r = send_among(run, served, &extra, all);
    }
    r = extra.page != NULL && bench_crowd_stop(&extra) != 0 ? -1 : r;
    r = rest.page != NULL && bench_crowd_stop(&rest) != 0 ? -1 : r;
    (void)ringbus_close(served->bus, 0);
    return bench_crowd_stop(&served->one) != 0 ? -1 : r;
}

static int services(struct bench_run *run, const struct bench_workload *workload)
{
    static struct served served;
    double many[BLOCKS_MAX];
    memset(&served, 0, sizeof served);
    served.one.cluster = "Served";
    served.one.count = 1;
    served.one.mode = RINGBUS_MODE_BUSY;
    served.n = run->options.smoke ? 10 : BLOCKS_MAX;
    int r = real_services(run, &served);
    for (unsigned clusters = 1; r == 0 && clusters <= 100000; clusters *= 100000) {
        double *ns = clusters == 1 ? served.few : many;
        r = directory_looks(clusters, ns, served.n);
        if (r == 0) {
            say_ratio(run, "directory", clusters, rbi_quantile(served.few, served.n, 0.5), ns,
                      served.n);
        }
    }
    (void)workload;
    return r;
}

const struct bench_workload bench_idle_links = {
    "idle-links", "one look at an endpoint with N silent links", 3, true, idle_links};
const struct bench_workload bench_link_memory = {
    "link-memory", "what a link takes at each side, before its first lap", 0.5, true, link_memory};
const struct bench_workload bench_daemon_idle = {
    "daemon-idle", "the daemon with 1,000 endpoints that do nothing", 5, true, daemon_idle};
const struct bench_workload bench_services = {
    "services", "a send on a bus with many services; a look into the directory", 2, true, services};
