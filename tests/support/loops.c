/* SPDX-License-Identifier: Apache-2.0 */
#include "support/loops.h"

#include "support/raw.h"

#include <stdio.h>
#include <string.h>

struct cluster loops_cluster;

int loops_make(void **state, const char *daemon_keys, const char *rest)
{
    char config[1024];
    (void)snprintf(config, sizeof(config), "daemon: {loop: %s%s%s}\n%s", (const char *)*state,
                   *daemon_keys ? ", " : "", daemon_keys, rest);
    return cluster_make(&loops_cluster, config);
}

int loops_up(void **state, const char *daemon_keys, const char *rest)
{
    return loops_make(state, daemon_keys, rest) == 0 ? cluster_start(&loops_cluster) : -1;
}

int loops_idle_fds(void)
{
    /* Counted while one client is served: then nothing of the start is still open. */
    struct raw raw;
    int count = -1;
    if (raw_connect(&raw, loops_cluster.socket) == 0 && raw_hello(&raw) == 0) {
        count = cluster_fd_count(&loops_cluster) - 2; /* its socket and its process */
    }
    raw_close(&raw);
    return count > 0 ? cluster_fd_wait(&loops_cluster, count) : -1;
}

int loops_setup(void **state)
{
    (void)state;
    memset(&loops_cluster, 0, sizeof(loops_cluster));
    return 0;
}

int loops_teardown(void **state)
{
    (void)state;
    /* In order, so that a daemon under a sanitizer says what it leaks, and ends with an error. */
    const int code = loops_cluster.pid > 0 ? cluster_stop(&loops_cluster) : 0;
    if (loops_cluster.folder[0]) {
        cluster_down(&loops_cluster);
    }
    return code == 0 ? 0 : -1;
}
