/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/main.c - ./dev bench [NAME...]: reads the options, starts ringbusd, runs the workloads
 * that were named or all of them, ends ringbusd.
 */
#include "bench/harness.h"
#include "bench/run.h"
#include "bench/stop.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

static struct bench_run run;

static void usage(FILE *out)
{
    (void)fprintf(out,
                  "usage: bench --ringbusd PROGRAM --config FILE [NAME...] [--quick] [--smoke]\n"
                  "             [--seconds N] [--peers all|none|LIST] [--json FILE]\n"
                  "             [--results FOLDER] [--scripts FOLDER] [--commit TEXT] [--list]\n");
}

static void list(void)
{
    (void)printf("workloads:\n");
    for (unsigned i = 0; bench_workloads[i] != NULL; i++) {
        (void)printf("  %-18s %s%s\n", bench_workloads[i]->name, bench_workloads[i]->text,
                     bench_workloads[i]->quick ? " (quick)" : "");
    }
    (void)printf("contenders:\n");
    for (unsigned i = 0; bench_contenders[i] != NULL; i++) {
        const struct bench_contender *c = bench_contenders[i];
        (void)printf("  %-18s %s%s%s\n", c->name, c->text,
                     c->package[0] != '\0' ? "; package " : "", c->package);
    }
}

static bool known(const char *name)
{
    for (unsigned i = 0; bench_workloads[i] != NULL; i++) {
        if (strcmp(bench_workloads[i]->name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* A peer that was asked for by name takes part, or the run does not begin. */
static bool peers_known(const char *list)
{
    if (strcmp(list, "all") == 0 || strcmp(list, "none") == 0) {
        return true;
    }
    for (size_t length = 0; *list != '\0'; list += length + (list[length] == ',' ? 1 : 0)) {
        char name[32];
        length = strcspn(list, ",");
        (void)snprintf(name, sizeof name, "%.*s", (int)length, list);
        if (bench_contender_find(name) == NULL) {
            (void)fprintf(stderr,
                          "bench: no peer %s, or its packages are not there; --list names "
                          "those that are\n",
                          name);
            return false;
        }
    }
    return true;
}

/* 0 run, 1 done, 2 wrong. */
static int read_options(int argc, char **argv, struct bench_options *o)
{
    static const struct option options[] = {{"ringbusd", required_argument, NULL, 'd'},
                                            {"config", required_argument, NULL, 'c'},
                                            {"quick", no_argument, NULL, 'q'},
                                            {"smoke", no_argument, NULL, 's'},
                                            {"seconds", required_argument, NULL, 't'},
                                            {"peers", required_argument, NULL, 'p'},
                                            {"json", required_argument, NULL, 'j'},
                                            {"results", required_argument, NULL, 'r'},
                                            {"scripts", required_argument, NULL, 'x'},
                                            {"commit", required_argument, NULL, 'g'},
                                            {"list", no_argument, NULL, 'l'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'd':
            o->ringbusd = optarg;
            break;
        case 'c':
            o->config = optarg;
            break;
        case 'q':
            o->quick = true;
            break;
        case 's':
            o->smoke = true;
            break;
        case 't':
            o->seconds = strtod(optarg, NULL);
            break;
        case 'p':
            o->peers = optarg;
            break;
        case 'j':
            o->json_path = optarg;
            break;
        case 'r':
            o->results = optarg;
            break;
        case 'x':
            o->scripts = optarg;
            break;
        case 'g':
            o->commit = optarg;
            break;
        case 'l':
            list();
            return 1;
        case 'h':
            usage(stdout);
            return 1;
        default:
            return 2;
        }
    }
    for (int i = optind; i < argc; i++) {
        if (!known(argv[i]) || o->name_count == BENCH_NAMES_MAX) {
            (void)fprintf(stderr, "bench: no workload %s; --list names them\n", argv[i]);
            return 2;
        }
        o->names[o->name_count++] = argv[i];
    }
    return o->ringbusd != NULL && peers_known(o->peers) ? 0 : 2;
}

static bool wanted(const struct bench_workload *workload)
{
    const struct bench_options *o = &run.options;
    for (unsigned i = 0; i < o->name_count; i++) {
        if (strcmp(o->names[i], workload->name) == 0) {
            return true;
        }
    }
    return o->name_count == 0 && (!(o->quick || o->smoke) || workload->quick);
}

static void describe_machine(void)
{
    char line[256];
    struct utsname name;
    FILE *in = fopen("/proc/cpuinfo", "r");
    (void)snprintf(run.machine, sizeof run.machine, "unknown processor");
    while (in != NULL && fgets(line, sizeof line, in) != NULL) {
        const char *text = strstr(line, ": ");
        if (strncmp(line, "model name", 10) == 0 && text != NULL) {
            line[strcspn(line, "\n\"\\")] = '\0';
            (void)snprintf(run.machine, sizeof run.machine, "%.60s, %ld cores", text + 2,
                           sysconf(_SC_NPROCESSORS_ONLN));
            break;
        }
    }
    if (in != NULL) {
        (void)fclose(in);
    }
    if (uname(&name) == 0) {
        (void)snprintf(run.kernel, sizeof run.kernel, "%.60s", name.release);
    }
}

/* A hundred thousand endpoints take the daemon four descriptors each; root may raise the limit. */
static void allow_descriptors(void)
{
    const rlim_t wanted = 524288;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        const struct rlimit more = {.rlim_cur = wanted, .rlim_max = wanted};
        if (limit.rlim_max >= wanted || setrlimit(RLIMIT_NOFILE, &more) != 0) {
            limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
            (void)setrlimit(RLIMIT_NOFILE, &limit);
        }
    }
}

static int run_all(void)
{
    for (unsigned i = 0; bench_workloads[i] != NULL && !bench_stopping(); i++) {
        const struct bench_workload *workload = bench_workloads[i];
        if (!wanted(workload)) {
            continue;
        }
        bench_run_heading(workload);
        const uint64_t start = bench_now_ns();
        run.regime = "all";
        if (workload->run(&run, workload) != 0) {
            (void)printf("  %s FAILED\n", workload->name);
            run.failures++;
        }
        (void)printf("  %.1f s\n", (double)(bench_now_ns() - start) / 1e9);
    }
    (void)printf("\n%u figures, %u bars SHORT, %u failures, %u failures of peers\n",
                 run.figure_count, run.shorts, run.failures, run.peer_failures);
    if (bench_stopping()) {
        (void)fprintf(stderr, "bench: stopped\n");
        return 1;
    }
    if (run.options.results != NULL && bench_report_write(&run) != 0) {
        return 1;
    }
    return run.failures == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct bench_daemon daemon = {0};
    run.options.peers = "all";
    run.options.commit = "unknown";
    const int r = read_options(argc, argv, &run.options);
    if (r != 0) {
        if (r == 2) {
            usage(stderr);
        }
        return r == 1 ? 0 : 2;
    }
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
        (void)fprintf(stderr, "bench: two cores are needed\n");
        return 77;
    }
    allow_descriptors();
    describe_machine();
    bench_stop_on_signals();
    if (run.options.json_path != NULL && (run.json = fopen(run.options.json_path, "w")) == NULL) {
        perror(run.options.json_path);
        return 2;
    }
    if (bench_daemon_start_with(&daemon, run.options.ringbusd, run.options.config) != 0) {
        return 1;
    }
    run.daemon = daemon.pid;
    (void)snprintf(run.directory, sizeof run.directory, "%s", daemon.directory);
    (void)snprintf(run.bus_socket, sizeof run.bus_socket, "%s", daemon.socket);
    const int failed = run_all();
    bench_daemon_stop(&daemon);
    if (run.json != NULL) {
        (void)fclose(run.json);
    }
    return failed;
}
