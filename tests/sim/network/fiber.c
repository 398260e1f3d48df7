/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fiber.c - stacks to switch between. A fiber that is forgotten in the middle is a killed
 * process: its stack is used again from the top. The first switch into a program goes through
 * ucontext; later ones through _setjmp() and _longjmp(), which ask no kernel for the signal
 * mask. AddressSanitizer has to be told of each.
 */
#include "tests/sim/network/kernel.h"

#include <setjmp.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#define STACK_BYTES ((size_t)512 << 10)

struct sim_fiber {
    ucontext_t context;
    jmp_buf at;
    bool started;
    void (*program)(void *);
    void *argument;
    char *stack;
    void *fake_stack;
};

static ucontext_t scheduler_context;
static jmp_buf scheduler_at;
static struct sim_fiber *entering;
#if defined(__SANITIZE_ADDRESS__)
static const void *scheduler_stack;
static size_t scheduler_stack_size;
static void *scheduler_fake;
#endif

struct sim_fiber *sim_fiber_new(void)
{
    struct sim_fiber *fiber = (calloc)(1, sizeof *fiber);
    char *stack = (mmap)(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fiber == NULL || stack == MAP_FAILED || mprotect(stack, 4096, PROT_NONE) != 0) {
        sim_unsupported("no memory for a stack");
    }
    fiber->stack = stack;
    return fiber;
}

void sim_fiber_prepare(struct sim_fiber *fiber, void (*program)(void *), void *context)
{
    fiber->started = false;
    fiber->program = program;
    fiber->argument = context;
    fiber->fake_stack = NULL;
#if defined(__SANITIZE_ADDRESS__)
    /* What a killed one left on its stack is no error of the next. */
    __asan_unpoison_memory_region(fiber->stack + 4096, STACK_BYTES - 4096);
#endif
}

static void main_of_fiber(void)
{
    struct sim_fiber *fiber = entering;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(NULL, &scheduler_stack, &scheduler_stack_size);
#endif
    fiber->program(fiber->argument);
    sim_unsupported("a program has returned");
}

void sim_fiber_enter(struct sim_fiber *fiber)
{
    entering = fiber;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&scheduler_fake, fiber->stack, STACK_BYTES);
#endif
    if (_setjmp(scheduler_at) == 0) {
        if (fiber->started) {
            _longjmp(fiber->at, 1);
        }
        fiber->started = true;
        (void)getcontext(&fiber->context);
        fiber->context.uc_stack.ss_sp = fiber->stack;
        fiber->context.uc_stack.ss_size = STACK_BYTES;
        fiber->context.uc_link = NULL;
        makecontext(&fiber->context, main_of_fiber, 0);
        (void)swapcontext(&scheduler_context, &fiber->context);
    }
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(scheduler_fake, NULL, NULL);
#endif
}

void sim_fiber_leave(struct sim_fiber *fiber)
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&fiber->fake_stack, scheduler_stack, scheduler_stack_size);
#endif
    if (_setjmp(fiber->at) == 0) {
        _longjmp(scheduler_at, 1);
    }
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fiber->fake_stack, &scheduler_stack, &scheduler_stack_size);
#endif
}
