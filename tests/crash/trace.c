/* SPDX-License-Identifier: Apache-2.0 */
#include "crash/trace.h"

#include "support/machine.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define MARK_BEGIN SIGUSR1
#define MARK_END   SIGUSR2

/* TRACESYSGOOD: tells a stop at a system call from a step. */
#define CALL_STOP (SIGTRAP | 0x80)

void trace_markers_init(void)
{
    (void)signal(MARK_BEGIN, SIG_IGN);
    (void)signal(MARK_END, SIG_IGN);
}

void trace_mark_begin(void)
{
    (void)kill(getpid(), MARK_BEGIN);
}

void trace_mark_end(void)
{
    (void)kill(getpid(), MARK_END);
}

int trace_attach(struct trace *trace, pid_t pid)
{
    trace->pid = pid;
    trace->status = 0;
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL;
    return ptrace(PTRACE_SEIZE, pid, NULL, (void *)(uintptr_t)options) == 0 ? 0 : -1;
}

int trace_interrupt(struct trace *trace)
{
    if (ptrace(PTRACE_INTERRUPT, trace->pid, NULL, NULL) != 0) {
        return -1;
    }
    return trace_wait(trace, true) == TRACE_STEPPED ? 0 : -1;
}

int trace_detach(struct trace *trace)
{
    return ptrace(PTRACE_DETACH, trace->pid, NULL, NULL) == 0 ? 0 : -1;
}

int trace_resume(struct trace *trace, enum trace_how how)
{
    /* Indexed by enum trace_how. ptrace() of glibc wants its own enumeration. */
    static const enum __ptrace_request requests[] = {PTRACE_CONT, PTRACE_SINGLESTEP,
                                                     PTRACE_SYSCALL};
    const long r = ptrace(requests[how], trace->pid, NULL, NULL);
    return r == 0 ? 0 : -1;
}

/** @return what the status says, TRACE_GOES_ON: a signal that nobody here sends */
static enum trace_stop stop_of(int status)
{
    if (!WIFSTOPPED(status)) {
        return TRACE_EXITED;
    }
    switch (WSTOPSIG(status)) {
    case MARK_BEGIN:
        return TRACE_BEGIN;
    case MARK_END:
        return TRACE_END;
    case SIGTRAP:
    case CALL_STOP:
        return TRACE_STEPPED;
    default:
        return TRACE_GOES_ON;
    }
}

enum trace_stop trace_wait(struct trace *trace, bool hang)
{
    for (;;) {
        const pid_t pid = waitpid(trace->pid, &trace->status, __WALL | (hang ? 0 : WNOHANG));
        if (pid < 0 && errno == EINTR) {
            continue;
        }
        if (pid <= 0) {
            return pid == 0 ? TRACE_GOES_ON : TRACE_EXITED;
        }
        const enum trace_stop stop = stop_of(trace->status);
        if (stop != TRACE_GOES_ON) {
            return stop;
        }
        /* Let it do what it does: an error that ends the process is seen as its end. */
        (void)ptrace(PTRACE_CONT, trace->pid, NULL, (void *)(uintptr_t)WSTOPSIG(trace->status));
    }
}

void trace_kill(struct trace *trace)
{
    (void)kill(trace->pid, SIGKILL);
    while (trace_wait(trace, true) != TRACE_EXITED) {
    }
}

int trace_leave_stopped(struct trace *trace, bool asleep)
{
    /* Pending before it is let go: it takes the signal before the next instruction. */
    if (kill(trace->pid, SIGSTOP) != 0) {
        return -1;
    }
    long forwarded = 0;
    if (asleep) {
        /* The signal ends the step: what the tracer sees of it is handed on. */
        forwarded = SIGSTOP;
        while (waitpid(trace->pid, &trace->status, __WALL) < 0 && errno == EINTR) {
        }
        if (!WIFSTOPPED(trace->status)) {
            return -1;
        }
        if (WSTOPSIG(trace->status) != SIGSTOP) {
            forwarded = 0; /* it had woken: the signal is still to come */
        }
    }
    return ptrace(PTRACE_DETACH, trace->pid, NULL, (void *)(uintptr_t)forwarded) == 0 ? 0 : -1;
}

bool trace_sleeps(const struct trace *trace)
{
    return machine_state(trace->pid) == 'S';
}
