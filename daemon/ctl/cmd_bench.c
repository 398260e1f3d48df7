/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench: what this bus does on this machine. This process forks the two sides, sleeps while
 * they measure, ends them when it is told to, and reports; it is not an endpoint itself.
 */
#include "daemon/ctl/bench.h"
#include "daemon/ctl/control.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATH_DEFAULT "/Bench/local/host/w0/g0"
/* A cluster of its own: no other service's instances are there, nobody sends to it. */
#define CLUSTER "ringbusctl"
/* For a side to leave by itself, once it is told to. */
#define LEAVE_NS UINT64_C(10000000000)
/* Beyond this a run that still moves is on a machine that has no time for it. */
#define PATIENCE_NS UINT64_C(60000000000)

/* ---- what is wanted ---------------------------------------------------------------------- */

static int path_check(const struct rbi_ctl_args *args, const char *path)
{
    unsigned elements = 0;
    for (const char *c = path; *c != '\0'; c++) {
        elements += *c == '/' ? 1 : 0;
    }
    if (elements != 5) {
        return rbi_ctl_fail(args, RBI_CTL_USAGE,
                            "--path: expected 5 elements as in " PATH_DEFAULT
                            ", found '%s'; cluster and instances are made below it",
                            path);
    }
    return rbi_ctl_prefix_check(args, path);
}

static int plan_make(const struct rbi_ctl_args *args, struct rbi_bench_plan *plan)
{
    const unsigned only = args->given & (RBI_CTL_BUSY | RBI_CTL_SLEEP);
    const char *path = args->path != NULL ? args->path : PATH_DEFAULT;
    plan->args = args;
    int r = path_check(args, path);
    if (r == RBI_CTL_OK) {
        r = rbi_bench_cpus(args, plan->cpus);
    }
    if (r != RBI_CTL_OK) {
        return r;
    }
    if (only == (RBI_CTL_BUSY | RBI_CTL_SLEEP)) {
        return rbi_ctl_fail(args, RBI_CTL_USAGE,
                            "--busy and --sleep exclude each other; without "
                            "either, both are measured");
    }
    plan->together = plan->cpus[0] == plan->cpus[1];
    if (plan->together && only == RBI_CTL_BUSY) {
        return rbi_ctl_fail(args, RBI_CTL_USAGE,
                            "--busy needs two cores: on core %d alone each side would wait for "
                            "the other's time slice to end",
                            plan->cpus[0]);
    }
    plan->modes[RBI_BENCH_BUSY] = only != RBI_CTL_SLEEP && !plan->together;
    plan->modes[RBI_BENCH_SLEEP] = only != RBI_CTL_BUSY;
    int length = snprintf(plan->cluster, sizeof plan->cluster, "%s/" CLUSTER, path);
    if (length < 0 || (size_t)length >= sizeof plan->cluster) {
        return rbi_ctl_fail(args, RBI_CTL_USAGE, "--path: '%s' is too long", path);
    }
    return RBI_CTL_OK;
}

static int on_status(void *context, unsigned type, const union rbi_wire_body *body, int fd)
{
    struct rbi_bench_daemon *daemon = context;
    const struct rbi_wire_row_status *row = &body->row_status;
    (void)fd;
    if (type != RBI_WIRE_ROW_STATUS) {
        return RBI_CTL_OK;
    }
    if (strcmp(row->name.bytes, "version") == 0) {
        snprintf(daemon->version, sizeof daemon->version, "%s", row->text.bytes);
    } else if (strcmp(row->name.bytes, "socket") == 0) {
        snprintf(daemon->socket, sizeof daemon->socket, "%s", row->text.bytes);
    } else if (strcmp(row->name.bytes, "config") == 0) {
        snprintf(daemon->config, sizeof daemon->config, "%s", row->text.bytes);
    }
    return RBI_CTL_OK;
}

static int daemon_ask(const struct rbi_ctl_args *args, struct rbi_bench_daemon *daemon)
{
    struct rbi_ctl_control control;
    int r = rbi_ctl_control_init(&control, args);
    if (r == RBI_CTL_OK) {
        r = rbi_ctl_control_query(&control, RBI_QUERY_STATUS, "", on_status, daemon);
        rbi_ctl_control_deinit(&control);
    }
    return r;
}

/* ---- the sides --------------------------------------------------------------------------- */

static _Atomic(uint32_t) *signal_stop; /* what the handler of a side sets */

/* The terminal tells all three at once; a side closes its endpoint first. */
static void on_signal(int number)
{
    (void)number;
    atomic_store(signal_stop, 1);
}

struct crew {
    const struct rbi_bench_plan *plan;
    struct rbi_bench_page *page;
    pid_t sides[2]; /* 0: none, or reaped */
    uint64_t own_ns;
    int interrupted; /* by this signal */
    bool killed;     /* a side that did not leave */
    char death[64];  /* how a side died, else "": says more than what the other one saw of it */
    sigset_t signals;
    sigset_t before;
};

static _Noreturn void side_main(const struct crew *crew, int number, pid_t parent)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigemptyset(&action.sa_mask);
    signal_stop = &crew->page->lines.stop;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    pthread_sigmask(SIG_SETMASK, &crew->before, NULL);
    /* Nobody would reap or stop an orphan; the daemon sees its death and cleans up. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent) {
        rbi_bench_side_run(crew->plan, crew->page, number);
    }
    _exit(0);
}

static int crew_start(struct crew *crew)
{
    const pid_t parent = getpid();
    (void)fflush(NULL);
    for (int i = 0; i < 2; i++) {
        const pid_t pid = fork();
        if (pid == 0) {
            side_main(crew, i, parent);
        }
        if (pid < 0) {
            rbi_bench_fail(crew->page, RBI_CTL_FAILED, "cannot start a process: %s",
                           strerror(errno)); /* NOLINT(concurrency-mt-unsafe): one thread */
            return RBI_CTL_FAILED;
        }
        crew->sides[i] = pid;
    }
    return RBI_CTL_OK;
}

static uint64_t cpu_ns(const struct rusage *usage)
{
    return ((uint64_t)usage->ru_utime.tv_sec + (uint64_t)usage->ru_stime.tv_sec) *
               UINT64_C(1000000000) +
           ((uint64_t)usage->ru_utime.tv_usec + (uint64_t)usage->ru_stime.tv_usec) * 1000;
}

/* @return sides that still run */
static unsigned crew_reap(struct crew *crew)
{
    unsigned left = 0;
    for (int i = 0; i < 2; i++) {
        int status = 0;
        struct rusage usage;
        if (crew->sides[i] == 0) {
            continue;
        }
        if (wait4(crew->sides[i], &status, WNOHANG, &usage) != crew->sides[i]) {
            left++;
            continue;
        }
        crew->sides[i] = 0;
        crew->own_ns += cpu_ns(&usage);
        if (WIFSIGNALED(status) && !crew->killed) {
            snprintf(crew->death, sizeof crew->death, "side %d was ended by signal %d", i,
                     WTERMSIG(status));
        } else if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
            snprintf(crew->death, sizeof crew->death, "side %d ended with status %d", i,
                     WEXITSTATUS(status));
        }
        if (crew->death[0] != '\0') {
            rbi_bench_fail(crew->page, RBI_CTL_FAILED, "%s", crew->death);
        }
    }
    return left;
}

static void crew_kill(struct crew *crew)
{
    crew->killed = true;
    for (int i = 0; i < 2; i++) {
        if (crew->sides[i] > 0) {
            (void)kill(crew->sides[i], SIGKILL);
        }
    }
}

/* Until both sides are gone. */
static void crew_watch(struct crew *crew)
{
    const struct timespec nap = {.tv_nsec = 200000000};
    const uint64_t patience_ns = PATIENCE_NS + crew->plan->args->seconds * UINT64_C(4000000000) +
                                 crew->plan->args->timeout_ms * UINT64_C(4000000);
    const uint64_t end_ns = rbi_ctl_now_ns() + patience_ns;
    uint64_t kill_ns = 0;
    while (crew_reap(crew) > 0) {
        const int number = sigtimedwait(&crew->signals, NULL, &nap);
        const uint64_t now_ns = rbi_ctl_now_ns();
        if (number > 0 && number != SIGCHLD) {
            kill_ns = crew->interrupted != 0 ? 1 : kill_ns; /* a second one: at once */
            crew->interrupted = number;
            atomic_store(&crew->page->lines.stop, 1);
        }
        if (now_ns > end_ns) {
            rbi_bench_fail(crew->page, RBI_CTL_TIMEOUT, "this machine had no time to measure");
        }
        if (kill_ns == 0 && atomic_load(&crew->page->lines.stop) != 0) {
            kill_ns = now_ns + LEAVE_NS;
        }
        if (kill_ns != 0 && now_ns > kill_ns) {
            crew_kill(crew);
        }
    }
}

static void crew_signals(struct crew *crew)
{
    struct sigaction hangup;
    sigemptyset(&crew->signals);
    sigaddset(&crew->signals, SIGINT);
    sigaddset(&crew->signals, SIGTERM);
    sigaddset(&crew->signals, SIGCHLD);
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) {
        sigaddset(&crew->signals, SIGHUP); /* not under nohup */
    }
    (void)signal(SIGCHLD, SIG_DFL); /* ignored children would leave no status */
    pthread_sigmask(SIG_BLOCK, &crew->signals, &crew->before);
}

/* ---- the end ----------------------------------------------------------------------------- */

/* The daemon's sentence names the rule; here is what to do about it. */
static const char *way_out(int code, const char *text)
{
    if (code != RBI_CTL_DENIED) {
        return "";
    }
    if (strstr(text, "quota.") != NULL) {
        return "; raise it in the daemon's configuration and reload, or end other endpoints of "
               "this user";
    }
    return "; --path chooses where the two endpoints register";
}

static int outcome(const struct crew *crew, const struct rbi_bench_daemon *daemon)
{
    const struct rbi_ctl_args *args = crew->plan->args;
    struct rbi_bench_page *page = crew->page;
    if (crew->death[0] != '\0') {
        return rbi_ctl_fail(args, RBI_CTL_FAILED, "%s", crew->death);
    }
    if (page->fail_code != RBI_CTL_OK) {
        const bool quota = page->fail_code == RBI_CTL_DENIED;
        return rbi_ctl_fail(args, page->fail_code, "%s%s%s%s%s", page->fail_text,
                            way_out(page->fail_code, page->fail_text), quota ? " (" : "",
                            quota ? daemon->config : "", quota ? " is its configuration)" : "");
    }
    if (crew->interrupted != 0 || atomic_load(&page->lines.stop) != 0) {
        return rbi_ctl_fail(args, RBI_CTL_FAILED, "interrupted");
    }
    return RBI_CTL_OK;
}

static int measure(const struct rbi_bench_plan *plan,
                   struct rbi_bench_page *page,
                   const struct rbi_bench_daemon *daemon)
{
    struct crew crew = {.plan = plan, .page = page};
    struct rbi_bench_load before;
    struct rbi_bench_load after;
    crew_signals(&crew);
    rbi_bench_load_read(plan->cpus, &before);
    (void)crew_start(&crew);
    crew_watch(&crew);
    rbi_bench_load_read(plan->cpus, &after);
    pthread_sigmask(SIG_SETMASK, &crew.before, NULL);
    int r = outcome(&crew, daemon);
    if (r == RBI_CTL_OK) {
        const struct rbi_bench_quiet quiet = rbi_bench_load_between(&before, &after, crew.own_ns);
        rbi_bench_report(plan, page, daemon, &quiet);
    }
    return r;
}

int rbi_ctl_bench(const struct rbi_ctl_args *args)
{
    struct rbi_bench_plan plan = {0};
    struct rbi_bench_daemon daemon = {0};
    int r = plan_make(args, &plan);
    if (r == RBI_CTL_OK) {
        r = daemon_ask(args, &daemon);
    }
    if (r != RBI_CTL_OK) {
        return r;
    }
    struct rbi_bench_page *page =
        mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return rbi_ctl_fail(args, RBI_CTL_FAILED, "not enough memory");
    }
    r = measure(&plan, page, &daemon);
    munmap(page, sizeof *page);
    return r;
}
