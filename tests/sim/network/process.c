/* SPDX-License-Identifier: Apache-2.0 */
/* process.c - processes, the clock, and giving up the processor. */
#include "tests/sim/network/kernel.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define HEAP_BYTES        ((size_t)24 << 20)
#define KERNEL_HEAP_BYTES ((size_t)64 << 20)
/* Of virtual time, for each call. */
#define CALL_NS UINT64_C(300)

struct sim_kernel sim;

/* ---- randomness ------------------------------------------------------------------------- */

uint64_t sim_random(void)
{
    /* splitmix64 (Steele, Lea, Flood 2014) */
    uint64_t z = (sim.rng += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint32_t sim_below(uint32_t n)
{
    return (uint32_t)((sim_random() >> 32) * n >> 32);
}

bool sim_one_in(uint32_t n)
{
    return n != 0 && sim_below(n) == 0;
}

/* ---- the kernel as a whole ---------------------------------------------------------------- */

void sim_kernel_init(void)
{
    sim_heap_init(&sim.heap, KERNEL_HEAP_BYTES);
    for (unsigned i = 0; i < SIM_PROCESSES_MAX; i++) {
        sim_heap_init(&sim.processes[i].heap, HEAP_BYTES);
        sim.processes[i].fiber = sim_fiber_new();
        sim.processes[i].id = i;
    }
}

void sim_kernel_reset(uint64_t seed)
{
    for (unsigned i = 0; i < SIM_PROCESSES_MAX; i++) {
        struct sim_process *process = &sim.processes[i];
        if (process->state != SIM_ENDED) {
            sim_process_kill(process);
        }
        process->life = 0;
        process->stopped_ns = 0;
    }
    sim_heap_reset(&sim.heap);
    sim.now_ns = SIM_S; /* not 0, which means "never" here and there */
    sim.rng = seed;
    sim.rng = sim_random(); /* neighbours must not draw the same numbers, only shifted */
    sim.rng ^= sim_random() << 1;
    sim.steps = 0;
    sim.files = 0;
    sim.listener = NULL;
    sim.socket_inode = 0;
    sim.beside_inode = 0;
    sim.lock_inode = 0;
    sim.lock_holder = NULL;
    sim.inodes = 0;
}

void sim_log(const char *format, ...)
{
    if (!sim.verbose) {
        return;
    }
    va_list args;
    va_start(args, format);
    (void)fprintf(stderr, "%10.3f ms  %-8s ", (double)(sim.now_ns - SIM_S) / (double)SIM_MS,
                  sim.current != NULL ? sim.current->name : "-");
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    va_end(args);
}

void sim_unsupported(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)fprintf(stderr, "simulated kernel, in %s: ",
                  sim.current != NULL ? sim.current->name : "the scheduler");
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    va_end(args);
    abort();
}

/* ---- life of a process ------------------------------------------------------------------- */

static void process_ended(struct sim_process *process);

void sim_process_start(struct sim_process *process, void (*program)(void *), void *context)
{
    process->life++;
    process->state = SIM_RUNNABLE;
    process->paused_till_ns = 0;
    process->stopped_ns = 0;
    process->waits_count = 0;
    process->left_behind = 0;
    sim_heap_reset(&process->heap);
    process->program = program;
    process->context = context;
    sim_fiber_prepare(process->fiber, program, context);
}

void sim_process_kill(struct sim_process *process)
{
    process_ended(process);
}

/** Everything that the kernel holds for it goes, in the order of an exit: memory, files. */
static void process_ended(struct sim_process *process)
{
    process->state = SIM_ENDED;
    (void)sim_memory_unmap_all(process);
    for (unsigned fd = 0; fd < SIM_FDS_MAX; fd++) {
        if (process->fds[fd] != NULL) {
            sim_fd_close(process, fd);
        }
    }
    sim_heap_reset(&process->heap);
}

void sim_process_exit(void)
{
    struct sim_process *process = sim.current;
    process->left_behind = process->heap.live + process->mapping_count + process->fd_count;
    if (process->left_behind != 0) {
        sim_log("left behind: %u blocks, %u mappings, %u descriptors", process->heap.live,
                process->mapping_count, process->fd_count);
    }
    process_ended(process);
    sim_fiber_leave(process->fiber);
    sim_unsupported("a process runs after its exit");
}

void sim_process_pause(struct sim_process *process, uint64_t till_ns)
{
    process->paused_till_ns = till_ns;
}

bool sim_process_is_paused(const struct sim_process *process)
{
    return process->paused_till_ns > sim.now_ns;
}

/* ---- whose turn it is -------------------------------------------------------------------- */

static bool waited_for(const struct sim_process *process)
{
    for (unsigned i = 0; i < process->waits_count; i++) {
        const uint32_t wanted = (uint32_t)process->waits_events[i] | EPOLLHUP | EPOLLERR;
        if ((sim_file_ready(process->waits_for[i]) & wanted) != 0) {
            return true;
        }
    }
    return false;
}

bool sim_process_can_run(const struct sim_process *process)
{
    return process->state != SIM_ENDED && !sim_process_is_paused(process) &&
           (process->state == SIM_RUNNABLE || process->wake_ns <= sim.now_ns ||
            waited_for(process));
}

uint64_t sim_process_deadline_ns(const struct sim_process *process)
{
    if (process->state == SIM_ENDED) {
        return SIM_NEVER;
    }
    uint64_t at_ns = process->state == SIM_BLOCKED ? process->wake_ns : sim.now_ns;
    for (unsigned i = 0; process->state == SIM_BLOCKED && i < process->waits_count; i++) {
        const struct sim_file *file = process->waits_for[i];
        if (file->kind == SIM_EPOLL) {
            const uint64_t timer_ns = sim_epoll_deadline_ns(file);
            at_ns = timer_ns < at_ns ? timer_ns : at_ns;
        }
    }
    if (sim_process_is_paused(process) && at_ns < process->paused_till_ns) {
        at_ns = process->paused_till_ns;
    }
    return at_ns;
}

void sim_process_run(struct sim_process *process)
{
    if (process->paused_till_ns != 0) {
        process->paused_till_ns = 0;
        process->stopped_ns = sim.now_ns;
    }
    process->state = SIM_RUNNABLE;
    sim.current = process;
    sim_fiber_enter(process->fiber);
    sim.current = NULL;
}

void sim_yield(void)
{
    struct sim_process *process = sim.current;
    const int saved = errno;
    if (process != NULL) {
        sim_fiber_leave(process->fiber);
    }
    errno = saved;
}

void sim_call(void)
{
    sim.now_ns += CALL_NS;
    if (sim.preempt_one_in != 0 && sim_one_in(sim.preempt_one_in)) {
        sim_yield();
    }
}

void sim_block(struct sim_file *const *files, const short *events, unsigned count, uint64_t wake_ns)
{
    struct sim_process *process = sim.current;
    if (process == NULL || count > 4) {
        sim_unsupported("waiting for %u files", count);
    }
    for (unsigned i = 0; i < count; i++) {
        process->waits_for[i] = files[i];
        process->waits_events[i] = events[i];
    }
    process->waits_count = count;
    process->wake_ns = wake_ns;
    process->state = SIM_BLOCKED;
    sim_yield();
    process->waits_count = 0;
}
