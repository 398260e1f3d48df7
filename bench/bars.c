/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bars.h"

#include <string.h>

#define AT_MOST(w, c, p, m, bound, text)                                                           \
    {                                                                                              \
        w, c, p, m, false, false, bound, bound, text                                               \
    }
#define RATIO_AT_MOST(w, c, p, m, bound, text)                                                     \
    {                                                                                              \
        w, c, p, m, true, false, bound, bound, text                                                \
    }
#define RATIO_AT_LEAST(w, c, p, m, bound, text)                                                    \
    {                                                                                              \
        w, c, p, m, true, true, bound, bound, text                                                 \
    }
#define AT_LEAST(w, c, p, m, near, far, text)                                                      \
    {                                                                                              \
        w, c, p, m, false, true, near, far, text                                                   \
    }

const struct bench_bar bench_bars[] = {
    RATIO_AT_MOST("round-trip", "ringbus", "48 B", "busy", 1.3, "x two lines"),
    RATIO_AT_MOST("round-trip", "ringbus", "64 B", "busy", 1.5, "x two lines"),
    RATIO_AT_MOST("round-trip", "ringbus", "1 KiB", "busy", 1.4, "x copy"),
    RATIO_AT_MOST("round-trip", "ringbus", "64 KiB", "busy", 1.3, "x copy"),
    RATIO_AT_MOST("round-trip", "ringbus-ref", "1 MiB", "busy", 1.5, "x 64 B copied"),
    RATIO_AT_MOST("round-trip-sleep", "ringbus-no-spin", "64 B", "sleep", 1.15, "x bare eventfd"),
    RATIO_AT_MOST("same-core", "ringbus", "64 B", "sleep", 1.25, "x pipe"),
    AT_MOST("same-core", "ringbus", "64 B", "busy", 1e6, "never slower than 1 ms"),
    AT_LEAST("one-way", "ringbus", "48 B", "busy", 45, 20, "M/s"),
    AT_LEAST("one-way", "ringbus", "64 B", "busy", 40, 20, "M/s"),
    RATIO_AT_LEAST("one-way", "ringbus", "1 KiB", "busy", 0.8, "x bare byte ring"),
    RATIO_AT_LEAST("one-way", "ringbus", "64 KiB", "busy", 0.8, "x bare byte ring"),
    RATIO_AT_LEAST("one-way-sleep", "ringbus", "64 B", "sleep", 0.7, "x busy"),
    RATIO_AT_LEAST("one-way-sleep", "ringbus-burst", "64 B", "sleep", 0.7, "x busy"),
    AT_MOST("broadcast", "ringbus-ref", "64 readers", "busy", 1000, "ns a publish of 1 KiB"),
    AT_MOST("cpu", "ringbus", "48 B send", "busy", 15, "ns more than a bare ring"),
    AT_MOST("cpu", "ringbus", "48 B take", "busy", 15, "ns more than a bare ring"),
    AT_MOST("dispatch", "hash", "8 instances", "busy", 10, "ns a pick"),
    AT_MOST("dispatch", "hash", "64 instances", "busy", 10, "ns a pick"),
    AT_MOST("dispatch", "hash", "512 instances", "busy", 10, "ns a pick"),
    AT_MOST("dispatch", "no key", "8 instances", "busy", 10, "ns a pick"),
    AT_MOST("dispatch", "no key", "64 instances", "busy", 10, "ns a pick"),
    AT_MOST("dispatch", "no key", "512 instances", "busy", 10, "ns a pick"),
    AT_MOST("idle-links", "ringbus", "64 links", "busy", 50, "ns a poll"),
    AT_MOST("idle-links", "ringbus", "1000 links", "busy", 50, "ns a poll"),
    AT_MOST("idle-links", "ringbus", "4000 links", "busy", 50, "ns a poll"),
    RATIO_AT_MOST("services", "ringbus", "2000 services", "busy", 1.1, "x 1 service"),
    AT_MOST("open", "ringbus", "open", "sleep", 1000, "us"),
    AT_MOST("open", "ringbus", "introduce", "sleep", 1000, "us"),
    AT_MOST("death", "ringbus", "p50", "sleep", 1000, "us"),
    AT_MOST("death", "ringbus", "worst", "sleep", 10000, "us"),
    AT_MOST("daemon-idle", "ringbusd", "CPU", "sleep", 0.5, "% of a core"),
    AT_MOST("daemon-idle", "ringbusd", "memory", "sleep", 64, "MiB"),
    AT_MOST("link-memory", "ringbus", "descriptors", "busy", 3, "a side"),
    AT_MOST("link-memory", "ringbus", "mappings", "busy", 3, "a side"),
    AT_MOST("link-memory", "ringbus", "resident", "busy", 24, "KiB a side"),
    RATIO_AT_MOST("hosts-round-trip", "ringbus-hosts", "64 B", "sleep", 1.3, "x bare TLS"),
    AT_LEAST("hosts-one-way", "ringbus-hosts", "64 B", "sleep", 1, 1, "M/s"),
    RATIO_AT_LEAST("hosts-one-way", "ringbus-hosts", "64 KiB", "sleep", 0.8, "x bare TLS"),
    AT_MOST("syscalls", "ringbus", "48 B", "busy", 0, "a message"),
};
const unsigned bench_bar_count = sizeof bench_bars / sizeof bench_bars[0];

const struct bench_bar *bench_bar_find(const struct bench_figure *figure)
{
    for (unsigned i = 0; i < bench_bar_count; i++) {
        const struct bench_bar *bar = &bench_bars[i];
        if (strcmp(bar->workload, figure->workload) == 0 &&
            strcmp(bar->contender, figure->contender) == 0 &&
            strcmp(bar->param, figure->param) == 0 && strcmp(bar->mode, figure->mode) == 0) {
            return bar;
        }
    }
    return NULL;
}

double bench_bar_bound(const struct bench_bar *bar, const struct bench_figure *figure)
{
    return strcmp(figure->regime, "far") == 0 ? bar->far : bar->near;
}

bool bench_bar_met(const struct bench_bar *bar, const struct bench_figure *figure)
{
    const double bound = bench_bar_bound(bar, figure);
    const double got = bar->ratio ? figure->ratio : figure->value;
    return bar->at_least ? got >= bound : got <= bound;
}
