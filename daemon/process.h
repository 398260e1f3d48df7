/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_PROCESS_H
#define RINGBUS_DAEMON_PROCESS_H
/*
 * daemon/process.h - what the kernel says of a client's process: what tells it from a later one
 * with the same number, the file that it runs, the control group that it is in.
 *
 * A number may be another process's by the time that it is looked up. What is told of a process
 * with a pidfd is its own: the number is not given away while it lives, and whether it still lives
 * is asked after the answer was read.
 */
#include "bus/cgroup.h"
#include "shm/base.h"

/** When a process began, in clock ticks since boot, never 0. 0: there is none of that number. */
uint64_t rbi_process_started(uint32_t pid);
/**
 * Path of the file that it runs, terminated.
 * @param pid  0: it is in another PID namespace @param pidfd  borrowed; -1: there is none
 * @return length; 0: not to be known, or longer than @p size: @p out is ""
 */
size_t rbi_process_file(uint32_t pid, int pidfd, char *out, size_t size);
/**
 * Path of its control group in the hierarchy of version 2, as seen from our own namespace.
 * @param text  owned by the caller, to be freed; NULL: memory was short
 * @return where the path begins in @p text; NULL: not to be known
 */
const char *rbi_process_cgroup(uint32_t pid, int pidfd, char **text, size_t *length);

#endif
