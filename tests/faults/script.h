/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_FAULTS_SCRIPT_H
#define RINGBUS_TESTS_FAULTS_SCRIPT_H
/*
 * What clients want of the daemon, one after the other: connect, register, find each other, be
 * linked, ask, reload, drain, part, leave. Whatever a disturbed daemon refuses is asked for
 * again; all of it must come to be in time.
 */
#include "support/cluster.h"

#include <ringbus/ringbus.h>
#include <stdbool.h>

/** For each step: it may be tried again, by whom and after what pause ever. */
#define SCRIPT_MS 6000U

/** Two endpoints that are linked before anything is disturbed, and live through it all. */
struct bystanders {
    struct ringbus *server;
    struct ringbus *client;
    struct ringbus_addr to;
    unsigned answers;
    unsigned links_lost;
};

int bystanders_open(struct bystanders *bystanders, const struct cluster *cluster);
/** Whether they have kept their link and can talk. */
bool bystanders_are_well(struct bystanders *bystanders);
void bystanders_close(struct bystanders *bystanders);

/** Plays it. @return NULL; what did not come to be */
const char *script_play(const struct cluster *cluster, struct bystanders *bystanders);

#endif
