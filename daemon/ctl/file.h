/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_CTL_FILE_H
#define RINGBUS_DAEMON_CTL_FILE_H
/*
 * daemon/ctl/file.h - files of configuration: reading one, and printing what is wrong with it.
 */
#include "bus/config.h"
#include "daemon/ctl/ctl.h"

/**
 * Reads a file, or standard input for "-": at most one byte more than a configuration may have,
 * which tells the parser that there is too much. Complains itself.
 * @param text  allocated, to be freed
 * @return exit code
 */
RBI_MUST_CHECK int
rbi_ctl_file_read(const struct rbi_ctl_args *args, const char *name, char **text, size_t *size);
/** Prints the errors of the file that is the first operand, to standard output. */
void rbi_ctl_file_errors(const struct rbi_ctl_args *args, const struct rbi_config_errors *errors);

#endif
