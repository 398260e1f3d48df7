/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_RELOAD_H
#define RINGBUS_DAEMON_RELOAD_H
/* daemon/reload.h - reads the configuration file: at the start, and again on SIGHUP. */
#include "bus/governance.h"

struct rbi_daemon;

/**
 * Reads and parses a file. Errors are given to @p report, one call each.
 * @retval 0  @p out and @p governance are written
 * @retval 1  the file has errors
 * @retval -errno it cannot be read; reported as well
 */
typedef void (*rbi_reload_report_fn)(const char *path, const struct rbi_config_error *error);
RBI_MUST_CHECK int rbi_reload_read(const char *path,
                                   struct rbi_config *out,
                                   struct rbi_governance *governance,
                                   rbi_reload_report_fn report);
/** Report of the daemon: a line in its log. */
void rbi_reload_log_error(const char *path, const struct rbi_config_error *error);
/**
 * Reads the file again: all of it takes effect, or nothing. A line for each key that
 * changed says whether it was applied or needs a restart.
 */
void rbi_reload(struct rbi_daemon *daemon);

#endif
