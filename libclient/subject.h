/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_LIBCLIENT_SUBJECT_H
#define RINGBUS_LIBCLIENT_SUBJECT_H
/*
 * libclient/subject.h - which process we are, for rules that are about some callers only. Asked of
 * the kernel when a policy that has such a rule comes, and not kept: what a process is may change.
 */
#include "bus/cgroup.h"
#include "bus/subject.h"

struct rbi_own_subject {
    struct rbi_subject subject;
    char program[RBI_GLOB_MAX + 1];
    char *cgroup_text; /* owned */
};

/** Reads what the rules of @p policy ask. What cannot be read is not known. Cold. */
void rbi_own_subject_init(struct rbi_own_subject *own, const struct rbi_policy *policy);
void rbi_own_subject_deinit(struct rbi_own_subject *own);

#endif
