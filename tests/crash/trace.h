/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_CRASH_TRACE_H
#define RINGBUS_TESTS_CRASH_TRACE_H
/*
 * A process under ptrace: runs to a marker, then goes on one instruction, or one boundary
 * of a system call, at a time, and can be ended or stopped between any two of them.
 *
 * A marker is a signal that the process sends to itself; without a tracer it is ignored.
 * Functions return -1 with errno where the kernel refuses; one tracer thread.
 */
#include <stdbool.h>
#include <sys/types.h>

/** How far a step goes. */
enum trace_how {
    TRACE_RUN = 0,         /* to the next marker */
    TRACE_INSTRUCTION = 1, /* one machine instruction, a system call whole */
    TRACE_CALL = 2,        /* to the next entry to or exit from a system call */
};

/** What a traced process did last. */
enum trace_stop {
    TRACE_GOES_ON = 0, /* the step is not over */
    TRACE_STEPPED = 1,
    TRACE_BEGIN = 2, /* the marker of that name; stopped there */
    TRACE_END = 3,
    TRACE_EXITED = 4, /* ended and reaped: status as of waitpid() */
};

struct trace {
    pid_t pid;
    int status; /* last one of waitpid() */
};

/** In the traced process: both markers are ignored from now on, unless somebody traces. */
void trace_markers_init(void);
void trace_mark_begin(void);
void trace_mark_end(void);

/** @retval 0; -1 errno: EPERM where ptrace is not permitted */
int trace_attach(struct trace *trace, pid_t pid);
/** Stops a running process, between two instructions or in its system call; waits for that. */
int trace_interrupt(struct trace *trace);
/** Lets a stopped process go, as if nobody had traced it. */
int trace_detach(struct trace *trace);
/** Lets a stopped process go on. */
int trace_resume(struct trace *trace, enum trace_how how);
/** @param hang  waits for the stop; false: TRACE_GOES_ON when there is none yet */
enum trace_stop trace_wait(struct trace *trace, bool hang);
/** SIGKILL, and waits for its end. */
void trace_kill(struct trace *trace);
/**
 * Stops it as SIGSTOP does and lets go of it: it stays where it is until it gets SIGCONT.
 * @param asleep  the last step is not over: it sleeps in a system call, and is stopped there
 */
int trace_leave_stopped(struct trace *trace, bool asleep);
/** It sleeps in a system call: a step that is not over will not be, by itself. */
bool trace_sleeps(const struct trace *trace);

#endif
