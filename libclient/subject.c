/* SPDX-License-Identifier: Apache-2.0 */
#include "libclient/subject.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static void read_program(struct rbi_own_subject *own)
{
    const ssize_t n = readlink("/proc/self/exe", own->program, sizeof own->program - 1);
    const bool known = n > 0 && (size_t)n < sizeof own->program - 1;
    own->program[known ? n : 0] = '\0';
}

static void read_cgroup(struct rbi_own_subject *own)
{
    own->cgroup_text = malloc(RBI_CGROUP_TEXT_MAX);
    const int fd = own->cgroup_text != NULL ? open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC) : -1;
    size_t used = 0;
    ssize_t n = fd < 0 ? -1 : 1;
    while (n > 0 && used < RBI_CGROUP_TEXT_MAX) {
        n = read(fd, own->cgroup_text + used, RBI_CGROUP_TEXT_MAX - used);
        used += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    if (n == 0) {
        own->subject.cgroup = rbi_cgroup_path(own->cgroup_text, used, &own->subject.cgroup_length);
    }
}

void rbi_own_subject_init(struct rbi_own_subject *own, const struct rbi_policy *policy)
{
    bool program = false;
    bool cgroup = false;
    *own = (struct rbi_own_subject){.cgroup_text = NULL};
    own->subject = (struct rbi_subject){.program = own->program};
    for (uint32_t i = 0; i < policy->rule_count && i < RBI_RULES_MAX; i++) {
        const struct rbi_caller_match *caller = &policy->rules[i].caller;
        program = program || caller->program[0] != '\0';
        cgroup = cgroup || caller->cgroup[0] != '\0';
        if (caller->given != 0) {
            own->subject.uid = geteuid();
            own->subject.gid = getegid();
        }
    }
    if (program) {
        read_program(own);
    }
    if (cgroup) {
        read_cgroup(own);
    }
}

void rbi_own_subject_deinit(struct rbi_own_subject *own)
{
    free(own->cgroup_text);
    own->cgroup_text = NULL;
}
