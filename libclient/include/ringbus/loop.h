/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LOOP_H
#define RINGBUS_LOOP_H
/* ringbus/loop.h - polling and waiting. */
#include <ringbus/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Dispatches what has arrived: messages, events, replies, timeouts. Never waits.
 *
 * @param max  messages at most, 1 to 1000000
 * @return messages handled (0: nothing was there), or
 * @retval RINGBUS_E_BUSY      inside a callback: return from it first
 * @retval RINGBUS_E_ARGUMENT  @p max is out of its range
 * Cost: no system call in busy mode, unless nothing comes and a peer shares our core: then
 * sched_yield() now and then. Else one now and then for the control socket.
 */
RINGBUS_API int ringbus_poll(struct ringbus *bus, int max);

/**
 * Waits until ringbus_poll() has something to do, a full lane that refused a send has
 * room again or a chunk has come back that one was refused for, or ringbus_wake() was called.
 *
 * @param timeout_ms  0 looks only, < 0 without limit
 * @retval 1 something may be there
 * @retval 0 the time is over
 * @retval RINGBUS_E_BUSY inside a callback: return from it first
 */
RINGBUS_API int ringbus_wait(struct ringbus *bus, int timeout_ms);

/**
 * "I am working": for handlers that take longer than peers wait for a sign of life.
 *
 * PINGs are answered by ringbus_poll(), and by nothing else: a process that lives but does not
 * poll is called down by its peers after their bound (RINGBUS_REASON_SILENT, with silent_ms),
 * as one that hangs. A handler that works for long calls this now and then, at least twice in
 * each ping interval of its peers. Nothing is dispatched. Allowed inside callbacks and out.
 *
 * Cost: a look at the clock, no system call; twice in an interval one record for each link, and
 * one system call for each peer that sleeps. A peer on whose lane a claim is open hears nothing.
 * @retval 0
 */
RINGBUS_API int ringbus_alive(struct ringbus *bus);

/** Ends a ringbus_wait(), now or the next one. Any thread; async-signal-safe; one system call. */
RINGBUS_API int ringbus_wake(struct ringbus *bus);

/**
 * Descriptor for an event loop of the application's own: readable (level-triggered)
 * when ringbus_poll() should be called. Stays the handle's. After it was asked for,
 * each ringbus_poll() that finds nothing prepares for sleep by itself; call poll once
 * before the first wait.
 */
RINGBUS_API int ringbus_fd(struct ringbus *bus);

#ifdef __cplusplus
}
#endif

#endif
