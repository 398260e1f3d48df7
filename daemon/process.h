/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_PROCESS_H
#define RINGBUS_DAEMON_PROCESS_H
/* daemon/process.h - what tells one process from a later one with the same number. */
#include "shm/base.h"

/** When a process began, in clock ticks since boot, never 0. 0: there is none of that number. */
uint64_t rbi_process_started(uint32_t pid);

#endif
