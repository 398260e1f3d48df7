/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_REPORTED_H
#define RINGBUS_DAEMON_REPORTED_H
/*
 * daemon/reported.h - weights by what the instances report of their load (bus/reported.h), for the
 * clusters whose policy asks for it: once a second their pages are read, and who should have
 * another weight is published. What an operator says of a weight goes before.
 */
#include "bus/reported.h"
#include "daemon/list.h"
#include "daemon/loop.h"

struct rbi_cluster;
struct rbi_daemon;
struct rbi_endpoint;

/** Of the daemon. */
struct rbi_reported_desk {
    struct rbi_list clusters; /* in_reported of those that are looked at */
    struct rbi_loop_timer timer;
};

/** Of an endpoint, as an instance. */
struct rbi_endpoint_reported {
    struct rbi_reported reported;
    uint64_t failed; /* calls to it that its callers say have failed */
    uint16_t weight; /* as published; 0: its own holds */
};

void rbi_reported_init(struct rbi_reported_desk *desk);
/** A cluster is published: it is looked at from now on, if its policy says so. */
void rbi_reported_follow(struct rbi_daemon *daemon, struct rbi_cluster *cluster);
/** What others are to see. */
uint16_t rbi_reported_seen(const struct rbi_endpoint *endpoint);

#endif
