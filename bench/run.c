/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/run.h"

#include "bench/bars.h"
#include "measure/quantiles.h"

#include <string.h>

double bench_run_seconds(const struct bench_run *run, const struct bench_workload *workload)
{
    if (run->options.smoke) {
        return 0;
    }
    if (run->options.seconds > 0) {
        return run->options.seconds;
    }
    return run->options.quick ? workload->seconds / 5 : workload->seconds;
}

bool bench_run_wants(const struct bench_run *run, const struct bench_contender *contender)
{
    const char *list = run->options.peers;
    const size_t length = strlen(contender->name);
    if ((contender->abilities & (BENCH_IS_LIMIT | BENCH_OWN)) != 0 || strcmp(list, "all") == 0) {
        return true;
    }
    for (const char *at = list; (at = strstr(at, contender->name)) != NULL; at += length) {
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

void bench_run_heading(const struct bench_workload *workload)
{
    (void)printf("\n%s: %s\n", workload->name, workload->text);
    (void)fflush(stdout);
}

static void say(const struct bench_figure *f, const struct bench_bar *bar)
{
    (void)printf("  %-15s %-14s %-5s %-4s %10.4g %-4s (%.4g-%.4g)", f->contender, f->param, f->mode,
                 f->regime, f->value, f->unit, f->value_p10, f->value_p90);
    if (f->base != NULL) {
        (void)printf("  %.2f x %s (%.2f-%.2f)", f->ratio, f->base, f->ratio_p10, f->ratio_p90);
    }
    if (f->latency[0] > 0) {
        (void)printf("  p50 %.0f p99 %.0f p99.9 %.0f ns", f->latency[0], f->latency[2],
                     f->latency[3]);
    }
    if (bar != NULL) {
        (void)printf("  bar %s %g %s %s", bar->at_least ? ">=" : "<=", bench_bar_bound(bar, f),
                     bar->text, bench_bar_met(bar, f) ? "PASS" : "SHORT");
    }
    (void)printf("\n");
    (void)fflush(stdout);
}

void bench_run_figure(struct bench_run *run, const struct bench_figure *figure)
{
    const struct bench_bar *bar = bench_bar_find(figure);
    if (run->figure_count < BENCH_FIGURES_MAX) {
        run->figures[run->figure_count++] = *figure;
    }
    if (bar != NULL && !bench_bar_met(bar, figure)) {
        run->shorts++;
    }
    say(figure, bar);
    if (run->json != NULL) {
        bench_report_json(run->json, run, figure);
    }
}

void bench_run_failed(struct bench_run *run,
                      const char *workload,
                      const struct bench_contender *contender,
                      const char *why)
{
    const bool ours = (contender->abilities & (BENCH_IS_LIMIT | BENCH_OWN)) != 0;
    (void)printf("  %-15s FAILED in %s: %s\n", contender->name, workload, why);
    (void)fflush(stdout);
    if (ours) {
        run->failures++;
    } else {
        run->peer_failures++;
    }
}

void bench_run_value(struct bench_run *run,
                     const char *workload,
                     const char *contender,
                     const char *param,
                     uint64_t size,
                     const char *mode,
                     const char *unit,
                     double *values,
                     unsigned count)
{
    struct bench_figure f = {.workload = workload,
                             .contender = contender,
                             .mode = mode,
                             .regime = run->regime,
                             .unit = unit,
                             .value = rbi_quantile(values, count, 0.5),
                             .value_p10 = rbi_quantile(values, count, 0.1),
                             .value_p90 = rbi_quantile(values, count, 0.9),
                             .size = size,
                             .blocks = count};
    (void)snprintf(f.param, sizeof f.param, "%s", param);
    bench_run_figure(run, &f);
}
