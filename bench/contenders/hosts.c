/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/contenders/hosts.c - two hosts for the contender that is ringbus between them: each a
 * daemon and a bridge, TLS over loopback between those. The bridges run where the kernel puts them.
 */
#include "bench/contenders/hosts.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define START_MS 30000

int bench_hosts_setup(struct bench_place *place)
{
    char folder[96];
    char ready[128];
    struct stat found;
    (void)snprintf(folder, sizeof folder, "%s/hosts%u", place->directory, place->number);
    (void)snprintf(ready, sizeof ready, "%s/ready", folder);
    const char *const argv[] = {BENCH_SCRIPTS "/two_hosts.sh", BENCH_BUILD, folder, NULL};
    if (mkdir(folder, 0700) != 0 || bench_place_helper(place, argv) != 0) {
        perror(folder);
        return -1;
    }
    for (unsigned ms = 0; stat(ready, &found) != 0; ms++) {
        if (ms == START_MS) {
            (void)fprintf(stderr, "bench: two hosts do not come up: see the log of the helper\n");
            bench_place_helper_stop(place);
            return -1;
        }
        (void)usleep(1000);
    }
    (void)snprintf(place->side_sockets[0], sizeof place->side_sockets[0], "%s/alpha.sock", folder);
    (void)snprintf(place->side_sockets[1], sizeof place->side_sockets[1], "%s/beta.sock", folder);
    return 0;
}

void bench_hosts_teardown(struct bench_place *place)
{
    bench_place_helper_stop(place);
}
