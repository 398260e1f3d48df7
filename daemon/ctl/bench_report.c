/* SPDX-License-Identifier: Apache-2.0 */
/* What bench found: a table for people, or one JSON object a line. */
#include "daemon/ctl/bench.h"
#include "daemon/ctl/json.h"

#include <inttypes.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Above these the figures say as much about the others as about the bus. */
#define STEAL_PERCENT_MAX     1.0
#define OTHERS_PERCENT_MAX    5.0
#define DISTURBED_PERCENT_MAX 5.0

/* With fewer undisturbed blocks than this the disturbed ones count too. */
#define UNDISTURBED_MIN 5U

static const char *const mode_names[RBI_BENCH_MODES] = {"busy", "sleep"};
static const char *const regime_names[RBI_BENCH_REGIMES] = {"near", "far", "one core"};

/* Of the blocks of one regime: medians. */
struct figures {
    unsigned blocks; /* that count */
    double limit_ns;
    double trip_ns;
    double ratio; /* 0 where there is no limit */
    double message_ns;
    double p50_ns; /* of all blocks */
    double p99_ns;
};

static unsigned
blocks_of(const struct rbi_bench_series *series, enum rbi_bench_regime regime, bool disturbed_too)
{
    unsigned n = 0;
    for (unsigned i = 0; i < series->block_count; i++) {
        const struct rbi_bench_block *block = &series->blocks[i];
        n += block->regime == regime && (disturbed_too || !block->disturbed) ? 1 : 0;
    }
    return n;
}

static struct figures figures_of(const struct rbi_bench_series *series,
                                 enum rbi_bench_regime regime)
{
    /* Too large for the stack; one thread. */
    static double limit[RBI_BENCH_BLOCKS_MAX];
    static double trip[RBI_BENCH_BLOCKS_MAX];
    static double ratio[RBI_BENCH_BLOCKS_MAX];
    static double message[RBI_BENCH_BLOCKS_MAX];
    const bool all = blocks_of(series, regime, false) < UNDISTURBED_MIN;
    struct figures f = {.p50_ns = rbi_histogram_quantile(series->histogram[regime], 0.50),
                        .p99_ns = rbi_histogram_quantile(series->histogram[regime], 0.99)};
    unsigned n = 0;
    for (unsigned i = 0; i < series->block_count; i++) {
        const struct rbi_bench_block *block = &series->blocks[i];
        if (block->regime == regime && (all || !block->disturbed)) {
            limit[n] = block->limit_ns;
            trip[n] = block->trip_ns;
            ratio[n] = block->limit_ns > 0 ? block->trip_ns / block->limit_ns : 0;
            message[n] = block->message_ns;
            n++;
        }
    }
    f.blocks = n;
    f.limit_ns = rbi_quantile(limit, n, 0.5);
    f.trip_ns = rbi_quantile(trip, n, 0.5);
    f.ratio = rbi_quantile(ratio, n, 0.5);
    f.message_ns = rbi_quantile(message, n, 0.5);
    return f;
}

/* ---- what was measured, and who disturbed it --------------------------------------------- */

struct verdict {
    unsigned blocks;
    unsigned disturbed;
    bool quiet;
};

static struct verdict verdict_of(const struct rbi_bench_plan *plan,
                                 const struct rbi_bench_page *page,
                                 const struct rbi_bench_quiet *quiet)
{
    struct verdict v = {0};
    for (unsigned mode = 0; mode < RBI_BENCH_MODES; mode++) {
        for (unsigned i = 0; i <= plan->args->size_count; i++) {
            const struct rbi_bench_series *series = &page->series[mode][i];
            v.blocks += series->block_count;
            for (unsigned k = 0; k < series->block_count; k++) {
                v.disturbed += series->blocks[k].disturbed ? 1 : 0;
            }
        }
    }
    /* On one core the sides take it from each other: that is no disturbance from outside. */
    const bool alone = plan->together || v.disturbed * 100.0 <= DISTURBED_PERCENT_MAX * v.blocks;
    v.quiet = quiet->known && alone && quiet->steal_percent <= STEAL_PERCENT_MAX &&
              quiet->others_percent <= OTHERS_PERCENT_MAX;
    return v;
}

struct totals {
    uint64_t messages;
    uint64_t bytes;
};

static struct totals totals_of(const struct rbi_bench_page *page)
{
    const struct totals totals = {.messages = page->messages[0] + page->messages[1],
                                  .bytes = page->bytes[0] + page->bytes[1]};
    return totals;
}

struct machine {
    char cpu[128];
    bool is_virtual;
    long cores;
    struct utsname kernel;
};

static struct machine machine_of(void)
{
    struct machine machine = {.cores = sysconf(_SC_NPROCESSORS_ONLN)};
    machine.is_virtual = rbi_bench_cpu_name(machine.cpu, sizeof machine.cpu);
    if (uname(&machine.kernel) != 0) {
        memset(&machine.kernel, 0, sizeof machine.kernel);
    }
    return machine;
}

/* ---- text -------------------------------------------------------------------------------- */

static const char *time_text(double ns, char *buffer, size_t size)
{
    if (ns < 10e3) {
        snprintf(buffer, size, "%.0f ns", ns);
    } else if (ns < 10e6) {
        snprintf(buffer, size, "%.1f us", ns / 1e3);
    } else {
        snprintf(buffer, size, "%.1f ms", ns / 1e6);
    }
    return buffer;
}

static void text_trip(const char *mode, const char *regime, uint32_t size, const struct figures *f)
{
    char times[4][24];
    char ratio[16] = "-";
    if (f->ratio > 0) {
        snprintf(ratio, sizeof ratio, "%.2f", f->ratio);
    }
    printf("  %-5s  %-8s  %7" PRIu32 "  %6u  %9s  %9s  %9s  %9s  %5s\n", mode, regime, size,
           f->blocks, time_text(f->p50_ns, times[0], sizeof times[0]),
           time_text(f->p99_ns, times[1], sizeof times[1]),
           time_text(f->trip_ns, times[2], sizeof times[2]),
           f->limit_ns > 0 ? time_text(f->limit_ns, times[3], sizeof times[3]) : "-", ratio);
}

static void
text_stream(const char *mode, const char *regime, uint32_t size, const struct figures *f)
{
    printf("  %-5s  %-8s  %7" PRIu32 "  %6u  %12.0f  %9.0f\n", mode, regime, size, f->blocks,
           1e9 / f->message_ns, 1e3 * size / f->message_ns);
}

typedef void (*row_fn)(const char *mode,
                       const char *regime,
                       uint32_t size,
                       const struct figures *figures);

/* Rows of the series @p from to @p to (not included), for each mode and regime that occurred. */
static void rows(const struct rbi_bench_plan *plan,
                 const struct rbi_bench_page *page,
                 unsigned from,
                 unsigned to,
                 row_fn row)
{
    for (unsigned mode = 0; mode < RBI_BENCH_MODES; mode++) {
        for (unsigned i = from; i < to; i++) {
            const uint32_t size = plan->args->sizes[i < plan->args->size_count ? i : 0];
            for (unsigned regime = 0; regime < RBI_BENCH_REGIMES; regime++) {
                const struct figures figures =
                    figures_of(&page->series[mode][i], (enum rbi_bench_regime)regime);
                if (figures.blocks > 0) {
                    row(mode_names[mode], regime_names[regime], size, &figures);
                }
            }
        }
    }
}

static void text_time(const char *what, const double *us, unsigned count)
{
    double sorted[RBI_BENCH_OPENS];
    memcpy(sorted, us, count * sizeof sorted[0]);
    const double median = rbi_quantile(sorted, count, 0.5);
    printf("%-28s %.2f ms, at worst %.2f ms of %u\n", what, median / 1e3, sorted[count - 1] / 1e3,
           count);
}

static void text_verdict(const struct verdict *v, const struct rbi_bench_quiet *quiet)
{
    if (quiet->known) {
        printf("these cores: %.1f %% stolen by the host, %.1f %% used by others; ",
               quiet->steal_percent, quiet->others_percent);
    } else {
        printf("these cores: /proc/stat does not say who else used them; ");
    }
    printf("%u of %u blocks disturbed\n%s\n", v->disturbed, v->blocks,
           v->quiet ? "quiet: the figures are those of this bus on this machine"
                    : "shared: others used these cores, and the bus can do better than this; "
                      "choose quiet cores\n(--cpus), or take it as what is left under this load");
}

static void text_all(const struct rbi_bench_plan *plan,
                     const struct rbi_bench_page *page,
                     const struct rbi_bench_daemon *daemon,
                     const struct rbi_bench_quiet *quiet)
{
    const struct machine machine = machine_of();
    const struct totals totals = totals_of(page);
    const struct verdict verdict = verdict_of(plan, page, quiet);
    const unsigned sizes = plan->args->size_count;
    printf("ringbusd %s at %s, ringbusctl %s\n", daemon->version, daemon->socket,
           ringbus_version());
    printf("%s%s, %ld cores, %s %s %s\n", machine.cpu[0] != '\0' ? machine.cpu : "unknown CPU",
           machine.is_virtual ? " (virtual machine)" : "", machine.cores, machine.kernel.sysname,
           machine.kernel.release, machine.kernel.machine);
    printf("%s/%d on core %d, /%d on core %d\n\n", plan->cluster, page->pids[0], plan->cpus[0],
           page->pids[1], plan->cpus[1]);
    puts("round trip           bytes  blocks        p50        p99      batch      limit  ratio");
    rows(plan, page, 0, sizes, text_trip);
    puts("\nrequest and reply    bytes  blocks        p50        p99      batch      limit  ratio");
    rows(plan, page, sizes, sizes + 1, text_trip);
    puts("\none way              bytes  blocks    messages/s       MB/s");
    rows(plan, page, 0, sizes, text_stream);
    putchar('\n');
    text_time("open an endpoint", page->open_us, page->open_count);
    text_time("introduce two until READY", page->introduce_us, page->open_count);
    printf("\n%" PRIu64 " messages, %.1f MB: number, order and content of each are right\n",
           totals.messages, (double)totals.bytes / 1e6);
    text_verdict(&verdict, quiet);
}

/* ---- JSON -------------------------------------------------------------------------------- */

static void json_begin(struct rbi_ctl_json *json, const char *what)
{
    rbi_ctl_json_begin(json, stdout);
    rbi_ctl_json_text(json, "what", what);
}

static void json_row(struct rbi_ctl_json *json,
                     const char *what,
                     const char *mode,
                     const char *regime,
                     uint32_t size,
                     const struct figures *f)
{
    json_begin(json, what);
    rbi_ctl_json_text(json, "mode", mode);
    rbi_ctl_json_text(json, "regime", regime);
    rbi_ctl_json_u64(json, "size", size);
    rbi_ctl_json_u64(json, "blocks", f->blocks);
}

static void json_trip_as(
    const char *what, const char *mode, const char *regime, uint32_t size, const struct figures *f)
{
    struct rbi_ctl_json json;
    json_row(&json, what, mode, regime, size, f);
    rbi_ctl_json_real(&json, "p50_ns", f->p50_ns);
    rbi_ctl_json_real(&json, "p99_ns", f->p99_ns);
    rbi_ctl_json_real(&json, "batch_ns", f->trip_ns);
    if (f->ratio > 0) {
        rbi_ctl_json_real(&json, "limit_ns", f->limit_ns);
        rbi_ctl_json_real(&json, "ratio", f->ratio);
    }
    rbi_ctl_json_end(&json);
}

static void json_trip(const char *mode, const char *regime, uint32_t size, const struct figures *f)
{
    json_trip_as("round trip", mode, regime, size, f);
}

static void
json_request(const char *mode, const char *regime, uint32_t size, const struct figures *f)
{
    json_trip_as("request", mode, regime, size, f);
}

static void
json_stream(const char *mode, const char *regime, uint32_t size, const struct figures *f)
{
    struct rbi_ctl_json json;
    json_row(&json, "one way", mode, regime, size, f);
    rbi_ctl_json_real(&json, "messages_per_s", 1e9 / f->message_ns);
    rbi_ctl_json_real(&json, "bytes_per_s", 1e9 * size / f->message_ns);
    rbi_ctl_json_end(&json);
}

static void json_time(const char *what, const double *us, unsigned count)
{
    struct rbi_ctl_json json;
    double sorted[RBI_BENCH_OPENS];
    memcpy(sorted, us, count * sizeof sorted[0]);
    json_begin(&json, what);
    rbi_ctl_json_u64(&json, "count", count);
    rbi_ctl_json_real(&json, "median_us", rbi_quantile(sorted, count, 0.5));
    rbi_ctl_json_real(&json, "worst_us", sorted[count - 1]);
    rbi_ctl_json_end(&json);
}

static void json_machine(const struct rbi_bench_plan *plan,
                         const struct rbi_bench_page *page,
                         const struct rbi_bench_daemon *daemon)
{
    const struct machine machine = machine_of();
    struct rbi_ctl_json json;
    json_begin(&json, "bus");
    rbi_ctl_json_text(&json, "daemon", daemon->version);
    rbi_ctl_json_text(&json, "socket", daemon->socket);
    rbi_ctl_json_text(&json, "ringbusctl", ringbus_version());
    rbi_ctl_json_text(&json, "cluster", plan->cluster);
    rbi_ctl_json_end(&json);
    json_begin(&json, "machine");
    rbi_ctl_json_text(&json, "cpu", machine.cpu);
    rbi_ctl_json_bool(&json, "virtual", machine.is_virtual);
    rbi_ctl_json_i64(&json, "cores", machine.cores);
    rbi_ctl_json_text(&json, "kernel", machine.kernel.release);
    rbi_ctl_json_text(&json, "architecture", machine.kernel.machine);
    rbi_ctl_json_end(&json);
    for (unsigned i = 0; i < 2; i++) {
        json_begin(&json, "side");
        rbi_ctl_json_i64(&json, "pid", page->pids[i]);
        rbi_ctl_json_i64(&json, "core", plan->cpus[i]);
        rbi_ctl_json_end(&json);
    }
}

static void json_all(const struct rbi_bench_plan *plan,
                     const struct rbi_bench_page *page,
                     const struct rbi_bench_daemon *daemon,
                     const struct rbi_bench_quiet *quiet)
{
    const struct totals totals = totals_of(page);
    const struct verdict verdict = verdict_of(plan, page, quiet);
    const unsigned sizes = plan->args->size_count;
    struct rbi_ctl_json json;
    json_machine(plan, page, daemon);
    rows(plan, page, 0, sizes, json_trip);
    rows(plan, page, sizes, sizes + 1, json_request);
    rows(plan, page, 0, sizes, json_stream);
    json_time("open", page->open_us, page->open_count);
    json_time("introduce", page->introduce_us, page->open_count);
    json_begin(&json, "checked");
    rbi_ctl_json_u64(&json, "messages", totals.messages);
    rbi_ctl_json_u64(&json, "bytes", totals.bytes);
    rbi_ctl_json_u64(&json, "wrong", 0); /* or there were no report */
    rbi_ctl_json_end(&json);
    json_begin(&json, "load");
    if (quiet->known) {
        rbi_ctl_json_real(&json, "steal_percent", quiet->steal_percent);
        rbi_ctl_json_real(&json, "others_percent", quiet->others_percent);
    }
    rbi_ctl_json_u64(&json, "blocks", verdict.blocks);
    rbi_ctl_json_u64(&json, "disturbed", verdict.disturbed);
    rbi_ctl_json_bool(&json, "quiet", verdict.quiet);
    rbi_ctl_json_end(&json);
}

void rbi_bench_report(const struct rbi_bench_plan *plan,
                      const struct rbi_bench_page *page,
                      const struct rbi_bench_daemon *daemon,
                      const struct rbi_bench_quiet *quiet)
{
    if (plan->args->json) {
        json_all(plan, page, daemon, quiet);
    } else {
        text_all(plan, page, daemon, quiet);
    }
}
