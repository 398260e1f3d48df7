/* SPDX-License-Identifier: Apache-2.0 */
#include "bus/subject.h"

#include "bus/glob.h"

#include <string.h>

bool rbi_subject_runs(const char *wanted, const char *program)
{
    const char *slash = strrchr(program, '/');
    const char *name = slash != NULL ? slash + 1 : program;
    return strcmp(wanted, strchr(wanted, '/') != NULL ? program : name) == 0;
}

bool rbi_subject_is_in(const char *pattern, const char *cgroup, size_t length)
{
    return length != 0 && rbi_glob_match(pattern, strlen(pattern), cgroup, length);
}

bool rbi_subject_is_asked(const struct rbi_caller_match *match)
{
    return match->given != 0 || match->program[0] != '\0' || match->cgroup[0] != '\0';
}

bool rbi_subject_matches(const struct rbi_caller_match *match, const struct rbi_subject *subject)
{
    if (subject == NULL) {
        return !rbi_subject_is_asked(match);
    }
    return ((match->given & RBI_CALLER_BY_UID) == 0 || match->uid == subject->uid) &&
           ((match->given & RBI_CALLER_BY_GID) == 0 || match->gid == subject->gid) &&
           (match->program[0] == '\0' || rbi_subject_runs(match->program, subject->program)) &&
           (match->cgroup[0] == '\0' ||
            rbi_subject_is_in(match->cgroup, subject->cgroup, subject->cgroup_length));
}
