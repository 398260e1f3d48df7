/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_PROCESS_CLIENT_DRAIN_H
#define RINGBUS_TESTS_PROCESS_CLIENT_DRAIN_H
/* Two instances of a cluster, one of which leaves, and a caller that dispatches to both. */
#include "support/bus.h"
#include "support/machine.h"
#include "support/test.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PEER   "/game/eu/pc/w1/core/peer"
#define PEER_1 PEER "/1"
#define PEER_2 PEER "/2"
#define OTHER  "/game/eu/pc/w1/core/other"
#define NOBODY 65534U

static struct cluster cluster;
static struct node a; /* dispatches to the cluster PEER */
static struct node b; /* PEER_1, leaves */
static struct node c; /* PEER_2, stays */

static inline int instances(struct node *node, enum ringbus_instance_state state)
{
    struct ringbus_instance found[8];
    int count = ringbus_instances(node->bus, PEER, found, 8);
    int of_state = 0;
    CHECK(count <= 8);
    for (int i = 0; i < count; i++) {
        of_state += found[i].state == state;
    }
    return of_state;
}

static inline struct ringbus_addr up(void)
{
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    memset(&c, 0, sizeof c);
    node_open(&b, &cluster, PEER_1);
    node_open(&c, &cluster, PEER_2);
    node_open(&a, &cluster, NULL);
    struct ringbus_addr addr;
    CHECK(ringbus_target(a.bus, PEER, NULL, &addr) == 0);
    RUN_UNTIL(a.events[RINGBUS_EVENT_READY] == 2, NODE_MS, &a, &b, &c);
    return addr;
}

static inline void down(void)
{
    struct node *const nodes[] = {&a, &b, &c};
    for (unsigned i = 0; i < 3; i++) {
        if (nodes[i]->bus) {
            node_close(nodes[i]);
        }
    }
}

static inline void send_any(const struct ringbus_addr *to, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        CHECK(ringbus_send(a.bus, to, 0, &i, sizeof i, 0) == 1);
    }
}

static inline struct ringbus_addr address_of(const struct node *node)
{
    struct ringbus_addr addr;
    CHECK(ringbus_self(node->bus, &addr) == 0);
    return addr;
}

static inline int setup(void **state)
{
    (void)state;
    return cluster_up(&cluster, "quota: {connects: 100000}\n"
                                "clusters:\n"
                                "  - {match: \"/**\", balance: {keyless: rr}}\n");
}

static inline int teardown(void **state)
{
    (void)state;
    cluster_down(&cluster);
    return 0;
}

#endif
