/* SPDX-License-Identifier: Apache-2.0 */
#include "support/loops.h"

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

int loops_setup(void **state)
{
    (void)state;
    memset(&loops_cluster, 0, sizeof(loops_cluster));
    return 0;
}

int loops_teardown(void **state)
{
    (void)state;
    if (loops_cluster.folder[0]) {
        cluster_down(&loops_cluster);
    }
    return 0;
}
