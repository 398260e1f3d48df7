/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/report.c - what a run leaves behind: JSON lines, RESULTS.md, and the tables that the
 * gnuplot script next to it draws from.
 */
#include "bench/bars.h"
#include "bench/run.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static FILE *create(const struct bench_run *run, const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", run->options.results, name);
    FILE *out = fopen(path, "w");
    if (out == NULL) {
        (void)fprintf(stderr, "bench: %s: %s\n", path, strerror(errno));
    }
    return out;
}

/* ---- JSON lines ------------------------------------------------------------------------------ */

void bench_report_json(FILE *out, const struct bench_run *run, const struct bench_figure *f)
{
    const struct bench_bar *bar = bench_bar_find(f);
    (void)fprintf(out,
                  "{\"workload\":\"%s\",\"contender\":\"%s\",\"param\":\"%s\",\"mode\":\"%s\","
                  "\"regime\":\"%s\",\"unit\":\"%s\",\"median\":%.6g,\"p10\":%.6g,\"p90\":%.6g,"
                  "\"blocks\":%u,\"disturbed\":%u,\"messages\":%llu",
                  f->workload, f->contender, f->param, f->mode, f->regime, f->unit, f->value,
                  f->value_p10, f->value_p90, f->blocks, f->disturbed,
                  (unsigned long long)f->messages);
    if (f->limit_ns > 0) {
        (void)fprintf(out, ",\"two_lines_ns\":%.1f", f->limit_ns);
    }
    if (f->base != NULL) {
        (void)fprintf(out, ",\"base\":\"%s\",\"ratio\":%.4f,\"ratio_p10\":%.4f,\"ratio_p90\":%.4f",
                      f->base, f->ratio, f->ratio_p10, f->ratio_p90);
    }
    if (f->latency[0] > 0) {
        (void)fprintf(out,
                      ",\"latency_ns\":{\"p50\":%.0f,\"p90\":%.0f,\"p99\":%.0f,\"p99.9\":%.0f,"
                      "\"max\":%.0f}",
                      f->latency[0], f->latency[1], f->latency[2], f->latency[3], f->latency[4]);
    }
    if (f->cpu_ns[0] > 0) {
        (void)fprintf(out, ",\"cpu_ns\":[%.1f,%.1f]", f->cpu_ns[0], f->cpu_ns[1]);
    }
    if (bar != NULL) {
        (void)fprintf(out, ",\"bar\":%g,\"met\":%s", bench_bar_bound(bar, f),
                      bench_bar_met(bar, f) ? "true" : "false");
    }
    (void)fprintf(out,
                  ",\"machine\":\"%s\",\"kernel\":\"%s\",\"compiler\":\"%s\",\"commit\":\"%s\"}\n",
                  run->machine, run->kernel, BENCH_COMPILER, run->options.commit);
    (void)fflush(out);
}

/* ---- RESULTS.md ------------------------------------------------------------------------------ */

static void write_ratio(FILE *out, const struct bench_figure *f)
{
    if (f->base != NULL) {
        (void)fprintf(out, " | %.2f x %s (%.2f-%.2f)", f->ratio, f->base, f->ratio_p10,
                      f->ratio_p90);
    } else {
        (void)fprintf(out, " | ");
    }
}

static void write_row(FILE *out, const struct bench_figure *f)
{
    (void)fprintf(out, "| %s | %s | %s | %s | %.4g %s (%.4g-%.4g)", f->contender, f->param, f->mode,
                  f->regime, f->value, f->unit, f->value_p10, f->value_p90);
    write_ratio(out, f);
    if (f->latency[0] > 0) {
        (void)fprintf(out, " | %.0f / %.0f / %.0f", f->latency[0], f->latency[2], f->latency[3]);
    } else {
        (void)fprintf(out, " | ");
    }
    if (f->cpu_ns[0] > 0) {
        (void)fprintf(out, " | %.0f + %.0f", f->cpu_ns[0], f->cpu_ns[1]);
    } else {
        (void)fprintf(out, " | ");
    }
    (void)fprintf(out, " | %u |\n", f->blocks);
}

static void write_bars(FILE *out, const struct bench_run *run)
{
    (void)fprintf(out, "## The bars\n\n| what | regime | measured | ratio | bar | |\n"
                       "|---|---|---|---|---|---|\n");
    for (unsigned i = 0; i < run->figure_count; i++) {
        const struct bench_figure *f = &run->figures[i];
        const struct bench_bar *bar = bench_bar_find(f);
        if (bar == NULL) {
            continue;
        }
        (void)fprintf(out, "| %s, %s, %s, %s | %s | %.4g %s", f->workload, f->contender, f->param,
                      f->mode, f->regime, f->value, f->unit);
        write_ratio(out, f);
        (void)fprintf(out, " | %s %g %s | %s |\n",
                      bar->at_least ? ">=" : "<=", bench_bar_bound(bar, f), bar->text,
                      bench_bar_met(bar, f) ? "PASS" : "**SHORT**");
    }
}

static void write_workload(FILE *out, const struct bench_run *run, const struct bench_workload *w)
{
    bool headed = false;
    for (unsigned i = 0; i < run->figure_count; i++) {
        const struct bench_figure *f = &run->figures[i];
        if (strcmp(f->workload, w->name) != 0) {
            continue;
        }
        if (!headed) {
            (void)fprintf(out,
                          "\n## %s\n\n%s.\n\n| who | of | mode | regime | median (p10-p90) | ratio "
                          "| p50 / p99 / p99.9 ns | CPU ns a side | blocks |\n"
                          "|---|---|---|---|---|---|---|---|---|\n",
                          w->name, w->text);
            headed = true;
        }
        write_row(out, f);
    }
}

static void write_contenders(FILE *out, const struct bench_run *run)
{
    (void)fprintf(out, "\n## Who took part, and how\n\n| who | how | package |\n|---|---|---|\n");
    for (unsigned i = 0; bench_contenders[i] != NULL; i++) {
        const struct bench_contender *c = bench_contenders[i];
        if (bench_run_wants(run, c)) {
            (void)fprintf(out, "| %s | %s | %s |\n", c->name, c->text, c->package);
        }
    }
}

static int write_results(const struct bench_run *run)
{
    char date[32] = "";
    struct tm utc;
    const time_t now = time(NULL);
    FILE *out = create(run, "RESULTS.md");
    if (out == NULL) {
        return -1;
    }
    if (gmtime_r(&now, &utc) != NULL) {
        (void)strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &utc);
    }
    (void)fprintf(out,
                  "# Results\n\nWritten by `./dev bench`; not edited by hand. %s, %s, Linux %s, "
                  "%s, commit %s.\n\nEvery ratio compares with what was measured beside it, a "
                  "few milliseconds apart, in the same two processes. \"near\": the bare round "
                  "trip over two cache lines takes at most 250 ns; \"far\": more. Medians over "
                  "blocks, 10th and 90th percentile in brackets. Read docs/performance.md "
                  "first.\n\n",
                  date, run->machine, run->kernel, BENCH_COMPILER, run->options.commit);
    write_bars(out, run);
    for (unsigned i = 0; bench_workloads[i] != NULL; i++) {
        write_workload(out, run, bench_workloads[i]);
    }
    write_contenders(out, run);
    return fclose(out) == 0 ? 0 : -1;
}

/* ---- plots: one file a picture, gnuplot's blocks by contender -------------------------------- */

static bool plotted(const struct bench_figure *f, const char *workload, const char *regime)
{
    return f->size > 0 && strcmp(f->workload, workload) == 0 && strcmp(f->regime, regime) == 0;
}

/* Of all figures of its contender in this picture. */
static bool is_first(const struct bench_run *run, unsigned index)
{
    const struct bench_figure *f = &run->figures[index];
    for (unsigned i = 0; i < index; i++) {
        if (plotted(&run->figures[i], f->workload, f->regime) &&
            strcmp(run->figures[i].contender, f->contender) == 0) {
            return false;
        }
    }
    return true;
}

/* Size, value and percentiles of each contender, in blocks that gnuplot can name. */
static int write_plot(const struct bench_run *run, const char *workload, const char *regime)
{
    char name[96];
    (void)snprintf(name, sizeof name, "results/%s-%s.dat", workload, regime);
    FILE *out = create(run, name);
    if (out == NULL) {
        return -1;
    }
    for (unsigned i = 0; i < run->figure_count; i++) {
        const char *contender = run->figures[i].contender;
        if (!plotted(&run->figures[i], workload, regime) || !is_first(run, i)) {
            continue;
        }
        (void)fprintf(out, "\"%s\"\n", contender);
        for (unsigned k = i; k < run->figure_count; k++) {
            const struct bench_figure *f = &run->figures[k];
            if (plotted(f, workload, regime) && strcmp(f->contender, contender) == 0) {
                (void)fprintf(out, "%llu %.6g %.6g %.6g %.0f %.0f %.0f %.0f\n",
                              (unsigned long long)f->size, f->value, f->value_p10, f->value_p90,
                              f->latency[0], f->latency[1], f->latency[2], f->latency[3]);
            }
        }
        (void)fprintf(out, "\n\n");
    }
    return fclose(out) == 0 ? 0 : -1;
}

int bench_report_write(const struct bench_run *run)
{
    static const char *const regimes[] = {"near", "far", "all"};
    char folder[512];
    (void)snprintf(folder, sizeof folder, "%s/results", run->options.results);
    if (mkdir(run->options.results, 0755) != 0 && errno != EEXIST) {
        (void)fprintf(stderr, "bench: %s: %s\n", run->options.results, strerror(errno));
        return -1;
    }
    (void)mkdir(folder, 0755);
    int r = write_results(run);
    for (unsigned i = 0; bench_workloads[i] != NULL; i++) {
        for (unsigned k = 0; k < 3; k++) {
            for (unsigned f = 0; f < run->figure_count; f++) {
                if (plotted(&run->figures[f], bench_workloads[i]->name, regimes[k])) {
                    r = write_plot(run, bench_workloads[i]->name, regimes[k]) != 0 ? -1 : r;
                    break;
                }
            }
        }
    }
    return r;
}
