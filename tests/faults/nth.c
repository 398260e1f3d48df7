/* SPDX-License-Identifier: Apache-2.0 */
#include "faults/nth.h"

#include "faults/errors.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
/* Places of the call's number and of its result among the registers of a stopped thread. */
#define AT_NUMBER offsetof(struct user_regs_struct, orig_rax)
#define AT_RESULT offsetof(struct user_regs_struct, rax)
#define KNOWN     true
#else
#define AT_NUMBER 0
#define AT_RESULT 0
#define KNOWN     false
#endif

/* TRACESYSGOOD: tells a stop at a system call from a signal. */
#define CALL_STOP (SIGTRAP | 0x80)

/* ---- the tracer ------------------------------------------------------------------------------ */

/* The thread that left the entry of a refused call and has not come to its exit; 0 none. */
static pid_t refused_tid;

static void poke(pid_t tid, size_t at, long value)
{
    (void)ptrace(PTRACE_POKEUSER, tid, (void *)(uintptr_t)at, (void *)(intptr_t)value);
}

/** Whether the call opens the path that arms. */
static bool is_start(const struct nth *nth, pid_t tid, const struct __ptrace_syscall_info *info)
{
    char path[sizeof nth->from] = "";
    if (nth->from[0] == '\0' || info->entry.nr != SYS_openat) {
        return false;
    }
    struct iovec here = {.iov_base = path, .iov_len = strlen(nth->from) + 1};
    struct iovec there = {.iov_base = (void *)(uintptr_t)info->entry.args[1],
                          .iov_len = here.iov_len};
    return process_vm_readv(tid, &here, 1, &there, 1, 0) == (ssize_t)here.iov_len &&
           strcmp(path, nth->from) == 0;
}

static void enter_call(struct nth *nth, pid_t tid, const struct __ptrace_syscall_info *info)
{
    const long call = (long)info->entry.nr;
    if (!nth->armed && nth->call < 0 && is_start(nth, tid, info)) {
        nth->armed = true;
    }
    if (!nth->armed || errors_of(call, info->entry.args, 0) == 0 || ++nth->calls != nth->n) {
        return;
    }
    nth->call = call;
    nth->error = errors_of(call, info->entry.args, nth->pick);
    if (nth->error != 0) {
        refused_tid = tid;
        poke(tid, AT_NUMBER, -1);
    }
}

static void at_call(struct nth *nth, pid_t tid)
{
    struct __ptrace_syscall_info info;
    memset(&info, 0, sizeof info);
    if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, (void *)sizeof info, &info) <= 0) {
        return;
    }
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
        enter_call(nth, tid, &info);
    } else if (tid == refused_tid) {
        refused_tid = 0;
        poke(tid, AT_RESULT, -(long)nth->error);
    }
}

_Noreturn static void trace(struct nth *nth, pid_t leader)
{
    int status = 0;
    for (;;) {
        const pid_t tid = waitpid(-1, &status, __WALL);
        if (tid < 0 && errno == EINTR) {
            continue;
        }
        if (tid < 0 || (tid == leader && !WIFSTOPPED(status))) {
            _exit(0);
        }
        if (!WIFSTOPPED(status)) {
            continue; /* a thread ended */
        }
        /* Stops of ptrace itself carry an event; other signals go where they were meant to go. */
        long signal = status >> 16 != 0 ? 0 : WSTOPSIG(status);
        if (signal == CALL_STOP) {
            at_call(nth, tid);
            signal = 0;
        }
        (void)ptrace(PTRACE_SYSCALL, tid, NULL, (void *)(intptr_t)signal);
    }
}

/** In the tracer: takes the process, in which the other end of @p ready is read. */
_Noreturn static void take(struct nth *nth, pid_t leader, int ready)
{
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
    int status = 0;
    const bool taken = ptrace(PTRACE_SEIZE, leader, NULL, (void *)(uintptr_t)options) == 0 &&
                       ptrace(PTRACE_INTERRUPT, leader, NULL, NULL) == 0 &&
                       waitpid(leader, &status, __WALL) == leader && WIFSTOPPED(status) &&
                       ptrace(PTRACE_SYSCALL, leader, NULL, NULL) == 0;
    if (!taken || write(ready, "", 1) != 1) {
        _exit(1);
    }
    /* Whatever ends when its last holder closes it must not be held here. */
    (void)close_range(STDERR_FILENO + 1, ~0U, 0);
    trace(nth, leader);
}

int nth_trace_me(struct nth *nth)
{
    int ready[2];
    char byte = 0;
    const pid_t leader = getpid();
    if (pipe(ready) != 0) {
        return -1;
    }
    /* Where a child may not trace its parent by itself. */
    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    const pid_t tracer = fork();
    if (tracer == 0) {
        (void)close(ready[0]);
        take(nth, leader, ready[1]);
    }
    (void)close(ready[1]);
    ssize_t n = 0;
    while (tracer > 0 && (n = read(ready[0], &byte, 1)) < 0 && errno == EINTR) {
    }
    (void)close(ready[0]);
    if (n != 1 && tracer > 0) {
        (void)waitpid(tracer, NULL, 0);
    }
    return n == 1 ? 0 : -1;
}

/* ---- what it is told ------------------------------------------------------------------------- */

struct nth *nth_new(void)
{
    struct nth *nth =
        mmap(NULL, sizeof *nth, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (nth == MAP_FAILED) {
        return NULL;
    }
    nth_set(nth, 0, 0);
    return nth;
}

bool nth_possible(void)
{
    int status = 0;
    struct nth *nth = KNOWN ? nth_new() : NULL;
    const pid_t pid = nth != NULL ? fork() : -1;
    if (pid == 0) {
        /* The refusal must be seen, not only permitted. */
        const bool traced = nth_trace_me(nth) == 0;
        nth_arm(nth, 1, 0);
        const bool refused = syscall(SYS_memfd_create, "nth", 0U) < 0 && errno == EMFILE;
        _exit(traced && refused && nth_disarm(nth) ? 0 : 1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

void nth_set(struct nth *nth, unsigned n, unsigned pick)
{
    nth->armed = false;
    nth->n = n;
    nth->pick = pick;
    nth->calls = 0;
    nth->call = -1;
    nth->error = 0;
}

void nth_arm(struct nth *nth, unsigned n, unsigned pick)
{
    nth_set(nth, n, pick);
    nth->armed = true;
}

bool nth_disarm(struct nth *nth)
{
    nth->armed = false;
    return nth->error != 0;
}

const char *nth_text(const struct nth *nth)
{
    static char text[96];
    if (nth->call < 0) {
        (void)snprintf(text, sizeof text, "nothing refused, %u calls", nth->calls);
    } else {
        (void)snprintf(text, sizeof text, "%s with %s, call %u", errors_call_name(nth->call),
                       nth->error != 0 ? strerrorname_np(nth->error) : "no error", nth->n);
    }
    return text;
}
