/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BROKER_FACE_H
#define RINGBUS_DAEMON_BROKER_FACE_H
/*
 * daemon/broker/face.h - an endpoint of the broker: of a side, which sends on and is sent to by
 * name (struct ringbus_message_options, dest); or a portal, which stands for one cluster.
 */
#include "daemon/broker/broker.h"

struct rbi_route;

struct rbi_face {
    struct rbi_list link; /* in broker->faces */
    struct rbi_broker *broker;
    const struct rbi_broker_side *side;
    struct rbi_route *route; /* of a portal; NULL: of a side */
    uint64_t number;
    char path[RINGBUS_PATH_MAX + 1];
    struct ringbus *bus;  /* NULL: not open */
    int fd;               /* of bus, in the epoll set */
    bool active;          /* to be polled: it had something, was sent with, or the kernel says so */
    bool leaving;         /* to be closed, once what is under way has ended */
    uint64_t leave_ns;    /* since when */
    struct rbi_map names; /* of a side: struct rbi_route by the cluster that is shown on it */
    uint64_t retry_ns;    /* when it is tried again to open it */
    uint32_t tries;
    uint32_t calls;          /* requests that came here, under way */
    struct rbi_list waiting; /* struct rbi_call: answers that found no room, the oldest first */
};

/** @param path  7 elements @return NULL: no memory */
struct rbi_face *
rbi_face_new(struct rbi_broker *broker, const struct rbi_broker_side *side, const char *path);
/** Leaves the bus at once: requests that it has sent on end, answers that wait are forgotten. */
void rbi_face_close(struct rbi_face *face);
/** Closes it first. No request that came to it may be under way. */
void rbi_face_free(struct rbi_face *face);
/** Opens it when it is due. @return whether it is open */
bool rbi_face_open(struct rbi_face *face, uint64_t now_ns);
/** @return messages and events handled */
int rbi_face_poll(struct rbi_face *face);

#endif
