/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_TESTS_INSTRUCTIONS_GROUP_H
#define RINGBUS_TESTS_INSTRUCTIONS_GROUP_H
/*
 * tests/instructions/group.h - a cluster of so many servers and one client with a link to
 * each, all in this process and in one thread: valgrind runs one thread at a time anyway,
 * and nobody spins for somebody else.
 */
#include <ringbus/ringbus.h>
#include <stdint.h>

#define GROUP_SERVERS_MAX 512U

struct group {
    /* What is wanted. */
    const char *cluster;
    unsigned count;
    enum ringbus_mode mode;
    uint32_t lane_bytes; /* 0: the default */
    /* What there is. */
    struct ringbus *servers[GROUP_SERVERS_MAX];
    struct ringbus *client;
    struct ringbus_addr any;   /* of the cluster */
    struct ringbus_addr first; /* its first instance */
    uint64_t sent;             /* messages on their way to servers, counted per receiver */
    uint64_t received;
    uint64_t replies;
    uint64_t errors; /* calls that did not return what they should */
};

/** Opens all and waits until every link is READY. 0; -1 with a line on stderr. */
int group_open(struct group *group, const char *socket);
/** With the clock held: PINGs that are due are sent and answered, so that none comes later. */
void group_settle(struct group *group);
/** Servers take what was sent. 0; -1: something was lost */
int group_drain(struct group *group);
/** Closes what was opened. */
void group_close(struct group *group);

#endif
