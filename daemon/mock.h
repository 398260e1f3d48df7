/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_MOCK_H
#define RINGBUS_DAEMON_MOCK_H
/*
 * daemon/mock.h - answers that lie in files beside the configuration (mock_file): read when the
 * text that names them is taken, published beside the policies.
 *
 * Who may apply a text need not be allowed to read what the daemon may: a file lies in the folder
 * of the configuration file or below, and no link leads to it.
 */
#include "bus/governance.h"

struct rbi_daemon;

/**
 * Reads all files that a text names.
 * @param config_path  of the configuration file; NULL: there is none, and no file can be named
 * @param errors  more entries when one cannot be read, with its place
 * @retval 0;  1 one cannot be read;  -ENOMEM
 */
RBI_MUST_CHECK int rbi_mocks_read(const char *config_path,
                                  struct rbi_governance *governance,
                                  struct rbi_config_errors *errors);
/** Publishes what a policy names, before the policy. One that cannot be is logged. */
void rbi_mocks_hold(struct rbi_daemon *daemon, const struct rbi_policy *policy);
/** And withdraws it, after it. @param key  of the policy, still held; 0: none */
void rbi_mocks_release(struct rbi_daemon *daemon, uint64_t key);

#endif
