/* SPDX-License-Identifier: Apache-2.0 */
/* Which cores bench runs on, what machine they belong to, and who else wants them. */
#include "daemon/ctl/bench.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#define CPUS_MAX 1024U

/* ---- choosing ---------------------------------------------------------------------------- */

/* First word of a file of /sys that is a number; -1 when there is none. */
static long sys_number(int cpu, const char *name)
{
    char path[128];
    long value = -1;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, name);
    FILE *in = fopen(path, "re");
    if (in == NULL) {
        return -1;
    }
    char text[32];
    if (fgets(text, sizeof text, in) != NULL && sscanf(text, "%ld", &value) != 1) { /* NOLINT */
        value = -1;
    }
    fclose(in);
    return value;
}

/* Hardware threads of one core take turns at its units. */
static bool same_core(int a, int b)
{
    const long core = sys_number(a, "core_id");
    return core >= 0 && core == sys_number(b, "core_id") &&
           sys_number(a, "physical_package_id") == sys_number(b, "physical_package_id");
}

static int next_cpu(const cpu_set_t *set, int after)
{
    for (int cpu = after + 1; cpu < (int)CPUS_MAX; cpu++) {
        if (CPU_ISSET((size_t)cpu, set)) {
            return cpu;
        }
    }
    return -1;
}

static void cpus_choose(const cpu_set_t *set, int cpus[2])
{
    cpus[0] = next_cpu(set, -1);
    cpus[1] = next_cpu(set, cpus[0]);
    for (int cpu = cpus[1]; cpu >= 0; cpu = next_cpu(set, cpu)) {
        if (!same_core(cpus[0], cpu)) {
            cpus[1] = cpu;
            break;
        }
    }
    if (cpus[1] < 0) {
        cpus[1] = cpus[0];
    }
}

int rbi_bench_cpus(const struct rbi_ctl_args *args, int cpus[2])
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) == 0) {
        return rbi_ctl_fail(args, RBI_CTL_FAILED, "cannot ask which cores this process may use");
    }
    if ((args->given & RBI_CTL_CPUS) == 0) {
        cpus_choose(&set, cpus);
        return RBI_CTL_OK;
    }
    for (unsigned i = 0; i < 2; i++) {
        if (!CPU_ISSET(args->cpus[i], &set)) {
            return rbi_ctl_fail(args, RBI_CTL_USAGE,
                                "--cpus: this process may not use core %u, only %d cores that "
                                "taskset -p $$ shows",
                                args->cpus[i], CPU_COUNT(&set));
        }
        cpus[i] = (int)args->cpus[i];
    }
    return RBI_CTL_OK;
}

int rbi_bench_pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0 ? 0 : -errno;
}

/* ---- who else ---------------------------------------------------------------------------- */

/* user nice system idle iowait irq softirq steal; guests are in user already. */
#define STAT_FIELDS 8U

static bool stat_add(const char *line, int cpu, struct rbi_bench_load *load)
{
    int found = -1;
    uint64_t ticks[STAT_FIELDS];
    if (sscanf(line, /* NOLINT(cert-err34-c): the kernel's own numbers */
               "cpu%d %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
               " %" SCNu64 " %" SCNu64,
               &found, &ticks[0], &ticks[1], &ticks[2], &ticks[3], &ticks[4], &ticks[5], &ticks[6],
               &ticks[7]) != (int)STAT_FIELDS + 1 ||
        found != cpu) {
        return false;
    }
    for (unsigned i = 0; i < STAT_FIELDS; i++) {
        load->all += ticks[i];
    }
    load->busy += ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6];
    load->steal += ticks[7];
    return true;
}

void rbi_bench_load_read(const int cpus[2], struct rbi_bench_load *out)
{
    struct rbi_bench_load load = {0};
    const unsigned wanted = cpus[0] == cpus[1] ? 1 : 2;
    unsigned found = 0;
    char line[512];
    FILE *in = fopen("/proc/stat", "re");
    while (in != NULL && fgets(line, sizeof line, in) != NULL) {
        for (unsigned i = 0; i < wanted; i++) {
            found += stat_add(line, cpus[i], &load) ? 1 : 0;
        }
    }
    if (in != NULL) {
        fclose(in);
    }
    load.known = found == wanted;
    *out = load;
}

struct rbi_bench_quiet rbi_bench_load_between(const struct rbi_bench_load *before,
                                              const struct rbi_bench_load *after,
                                              uint64_t own_ns)
{
    struct rbi_bench_quiet quiet = {0};
    const long ticks_per_s = sysconf(_SC_CLK_TCK);
    if (!before->known || !after->known || after->all <= before->all || ticks_per_s <= 0) {
        return quiet;
    }
    const double all = (double)(after->all - before->all);
    const double own = (double)own_ns * (double)ticks_per_s / 1e9;
    const double others = (double)(after->busy - before->busy) - own;
    quiet.known = true;
    quiet.steal_percent = 100 * (double)(after->steal - before->steal) / all;
    quiet.others_percent = others > 0 ? 100 * others / all : 0;
    return quiet;
}

/* ---- what machine ------------------------------------------------------------------------ */

bool rbi_bench_cpu_name(char *buffer, size_t size)
{
    bool machine_virtual = false;
    char line[4096];
    FILE *in = fopen("/proc/cpuinfo", "re");
    buffer[0] = '\0';
    /* The first core stands for all of them. */
    while (in != NULL && fgets(line, sizeof line, in) != NULL && line[0] != '\n') {
        const char *value = strchr(line, ':');
        if (value == NULL) {
            continue;
        }
        value += strspn(value, ": ");
        if (strncmp(line, "model name", strlen("model name")) == 0) {
            snprintf(buffer, size, "%.*s", (int)strcspn(value, "\n"), value);
        } else if (strncmp(line, "flags", strlen("flags")) == 0) {
            machine_virtual = strstr(value, " hypervisor") != NULL;
        }
    }
    if (in != NULL) {
        fclose(in);
    }
    return machine_virtual;
}
