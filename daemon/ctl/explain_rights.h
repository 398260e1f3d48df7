/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_CTL_EXPLAIN_RIGHTS_H
#define RINGBUS_DAEMON_CTL_EXPLAIN_RIGHTS_H
/*
 * daemon/ctl/explain_rights.h - which instances a caller has no right to, and which process it is:
 * the daemon alone knows that of others. Part of explain.
 */
#include "daemon/ctl/ctl.h"

#include <ringbus/ringbus.h>

/** An instance, and what the daemon says of it. */
struct rbi_ctl_denied_why {
    char path[RINGBUS_PATH_MAX + 1];
    char why[256];
};

struct rbi_ctl_denied {
    size_t count;
    size_t room;
    struct ringbus_addr *addrs; /* owned, both */
    struct rbi_ctl_denied_why *whys;
};

/**
 * Asks the daemon for each instance of @p count clusters. Complains itself.
 * @return exit code. RBI_CTL_DENIED: who runs this may not ask about that caller
 */
RBI_MUST_CHECK int rbi_ctl_denied_read(struct rbi_ctl_denied *denied,
                                       const struct rbi_ctl_args *args,
                                       struct ringbus *bus,
                                       const char *caller,
                                       uint32_t method,
                                       char (*clusters)[RINGBUS_PATH_MAX + 1],
                                       unsigned count);
void rbi_ctl_denied_deinit(struct rbi_ctl_denied *denied);

/** A caller's process, in memory of its own. */
struct rbi_ctl_caller {
    struct ringbus_subject subject; /* refers to the others */
    char program[256];
    char cgroup[256];
};

/**
 * Asks the daemon which process a caller is. Complains itself.
 * @return exit code. RBI_CTL_DENIED: who runs this may not ask about it
 */
RBI_MUST_CHECK int rbi_ctl_caller_read(struct rbi_ctl_caller *out,
                                       const struct rbi_ctl_args *args,
                                       const char *caller);

#endif
