/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For count_open_calls.sh: opens an endpoint between the first and the second getppid() of
 * this process, and makes a link between the second and the third. One thread is both sides.
 */
#include "support/bus.h"

#include <unistd.h>

#define SERVER   "/game/eu/pc/w1/core/server"
#define SERVER_1 SERVER "/1"
#define CLIENT_1 "/game/eu/pc/w1/core/client/1"

int main(void)
{
    struct cluster cluster = {.pid = 0};
    struct node server = {.bus = NULL};
    struct node client = {.bus = NULL};
    CHECK(cluster_up(&cluster, "{}\n") == 0);
    node_open(&server, &cluster, SERVER_1);
    (void)getppid();
    node_open(&client, &cluster, CLIENT_1);
    (void)getppid();
    (void)node_target(&client, SERVER, 1, &server);
    (void)getppid();
    node_close(&client);
    node_close(&server);
    cluster_down(&cluster);
    return 0;
}
