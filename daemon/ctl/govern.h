/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_CTL_GOVERN_H
#define RINGBUS_DAEMON_CTL_GOVERN_H
/*
 * daemon/ctl/govern.h - what the commands that change the configuration have in common: who asks
 * for what and why, and the answer in words.
 */
#include "daemon/ctl/control.h"

/** The command as it was given, and --why: for the history. */
void rbi_ctl_govern_why(const struct rbi_ctl_args *args, struct rbi_text *out);
/** Asks for a change and prints what came of it. @param fd  goes along, or -1. @return exit code */
RBI_MUST_CHECK int rbi_ctl_govern_change(const struct rbi_ctl_args *args,
                                         enum rbi_wire_type type,
                                         const void *body,
                                         int fd);
/**
 * A text that was applied, of the version that holds.
 * @param text  allocated, to be freed; "{}" when nothing was applied yet
 * @return exit code
 */
RBI_MUST_CHECK int rbi_ctl_govern_text(const struct rbi_ctl_args *args, char **text, size_t *size);

#endif
