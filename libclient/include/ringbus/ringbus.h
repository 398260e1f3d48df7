/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_RINGBUS_H
#define RINGBUS_RINGBUS_H
/*
 * ringbus.h - the C API of ringbus, a shared-memory service bus for one Linux host.
 *
 * This is the one header to include. Which of its parts has what may change:
 *   base.h      what the other parts need: version, visibility, the handle
 *   error.h     the codes that calls return, and their sentences
 *   address.h   paths, addresses and keys
 *   message.h   a message, as it is received, and what may be said of one
 *   event.h     what on_event is told: links, instances, health, nodes
 *   open.h      life of a handle: options, opening, leaving, closing
 *   loop.h      polling and waiting
 *   target.h    the clusters that an endpoint speaks to
 *   directory.h who is there, and which keys are whose
 *   node.h      the tree of nodes
 *   health.h    telling how exchanges ended that are no requests
 *   send.h      sending: by copy, in parts, in place, by loan
 *   request.h   requests and their answers
 *   degrade.h   answers in the place of an instance
 *   keep.h      keeping what was received
 *   forward.h   standing for others: where a message began, sending it on
 *   explain.h   how a message would be routed, and why
 *   hook.h      whom messages go to, as the application says
 *   stats.h     the counters of an endpoint
 *
 * The shortest receiver: ringbus_open() with a path and an on_message callback, then
 * ringbus_wait() and ringbus_poll() in turn. The shortest sender: ringbus_open(),
 * ringbus_target(), wait for RINGBUS_EVENT_READY, ringbus_send().
 *
 * Threads. A handle is used by one thread at a time; ringbus_wake() alone may be
 * called from any thread and from signal handlers. Another thread may take a handle
 * over with the usual synchronisation (a mutex around the calls will do). Debug
 * builds notice two threads inside one handle: the second gets
 * RINGBUS_E_WRONG_THREAD. One process may open many handles.
 *
 * Calls inside callbacks. Everything is allowed except ringbus_poll(), ringbus_wait()
 * and ringbus_close(), which return RINGBUS_E_BUSY.
 *
 * fork. The child of a fork may not use an inherited handle: every call returns
 * RINGBUS_E_WRONG_PROCESS, costs one load to find out, and leaves the parent's stream
 * untouched. The child opens its own.
 *
 * Errors. Calls return 0 or a count on success and a negative enum ringbus_error
 * otherwise; ringbus_errmsg() has a sentence with names, limits and the way out.
 * Beside what is named at each, every call with a handle may return RINGBUS_E_ARGUMENT (no
 * handle), RINGBUS_E_WRONG_PROCESS and, in debug builds, RINGBUS_E_WRONG_THREAD: mistakes of
 * the program, to be mended there. docs/operating.md says what each code, event and reason
 * means to whoever runs the host.
 * Nothing that a peer, the daemon or the kernel does ends the process or raises a
 * signal.
 *
 * Cost. "No system call" holds while the peer is awake or polls busily; waking a
 * sleeping peer costs one.
 */
#include <ringbus/address.h>
#include <ringbus/base.h>
#include <ringbus/degrade.h>
#include <ringbus/directory.h>
#include <ringbus/error.h>
#include <ringbus/event.h>
#include <ringbus/explain.h>
#include <ringbus/forward.h>
#include <ringbus/health.h>
#include <ringbus/hook.h>
#include <ringbus/keep.h>
#include <ringbus/loop.h>
#include <ringbus/message.h>
#include <ringbus/node.h>
#include <ringbus/open.h>
#include <ringbus/request.h>
#include <ringbus/send.h>
#include <ringbus/stats.h>
#include <ringbus/target.h>

#endif
