/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_DAEMON_BROKER_BROKER_H
#define RINGBUS_DAEMON_BROKER_BROKER_H
/*
 * daemon/broker/broker.h - the state of ringbus-broker, and its loop. One thread: it polls the
 * handles of its sides and portals in turn, and sleeps on their descriptors when none had anything.
 */
#include "daemon/broker/config.h"
#include "daemon/list.h"
#include "daemon/map.h"

#include <ringbus/ringbus.h>

/* X(name, text): since the start; told when it ends, and at SIGUSR1. */
#define RBI_BROKER_COUNTERS(X)                                                                     \
    X(forwarded, "one-way messages and broadcasts sent on")                                        \
    X(requests, "requests sent on")                                                                \
    X(answers, "requests answered, whatever their outcome")                                        \
    X(refused, "requests and messages that could not be sent on; their senders were told")         \
    X(deferred, "times that a message was left with its sender for want of room")                  \
    X(no_route, "those of them that had been here, or had passed too many brokers")                \
    X(late, "answers whose caller had gone")                                                       \
    X(undelivered, "one-way messages that an instance had not handled when it ended")              \
    X(told_refused, "one-way messages that another receiver said it had dropped")

struct rbi_broker_counters {
#define RBI_BROKER_COUNTER(name, text) uint64_t name;
    RBI_BROKER_COUNTERS(RBI_BROKER_COUNTER)
#undef RBI_BROKER_COUNTER
};

struct rbi_broker {
    struct rbi_broker_config *config;
    const char *config_path;
    struct rbi_list faces;  /* struct rbi_face: sides first, then portals */
    struct rbi_list routes; /* struct rbi_route */
    struct rbi_map callers; /* struct rbi_caller */
    struct rbi_face *sides[RBI_BROKER_SIDES_MAX];
    uint64_t last_face; /* number of the last one that was made */
    uint64_t via;       /* cluster of the first side: by it this broker knows what it has had */
    uint32_t calls;     /* requests under way */
    int epoll;
    int signals;
    bool leaving;
    bool replaced; /* another process has a name of ours */
    bool again;    /* something is not open yet */
    bool dropping; /* portals leave */
    uint64_t leave_ns;
    struct rbi_broker_counters counters;
};

/** Reads the file and makes what it says; nothing is opened yet. 0; -errno; 1 reported */
RBI_MUST_CHECK int rbi_broker_init(struct rbi_broker *broker, const char *config_path);
/** Accepts a broker whose init failed. */
void rbi_broker_deinit(struct rbi_broker *broker);
/** Runs until SIGTERM or SIGINT, and what was under way then has ended. 0; -errno */
RBI_MUST_CHECK int rbi_broker_run(struct rbi_broker *broker);

/** Reads a file. Complains itself. 0; 1 */
RBI_MUST_CHECK int rbi_broker_read(const char *path, struct rbi_broker_config *out);
uint64_t rbi_broker_now_ns(void);

#endif
