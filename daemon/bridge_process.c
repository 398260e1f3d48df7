/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge_process.h"

#include "daemon/bridge_mark.h"
#include "daemon/centre_store.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/process.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM "ringbus-bridge"
/* Without a pidfd: as late as its end is known then. */
#define LOOK_NS (UINT64_C(100) * 1000 * 1000)

static void process_start(void *context);

/* ---- which program --------------------------------------------------------------------------- */

/** The program beside our own, where it is installed or built. */
static void process_find(char *out, size_t size)
{
    static const char *const places[] = {"/" PROGRAM, "/bridge/" PROGRAM, "/../bin/" PROGRAM};
    const char *given = getenv("RINGBUS_BRIDGE"); // NOLINT(concurrency-mt-unsafe): one thread
    char own[RBI_CONFIG_STRING_MAX + 1];
    if (given && given[0] != '\0') {
        (void)snprintf(out, size, "%s", given);
        return;
    }
    const ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);
    own[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(own, '/');
    if (slash) {
        *slash = '\0';
    }
    for (size_t i = 0; i < RBI_ARRAY_SIZE(places); i++) {
        (void)snprintf(out, size, "%s%s", own, places[i]);
        if (access(out, X_OK) == 0) {
            return;
        }
    }
    (void)snprintf(out, size, "%s%s", own, places[0]); /* for the message that it is not there */
}

/** Where it keeps what it knows of other hosts: beside what the daemon keeps. */
static void process_folder(const struct rbi_daemon *daemon, char *out, size_t size)
{
    static const char end[] = "version";
    char place[RBI_STORE_PREFIX_MAX + 1];
    rbi_store_place(daemon->config.daemon.state_dir, daemon->listener.path, place);
    const size_t length = strlen(place);
    const size_t cut = length >= sizeof(end) - 1 ? length - (sizeof(end) - 1) : length;
    (void)snprintf(out, size, "%.*sbridge", (int)cut, place);
}

/* ---- the child ------------------------------------------------------------------------------- */

/** Signals as they are for a program that was just started, and none of our descriptors. */
static int process_prepare(posix_spawnattr_t *attributes, posix_spawn_file_actions_t *actions)
{
    sigset_t none;
    sigset_t all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    int result = posix_spawnattr_setsigmask(attributes, &none);
    result = result ? result : posix_spawnattr_setsigdefault(attributes, &all);
    result = result ? result
                    : posix_spawnattr_setflags(attributes,
                                               POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    result =
        result ? result : posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
    return result ? result : posix_spawn_file_actions_addclosefrom_np(actions, STDERR_FILENO + 1);
}

/** @retval 0 @p pid is its number; -errno */
static int process_spawn(const char *program, char *const *arguments, pid_t *pid)
{
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    int result = posix_spawnattr_init(&attributes);
    if (result != 0) {
        return -result;
    }
    result = posix_spawn_file_actions_init(&actions);
    if (result == 0) {
        result = process_prepare(&attributes, &actions);
        result =
            result ? result : posix_spawn(pid, program, &actions, &attributes, arguments, environ);
        (void)posix_spawn_file_actions_destroy(&actions);
    }
    (void)posix_spawnattr_destroy(&attributes);
    return -result;
}

/* ---- its end --------------------------------------------------------------------------------- */

/** Of one that is not our child, nobody tells us how it ended. */
static void process_log_end(const struct rbi_bridge_process *process, int status, uint64_t lived_ns)
{
    char how[32] = "status=unknown";
    if (!process->adopted) {
        const bool killed = WIFSIGNALED(status);
        (void)snprintf(how, sizeof(how), "%s=%d", killed ? "signal" : "status",
                       killed ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    rbi_log(process->stopping ? RBI_LOG_INFO : RBI_LOG_ERROR, "bridge_ended",
            "pid=%d %s lived_ms=%" PRIu64 " asked=%s", (int)process->pid, how, lived_ns / 1000000,
            process->stopping ? "yes" : "no");
}

static void process_forget(struct rbi_daemon *daemon)
{
    struct rbi_bridge_process *process = &daemon->bridge;
    rbi_loop_remove(&process->source);
    if (process->pidfd >= 0) {
        (void)close(process->pidfd);
    }
    process->pidfd = -1;
    process->pid = 0;
    process->stopping = false;
    process->adopted = false;
    rbi_bridge_mark_remove(daemon->listener.path);
}

/** @return whether it has ended; @p status is set for a child */
static bool process_has_ended(const struct rbi_bridge_process *process, int *status)
{
    if (!process->adopted) {
        return waitpid(process->pid, status, WNOHANG) == process->pid;
    }
    struct pollfd ended = {.fd = process->pidfd, .events = POLLIN};
    return poll(&ended, 1, 0) == 1;
}

/** By its descriptor, where there is one: the number of one that is no child may be another's. */
static void process_signal(const struct rbi_bridge_process *process, int number)
{
    if (process->pidfd < 0 ||
        (syscall(SYS_pidfd_send_signal, process->pidfd, number, NULL, 0) < 0 &&
         !process->adopted)) {
        (void)kill(process->pid, number);
    }
}

static bool process_wanted(const struct rbi_daemon *daemon)
{
    return daemon->config.bridge.given && daemon->config.bridge.start && daemon->config_path;
}

/** After a failure, later each time; whoever was asked to end makes room for the next at once. */
static void process_start_later(struct rbi_daemon *daemon, uint64_t wait_ns)
{
    rbi_loop_timer_set(daemon->loop, &daemon->bridge.start_timer,
                       rbi_loop_now_ns(daemon->loop) + wait_ns, process_start, daemon);
}

static uint64_t process_back_off(struct rbi_bridge_process *process)
{
    const uint64_t wait_ns = process->backoff_ns ? process->backoff_ns : RBI_BRIDGE_PROCESS_MIN_NS;
    process->backoff_ns = rbi_min_u64(wait_ns * 2, RBI_BRIDGE_PROCESS_MAX_NS);
    return wait_ns;
}

/** @return whether it has ended */
static bool process_reap(struct rbi_daemon *daemon)
{
    struct rbi_bridge_process *process = &daemon->bridge;
    int status = 0;
    if (process->pid == 0 || !process_has_ended(process, &status)) {
        return false;
    }
    const uint64_t lived_ns = rbi_loop_now_ns(daemon->loop) - process->started_ns;
    const bool asked = process->stopping;
    process_log_end(process, status, lived_ns);
    rbi_loop_timer_cancel(daemon->loop, &process->kill_timer);
    rbi_loop_timer_cancel(daemon->loop, &process->look_timer);
    process_forget(daemon);
    if (lived_ns >= RBI_BRIDGE_PROCESS_GOOD_NS) {
        process->backoff_ns = 0;
    }
    if (!daemon->stopping && process_wanted(daemon)) {
        process_start_later(daemon, asked ? 0 : process_back_off(process));
    }
    return true;
}

static void process_ready(void *context, unsigned events)
{
    (void)events;
    (void)process_reap(context);
}

static void process_look(void *context)
{
    struct rbi_daemon *daemon = context;
    if (!process_reap(daemon) && daemon->bridge.pid != 0) {
        rbi_loop_timer_set(daemon->loop, &daemon->bridge.look_timer,
                           rbi_loop_now_ns(daemon->loop) + LOOK_NS, process_look, daemon);
    }
}

/* ---- taking over ----------------------------------------------------------------------------- */

/** @return whether the bridge of the daemon before lives, and is ours from now on */
static bool process_adopt(struct rbi_daemon *daemon, struct rbi_bridge_mark *mark)
{
    struct rbi_bridge_process *process = &daemon->bridge;
    if (!rbi_bridge_mark_read(daemon->listener.path, mark)) {
        return false;
    }
    const int pidfd = (int)syscall(SYS_pidfd_open, mark->pid, 0);
    /* Looked at behind it: what the descriptor is of began when it says. */
    if (pidfd < 0 || rbi_process_started((uint32_t)mark->pid) != mark->started ||
        rbi_loop_add(daemon->loop, &process->source, pidfd, RBI_LOOP_IN, process_ready, daemon) <
            0) {
        if (pidfd >= 0) {
            (void)close(pidfd);
        }
        return false;
    }
    process->pid = mark->pid;
    process->pidfd = pidfd;
    process->adopted = true;
    process->started_ns = rbi_loop_now_ns(daemon->loop);
    return true;
}

/* ---- its beginning --------------------------------------------------------------------------- */

static void process_watch(struct rbi_daemon *daemon)
{
    struct rbi_bridge_process *process = &daemon->bridge;
    process->pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    if (process->pidfd < 0 || rbi_loop_add(daemon->loop, &process->source, process->pidfd,
                                           RBI_LOOP_IN, process_ready, daemon) < 0) {
        process_look(daemon);
    }
}

static void process_start(void *context)
{
    struct rbi_daemon *daemon = context;
    struct rbi_bridge_process *process = &daemon->bridge;
    char program[RBI_CONFIG_STRING_MAX + sizeof("/bridge/" PROGRAM)];
    char folder[RBI_STORE_PREFIX_MAX + 8];
    pid_t pid = 0;
    if (process->pid != 0 || daemon->stopping || !process_wanted(daemon)) {
        return;
    }
    process_find(program, sizeof(program));
    process_folder(daemon, folder, sizeof(folder));
    const char *const given[] = {
        PROGRAM,    "--config", daemon->config_path, "--socket", daemon->listener.path,
        "--folder", folder,     "--child",           NULL};
    char *arguments[RBI_ARRAY_SIZE(given)]; /* not written to: posix_spawn() is older than const */
    memcpy(arguments, given, sizeof(given));
    const int result = process_spawn(program, arguments, &pid);
    process->started_ns = rbi_loop_now_ns(daemon->loop);
    if (result < 0) {
        rbi_log(RBI_LOG_ERROR, "bridge_not_started", "program=%s error=\"%s\"", program,
                rbi_log_errno(-result));
        process_start_later(daemon, process_back_off(process));
        return;
    }
    process->pid = pid;
    process->stopping = false;
    process->starts++;
    const struct rbi_bridge_mark mark = {.pid = pid,
                                         .started = rbi_process_started((uint32_t)pid),
                                         .fingerprint = rbi_bridge_mark_of(&daemon->config.bridge)};
    const int marked = rbi_bridge_mark_write(daemon->listener.path, &mark);
    if (marked < 0) {
        rbi_log(RBI_LOG_WARNING, "bridge_not_marked", "file=%s.child error=\"%s\"",
                daemon->listener.path, rbi_log_errno(-marked));
    }
    rbi_log(RBI_LOG_INFO, "bridge_spawned", "program=%s pid=%d starts=%" PRIu64, program, (int)pid,
            process->starts);
    process_watch(daemon);
}

/* ---- stopping -------------------------------------------------------------------------------- */

static void process_kill(void *context)
{
    struct rbi_daemon *daemon = context;
    if (daemon->bridge.pid != 0) {
        rbi_log(RBI_LOG_WARNING, "bridge_killed", "pid=%d why=\"it does not end\"",
                (int)daemon->bridge.pid);
        process_signal(&daemon->bridge, SIGKILL);
    }
}

/** Tells it to end; it is killed when it does not. */
static void process_ask_to_end(struct rbi_daemon *daemon)
{
    struct rbi_bridge_process *process = &daemon->bridge;
    rbi_loop_timer_cancel(daemon->loop, &process->start_timer);
    if (process->pid == 0 || process->stopping) {
        return;
    }
    process->stopping = true;
    process_signal(process, SIGTERM);
    rbi_loop_timer_set(daemon->loop, &process->kill_timer,
                       rbi_loop_now_ns(daemon->loop) + RBI_BRIDGE_PROCESS_STOP_NS, process_kill,
                       daemon);
}

/** Whether a bridge that runs cannot become what the configuration says by now. */
static bool process_is_another(const struct rbi_bridge_config *before,
                               const struct rbi_bridge_config *now)
{
    return rbi_bridge_mark_of(before) != rbi_bridge_mark_of(now);
}

void rbi_bridge_process_begin(struct rbi_daemon *daemon)
{
    struct rbi_bridge_mark mark = {.pid = 0};
    if (!process_adopt(daemon, &mark)) {
        rbi_bridge_process_follow(daemon, &daemon->config.bridge);
        return;
    }
    rbi_log(RBI_LOG_INFO, "bridge_adopted", "pid=%d", (int)mark.pid);
    if (!process_wanted(daemon) || mark.fingerprint != rbi_bridge_mark_of(&daemon->config.bridge)) {
        process_ask_to_end(daemon); /* what it is to be has changed meanwhile */
    } else {
        process_signal(&daemon->bridge, SIGHUP);
    }
}

void rbi_bridge_process_follow(struct rbi_daemon *daemon, const struct rbi_bridge_config *before)
{
    struct rbi_bridge_process *process = &daemon->bridge;
    if (!process_wanted(daemon) ||
        (process->pid != 0 && process_is_another(before, &daemon->config.bridge))) {
        process_ask_to_end(daemon); /* another is started behind it, if one is wanted */
    } else if (process->pid != 0) {
        process_signal(process, SIGHUP); /* also for files that it names */
    } else {
        process->backoff_ns = 0; /* whatever it was, it may be mended */
        process_start_later(daemon, 0);
    }
}

void rbi_bridge_process_stop(struct rbi_daemon *daemon)
{
    if (daemon->loop) {
        process_ask_to_end(daemon);
    }
}

void rbi_bridge_process_deinit(struct rbi_daemon *daemon)
{
    struct rbi_bridge_process *process = &daemon->bridge;
    const uint64_t step_ms = 5;
    uint64_t left_ms = RBI_BRIDGE_PROCESS_STOP_NS / 1000000;
    int status = 0;
    if (process->pid == 0) {
        return;
    }
    while (!process_has_ended(process, &status)) {
        if (left_ms < step_ms) {
            process_kill(daemon);
            left_ms =
                RBI_BRIDGE_PROCESS_STOP_NS / 1000000; /* it is a matter of the kernel by now */
        }
        (void)poll(NULL, 0, (int)step_ms);
        left_ms -= step_ms;
    }
    process_log_end(process, status, rbi_loop_now_ns(daemon->loop) - process->started_ns);
    process_forget(daemon);
}
