/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_CGROUP_H
#define RINGBUS_BUS_CGROUP_H
/*
 * bus/cgroup.h - in which control group a process is, by the text of /proc/PID/cgroup. Pure.
 */
#include "shm/base.h"

/**
 * Room for that text: the longest path, and as many of the older hierarchies around it. Nobody can
 * hide where it is by making its text longer than is read.
 */
#define RBI_CGROUP_TEXT_MAX 65536U

/**
 * Finds the path in the one hierarchy of version 2: the line that begins with "0::". That of a
 * group which was removed under its last process is without the mark that the kernel puts behind.
 * @param text    need not be terminated; a text that was cut short must be refused by the caller
 * @param length  of the path, written when there is one
 * @return where it begins, in @p text; NULL: the process is in no such hierarchy
 */
const char *rbi_cgroup_path(const char *text, size_t text_length, size_t *length);

#endif
