/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_SUBJECT_H
#define RINGBUS_BUS_SUBJECT_H
/*
 * bus/subject.h - which process a rule is about: its user, its first group, the file that it runs,
 * its control group. Rights (bus/acl.h) and routes (bus/route_class.h) ask alike. Pure. Never by
 * the number of a process, which may be another's tomorrow.
 */
#include "bus/policy.h"

/** A process. Texts are lent. */
struct rbi_subject {
    uint32_t uid;
    uint32_t gid;
    const char *program;  /* path of its file; terminated; "" is not known */
    const char *cgroup;   /* path of its control group (bus/cgroup.h); need not be terminated */
    size_t cgroup_length; /* 0: not known */
};

/** Whether a program is the one that is wanted: with a slash this file, else any of the name. */
bool rbi_subject_runs(const char *wanted, const char *program);
/** Whether a group is one that a pattern (bus/glob.h) describes. One that is not known never is. */
bool rbi_subject_is_in(const char *pattern, const char *cgroup, size_t length);

#define RBI_CALLER_BY_UID 1U /* given: the rule says which user */
#define RBI_CALLER_BY_GID 2U

/** Whether a rule of routes asks anything of the caller. */
bool rbi_subject_is_asked(const struct rbi_caller_match *match);
/** Whether it is about this one. @param subject  NULL: nothing is known of it */
bool rbi_subject_matches(const struct rbi_caller_match *match, const struct rbi_subject *subject);

#endif
